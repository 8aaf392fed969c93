package calib

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// With is the calibration corrected by runs of one site, a user's own machines: the
// constants of the calibration, as far as they are uncertain, and those of the site, are
// fitted to the runs. What it predicts then is meant for that site.
func (c *Calibration) With(runs []Observation, o FitOptions) (*Calibration, error) {
	if len(runs) == 0 {
		return nil, errors.New("no run is given to correct predictions by")
	}
	base, err := c.Constants()
	if err != nil {
		return nil, fmt.Errorf("calibration: %w", err)
	}
	o.Base = base
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].Study = "" // one site
	}
	p, err := newProblem(runs, o.complete())
	if err != nil {
		return nil, err
	}
	p.believed = true
	if err := p.fit(); err != nil {
		return nil, err
	}
	out := *c
	out.Sets = slices.Concat(c.Sets, p.setsAt(p.x))
	out.Errors = slices.Concat(c.Errors, c.After)
	out.Site = Envelopes(runs)
	out.Source = fmt.Sprintf("%s, corrected by %s", strings.TrimSuffix(c.Source, "."), named(runs))
	return &out, nil
}

// named lists a few runs.
func named(runs []Observation) string {
	if len(runs) > 3 {
		return fmt.Sprintf("%d runs", len(runs))
	}
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, ", ")
}
