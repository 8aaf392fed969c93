package redefine

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/test/calltest"
)

// TestByIsCompat: of the definitions of vllm bench serve there is one meaning,
// whether a run is asked for it from the start or its calls are afterwards.
func TestByIsCompat(t *testing.T) {
	calls := append(redefineCalls(), calltest.Steady(30, 50*msec)...)
	for i := range calls {
		calls[i].Index = i
	}
	calls = append(calls, calltest.Fail(calls[2], result.EarlyClose))
	want, err := result.Summarize(result.Header{}, nil, result.Options{Compat: result.VLLM, Percentiles: []float64{75}}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	got, err := By(result.DefinitionsOf(result.VLLM), result.Header{}, []float64{75}, calls)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Missing) > 0 {
		t.Errorf("missing: %v", got.Missing)
	}
	held := 0
	for name, v := range want.Figures {
		if want.Definition(name) == result.Ours {
			continue
		}
		held++
		if x, ok := got.Summary.Figures[name]; !ok || math.Abs(x-v) > 1e-9 {
			t.Errorf("%s is %v, %v; want %v", name, x, ok, v)
		}
		if want.Definition(name) != got.Summary.Definition(name) {
			t.Errorf("%s is by %q, want %q", name, got.Summary.Definition(name), want.Definition(name))
		}
	}
	if held < 30 {
		t.Errorf("%d figures are by vLLM's definitions", held)
	}
}

const msec = time.Millisecond

// redefineCalls are two calls whose figures can be reckoned by hand: one connects for 10 ms
// and has a message of its role with the first token, and a finishing one; the other
// has chunks of two tokens.
func redefineCalls() []result.Call {
	at := func(ms int) time.Duration { return time.Duration(ms) * msec }
	a := result.Call{Index: 0, Due: at(0), Ready: at(0), Sent: at(10), End: at(250), Done: at(240), Answer: at(110), Usage: &result.Usage{Prompt: 10, Completion: 3}}
	a.New, a.Dial = true, at(10)
	a.Empty = []result.Stamp{{At: at(110), Read: 0}, {At: at(230), Read: 3}}
	a.Chunks = []result.Chunk{{At: at(110), Tokens: 1, Read: 0}, {At: at(130), Tokens: 1, Read: 1}, {At: at(210), Tokens: 1, Read: 2}}
	b := result.Call{Index: 1, Due: at(990), Ready: at(990), Sent: at(1000), End: at(2100), Usage: &result.Usage{Prompt: 20, Completion: 4}}
	b.Chunks = []result.Chunk{{At: at(1200), Tokens: 2, Read: 0}, {At: at(2000), Tokens: 2, Read: 1}}
	return []result.Call{a, b}
}

