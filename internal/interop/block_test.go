package interop

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/block"
	"perflab/internal/result"
)

// dump writes a run as lines, to be compared.
func dump(r Run) []string {
	lines := []string{fmt.Sprintf("%d-%d %s sim=%v", r.Place.Line, r.Place.End, r.Header.Imported.Client, r.Sim)}
	for _, f := range r.Figures {
		line := fmt.Sprintf("%d %s %v±%v %q %s", f.Line, f.Name, f.Value, f.Half, f.Text, r.Definition(f.Name))
		lines = append(lines, strings.TrimSpace(line))
	}
	for _, p := range r.Other {
		lines = append(lines, fmt.Sprintf("%d other %s=%s", p.Line, p.Label, p.Text))
	}
	return lines
}

func TestDialects(t *testing.T) {
	data, err := os.ReadFile("testdata/blocks.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/blocks.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{string(data), strings.ReplaceAll(string(data), "\n", "\r\n"), "\xef\xbb\xbf" + strings.ReplaceAll(string(data), "    ", "\t")} {
		f := Read("blocks.md", []byte(data))
		if len(f.Faults) != 0 {
			t.Errorf("faults %v", f.Faults)
		}
		var got []string
		for _, r := range f.Runs {
			got = append(got, strings.Join(dump(r), "\n")+"\n")
		}
		if diff := cmp.Diff(string(want), strings.Join(got, "\n")); diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
	}
}

func TestFaultsOfBlocks(t *testing.T) {
	const head, rule = "== Serving Benchmark Result ==\n", "==========\n"
	for _, c := range []struct {
		name, text string
		runs       int
		want       []string
	}{
		{"clean", head + "Successful requests: 1\n" + rule, 1, nil},
		{"no such figure", head + "Successful requests: 1\nP99 TTFT (ms): N/A\nRequest rate configured (RPS): inf\nMaximum request concurrency: not set\n" + rule, 1, nil},
		{"text for a number", head + "Successful requests: 1\nMean TTFT (ms): fast\n" + rule, 1, []string{`x:3: "Mean TTFT (ms)" has no number ("fast")`}},
		{"nan", head + "Successful requests: 1\nMean TTFT (ms): nan\nMean ITL (ms): inf\n" + rule, 1, []string{`x:3: "Mean TTFT (ms)" has no number ("nan")`, `x:4: "Mean ITL (ms)" has`}},
		{"bad groups", head + "Successful requests: 1\nTotal input tokens: 1,23\n" + rule, 1, []string{`x:3: "Total input tokens" has no number`}},
		{"groups", head + "Total input tokens: 1,234,567\n" + rule, 1, nil},
		{"twice", head + "Mean TTFT (ms): 1\nMean TTFT (ms): 2\n" + rule, 1, []string{`x:3: the block has "Mean TTFT (ms)" twice, with 1 and 2`}},
		{"twice the same", head + "Mean TTFT (ms): 1\nMean TTFT (ms): 1\n" + rule, 1, nil},
		{"empty", head + rule, 0, []string{"x:1: the head of a result has no figure"}},
		{"cut by the end", head + "Mean TTFT (ms): 1\n", 1, []string{"x:2: the block ends at the end of the file"}},
		{"cut by a head", head + "Mean TTFT (ms): 1\n" + head + "Mean TTFT (ms): 1\n" + rule, 2, []string{"x:2: the block ends at the head of the next"}},
		{"cut by a fence", "```\n" + head + "Mean TTFT (ms): 1\n```\n", 1, []string{"x:3: the block ends without its closing rule"}},
		{"cut by a comment", "```\n" + head + "Mean TTFT (ms): 1\n\n# next\n" + head + "Mean TTFT (ms): 2\n" + rule + "```\n", 2, []string{"x:3: the block ends without its closing rule"}},
		{"cut by prose", head + "Mean TTFT (ms): 1\n\nThat was fast.\n", 1, []string{"x:2: the block ends without its closing rule"}},
		{"blank lines in it", head + "\nMean TTFT (ms): 1\n\nMean ITL (ms): 1\n" + rule, 1, nil},
		{"no head", "Successful requests: 1\nMean TTFT (ms): 1\n-----Inter-token Latency-----\nMean ITL (ms): 2\n" + rule, 1, []string{"x:1: the block has no head line"}},
		{"too little without a head", "Mean TTFT (ms): 1\nMean ITL (ms): 2\n" + rule, 0, []string{`x:1: "Mean TTFT (ms)" begins what looks like a result without a head`}},
		{"two without heads", "Mean TTFT (ms): 1\n\n\n\nMean TTFT (ms): 2\n", 0, []string{"x:1:", "x:5:"}},
		{"a blank line in one", "Mean TTFT (ms): 1\n\nMean ITL (ms): 2\n", 0, []string{"x:1:"}},
		{"prose about figures", "Mean TTFT (ms): lower is better\n- Mean TTFT: 5\n\n| Mean TTFT (ms): 1 |\n|---|\n", 0, nil},
		{"underlined heading", "Results\n==========\n\ntext\n\n# a\n", 0, nil},
	} {
		f := Read("x", []byte(c.text))
		if len(f.Runs) != c.runs || len(f.Faults) != len(c.want) {
			t.Errorf("%s: %d runs, faults %v; want %d, %q", c.name, len(f.Runs), f.Faults, c.runs, c.want)
			continue
		}
		for i, want := range c.want {
			if got := f.Faults[i].String(); !strings.HasPrefix(got, want) {
				t.Errorf("%s: fault %q, want %q", c.name, got, want)
			}
		}
	}
}

