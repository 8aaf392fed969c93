// Package replay predicts runs by the simulator: the bench.Predictor of every command.
//
//	facts, err := lab.Tune(ctx, s, source, lab.Options{Predictor: replay.Predictor{}})
//
// Its own package because bench, which sends loads, and forecast, which simulates engines,
// must not know each other.
//
// Deliberately absent: whatever decides what is predicted.
package replay

import (
	"cmp"
	"context"
	"iter"

	"perflab/internal/bench"
	"perflab/internal/forecast"
	"perflab/internal/result"
)

// Predictor is the simulator's replay: requests in, calls out, in virtual time.
type Predictor struct {
	at *forecast.Site // whose runs corrected it; nil: none did
}

var (
	_ bench.Doubter = Predictor{}
	_ bench.Learner = Predictor{}
)

// Predict replays a workload on a configuration.
func (p Predictor) Predict(ctx context.Context, q bench.Prediction) iter.Seq2[result.Call, error] {
	return forecast.Run(q).Calls(ctx, p.at)
}

// Doubt is the ratio of two runs with what predictions of the calibration are off by;
// false where it is not known.
func (p Predictor) Doubt(of, to bench.Prediction, metric string) (bench.Ratio, bool) {
	c, err := p.at.Calibration()
	if err != nil {
		return bench.Ratio{}, false
	}
	r, outside, ok, err := forecast.Run(of).Ratio(c, forecast.Run(to), metric)
	return bench.Ratio{Value: r.Value, Low: r.Low, High: r.High, Outside: outside}, ok && err == nil
}

// Learn predicts by the shipped calibration, corrected by runs of one site.
func (Predictor) Learn(ctx context.Context, runs []bench.Measured) (bench.Predictor, error) {
	var all []forecast.MeasuredRun
	for _, r := range runs {
		all = append(all, forecast.MeasuredRun{Run: forecast.Run(r.Prediction), Name: r.Name, Figures: r.Figures})
	}
	at, err := forecast.NewSite(all, func(n int, do func(int)) {
		if ctx.Err() == nil { // else what comes of it is given up below
			bench.OnEveryCore(n, do)
		}
	})
	if err := cmp.Or(context.Cause(ctx), err); err != nil {
		return nil, err
	}
	return Predictor{at}, nil
}
