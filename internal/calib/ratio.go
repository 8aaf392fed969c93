package calib

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Ratio is the ratio of a figure of one question to that of another, and what it lies
// between in nine of ten cases; outside is what the calibration has not seen of either. Both
// are of one load: its draws are the same on both sides, so that what is common to them does
// not count. Errors of held-out predictions are taken as independent, apart from a bias that
// both sides share and from what the errors of one study have in common. It is not ok where no error of the figure is known.
func (c *Calibration) Ratio(of, to Question, metric string) (r Range, outside []string, ok bool, err error) {
	var sides [2]answered
	for i, q := range []Question{of, to} {
		if sides[i], err = c.answer(q); err != nil {
			return r, nil, false, err
		}
		for _, o := range sides[i].outside {
			if !slices.Contains(outside, o.text) {
				outside = append(outside, o.text)
			}
		}
	}
	a, b := sides[0], sides[1]
	x, y := a.run.Figures[metric], b.run.Figures[metric]
	offA, biasA, okA := a.off(metric)
	offB, biasB, okB := b.off(metric)
	if !okA || !okB || !(x > 0) || !(y > 0) {
		return r, outside, false, nil
	}
	var draws []map[string]float64
	for i := range min(len(a.draws), len(b.draws)) {
		if v, w := a.draws[i][metric], b.draws[i][metric]; v > 0 && w > 0 {
			draws = append(draws, map[string]float64{metric: v / w})
		}
	}
	return interval(x/y, spreadOf(draws, metric, x/y), biasA-biasB, c.apart(offA, offB)), outside, true, nil
}

// apart is what two errors leave of their ratio: as independent ones, but for what
// configurations of one study have in common.
func (c *Calibration) apart(a, b float64) float64 {
	return math.Hypot(a, b) * math.Sqrt(1-c.Common)
}

// answered is a question with its replays.
type answered struct {
	*predictor
	draws   []map[string]float64
	outside []extrapolation
}

// answer replays a question: once with the middle constants, once for each draw, and a load
// with a rate once all at once.
func (c *Calibration) answer(q Question) (answered, error) {
	k, err := c.Constants()
	if err != nil {
		return answered{}, fmt.Errorf("calibration: %w", err)
	}
	a := &predictor{Question: q.complete(), cal: c, constants: k, facts: q.Load.facts()}
	a.novelty = c.novelty(q)
	if a.run, err = a.replay(k); err != nil {
		return answered{}, err
	}
	if a.facts.requests == 0 {
		a.facts.requests = int(a.run.Figures["completed"])
	}
	if q.Load.Rate > 0 {
		if a.burst, _, err = figures(a.Config, a.Replicas, a.Load.burst(a.burstRequests()), k, a.Seed); err != nil {
			return answered{}, err
		}
		a.utilisation = a.Load.Rate / a.burst["request_throughput"] // +Inf where none was served
	}
	draws, err := a.drawn()
	if err != nil {
		return answered{}, err
	}
	return answered{a, draws, a.extrapolations()}, nil
}

// off is the error of a figure's logarithm in nine of ten cases, and its bias; false where
// none is known.
func (a answered) off(metric string) (off, bias float64, ok bool) {
	of := func(n Novelty) (off, bias float64, ok bool) {
		e, borrowed, ok := a.cal.errorOf(a.Config.Engine, n, erring(metric))
		if !ok {
			return 0, 0, false
		}
		return widest(a.outside) * borrowed * e.Spread * fewRuns(e.independent()), e.Bias, true
	}
	off, bias, ok = of(a.novelty)
	if !a.novelty.measured() {
		return off, bias, ok
	}
	// A run of the site makes no prediction less sure.
	if was, lean, known := of(noveltyOf(a.cal.Seen, a.Config, a.Replicas, a.Load)); known && (!ok || was < off) {
		return was, lean, true
	}
	return off, bias, ok
}

// erring is the figure whose error a figure has.
func erring(metric string) string { return cmp.Or(sharedDuration[metric], metric) }
