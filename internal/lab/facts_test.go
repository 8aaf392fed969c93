package lab

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/study"
)

// TestJudged: a recommendation says what became of every constraint on figures.
func TestJudged(t *testing.T) {
	s := &study.Study{}
	for _, text := range []string{"p99_ttft_ms <= baseline", "accuracy >= baseline - 2pt", "p99_ttft_ms <= 100"} {
		b, err := study.ParseBound(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Bounds = append(s.Bounds, b)
	}
	l := &factsMaker{Study: s}
	of := func(v float64) *result.Summary { return &result.Summary{Figures: map[string]float64{"p99_ttft_ms": v}} }
	got := l.judged(of(120), of(130))
	if len(got) != 2 || !got[0].Met || got[1].Met || got[0].SLO != "p99_ttft_ms <= baseline" {
		t.Errorf("%+v", got)
	}
	if got := l.judged(of(120), nil); len(got) != 2 || got[0].Met {
		t.Errorf("without a baseline: %+v", got)
	}
}

// TestGoalSays: weights and the least gain are part of what a study is judged by.
func TestGoalSays(t *testing.T) {
	m, err := result.Lookup("total_token_throughput")
	if err != nil {
		t.Fatal(err)
	}
	l := &factsMaker{Study: &study.Study{Metric: m, File: &study.File{
		Objective: study.Objective{Weights: map[string]float64{"a": 1, "b": 2}, MinGain: "5%"},
		Workloads: []study.Workload{{Name: "a", Title: "Chat"}, {Name: "b", Title: "Long"}},
	}}}
	if got := l.goal(); got != "Highest total token throughput, as the weighted geometric mean over Chat (weight 1) and Long (weight 2). A gain up to 5 % counts as no difference" {
		t.Error(got)
	}
}

// TestStudyFile: a study's parameters win over what it puts into the file, candidates' over both,
// and the deployment gets the file that its command names.
func TestStudyFile(t *testing.T) {
	text := strings.Replace(good, "baseline: {label: base, engine: vllm}",
		"baseline: {label: base, engine: trtllm, set: {block_size: 64}}\nengines: {trtllm: {version: '1.2', set: {stream_interval: 2}, "+
			"file: {stream_interval: 9, max_batch_size: 77, env_overrides: {HF_TOKEN: abcdefgh1234}, kv_cache_config: {tokens_per_block: 16, host_cache_size: 5}}}}", 1)
	s, err := study.Parse("t.yaml", []byte(strings.Replace(text, "kind: predicted", "kind: process", 1)))
	if err != nil {
		t.Fatal(err)
	}
	l := newLauncher(s, Options{}, &watcher{})
	pl, err := l.configure(map[string]string{"engine": "trtllm", "model": "Qwen/Qwen3-32B-FP8", "block_size": "64", "tp": "2"})
	if err != nil {
		t.Fatal(err)
	}
	const file = "env_overrides:\n  HF_TOKEN: abcdefgh1234\nkv_cache_config:\n  host_cache_size: 5\n  tokens_per_block: 64\nstream_interval: 2\n"
	places, _, err := l.places(t.Context(), pl)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := l.deployment(pl, places, t.TempDir())
	if err != nil || len(spec.Replicas) != 1 {
		t.Fatalf("%d replicas, %v", len(spec.Replicas), err)
	}
	if d := cmp.Diff([]deploy.File{{Name: "trtllm.yaml", Text: file}}, spec.Replicas[0].Files); d != "" {
		t.Error(d)
	}
	want := "trtllm-serve Qwen/Qwen3-32B-FP8 --tp_size 2 --max_batch_size 77 --extra_llm_api_options {file:trtllm.yaml} --host {host} --port {port}"
	if got := strings.Join(spec.Replicas[0].Argv, " "); got != want {
		t.Errorf("argv %s\nwant %s", got, want)
	}
	if text := redacted(pl.Command); strings.Contains(text, "abcdefgh1234") || !strings.HasPrefix(text, "cat > trtllm.yaml <<'EOF'\n") {
		t.Errorf("redacted: %s", text)
	}
	if strings.Contains(string(s.Redacted([]byte("x: abcdefgh1234"))), "abcdefgh1234") {
		t.Error("the token of the file is not taken for a secret")
	}
	if pl.Config.Seqs != 77 || pl.Config.Block != 64 {
		t.Errorf("resolved to %d requests, blocks of %d", pl.Config.Seqs, pl.Config.Block)
	}
}

// TestRemarks: what the figures of a configuration do not show is said.
func TestRemarks(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(strings.Replace(good, "kind: predicted", "kind: process", 1)))
	if err != nil {
		t.Fatal(err)
	}
	cmd := engine.Command{Engine: "llamacpp", Model: "m.gguf", Params: map[string]string{"threads": "64000"}}
	r := newSession(s, Options{}).remarks(study.Configuration{Command: cmd})
	if len(r) != 1 || !strings.Contains(r[0], "threads 64000 is more than the") {
		t.Errorf("remarks: %q", r)
	}
}
