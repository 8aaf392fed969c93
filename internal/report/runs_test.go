package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/block"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/report/runplot"
	"perflab/internal/result"
	"perflab/internal/verdict"
)

// twoRuns are a burst and a slower one, with headers that agree.
func twoRuns(t *testing.T) []Side {
	t.Helper()
	var sides []Side
	for i, slower := range []time.Duration{0, 30 * time.Millisecond} {
		h, calls := burst(120)
		h.Simulated, h.Fingerprint, h.Cache, h.Tokenizer, h.Clock = false, "a1b2", "unique", "server usage", result.ClockMonotonic
		for k := range calls {
			for j := range calls[k].Chunks {
				calls[k].Chunks[j].At += slower
			}
			calls[k].End += slower
		}
		s, err := verdict.Summarize(h, &result.Client{}, result.Options{}, slices.Values(calls))
		if err != nil {
			t.Fatal(err)
		}
		sides = append(sides, Side{[]string{"before", "after"}[i], h, s, calls})
	}
	return sides
}

// sweep is a server that saturates between 8 and 16 requests/s; the last run
// is void and one was all at once.
func sweep() Curve {
	c := Curve{Title: "Sweep of Qwen3-8B under random", Axis: "Request rate (req/s)", Offered: true,
		Facts: []Fact{{"Started", "2026-11-20 08:30 UTC"}, {"Model", "Qwen3-8B"}, {"Seeds", "5 to 11"}}, Started: time.Date(2026, 11, 20, 8, 30, 12, 0, time.UTC),
		SLOs: []result.SLO{{Metric: "p99_ttft_ms", Op: "<=", Limit: 500}, {Metric: "p99_tpot_ms", Op: "<=", Limit: 60}}}
	for _, x := range []float64{8, 1, 2, 4, 16, 32, math.Inf(1)} {
		served := min(x, 11)
		p := CurvePoint{
			X: x, Load: fmt.Sprintf("rate %g", x), Name: fmt.Sprintf("rate-%g", x), Offered: x, Achieved: served, Saturated: x > 11,
			Summary: *sum(200, 1000, 200, served*1200, 40*(1+served)*max(1, min(x, 40)/11), 12+served),
		}
		if math.IsInf(x, 1) {
			p.Load, p.Name, p.Offered, p.Saturated = "throughput", "throughput", 0, false
		}
		for _, slo := range c.SLOs {
			if v := p.Summary.Figures[slo.Metric]; v > slo.Limit {
				p.Missed = append(p.Missed, fmt.Sprintf("%s %g > %g", slo.Metric, math.Round(v), slo.Limit))
			}
		}
		if p.Saturated {
			p.Summary.Verdict = result.Verdict{Status: result.Noted, Checks: []result.Check{{Name: result.CheckSaturation, Status: result.Noted, Text: "the server is saturated, latency grows with the length of the run"}}}
		}
		if x == 32 {
			p.Void = true
			p.Summary.Verdict = result.Verdict{Status: result.Voided, Checks: []result.Check{{Name: "dispatch_lag", Status: result.Voided, Text: "dispatch lag p99 12.400 ms, allowed 1.000 ms"}}}
		}
		c.Points = append(c.Points, p)
	}
	return c
}

func TestRunsGolden(t *testing.T) {
	sides := twoRuns(t)
	sides[1].Header.Cache, sides[1].Header.Fingerprint = "shared", ""
	golden(t, "runs.txt", func(w io.Writer) error { return doc.Text(w, Runs(sides)) })
	golden(t, "runs.md", func(w io.Writer) error { return doc.Markdown(w, Runs(sides)) })
	golden(t, "runs.html", func(w io.Writer) error { return doc.HTML(w, Runs(sides)) })
}

func TestCurveGolden(t *testing.T) {
	golden(t, "curve.txt", func(w io.Writer) error { return doc.Text(w, sweep().Document()) })
	golden(t, "curve.md", func(w io.Writer) error { return doc.Markdown(w, sweep().Document()) })
	golden(t, "curve.html", func(w io.Writer) error { return doc.HTML(w, sweep().Document()) })
}

