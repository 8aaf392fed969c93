package science

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/engine/logs"
	"perflab/internal/stat"
	"perflab/internal/tune"
)

// tails are figures of few samples, twice as noisy within a launch.
const tails = "p9"

// Evaluate measures a proposal of a study of so many launches: the truth with the noise
// of a launch. It is a function of landscape, number of launches and proposal.
func (w *World) Evaluate(p tune.Proposal, launches int) tune.Observation {
	share := p.Share
	if share == 0 {
		share = 1
	}
	draw := stat.Stream(w.Seed, fmt.Sprintf("%s, trial %d, pass %d, share %g, %s", w.Name, p.Trial, p.Pass, share, key(p.Config)))
	o := tune.Observation{Trial: p.Trial, Seconds: w.StartS * (0.9 + 0.2*draw.Float64())}
	x := w.cell(p.Config, share, w.truth)
	switch broken := draw.Float64(); {
	case x.refused != "":
		return w.refusal(o, p.Config, x)
	case broken < failing:
		o.Status, o.Reason = tune.Failed, "SIMULATED: the machine was lost"
		return o
	case broken < failing+voided:
		o.Status, o.Reason = tune.Void, "SIMULATED: the load generator was late"
		return o
	}
	o.Status = tune.Measured
	launch := w.common(p.Pass) + w.Noise.drift(p.Trial, launches) + w.Noise.Launch*factor(w.Noise.Engine[p.Config["engine"]])*draw.NormFloat64()
	if draw.Float64() < w.Noise.Outlier {
		launch += outlier
	}
	figures := w.noisy(x.figures, share, launch, draw)
	within := w.Noise.within(w.Objective.Metric, share)
	o.Figures = map[string]map[string]float64{}
	o.Within = map[string]float64{}
	for _, name := range p.Workloads {
		o.Figures[name], o.Within[name] = figures, within
		o.Seconds += x.figures["duration"]
	}
	o.Moves = w.field.Moves(p.Config, figures, missed(w.Objective, figures))
	return o
}

// missed are the metrics whose constraints figures do not meet.
func missed(o tune.Objective, f map[string]float64) []string {
	var names []string
	for _, b := range o.SLOs {
		if !b.Holds(f) {
			names = append(names, b.Metric)
		}
	}
	return names
}

// refusal is the end of a trial whose engine would not run.
func (w *World) refusal(o tune.Observation, c tune.Config, x *cell) tune.Observation {
	o.Status, o.Reason = tune.Refused, x.refused
	p := w.plan(c)
	if x.log == "" || p.err != nil {
		o.Seconds = 0 // a rule knew it
		return o
	}
	e, err := engine.ByName(p.cmd.Engine)
	if err != nil {
		return o
	}
	if f, ok := logs.Diagnose(e.Name, x.log); ok {
		o.Reason = f.Line
		o.Moves = w.field.Repairs(c, f, p.cmd)
	}
	return o
}

// within is the standard error of a figure within a launch.
func (n Noise) within(name string, share float64) float64 {
	e := n.Within / math.Sqrt(share)
	if strings.HasPrefix(name, tails) {
		e *= 2
	}
	return e
}

// common is what the requests of a pass make of every configuration alike: other
// seeds bring other requests.
func (w *World) common(pass int) float64 {
	if pass == 0 {
		return 0
	}
	return w.Noise.Within * stat.Stream(w.Seed, fmt.Sprintf("%s, requests of pass %d", w.Name, pass)).NormFloat64()
}

// drift is what the machine has become slower by when a trial of a study begins.
func (n Noise) drift(trial, launches int) float64 {
	at := float64(trial-1) / float64(max(1, launches-1))
	switch {
	case n.Jump == 0:
		return n.Drift * at
	case at >= n.Jump:
		return n.Drift
	}
	return 0
}

// slowness of a launch that is an outlier.
const outlier = 0.1

// noisy is the truth as a launch shows it: one factor for all times of the launch
// and its inverse for rates, and one for each figure of its own. Names are taken in
// order, so that the draws are those of the next time too.
func (w *World) noisy(truth map[string]float64, share, launch float64, draw *rand.Rand) map[string]float64 {
	f := map[string]float64{}
	for _, name := range sortedNames(truth) {
		v, own := truth[name], draw.NormFloat64()
		switch {
		case timed(name):
			v *= math.Exp(launch + w.Noise.within(name, share)*own)
		case w.Load.Rate == 0 && strings.HasSuffix(name, "_throughput"):
			v *= math.Exp(-launch + w.Noise.within(name, share)*own)
		}
		f[name] = v
	}
	return f
}

func sortedNames[V any](f map[string]V) []string {
	names := make([]string, 0, len(f))
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
