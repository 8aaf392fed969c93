package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/stat"
	"perflab/internal/workload"
)

// What a series varies from run to run.
const (
	AxisRate        = "rate"        // requests/s
	AxisConcurrency = "concurrency" // calls in flight at most
	Synchronous     = "synchronous" // one call at a time
	Throughput      = "throughput"  // all requests at once
	Same            = "run"         // nothing but the seed
)

// Load is how hard one run of a series presses.
type Load struct {
	Axis  string  `json:"axis"`
	Value float64 `json:"value,omitzero"` // of a rate, a concurrency, or the number of a repeated run
}

// String returns "rate 4", "synchronous".
func (l Load) String() string {
	if l.Value == 0 {
		return l.Axis
	}
	return l.Axis + " " + Short(l.Value)
}

// name is the load as the name of a directory: "rate-4".
func (l Load) name() string {
	if l.Value == 0 {
		return l.Axis
	}
	return l.Axis + "-" + Short(l.Value)
}

func Short(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Apply returns the workload under this load.
func (l Load) Apply(w workload.Spec) workload.Spec {
	switch l.Axis {
	case AxisRate:
		if w.Arrival == "inf" || w.Arrival == "trace" {
			w.Arrival, w.Speed = "", 0
		}
		w.Rate = workload.Rate(l.Value)
	case AxisConcurrency:
		w.MaxConcurrency = int(l.Value)
	case Synchronous, Throughput:
		w.Arrival, w.Rate, w.Burstiness, w.Speed = "inf", workload.Rate(math.Inf(1)), 0, 0
		if l.Axis == Synchronous {
			w.MaxConcurrency = 1
		}
	}
	return w.Defaults()
}

// Step is what a plan wants measured next.
type Step struct {
	Load     Load
	Requests int // 0: as many as the spec says
}

// LoadPlan decides which loads a series measures, one after the other. It is pure:
// the same points told give the same steps.
type LoadPlan interface {
	Ask() (Step, bool) // false: nothing more
	Tell(Point)        // the point that the last step led to
}

// Point is one run of a series.
type Point struct {
	Load      Load           `json:"load"`
	Dir       string         `json:"dir"` // below the series' directory
	Seed      uint64         `json:"seed"`
	Nonce     string         `json:"nonce,omitempty"`
	Requests  int            `json:"requests"`
	Offered   float64        `json:"offered_rate,omitzero"`  // requests/s; absent: all at once
	Achieved  float64        `json:"achieved_rate,omitzero"` // requests/s: see achieved
	Saturated bool           `json:"saturated"`              // the server fell behind what was offered
	Void      bool           `json:"void"`                   // not to be believed, and so in no conclusion
	Partial   bool           `json:"partial"`                // stopped before its end; in no conclusion either
	Missed    []string       `json:"missed"`                 // what it missed of SLOs and share of failures, a phrase each
	Summary   result.Summary `json:"summary"`
}

// Usable reports whether the point may enter a conclusion.
func (p Point) Usable() bool { return !p.Void && !p.Partial }

// Meets reports whether the point is usable and missed nothing.
func (p Point) Meets() bool { return p.Usable() && len(p.Missed) == 0 }

// Stop says why a series ended.
type Stop struct {
	Code string `json:"code"`
	Text string `json:"text"` // one sentence
}

// Codes of a stop. A search has the others of findmax.go besides.
const (
	StopDone        = "done"
	StopInterrupted = "interrupted"
	StopError       = "error"
)

// SeriesFacts are the facts of a series, as its file holds them.
type SeriesFacts struct {
	Schema    string          `json:"schema"` // "perflab.series/1"
	Version   string          `json:"version"`
	Kind      string          `json:"kind"` // sweep, find-max, repeat
	Simulated bool            `json:"simulated"`
	Model     string          `json:"model"`
	Targets   []string        `json:"targets"`
	Workload  string          `json:"workload"`
	Cache     string          `json:"cache,omitempty"`
	SLOs      []result.SLO    `json:"slos,omitempty"`
	MaxErrors float64         `json:"max_error_rate"`
	Points    []Point         `json:"points"`
	Spread    []result.Spread `json:"spread,omitempty"` // of a repeated run
	Max       *Max            `json:"max,omitempty"`    // of a search, where it found one
	Stop      Stop            `json:"stop"`

	Percentiles []float64 `json:"metric_percentiles,omitempty"` // that were asked to be shown
	Sections    []string  `json:"percentile_metrics,omitempty"` // of a repeated run, likewise
}

// Kinds of series.
const (
	KindSweep   = "sweep"
	KindFindMax = "find-max"
	KindRepeat  = "repeat"
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
	RunOne    func(context.Context, Runner) (*Outcome, error) // makes a run; nil: Bench.Run
	Begun     func(Step, *load.Progress)                      // told before each run; may be nil
	Ended     func(Point, *Outcome)                           // told after each run; may be nil

	Percentiles []float64 // to show, kept with the facts
	Sections    []string  // to show, likewise

	fits int // so many requests the dataset is known to have
}

// Run makes the runs that the plan asks for. What was measured is returned
// also beside an error.
func (s *Series) Run(ctx context.Context) (*SeriesFacts, error) {
	if err := rundir.Free(s.Bench.Dir); err != nil {
		return nil, err
	}
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
			facts.take(&out.Header, p)
			if s.Ended != nil {
				s.Ended(p, out)
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

// take adds a point and what its header says of the whole series.
func (f *SeriesFacts) take(h *result.Header, p Point) {
	f.Simulated = f.Simulated || p.Summary.Simulated
	f.Model, f.Targets, f.Workload, f.Cache = h.Model, h.Targets, h.Workload, h.Cache
	f.Points = append(f.Points, p)
}

// stop writes why the series ended; err is what ended it before its plan did.
func (s *Series) stop(ctx context.Context, f *SeriesFacts, err error) error {
	if c, ok := s.Plan.(interface{ Conclude() (Stop, *Max) }); ok {
		f.Stop, f.Max = c.Conclude()
	} else {
		f.Stop = Stop{StopDone, fmt.Sprintf("all %d runs were made", len(f.Points))}
	}
	switch {
	case ctx.Err() != nil:
		f.Stop = Stop{StopInterrupted, fmt.Sprintf("interrupted; whole runs made: %d", f.usable())}
	case err != nil:
		f.Stop = Stop{StopError, err.Error()}
	}
	if len(f.Points) == 0 {
		return err // nothing to keep
	}
	return cmp.Or(err, s.save(f))
}

func (f *SeriesFacts) usable() int {
	n := 0
	for _, p := range f.Points {
		if p.Usable() {
			n++
		}
	}
	return n
}

// save writes the series' file.
func (s *Series) save(f *SeriesFacts) error {
	if s.Kind == KindRepeat {
		f.Spread = Spreads(f.Points)
	}
	return rundir.WriteJSON(filepath.Join(s.Bench.Dir, f.File()), f)
}

// File is the name of the series' file.
func (f *SeriesFacts) File() string {
	if f.Kind == KindRepeat {
		return "repeat.json"
	}
	return "sweep.json"
}

// measure makes one run. The outcome is nil when there is none to speak of.
func (s *Series) measure(ctx context.Context, step Step, before []Point) (Point, *Outcome, error) {
	b, err := s.bench(step, before)
	if err != nil {
		return Point{}, nil, err
	}
	if err := os.MkdirAll(s.Bench.Dir, 0o755); err != nil {
		return Point{}, nil, fmt.Errorf("create the series' directory: %w", err)
	}
	b.Progress = &load.Progress{}
	if s.Begun != nil {
		s.Begun(step, b.Progress)
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
		Requests: out.Header.Requests, Offered: out.Header.Rate,
	}
	p.Judge(out, s.SLOs, s.MaxErrors)
	return p, out, err
}

// bench is the run of a step: the k-th run has the k-th seed after the spec's,
// and a nonce of its own.
func (s *Series) bench(step Step, before []Point) (Runner, error) {
	b := s.Bench
	w := step.Load.Apply(b.Spec.Workload)
	if k := len(before); !s.SameSeed && k > 0 {
		w.Seed += uint64(k)
		if w.Nonce != "" {
			w.Nonce += "-" + strconv.Itoa(k+1)
		}
	}
	if step.Requests > 0 {
		w = w.Sized(step.Requests)
		var err error
		if w, err = s.fit(w); err != nil {
			return b, fmt.Errorf("%s: %w", step.Load, err)
		}
	}
	b.Spec.Workload = w
	name, times := step.Load.name(), 1
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

// fit asks for no more requests than a dataset that is not repeated has.
func (s *Series) fit(w workload.Spec) (workload.Spec, error) {
	if w.NumPrompts <= s.fits {
		return w, nil
	}
	if w.Tokenizer == workload.ServerTokenizer {
		return w, nil // Bench.Run says whether the dataset has as many
	}
	_, _, err := OpenWorkload(w)
	if err == nil {
		s.fits = w.NumPrompts
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

// achieved is the rate at which calls ended. Where a rate was offered it is
// taken between the 10 % and the 90 % quantile of their ends, which leaves out
// filling and draining, and compared with the same span of the due times, which
// leaves out chance in the arrivals: a run of any length at a rate that the
// server keeps up with achieves that rate. Few calls have no such span.
//
// Calls that were not offered at a rate end in waves, many in one instant, so
// that a span between two of their ends says nothing: theirs is the rate of the
// whole run.
func achieved(offered float64, out *Outcome) float64 {
	const least = 10
	var due, ends []float64
	for _, c := range out.Calls {
		if c.Class == result.OK {
			due, ends = append(due, c.Due.Seconds()), append(ends, c.End.Seconds())
		}
	}
	whole := out.Summary.Figures["request_throughput"]
	if offered <= 0 || out.Header.Limit > 0 || len(ends) < least {
		return whole
	}
	span := func(x []float64) float64 {
		slices.Sort(x)
		return stat.Quantile(x, 0.9) - stat.Quantile(x, 0.1)
	}
	sent, ended := span(due), span(ends)
	if sent <= 0 || ended <= 0 {
		return whole
	}
	return offered * min(1, sent/ended) * out.Summary.Figures["success_rate"]
}

// Judge says what a run of a series is worth.
func (p *Point) Judge(out *Outcome, slos []result.SLO, maxErrors float64) {
	p.Summary, p.Missed = out.Summary, []string{}
	p.Achieved = achieved(p.Offered, out)
	figures := p.Summary.Figures
	done, failed := figures["completed"], figures["failed"]
	p.Partial = p.Summary.Partial
	p.Void = p.Summary.Verdict.Status == result.Voided && done > 0
	c, _ := p.Summary.Verdict.Check("saturation")
	p.Saturated = c.Status == result.Remark
	for _, slo := range slos {
		if met, _ := slo.Judge(p.Summary); met {
			continue
		}
		v, ok := p.Summary.Get(slo.Metric)
		if !ok {
			p.Missed = append(p.Missed, slo.Metric+" is absent")
			continue
		}
		beyond := map[string]string{"<=": ">", ">=": "<"}[slo.Op]
		p.Missed = append(p.Missed, fmt.Sprintf("%s %s %s %s", slo.Metric, rounded(v), beyond, Short(slo.Limit)))
	}
	if rate := failed / (done + failed); done == 0 || rate > maxErrors {
		p.Missed = append(p.Missed, fmt.Sprintf("%g of %g calls failed", failed, done+failed))
	}
}

// rounded writes a figure with as many digits as a sentence bears.
func rounded(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Concluded reports whether the search has an answer: not where a point could not
// be believed, for then nothing is known of the load that was asked about.
func (f *SeriesFacts) Concluded() bool {
	return f.Max != nil && f.Stop.Code != StopVoid && f.Stop.Code != StopClient
}

// Edge is the run to show for a search: the last at its answer, else what ended it,
// a void point or the lowest load.
func (f *SeriesFacts) Edge() Point {
	last := f.Points[len(f.Points)-1]
	if f.Stop.Code == StopVoid || f.Stop.Code == StopClient {
		return last
	}
	at := f.Points[0].Load // a search begins at its lowest
	if f.Max != nil {
		at = f.Max.Load
	}
	for _, p := range slices.Backward(f.Points) {
		if p.Load == at && p.Usable() {
			return p
		}
	}
	return last
}
