package calib

import (
	"fmt"
	"maps"
	"slices"

	"perflab/internal/sim"
)

// Fold is what was held out together, and predicted by a fit of the rest.
type Fold struct {
	Accelerator string
	Key         string
	Sets        []sim.Set // of the fit without it
	Residuals   []Residual
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
	o = o.complete()
	problems, _, err := solveAll(obs, o)
	if err != nil {
		return nil, err
	}
	var out []Fold
	for _, p := range problems {
		for _, k := range distinct(obs, p.accelerator, key) {
			f, err := p.without(obs, k, key)
			if err != nil {
				return nil, fmt.Errorf("without %s on %s: %w", k, p.accelerator, err)
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// HeldResiduals are those of all folds.
func HeldResiduals(folds []Fold) []Residual {
	var out []Residual
	for _, f := range folds {
		out = append(out, f.Residuals...)
	}
	return out
}

func distinct(obs []Observation, accelerator string, key func(Observation) string) []string {
	keys := map[string]bool{}
	for _, b := range obs {
		if b.Config.GPU.Name == accelerator {
			keys[key(b)] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// without predicts the observations of one key by a fit of the others.
func (p *problem) without(obs []Observation, k string, key func(Observation) string) (Fold, error) {
	use := p.all()
	for i, b := range p.obs {
		use[i] = key(b) != k
	}
	f := Fold{Accelerator: p.accelerator, Key: k}
	x, at := p.startAtPriors(use)
	x, _, err := p.descend(x, at, use)
	if err != nil {
		return f, err
	}
	f.Sets = append(slices.Clone(p.pooled), p.setsAt(x)...)
	constants, err := p.options.Base.With(f.Sets...)
	if err != nil {
		return f, err
	}
	var held []Observation
	for _, b := range obs {
		if b.Config.GPU.Name == p.accelerator && key(b) == k {
			held = append(held, b)
		}
	}
	f.Residuals, err = Score(held, constants, p.options.Seed)
	return f, err
}

// Score holds what constants predict against observations.
func Score(obs []Observation, k *sim.Constants, seed uint64) ([]Residual, error) {
	var out []Residual
	for _, b := range obs {
		if b.Saturated() {
			continue
		}
		figures, err := replay(b.Config, b.Replicas, b.Load, k, seed)
		if err != nil {
			return nil, fmt.Errorf("replay %s: %w", b.ID, err)
		}
		for _, m := range b.scored() {
			measured, ok := b.Figures[m]
			value, predicted := figures[m]
			if ok && predicted && measured > 0 {
				out = append(out, Residual{b.ID, m, measured, value})
			}
		}
	}
	return out, nil
}
