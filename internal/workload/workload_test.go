package workload

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// specs returns one small spec of each dataset and arrival.
func specs(t *testing.T) map[string]Spec {
	azure, mooncake := file(t, azureText), file(t, mooncakeText)
	sharegpt := file(t, shareGPTFile([2]int{5, 6}, [2]int{7, 8}, [2]int{9, 10}, [2]int{11, 12}, [2]int{13, 14}))
	jsonl := file(t, `{"prompt": "a b"}`+"\n"+`{"prompt": "c d"}`+"\n"+`{"prompt": "e f"}`)
	return map[string]Spec{
		"random":     {NumPrompts: 11, RandomInputLen: 30, RandomRangeRatio: 0.5, Rate: 3},
		"constant":   {NumPrompts: 11, RandomInputLen: 30, Rate: 3, Arrival: "constant"},
		"gamma":      {NumPrompts: 11, RandomInputLen: 30, Rate: 3, Burstiness: 0.4},
		"ramp":       {NumPrompts: 11, RandomInputLen: 30, RampStrategy: "exponential", RampStart: 1, RampEnd: 9},
		"sharegpt":   {Dataset: "sharegpt", Path: sharegpt, NumPrompts: 12},
		"azure":      {Dataset: "azure", Path: azure, Speed: 3},
		"azure rate": {Dataset: "azure", Path: azure, Rate: 3},
		"mooncake":   {Dataset: "mooncake", Path: mooncake},
		"jsonl":      {Dataset: "jsonl", Path: jsonl, NumPrompts: 8, Rate: 2},
		"steps":      {RandomInputLen: 30, Steps: "1:3s,8:1s"},
		"duration":   {RandomInputLen: 30, Rate: 5, Duration: "2s"},
		"lora":       {NumPrompts: 9, RandomInputLen: 30, LoraModules: []string{"a", "b"}},
		"images":     {NumPrompts: 3, RandomInputLen: 30, RandomImages: 2, RandomImageSize: "16x16-32x24"},
		"burstgpt":   {Dataset: "burstgpt", Path: file(t, burstText), Speed: 2},
		"sonnet":     {Dataset: "sonnet", NumPrompts: 7},
		"repetition": {Dataset: "prefix_repetition", NumPrompts: 12, PrefixRepetitionNumPrefixes: 3},
		"groups":     {Dataset: "shared-prefix", GSPNumGroups: 3, GSPPromptsPerGroup: 4},
		"zipf":       {Dataset: "shared-prefix", GSPNumGroups: 3, GSPPromptsPerGroup: 4, GSPZipfAlpha: 1.1},
		"normal":     {NumPrompts: 9, Scenario: "N(40,20)/(9,3)"},
		"rerank":     {NumPrompts: 9, Scenario: "R(20,5)", RandomBatchSize: 3},
		"nonce":      {NumPrompts: 9, RandomInputLen: 30, Nonce: "run 7"},
	}
}

func TestDeterminism(t *testing.T) {
	for name, s := range specs(t) {
		w := mustOpen(t, s)
		a := slices.Collect(w.All())
		if d := cmp.Diff(a, slices.Collect(mustOpen(t, s).All())); d != "" {
			t.Errorf("%s: opened twice it differs:\n%s", name, d)
		}
		if d := cmp.Diff(a, slices.Collect(mustOpen(t, w.Spec()).All())); d != "" {
			t.Errorf("%s: the filled spec gives something else:\n%s", name, d)
		}
		if !slices.IsSortedFunc(a, func(x, y Request) int { return int(x.Due - y.Due) }) || len(a) != w.Len() {
			t.Errorf("%s: %d of %d requests, or out of order", name, len(a), w.Len())
		}
		other := s
		other.Seed++
		if w.Fingerprint() != mustOpen(t, s).Fingerprint() || w.Fingerprint() == mustOpen(t, other).Fingerprint() {
			t.Errorf("%s: the fingerprint does not follow the seed", name)
		}
		total := Totals{Requests: len(a), Span: a[len(a)-1].Due}
		for _, r := range a {
			total.Input += r.Input
			total.Output += r.Output
		}
		if w.Totals() != total {
			t.Errorf("%s: totals %+v, the requests sum to %+v", name, w.Totals(), total)
		}
	}
}

