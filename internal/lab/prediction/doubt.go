package prediction

import (
	"perflab/internal/bench"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/tune/foresight"
)

// Doubt is the ratio of two predictions of the objective with the predictor's own error, where
// it knows one. It is none's of a load that is searched.
func (f *Predictor) Doubt(of, to tune.Config, name string) (tune.Span, []string, bool) {
	d, ok := f.by.(bench.Doubter)
	part := f.load(name)
	if !ok || part.err != nil || f.study.LoadSearch(name) != nil || f.stopped() {
		return tune.Span{}, nil, false
	}
	var sides [2]bench.Prediction
	for i, c := range []tune.Config{of, to} {
		pl, err := f.study.Configure(c, study.Installed{})
		if err != nil {
			return tune.Span{}, nil, false
		}
		sides[i] = bench.Prediction{Config: pl.Config, Replicas: pl.Replicas, Workload: part.w, Tokenizer: part.tok, Seed: part.w.Spec().Seed}
	}
	r, ok := d.Doubt(sides[0], sides[1], f.study.Metric.Name)
	return tune.Span{Value: r.Value, Low: r.Low, High: r.High}, r.Outside, ok
}

var _ foresight.Doubter = (*Predictor)(nil)
