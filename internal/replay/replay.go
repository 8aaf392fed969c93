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
	"context"
	"iter"

	"perflab/internal/bench"
	"perflab/internal/calib"
	"perflab/internal/forecast"
	"perflab/internal/result"
)

// Predictor is the simulator's replay: requests in, calls out, in virtual time.
type Predictor struct{}

var _ bench.Doubter = Predictor{}

// Predict replays a workload on a configuration.
func (Predictor) Predict(ctx context.Context, p bench.Prediction) iter.Seq2[result.Call, error] {
	return forecast.Run(p).Calls(ctx)
}

// Doubt is the ratio of two runs with what predictions of the shipped calibration are off by;
// false where it is not known.
func (Predictor) Doubt(of, to bench.Prediction, metric string) (bench.Ratio, bool) {
	c, err := calib.Shipped()
	if err != nil {
		return bench.Ratio{}, false
	}
	r, outside, ok, err := forecast.Run(of).Ratio(&c, forecast.Run(to), metric)
	return bench.Ratio{Value: r.Value, Low: r.Low, High: r.High, Outside: outside}, ok && err == nil
}