func TestShardUnionIsAll(t *testing.T) {
	for name, s := range specs(t) {
		w := mustOpen(t, s)
		for _, n := range []int{1, 2, 3, 20} {
			var union []Request
			for i := range n {
				for r := range w.Shard(i, n) {
					if r.Index%n != i {
						t.Fatalf("%s: request %d is in shard %d of %d", name, r.Index, i, n)
					}
					union = append(union, r)
				}
			}
			slices.SortFunc(union, func(a, b Request) int { return a.Index - b.Index })
			if d := cmp.Diff(slices.Collect(w.All()), union); d != "" {
				t.Errorf("%s: %d shards are not the whole:\n%s", name, n, d)
			}
		}
	}
}

func TestStopEarly(t *testing.T) {
	n := 0
	for range mustOpen(t, Spec{NumPrompts: 5}).All() {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("went on to %d", n)
	}
}

// The sequence of a seed is part of what a recorded run means: a change here
// makes old and new runs incomparable.
func TestSequenceIsStable(t *testing.T) {
	const want = "85f7c4a891b22808"
	w := mustOpen(t, Spec{NumPrompts: 20, RandomInputLen: 40, RandomRangeRatio: 0.3, RandomPrefixLen: 5, Rate: 10, Burstiness: 2, Seed: 42})
	if got := w.Fingerprint(); got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
}

func TestFingerprintSeesEachField(t *testing.T) {
	base := Spec{NumPrompts: 4, RandomInputLen: 8, RandomOutputLen: 5}
	seen := map[string]string{}
	for name, change := range map[string]func(*Spec){
		"base":   func(*Spec) {},
		"due":    func(s *Spec) { s.Rate = 3 },
		"prompt": func(s *Spec) { s.RandomPrefixLen = 1 },
		"output": func(s *Spec) { s.RandomOutputLen = 6 },
		"count":  func(s *Spec) { s.NumPrompts = 5 },
	} {
		s := base
		change(&s)
		f := mustOpen(t, s).Fingerprint()
		if other, ok := seen[f]; ok {
			t.Errorf("%s and %s have the same fingerprint", name, other)
		}
		seen[f] = name
	}
}

