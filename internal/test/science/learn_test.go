package science

import (
	"math"
	"testing"

	"perflab/internal/tune"
)

// TestLearn: a launch of the baseline makes predicted ratios to it no worse on average, over
// landscapes, and better where nothing but constants is wrong.
func TestLearn(t *testing.T) {
	before, after, n := 0.0, 0.0, 0
	for _, class := range []string{"dense", "experts", "nodes"} {
		for seed := range uint64(8) {
			w := drawn(t, class, 1+seed)
			o := w.Evaluate(tune.Proposal{Trial: 1, Config: w.Baseline, Workloads: []string{workload}}, 25)
			p := newPupil(w)
			if o.Status != tune.Measured {
				continue
			}
			was := w.ratioError(p)
			own, _ := w.Predict(w.best, workload)
			if !p.Learn(w.Baseline, o.Figures) {
				t.Fatalf("%s: it learns nothing", w.Name)
			}
			if f, _ := w.Predict(w.best, workload); f[w.Objective.Metric] != own[w.Objective.Metric] {
				t.Errorf("%s: what one predictor learns another one knows", w.Name)
			}
			before, after, n = before+was, after+w.ratioError(p), n+1
		}
	}
	t.Logf("predicted ratios to the baseline of %d landscapes are off by %.3f before and %.3f after", n, before/float64(n), after/float64(n))
	if n < 15 || after > 0.97*before {
		t.Errorf("predicted ratios to the baseline of %d landscapes are off by %.3f before and %.3f after", n, before/float64(n), after/float64(n))
	}
}

// ratioError is how far predicted ratios to the baseline are off, as the root of the mean square
// of logarithms over all configurations.
func (w *World) ratioError(p tune.Predictor) float64 {
	metric := w.Objective.Metric
	base, _ := w.Truth(w.Baseline)
	foretold, _ := p.Predict(w.Baseline, workload)
	sum, n := 0.0, 0.0
	for _, c := range w.valid {
		f, refused := w.Truth(c)
		x, ok := p.Predict(c, workload)
		if refused != "" || !ok {
			continue
		}
		d := math.Log(x[metric]/foretold[metric]) - math.Log(f[metric]/base[metric])
		sum, n = sum+d*d, n+1
	}
	return math.Sqrt(sum / n)
}
