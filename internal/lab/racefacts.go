package lab

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"perflab/internal/outcome"
	"perflab/internal/stat"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// raceFacts is the evidence of a race as facts: what it says of configurations and
// numbers, with commands, and with what the trials cost.
func (m *factsMaker) raceFacts(f outcome.Study, r tune.Result, trials []trialRecord) *outcome.Race {
	e := r.Evidence
	return &outcome.Race{
		Noise: e.Noise, Candidates: m.candidates(e.Candidates, trials), Unlaunched: e.Unlaunched, Steps: e.Steps, Predictions: e.Predictions, Learned: e.Learned,
		Comparisons: e.Comparisons, Ablation: e.Ablation, HoldOuts: e.HoldOuts, HeldOut: e.HeldOut, Accuracy: e.Accuracy, Constraints: e.Constraints,
		Frontier: m.frontier(f, e.Steps), Phases: m.phases(e.Phases, trials), Stop: e.Stopped,
	}
}

// candidates have the commands that their trials had, and those that never ran the
// ones that they would have had by the study file.
func (m *factsMaker) candidates(ends []tune.Outcome, trials []trialRecord) []outcome.Candidate {
	out := make([]outcome.Candidate, 0, len(ends))
	for _, a := range ends {
		c := outcome.Candidate{
			Label: a.Label, Engine: a.Config["engine"], Prior: a.Prior, Trials: a.Trials, State: a.State, Finding: a.Reason,
			Predicted: a.Predicted, Expected: a.Expected, Measured: a.Measured,
		}
		if a.State != tune.StateRefused {
			c.Shorter = m.ShorterContext(a.Config)
		}
		i := slices.IndexFunc(trials, func(t trialRecord) bool { return maps.Equal(t.Config, a.Config) })
		if i >= 0 {
			c.Command = trials[i].Command
		} else if pl, _ := m.Configure(a.Config, study.Installed{}); pl.Command.Engine != "" {
			c.Command = redacted(pl.Command)
		}
		out = append(out, c)
	}
	return out
}

// phases have what their trials cost. They follow each other.
func (m *factsMaker) phases(all []tune.Phase, trials []trialRecord) []outcome.Phase {
	out := []outcome.Phase{} // a list in study.json, also when it is empty
	last := 0
	for _, p := range all {
		first := last
		last += p.Launches
		phase := outcome.Phase{Name: p.Name, Launches: p.Launches, WallS: p.Seconds, Gain: p.Gain}
		for _, t := range trials {
			if t.ID > first && t.ID <= last {
				phase.LoadS += t.LoadS
				phase.GPUSeconds += t.GPUSeconds
			}
		}
		if m.OnCPU() {
			phase.GPUSeconds = 0
		}
		out = append(out, phase)
	}
	return out
}

// launches is how many trials a gain of this one's configuration is of: those of
// the confirming passes.
func (m *factsMaker) launches(trials []outcome.Trial, id int) int {
	t := trialByID(trials, id)
	if t == nil {
		return 0
	}
	n := 0
	for _, o := range trials {
		if o.Stage == t.Stage && o.Status == tune.Measured && maps.Equal(o.Config, t.Config) {
			n++
		}
	}
	return n
}

// Figures of a point of the frontier.
const (
	tpotFigure   = "mean_tpot_ms"
	outputFigure = "output_throughput"
)

// frontier is every configuration that was measured under all of the primary
// workload's load, by what a user sees and what a GPU yields.
func (m *factsMaker) frontier(f outcome.Study, steps []tune.Entry) []outcome.FrontPoint {
	type spot struct {
		outcome.FrontPoint
		config          map[string]string
		perUser, perGPU []float64
	}
	var spots []*spot
	for _, t := range f.Trials {
		s := summaryOf(f.Trials, t.ID, m.Workloads[0].Name)
		if t.Status != tune.Measured || t.Share != 0 || s == nil {
			continue
		}
		tpot, user := s.Figures[tpotFigure]
		rate, gpu := s.Figures[outputFigure]
		if !user || !gpu || !(tpot > 0) {
			continue // there is no such place on the plot
		}
		i := slices.IndexFunc(spots, func(p *spot) bool { return maps.Equal(p.config, t.Config) })
		if i < 0 {
			i = len(spots)
			spots = append(spots, &spot{FrontPoint: outcome.FrontPoint{Label: configurationName(f, steps, t), Pick: pickOf(f, t)}, config: t.Config})
		}
		p := spots[i]
		p.Trials = append(p.Trials, t.ID)
		p.perUser = append(p.perUser, 1000/tpot)
		p.perGPU = append(p.perGPU, rate/float64(cmp.Or(t.GPUs, t.Replicas, 1)))
	}
	var out []outcome.FrontPoint
	for _, p := range spots {
		p.PerUser, p.PerGPU = meanOf(p.perUser), meanOf(p.perGPU)
		out = append(out, p.FrontPoint)
	}
	for i := range out {
		out[i].Front = !slices.ContainsFunc(out, func(o outcome.FrontPoint) bool {
			x, y := o.PerUser.Value-out[i].PerUser.Value, o.PerGPU.Value-out[i].PerGPU.Value
			return x >= 0 && y >= 0 && x+y > 0
		})
	}
	return out
}

// configurationName is the name of all of a trial's configuration. A step of the search is
// called after its change alone, as is an ablation: the confirmation has the whole name, and so has
// the search what the change was of.
func configurationName(f outcome.Study, steps []tune.Entry, t outcome.Trial) string {
	if t.Stage == tune.AblateStage && f.Recommended != nil {
		return f.Recommended.Label + " " + t.Label
	}
	i := slices.IndexFunc(steps, func(s tune.Entry) bool { return s.Trial == t.ID })
	if i < 0 {
		return t.Label
	}
	for _, o := range f.Trials {
		if o.Stage == tune.ConfirmStage && maps.Equal(o.Config, t.Config) {
			return o.Label
		}
	}
	return steps[i].Label
}

// pickOf says for what a study singles a trial's configuration out.
func pickOf(f outcome.Study, t outcome.Trial) string {
	for _, p := range []struct {
		name string
		pick *outcome.Pick
	}{{"baseline", f.Baseline}, {"recommended", f.Recommended}} {
		if p.pick == nil {
			continue
		}
		if of := trialByID(f.Trials, p.pick.Trial); of != nil && maps.Equal(of.Config, t.Config) {
			return p.name
		}
	}
	return ""
}

// meanOf is the mean over launches with its 95 % interval by Student's t on the scale
// of logarithms; of one launch there is none, and its ends are the value.
func meanOf(x []float64) tune.Span {
	m := stat.Mean(x)
	s := tune.Span{Value: m, Low: m, High: m}
	if lo, hi, ok := stat.MeanCI(m, stat.StdDev(x), len(x), 0.95); ok && !math.IsNaN(lo) {
		s.Low, s.High = stat.Positive(m, (hi-lo)/2)
	}
	return s
}