// repeated are two runs with a third that is void.
func repeated(t *testing.T) Repeat {
	t.Helper()
	sides := append(twoRuns(t), twoRuns(t)[0])
	for i := range sides {
		sides[i].Name, sides[i].Header.Fingerprint = fmt.Sprintf("run-%d", i+1), fmt.Sprintf("a1b%d", i)
		sides[i].Summary.Verdict = result.Verdict{Status: result.Sound}
	}
	sides[2].Summary.Verdict = result.Verdict{Status: result.Voided, Checks: []result.Check{{Name: "gc", Status: result.Voided, Text: "it slept"}}}
	low, high, cv := 10.0, 30.0, 0.125
	return Repeat{
		Title: "3 runs of Qwen3-8B under random", Sides: sides, Believed: 2, Started: time.Date(2026, 11, 20, 8, 30, 12, 0, time.UTC),
		Spread: []result.Spread{
			{Metric: "completed", Label: "Successful requests", Mean: 120},
			{Metric: "output_throughput", Label: "Output token throughput (tok/s)", Mean: 20, Low: &low, High: &high, CV: &cv, Min: 18, Max: 22},
			{Metric: "p99_ttft_ms", Label: "mean of the runs' P99 TTFT (ms)", Mean: 5},
			{Metric: "p99_itl_ms", Label: "mean of the runs' P99 ITL (ms)", Mean: 5},
			{Metric: "p90_ttft_ms", Label: "mean of the runs' P90 TTFT (ms)", Mean: 5},
		},
		SLOs: []string{"p99_ttft_ms <= 500: met in 2 of 2 runs"}, Notes: []string{"interrupted with 3 runs made"},
	}
}

func TestRepeatGolden(t *testing.T) {
	r, st := repeated(t), block.Style{Sections: []string{"ttft"}, Percentiles: []float64{99}}
	golden(t, "repeat.txt", func(w io.Writer) error { return doc.Text(w, r.Document(st)) })
	golden(t, "repeat.md", func(w io.Writer) error { return doc.Markdown(w, r.Document(st)) })
	golden(t, "repeat.html", func(w io.Writer) error { return doc.HTML(w, r.Document(st)) })
}

// Seeds that differ on purpose are no warning, and seeds that should not are.
func TestRepeatWarnsOfOtherRequests(t *testing.T) {
	r := repeated(t)
	for same, want := range map[bool]int{false: 1, true: 2} { // one is of the void run
		r.SameSeed = same
		if got := layOut(r.Sides, !r.SameSeed).Warnings; len(got) != want {
			t.Errorf("same seed %v: %q", same, got)
		}
	}
}

// What keeps two runs from comparing is said, and nothing of two alike ones.
func TestRunsThatDoNotCompare(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Side)
		want   string
	}{
		"alike":       {func(*Side) {}, ""},
		"other load":  {func(s *Side) { s.Header.Fingerprint = "c3d4" }, "did not send the same requests"},
		"unknown":     {func(s *Side) { s.Header.Fingerprint = "" }, "Whether the runs sent the same requests is not known"},
		"other cache": {func(s *Side) { s.Header.Cache = "warm" }, "different prefix cache policies"},
		"tokenizer":   {func(s *Side) { s.Header.Tokenizer = "llama.json" }, "different tokenizers"},
		"clock":       {func(s *Side) { s.Header.Clock = result.ClockKernel }, "Different clocks"},
		"api":         {func(s *Side) { s.Header.Backend = "openai" }, "different APIs"},
		"version":     {func(s *Side) { s.Header.Version = "0.2.0" }, "Different clients, or versions of one"},
		"simulated":   {func(s *Side) { s.Header.Simulated = true }, "simulated and some are measured"},
		"void":        {func(s *Side) { s.Summary.Verdict.Status = result.Voided }, "after is void"},
		"partial":     {func(s *Side) { s.Summary.Partial = true }, "after is partial"},
	} {
		sides := twoRuns(t)
		for i := range sides {
			sides[i].Summary.Verdict = result.Verdict{Status: result.Sound}
		}
		c.change(&sides[1])
		got := newRuns(sides).Warnings
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s: %q", name, got)
		case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
			t.Errorf("%s: %q, want one that says %q", name, got, c.want)
		}
	}
}

