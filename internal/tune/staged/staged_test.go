package staged

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/tune"
)

// bench answers proposals from a table: the configuration's words joined by
// blanks, and "again" for the second pass -> what came of it. A second pass
// without an entry repeats the first.
type bench map[string]string

func words(p tune.Proposal) string {
	var w []string
	for _, k := range slices.Sorted(maps.Keys(p.Config)) {
		w = append(w, p.Config[k])
	}
	return strings.Join(w, " ")
}

// end reads "4284.68", "refused: why", or "m=1 ttft=2".
func (b bench) end(t testing.TB, p tune.Proposal) tune.Observation {
	t.Helper()
	text, ok := b[words(p)]
	if again, found := b[words(p)+" again"]; found && p.Pass == 1 {
		text, ok = again, true
	}
	if !ok {
		t.Fatalf("nothing is known of trial %d: %s", p.Trial, words(p))
	}
	o := tune.Observation{Trial: p.Trial, Status: tune.Measured, Seconds: 10}
	if status, why, ok := strings.Cut(text, ": "); ok {
		o.Status, o.Reason = status, why
		return o
	}
	o.Figures = map[string]map[string]float64{}
	for _, w := range p.Workloads {
		f := map[string]float64{}
		for testSpace := range strings.FieldsSeq(text) {
			name, value, ok := strings.Cut(testSpace, "=")
			if !ok {
				name, value = "m", testSpace
			}
			var v float64
			if _, err := fmt.Sscan(value, &v); err != nil {
				t.Fatalf("figure %q: %v", testSpace, err)
			}
			f[name] = v
		}
		o.Figures[w] = f
	}
	return o
}

// play runs a strategy to its end and returns what it asked for.
func play(t testing.TB, s tune.Strategy, b bench) []string {
	t.Helper()
	var asked []string
	for p, ok := s.Ask(); ok; p, ok = s.Ask() {
		if p.Trial != len(asked)+1 {
			t.Fatalf("trial %d follows %d", p.Trial, len(asked))
		}
		asked = append(asked, fmt.Sprintf("%d %s: %s [%s] %s pass %d", p.Trial, p.Stage, p.Label, words(p), strings.Join(p.Workloads, ","), p.Pass))
		s.Tell(b.end(t, p))
	}
	return asked
}

