package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"perflab/internal/durable"
	"perflab/internal/load"
	"perflab/internal/profile"
	"perflab/internal/profile/mlperf"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/workload"
)

// Series makes several runs of one spec, each with a seed of its own so that
// the server's prefix cache holds nothing of the run before, and each in its
// own directory. The series' file is written anew after each of them.
type Series struct {
	Bench     Runner // its Dir is the series' own
	Kind      string
	Plan      LoadPlan
	SLOs      []result.SLO
	MaxErrors float64                                         // share of calls that may fail at a point that meets
	SameSeed  bool                                            // every run sends the same requests
	CMax      int                                             // highest concurrency that the server is said to support, of a curve by the rules of a benchmark
	RunOne    func(context.Context, Runner) (*Outcome, error) // makes a run; nil: Bench.Run
	OnStart   func(Step, *load.Progress)                      // told before each run; may be nil
	OnEnd     func(Point, *Outcome)                           // told after each run; may be nil

	Percentiles []float64 // to show, kept with the facts
	Sections    []string  // to show, likewise

	knownRows int      // so many requests the dataset is known to have
	held      *os.File // the series' directory, for who asks whether the series is under way
}

// Run makes the runs that the plan asks for. What was measured is returned
// also beside an error.
func (s *Series) Run(ctx context.Context) (*SeriesFacts, error) {
	if err := rundir.Free(s.Bench.Dir); err != nil {
		return nil, err
	}
	defer func() { s.held.Close() }()
	facts := &SeriesFacts{
		Schema: "perflab.series/1", Version: s.Bench.Version, Kind: s.Kind,
		SLOs: s.SLOs, MaxErrors: s.MaxErrors, Points: []Point{},
		Percentiles: s.Percentiles, Sections: s.Sections,
	}
	for {
		if ctx.Err() != nil {
			return facts, s.stop(ctx, facts, context.Cause(ctx))
		}
		step, ok := s.Plan.Ask()
		if !ok {
			return facts, s.stop(ctx, facts, nil)
		}
		p, out, err := s.measure(ctx, step, facts.Points)
		if out != nil {
			facts.addPoint(&out.Header, p)
			if err == nil {
				err = s.addToCurve(facts, out)
			}
			if s.OnEnd != nil {
				s.OnEnd(p, out)
			}
		}
		if err != nil {
			return facts, s.stop(ctx, facts, err)
		}
		s.Plan.Tell(p)
		if err := s.save(facts); err != nil {
			return facts, err
		}
	}
}

// stop writes why the series ended; err is what ended it before its plan did.
func (s *Series) stop(ctx context.Context, f *SeriesFacts, err error) error {
	if c, ok := s.Plan.(interface{ Conclude() (Stop, *Max) }); ok {
		f.Stop, f.Max = c.Conclude()
		s.addServed(f)
	} else {
		f.Stop = Stop{StopDone, fmt.Sprintf("all %d runs were made", len(f.Points))}
	}
	switch {
	case ctx.Err() != nil:
		f.Stop = Stop{StopInterrupted, fmt.Sprintf("interrupted; whole runs made: %d", f.usable())}
	case err != nil:
		f.Stop = Stop{StopError, s.Bench.Secrets.Text(err.Error())}
	}
	if len(f.Points) == 0 {
		return err // nothing to keep
	}
	return cmp.Or(err, s.save(f))
}

// addServed adds to what a search of a number of sessions found how many agents are served.
func (s *Series) addServed(f *SeriesFacts) {
	if f.Max == nil || f.Max.Load.Axis != AxisConcurrency || !s.Bench.Spec.Workload.Defaults().CountsSessions() {
		return
	}
	edge := maps.Clone(f.Edge().Summary.Figures)
	result.Search{Axis: AxisConcurrency, Sessions: true, Load: f.Max.Load.Value}.AddFigures(edge, s.Bench.Spec.GPUs)
	f.Max.Figures = map[string]float64{}
	for name, v := range edge {
		if strings.HasPrefix(name, result.AgentsServed) {
			f.Max.Figures[name] = v
		}
	}
}