// TestHeadless: a block that lost its head line is read like one that has it,
// with a remark, whatever stands in place of the line.
func TestHeadless(t *testing.T) {
	const rule = "==================================================\n"
	const figures = "Successful requests: 10\nBenchmark duration (s): 5.00\nTotal generated tokens: 1000\n" +
		"---------------Time to First Token----------------\nMean TTFT (ms): 12.00\n---------------Inter-token Latency----------------\nMean ITL (ms): 9.00\n"
	whole := Read("x", []byte("============ Serving Benchmark Result ============\n"+figures+rule))
	for name, text := range map[string]string{
		"alone":              figures + rule,
		"no rule either":     figures,
		"in a fence":         "# Results\n\n```\n" + figures + rule + "```\n",
		"under a rule alone": "# Results\n\n```\n" + rule + figures + rule + "```\n",
		"a heading for it":   "# Study\n\n### Serving Benchmark Result\n\n" + figures,
		"beside other text":  "output: ============ Serving Benchmark Result ============ of vllm\n" + figures + rule,
		"quoted":             "> " + strings.ReplaceAll(figures+strings.TrimSuffix(rule, "\n"), "\n", "\n> ") + "\n",
		"its top is lost":    figures[strings.Index(figures, "Benchmark"):] + "Mean TPOT (ms): 9.00\n",
		"after another":      "```\n============ Serving Benchmark Result ============\n" + figures + rule + "\n" + figures + rule + "```\n",
	} {
		f := Read("x", []byte(text))
		if len(f.Runs) == 0 || len(f.Faults) != 1 || f.Faults[0].Kind != Recovered {
			t.Errorf("%s: %d runs, faults %v", name, len(f.Runs), f.Faults)
			continue
		}
		got := f.Runs[len(f.Runs)-1]
		if name != "its top is lost" && got.FigureKey() != whole.Runs[0].FigureKey() || got.Text("mean_itl_ms") != "9.00" {
			t.Errorf("%s: read %s", name, got.FigureKey())
		}
	}
	for name, text := range map[string]string{
		"a list in prose":  "Mean TTFT (ms): 12.00\nMean ITL (ms): 9.00\nMean TPOT (ms): 8.00\nP99 TTFT (ms): 20.00\nP99 ITL (ms): 30.00\n",
		"what labels mean": "Successful requests: those that ended\nBenchmark duration (s): of the run\nMean TTFT (ms): lower is better\n",
	} {
		if f := Read("x", []byte(text)); len(f.Runs) != 0 {
			t.Errorf("%s: is taken for a block", name)
		}
	}
}

