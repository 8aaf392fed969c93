package tune

import (
	"maps"
	"strings"
)

// trial is a proposal with its end and what the objective makes of it.
type trial struct {
	Proposal
	name  string // the labels that led to it, "TensorRT-LLM + FP8"
	end   Observation
	score Score

	merged map[string]float64 // of a race: figures of the workloads that it is judged by
	log    float64            // of a race: of the objective, more is better, without what its machine does to it
	raw    float64            // of a race: the same as it was measured
	open   bool               // of a race: it has not ended
	then   func(*trial)       // of a race: what is to be done when it has; may be nil
	origin lineage            // of a race
}

// figures of the primary workload; none for no trial or an unmeasured one.
func (t *trial) figures(primary string) map[string]float64 {
	if !t.measured() {
		return nil
	}
	return t.end.Figures[primary]
}

func (t *trial) measured() bool { return t != nil && t.score.Known() }

// id is the trial's, or 0 when it has no figures.
func (t *trial) id() int {
	if !t.measured() {
		return 0
	}
	return t.Trial
}

// spoiled reports whether a trial says nothing about its configuration.
func (t *trial) spoiled() bool { return t.end.Status == Failed || t.end.Status == Void }

// load is the share of the full load as a number that can be compared.
func (t *trial) load() float64 {
	if t.Share == 0 {
		return 1
	}
	return t.Share
}

// lineage is where a configuration comes from: a candidate and the changes of it,
// the later ones over the earlier.
type lineage struct {
	candidate string
	changes   []Change
}

// TheBaseline is how findings call the baseline.
const TheBaseline = "the baseline"

// theBaseline is the lineage of the baseline.
var theBaseline = lineage{candidate: TheBaseline}

// isBaseline reports whether nothing was changed of the baseline.
func (l lineage) isBaseline() bool {
	return l.candidate == theBaseline.candidate && len(l.changes) == 0
}

// with is the lineage of a change. What it overrides is left out.
func (l lineage) with(k Change) lineage {
	out := l.beside(k)
	out.changes = append(out.changes, k)
	return out
}

// beside is the lineage without what another change sets: of one with a label of its own
// the whole, once nothing is left of it; of others setting by setting.
func (l lineage) beside(k Change) lineage {
	out := lineage{candidate: l.candidate}
	for _, before := range l.changes {
		left := maps.Clone(before.Set)
		maps.DeleteFunc(left, func(name, _ string) bool { _, again := k.Set[name]; return again })
		switch {
		case len(left) == 0:
			continue
		case len(left) < len(before.Set) && before.Label == settings(before.Set):
			before.Label, before.Set = settings(left), left
		}
		out.changes = append(out.changes, before)
	}
	return out
}

func (l lineage) String() string {
	var s strings.Builder
	s.WriteString(l.candidate)
	for _, k := range l.changes {
		s.WriteString(" + " + k.Label)
	}
	return s.String()
}
