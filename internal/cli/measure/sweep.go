package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/block"
	"perflab/internal/cli/console"
	"perflab/internal/cli/view"
	"perflab/internal/dirdoc"
	"perflab/internal/load"
	"perflab/internal/profile"
	"perflab/internal/result"
	"perflab/internal/selfcheck"
	"perflab/internal/seriesdoc"
	"perflab/internal/study"
	"perflab/internal/workload"
)

// seriesFlags make one command many runs.
type seriesFlags struct {
	sweep    string
	points   int
	axis     string // of find-max
	find     bench.FindMaxOptions
	repeat   int
	sameSeed bool

	timed bool // a --duration is given

	sweepLoads bench.Sweep
}

func (f *seriesFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.sweep, "sweep", "", "a run at each load: rate=1,2,4, rate=1..16x2 (doubling), concurrency=8..64+8 (adding); rate=auto measures one call at a time and all at once, and rates between")
	fs.IntVar(&f.points, "sweep-points", 8, "runs of --sweep rate=auto, its two ends among them")
	fs.StringVar(&f.axis, "find-max", "", "rate or concurrency: search the highest that meets every --slo, of sessions how many agents are served; exit status 3 when the lowest misses")
	fs.Float64Var(&f.find.From, "find-max-from", 0, "lowest load, at which the search begins (default: begin where a burst of 32 requests suggests, and go down while that misses)")
	fs.Float64Var(&f.find.To, "find-max-to", 0, "highest load of the search; 0 has no limit")
	fs.Float64Var(&f.find.Precision, "find-max-precision", 0.05, "how narrow the bracket must be, as a share of the load")
	fs.IntVar(&f.find.Requests, "find-max-requests", 0, "requests of each run at least (default what the SLOs' percentiles need, and 100)")
	fs.Float64Var(&f.find.Seconds, "find-max-seconds", 20, "each run sends for this long at least, unless it is sure before that it misses or meets")
	fs.IntVar(&f.repeat, "repeat", 0, "make the run this many times, with seeds seed, seed+1, ..., and show how the figures vary")
	fs.BoolVar(&f.sameSeed, "repeat-same-seed", false, "with --repeat: the same requests in each run (not with --cache unique: the prefix cache would have them)")
}

// kind is which series was asked for; "" for a single run.
func (f *seriesFlags) kind(fs *pflag.FlagSet) string {
	switch {
	case f.sweep != "" || fs.Changed("sweep"):
		return bench.KindSweep
	case f.axis != "" || fs.Changed("find-max"):
		return bench.KindFindMax
	case fs.Changed("repeat"):
		return bench.KindRepeat
	}
	return ""
}

// parse checks the flags of a series, and gives the workload the load of its
// first run in place of the one that the series varies.
func (f *seriesFlags) parse(fs *pflag.FlagSet, w *workload.Spec) error {
	kind := f.kind(fs)
	f.timed = fs.Changed("duration")
	if err := f.checkCombination(fs, kind); err != nil {
		return err
	}
	first := bench.Load{}
	var err error
	switch kind {
	case bench.KindSweep:
		first, err = f.parseSweep(fs)
	case bench.KindFindMax:
		first, err = f.parseFind(fs)
	case bench.KindRepeat:
		if f.repeat < 2 {
			err = fmt.Errorf("--repeat is %d: it takes 2 runs or more to vary", f.repeat)
		}
	}
	if err != nil {
		return err
	}
	taken := map[string]string{bench.AxisRate: "request-rate", bench.AxisConcurrency: "max-concurrency"}[first.Axis]
	if taken != "" && fs.Changed(taken) {
		return fmt.Errorf("--%s does not apply with --%s %s, which sets it", taken, kind, first.Axis)
	}
	switch first.Axis {
	case bench.AxisRate:
		for _, name := range []string{"ramp-up-strategy", "steps"} {
			if fs.Changed(name) {
				f.sweepLoads = bench.Sweep{} // its loads are not looked at further
				w.RampStrategy, w.RampStart, w.RampEnd, w.Steps = "", 0, 0, ""
				return fmt.Errorf("--%s does not apply with --%s rate: each run has one rate", name, kind)
			}
		}
		w.Rate = workload.Rate(first.Value)
	case bench.AxisConcurrency:
		w.MaxConcurrency = int(first.Value)
	}
	return nil
}

