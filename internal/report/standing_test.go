package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/tune"
)

// TestStanding: what stands over the last command is a recommendation only where there is one.
func TestStanding(t *testing.T) {
	missed := &tune.Finding{Kind: tune.NoGainShown, Misses: []tune.Constraint{{Bound: "p99_ttft_ms <= 5"}}}
	for _, tt := range []struct {
		name string
		s    outcome.Study
		with func(*outcome.Study)
		want string
		not  string
	}{
		{"shown better", raceStudy(), nil, "Recommended (#15 vLLM FP8 TP2 x4 tuned, 4 replicas):", "Nothing"},
		{"a tie", tieStudy(), nil, "The baseline stays (#14 vLLM TP8, 1 replica):", "Recommended"},
		{"stopped, the baseline leads", tieStudy(), func(s *outcome.Study) { s.Partial = true }, "Nothing is recommended yet. The baseline (#14 vLLM TP8, 1 replica):", "Recommended"},
		{"stopped, another leads", raceStudy(), func(s *outcome.Study) { s.Partial = true }, "Nothing is recommended yet. What leads so far (#15", "Recommended"},
		{"the baseline misses an SLO", tieStudy(), func(s *outcome.Study) { s.Conclusion = missed }, "Nothing is recommended: nothing that was measured is shown to meet every SLO. The baseline (#14", "Recommended"},
		{"the best misses an SLO", raceStudy(), func(s *outcome.Study) { s.Conclusion = missed }, "Nothing is recommended: nothing that was measured meets every SLO. What comes nearest (#15", "Recommended"},
		{"an older file that misses one", raceStudy(), func(s *outcome.Study) {
			s.Recommended.SLOs = []outcome.Judged{{SLO: "p99_ttft_ms <= 5", Why: "p99_ttft_ms <= 5: missed, 7 ms"}}
		}, "What comes nearest (#15", "Recommended"},
	} {
		if tt.with != nil {
			tt.with(&tt.s)
		}
		for form, text := range render(t, tt.s) {
			text = plain(text)
			want := tt.want
			if form != "text" {
				want, _, _ = strings.Cut(want, " (#")
			}
			if !strings.Contains(text, want) {
				t.Errorf("%s as %s lacks %q", tt.name, form, want)
			}
			if i := strings.Index(text, tt.not); i >= 0 {
				t.Errorf("%s as %s says %q", tt.name, form, text[max(0, i-60):i+len(tt.not)])
			}
		}
	}
}

// TestWarned: what a study cannot tell, and what its pick cuts of the context, stand under the conclusion.
func TestWarned(t *testing.T) {
	s := raceStudy()
	s.Doubts = []string{"The load offers 10 requests/s of workload chat, and so on."}
	s.Race.Unlaunched = []tune.Entry{
		{Label: "TP2", Finding: &tune.Finding{Kind: tune.NoLaunchLeft, N: 6, Of: 9}}, {Label: "TP3", Finding: &tune.Finding{Kind: tune.RefusedByRule, Reason: "it takes 3 GPUs"}},
		{Label: "FP8", Finding: &tune.Finding{Kind: tune.NoLaunchLeft, N: 6, Of: 9}},
	}
	named := []string{"The study names TP2, FP8, which had no launch: the budget of 6 launches had none left: raise budget.trials to 9, or name fewer.", "The study names TP3, which had no launch: it takes 3 GPUs."}
	s.Recommended.Shorter = "serves requests of up to 4096 tokens, the baseline of up to 40960"
	s.Race.Candidates[1].Shorter = "serves requests of up to 512 tokens, the baseline of up to 40960"
	for form, text := range render(t, s) {
		for _, want := range append(slices.Concat(s.Doubts, named), "SHORTER CONTEXT: #15 serves requests of up to 4096 tokens, the baseline of up to 40960. Longer requests are refused.") {
			if !strings.Contains(plain(text), want) {
				t.Errorf("%s lacks %q", form, want)
			}
		}
		if form != "text" && !strings.Contains(text, s.Race.Candidates[1].Shorter) {
			t.Errorf("%s lacks the context of a candidate", form)
		}
	}
}

// TestStartLines: a file is written once before the replicas that read it, processes on machines of
// their own stand under the name of the machine, and one that others wait for says so.
func TestStartLines(t *testing.T) {
	const files = "cat > f.yaml <<'EOF'\na: --port\nEOF\n"
	same := func(s string) string { return s }
	for _, tt := range []struct {
		all  []outcome.Process
		want string
	}{
		{[]outcome.Process{{Command: "vllm serve M --port 8000"}}, "vllm serve M --port 8000"},
		{[]outcome.Process{{Files: files, Command: "trtllm-serve M --port 8000"}, {Replica: 1, Files: files, Command: "trtllm-serve M --port 8001"}},
			files + "trtllm-serve M --port 8000 &\ntrtllm-serve M --port 8001 &\nwait"},
		{[]outcome.Process{{Name: "rank-1", Node: "b", Command: "serve 1"}, {Node: "a", Command: "serve 0"}}, "# rank-1, on b\nserve 1\n# serves, on a\nserve 0"},
		{[]outcome.Process{{Replica: 1, Name: "ray-head", Node: "a", Command: "ray start", Wait: "until it prints \"up\""}, {Replica: 1, Node: "a", Command: "vllm serve"}},
			"# ray-head, of replica 1, on a; the next waits until it prints \"up\"\nray start\n# serves, of replica 1, on a\nvllm serve"},
	} {
		if d := cmp.Diff(tt.want, startLines(tt.all, same)); d != "" {
			t.Error(d)
		}
	}
	d := must(Study(raceStudy(), Options{Dir: "out"}))
	var b strings.Builder
	if err := doc.Text(&b, d); err != nil || !strings.Contains(b.String(), "bash out/trials/015/start.sh\nThe first of the 4 processes that it starts:\nCUDA_VISIBLE_DEVICES=0,1 vllm serve ") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
