package calib

import (
	"fmt"
	"maps"
	"slices"

	"perflab/internal/sim"
)

// HoldOut predicts every observation with constants fitted without those of
// its accelerator that share its key: the accuracy to expect of runs that a
// calibration has not seen. Each of these fits begins at the priors, which the
// other accelerators' runs have a part in; what the fits of one accelerator share
// are the slopes of the model, which no measured figure has a part in.
func HoldOut(obs []Observation, key func(Observation) string, o FitOptions) ([]Residual, error) {
	o = o.complete()
	problems, _, err := solveAll(obs, o)
	if err != nil {
		return nil, err
	}
	var out []Residual
	for _, p := range problems {
		for _, k := range distinct(p.obs, key) {
			r, err := p.without(k, key)
			if err != nil {
				return nil, fmt.Errorf("without %s on %s: %w", k, p.accelerator, err)
			}
			out = append(out, r...)
		}
	}
	return out, nil
}

func distinct(obs []Observation, key func(Observation) string) []string {
	keys := map[string]bool{}
	for _, b := range obs {
		keys[key(b)] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

// without predicts the observations of one key by a fit of the others.
func (p *problem) without(k string, key func(Observation) string) ([]Residual, error) {
	var held []Observation
	use := p.all()
	for i, b := range p.obs {
		if key(b) == k {
			use[i] = false
			held = append(held, b)
		}
	}
	x, _, err := p.descend(make([]float64, len(p.params)), use)
	if err != nil {
		return nil, err
	}
	constants, err := p.o.Base.With(p.setsAt(x)...)
	if err != nil {
		return nil, err
	}
	return Score(held, constants, p.o.Seed)
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
				out = append(out, Residual{b.ID, m, measured, value})
			}
		}
	}
	return out, nil
}