// checkCombination refuses flags of one series beside another, and those of a single run.
func (f *seriesFlags) checkCombination(fs *pflag.FlagSet, kind string) error {
	for _, g := range []struct{ of, flags string }{
		{bench.KindSweep, "sweep,sweep-points"},
		{bench.KindFindMax, "find-max,find-max-from,find-max-to,find-max-precision,find-max-requests,find-max-seconds"},
		{bench.KindRepeat, "repeat,repeat-same-seed"},
	} {
		for name := range strings.SplitSeq(g.flags, ",") {
			switch {
			case !fs.Changed(name) || g.of == kind:
			case name == g.of:
				return fmt.Errorf("--%s and --%s are two series: give one of them", kind, name)
			default:
				return fmt.Errorf("--%s needs --%s", name, g.of)
			}
		}
	}
	if kind == "" {
		return nil
	}
	alone := []string{"parquet", "block"}
	if kind != bench.KindRepeat {
		alone = append(alone, "percentile-metrics")
	}
	for _, name := range alone {
		if fs.Changed(name) {
			return fmt.Errorf("--%s is for a single run: --%s prints a table of its runs, and each keeps its own directory", name, kind)
		}
	}
	if fs.Changed("result-filename") && !fs.Changed("append-result") {
		return fmt.Errorf("--result-filename is one file, and --%s makes a run after another: give --append-result too, for a line of each", kind)
	}
	return nil
}

func (f *seriesFlags) parseSweep(fs *pflag.FlagSet) (first bench.Load, err error) {
	if f.sweepLoads, err = bench.ParseSweep(f.sweep); err != nil {
		return first, fmt.Errorf("--sweep: %w", err)
	}
	switch {
	case !f.sweepLoads.Auto && fs.Changed("sweep-points"):
		return first, errors.New("--sweep-points is for --sweep rate=auto: the other sweeps name their points")
	case f.sweepLoads.Auto && (f.points < 3 || f.points > 100):
		return first, fmt.Errorf("--sweep-points is %d: from 3 to 100 fit, two of them the ends", f.points)
	case f.sweepLoads.Auto:
		return bench.Load{Axis: bench.AxisRate, Value: 1}, nil
	}
	return bench.Load{Axis: f.sweepLoads.Axis, Value: f.sweepLoads.Values[0]}, nil
}

func (f *seriesFlags) parseFind(fs *pflag.FlagSet) (first bench.Load, err error) {
	o := &f.find
	o.Axis, o.Points = f.axis, study.SearchPoints
	whole := func(v float64) bool { return f.axis == bench.AxisRate || v == math.Trunc(v) }
	switch {
	case f.axis != bench.AxisRate && f.axis != bench.AxisConcurrency:
		err = fmt.Errorf("--find-max %q is not known: rate or concurrency", f.axis)
	case !fs.Changed("slo"):
		err = errors.New("--find-max needs --slo: what the load must meet, such as 'p99_ttft_ms <= 500'")
	case fs.Changed("until-precision"):
		err = errors.New("--until-precision does not apply with --find-max, which sets how many requests each run has")
	case fs.Changed("num-prompts"):
		err = errors.New("--num-prompts does not apply with --find-max: --find-max-requests and --find-max-seconds say how long a run is at least")
	case fs.Changed("find-max-from") && !(o.From > 0) || math.IsInf(o.From, 1) || !whole(o.From):
		err = fmt.Errorf("--find-max-from is %g: it must be above 0, and a whole number of a concurrency", o.From)
	case fs.Changed("find-max-to") && !(o.To > 0 && o.To >= o.From) || math.IsInf(o.To, 1) || !whole(o.To):
		err = fmt.Errorf("--find-max-to is %g: it must be above 0 and at least --find-max-from, and a whole number of a concurrency", o.To)
	case !(o.Precision > 0 && o.Precision < 1):
		err = fmt.Errorf("--find-max-precision is %g: it is a share between 0 and 1", o.Precision)
	case o.Requests < 0 || fs.Changed("find-max-requests") && o.Requests == 0:
		err = fmt.Errorf("--find-max-requests is %d: it must be above 0", o.Requests)
	case !(o.Seconds >= 0) || o.Seconds > 86400:
		err = fmt.Errorf("--find-max-seconds is %g: it must be from 0 to a day", o.Seconds)
	}
	return bench.Load{Axis: f.axis, Value: cmp.Or(o.From, 1)}, err
}