func TestCurveFindings(t *testing.T) {
	const saturated = "The server falls behind what is offered from rate 16 on."
	with := func(change func(*Curve)) Curve {
		c := sweep()
		slices.SortFunc(c.Points, func(a, b CurvePoint) int { return int(math.Copysign(1, a.X-b.X)) })
		change(&c)
		return c
	}
	meet := func(c *Curve) {
		for i := range c.Points {
			c.Points[i].Missed = nil
		}
	}
	for name, tt := range map[string]struct {
		c    Curve
		want []string
	}{
		"some":      {with(func(*Curve) {}), []string{"Every SLO holds up to rate 4, of the loads that were measured; at rate 8: p99_ttft_ms 756 > 500.", saturated}},
		"none":      {with(func(c *Curve) { c.Points[0].Missed = []string{"it was slow"} }), []string{"No load that was measured meets every SLO; at the lowest, rate 1: it was slow.", saturated}},
		"void":      {with(meet), []string{"Every SLO holds at every load whose run can be believed, up to all at once.", saturated}},
		"all":       {with(func(c *Curve) { meet(c); c.Points = c.Points[:4] }), []string{"Every SLO holds at every load that was measured, up to rate 8."}},
		"no SLO":    {with(func(c *Curve) { c.SLOs = nil }), []string{saturated}},
		"concluded": {with(func(c *Curve) { c.Concluded = []string{"max rate 5"} }), []string{"max rate 5", saturated}},
		"capped": {with(func(c *Curve) {
			c.SLOs, c.Points[3].Saturated, c.Points[3].Capped = nil, false, true
			c.Points[4].Saturated, c.Points[4].Capped = false, true
		}), []string{"The concurrency limit keeps the rate below what is offered from rate 8 on; what the server could do without it was not measured."}},
		"capped, then saturated": {with(func(c *Curve) { c.SLOs, c.Points[3].Capped = nil, true }), []string{saturated, "The concurrency limit keeps the rate below what is offered from rate 8 on; what the server could do without it was not measured."}},
		"so many calls failed that the load misses": {with(func(c *Curve) {
			p := &c.Points[1]
			p.Void, p.Failed, p.Missed = true, true, []string{"60 of 200 calls failed"}
		}), []string{"Every SLO holds up to rate 1, of the loads that were measured; at rate 2: 60 of 200 calls failed.", saturated}},
		"only void": {with(func(c *Curve) { c.Points = c.Points[5:6] }), nil},
	} {
		if d := cmp.Diff(tt.want, tt.c.findings()); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
}

func TestFewPointsMakeNoPlot(t *testing.T) {
	c := sweep()
	for _, points := range [][]CurvePoint{nil, c.Points[:1], {{X: math.Inf(1), Summary: c.Points[0].Summary}, {X: math.NaN()}}} {
		c.Points = points
		for _, p := range CurvePlots(c) {
			if !strings.Contains(p.Name, "trade") {
				t.Errorf("%s is drawn from %d points", p.Name, len(points))
			}
		}
		for _, write := range []func(io.Writer, doc.Document) error{doc.Text, doc.Markdown, doc.HTML} {
			if err := write(io.Discard, c.Document()); err != nil {
				t.Error(err)
			}
		}
	}
}

// A page of very many calls stays small, says what it leaves out, and is the
// same each time.
func TestManyCallsStaySmall(t *testing.T) {
	h, few := burst(1000)
	calls := make([]result.Call, 0, 100*len(few))
	for k := range 100 {
		for _, c := range few {
			shift := time.Duration(k) * time.Minute
			c.Index += 1000 * k
			c.Due, c.Ready, c.Sent, c.End = c.Due+shift, c.Ready+shift, c.Sent+shift, c.End+shift
			c.Chunks = slices.Clone(c.Chunks[:3+c.Index%17])
			for i := range c.Chunks {
				c.Chunks[i].At += shift
			}
			c.WantIn = 10 + c.Index%4000
			calls = append(calls, c)
		}
	}
	var pages [2]bytes.Buffer
	for i := range pages {
		if err := doc.HTML(&pages[i], must(Run(h, result.Summary{}, block.Style{}, calls, nil))); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(pages[0].Bytes(), pages[1].Bytes()) {
		t.Error("the page differs from one time to the next")
	}
	if n := pages[0].Len(); n > 400_000 {
		t.Errorf("%d bytes of page", n)
	}
	if !strings.Contains(pages[0].String(), "98,000 calls: every 33rd drawn, and the 20 slowest") {
		t.Error("the page does not say that dots were left out")
	}
}

// A marked percentile is the summary's.
func TestPlotsShowTheSummarysPercentiles(t *testing.T) {
	h, calls := burst(200)
	s, err := verdict.Summarize(h, nil, result.Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	plots := runplot.Plots(h, calls, 1, nil, "")
	for _, family := range []string{"ttft", "tpot", "itl", "e2el"} {
		i := slices.IndexFunc(plots, func(p plot.Plot) bool { return p.Name == "cdf-"+family })
		if i < 0 {
			t.Fatalf("no distribution of %s", family)
		}
		want := "p99 " + plot.Milli(s.Figures["p99_"+family+"_ms"])
		if !strings.Contains(plots[i].SVG, ">"+want+"<") {
			t.Errorf("%s does not mark %q", plots[i].Name, want)
		}
	}
}

// Under other definitions than the plots' own, each distribution says so, and
// none else.
func TestPlotsSayTheirDefinitions(t *testing.T) {
	sides := twoRuns(t)
	for _, compat := range []string{"", result.VLLM} {
		sides[1].Summary.Compat = compat
		for _, p := range append(runplot.Plots(sides[0].Header, sides[0].Calls, 1, nil, compat), newRuns(sides).draw()...) {
			want := compat != "" && strings.HasPrefix(p.Name, "cdf-")
			if got := strings.Contains(p.SVG, strings.ReplaceAll("by perflab's definitions, not --compat's", "'", "&#39;")); got != want {
				t.Errorf("compat %q: %s: says %v", compat, p.Name, got)
			}
		}
	}
}

func TestCurveAndRunsPlotsAreWellFormed(t *testing.T) {
	sides := twoRuns(t)
	sides[0].Name = `<b>&"`
	for _, p := range append(CurvePlots(sweep()), newRuns(sides).draw()...) {
		d := xml.NewDecoder(strings.NewReader(p.SVG))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
		}
		for _, bad := range []string{"NaN", "Inf"} {
			if strings.Contains(p.SVG, bad) {
				t.Errorf("%s holds %s", p.Name, bad)
			}
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		log    bool
		want   []float64
	}{
		{0, 10, 5, false, []float64{0, 2, 4, 6, 8, 10}},
		{5, 100, 5, false, []float64{0, 20, 40, 60, 80, 100}},
		{1, 100, 7, true, []float64{1, 2, 5, 10, 20, 50, 100}},
		{3, 2500, 7, true, []float64{3, 10, 30, 100, 300, 1000, 3000}},
		{0.4, 90000, 8, true, []float64{0.1, 1, 10, 100, 1000, 10000, 100000}},
		{7, 7, 4, false, []float64{0, 2, 4, 6, 8}},
	} {
		a := plot.Fit(c.lo, c.hi, c.n)
		same := slices.EqualFunc(a.Ticks, c.want, func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*y })
		if a.Log != c.log || !same {
			t.Errorf("fit(%g, %g, %d) = %v, log %v; want %v, log %v", c.lo, c.hi, c.n, a.Ticks, a.Log, c.want, c.log)
		}
	}
}

func TestMilli(t *testing.T) {
	for v, want := range map[float64]string{0: "0 ms", 0.0123: "12.3 µs", 0.5: "500 µs", 4.214: "4.21 ms", 38.06: "38.1 ms", 999.4: "999 ms", 13400: "13.4 s", 1234567: "1235 s"} {
		if got := plot.Milli(v); got != want {
			t.Errorf("milli(%v) = %q, want %q", v, got, want)
		}
	}
}

// A page says by whose definitions its figures are where they are not ours.
func TestDefinitionsAreNamed(t *testing.T) {
	for compat, want := range map[string]bool{"": false, result.VLLM: true} {
		var b strings.Builder
		if err := doc.Markdown(&b, must(Run(result.Header{}, result.Summary{Compat: compat}, block.Style{}, nil, nil))); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "| Definitions | `vllm bench serve's"); got != want {
			t.Errorf("compat %q: named %v\n%s", compat, got, b.String())
		}
	}
}
