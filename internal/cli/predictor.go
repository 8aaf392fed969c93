package cli

import (
	"context"
	"iter"

	"perflab/internal/forecast"
	"perflab/internal/lab"
	"perflab/internal/result"
)

// replayPredictor gives lab the simulator's replay: requests in, calls out, in
// virtual time.
type replayPredictor struct{}

var _ lab.Predictor = replayPredictor{}

// Predict replays a workload on a configuration.
func (replayPredictor) Predict(ctx context.Context, p lab.Prediction) iter.Seq2[result.Call, error] {
	return forecast.Run(p).Calls(ctx)
}