// check looks at every load of a sweep before the first run.
func (f *seriesFlags) check(fs *pflag.FlagSet, s bench.Spec) error {
	if f.sameSeed && f.kind(fs) == bench.KindRepeat && cmp.Or(s.Cache, bench.CacheUnique) == bench.CacheUnique {
		return errors.New("--repeat-same-seed needs --cache reset, warm or shared: the server's prefix cache has the prompts of the run before")
	}
	if f.kind(fs) != bench.KindSweep {
		return nil
	}
	for _, l := range f.sweepLoads.Loads() {
		w := l.Apply(s.Workload)
		if err := w.Validate(); err != nil {
			return fmt.Errorf("--sweep %s, %s: %w", f.sweep, l, err)
		}
		if l.Axis == bench.AxisConcurrency && w.NumPrompts > 0 && int(l.Value) > w.NumPrompts {
			return fmt.Errorf("--num-prompts %d never reaches the concurrency of %g", w.NumPrompts, l.Value)
		}
	}
	return nil
}

// plan is what the flags want measured.
func (f *seriesFlags) plan(kind string, s bench.Spec, slos []result.SLO, maxErrors float64) bench.LoadPlan {
	switch kind {
	case bench.KindSweep:
		if profile.IsMLPerf(s.Rules) {
			return bench.CurvePlan(s.Rules, f.sweepLoads, f.timed)
		}
		return f.sweepLoads.LoadPlan(f.points, s.Workload.NumPrompts)
	case bench.KindFindMax:
		o := f.find
		o.Early = &bench.Early{SLOs: slos, MaxErrors: maxErrors}
		o.Requests, o.Turns = cmp.Or(o.Requests, bench.MinRequests(slos)), bench.TurnsPerSession(s.Workload)
		return bench.NewFindMax(o)
	}
	return bench.Repeat(f.repeat)
}

// liveSeries is the live line of a series: which run, and how far it is.
type liveSeries struct {
	mu       sync.Mutex
	step     bench.Step
	progress *load.Progress
	idle     load.Progress // before the first run
	ended    int
	phase    phase
}

func (v *liveSeries) begun(step bench.Step, p *load.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.step, v.progress = step, p
}

func (v *liveSeries) text() string {
	v.mu.Lock()
	step, p, made := v.step, v.progress, v.ended
	v.mu.Unlock()
	if p == nil {
		return ""
	}
	name := step.Load.String()
	if step.Load.Axis != bench.Same {
		name = fmt.Sprintf("run %d, %s", made+1, name)
	}
	return name + ": " + benchLine(&v.phase, p)
}

