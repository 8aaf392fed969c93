package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"perflab/internal/stat"
)

// history is what a race has measured so far, and what that says by itself: the
// noise between launches, ratios to the baseline, what the budget has left.
type history struct {
	space     Space
	objective Objective
	bounds    Objective // the objective with bounds that are limits
	budget    Budget
	options   RaceOptions
	asked     RaceOptions // options without their defaults, which a budget decides
	nodes     []*node
	only      *string // stratum of the machines that launches may be on; nil: on all
	trials    []*trial
	base      []*trial // launches of the baseline in the search
}

// baseConfig is the baseline's configuration.
func (h *history) baseConfig() Config { return Change{}.Apply(h.space.Baseline) }

// isBase reports whether a configuration is the baseline's.
func (h *history) isBase(c Config) bool { return maps.Equal(c, h.baseConfig()) }

// workloads are those that the search is judged by: the primary one, and others
// that have a weight.
func (h *history) workloads() []string {
	out := []string{h.space.Primary}
	for _, w := range h.space.Others {
		if h.objective.Weights[w] > 0 {
			out = append(out, w)
		}
	}
	return out
}

// holdOuts are the workloads that the search is not judged by.
func (h *history) holdOuts() []string {
	var out []string
	for _, w := range h.space.Others {
		if !(h.objective.Weights[w] > 0) {
			out = append(out, w)
		}
	}
	return out
}

// merge makes one set of figures of the workloads in the objective: the weighted
// geometric mean of the objective's, and of every bound's figure the worst.
func (h *history) merge(o Observation) map[string]float64 {
	out := maps.Clone(o.Figures[h.space.Primary])
	if o.Status != Measured || out == nil || len(h.objective.Weights) == 0 {
		return out
	}
	sum, weight := 0.0, 0.0
	for _, w := range h.workloads() {
		part := h.objective.Weights[w]
		v, ok := o.Figures[w][h.objective.Metric]
		if part > 0 && !(ok && v > 0) {
			delete(out, h.objective.Metric)
			return out
		}
		if part > 0 {
			sum, weight = sum+part*math.Log(v), weight+part
		}
		for _, b := range h.objective.SLOs {
			worst, have := out[b.Metric]
			switch v, ok := o.Figures[w][b.Metric]; {
			case !ok || !have:
				delete(out, b.Metric)
			case b.Op == "<=":
				out[b.Metric] = max(worst, v)
			default:
				out[b.Metric] = min(worst, v)
			}
		}
	}
	out[h.objective.Metric] = math.Exp(sum / weight)
	return out
}

// logOf is the logarithm of the objective in the direction that is better; not a
// number where there is no positive figure.
func (h *history) logOf(figures map[string]float64) float64 {
	return h.objective.log(figures[h.objective.Metric])
}

// note is what is wrong with a trial.
func (h *history) note(t *trial) *Finding {
	return h.bounds.Note(t.end, t.score, h.space.Primary, t.merged)
}

// launches of a configuration under one share of the load, in the search.
func (h *history) launches(config Config, share float64) []*trial {
	var out []*trial
	for _, t := range h.trials {
		if t.Pass == 0 && t.Share == share && t.measured() && maps.Equal(t.Config, config) {
			out = append(out, t)
		}
	}
	return out
}

// launched reports whether a configuration had its launch, and need not have
// another. One that our own machinery spoiled is no finding about it: it may have a
// second.
func (m *model) launched(config Config) bool {
	spoiled := 0
	for _, t := range m.trials {
		if t.Pass != 0 || !maps.Equal(t.Config, config) {
			continue
		}
		if spoiled++; !t.spoiled() || spoiled > 1 {
			return true
		}
	}
	return false
}

// based reports whether the baseline could be measured.
func (h *history) based() bool {
	return slices.ContainsFunc(h.base, (*trial).measured)
}

// reference is the mean log of the baseline's launches under a share of the load,
// or of all that was measured where the baseline was not.
func (h *history) reference(share float64) float64 {
	of := h.base
	if len(h.base) > 0 && !h.based() {
		of = h.trials
	}
	var x []float64
	for _, t := range of {
		if t.Pass == 0 && t.Share == share && t.measured() {
			x = append(x, t.log)
		}
	}
	return stat.Mean(x)
}

// What the noise is taken to be before anything is known: launches of a server
// mostly agree within 1 to 2 %.
const (
	priorSpread   = 0.015
	priorLaunches = 3.0
)

// spread is the noise between launches, by the repeated ones of the search. Until
// there are some it is taken to be priorSpread, which weighs as much as
// priorLaunches more.
func (h *history) spread() (sd float64, df float64, n int) {
	groups := map[string][]float64{}
	for _, t := range h.trials {
		if t.Pass == 0 && t.measured() {
			k := fmt.Sprint(t.Share, t.Config.key())
			groups[k] = append(groups[k], t.log)
		}
	}
	squares, free, n := stat.Pooled(groups)
	df = priorLaunches + max(0, free-float64(h.levelled()))
	return math.Sqrt((squares + priorSpread*priorSpread*priorLaunches) / df), df, n
}