// TestUnmeasuredInBlocks: zeros of a whole family are no figures, and are told where
// there was something to measure.
func TestUnmeasuredInBlocks(t *testing.T) {
	const head, rule = "== Serving Benchmark Result ==\nSuccessful requests: 10\n", "==========\n"
	const zeros = "Mean TTFT (ms): 12.00\nMean ITL (ms): 0.00\nMedian ITL (ms): 0.00\nP99 ITL (ms): 0.00\n"
	for _, c := range []struct {
		name, text string
		faults     int
	}{
		{"answers of many tokens", head + "Total generated tokens: 1000\n" + zeros + rule, 1},
		{"answers of one token", head + "Total generated tokens: 10\n" + zeros + rule, 0},
		{"nothing succeeded", strings.Replace(head, "10", "0", 1) + "Failed requests: 10\nTotal generated tokens: 0\n" + zeros + rule, 0},
		{"a median of zero", head + "Total generated tokens: 1000\nMean ITL (ms): 2.00\nMedian ITL (ms): 0.00\n" + rule, 0},
	} {
		f := Read("x", []byte(c.text))
		if len(f.Faults) != c.faults || c.faults > 0 && (f.Faults[0].Kind != Unmeasured || f.Faults[0].Line != 5 || len(f.Runs[0].Unmeasured) != 3) {
			t.Errorf("%s: faults %v", c.name, f.Faults)
		}
		if _, ok := f.Runs[0].Figure("p99_itl_ms"); ok {
			t.Errorf("%s: P99 ITL is a figure", c.name)
		}
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string][2]float64{
		"0": {0, 0.5}, "12": {12, 0.5}, "2.35": {2.35, 0.005}, "-0.1": {-0.1, 0.05}, "1e3": {1000, 500}, "1.5E-2": {0.015, 0.0005}, "1,000.5": {1000.5, 0.05}, "+3.": {3, 0.5},
	} {
		v, half, ok := number(text)
		if !ok || v != want[0] || math.Abs(half-want[1]) > 1e-12*want[1] {
			t.Errorf("%q: %v ± %v, %v; want %v", text, v, half, ok, want)
		}
	}
	for _, text := range []string{"", ".", "e", "1e", "1e400", "0e999", "inf", "nan", "0x10", "1_000", "1,00", ",100", "1,000,00", "1000,000", "1.0,5", "1 2", "--1", strings.Repeat("1", 65)} {
		if v, half, ok := number(text); ok {
			t.Errorf("%q is taken for %v ± %v", text, v, half)
		}
	}
}

// every returns a summary with every figure that a block can have.
func every() result.Summary {
	s := result.Summary{Figures: map[string]float64{}, Samples: map[string]int{}}
	v := 17.123456
	for _, m := range result.Metrics() {
		v = math.Mod(v*1.618, 9000) + 1
		s.Figures[m.Name] = v
		if m.Decimals == 0 {
			s.Figures[m.Name] = math.Round(v)
		}
		s.Samples[m.Family] = 1000
	}
	return s
}

// What is printed reads back as the printed digits, and nothing is left over.
func TestBlockRoundTrip(t *testing.T) {
	s := every()
	s.Figures["p99.9_ttft_ms"] = 12.3456
	for _, st := range []block.Style{
		{},
		{Sections: result.Families(), Percentiles: []float64{50, 95, 99.9}},
		{Layout: block.GPUStack},
		{Layout: block.GPUStack, Sections: result.Families(), Percentiles: []float64{50, 95, 99.9}},
	} {
		s.Simulated = !s.Simulated
		text := block.Text(s, st)
		under := block.Precision(s, st) + result.Verdict{Status: result.Sound}.Text()
		f := Read("x", []byte("before\n"+text+under+"after: 1\n"))
		if len(f.Runs) != 1 || len(f.Faults) != 0 {
			t.Fatalf("%d runs, faults %v in\n%s", len(f.Runs), f.Faults, text)
		}
		r := f.Runs[0]
		if len(r.Other) != 0 || r.Sim != s.Simulated || r.Header.Imported.Client != clientPerflab {
			t.Errorf("%s: other lines %v, simulated %v, client %s", st.Layout, r.Other, r.Sim, r.Header.Imported.Client)
		}
		lines := strings.Count(text, ": ")
		if s.Simulated {
			lines--
		}
		if len(r.Figures) != lines {
			t.Errorf("%d figures of %d lines", len(r.Figures), lines)
		}
		for _, fig := range r.Figures {
			want := s.Figures[fig.Name]
			if st.Layout == block.GPUStack && fig.Name == "max_concurrency" {
				want = s.Figures["max_concurrent_requests"]
			}
			if math.Abs(fig.Value-want) > fig.Half*1.0000001 && !(fig.Half == 0 && math.Round(want) == fig.Value) {
				t.Errorf("%s %s: %v ± %v, is %v", st.Layout, fig.Name, fig.Value, fig.Half, want)
			}
		}
	}
}

