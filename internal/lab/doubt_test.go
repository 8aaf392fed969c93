package lab

import (
	"context"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/study"
)

// onTime is a predictor of servers that begin a call when it is due, or with one after another
// once each takes longer than they come; SGLang is slower than vLLM.
type onTime struct{ each time.Duration }

func (o onTime) Predict(_ context.Context, q bench.Prediction) iter.Seq2[result.Call, error] {
	return func(yield func(result.Call, error) bool) {
		each, free := o.each, time.Duration(0)
		if q.Config.Engine == "sglang" {
			each += each / 10
		}
		for r := range q.Workload.All() {
			begin := max(r.Due, free)
			free = begin + each
			end := free + 50*time.Millisecond
			c := result.Call{
				Index: r.Index, Due: r.Due, Ready: r.Due, Sent: r.Due, Headers: end - 10*time.Millisecond, Answer: end - 10*time.Millisecond, End: end, Status: 200, Finish: "length",
				Chunks: []result.Chunk{{At: end - 10*time.Millisecond, Tokens: 1}, {At: end, Tokens: 1}},
				Usage:  &result.Usage{Prompt: 8, Completion: 2}, WantIn: 8, Want: 2, Class: result.OK, Sim: true,
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// atRate is a study of two engines under a rate.
const atRate = `name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1}
engines: {vllm: {}, sglang: {}}
objective: {metric: total_token_throughput}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 200, random_input_len: 8, random_output_len: 2, request_rate: 10}
baseline: {label: base, engine: vllm}
race: {rounds: 2}
budget: {trials: 8}
runtime: {kind: predicted}
`

// doubted is what is foreseen of a study, what whoever waits for it is told, and what it says in the end.
func doubted(t *testing.T, text string, p bench.Predictor) (foreseen string, told []string, f outcome.Study) {
	t.Helper()
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	preview, _, err := Rank(t.Context(), s, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	tell := func(text string) { told = append(told, text) }
	if f, err = Tune(t.Context(), s, []byte(text), Options{Dir: dir, Predictor: p, Tell: tell}); err != nil {
		t.Fatal(err)
	}
	kept, err := rundir.OpenStudy(dir)
	if err != nil || !slices.Equal(kept.Doubts, f.Doubts) {
		t.Errorf("study.json has the doubts %q, not %q (%v)", kept.Doubts, f.Doubts, err)
	}
	return strings.Join(preview.Doubts, "\n"), told, f
}

// A study whose load decides its objective is told so when it is checked, when it begins, when its
// baseline was measured and in the end; one that can tell configurations apart is not.
func TestLoadDecides(t *testing.T) {
	const (
		rule     = "The load offers 10 requests/s of workload chat, and every configuration that keeps up has the same total_token_throughput. Only those that fall behind differ. "
		alike    = "are predicted within 1 % of each other on total_token_throughput (SIMULATED)"
		measured = "The baseline answers the 10 requests/s of workload chat as they come, so no configuration can be better"
		mend     = "request_rate: inf"
	)
	quick, slow := onTime{10 * time.Millisecond}, onTime{200 * time.Millisecond}
	burst := strings.Replace(atRate, ", request_rate: 10", "", 1)
	latency := strings.Replace(atRate, "total_token_throughput", "p99_ttft_ms", 1)
	for _, tt := range []struct {
		name, text      string
		p               bench.Predictor
		foreseen        []string // nil: nothing
		measured, alone bool     // said of the baseline's launch; nothing said before the study's end but at its beginning
	}{
		{"a rate that is kept", atRate, quick, []string{rule, alike, mend}, true, false},
		{"a rate that is not", atRate, slow, nil, false, false},
		{"a burst", burst, quick, nil, false, false},
		{"a latency", latency, quick, nil, false, false},
		{"a list at a rate", strings.NewReplacer("baseline: {label: base, engine: vllm}", "strategy: survey\ncandidates: [{label: a, engine: vllm}, {label: b, engine: sglang}]",
			"race: {rounds: 2}\nbudget: {trials: 8}\n", "").Replace(atRate), quick, []string{rule, mend}, false, true},
		{"stages at a rate", strings.NewReplacer("race: {rounds: 2}\n", "strategy: staged\nstages: [{name: e, try: [{label: b, engine: sglang}]}]\n").Replace(atRate), slow, []string{rule, mend}, false, false},
		{"an SLO that the baseline misses", strings.Replace(atRate, "total_token_throughput}", "total_token_throughput, slos: [p99_ttft_ms <= 1]}", 1), quick, []string{"fall behind or miss an SLO"}, false, false},
	} {
		foreseen, told, f := doubted(t, tt.text, tt.p)
		for _, want := range tt.foreseen {
			if !strings.Contains(foreseen, want) {
				t.Errorf("%s: foreseen is %q, without %q", tt.name, foreseen, want)
			}
		}
		if tt.foreseen == nil && foreseen != "" {
			t.Errorf("%s: foreseen is %q", tt.name, foreseen)
		}
		var want []string
		if foreseen != "" {
			want = append(want, foreseen)
		}
		if tt.measured {
			want = append(want, f.Doubts...)
		}
		if !slices.Equal(told, want) {
			t.Errorf("%s: told %q, want %q", tt.name, told, want)
		}
		switch {
		case tt.measured && (len(f.Doubts) != 1 || !strings.HasPrefix(f.Doubts[0], measured) || !strings.Contains(f.Doubts[0], mend)):
			t.Errorf("%s: in the end %q", tt.name, f.Doubts)
		case tt.alone && !slices.Equal(f.Doubts, told):
			t.Errorf("%s: in the end %q", tt.name, f.Doubts)
		case !tt.measured && !tt.alone && len(f.Doubts) > 0:
			t.Errorf("%s: in the end %q", tt.name, f.Doubts)
		}
	}
}

// All that may be raced is predicted alike under a load that bounds nothing.
func TestPredictedAlike(t *testing.T) {
	text := strings.NewReplacer(", request_rate: 10", "", "engines: {vllm: {}, sglang: {}}", "engines: {vllm: {}}\nspace: {engine: [vllm]}", "gpus: 1", "gpus: 2").Replace(atRate)
	foreseen, told, f := doubted(t, text, onTime{time.Millisecond})
	if !strings.HasPrefix(foreseen, "Both configurations that may be raced ") || !strings.Contains(foreseen, "launches can hardly tell them apart") || !slices.Equal(told, []string{foreseen}) || !slices.Equal(f.Doubts, told) {
		t.Errorf("foreseen %q, told %q, in the end %q", foreseen, told, f.Doubts)
	}
}

// A study that goes on says what its baseline showed before, and not what was foreseen.
func TestDoubtOnResume(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(atRate))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = Tune(ctx, s, []byte(atRate), Options{Dir: dir, strategist: raced, Predictor: onTime{10 * time.Millisecond}, Watch: func(now Status) {
		if now.Ended == 2 {
			cancel()
		}
	}})
	if err == nil {
		t.Fatal("the study was not stopped")
	}
	var told []string
	f, err := Tune(t.Context(), s, []byte(atRate), Options{Dir: dir, Resume: true, strategist: raced, Predictor: onTime{10 * time.Millisecond}, Tell: func(text string) { told = append(told, text) }})
	if err != nil || len(told) != 1 || !slices.Equal(told, f.Doubts) || !strings.HasPrefix(told[0], "The baseline answers") {
		t.Errorf("told %q, in the end %q (%v)", told, f.Doubts, err)
	}
}
