package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/block"
	"perflab/internal/result"
	"perflab/internal/seriesdoc"
	"perflab/internal/workload"
)

// TestSeriesRefuses: what a series cannot do is told before any work.
func TestSeriesRefuses(t *testing.T) {
	slo := []string{"--slo", "p99_ttft_ms <= 5"}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"two series":              {[]string{"--sweep", "rate=1,2", "--repeat", "3"}, "--sweep and --repeat are two series"},
		"search and sweep":        {append([]string{"--sweep", "rate=1,2", "--find-max", "rate"}, slo...), "--sweep and --find-max are two series"},
		"search and repeat":       {append([]string{"--repeat", "3", "--find-max", "rate"}, slo...), "--find-max and --repeat are two series"},
		"empty sweep":             {[]string{"--sweep", ""}, "is no sweep"},
		"bad sweep":               {[]string{"--sweep", "rate=1..8"}, "--sweep: the range 1..8 has no step"},
		"rate and sweep":          {[]string{"--sweep", "rate=1,2", "--request-rate", "5"}, "--request-rate does not apply with --sweep rate, which sets it"},
		"limit and sweep":         {[]string{"--sweep", "concurrency=1,2", "--max-concurrency", "5"}, "--max-concurrency does not apply with --sweep concurrency"},
		"steps and sweep":         {[]string{"--sweep", "rate=1,2", "--steps", "1:2s"}, "--steps does not apply with --sweep rate"},
		"ramp and sweep":          {[]string{"--sweep", "rate=1,2", "--ramp-up-strategy", "linear", "--ramp-up-start-rps", "1", "--ramp-up-end-rps", "2"}, "--ramp-up-strategy does not apply with --sweep rate"},
		"too concurrent":          {[]string{"--sweep", "concurrency=1..64x2", "--num-prompts", "40"}, "--num-prompts 40 never reaches the concurrency of 64"},
		"anchors without end":     {[]string{"--sweep", "rate=auto", "--duration", "3s"}, "--sweep rate=auto, throughput: --duration needs"},
		"points of a list":        {[]string{"--sweep", "rate=1,2", "--sweep-points", "4"}, "--sweep-points is for --sweep rate=auto"},
		"points of nothing":       {[]string{"--sweep-points", "4"}, "--sweep-points needs --sweep"},
		"two points":              {[]string{"--sweep", "rate=auto", "--sweep-points", "2"}, "--sweep-points is 2"},
		"one result file":         {[]string{"--sweep", "rate=1,2", "--save-result", "--result-filename", "x"}, "--result-filename is one file"},
		"rows of many runs":       {[]string{"--sweep", "rate=1,2", "--parquet", "x"}, "--parquet is for a single run"},
		"block":                   {[]string{"--repeat", "2", "--block", "gpustack"}, "--block is for a single run"},
		"sections":                {[]string{"--sweep", "rate=1,2", "--percentile-metrics", "ttft"}, "--percentile-metrics is for a single run"},
		"search for nothing":      {[]string{"--find-max", "rate"}, "--find-max needs --slo"},
		"search for what":         {append([]string{"--find-max", "speed"}, slo...), `--find-max "speed" is not known: rate or concurrency`},
		"search of a rate":        {append([]string{"--find-max", "rate", "--request-rate", "2"}, slo...), "--request-rate does not apply with --find-max rate"},
		"search of so many":       {append([]string{"--find-max", "rate", "--num-prompts", "20"}, slo...), "--num-prompts does not apply with --find-max"},
		"search from nothing":     {append([]string{"--find-max", "rate", "--find-max-from", "0"}, slo...), "--find-max-from is 0"},
		"search from a half":      {append([]string{"--find-max", "concurrency", "--find-max-from", "1.5"}, slo...), "--find-max-from is 1.5"},
		"search downwards":        {append([]string{"--find-max", "rate", "--find-max-from", "4", "--find-max-to", "2"}, slo...), "--find-max-to is 2"},
		"search to nothing":       {append([]string{"--find-max", "rate", "--find-max-to", "0"}, slo...), "--find-max-to is 0"},
		"search without end":      {append([]string{"--find-max", "rate", "--find-max-precision", "0"}, slo...), "--find-max-precision is 0"},
		"search by no requests":   {append([]string{"--find-max", "rate", "--find-max-requests", "0"}, slo...), "--find-max-requests is 0"},
		"search for no time":      {append([]string{"--find-max", "rate", "--find-max-seconds", "-1"}, slo...), "--find-max-seconds is -1"},
		"bounds of no search":     {[]string{"--find-max-to", "4"}, "--find-max-to needs --find-max"},
		"one run":                 {[]string{"--repeat", "1"}, "--repeat is 1"},
		"no run":                  {[]string{"--repeat", "0"}, "--repeat is 0"},
		"same seed alone":         {[]string{"--repeat-same-seed"}, "--repeat-same-seed needs --repeat"},
		"same seed, found prompt": {[]string{"--repeat", "2", "--repeat-same-seed"}, "--repeat-same-seed needs --cache reset"},
		"cache":                   {[]string{"--cache", "cold"}, `--cache "cold" is not known: use unique, reset, warm, shared`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			code, _, stderr := benchExit(t, append([]string{"--base-url", "http://127.0.0.1:1", "--model", "m", "--out", dir}, tt.args...)...)
			if code != exitUsage || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit %d, %q, want %q", code, stderr, tt.want)
			}
			if strings.Count(stderr, "\n") != 1 {
				t.Errorf("more than the one fault: %q", stderr)
			}
		})
	}
}

