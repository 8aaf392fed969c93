package calib

import (
	"perflab/internal/result"
	"perflab/internal/sim"
)

// Prediction is what the simulator says of one configuration under one load.
// It is SIMULATED throughout.
type Prediction struct {
	Summary     result.Summary   // of the run with the middle constants; without a verdict
	Failed      string           // how many requests are refused and why; "": none is
	Figures     map[string]Range // of the figures of Summary that a range is known of
	Bottleneck  Bottleneck
	KV          KVUse
	Utilisation float64  // offered rate over that of the same requests sent at once; 0: no rate is offered
	Outside     []string // what the calibration has not seen, one sentence each
	Steps       sim.Stats
}

// Constants are the priors with the calibration's sets over them.
func (c *Calibration) Constants() (*sim.Constants, error) { return sim.Priors().With(c.Sets...) }

// Predict answers a question: one replay with the middle constants, one for
// each draw, and of a load with a rate one of such requests all at once.
func (c *Calibration) Predict(q Question) (Prediction, error) {
	a, err := c.answer(q)
	if err != nil {
		return Prediction{}, err
	}
	p := Prediction{Summary: a.run.Summary, Failed: a.run.failed, Steps: a.run.stats, Utilisation: a.utilisation, KV: a.kv()}
	for _, o := range a.outside {
		p.Outside = append(p.Outside, o.text)
	}
	p.Figures = a.ranges()
	r := loadedRun{a.Config, a.run.stats, a.Load.Rate, a.utilisation, a.frontEndRate()}
	p.Bottleneck = r.bottleneck()
	return p, nil
}
