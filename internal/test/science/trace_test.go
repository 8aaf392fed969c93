package science

import (
	"testing"

	"perflab/internal/tune"
)

// TestTrace shows one study launch by launch, for whoever wants to know why a strategy
// lost: go test ./internal/test/science -run TestTrace -v -study trap-cap
func TestTrace(t *testing.T) {
	if *study == "" {
		t.Skip("shows a study where -study names a landscape")
	}
	w := open(t, landscape(t, *study))
	s, err := Entrants()[0].Start(w, tune.Budget{Trials: setup.Launches}, 1)
	if err != nil {
		t.Fatal(err)
	}
	metric := w.Objective.Metric
	for p, ok := s.Ask(); ok; p, ok = s.Ask() {
		o := w.Evaluate(p, 1)
		f := o.Figures[workload]
		foretold, _ := w.Predict(p.Config, workload)
		t.Logf("%d %s: %s: %s, %s %.5g, predicted %.5g, regret %.3f; %.0f run, %.0f wait, %.2f of the cache",
			p.Trial, p.Stage, p.Label, o.Status, metric, f[metric], foretold[metric], w.Regret(p.Config),
			f["mean_running_requests"], f["mean_waiting_requests"], f["max_kv_usage"])
		for _, m := range o.Moves {
			t.Logf("   asks for %s: %s", m.Label, m.Why)
		}
		s.Tell(o)
	}
	best, f := w.Best()
	foretold, _ := w.Predict(best, workload)
	t.Logf("%+v\nbest is %s: %.5g, predicted %.5g", s.Result().Verdict, key(best), f[metric], foretold[metric])
}
