package lab

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"perflab/internal/tune"
)

// Preview is what a race would do, known without a launch.
type Preview struct {
	Arms    []PreviewArm // those that may be raced, the best predicted first; unpredicted ones after them
	Refused []PreviewArm
	Foreign int           // recipes of engines or models that the study does not try
	Budget  tune.Budget   // as the search takes it
	All     int           // launches, at most
	Kept    int           // of them, for the confirmation and the ablation
	Took    time.Duration // to predict
}

// PreviewArm is an arm before the race.
type PreviewArm struct {
	Label     string
	Prior     string
	Command   string
	Predicted *float64 // ratio to the baseline in the direction that is better; nil: cannot be predicted
	Refused   string   // why it will not be launched
}

// Preview ranks the arms of a race. Of another strategy there is nothing to say,
// and ok is false. watch is told of every configuration that is predicted.
func (s *Study) Preview(ctx context.Context, p Predictor, watch func(Status)) (out Preview, ok bool, err error) {
	if s.Strategy != Race {
		return out, false, nil
	}
	begun := time.Now()
	l := &study{Study: s, TuneOptions: TuneOptions{Predictor: p, Watch: watch}}
	foretell := l.foreteller(ctx)
	st, field, err := s.strategy(foretell)
	if err != nil {
		return out, true, err
	}
	objective, err := s.tuneObjective()
	if err != nil {
		return out, true, err
	}
	if out.Budget, err = s.budget(); err != nil {
		return out, true, err
	}
	out.Foreign = s.foreign
	if race, ok := st.(*tune.Race); ok {
		out.All, out.Kept = race.Planned()
	}
	base, based := l.expected(foretell, objective, tune.Candidate{Set: s.whole(*s.Baseline)}.Apply(nil))
	for _, a := range field.Arms() {
		arm := PreviewArm{Label: a.Label, Prior: a.Prior, Refused: a.Refused}
		if a.Refused != "" {
			out.Refused = append(out.Refused, arm)
			continue
		}
		if pl, err := l.plan(a.Config); err == nil {
			arm.Command = shown(pl.cmd)
		}
		if v, ok := l.expected(foretell, objective, a.Config); ok && based {
			arm.Predicted = new(math.Exp(v - base))
		}
		out.Arms = append(out.Arms, arm)
	}
	slices.SortStableFunc(out.Arms, func(a, b PreviewArm) int {
		switch {
		case a.Predicted == nil || b.Predicted == nil:
			return cmp.Compare(known(b), known(a))
		}
		return cmp.Compare(*b.Predicted, *a.Predicted)
	})
	out.Took = time.Since(begun)
	return out, true, context.Cause(ctx)
}

func known(a PreviewArm) int {
	if a.Predicted == nil {
		return 0
	}
	return 1
}

// expected is the logarithm of the objective in the direction that is better, by
// prediction: over weighted workloads the mean.
func (l *study) expected(p tune.Predictor, o tune.Objective, c tune.Config) (float64, bool) {
	weights := o.Weights
	if len(weights) == 0 {
		weights = map[string]float64{l.Workloads[0].Name: 1}
	}
	sum, all := 0.0, 0.0
	for _, w := range l.Workloads {
		part := weights[w.Name]
		if part == 0 {
			continue
		}
		figures, ok := p.Predict(c, w.Name)
		v := figures[o.Metric]
		if !ok || !(v > 0) {
			return 0, false
		}
		sum, all = sum+part*math.Log(v), all+part
	}
	if !o.Higher {
		sum = -sum
	}
	return sum / all, true
}