// TestSeriesBase: a series' flags leave arrival and burstiness to the user, and
// a seed that was given alone.
func TestSeriesBase(t *testing.T) {
	for args, want := range map[string]workload.Spec{
		"--sweep rate=3,4 --seed 9":                                                       {Rate: 3, Seed: 9},
		"--sweep rate=3,4 --seed 9 --arrival constant":                                    {Rate: 3, Arrival: "constant", Seed: 9},
		"--sweep rate=3,4 --seed 9 --burstiness 0.5":                                      {Rate: 3, Burstiness: 0.5, Seed: 9},
		"--sweep concurrency=2,8 --seed 9 --request-rate 5":                               {Rate: 5, MaxConcurrency: 2, Seed: 9},
		"--sweep rate=3,4 --seed 9 --dataset-name azure --dataset-path x --num-prompts 4": {Dataset: "azure", Path: "x", NumPrompts: 4, Rate: 3, Seed: 9},
		"--seed 0": {},
	} {
		f := &benchFlags{}
		fs := pflag.NewFlagSet("bench", pflag.ContinueOnError)
		f.add(fs)
		if err := fs.Parse(append([]string{"--model", "m"}, strings.Fields(args)...)); err != nil {
			t.Fatal(err)
		}
		if err := f.complete(fs); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if d := cmp.Diff(want.Defaults(), f.spec.Workload); d != "" {
			t.Errorf("%s:\n%s", args, d)
		}
	}
}

