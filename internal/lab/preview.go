package lab

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/bench"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/tune/foresight"
)

// Preview is what a race would do, known without a launch.
type Preview struct {
	Candidates []PreviewCandidate // those that may be raced, the best predicted first; unpredicted ones after them
	Refused    []PreviewCandidate
	Skipped    int           // recipes of engines or models that the study does not try
	Budget     tune.Budget   // as the search takes it
	Plan       tune.Plan     // of a race that launches
	Took       time.Duration // to predict
	Doubts     []string      // why the launches will not tell what the study asks, a paragraph each
	Unlaunched bool          // nothing will be started: the search goes on by prediction
}

// PreviewCandidate is a candidate before the race.
type PreviewCandidate struct {
	Label     string
	Prior     string // where it comes from, if not from the catalogue
	About     string // what it is made of, where the label is the study's word for it
	Command   string
	Predicted *float64 // ratio to the baseline in the direction that is better; nil: cannot be predicted
	Shorter   string   // what it cuts of the context, "" for nothing
	Refused   string   // why it will not be launched
}

// Remark is where the candidate comes from and what its label does not say, in brackets; "" for nothing.
func (c PreviewCandidate) Remark() string {
	from := c.Prior
	if c.About != "" {
		from += ": " + c.About
	}
	parts := slices.DeleteFunc([]string{from, c.Shorter}, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, "; ") + ")"
}

// Rank ranks the candidates of a race. Of another strategy there is nothing to rank: ok is
// false, and there is the doubt alone. watch is told of every configuration that is predicted.
func Rank(ctx context.Context, s *study.Study, p bench.Predictor, watch func(Status)) (out Preview, ok bool, err error) {
	begun := time.Now()
	l := newSession(s, Options{Predictor: p, Watch: watch})
	predictor := predictorOf(ctx, l)
	if s.Strategy != study.Race {
		out.Doubts = said(l.foresee(predictor, nil))
		return out, false, nil
	}
	st, field, err := s.NewStrategy(predictor)
	if err != nil {
		return out, true, err
	}
	out.Budget = s.Limits
	out.Skipped = s.Skipped
	if race, ok := st.(*tune.Race); ok {
		out.Plan = race.Planned()
	}
	_, out.Unlaunched = st.(*foresight.Search)
	l.predictAll(predictor, field.Candidates())
	base, based := l.predictedLog(predictor, s.BaselineConfig())
	for _, a := range field.Candidates() {
		c := PreviewCandidate{Label: a.Label, Prior: a.Prior, Refused: a.Refused}
		if a.Refused != "" {
			out.Refused = append(out.Refused, c)
			continue
		}
		if pl, err := l.Configure(a.Config, study.Installed{}); err == nil {
			c.Command = redacted(pl.Command)
		}
		if v, ok := l.predictedLog(predictor, a.Config); ok && based {
			c.Predicted = new(math.Exp(v - base))
		}
		c.Shorter = s.ShorterContext(a.Config)
		if maps.Equal(a.Config, s.BaselineConfig()) {
			c.Prior = "the baseline"
		}
		if words := field.Label(a.Config); words != a.Label && (a.Named || c.Prior == "the baseline") {
			c.About = words
		}
		out.Candidates = append(out.Candidates, c)
	}
	out.Doubts = said(l.foresee(predictor, field), shortBudget(out.Plan))
	slices.SortStableFunc(out.Candidates, func(a, b PreviewCandidate) int {
		switch {
		case a.Predicted == nil || b.Predicted == nil:
			return cmp.Compare(hasPrediction(b), hasPrediction(a))
		}
		return cmp.Compare(*b.Predicted, *a.Predicted)
	})
	out.Took = time.Since(begun)
	return out, true, context.Cause(ctx)
}

func hasPrediction(a PreviewCandidate) int {
	if a.Predicted == nil {
		return 0
	}
	return 1
}

// weights are those of the workloads that the search is judged by.
func (l *session) weights() map[string]float64 {
	if w := l.Goal.Weights; len(w) > 0 {
		return w
	}
	return map[string]float64{l.Workloads[0].Name: 1}
}

// predictAll predicts what may be raced together, where the predictor can.
func (l *session) predictAll(p tune.Predictor, all []tune.Candidate) {
	together, ok := p.(tune.Parallel)
	if !ok {
		return
	}
	var runnable []tune.Config
	for _, c := range all {
		if c.Refused == "" {
			runnable = append(runnable, c.Config)
		}
	}
	weights := l.weights()
	for _, w := range l.Workloads {
		if weights[w.Name] > 0 {
			together.PredictAll(runnable, w.Name)
		}
	}
}

// predictedLog is the logarithm of the objective in the direction that is better, by
// prediction: over weighted workloads the mean.
func (l *session) predictedLog(p tune.Predictor, c tune.Config) (float64, bool) {
	o, weights := l.Goal, l.weights()
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