func TestBy(t *testing.T) {
	const stream = "e2el"
	for _, x := range []struct {
		name    string
		defs    map[string]result.Definition
		figure  string
		want    float64
		missing string // of what, instead
	}{
		// start 0 and 1000; first text 110 and 1200
		{"connecting is in the TTFT", map[string]result.Definition{"ttft": result.FirstText}, "mean_ttft_ms", (110 + 200) / 2., ""},
		{"", map[string]result.Definition{"ttft": result.FirstChunk}, "max_ttft_ms", 200, ""},
		{"a role message with the token", map[string]result.Definition{"ttft": result.FirstIteration}, "min_ttft_ms", 110, ""},
		{"", map[string]result.Definition{"ttfa": result.FirstText}, "max_ttfa_ms", 110, ""},
		// ends 210 and 2000 by text, 240 (its [DONE]) and 2100 (no [DONE]) by the stream, 230 and 2000 by messages
		{"", map[string]result.Definition{stream: result.StreamEnd}, "mean_e2el_ms", (240 + 1100) / 2., ""},
		{"", map[string]result.Definition{stream: result.LastMessage}, "mean_e2el_ms", (230 + 1000) / 2., ""},
		{"", map[string]result.Definition{"e2el_due": result.LastMessage, stream: result.LastMessage}, "max_e2el_due_ms", 1010, ""},
		{"decoding ends with the text", map[string]result.Definition{"ttft": result.FirstText, "itl": result.DecodePerToken}, "mean_itl_ms", (100/2. + 800/3.) / 2, ""},
		{"decoding ends with the stream", map[string]result.Definition{"ttft": result.FirstText, "tpot": result.DecodePerToken, stream: result.StreamEnd}, "mean_tpot_ms", (130/2. + 900/3.) / 2, ""},
		{"", map[string]result.Definition{"tpot": result.E2EPerToken, stream: result.StreamEnd}, "mean_tpot_ms", (240/3. + 1100/4.) / 2, ""},
		{"", map[string]result.Definition{"itl": result.ChunkGap}, "mean_itl_ms", (20 + 80 + 800) / 3., ""},
		{"", map[string]result.Definition{"itl": result.TokenGapMean}, "mean_itl_ms", (20 + 80 + 400 + 400) / 4., ""},
		{"", map[string]result.Definition{"itl": result.TokenGapZeros}, "mean_itl_ms", (20 + 80 + 0 + 800 + 0) / 5., ""},
		{"", map[string]result.Definition{"ttft": result.FirstText, "max_output_tokens_per_s": result.MessageBuckets}, "max_output_tokens_per_s", 3, ""},
		{"tokens or messages, which differ", map[string]result.Definition{"itl": result.TokenGapMean, "max_output_tokens_per_s": result.MessageBuckets}, "", 0, "max_output_tokens_per_s"},
		{"they touch no second together", map[string]result.Definition{stream: result.StreamEnd, "max_concurrent_requests": result.SecondBuckets}, "max_concurrent_requests", 1, ""},
		{"", map[string]result.Definition{"max_concurrency": result.MeasuredMaximum}, "max_concurrency", 1, ""},
		// from the first due to the last end: 2.1 s
		{"", map[string]result.Definition{stream: result.StreamEnd, "max_concurrent_requests": result.MeanInFlight}, "max_concurrent_requests", (0.240 + 1.100) / 2.1, ""},
		// guidellm's own, which counts from the sending: 200 ms of 3 tokens and 1000 ms of 4
		{"weighted by tokens", map[string]result.Definition{"tpot": result.E2EPerTokenWeighted}, "mean_tpot_ms", 1200 / 7., ""},
		{"", map[string]result.Definition{"queue": result.FirstText}, "", 0, "queue"},
		{"", map[string]result.Definition{"output_throughput": result.MessageBuckets}, "", 0, "output_throughput"},
	} {
		got, err := By(x.defs, result.Header{}, nil, redefineCalls())
		if err != nil {
			t.Fatal(err)
		}
		if x.missing != "" {
			if _, ok := got.Summary.Figures[x.missing]; got.Missing[x.missing] == "" || ok {
				t.Errorf("%v: missing %v, figures %v", x.defs, got.Missing, got.Summary.Figures)
			}
			continue
		}
		v, ok := got.Summary.Figures[x.figure]
		if !ok || math.Abs(v-x.want) > 1e-9 {
			t.Errorf("%s %v: %s is %v, %v; want %v (%v)", x.name, x.defs, x.figure, v, ok, x.want, got.Missing)
		}
	}
}

// TestByLeavesOut: what the calls leave open is not guessed.
func TestByLeavesOut(t *testing.T) {
	calls := redefineCalls()
	calls[0].Empty[0].At = 50 * msec // the message of the role, long before the token
	calls[1].Usage.Completion = 7    // of which two chunks brought an unknown share each
	for name, x := range map[string]struct {
		d    result.Definition
		says string
	}{"ttft": {result.FirstIteration, "message of the role"}, "itl": {result.TokenGapMean, "how many tokens"}, "tpot": {result.MessageGap, "no way"}} {
		got, err := By(map[string]result.Definition{name: x.d}, result.Header{}, nil, calls)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.Missing[name], x.says) || len(got.Summary.Figures) > 0 || len(got.Summary.Definitions) > 0 {
			t.Errorf("%s by %s: %v, %v", name, x.d, got.Missing, got.Summary.Figures)
		}
	}
	if got, err := By(result.DefinitionsOf(result.VLLM), result.Header{}, nil, nil); err != nil || len(got.Summary.Figures) > 0 || len(got.Missing) == 0 {
		t.Errorf("no calls: %+v, %v", got, err)
	}
}

// TestSampler: the samples of a comparison are those behind the figures.
func TestSampler(t *testing.T) {
	defs := map[string]result.Definition{"ttft": result.FirstText, "tpot": result.MessageGap}
	f, err := By(defs, result.Header{}, nil, redefineCalls())
	if err != nil {
		t.Fatal(err)
	}
	sample := f.Sampler("ttft")
	var x []float64
	calls := redefineCalls()
	for i := range calls {
		x = sample(&calls[i], x)
	}
	if len(x) != 2 || x[0] != 110 || x[1] != 200 {
		t.Errorf("samples %v", x)
	}
	if f.Sampler("tpot") != nil || f.Sampler("e2el") != nil {
		t.Error("a family without a way from calls has a sampler")
	}
}