func staged(t testing.TB, s tune.Space, o tune.Objective, b tune.Budget) *Search {
	t.Helper()
	st, err := New(s, o, b)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

var up = tune.Objective{Metric: "m", Higher: true}

// over is a gain in floating point; constants would divide exactly.
func over(a, b float64) *float64 { return new(a/b - 1) }

// a100 is the study of Qwen3-235B on eight A100 with its published figures;
// two replicas of TP4 have those of a measurement of both, not a product.
func a100() (tune.Space, bench) {
	space := tune.Space{
		Baseline: tune.Config{"1engine": "vllm", "3tp": "tp8"},
		Primary:  "sharegpt", Others: []string{"32k", "4k"},
		Stages: []tune.Stage{
			{Name: "Choosing the Inference Engine", Changes: []tune.Change{
				{Label: "vLLM", Set: tune.Config{"1engine": "vllm"}},
				{Label: "SGLang", Set: tune.Config{"1engine": "sglang"}},
			}},
			{Name: "Quantization", Changes: []tune.Change{
				{Label: "SGLang FP8", Set: tune.Config{"2model": "fp8"}},
				{Label: "vLLM FP8", Set: tune.Config{"1engine": "vllm", "2model": "fp8", "3tp": "tp8"}, Replace: true},
				{Label: "vLLM FP8 EP", Set: tune.Config{"1engine": "vllm", "2model": "fp8", "3tp": "tp8", "4ep": "ep"}, Replace: true},
			}},
			{Name: "Parallelism", Changes: []tune.Change{
				{Label: "vLLM FP8 TP4", Set: tune.Config{"1engine": "vllm", "2model": "fp8", "3tp": "tp4", "5n": "x2"}, Replace: true},
				{Label: "vLLM FP8 TP4 EP4", Set: tune.Config{"1engine": "vllm", "2model": "fp8", "3tp": "tp4", "4ep": "ep", "5n": "x2"}, Replace: true},
			}},
			{Name: "Max Batched Token Numbers", Changes: []tune.Change{
				{Label: "4096", Set: tune.Config{"6mbt": "4096"}},
				{Label: "8192", Set: tune.Config{"6mbt": "8192"}},
			}},
		},
	}
	return space, bench{
		"vllm tp8": "3792.50", "vllm tp8 again": "3800",
		"sglang tp8":      "4635.31",
		"sglang fp8 tp8":  "refused: FP8 needs compute capability 8.9",
		"vllm fp8 tp8":    "refused: output size is not divisible by block_n = 128",
		"vllm fp8 tp8 ep": "3740.89",
		"vllm fp8 tp4 x2": "5130", "vllm fp8 tp4 x2 again": "5100",
		"vllm fp8 tp4 ep x2":   "5000",
		"vllm fp8 tp4 x2 4096": "5130",
		"vllm fp8 tp4 x2 8192": "5100",
	}
}

func TestStagedA100(t *testing.T) {
	space, b := a100()
	s := staged(t, space, tune.Objective{Metric: "m", Higher: true}, tune.Budget{})
	want := []string{
		"1 baseline: baseline [vllm tp8] sharegpt pass 0",
		"2 Choosing the Inference Engine: SGLang [sglang tp8] sharegpt pass 0",
		"3 Quantization: SGLang FP8 [sglang fp8 tp8] sharegpt pass 0",
		"4 Quantization: vLLM FP8 [vllm fp8 tp8] sharegpt pass 0",
		"5 Quantization: vLLM FP8 EP [vllm fp8 tp8 ep] sharegpt pass 0",
		"6 Parallelism: vLLM FP8 TP4 [vllm fp8 tp4 x2] sharegpt pass 0",
		"7 Parallelism: vLLM FP8 TP4 EP4 [vllm fp8 tp4 ep x2] sharegpt pass 0",
		"8 Max Batched Token Numbers: 4096 [vllm fp8 tp4 x2 4096] sharegpt pass 0",
		"9 Max Batched Token Numbers: 8192 [vllm fp8 tp4 x2 8192] sharegpt pass 0",
		"10 confirm: baseline [vllm tp8] sharegpt,32k,4k pass 1",
		"11 confirm: vLLM FP8 TP4 [vllm fp8 tp4 x2] sharegpt,32k,4k pass 1",
	}
	if diff := cmp.Diff(want, play(t, s, b)); diff != "" {
		t.Fatalf("proposals (-want +got):\n%s", diff)
	}
	result := tune.Result{
		Baseline: 1, Winner: 6, Confirmed: true, BaselineConfirm: 10, WinnerConfirm: 11,
		Challenger: 6, ChallengerConfirm: 11, Gain: over(5100.0, 3800),
		Verdict: *sentence("vLLM FP8 TP4 is +34.2 % on m over the baseline (5100 against 3800), confirmed on fresh seeds, the best of 6 other configurations"),
		Stages: []tune.Decision{
			{
				Stage: "Choosing the Inference Engine", Trials: []int{1, 2}, Before: 1, Winner: 2,
				Gain: over(4635.31, 3792.50), Total: over(4635.31, 3792.50),
				Reason: sentence("SGLang goes on: it is +22.2 % on m over the baseline (4635.31 against 3792.5)"),
				Entries: []tune.Entry{
					{Label: "vLLM", Trial: 1, Gain: new(0.0), Total: new(0.0)},
					{Label: "SGLang", Trial: 2, Gain: over(4635.31, 3792.50), Total: over(4635.31, 3792.50)},
				},
			},
			{
				Stage: "Quantization", Trials: []int{3, 4, 5}, Before: 2, Winner: 2,
				Gain: new(0.0), Total: over(4635.31, 3792.50),
				Reason: sentence("SGLang stays: vLLM FP8 EP is -19.3 % on m over SGLang (3740.89 against 4635.31)"),
				Entries: []tune.Entry{
					{Label: "SGLang FP8", Trial: 3, Finding: sentence("refused: FP8 needs compute capability 8.9")},
					{Label: "vLLM FP8", Trial: 4, Finding: sentence("refused: output size is not divisible by block_n = 128")},
					{Label: "vLLM FP8 EP", Trial: 5, Gain: over(3740.89, 4635.31), Total: over(3740.89, 3792.50)},
				},
			},
			{
				Stage: "Parallelism", Trials: []int{6, 7}, Before: 2, Winner: 6,
				Gain: over(5130, 4635.31), Total: over(5130, 3792.50),
				Reason: sentence("vLLM FP8 TP4 goes on: it is +10.7 % on m over SGLang (5130 against 4635.31), and is +35.3 % on m over the baseline (5130 against 3792.5)"),
				Entries: []tune.Entry{
					{Label: "vLLM FP8 TP4", Trial: 6, Gain: over(5130, 4635.31), Total: over(5130, 3792.50)},
					{Label: "vLLM FP8 TP4 EP4", Trial: 7, Gain: over(5000, 4635.31), Total: over(5000, 3792.50)},
				},
			},
			{
				// The best equals the incumbent, so the incumbent stays.
				Stage: "Max Batched Token Numbers", Trials: []int{8, 9}, Before: 6, Winner: 6,
				Gain: new(0.0), Total: over(5130, 3792.50),
				Reason: sentence("vLLM FP8 TP4 stays: vLLM FP8 TP4 + 4096 equals vLLM FP8 TP4 on m (5130)"),
				Entries: []tune.Entry{
					{Label: "4096", Trial: 8, Gain: new(0.0), Total: over(5130, 3792.50)},
					{Label: "8192", Trial: 9, Gain: over(5100.0, 5130), Total: over(5100, 3792.50)},
				},
			},
		},
	}
	if diff := cmp.Diff(result, s.Result()); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// TestStagedH100 is the study of Qwen3-32B: every stage builds on the last.
func TestStagedH100(t *testing.T) {
	s := staged(t, tune.Space{
		Baseline: tune.Config{"1": "vllm"}, Primary: "sharegpt",
		Stages: []tune.Stage{
			{Name: "Engine", Changes: []tune.Change{{Label: "SGLang", Set: tune.Config{"1": "sglang"}}, {Label: "TensorRT-LLM", Set: tune.Config{"1": "trtllm"}}}},
			{Name: "Quantization", Changes: []tune.Change{{Label: "FP8", Set: tune.Config{"2": "fp8"}}}},
			{Name: "Chunked prefill", Changes: []tune.Change{{Label: "chunked prefill", Set: tune.Config{"3": "chunked"}}}},
		},
	}, up, tune.Budget{})
	want := []string{
		"1 baseline: baseline [vllm] sharegpt pass 0",
		"2 Engine: SGLang [sglang] sharegpt pass 0",
		"3 Engine: TensorRT-LLM [trtllm] sharegpt pass 0",
		"4 Quantization: FP8 [trtllm fp8] sharegpt pass 0",
		"5 Chunked prefill: chunked prefill [trtllm fp8 chunked] sharegpt pass 0",
		"6 confirm: baseline [vllm] sharegpt pass 1",
		"7 confirm: TensorRT-LLM + FP8 + chunked prefill [trtllm fp8 chunked] sharegpt pass 1",
	}
	got := play(t, s, bench{"vllm": "2352.82", "sglang": "1690.84", "trtllm": "2659.50", "trtllm fp8": "4005.32", "trtllm fp8 chunked": "4284.68"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("proposals (-want +got):\n%s", diff)
	}
	r := s.Result()
	says(t, r.Verdict, "TensorRT-LLM + FP8 + chunked prefill is +82.1 % on m over the baseline (4284.68 against 2352.82), confirmed on fresh seeds, the best of 4 other configurations")
	for i, want := range []string{"+13.0 %", "+50.6 %", "+7.0 %"} {
		if got := fmt.Sprintf("%+.1f %%", 100**r.Stages[i].Gain); got != want {
			t.Errorf("stage %s gains %s, published %s", r.Stages[i].Stage, got, want)
		}
	}
}

// one is a space with a single stage that changes parameter x of baseline 0.
func one(labels ...string) tune.Space {
	st := tune.Stage{Name: "s"}
	for _, l := range labels {
		st.Changes = append(st.Changes, tune.Change{Label: l, Set: tune.Config{"x": l}})
	}
	return tune.Space{Baseline: tune.Config{"x": "0"}, Stages: []tune.Stage{st}, Primary: "w"}
}

func TestStagedEnds(t *testing.T) {
	latency := tune.Objective{Metric: "m"}
	slo := tune.Objective{Metric: "m", Higher: true, SLOs: []tune.Bound{{Metric: "ttft", Op: "<=", Limit: 100}}}
	tests := map[string]struct {
		objective tune.Objective
		labels    string
		bench     bench
		want      tune.Result // without stages
		reason    string      // of the stage
		trials    int
	}{
		"lower is better": {
			latency, "A B", bench{"0": "5.32", "A": "3.53", "B": "25.15"},
			tune.Result{Baseline: 1, Winner: 2, Confirmed: true, BaselineConfirm: 4, WinnerConfirm: 5, Challenger: 2, ChallengerConfirm: 5, Gain: over(5.32, 3.53),
				Verdict: *sentence("A is 1.51x better on m than the baseline (3.53 against 5.32), confirmed on fresh seeds, the best of 2 other configurations")},
			"A goes on: it is 1.51x better on m than the baseline (3.53 against 5.32)", 5,
		},
		"nothing beats the baseline": {
			latency, "A B", bench{"0": "5", "A": "6", "B": "5"},
			tune.Result{Baseline: 1, Winner: 1, Confirmed: true, BaselineConfirm: 4, WinnerConfirm: 4, Gain: new(0.0),
				Verdict: *sentence("no difference shown: of 2 other configurations none beats the baseline, confirmed on fresh seeds")},
			"the baseline stays: B equals the baseline on m (5)", 4,
		},
		"the baseline among the candidates": {
			up, "0 A", bench{"0": "10", "A": "9"},
			tune.Result{Baseline: 1, Winner: 1, Confirmed: true, BaselineConfirm: 3, WinnerConfirm: 3, Gain: new(0.0),
				Verdict: *sentence("no difference shown: of 1 other configuration none beats the baseline, confirmed on fresh seeds")},
			"the baseline stays: A is -10.0 % on m over the baseline (9 against 10)", 3,
		},
		"first of equals": {
			up, "A B", bench{"0": "1", "A": "2", "B": "2"},
			tune.Result{Baseline: 1, Winner: 2, Confirmed: true, BaselineConfirm: 4, WinnerConfirm: 5, Challenger: 2, ChallengerConfirm: 5, Gain: new(1.0),
				Verdict: *sentence("A is +100.0 % on m over the baseline (2 against 1), confirmed on fresh seeds, the best of 2 other configurations")},
			"A goes on: it is +100.0 % on m over the baseline (2 against 1)", 5,
		},
		"gain not repeated": {
			up, "A", bench{"0": "100", "A": "103", "0 again": "102", "A again": "101"},
			tune.Result{Baseline: 1, Winner: 1, Confirmed: true, BaselineConfirm: 3, WinnerConfirm: 3, Challenger: 2, ChallengerConfirm: 4, Gain: new(0.0),
				Verdict: *sentence("no difference shown: in the search A is +3.0 % on m over the baseline (103 against 100), but measured again A is -1.0 % on m over the baseline (101 against 102), so the baseline stays")},
			"A goes on: it is +3.0 % on m over the baseline (103 against 100)", 4,
		},
		"below the least gain": {
			tune.Objective{Metric: "m", Higher: true, MinGain: 0.02}, "A", bench{"0": "1000", "A": "1002"},
			tune.Result{Baseline: 1, Winner: 1, Confirmed: true, BaselineConfirm: 3, WinnerConfirm: 3, Gain: new(0.0),
				Verdict: *sentence("no difference shown: of 1 other configuration none beats the baseline, confirmed on fresh seeds")},
			"no difference shown: A is +0.2 % on m over the baseline (1002 against 1000), not more than the +2.0 % asked for, so the baseline stays", 3,
		},
		"second measurement void": {
			up, "A", bench{"0": "100", "A": "103", "A again": "void: dispatch lag"},
			tune.Result{Baseline: 1, Winner: 1, BaselineConfirm: 3, WinnerConfirm: 3, Challenger: 2, Gain: new(0.0),
				Verdict: *sentence("not confirmed: in the search A is +3.0 % on m over the baseline (103 against 100), but the second measurement of A has no figure (void: dispatch lag), so the baseline stays")},
			"A goes on: it is +3.0 % on m over the baseline (103 against 100)", 4,
		},
		"baseline void the second time": {
			up, "A", bench{"0": "100", "A": "103", "0 again": "void: dispatch lag"},
			tune.Result{Baseline: 1, Winner: 1, Challenger: 2, ChallengerConfirm: 4, Gain: new(0.0),
				Verdict: *sentence("not confirmed: in the search A is +3.0 % on m over the baseline (103 against 100), but the second measurement of the baseline has no figure (void: dispatch lag), so the baseline stays")},
			"A goes on: it is +3.0 % on m over the baseline (103 against 100)", 4,
		},
		"all refused": {
			up, "A B", bench{"0": "100", "A": "refused: no memory", "B": "failed: no port"},
			tune.Result{Baseline: 1, Winner: 1, Confirmed: true, BaselineConfirm: 4, WinnerConfirm: 4, Gain: new(0.0),
				Verdict: *sentence("no difference shown: no other configuration has figures beside the baseline, confirmed on fresh seeds")},
			"the baseline stays: no other candidate could be measured (A refused: no memory)", 4,
		},
		"refused baseline": {
			up, "A B", bench{"0": "refused: no memory", "A": "10", "B": "20"},
			tune.Result{Winner: 3, Confirmed: true, WinnerConfirm: 4, Challenger: 3, ChallengerConfirm: 4,
				Verdict: *sentence("B is the best of 2 configurations that could be measured, with 20 of m (confirmed on fresh seeds); the baseline ended refused: no memory, so no gain can be given")},
			"B goes on as the best that could be measured: m 20, and nothing to compare it with", 4,
		},
		"refused baseline, unconfirmed": {
			up, "A", bench{"0": "refused: no memory", "A": "10", "A again": "void: lag"},
			tune.Result{Challenger: 2,
				Verdict: *sentence("nothing is recommended: the baseline ended refused: no memory, so no gain can be given, and the second measurement of A has no figure (void: lag)")},
			"A goes on as the best that could be measured: m 10, and nothing to compare it with", 3,
		},
		"baseline fails, its twin does not": {
			up, "A 0", bench{"0": "failed: no port", "A": "failed: no port"},
			tune.Result{Verdict: *sentence("nothing could be measured: the baseline ended failed: no port")},
			"still no configuration could be measured: no other candidate could be measured (A failed: no port)", 3,
		},
		"figure missing": {
			up, "A", bench{"0": "100", "A": "other=3"},
			tune.Result{Baseline: 1, Winner: 1, Confirmed: true, BaselineConfirm: 3, WinnerConfirm: 3, Gain: new(0.0),
				Verdict: *sentence("no difference shown: no other configuration has figures beside the baseline, confirmed on fresh seeds")},
			"the baseline stays: no other candidate could be measured (A without m on w)", 3,
		},
		"meeting the SLOs goes first": {
			slo, "A B", bench{"0": "m=100 ttft=200", "A": "m=90 ttft=100", "B": "m=120 ttft=101"},
			tune.Result{Baseline: 1, Winner: 2, Confirmed: true, BaselineConfirm: 4, WinnerConfirm: 5, Challenger: 2, ChallengerConfirm: 5, Gain: over(90.0, 100),
				Verdict: *sentence("A is -10.0 % on m over the baseline (90 against 100), and A meets every SLO, which the baseline does not (ttft <= 100 is missed: 200), confirmed on fresh seeds, the best of 2 other configurations")},
			"A goes on: it is -10.0 % on m over the baseline (90 against 100), and A meets every SLO, which the baseline does not (ttft <= 100 is missed: 200)", 5,
		},
		"a faster one that misses an SLO": {
			slo, "A B", bench{"0": "m=100 ttft=50", "A": "m=300 ttft=101", "B": "m=200"},
			tune.Result{Baseline: 1, Winner: 1, Confirmed: true, BaselineConfirm: 4, WinnerConfirm: 4, Gain: new(0.0),
				Verdict: *sentence("no difference shown: of 2 other configurations none beats the baseline, confirmed on fresh seeds")},
			"the baseline stays: A is +200.0 % on m over the baseline (300 against 100), and the baseline meets every SLO, which A does not (ttft <= 100 is missed: 101)", 4,
		},
		"none meets the SLOs": {
			slo, "A B", bench{"0": "m=100 ttft=400", "A": "m=90 ttft=150", "B": "m=500 ttft=800", "A again": "m=90 ttft=160"},
			tune.Result{Baseline: 1, Winner: 2, Confirmed: true, BaselineConfirm: 4, WinnerConfirm: 5, Challenger: 2, ChallengerConfirm: 5, Gain: over(90.0, 100),
				Misses:  []tune.Constraint{{Bound: "ttft <= 100", Mean: new(160.0)}},
				Verdict: *sentence("A is -10.0 % on m over the baseline (90 against 100), and A is nearer to the SLOs, which neither meets (the baseline: ttft <= 100 is missed: 400), confirmed on fresh seeds, the best of 2 other configurations; not every SLO is met: ttft <= 100 is missed: 160")},
			"A goes on: it is -10.0 % on m over the baseline (90 against 100), and A is nearer to the SLOs, which neither meets (the baseline: ttft <= 100 is missed: 400)", 5,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := staged(t, one(strings.Fields(tt.labels)...), tt.objective, tune.Budget{})
			asked := play(t, s, tt.bench)
			if len(asked) != tt.trials {
				t.Errorf("%d trials, want %d:\n%s", len(asked), tt.trials, strings.Join(asked, "\n"))
			}
			got := s.Result()
			says(t, *got.Stages[0].Reason, tt.reason)
			got.Stages = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStagedTwin: the baseline breaks, and the same configuration, asked for
// again by a stage, comes through and takes its place.
func TestStagedTwin(t *testing.T) {
	s := staged(t, one("A", "0"), up, tune.Budget{})
	for _, figure := range []string{"", "5", "4", "4", "6"} {
		p, ok := s.Ask()
		if !ok {
			t.Fatal("done too early")
		}
		if figure == "" {
			s.Tell(tune.Observation{Trial: p.Trial, Status: tune.Failed, Reason: "no port"})
		} else {
			s.Tell(bench{words(p): figure}.end(t, p))
		}
	}
	r := s.Result()
	r.Stages = nil
	want := tune.Result{Baseline: 3, Winner: 2, Confirmed: true, BaselineConfirm: 4, WinnerConfirm: 5, Challenger: 2, ChallengerConfirm: 5, Gain: new(0.5),
		Verdict: *sentence("A is +50.0 % on m over the baseline (6 against 4), confirmed on fresh seeds, the best of 1 other configuration")}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestStagedReplaceAndRemove(t *testing.T) {
	s := staged(t, tune.Space{
		Baseline: tune.Config{"a": "1", "b": "2", "empty": ""}, Primary: "w",
		Stages: []tune.Stage{
			{Name: "remove", Changes: []tune.Change{{Label: "no a", Set: tune.Config{"a": ""}}}},
			{Name: "replace", Changes: []tune.Change{{Label: "c", Set: tune.Config{"c": "3"}, Replace: true}}},
			{Name: "back", Changes: []tune.Change{{Label: "a again", Set: tune.Config{"a": "1"}}, {Label: "two", Set: tune.Config{"b": "2"}, Replace: true}}},
		},
	}, up, tune.Budget{})
	want := []string{
		"1 baseline: baseline [1 2] w pass 0",
		"2 remove: no a [2] w pass 0",
		"3 replace: c [3] w pass 0",
		// The last stage asks for nothing new: trials 1 and 2 stand for it.
		"4 confirm: baseline [1 2] w pass 1",
		"5 confirm: no a [2] w pass 1",
	}
	if diff := cmp.Diff(want, play(t, s, bench{"1 2": "1", "2": "3", "3": "2"})); diff != "" {
		t.Errorf("proposals (-want +got):\n%s", diff)
	}
	last := s.Result().Stages[2]
	if diff := cmp.Diff([]int{1, 2}, last.Trials); diff != "" || last.Winner != 2 {
		t.Errorf("last stage has trials %v, winner %d", last.Trials, last.Winner)
	}
}

func TestStagedBudget(t *testing.T) {
	figures := bench{"0": "1", "A": "2", "B": "3", "C": "4"}
	tests := map[string]struct {
		budget   tune.Budget
		trials   int
		measured int // of three candidates
	}{
		"none":            {tune.Budget{}, 6, 3},
		"just enough":     {tune.Budget{Trials: 6}, 6, 3},
		"one short":       {tune.Budget{Trials: 5}, 5, 2},
		"least":           {tune.Budget{Trials: 4}, 4, 1},
		"time for all":    {tune.Budget{Time: 60 * time.Second}, 6, 3},
		"time for two":    {tune.Budget{Time: 59 * time.Second}, 5, 2},
		"time for none":   {tune.Budget{Time: 39 * time.Second}, 2, 0},
		"the lesser wins": {tune.Budget{Trials: 5, Time: 49 * time.Second}, 4, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := staged(t, one("A", "B", "C"), up, tt.budget)
			asked := play(t, s, figures) // 10 s a trial
			d := s.Result().Stages[0]
			if len(d.Entries) != 3 || len(d.Trials) != tt.measured {
				t.Fatalf("%d entries and trials %v, want 3 and %d", len(d.Entries), d.Trials, tt.measured)
			}
			for i, e := range d.Entries {
				if left := i >= tt.measured; left != (e.Finding != nil && (e.Finding.Kind == tune.NoTrialsLeft || e.Finding.Kind == tune.NoTimeLeft)) || left != (e.Trial == 0) {
					t.Errorf("entry %+v, left out: %t", e, left)
				}
			}
			if len(asked) != tt.trials || !strings.Contains(asked[len(asked)-1], " confirm: ") {
				t.Errorf("%d trials, want %d:\n%s", len(asked), tt.trials, strings.Join(asked, "\n"))
			}
		})
	}
}

func TestBudgetReservesTheLongest(t *testing.T) {
	trials := []*trial{{end: tune.Observation{Seconds: 30}}, {end: tune.Observation{Seconds: 10}}} // 40 s, and three launches of 30 s to come
	if why := (&state{budget: tune.Budget{Time: 130 * time.Second}, trials: trials}).spent(); why != nil {
		t.Errorf("130 s suffice, but %+v", why)
	}
	if why := (&state{budget: tune.Budget{Time: 130*time.Second - 1}, trials: trials}).spent(); why == nil {
		t.Error("less than 130 s suffice")
	}
}

func TestStagedUnfinished(t *testing.T) {
	space, b := a100()
	s := staged(t, space, up, tune.Budget{})
	want := []string{
		"not finished after 0 trials: nothing is measured yet",
		"not finished after 1 trial: nothing beats the baseline yet",
		"not finished after 2 trials: SGLang is +22.2 % on m over the baseline (4635.31 against 3792.5), measured once",
	}
	for i, want := range want {
		r := s.Result()
		says(t, r.Verdict, want)
		if r.Winner != min(i, 1) || r.Confirmed || r.Gain != nil {
			t.Errorf("after %d trials: %+v, want verdict\n%s", i, r, want)
		}
		p, _ := s.Ask()
		s.Tell(b.end(t, p))
	}
	r := s.Result()
	if n := len(r.Stages); n != 2 || !cmp.Equal(r.Stages[1].Reason, sentence("not finished: 1 of 3 candidates are in")) || r.Stages[1].Winner != 2 {
		t.Errorf("stages after 3 trials: %+v", r.Stages)
	}
}

func TestTellPanicsOnAnotherTrial(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); got != "tune: told the end of trial 2, which is not open" {
			t.Errorf("panic %q", got)
		}
	}()
	staged(t, one("A"), up, tune.Budget{}).Tell(tune.Observation{Trial: 2})
}

func TestNewRefuses(t *testing.T) {
	_, err := New(tune.Space{
		Baseline: tune.Config{"x": ""}, Others: []string{"w", "w"},
		Stages: []tune.Stage{
			{Changes: []tune.Change{{Label: "a", Set: tune.Config{"x": "1"}}}},
			{Name: "confirm", Changes: []tune.Change{{Set: tune.Config{"x": "1"}}}},
			{Name: "empty"},
			{Name: "twins", Changes: []tune.Change{{Label: "a", Set: tune.Config{"x": "1"}}, {Label: "a", Set: tune.Config{"x": ""}, Replace: true}, {Label: "b"}, {Label: "c", Set: tune.Config{"x": ""}, Replace: true}}},
		},
	}, tune.Objective{}, tune.Budget{Trials: 3})
	for _, want := range []string{
		"the baseline sets no parameter", "no primary workload", `workload "w" is listed twice`, "stage 1 has no name",
		`the stage name "confirm" is taken`, `stage "confirm": candidate 1 has no label`, `stage "empty" has no candidates`,
		`stage "twins": the label "a" is taken`, `stage "twins": candidate "b" sets no parameter`, `stage "twins": candidate "c" sets no parameter`,
		"names no metric", "a budget of 3 trials leaves none for a candidate",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if _, err := New(tune.Space{Baseline: tune.Config{"x": "1"}, Primary: "w"}, up, tune.Budget{Trials: 2}); err != nil {
		t.Errorf("a space without stages: %v", err)
	}
}
