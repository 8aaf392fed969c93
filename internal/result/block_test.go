package result

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

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

// blockRun is a run with every line that a block can have.
func blockRun(t *testing.T) Summary {
	bounds, err := ParseGoodput("ttft:50")
	if err != nil {
		t.Fatal(err)
	}
	calls := steady(200, 20*msec)
	calls[3] = fail(calls[3], Connect)
	return summarize(t, Header{Limit: 64, Rate: 50}, Options{Goodput: bounds, Percentiles: []float64{99.9}}, calls)
}

func TestBlockGolden(t *testing.T) {
	s := blockRun(t)
	golden(t, "block_vllm.txt", Block(s, Style{})+s.Verdict.Text())
	s.Simulated = true
	golden(t, "block_gpustack.txt", Block(s, Style{Layout: GPUStack}))
}

func TestBlockShowsWhatIsAsked(t *testing.T) {
	got := Block(blockRun(t), Style{Sections: []string{"e2el", "queue"}, Percentiles: []float64{50, 99.9}})
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
	got := Block(Summary{Figures: map[string]float64{"completed": 1}}, Style{})
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
	if err := (Style{Layout: GPUStack, Sections: BlockSections(), Percentiles: []float64{0, 100}}).Validate(); err != nil {
		t.Error(err)
	}
}

// What is printed reads back as the printed digits, and nothing is left over.
func TestBlockRoundTrip(t *testing.T) {
	s := blockRun(t)
	for _, st := range []Style{
		{Sections: BlockSections(), Percentiles: []float64{50, 95, 99.9}},
		{Layout: GPUStack, Sections: BlockSections(), Percentiles: []float64{50, 95, 99.9}},
	} {
		s.Simulated = !s.Simulated
		text := Block(s, st) + s.Verdict.Text()
		blocks := ParseBlocks("before\n" + text + "after: 1\n")
		if len(blocks) != 1 {
			t.Fatalf("%d blocks in\n%s", len(blocks), text)
		}
		b := blocks[0]
		if len(b.Other) != 0 || b.Simulated != s.Simulated {
			t.Errorf("other lines %v, simulated %v of\n%s", b.Other, b.Simulated, text)
		}
		lines := strings.Count(text[:strings.LastIndex(text, "=\n")], ": ") // of label and value
		if s.Simulated {
			lines--
		}
		want := lines
		if st.Layout == GPUStack {
			want-- // the measured concurrency stands there twice
		}
		if len(b.Figures) != want {
			t.Errorf("%d figures of %d lines", len(b.Figures), lines)
		}
		for name, got := range b.Figures {
			m, err := Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			unit := math.Pow(10, -float64(m.Decimals))
			if st.Layout == GPUStack && m.Family == "e2el" {
				unit *= 1000
			}
			if math.Abs(got-s.Figures[name]) > 0.5000001*unit {
				t.Errorf("%s %s: printed %v, is %v", st.Layout, name, got, s.Figures[name])
			}
		}
	}
}

func TestParsePublishedBlocks(t *testing.T) {
	text, err := os.ReadFile("testdata/published.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []ParsedBlock{
		{3, VLLM, false, map[string]float64{
			"completed": 1000, "duration": 178.01, "total_input_tokens": 217393, "total_output_tokens": 201422,
			"request_throughput": 5.62, "output_throughput": 1131.55, "max_output_tokens_per_s": 2360, "max_concurrent_requests": 1000,
			"total_token_throughput": 2352.82, "mean_ttft_ms": 78118.74, "median_ttft_ms": 77291.46, "p99_ttft_ms": 153161.51, "mean_tpot_ms": 88.09,
		}, map[string]string{}},
		{23, VLLM, false, map[string]float64{
			"completed": 10, "failed": 0, "duration": 10.52, "total_token_throughput": 1094.79, "p99_itl_ms": 515.58,
		}, map[string]string{}},
		{32, GPUStack, false, map[string]float64{
			"completed": 1000, "max_concurrent_requests": 59, "duration": 132.25, "max_output_tokens_per_s": 1410355.61,
			"total_token_throughput": 4734.87, "mean_e2el_ms": 5320, "p95_e2el_ms": 13390, "p95_ttft_ms": 102.52,
		}, map[string]string{}},
		{47, SGLang, true, map[string]float64{
			"completed": 1000, "mean_e2el_ms": 4137, "max_itl_ms": 12.5,
		}, map[string]string{
			"backend": "sglang", "traffic request rate": "inf", "max request concurrency": "not set",
			"concurrency": "7.5", "p99 e2e latency (ms)": "nan",
		}},
	}
	if diff := cmp.Diff(want, ParseBlocks(string(text))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func FuzzParseBlocks(f *testing.F) {
	text, err := os.ReadFile("testdata/published.md")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("== serving  BENCHMARK result ==\nMean TTFT (ms): 1e9\np99.9 latency(s):1e308\n:\n==========")
	f.Fuzz(func(t *testing.T, s string) {
		for _, b := range ParseBlocks(s) {
			for name, v := range b.Figures {
				if m, err := Lookup(name); err != nil || m.Name != name || math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("figure %q = %v: %v", name, v, err)
				}
			}
			if b.Line < 1 || b.Line > 1+strings.Count(s, "\n") {
				t.Fatalf("block at line %d of %q", b.Line, s)
			}
		}
	})
}
