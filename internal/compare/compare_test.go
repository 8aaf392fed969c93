package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/stat"
	"perflab/internal/verdict"
)

const msec = time.Millisecond

// served is a run of n calls at 10 requests/s whose TTFT is about ttft ms.
func served(t *testing.T, seed uint64, n int, ttft float64) Run {
	t.Helper()
	rng := stat.Stream(seed, "served")
	h := result.Header{Model: "m", Backend: "openai", Workload: "random", Requests: n, Rate: 10, Cache: result.CacheUnique, Fingerprint: "f", Command: "vllm serve m"}
	calls := make([]result.Call, n)
	for i := range calls {
		at := time.Duration(float64(i)+rng.Float64()) * 100 * msec
		c := result.Call{Index: i, Due: at, Ready: at, Sent: at, Usage: &result.Usage{Prompt: 100, Completion: 5}}
		next := at + time.Duration(ttft*math.Exp(0.3*rng.NormFloat64())*1e6)
		for k := range 5 {
			c.Chunks = append(c.Chunks, result.Chunk{At: next, Tokens: 1, Read: int32(k)})
			next += time.Duration((8 + 4*rng.Float64()) * 1e6)
		}
		c.End = c.Chunks[4].At + msec
		calls[i] = c
	}
	return measured(t, fmt.Sprintf("run-%d", seed), h, calls, result.Options{})
}