// runSeries makes the runs and shows them.
func runSeries(ctx context.Context, env console.Env, f *benchFlags, kind string) error {
	if err := f.placeFiles(); err != nil {
		return err
	}
	live := &liveSeries{}
	line := console.StartLive(env, live.text, nil)
	stop, err := f.serveMetrics(env, live.progressOf)
	if err != nil {
		line.End()
		return err
	}
	defer stop()
	if err := f.rules.announce(env, f.series.sweepLoads, f.series.timed); err != nil {
		line.End()
		return err
	}
	files := &seriesFiles{f: f, names: map[string]bool{}, notes: map[string]bool{}}
	s := bench.Series{
		Bench: bench.Runner{
			Spec: f.spec, Repo: f.repo, APIKey: env.Getenv("OPENAI_API_KEY"), Secrets: env.Secrets, Dir: f.out, Version: env.Version, Invoked: f.invoked(env), Phase: live.phase.set,
			Sources: f.sources(), SelfCheck: selfcheck.Load(env.Version), Crew: f.crew,
		},
		Kind: kind, Plan: f.series.plan(kind, f.spec, f.bounds, f.maxErrors), SLOs: f.bounds, MaxErrors: f.maxErrors, SameSeed: f.series.sameSeed, CMax: f.rules.cMax,
		Percentiles: f.shownPercentiles, OnStart: live.begun,
		OnEnd: func(p bench.Point, out *bench.Outcome) {
			live.mu.Lock()
			live.ended++
			live.mu.Unlock()
			files.add(out)
			f.spans.write(ctx, out, line.Say)
			for _, note := range files.newNotes(out) {
				line.Say("perflab: %s", note)
			}
			line.Say("%s", pointLine(p))
		},
	}
	if kind == bench.KindRepeat {
		s.Sections = strings.Split(f.sections, ",")
	}
	f.kube.tell(&s.Bench)
	if err := s.Bench.ChooseTokenizer(ctx); err != nil {
		line.End()
		return err
	}
	facts, err := s.Run(ctx)
	line.End()
	if facts == nil || len(facts.Points) == 0 {
		return err
	}
	if err != nil {
		err = console.Stopped(err, "what was measured is kept in "+f.out)
	}
	if serr := errors.Join(f.showSeries(env, facts), files.err); serr != nil {
		return errors.Join(err, serr)
	}
	if f.save {
		fmt.Fprintf(env.Stderr, "result files: %d in %s\n", len(files.names), cmp.Or(f.resultDir, "."))
	}
	return cmp.Or(err, judgeSeries(facts))
}

// pointLine says in a line how a run of a series ended.
func pointLine(p bench.Point) string {
	v := p.Summary.Verdict
	text := fmt.Sprintf("%s: %s req/s, verdict %s", p.Load, console.Digits(p.Achieved), v.Status)
	switch {
	case p.Partial:
		text += ", stopped before its end"
	case p.Failed:
		text += ", missed " + strings.Join(p.Missed, ", ")
	case p.Void:
		text += " (" + v.Why() + ")"
	case len(p.Missed) > 0:
		text += ", missed " + strings.Join(p.Missed, ", ")
	}
	switch {
	case p.Saturated:
		text += ", saturated"
	case p.Capped:
		text += ", held back by the concurrency limit"
	}
	if p.Early != "" {
		text += ", ended early: " + p.Early
	}
	return text
}

// showSeries prints the table of a series, and writes its page.
func (f *benchFlags) showSeries(env console.Env, facts *bench.SeriesFacts) error {
	st := block.Style{Sections: strings.Split(f.sections, ","), Percentiles: f.shownPercentiles}
	v := view.OfDirectory(dirdoc.Series(facts, f.out, st))
	if err := v.Text(env.Stdout); err != nil {
		return err
	}
	first := facts.Points[0]
	last := facts.Points[len(facts.Points)-1]
	seeds := fmt.Sprintf("seeds %d to %d", first.Seed, last.Seed)
	if first.Seed == last.Seed {
		seeds = fmt.Sprintf("seed %d", first.Seed)
	}
	fmt.Fprintf(env.Stderr, "%s%s, cache %s\n", seeds, seriesdoc.NonceText(first.Nonce), facts.Cache)
	fmt.Fprintf(env.Stderr, "runs and %s: %s\n", facts.File(), f.out)
	return console.WriteFiles(env, f.html, v.HTML, "", nil)
}

// seriesDir is where a series goes when --out does not say.
func seriesDir(kind, stamp string) string {
	return filepath.Join("perflab-out", cmp.Or(kind, "bench")+"-"+stamp)
}

// progressOf is the progress of the run that a series is at.
func (v *liveSeries) progressOf() *load.Progress {
	v.mu.Lock()
	defer v.mu.Unlock()
	return cmp.Or(v.progress, &v.idle)
}