// save writes the series' file.
func (s *Series) save(f *SeriesFacts) error {
	if s.Kind == KindRepeat {
		f.Spread = Spreads(f.Points)
	}
	if f.Curve != nil {
		f.Submission = mlperf.Check(*f.Curve)
	}
	return rundir.WriteJSON(filepath.Join(s.Bench.Dir, f.File()), f)
}

// measure makes one run. The outcome is nil when there is none to speak of.
func (s *Series) measure(ctx context.Context, step Step, before []Point) (Point, *Outcome, error) {
	b, err := s.bench(step, before)
	if err != nil {
		return Point{}, nil, err
	}
	if err := durable.MkdirAll(s.Bench.Dir); err != nil {
		return Point{}, nil, fmt.Errorf("create the series' directory: %w", err)
	}
	if s.held == nil {
		if f, err := os.Open(s.Bench.Dir); err == nil {
			_, _ = durable.Hold(f) // where it cannot be, nobody is told
			s.held = f
		}
	}
	b.Progress = &load.Progress{}
	if s.OnStart != nil {
		s.OnStart(step, b.Progress)
	}
	run := s.RunOne
	if run == nil {
		run = func(ctx context.Context, b Runner) (*Outcome, error) { return b.Run(ctx) }
	}
	out, err := run(ctx, b)
	if out == nil {
		if len(before) == 0 {
			os.Remove(s.Bench.Dir) // empty: nothing was measured
		}
		return Point{}, nil, err
	}
	p := Point{
		Load: step.Load, Dir: filepath.Base(out.Dir), Seed: b.Spec.Workload.Seed, Nonce: b.Spec.Workload.Nonce,
		Requests: cmp.Or(out.Header.Requests, out.Totals.Requests), Offered: out.Header.Rate, Early: out.Early,
	}
	p.Judge(out, s.SLOs, s.MaxErrors)
	return p, out, err
}

// bench is the run of a step: the k-th run has the k-th seed after the spec's,
// and a nonce of its own.
func (s *Series) bench(step Step, before []Point) (Runner, error) {
	b := s.Bench
	w := step.Load.Apply(b.Spec.Workload)
	if step.For > 0 {
		w.Duration = workload.Span(step.For.String())
	}
	if k := len(before); !s.SameSeed && k > 0 {
		if !profile.IsMLPerf(b.Spec.Rules) {
			w.Seed += uint64(k)
		}
		if w.Nonce != "" {
			w.Nonce += "-" + strconv.Itoa(k+1)
		}
	}
	if step.Requests > 0 {
		w = w.Sized(step.Requests)
		var err error
		if w, err = s.fitToDataset(w); err != nil {
			return b, fmt.Errorf("%s: %w", step.Load, err)
		}
	}
	b.Spec.Workload, b.Early = w, step.Early
	name, times := step.Load.Name(), 1
	for _, p := range before {
		if p.Load == step.Load {
			times++
		}
	}
	if times > 1 {
		name += "-" + strconv.Itoa(times)
	}
	b.Dir = filepath.Join(s.Bench.Dir, name)
	return b, nil
}

// fitToDataset asks for no more requests than a dataset that is not repeated has.
func (s *Series) fitToDataset(w workload.Spec) (workload.Spec, error) {
	if w.NumPrompts <= s.knownRows {
		return w, nil
	}
	if w.Tokenizer == workload.ServerTokenizer {
		return w, nil // Bench.Run says whether the dataset has as many
	}
	_, _, err := OpenWorkload(w)
	if err == nil {
		s.knownRows = w.NumPrompts
		return w, nil
	}
	all := w
	all.NumPrompts = 0
	whole, _, werr := OpenWorkload(all)
	if werr != nil || whole.Len() >= w.NumPrompts {
		return w, err
	}
	w.NumPrompts = whole.Len()
	return w, nil
}
