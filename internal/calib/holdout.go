package calib

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"perflab/internal/sim"
)

// Fold is what was held out together, and predicted by a fit of the rest.
type Fold struct {
	Key       string
	Sets      []sim.Set  // of the fit without it
	Seen      []Envelope // what that fit has seen
	Residuals []Residual
}

// DefaultHoldOut is what runs are held out by unless one says otherwise: the workload, or
// the model where an accelerator has seen more models than workloads.
func DefaultHoldOut(obs []Observation) func(Observation) string {
	models, workloads := map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, b := range obs {
		gpu := b.Config.GPU.Name
		if models[gpu] == nil {
			models[gpu], workloads[gpu] = map[string]bool{}, map[string]bool{}
		}
		models[gpu][ByModel(b)] = true
		workloads[gpu][ByWorkload(b)] = true
	}
	return func(b Observation) string {
		if gpu := b.Config.GPU.Name; len(models[gpu]) > len(workloads[gpu]) {
			return ByModel(b)
		}
		return ByWorkload(b)
	}
}

// ByWorkload, ByModel and ByStudy are keys to hold runs out by.
func ByWorkload(b Observation) string { return b.Study + "\x00" + b.Workload }
func ByModel(b Observation) string    { return b.Config.Model.Name }
func ByStudy(b Observation) string    { return b.Study }

// HoldOut predicts every observation with constants fitted without those of
// its accelerator that share its key: the accuracy to expect of runs that a
// calibration has not seen. Each of these fits begins at the priors, which the
// other accelerators' runs have a part in; what the fits of one accelerator share
// are the slopes of the model there.
func HoldOut(obs []Observation, key func(Observation) string, o FitOptions) ([]Fold, error) {
	p, err := newBlind(obs, o)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for i := range obs {
		keys[key(obs[i])] = true
	}
	var out []Fold
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		f, err := p.without(k, key)
		if err != nil {
			return nil, fmt.Errorf("without %s: %w", k, err)
		}
		out = append(out, f)
	}
	return out, nil
}

// newBlind is a problem with the slopes of its model at the priors, which no measured figure has
// a part in.
func newBlind(obs []Observation, o FitOptions) (*problem, error) {
	p, err := newProblem(obs, o.complete())
	if err != nil {
		return nil, err
	}
	return p, p.measureSlopes(make([]float64, len(p.params)), p.atPriors)
}

// HeldResiduals are those of all folds.
func HeldResiduals(folds []Fold) []Residual {
	var out []Residual
	for _, f := range folds {
		out = append(out, f.Residuals...)
	}
	return out
}

// without predicts the observations of one key by a fit of the others.
func (p *problem) without(k string, key func(Observation) string) (Fold, error) {
	use := make([]bool, len(p.obs))
	var held []Observation
	for i, b := range p.obs {
		if use[i] = b.fitted() && key(b) != k; key(b) == k {
			held = append(held, b)
		}
	}
	f := Fold{Key: k}
	x, at := p.startAtPriors(use)
	x, at, err := p.descend(x, at, use)
	if err != nil {
		return f, err
	}
	f.Sets, f.Seen = p.at(x, at).shipped(), p.seen(use)
	f.Residuals, err = p.score(x, held, f.Seen)
	return f, err
}

// seen are the envelopes of the observations that count.
func (p *problem) seen(use []bool) []Envelope {
	var obs []Observation
	for i, b := range p.obs {
		if use[i] {
			obs = append(obs, b)
		}
	}
	return Envelopes(obs)
}

// at is the problem concluded at x.
func (p *problem) at(x, at []float64) *problem {
	q := *p
	q.params, q.report = slices.Clone(p.params), nil
	q.conclude(x, at)
	return &q
}

// score holds what the constants at x predict against observations, of which it tells how
// much is new beside what was seen.
func (p *problem) score(x []float64, obs []Observation, seen []Envelope) ([]Residual, error) {
	constants, err := p.constantsAt(x)
	if err != nil {
		return nil, err
	}
	out := make([][]Residual, len(obs))
	errs := make([]error, len(obs))
	p.options.Each.Do(len(obs), func(i int) {
		b := &obs[i]
		out[i], errs[i] = Score(obs[i:i+1], constants[b.Study], p.options.Seed)
		for k := range out[i] {
			out[i][k].New = noveltyOf(seen, b.Config, b.Replicas, b.Load)
		}
	})
	return slices.Concat(out...), cmp.Or(errs...)
}

// Score holds what constants predict against observations.
func Score(obs []Observation, k *sim.Constants, seed uint64) ([]Residual, error) {
	var out []Residual
	for _, b := range obs {
		figures, err := replay(b.Config, b.Replicas, b.Load, k, seed)
		if err != nil {
			return nil, fmt.Errorf("replay %s: %w", b.ID, err)
		}
		for _, m := range b.scored() {
			measured, ok := b.Figures[m]
			value, predicted := figures[m]
			if ok && predicted && measured > 0 {
				flooded := m != Throughput && b.Load.Rate > 0 && figures["request_throughput"] < servedShare*b.Load.Rate
				out = append(out, Residual{ID: b.ID, Metric: m, Measured: measured, Value: value, Flooded: flooded})
			}
		}
	}
	return out, nil
}
