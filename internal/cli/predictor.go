package cli

import (
	"context"
	"iter"

	"perflab/internal/bench"
	"perflab/internal/forecast"
	"perflab/internal/result"
)

// replayPredictor gives lab the simulator's replay: requests in, calls out, in
// virtual time.
type replayPredictor struct{}

var _ bench.Predictor = replayPredictor{}

// Predict replays a workload on a configuration.
func (replayPredictor) Predict(ctx context.Context, p bench.Prediction) iter.Seq2[result.Call, error] {
	return forecast.Run(p).Calls(ctx)
}