func measured(t *testing.T, name string, h result.Header, calls []result.Call, o result.Options) Run {
	t.Helper()
	client := result.Client{Wall: 10 * time.Second, CPU: time.Second, Procs: 2}
	s, err := verdict.Summarize(h, &client, o, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	return Run{Name: name, Header: h, Summary: s, Calls: calls, Options: o}
}

func one(m Run) Side { return Side{Name: m.Name, Runs: []Run{m}} }

func compare(t *testing.T, o Options, sides ...Side) Comparison {
	t.Helper()
	c, err := New(sides, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c Comparison) find(t *testing.T, metric string) Row {
	t.Helper()
	i := slices.IndexFunc(c.Rows, func(r Row) bool { return r.Name == metric })
	if i < 0 {
		t.Fatalf("no row of %s", metric)
	}
	return c.Rows[i]
}

// A run compared with one of the same server mostly shows no difference; one
// of a server with half more TTFT shows it, where there is an interval.
func TestCompareTwoRuns(t *testing.T) {
	t.Parallel()
	flagged, judged := 0, 0
	for seed := range uint64(20) {
		c := compare(t, Options{}, one(served(t, 2*seed+1, 600, 40)), one(served(t, 2*seed+2, 600, 40)))
		better, worse, n := c.Shown()
		flagged, judged = flagged+better+worse, judged+n
	}
	if share := float64(flagged) / float64(judged); judged < 300 || share > 0.08 {
		t.Errorf("%d of %d figures of equal servers differ", flagged, judged)
	}
	c := compare(t, Options{}, one(served(t, 3, 600, 40)), one(served(t, 4, 600, 60)))
	for name, want := range map[string]Outcome{"mean_ttft_ms": Worse, "median_ttft_ms": Worse, "p95_ttft_ms": Worse, "mean_tpot_ms": NoDifference, "completed": Equal} {
		cell := c.find(t, name).Cells[1]
		if cell.Outcome != want {
			t.Errorf("%s is %q, want %q: %+v", name, cell.Outcome, want, cell)
		}
	}
	cell := c.find(t, "mean_ttft_ms").Cells[1]
	if *cell.Low > 1.5 || *cell.High < 1.5 || cell.N != "600 calls in 40 blocks of 1.5 s" {
		t.Errorf("ratio %v, %v to %v, of %s", *cell.Ratio, *cell.Low, *cell.High, cell.N)
	}
	if why := c.find(t, "max_output_tokens_per_s").Cells[1].Why; !strings.Contains(why, "whole run") {
		t.Errorf("the peak has %q", why)
	}
	if got := c.Sides[0].Basis; !strings.Contains(got, "one launch: no restart noise seen") {
		t.Errorf("basis %q", got)
	}
}

// A burst has no interval and says why; so have figures without calls.
func TestCompareRefusesIntervals(t *testing.T) {
	burst := served(t, 1, 300, 40)
	for i := range burst.Calls {
		c := &burst.Calls[i]
		c.Due, c.Ready, c.Sent = 0, 0, time.Duration(i)*time.Microsecond
	}
	burst = measured(t, "burst", burst.Header, burst.Calls, result.Options{})
	bare := served(t, 2, 300, 40)
	bare.Name, bare.Calls = "bare", nil
	for _, m := range []Run{burst, bare} {
		other := m
		other.Name = "other"
		other.Summary.Figures = map[string]float64{"mean_ttft_ms": 1.1 * m.Summary.Figures["mean_ttft_ms"], "request_throughput": 3}
		c := compare(t, Options{}, one(m), one(other))
		for _, name := range []string{"mean_ttft_ms", "request_throughput"} {
			cell := c.find(t, name).Cells[1]
			if cell.Low != nil || cell.Outcome != NoInterval || cell.Why == "" || cell.Ratio == nil {
				t.Errorf("%s of %s: %+v", name, m.Name, cell)
			}
		}
	}
	// Calls that do not give the figure are no evidence for it.
	m := served(t, 3, 600, 40)
	m.Summary.Figures["mean_ttft_ms"] *= 1.01
	cell := compare(t, Options{}, one(served(t, 4, 600, 40)), one(m)).find(t, "mean_ttft_ms").Cells[1]
	if cell.Low != nil || !strings.Contains(cell.Why, "another definition") {
		t.Errorf("a figure that is not of its calls: %+v", cell)
	}
}

// The intervals are of vLLM's figures where those are what is compared.
func TestCompareCompat(t *testing.T) {
	a, b := served(t, 1, 600, 40), served(t, 2, 600, 50)
	o := result.Options{Compat: result.VLLM}
	x, y := measured(t, "x", a.Header, a.Calls, o), measured(t, "y", b.Header, b.Calls, o)
	c := compare(t, Options{}, one(x), one(y))
	for _, name := range []string{"mean_ttft_ms", "median_tpot_ms", "mean_itl_ms", "mean_e2el_ms"} {
		if r := c.find(t, name); r.Cells[1].Low == nil || r.Definition == result.Ours {
			t.Errorf("%s: %+v", name, r)
		}
	}
	mixed := compare(t, Options{}, one(a), one(y))
	var rows []Row
	for _, r := range mixed.Rows {
		if r.Name == "mean_ttft_ms" {
			rows = append(rows, r)
		}
	}
	if len(rows) != 2 || rows[0].Cells[1].Value != nil || rows[1].Cells[0].Value != nil || rows[1].Cells[1].Ratio != nil {
		t.Errorf("unlike definitions: %+v", rows)
	}
	k, err := ParseCondition("mean_ttft > 5x")
	if err != nil {
		t.Fatal(err)
	}
	if r := mixed.Rule([]Condition{k})[0]; !r.Failed || !strings.Contains(r.Text, "another definition") {
		t.Errorf("an unlike figure passes: %+v", r)
	}
}

// Runs are the observations of a side of several, and void ones are left out.
func TestCompareGroups(t *testing.T) {
	group := func(name string, figures ...float64) Side {
		s := Side{Name: name}
		for i, v := range figures {
			s.Runs = append(s.Runs, Run{Name: fmt.Sprintf("%s%d", name, i), Summary: result.Summary{Figures: map[string]float64{"output_throughput": v, "completed": 10}}})
		}
		return s
	}
	a, b := group("a", 100, 101, 99), group("b", 120, 121, 119, 5)
	b.Runs[3].Summary.Verdict = result.Verdict{Status: result.Voided, Checks: []result.Check{{Name: "gc", Status: result.Voided, Text: "it slept"}}}
	c := compare(t, Options{}, a, b)
	cell := c.find(t, "output_throughput").Cells[1]
	if cell.Outcome != Better || math.Abs(*cell.Ratio-1.2) > 1e-3 || cell.N != "3 and 3 runs" || len(c.Warnings) < 2 || c.Void() {
		t.Errorf("%+v, %q", cell, c.Warnings)
	}
	b.Runs = b.Runs[3:]
	if c := compare(t, Options{}, a, b); !c.Void() {
		t.Error("a side of one void run is not void")
	}
	for _, s := range []struct {
		side Side
		want string
	}{
		{a, "not recorded"}, {Side{Runs: a.Runs, Series: true}, "one series"},
		{Side{Runs: []Run{{Launch: "1"}, {Launch: "2"}}}, "2 runs on 2 launches"}, {Side{Runs: []Run{{Launch: "1"}, {Launch: "1"}}}, "on one launch"},
	} {
		if got := s.side.basis(); !strings.Contains(got, s.want) {
			t.Errorf("basis %q, want %q", got, s.want)
		}
	}
}

// What is compared is found when it is one thing, and all else that differs is
// a warning.
func TestCompareFacts(t *testing.T) {
	a, b := served(t, 1, 300, 40), served(t, 2, 300, 40)
	b.Header.Command = "sglang.launch_server m"
	c := compare(t, Options{}, one(a), one(b))
	if c.By != "engine" || c.Head != "Compared by engine: run-1 vllm, run-2 sglang." || len(c.Warnings) > 0 {
		t.Errorf("%q %q %q", c.By, c.Head, c.Warnings)
	}
	b.Header.Model, b.Header.Limit, b.Header.Cache = "n", 4, result.CacheShared
	b.Summary.Figures["total_output_tokens"] *= 2
	c = compare(t, Options{By: "model"}, one(a), one(b))
	text := strings.Join(c.Warnings, "\n")
	for _, want := range []string{"engine", "concurrency limit", "prefix cache", "2.00x apart"} {
		if !strings.Contains(text, want) {
			t.Errorf("no warning of %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, "differ in model") {
		t.Errorf("the fact compared is a warning:\n%s", text)
	}
	for by, want := range map[string]string{"colour": "use cache, backend", "rate": "do not differ"} {
		if _, err := New([]Side{one(a), one(b)}, Options{By: by}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--by %s: %v", by, err)
		}
	}
	b.Header.Simulated = true
	if c = compare(t, Options{}, one(a), one(b)); !strings.Contains(strings.Join(c.Warnings, "\n"), "simulated and some are measured") {
		t.Errorf("no warning of a simulation: %q", c.Warnings)
	}
}

func TestConditions(t *testing.T) {
	for text, want := range map[string]Condition{
		"p99_ttft > 1.05x":            {Above: true, Limit: 1.05, Relative: true},
		"output_throughput<0.95x":     {Limit: 0.95, Relative: true},
		"mean_tpot_ms >= +5%":         {Above: true, Limit: 1.05, Relative: true},
		"request_throughput < -10%":   {Limit: 0.9, Relative: true},
		"p99_ttft_ms > 0.5s":          {Above: true, Limit: 500},
		"success_rate < 99%":          {Limit: 0.99},
		"output_throughput < 50tok/s": {Limit: 50},
	} {
		k, err := ParseCondition(text)
		if err != nil || k.Above != want.Above || math.Abs(k.Limit-want.Limit) > 1e-12 || k.Relative != want.Relative {
			t.Errorf("%s: %+v, %v", text, k, err)
		}
	}
	for text, want := range map[string]string{
		"p99_ttft": "no limit", "> 3": "names no figure", "fast > 3": "write it as p99_ttft_ms", "p99_tfft > 1.05x": "did you mean", "p99_ttft > 5%": "with its sign", "p99_ttft > x": "no ratio",
		"p99_ttft > -2x": "no ratio", "p99_ttft > -100%": "no ratio", "p99_ttft > fast": "not a number", "p99_ttft > 3 req/s": "not a number", "p99_ttft > NaNx": "no ratio",
	} {
		if _, err := ParseCondition(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestRule(t *testing.T) {
	cell := func(v, ratio, low, high float64) Cell {
		c := Cell{Value: &v, Ratio: &ratio}
		if low > 0 {
			c.Low, c.High = &low, &high
		}
		return c
	}
	row := func(name string, first *float64, c Cell) Row {
		m, err := result.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		return Row{Metric: m, Name: m.Name, Unit: m.Unit, Cells: []Cell{{Value: first}, c}}
	}
	hundred, zero := 100.0, 0.0
	c := Comparison{Sides: []SideInfo{{Name: "a"}, {Name: "b"}}, Rows: []Row{
		row("p99_ttft_ms", &hundred, cell(120, 1.2, 1.1, 1.3)),
		row("mean_ttft_ms", &hundred, cell(120, 1.2, 0.9, 1.5)),
		row("p99_itl_ms", &hundred, cell(120, 1.2, 0, 0)),
		row("p90_itl_ms", nil, Cell{Why: "b has no such figure"}),
		row("failed", &zero, Cell{Value: &hundred}),
		row("p95_itl_ms", nil, cell(120, 1, 0, 0)),
	}}
	for text, want := range map[string]bool{
		"p99_ttft > 1.05x": true, "p99_ttft > 1.25x": false, "mean_ttft > 1.05x": false, "p99_itl > 1.05x": true, "p99_itl > 1.25x": false,
		"p90_itl > 5x": true, "p90_itl > 1000": true, "p99_tpot > 1.05x": true, "failed > 1.05x": true, "failed < 0.9x": false,
		"mean_ttft > 110": true, "mean_ttft > 130": false, "p95_itl > 9x": true,
	} {
		k, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		if r := c.Rule([]Condition{k})[0]; r.Failed != want || r.Text == "" {
			t.Errorf("%s: failed %v: %s", text, r.Failed, r.Text)
		}
	}
	c.Sides[1].Void = "it slept"
	if r := c.Rule([]Condition{{Metric: c.Rows[0].Metric, Above: true, Limit: 9, Relative: true}})[0]; !r.Failed {
		t.Error("a void side passes")
	}
}

// BenchmarkCompare is two runs of 10^5 calls.
func BenchmarkCompare(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	side := func(name string) Side {
		h := result.Header{Rate: 100, Requests: 100_000}
		calls := make([]result.Call, h.Requests)
		for i := range calls {
			at := time.Duration(i) * 10 * msec
			c := result.Call{Index: i, Due: at, Ready: at, Sent: at, Usage: &result.Usage{Prompt: 100, Completion: 64}}
			for k := range 64 {
				at += time.Duration((8 + 4*rng.Float64()) * 1e6)
				c.Chunks = append(c.Chunks, result.Chunk{At: at, Tokens: 1, Read: int32(k)})
			}
			c.End = at
			calls[i] = c
		}
		s, err := verdict.Summarize(h, &result.Client{}, result.Options{}, slices.Values(calls))
		if err != nil {
			b.Fatal(err)
		}
		return one(Run{Name: name, Header: h, Summary: s, Calls: calls})
	}
	sides := []Side{side("a"), side("b")}
	for b.Loop() {
		if _, err := New(sides, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestComputedAnew: a run whose calls give the definition of another side stands in its row,
// and its own row, of which nobody else has a figure, goes.
func TestComputedAnew(t *testing.T) {
	side := func(name string, d result.Definition, v float64, views ...View) Side {
		s := result.Summary{Figures: map[string]float64{"mean_ttft_ms": v}}
		if d != result.Ours {
			s.Definitions = map[string]result.Definition{"ttft": d}
		}
		return Side{Name: name, Runs: []Run{{Name: name, Summary: s, Views: views}}}
	}
	view := func(d result.Definition, v float64) View {
		return View{Summary: side("", d, v).Runs[0].Summary}
	}
	open := View{Missing: map[string]string{"ttft": "nobody knows"}}
	for _, x := range []struct {
		name  string
		sides []Side
		want  string
	}{
		{"one row", []Side{side("a", result.Ours, 10, view(result.FirstText, 12)), side("b", result.FirstText, 24)}, "first_text 12 24 (a)"},
		{"the other way", []Side{side("b", result.FirstText, 24), side("a", result.Ours, 10, view(result.FirstText, 12))}, "first_text 24 12 (a)"},
		{"no calls", []Side{side("a", result.Ours, 10), side("b", result.FirstText, 24)}, " 10 - | first_text - 24"},
		{"not given", []Side{side("a", result.Ours, 10, open), side("b", result.FirstText, 24)}, " 10 - | first_text -nobody knows 24"},
		{"two clients", []Side{side("a", result.Ours, 10, view(result.FirstText, 12), view(result.FirstMessage, 11)), side("b", result.FirstText, 24), side("c", result.FirstMessage, 22)},
			"first_text 12 24 - (a) | first_message 11 - 22 (a)"},
		{"two of perflab", []Side{side("a", result.Ours, 10, view(result.FirstText, 12)), side("b", result.FirstText, 24), side("c", result.Ours, 20, view(result.FirstText, 22))},
			" 10 - 20 | first_text 12 24 22 (a c)"},
	} {
		c, err := New(x.sides, Options{Metrics: []string{"mean_ttft_ms"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := rowsText(c.Rows); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
		apart := slices.ContainsFunc(c.Warnings, func(text string) bool {
			return strings.HasPrefix(text, "Some figures are made by different definitions")
		})
		if apart != strings.Contains(x.want, " -") {
			t.Errorf("%s: warnings %q", x.name, c.Warnings)
		}
		noted := slices.ContainsFunc(c.Notes, func(text string) bool {
			return strings.Contains(text, "TTFT of a are not by perflab's definitions here")
		})
		if noted != strings.Contains(x.want, "(a") {
			t.Errorf("%s: notes %q", x.name, c.Notes)
		}
	}
}

// rowsText writes rows with their definition, figures and who was computed anew.
func rowsText(rows []Row) string {
	var lines []string
	for _, r := range rows {
		var line strings.Builder
		line.WriteString(string(r.Definition))
		for _, cell := range r.Cells {
			switch _, why, told := strings.Cut(cell.Why, "do not give this one: "); {
			case cell.Value != nil:
				line.WriteString(fmt.Sprintf(" %v", *cell.Value))
			case told:
				line.WriteString(" -" + why)
			default:
				line.WriteString(" -")
			}
		}
		if len(r.Anew) > 0 {
			line.WriteString(" (" + strings.Join(r.Anew, " ") + ")")
		}
		lines = append(lines, line.String())
	}
	return strings.Join(lines, " | ")
}