// TestSeriesExit: the exit status says what came out of a series.
func TestSeriesExit(t *testing.T) {
	point := func(missed ...string) bench.Point {
		return bench.Point{Missed: missed, Summary: result.Summary{Figures: map[string]float64{"completed": 9}}}
	}
	void := point()
	void.Void = true
	failed := point("2 of 9 calls failed")
	failed.Failed = true
	broken := failed // so many failed that the others' figures are void as well
	broken.Void = true
	dead := point("9 of 9 calls failed")
	dead.Failed, dead.Void = true, true
	dead.Summary.Figures = map[string]float64{"completed": 0, "failed": 9}
	slos := []result.SLO{{Metric: "p99_ttft_ms", Op: "<=", Limit: 5}}
	for name, tt := range map[string]struct {
		facts bench.SeriesFacts
		want  int
	}{
		"swept":                 {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{point(), point()}}, exitDone},
		"one load is void":      {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{point(), void}}, exitVoid},
		"one load fails":        {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{point(), broken}}, exitDone},
		"every load fails":      {bench.SeriesFacts{Kind: bench.KindSweep, SLOs: slos, Points: []bench.Point{failed, broken}}, exitFailed},
		"some meet":             {bench.SeriesFacts{Kind: bench.KindSweep, SLOs: slos, Points: []bench.Point{point(), point("late")}}, exitDone},
		"none meets":            {bench.SeriesFacts{Kind: bench.KindSweep, SLOs: slos, Points: []bench.Point{point("late"), broken}}, exitMissed},
		"none meets, one void":  {bench.SeriesFacts{Kind: bench.KindSweep, SLOs: slos, Points: []bench.Point{point("late"), void}}, exitVoid},
		"all void":              {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{void}}, exitVoid},
		"nobody answers":        {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{dead}}, exitFailed},
		"repeated":              {bench.SeriesFacts{Kind: bench.KindRepeat, SLOs: slos, Points: []bench.Point{point(), point()}}, exitDone},
		"one repeat is void":    {bench.SeriesFacts{Kind: bench.KindRepeat, SLOs: slos, Points: []bench.Point{point(), void}}, exitVoid},
		"one repeat misses":     {bench.SeriesFacts{Kind: bench.KindRepeat, SLOs: slos, Points: []bench.Point{point(), point("late")}}, exitMissed},
		"one repeat fails":      {bench.SeriesFacts{Kind: bench.KindRepeat, Points: []bench.Point{point(), failed}}, exitFailed},
		"repeats fail and miss": {bench.SeriesFacts{Kind: bench.KindRepeat, SLOs: slos, Points: []bench.Point{void, point("late"), broken}}, exitFailed},
		"found":                 {bench.SeriesFacts{Kind: bench.KindFindMax, SLOs: slos, Points: []bench.Point{point(), point("late")}, Stop: bench.Stop{Code: bench.StopBracket}}, exitDone},
		"found, one made again": {bench.SeriesFacts{Kind: bench.KindFindMax, SLOs: slos, Points: []bench.Point{void, point(), broken}, Stop: bench.Stop{Code: bench.StopBracket}}, exitDone},
		"lowest misses":         {bench.SeriesFacts{Kind: bench.KindFindMax, SLOs: slos, Points: []bench.Point{point(), point("late")}, Stop: bench.Stop{Code: bench.StopLowest}}, exitMissed},
		"client-bound":          {bench.SeriesFacts{Kind: bench.KindFindMax, SLOs: slos, Points: []bench.Point{point(), void, void}, Stop: bench.Stop{Code: bench.StopClient}}, exitVoid},
		"nothing in between":    {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{point()}, Stop: bench.Stop{Code: bench.StopNoAnchors}}, exitFailed},
	} {
		err := judgeSeries(&tt.facts)
		code := exitDone
		if err != nil {
			code = exitCode(err)
		}
		if code != tt.want {
			t.Errorf("%s: exit %d (%v), want %d", name, code, err, tt.want)
		}
	}
}

// TestCurveOf: a series' points become a curve's: their rates, what they missed
// and whether to believe them, and an end that was not the plan's is said.
func TestCurveOf(t *testing.T) {
	figures := map[string]float64{"completed": 9, "failed": 1, "output_throughput": 12.5, "median_ttft_ms": 10, "p99_ttft_ms": 20, "median_e2el_ms": 100}
	facts := &bench.SeriesFacts{Kind: bench.KindSweep, Model: "m", Workload: "random", SLOs: []result.SLO{{Metric: "p99_ttft_ms", Op: "<=", Limit: 15}}, Stop: bench.Stop{Code: "interrupted", Text: "enough"}, Points: []bench.Point{
		{Load: bench.Load{Axis: bench.Throughput}, Seed: 8, Achieved: 9, Missed: []string{}, Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: result.Sound}}},
		{Load: bench.Load{Axis: bench.Synchronous}, Seed: 9, Achieved: 0.5, Missed: []string{}, Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: result.Sound}}},
		{Load: bench.Load{Axis: bench.AxisRate, Value: 4}, Seed: 10, Offered: 4, Achieved: 3.5, Saturated: true, Missed: []string{"p99_ttft_ms 20 > 15"},
			Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: result.Sound}}},
		{Load: bench.Load{Axis: bench.AxisRate, Value: 8}, Seed: 11, Offered: 8, Achieved: 7, Void: true, Missed: []string{},
			Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: result.Voided, Checks: []result.Check{{Name: "dispatch_lag", Status: result.Voided, Text: "it was late"}}}}},
		{Load: bench.Load{Axis: bench.AxisRate, Value: 9}, Seed: 12, Offered: 9, Achieved: 7, Partial: true, Missed: []string{},
			Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: result.Noted}}},
	}}
	text := func(facts *bench.SeriesFacts) (got []string) {
		var b strings.Builder
		if err := seriesView(facts, "", block.Style{Percentiles: []float64{99}}).text(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		return got
	}
	table := []string{
		"load offered req/s achieved req/s output tok/s TTFT p50/p99 ms E2E p50/p99 ms failed verdict SLO",
		"synchronous - 0.50 12.50 10.0/20.0 100/- 1 sound met",
		"rate 4 4.00 3.50 (saturated) 12.50 10.0/20.0 100/- 1 sound missed",
		"rate 8 8.00 - - -/- -/- 1 void n/a",
		"rate 9 9.00 7.00 12.50 10.0/20.0 100/- 1 partial n/a",
		"throughput - 9.00 12.50 10.0/20.0 100/- 1 sound met",
		"rate 4 missed p99_ttft_ms 20 > 15",
		"rate 8 is void and in no conclusion: it was late",
		"rate 9 was stopped before its end and is in no conclusion",
	}
	if d := cmp.Diff(append(table,
		"sweep ended (interrupted): enough",
		"Every SLO holds up to synchronous, of the loads that were measured; at rate 4: p99_ttft_ms 20 > 15.",
		"The server falls behind what is offered from rate 4 on.",
	), text(facts)); d != "" {
		t.Error(d)
	}
	facts.Kind, facts.Max = bench.KindFindMax, &bench.Max{Load: bench.Load{Axis: bench.AxisRate, Value: 4}, Tested: 2}
	facts.Stop = bench.Stop{Code: "bracket", Text: "it closed"}
	if d := cmp.Diff(append(table,
		"max rate meeting p99_ttft_ms <= 15: 4 req/s (edge tested twice)",
		"search ended (bracket): it closed",
		"The server falls behind what is offered from rate 4 on.",
	), text(facts)); d != "" {
		t.Error(d)
	}
	if c := seriesdoc.Curve(facts); c.Title != "Search for the highest rate of m under random" || !c.Offered || c.Facts[2].Value != "8 to 12" {
		t.Errorf("%+v", c)
	}
}

