package block

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/result"
	"perflab/internal/test/calltest"
)

var update = flag.Bool("update", false, "write the golden files")

const msec = time.Millisecond

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got (run with -update to accept)\n%s", name, diff)
	}
}

func summarize(t *testing.T, h result.Header, o result.Options, calls []result.Call) result.Summary {
	t.Helper()
	h.Requests = len(calls)
	s, err := result.Summarize(h, &result.Client{}, o, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// blockRun is a run with every line that a block can have.
func blockRun(t *testing.T) result.Summary {
	bounds, err := result.ParseGoodput("ttft:50")
	if err != nil {
		t.Fatal(err)
	}
	calls := calltest.Steady(200, 20*msec)
	calls[3] = calltest.Fail(calls[3], result.Connect)
	return summarize(t, result.Header{Limit: 64, Rate: 50}, result.Options{Goodput: bounds, Percentiles: []float64{99.9}}, calls)
}

func TestBlockGolden(t *testing.T) {
	s := blockRun(t)
	s.Simulated = true
	golden(t, "block_gpustack.txt", Text(s, Style{Layout: GPUStack}))
}

func TestPrecisionGolden(t *testing.T) {
	s := summarize(t, result.Header{}, result.Options{Percentiles: []float64{99.9}}, calltest.Steady(500, 10*msec))
	golden(t, "precision.txt", Precision(s, Style{Percentiles: []float64{50, 99, 99.9}}))
	if got := Precision(result.Summary{Figures: s.Figures}, Style{}); got != "" {
		t.Errorf("a summary without samples has a precision: %s", got)
	}
}

func TestBlockShowsWhatIsAsked(t *testing.T) {
	got := Text(blockRun(t), Style{Sections: []string{"e2el", "queue"}, Percentiles: []float64{50, 99.9}})
	for _, want := range []string{"\nP50 E2EL (ms):                           ", "\nP99.9 E2EL (ms):                         ", "----End-to-end Latency----", "\nMean Queue (ms): "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "TTFT") || strings.Contains(got, "P99 ") {
		t.Errorf("shows what was not asked for\n%s", got)
	}
}

func TestBlockLeavesOutWhatIsAbsent(t *testing.T) {
	got := Text(result.Summary{Figures: map[string]float64{"completed": 1}}, Style{})
	const want = "============ Serving Benchmark Result ============\n" +
		"Successful requests:                     1\n" +
		"==================================================\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestStyleValidate(t *testing.T) {
	for _, st := range []Style{{Layout: "sglang"}, {Sections: []string{"ttf"}}, {Percentiles: []float64{100.1}}, {Percentiles: []float64{math.NaN()}}} {
		if st.Validate() == nil {
			t.Errorf("%+v is taken", st)
		}
	}
	if err := (Style{Layout: GPUStack, Sections: result.Families(), Percentiles: []float64{0, 100}}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestTitleOfForeignSections: a section does not say that it excludes what its
// figures include.
func TestTitleOfForeignSections(t *testing.T) {
	s := result.Summary{
		Figures:     map[string]float64{"mean_tpot_ms": 89.37, "mean_itl_ms": 66.66},
		Definitions: map[string]result.Definition{"tpot": result.E2EPerTokenWeighted, "itl": result.DecodePerTokenWeighted},
	}
	block := Text(s, Style{})
	if strings.Contains(block, "excl. 1st token") || !strings.Contains(block, "incl. 1st token") || !strings.Contains(block, "of a Request") {
		t.Errorf("the titles are those of our definitions:\n%s", block)
	}
	s.Definitions = map[string]result.Definition{"tpot": result.DecodePerToken, "itl": result.MessageGap}
	if block := Text(s, Style{}); !strings.Contains(block, "(excl. 1st token)") || !strings.Contains(block, "Inter-token Latency-") {
		t.Errorf("the titles of vLLM's figures are vLLM's:\n%s", block)
	}
}

// A block of another client's definitions says whose they are, under its last rule.
func TestBlockSaysWhoseDefinitions(t *testing.T) {
	calls := calltest.Steady(20, 20*msec)
	ours, theirs := summarize(t, result.Header{}, result.Options{}, calls), summarize(t, result.Header{}, result.Options{Compat: result.VLLM}, calls)
	if got := Text(theirs, Style{}); !strings.HasSuffix(got, "=\n"+compatLine+"\n") || strings.Contains(Text(ours, Style{}), compatLine) {
		t.Errorf("the block does not say whose definitions these are, or ours does:\n%s", got)
	}
}

// The block of a run that generates nothing has no line about output.
func TestBlockOfNoOutput(t *testing.T) {
	s := summarize(t, result.Header{}, result.Options{}, []result.Call{{Headers: 30 * msec, End: 40 * msec, Usage: &result.Usage{Prompt: 10}}})
	block := Text(s, Style{Sections: []string{"ttft", "tpot", "itl", "e2el"}})
	if strings.Contains(block, "generated") || strings.Contains(block, "First Token") || !strings.Contains(block, "Total token throughput (tok/s):") {
		t.Errorf("block:\n%s", block)
	}
}

// packedRun has gaps of 160 ms, each of eight tokens that came in one message or in as many.
func packedRun(t *testing.T, oneMessage bool) result.Summary {
	var calls []result.Call
	for i := range 3 {
		c := calltest.Stream(i, time.Duration(i)*msec, 160*msec, 320*msec, 480*msec)
		c.Reads, c.Usage.Completion = 3, 24
		var apart []result.Chunk
		for k := range c.Chunks {
			c.Chunks[k].Read, c.Chunks[k].Tokens = int32(k), 8
			for range 8 {
				apart = append(apart, result.Chunk{At: c.Chunks[k].At, Tokens: 1, Read: int32(k)})
			}
		}
		if !oneMessage {
			c.Chunks = apart
		}
		calls = append(calls, c)
	}
	return summarize(t, result.Header{}, result.Options{}, calls)
}

// Where a gap is of several tokens, the block says of how many, and the gap by token
// stands beside it; of one token, which everybody expects, it says nothing.
func TestPackedTokensAreSaid(t *testing.T) {
	for oneMessage, say := range map[bool]string{true: "per chunk of 8.0 tokens", false: "per read of 8.0 tokens"} {
		s := packedRun(t, oneMessage)
		block := Text(s, Style{})
		for _, want := range []string{
			"Inter-token Latency (" + say + ")-", "\nMean ITL (ms):                           160.00\n",
			"Inter-token Latency per Token-", "\nMean ITL per token (ms):                 20.00\n",
		} {
			if !strings.Contains(block, want) {
				t.Errorf("no %q in\n%s", want, block)
			}
		}
		if got := Precision(s, Style{}); !strings.Contains(got, "Mean ITL, "+say+" ") || !strings.Contains(got, "Mean ITL per token ") {
			t.Errorf("the precision does not say what the gaps are of:\n%s", got)
		}
	}
	if got := Text(summarize(t, result.Header{}, result.Options{}, calltest.Steady(20, 10*msec)), Style{}); strings.Contains(got, "(per") {
		t.Errorf("one token is said:\n%s", got)
	}
}

// A block's lines keep the labels that tools look for, and a figure that is open has what
// it can be in lines of its own.
func TestBlockSaysWhatIsOpen(t *testing.T) {
	s := result.Summary{
		Figures: map[string]float64{"mean_itl_ms": 20, "p99_itl_ms": 82.4, "p99_e2el_ms": 1100},
		Bounds:  map[string][2]float64{"p99_itl_ms": {42.31, 90}, "mean_itl_ms": {19.9, 20.1}, "p99_e2el_ms": {1000, 1100}},
	}
	block := Text(s, Style{})
	if want := "P99 ITL (ms):                            82.40\nP99 ITL at least (ms):                   42.31\nP99 ITL at most (ms):                    90.00\n"; !strings.Contains(block, want) {
		t.Errorf("no\n%s in\n%s", want, block)
	}
	if strings.Contains(block, "Mean ITL at") {
		t.Errorf("a mean that is off by 0.5 %% at most is said to be open:\n%s", block)
	}
	if got := Text(s, Style{Layout: GPUStack}); !strings.Contains(got, "P99 Latency(s):                           1.10\nP99 Latency at least (s):                 1.00\n") {
		t.Errorf("seconds:\n%s", got)
	}
	if got := Precision(result.Summary{Figures: s.Figures, Bounds: s.Bounds, Samples: map[string]int{"itl": 10}}, Style{}); !strings.Contains(got, ", late reads leave it open from 42.31 to 90.00\n") {
		t.Errorf("precision:\n%s", got)
	}
}

// TestApproximateIsSaid: a figure of a very long run that is not exact says so beside its
// interval.
func TestApproximateIsSaid(t *testing.T) {
	calls := calltest.Steady(1500, 10*msec)
	acc, err := result.NewLimited(result.Header{Requests: len(calls)}, result.Options{}, result.Limits{Bytes: 100_000, Some: 50_000, Rows: 700})
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		acc.Add(&calls[i])
	}
	a, err := acc.Analyze(&result.Client{}, result.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := Precision(a.Summary(), Style{})
	for _, want := range []string{"P99 ITL ", "P99 TTFT ", "Peak output token throughput "} {
		_, line, _ := strings.Cut(text, want)
		if line, _, _ = strings.Cut(line, "\n"); !strings.Contains(line, "within 0.") {
			t.Errorf("the line of %s does not say how far it may be off:\n%s", want, text)
		}
	}
	if _, line, _ := strings.Cut(text, "Mean TTFT "); strings.Contains(strings.SplitN(line, "\n", 2)[0], "within") {
		t.Errorf("a mean is exact:\n%s", text)
	}
}

// What was read has a title by what is there: cost and figures per GPU alone are no telemetry.
func TestTelemetry(t *testing.T) {
	for _, tt := range []struct {
		figures map[string]float64
		want    string
	}{
		{nil, ""},
		{map[string]float64{"output_throughput_per_gpu": 25}, "Per GPU\n  Output token throughput per GPU  25.00 tok/s\n"},
		{map[string]float64{"output_throughput_per_gpu": 25, "cost_per_million_tokens": 100}, "Cost\n  Cost per million tokens          100.0000 EUR\n  Output token throughput per GPU  25.00 tok/s\n"},
		{map[string]float64{"cost_per_million_tokens": 100, "mean_kv_usage": 0.5, "max_kv_usage": 0.75, "goodput_rate": 3}, "Telemetry\n  KV cache in use          mean 50.0 %, peak 75.0 %\n  Cost per million tokens  100.0000 EUR\n"},
	} {
		if diff := cmp.Diff(tt.want, Telemetry(result.Summary{Figures: tt.figures, Currency: "EUR"})); diff != "" {
			t.Errorf("%v: -want +got\n%s", tt.figures, diff)
		}
	}
}

// FuzzText: what is read of a summary can be shown.
func FuzzText(f *testing.F) {
	f.Add([]byte(`{"completed":3,"p99_ttft_ms":1.5,"mean_itl_ms":null,"failures_by_class":{"http":1},"definitions":{"ttft":"first-message"},"partial":true}`), GPUStack)
	f.Add([]byte(`{"p1e2_ttft_ms":1,"p_ttft_ms":2,"p99.99999_itl_ms":-0}`), "")
	f.Fuzz(func(_ *testing.T, data []byte, layout string) {
		var s result.Summary
		if json.Unmarshal(data, &s) != nil {
			return
		}
		st := Style{Layout: layout, Percentiles: s.Percentiles()}
		_, _, _ = Text(s, st), Precision(s, st), Telemetry(s)
	})
}
