package prediction

import (
	"maps"
	"slices"

	"perflab/internal/bench"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// mostLearnedTokens is the largest load that predictions are corrected by: a fit replays all of
// it some fifty times.
const mostLearnedTokens = 10_000_000

// Learn corrects predictions by figures of a configuration, where the study's predictor can. A
// load that is searched is another one at each of its steps, and tells nothing here.
func (f *Predictor) Learn(c tune.Config, figures map[string]map[string]float64) bool {
	p, ok := f.by.(bench.Learner)
	plan, err := f.study.Configure(c, study.Installed{})
	if !ok || err != nil || plan.Engine.Outlined(plan.Config.GPU) || f.stopped() {
		return false
	}
	var runs []bench.Measured
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		load := f.sent(name, int(figures[name]["completed"]))
		if load == nil {
			continue
		}
		q := bench.Prediction{Config: plan.Config, Replicas: plan.Replicas, Workload: load.w, Tokenizer: load.tok, Seed: load.w.Spec().Seed}
		runs = append(runs, bench.Measured{Prediction: q, Name: name, Figures: figures[name]})
	}
	by, err := p.Learn(f.ctx, runs)
	if err != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by = by
	clear(f.predictions)
	clear(f.fell)
	return true
}

// sent is a workload of which so many requests were measured; nil where nothing can be learned
// of it.
func (f *Predictor) sent(name string, requests int) *predictedLoad {
	if requests == 0 || f.study.LoadSearch(name) != nil {
		return nil
	}
	spec := f.study.WorkloadSpec(name, 0)
	precise := spec.UntilPrecision != ""
	if precise {
		spec.UntilPrecision, spec.UntilMetric = "", ""
		spec = spec.Sized(requests)
	}
	w, tok, err := bench.OpenPredicted(spec)
	if err != nil || precise && w.Conversations() { // how many sessions that were, nobody has said
		return nil
	}
	if t := w.Totals(); t.Input+t.Output > mostLearnedTokens {
		return nil
	}
	return &predictedLoad{w: w, tok: tok}
}

var _ tune.Learner = (*Predictor)(nil)