func TestDescribe(t *testing.T) {
	azure := file(t, azureText)
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{RandomInputLen: 4000, RandomOutputLen: 200, NumPrompts: 500},
			"Random dataset: 4000 input tokens, 200 output tokens, 500 requests, all at once"},
		{Spec{RandomInputLen: 100, RandomOutputLen: 10, RandomRangeRatio: 0.5, RandomPrefixLen: 64, NumPrompts: 1, Rate: 4, MaxConcurrency: 16},
			"Random dataset: 64 shared and 50 to 150 input tokens, 5 to 15 output tokens, 1 request, Poisson arrivals at 4 requests/s, at most 16 at a time"},
		{Spec{Dataset: "azure", Path: azure, Speed: 10},
			"Azure trace (data): on average 277 input tokens and 10 output tokens, 3 requests, at the times of the trace, 10 times as fast"},
		{Spec{Dataset: "azure", Path: azure, Rate: 2.5, Burstiness: 0.5},
			"Azure trace (data): on average 277 input tokens and 10 output tokens, 3 requests, gamma arrivals (burstiness 0.5) at 2.5 requests/s"},
		{Spec{Dataset: "burstgpt", Path: file(t, burstText), BurstGPTModel: "GPT-4"},
			"BurstGPT trace (data, GPT-4): on average 417 input tokens and 21 output tokens, 2 requests, at the times of the trace"},
		{Spec{Dataset: "prefix_repetition"},
			"Prefix repetition dataset: 10 prefixes of 256 tokens, 256 further input tokens, 128 output tokens, 1000 requests, all at once"},
		{Spec{Dataset: "shared-prefix", GSPZipfAlpha: 1.5, Nonce: "a"},
			"Shared prefix dataset: 64 groups that share 2048 input tokens (Zipf, exponent 1.5), 128 further ones, 256 output tokens, 1024 requests, all at once, behind 5 tokens of this run alone"},
		{Spec{Dataset: "sonnet", NumPrompts: 3},
			"Sonnet dataset: on average 546 input tokens and 150 output tokens, 3 requests, all at once"},
		{Spec{Scenario: "R(100,10)", NumPrompts: 3, RandomBatchSize: 2},
			"Random dataset: scenario R(100,10), on average 210 input tokens, 3 requests, all at once"},
		{Spec{NumPrompts: 9, RampStrategy: "linear", RampStart: 1, RampEnd: 5, Arrival: "constant"},
			"Random dataset: 1024 input tokens, 128 output tokens, 9 requests, evenly spaced arrivals from 1 to 5 requests/s (linear ramp)"},
		{Spec{Steps: "2:1s,8:2s", Arrival: "constant", LoraModules: []string{"a", "b"}, RandomImages: 1},
			"Random dataset: 1024 input tokens, 128 output tokens, 1 image of 512x512, 18 requests over 2 adapters, evenly spaced arrivals at requests/s in steps of 2:1s,8:2s"},
		{Spec{Dataset: "conversations", NumPrompts: 3, Turns: "2", TurnInputLen: "10", TurnOutputLen: "4", Rate: 2, MaxConcurrency: 2},
			"Made-up conversations: on average 17 input tokens and 4 output tokens, 6 requests in 3 conversations, Poisson arrivals at 2 conversations/s, at most 2 at a time"},
		{Spec{Dataset: "conversations", NumPrompts: 3, Turns: "2", TurnInputLen: "10", TurnOutputLen: "4", MaxConcurrency: 2, Duration: "90"},
			"Made-up conversations: on average 17 input tokens and 4 output tokens, conversations of 2 turns on average, for 1m30s, each when another ends, at most 2 at a time"},
	} {
		if got := mustOpen(t, tt.spec).Describe(); got != tt.want {
			t.Errorf("\n got %s\nwant %s", got, tt.want)
		}
	}
}

// TestRealData needs the shared data beside the repository and skips without.
func TestRealData(t *testing.T) {
	dir := filepath.FromSlash("../../../shared/traces")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no ../shared/traces beside the repository")
	}
	for _, tt := range []struct {
		dataset, file string
		want          Totals
	}{
		{"azure", "azure_llm_2023_code.csv", Totals{8819, 18059974, 245896, 3435948056 * time.Microsecond}},
		{"azure", "azure_llm_2023_conv.csv", Totals{19366, 22361870, 4088665, 3501721937 * time.Microsecond}},
		{"mooncake", "mooncake_conversation.jsonl", Totals{12031, 144793823, 4122048, 3536999 * time.Millisecond}},
	} {
		w := mustOpen(t, Spec{Dataset: tt.dataset, Path: filepath.Join(dir, tt.file)})
		if got := w.Totals(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.file, got, tt.want)
		}
		for r := range w.Shard(0, 997) {
			checkLengths(t, []Request{r})
		}
	}
	w := mustOpen(t, Spec{Dataset: "sharegpt", Path: filepath.Join(dir, "sharegpt_dummy.json"), NumPrompts: 300, ShareGPTOutputLen: 64})
	checkLengths(t, slices.Collect(w.All()))
	if w.Len() != 300 {
		t.Errorf("sharegpt gives %d of 300 requests", w.Len())
	}
}

func BenchmarkRandom1024(b *testing.B) {
	w, err := Open(Spec{NumPrompts: 100})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for range w.All() {
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "prompts/s")
}
