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
	p.believe(installationTold)
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

// What held-out errors of throughput have in common for each engine of a study is
// installationSpread as a root mean square, and 0.3 at worst. A run is believed to tell of up to
// installationTold: with 0.1 to 0.3 predictions after a run are equally good. The prior in
// constants.json is narrower: in a fit of many studies an engine's own constants must learn what
// its installations have in common.
const (
	installationSpread = 0.12
	installationTold   = 0.2
)

// believe takes the runs for those of the site that is asked about: an odd one is no mistake,
// and what an engine's installation there does, none knows yet but to a spread.
func (p *problem) believe(spread float64) {
	p.believed = true
	for i := range p.params {
		q := &p.params[i]
		if about, _ := p.options.Base.About(q.Name); about.Of == "installation" && q.PriorSpread == about.Spread/about.Prior {
			q.PriorSpread = spread
		}
	}
	p.prior = invert(covariance(p.params))
}
