package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/outcome"
	"perflab/internal/tune"
)

var begun = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// underway is a study in its fifth launch.
func underway() outcome.Underway {
	return outcome.Underway{
		Name: "h100", Resume: "perflab tune h100.yaml --out h100 --resume", Started: begun, At: begun.Add(14*time.Minute + 10*time.Second),
		Ended: 4, Most: 24, EachS: 110, LeftS: new(2150.0),
		Trials: []outcome.UnderwayTrial{{
			Trial: 5, Stage: "refine", Label: "max_num_seqs 512", Why: "a change of what leads, expected to gain most",
			Workload: "chat", Phase: "measuring", Since: begun.Add(13 * time.Minute),
			Load: &outcome.UnderwayLoad{Planned: 500, Done: 212, Failed: 1, InFlight: 64, Tokens: 90000, Seconds: 40},
		}},
		Leader: &outcome.Leader{Label: "vLLM FP8", Ratio: &tune.Span{Value: 1.18, Low: 1.11, High: 1.26}, Launches: 1, Higher: true},
	}
}

func TestStudy(t *testing.T) {
	want := []string{
		"launch 5 of at most 24  14 min 10 s",
		"  max_num_seqs 512 (a change of what leads, expected to gain most)",
		"  chat  measuring  [======          ] 212/500  1 failed  ~54.3 s left  5.3 req/s  2250 tok/s  64 in flight",
		"leads so far: vLLM FP8, +18.0 % [+11.0, +26.0] over the baseline by 1 launch of the search, not confirmed",
		"at most ~36 min left: 20 launches at 2 min each, the mean of 4 so far",
	}
	if d := cmp.Diff(want, Study(underway())); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	const line = "14 min 10 s  launch 5 of at most 24  max_num_seqs 512  chat  measuring  [======          ] 212/500  1 failed  ~54.3 s left  5.3 req/s  2250 tok/s  64 in flight  study: at most ~36 min left"
	if got := StudyLine(underway()); got != line {
		t.Errorf("line %q", got)
	}
}