// repeated is the noise between equal launches of the search, without the prior,
// and how many it is of.
func (m *model) repeated() (sd float64, n int) {
	all, df, n := m.spread()
	if n == 0 || df <= priorLaunches {
		return 0, 0
	}
	return math.Sqrt(max(0, all*all*df-priorSpread*priorSpread*priorLaunches) / (df - priorLaunches)), n
}

// within is the standard error of one run, by its own intervals; 0 for not known.
func (h *history) within() float64 {
	sum, n := 0.0, 0.0
	for _, t := range h.trials {
		if w := t.end.Within[h.space.Primary]; w > 0 && t.measured() {
			sum += w * w
			n++
		}
	}
	return math.Sqrt(sum / max(1, n))
}

// standardError is that of a log ratio of so many launches.
func (h *history) standardError(sd float64, a, b int) float64 {
	w := h.within()
	return math.Sqrt((sd*sd + w*w) * (1/float64(a) + 1/float64(b)))
}

// meanLog is the mean logarithm of the objective of some launches; not a number of none.
func meanLog(trials []*trial) float64 {
	var x []float64
	for _, t := range trials {
		x = append(x, t.log)
	}
	return stat.Mean(x)
}

// ratio is that of a configuration to the baseline by its launches of the search,
// with the interval that decides; nil where either was not measured.
func (h *history) ratio(config Config, share float64) *Span {
	trials := h.launches(config, share)
	diff := meanLog(trials) - h.reference(share)
	if math.IsNaN(diff) {
		return nil
	}
	bases := 0
	for _, t := range h.base {
		if t.Share == share && t.measured() {
			bases++
		}
	}
	sd, df, _ := h.spread()
	half := stat.StudentQuantile(0.975, df) * h.standardError(sd, len(trials), max(1, bases))
	return &Span{math.Exp(diff), math.Exp(diff - half), math.Exp(diff + half)}
}

// tried counts the configurations of the search that have figures, the baseline
// apart.
func (h *history) tried() int {
	configs := map[string]bool{}
	for _, t := range h.trials {
		if t.Pass == 0 && t.Stage != BaselineStage && t.measured() {
			configs[t.Config.key()] = true
		}
	}
	return len(configs)
}

// mean is the arithmetic mean of each figure that all launches have.
func mean(trials []*trial) map[string]float64 {
	out := map[string]float64{}
	for name := range trials[0].merged {
		sum := 0.0
		for _, t := range trials {
			v, ok := t.merged[name]
			if !ok {
				sum = math.NaN()
			}
			sum += v
		}
		if !math.IsNaN(sum) {
			out[name] = sum / float64(len(trials))
		}
	}
	return out
}

// mostLaunches ends a search without a budget.
const mostLaunches = 60

// left is the number of launches that the budget still has, of limitless ones
// what is worth its time.
func (h *history) left() int {
	n := mostLaunches - len(h.trials)
	if h.budget.Trials > 0 {
		n = h.budget.Trials - len(h.trials)
	}
	if each := h.eachSeconds(); h.budget.Time > 0 && each > 0 {
		n = min(n, int((h.budget.Time.Seconds()-h.seconds())/each)-h.underWay())
	}
	if !slices.ContainsFunc(h.nodes, h.usable) {
		return 0
	}
	return n
}

// eachSeconds is what a launch takes: the mean so far and half of the way to the
// longest.
func (h *history) eachSeconds() float64 {
	longest := 0.0
	for _, t := range h.trials {
		longest = max(longest, t.end.Seconds)
	}
	return (h.seconds()/max(1, float64(h.ended())) + longest) / 2
}

func (h *history) seconds() float64 {
	sum := 0.0
	for _, t := range h.trials {
		sum += t.end.Seconds
	}
	return sum
}

// affords reports whether the budget of launches has so many more. One of time may be
// exceeded by what a confirmation needs at least.
func (h *history) affords(n int) bool {
	return h.budget.Trials == 0 || len(h.trials)+n <= h.budget.Trials
}

// short is the share of the load in the first rung; 0: all of it.
func (h *history) short() float64 {
	if h.options.Short == 1 || h.budget.Trials > 0 && h.budget.Time == 0 {
		return 0
	}
	return h.options.Short
}

// The expected gain, in units of the gain that matters, under which a launch is
// not worth its cost; the second of a search without a budget, which nothing else
// ends.
const (
	leastWorth          = 0.02
	leastWorthUnbounded = 0.25
)

// worthwhile is the least expected gain that a launch is for.
func (h *history) worthwhile() float64 {
	if !h.bounded() {
		return leastWorthUnbounded * h.objective.MinGain
	}
	return leastWorth * h.objective.MinGain
}

// bounded reports whether a budget ends the search.
func (h *history) bounded() bool { return h.budget.Trials > 0 || h.budget.Time > 0 }