func TestDefinitionsOfOwnBlocks(t *testing.T) {
	s := every()
	for _, c := range []struct {
		layout, compat, under string
		ttft, limit           result.Definition
		client                string
	}{
		{"", "", "", result.FirstMessage, "", clientVLLM}, // nothing tells who printed it
		{"", "", "Verdict: sound (3 checks)\n", "", "", clientPerflab},
		{"", result.VLLM, "", result.FirstMessage, "", clientPerflab},
		{"", result.VLLM, "Verdict: sound (3 checks)\n", result.FirstMessage, "", clientPerflab},
		{block.GPUStack, "", "Verdict: sound (3 checks)\n", "", result.MeasuredMaximum, clientPerflab},
		{"", "", "Some text.\nVerdict: sound (3 checks)\n", result.FirstMessage, "", clientVLLM},
	} {
		s.Compat = c.compat
		r := Read("x", []byte(block.Text(s, block.Style{Layout: c.layout})+c.under)).Runs[0]
		if r.Definition("mean_ttft_ms") != c.ttft || r.Definition("max_concurrency") != c.limit || r.Header.Imported.Client != c.client {
			t.Errorf("%+v: %q, %q, %s", c, r.Definition("mean_ttft_ms"), r.Definition("max_concurrency"), r.Header.Imported.Client)
		}
	}
}

func FuzzReadText(f *testing.F) {
	for _, name := range []string{"testdata/blocks.md", "testdata/study.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("== serving  BENCHMARK result ==\nMean TTFT (ms): 1e9\np99.9 latency(s):1e308\n:\n==========")
	f.Add("---\n|\n|-|\n|<br>\\||\n```\n$ vllm serve M \\\n```\n**b**\n> # q\n4 nodes")
	f.Fuzz(func(t *testing.T, s string) {
		file := readText("x", []byte(s))
		last := 1 + strings.Count(s, "\n")
		inside := func(what string, line, end int) {
			if line < 1 || end < line || end > last {
				t.Fatalf("%s in lines %d to %d of %d: %q", what, line, end, last, s)
			}
		}
		for _, r := range file.Runs {
			inside("run", r.Place.Line, r.Place.End)
			names := map[string]bool{}
			for _, fig := range r.Figures {
				inside(fig.Name, fig.Line, fig.Line)
				if m, err := result.Lookup(fig.Name); err != nil || m.Name != fig.Name || names[fig.Name] {
					t.Fatalf("figure %q: %v, twice %v", fig.Name, err, names[fig.Name])
				}
				names[fig.Name] = true
				if !(fig.Half >= 0) || math.IsInf(fig.Half, 0) || math.IsNaN(fig.Value) || math.IsInf(fig.Value, 0) {
					t.Fatalf("%+v", fig)
				}
			}
			if len(r.Figures) == 0 || r.Header.Imported == nil {
				t.Fatalf("%+v", r)
			}
		}
		for _, x := range file.Faults {
			inside("fault", x.Line, max(x.Line, x.End))
		}
		for _, x := range file.Doc.Sections {
			inside("section", x.Line, x.Line)
			if len(x.Path) == 0 || x.Path[len(x.Path)-1] != x.Title {
				t.Fatalf("section %+v", x)
			}
		}
		for _, x := range file.Doc.Tables {
			inside("table", x.Line, x.End)
		}
		for _, x := range file.Doc.Scripts {
			inside("script", x.Line, x.End)
		}
		if !slices.IsSortedFunc(file.Faults, func(a, b Fault) int { return a.Line - b.Line }) {
			t.Fatalf("faults are not in order: %v", file.Faults)
		}
	})
}