// TestSeriesFiles: every run has a result file of its own, or a line of one.
func TestSeriesFiles(t *testing.T) {
	dir, url := t.TempDir(), endpoint(t, words(3))
	run := func(name string, more ...string) {
		args := []string{"--base-url", url, "--model", "org/m", "--num-prompts", "2", "--num-warmups", "0",
			"--random-input-len", "5", "--random-output-len", "3", "--out", filepath.Join(dir, name), "--result-dir", filepath.Join(dir, "results-"+name)}
		if code, _, stderr := benchExit(t, append(args, more...)...); code != exitDone && code != exitVoid {
			t.Fatalf("exit %d, %s", code, stderr)
		}
	}
	files := func(name string) (out []string) {
		all, err := os.ReadDir(filepath.Join(dir, "results-"+name))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			out = append(out, f.Name())
		}
		return out
	}
	run("repeat", "--repeat", "3", "--request-rate", "200", "--save-result", "--html", filepath.Join(dir, "pages", "r.html"))
	if got := files("repeat"); len(got) != 3 || !strings.HasPrefix(got[0], "openai-chat-200.0qps-m-") {
		t.Errorf("of 3 runs: %v", got)
	}
	run("sweep", "--sweep", "concurrency=1,2", "--save-result", "--save-detailed")
	if got := files("sweep"); len(got) != 2 || !strings.HasPrefix(got[0], "openai-chat-infqps-concurrency1-m-") || !strings.HasPrefix(got[1], "openai-chat-infqps-concurrency2-m-") {
		t.Errorf("of 2 loads: %v", got)
	}
	run("append", "--sweep", "rate=100,200", "--append-result", "--result-filename", "all.json")
	b, err := os.ReadFile(filepath.Join(dir, "results-append", "all.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rates []float64
	for line := range strings.Lines(string(b)) {
		var row struct {
			Rate float64 `json:"request_rate"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rates = append(rates, row.Rate)
	}
	if d := cmp.Diff([]float64{100, 200}, rates); d != "" {
		t.Error(d)
	}
	page, err := os.ReadFile(filepath.Join(dir, "pages", "r.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 runs of org/m under random", "<th scope=\"col\" class=\"n\">run-3</th>", "TTFT: share at or below"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestCacheResetNeedsIt: a server whose prefix cache cannot be emptied ends the
// run before it begins.
func TestCacheResetNeedsIt(t *testing.T) {
	sent := 0
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "reset") || strings.Contains(r.URL.Path, "flush") {
			http.NotFound(w, r)
			return
		}
		sent++
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
	dir := filepath.Join(t.TempDir(), "run")
	code, _, stderr := benchExit(t, "--base-url", url, "--model", "m", "--num-prompts", "3", "--num-warmups", "0", "--cache", "reset", "--out", dir)
	if code != exitFailed || !strings.Contains(stderr, "cache reset: ") || sent > 0 {
		t.Errorf("exit %d, %q, %d requests", code, stderr, sent)
	}
}
