package science

import (
	"slices"

	"perflab/internal/calib"
	"perflab/internal/sim"
	"perflab/internal/tune"
)

// pupil predicts as its landscape does until the baseline was measured, and then by the
// constants that package calib makes of that launch.
type pupil struct {
	w  *World
	by *sim.Constants
}

func newPupil(w *World) *pupil { return &pupil{w, ground()} }

// Predict foretells figures by a replay under what the predictor believes.
func (p *pupil) Predict(c tune.Config, _ string) (map[string]float64, bool) {
	if slices.Contains(p.w.Silent, c["engine"]) {
		return nil, false
	}
	f := p.w.cell(c, 1, p.by)
	return f.figures, f.refused == ""
}

// Learn corrects the constants by a launch.
func (p *pupil) Learn(c tune.Config, figures map[string]map[string]float64) bool {
	at, believed := p.w.plan(c), beliefs()
	run := calib.Observation{ID: "the baseline", Config: at.cfg, Replicas: at.replicas, Load: p.w.Load, Figures: figures[workload]}
	with, err := believed.With([]calib.Observation{run}, calib.FitOptions{Seed: p.w.Seed})
	if err != nil {
		return false
	}
	by, err := with.Constants()
	if err != nil {
		return false
	}
	p.by = by
	return true
}

var _ tune.Learner = (*pupil)(nil)
