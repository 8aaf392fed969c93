package forecast

import (
	"errors"
	"fmt"
	"slices"

	"perflab/internal/calib"
	"perflab/internal/sim"
)

// Site is where runs were measured: the shipped calibration, corrected by them.
type Site struct {
	calibration *calib.Calibration
	constants   *sim.Constants
}

// MeasuredRun is a run that was measured, with its figures as this program defines them.
type MeasuredRun struct {
	Run
	Name    string
	Figures map[string]float64
}

// NewSite corrects the shipped calibration by the runs of a site of which something can be
// learned; it is an error where there is none.
func NewSite(runs []MeasuredRun, each calib.Each) (*Site, error) {
	shipped, err := calib.Shipped()
	if err != nil {
		return nil, err
	}
	var obs []calib.Observation
	var unfit []error
	for _, r := range runs {
		o, err := r.observation()
		if err != nil {
			unfit = append(unfit, fmt.Errorf("%s: %w", r.Name, err))
			continue
		}
		obs = append(obs, o)
	}
	if len(obs) == 0 {
		return nil, errors.Join(append(unfit, ErrNoRuns)...)
	}
	s := &Site{}
	if s.calibration, err = shipped.With(obs, calib.FitOptions{Seed: runs[0].Seed, Each: each}); err != nil {
		return nil, err
	}
	s.constants, err = s.calibration.Constants()
	return s, err
}

// observation is the run as a calibration sees it.
func (r MeasuredRun) observation() (o calib.Observation, err error) {
	f := r.Figures
	if err := allAnswered(f); err != nil {
		return o, err
	}
	n := r.Workload.Len()
	switch {
	case n > 0 && int(f["completed"]) != n:
		return o, fmt.Errorf("%.0f requests were answered of %d", f["completed"], n)
	case fromCache(f) && !r.Workload.Spec().SharesPrefixes():
		return o, errors.New("its prompts were in the prefix cache, which no request shows")
	}
	l, err := NewLoad(r.Workload, r.Tokenizer)
	if err != nil {
		return o, err
	}
	if n > 0 {
		t := r.Workload.Totals()
		l.calib.Input.Mean, l.calib.Output.Mean = float64(t.Input)/float64(n), float64(t.Output)/float64(n)
	} else {
		l.calib.Requests = int(f["completed"]) // time decides
	}
	if l.calib.Arrival != "constant" { // every request is listed with its time
		l.calib.Arrival = "poisson"
	}
	if l.calib.Rate == 0 {
		l.calib.Arrival = ""
	}
	o = calib.Observation{ID: r.Name, Workload: r.Name, Config: r.Config, Replicas: r.Replicas, Load: l.calib, Figures: map[string]float64{}}
	scored := false
	for name, v := range f {
		if v > 0 && slices.Contains(calib.Scored, name) {
			o.Figures[name], scored = v, true
		}
	}
	if !scored {
		return o, errors.New("it has none of the figures that a fit looks at")
	}
	if v := f["request_throughput"]; v > 0 {
		o.Figures["request_throughput"] = v
	}
	return o, o.Load.Validate()
}

// Calibration is the corrected one; that of no site is the shipped one.
func (s *Site) Calibration() (*calib.Calibration, error) {
	if s == nil {
		c, err := calib.Shipped()
		return &c, err
	}
	return s.calibration, nil
}

// values are the constants of the site; nil for those that are shipped.
func (s *Site) values() *sim.Constants {
	if s == nil {
		return nil
	}
	return s.constants
}
