package measure

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/workload"
)

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

// exitOf is the exit code of how a series can end; that an error of its kind has this
// code is a test of package cli.
func exitOf(err error) int {
	if err == nil {
		return console.ExitDone
	}
	if _, ok := errors.AsType[*load.VoidError](err); ok {
		return console.ExitVoid
	}
	if errors.Is(err, console.ErrMissed) {
		return console.ExitMissed
	}
	return console.ExitFailed
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
		"swept":                 {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{point(), point()}}, console.ExitDone},
		"one load is void":      {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{point(), void}}, console.ExitVoid},
		"one load fails":        {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{point(), broken}}, console.ExitDone},
		"every load fails":      {bench.SeriesFacts{Kind: bench.KindSweep, SLOs: slos, Points: []bench.Point{failed, broken}}, console.ExitFailed},
		"some meet":             {bench.SeriesFacts{Kind: bench.KindSweep, SLOs: slos, Points: []bench.Point{point(), point("late")}}, console.ExitDone},
		"none meets":            {bench.SeriesFacts{Kind: bench.KindSweep, SLOs: slos, Points: []bench.Point{point("late"), broken}}, console.ExitMissed},
		"none meets, one void":  {bench.SeriesFacts{Kind: bench.KindSweep, SLOs: slos, Points: []bench.Point{point("late"), void}}, console.ExitVoid},
		"all void":              {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{void}}, console.ExitVoid},
		"nobody answers":        {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{dead}}, console.ExitFailed},
		"repeated":              {bench.SeriesFacts{Kind: bench.KindRepeat, SLOs: slos, Points: []bench.Point{point(), point()}}, console.ExitDone},
		"one repeat is void":    {bench.SeriesFacts{Kind: bench.KindRepeat, SLOs: slos, Points: []bench.Point{point(), void}}, console.ExitVoid},
		"one repeat misses":     {bench.SeriesFacts{Kind: bench.KindRepeat, SLOs: slos, Points: []bench.Point{point(), point("late")}}, console.ExitMissed},
		"one repeat fails":      {bench.SeriesFacts{Kind: bench.KindRepeat, Points: []bench.Point{point(), failed}}, console.ExitFailed},
		"repeats fail and miss": {bench.SeriesFacts{Kind: bench.KindRepeat, SLOs: slos, Points: []bench.Point{void, point("late"), broken}}, console.ExitFailed},
		"found":                 {bench.SeriesFacts{Kind: bench.KindFindMax, SLOs: slos, Points: []bench.Point{point(), point("late")}, Stop: bench.Stop{Code: bench.StopBracket}}, console.ExitDone},
		"found, one made again": {bench.SeriesFacts{Kind: bench.KindFindMax, SLOs: slos, Points: []bench.Point{void, point(), broken}, Stop: bench.Stop{Code: bench.StopBracket}}, console.ExitDone},
		"lowest misses":         {bench.SeriesFacts{Kind: bench.KindFindMax, SLOs: slos, Points: []bench.Point{point(), point("late")}, Stop: bench.Stop{Code: bench.StopLowest}}, console.ExitMissed},
		"client-bound":          {bench.SeriesFacts{Kind: bench.KindFindMax, SLOs: slos, Points: []bench.Point{point(), void, void}, Stop: bench.Stop{Code: bench.StopClient}}, console.ExitVoid},
		"nothing in between":    {bench.SeriesFacts{Kind: bench.KindSweep, Points: []bench.Point{point()}, Stop: bench.Stop{Code: bench.StopNoAnchors}}, console.ExitFailed},
	} {
		err := judgeSeries(&tt.facts)
		if code := exitOf(err); code != tt.want {
			t.Errorf("%s: exit %d (%v), want %d", name, code, err, tt.want)
		}
	}
}