// TestStudyOtherwise: what is not known is left out, and machines are told apart.
func TestStudyOtherwise(t *testing.T) {
	u := underway()
	u.Most, u.LeftS, u.EachS, u.Ended, u.Leader, u.Simulated = 0, nil, 0, 0, nil, true
	u.Trials[0].Phase, u.Trials[0].Detail, u.Trials[0].Load, u.Trials[0].Machine = "launching", "pulling the image: 40 %", nil, "a"
	u.Trials = append(u.Trials, outcome.UnderwayTrial{Trial: 6, Stage: "Quantization", Label: "FP8", Machine: "b", Phase: "preparing"})
	want := []string{
		"launch 5 on a  14 min 10 s  SIMULATED",
		"  max_num_seqs 512 (a change of what leads, expected to gain most)",
		"  chat  launching  for 1 min 10 s  pulling the image: 40 %",
		"launch 6 on b",
		"  Quantization: FP8",
		"  preparing",
		"time left: known after the first launch",
	}
	if d := cmp.Diff(want, Study(u)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	u.Trials, u.Ranked = nil, 12
	if d := cmp.Diff([]string{"ranking configurations by prediction (SIMULATED)  12 predictions"}, Study(u)); d != "" {
		t.Error(d)
	}
	if got := Study(outcome.Underway{}); len(got) > 0 {
		t.Errorf("before anything: %q", got)
	}
	timed := underway()
	timed.Most, timed.BudgetS, timed.LeftS = 0, 3600, new(1800.0)
	if got, want := timeLeft(timed), "at most ~30 min left of the study's 1 h 00 min, by its budget of time"; got != want {
		t.Errorf("%q", got)
	}
}

func TestLeader(t *testing.T) {
	span := &tune.Span{Value: 1.18, Low: 1.11, High: 1.26}
	for _, tt := range []struct {
		leader *outcome.Leader
		want   string
	}{
		{nil, ""},
		{&outcome.Leader{Label: tune.TheBaseline, Baseline: true}, "leads so far: the baseline"},
		{&outcome.Leader{Label: "A"}, "leads so far: A"},
		{&outcome.Leader{Label: "A", Ratio: span, Launches: 3, Confirming: true, Higher: true}, "leads so far: A, +18.0 % [+11.0, +26.0] over the baseline by 3 launches of the confirmation"},
		{&outcome.Leader{Label: "A", Ratio: span, Launches: 2}, "leads so far: A, 1.18x better [1.11, 1.26] over the baseline by 2 launches of the search, not confirmed"},
		{&outcome.Leader{Label: "A", Ratio: &tune.Span{Value: 1.5}, Higher: true}, "leads so far: A, +50.0 % over the baseline, not confirmed"},
	} {
		if got := Leader(tt.leader); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestStanding(t *testing.T) {
	u := underway()
	stopped := underway()
	stopped.Stopped = "interrupted"
	load := outcome.UnderwayLoad{Planned: 100, Done: 40, Failed: 2, Tokens: 4000, Seconds: 10}
	for _, tt := range []struct {
		name     string
		standing outcome.Standing
		want     []string
	}{
		{"running study", outcome.Standing{Dir: "h100", Kind: "study", State: outcome.Running, Study: &u, Next: "perflab report h100"},
			append(append([]string{"h100: study, running"}, Study(u)...), "the report so far: perflab report h100")},
		{"stopped study", outcome.Standing{Dir: "h100", Kind: "study", State: outcome.Stopped, Study: &stopped, Next: stopped.Resume}, []string{
			"h100: study, stopped",
			"stopped on 2026-05-04 10:14:10 UTC with 4 trials ended of at most 24",
			"it was at launch 5: max_num_seqs 512 (a change of what leads, expected to gain most), " + doing(stopped, stopped.Trials[0]),
			"why: interrupted",
			Leader(stopped.Leader),
			"to go on, keeping what was measured: perflab tune h100.yaml --out h100 --resume",
		}},
		{"study that says nothing", outcome.Standing{Dir: "old", Kind: "study", State: outcome.Stopped, Ended: 1, Open: []outcome.UnderwayTrial{{Trial: 2, Stage: "race", Label: "FP8"}}}, []string{
			"old: study, stopped", "1 trial has ended", "trial 2 was begun: race: FP8"}},
		{"finished study", outcome.Standing{Dir: "h100", Kind: "study", State: outcome.Finished, Ended: 8, Verdict: "FP8 is better", Next: "perflab report h100", Report: "h100/report.html"}, []string{
			"h100: study, finished after 8 trials", "FP8 is better", "the report: perflab report h100", "to open: h100/report.html"}},
		{"running run", outcome.Standing{Dir: "r", Kind: "run", State: outcome.Running, Run: &outcome.RunStanding{Dir: "r.tmp", Simulated: true, Started: begun, Load: load}}, []string{
			"r: run, running, SIMULATED", "[======          ] 40/100  2 failed  ~15.0 s left  4.0 req/s  400 tok/s"}},
		{"stopped run", outcome.Standing{Dir: "r", Kind: "run", State: outcome.Stopped, Run: &outcome.RunStanding{Dir: "r.tmp", Load: load}, Next: "perflab report r"}, []string{
			"r: run, stopped", "stopped after 40 of 100 requests, 2 of them failed", "the report: perflab report r"}},
		{"series", outcome.Standing{Dir: "s", Kind: "find-max", State: outcome.Running, Ended: 2, Run: &outcome.RunStanding{Dir: "s/rate-4.tmp", Started: begun}}, []string{
			"s: series (find-max), running, 2 runs made", "rate-4: no request has ended yet"}},
	} {
		if d := cmp.Diff(tt.want, Standing(tt.standing)); d != "" {
			t.Errorf("%s: -want +got:\n%s", tt.name, d)
		}
	}
}
