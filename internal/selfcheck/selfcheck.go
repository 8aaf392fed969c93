package selfcheck

import (
	"context"
	"fmt"
	"math"
	"time"

	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/stat"
	"perflab/internal/truth"
)

// Check measures this client on this machine against a server that knows
// the truth: how far its stamps, latencies and send times are off, and how many
// events it takes in.
type Check struct {
	Server  truth.Remote
	Deep    bool   // hold 10,000 and 20,000 streams as well, or as many as this machine allows
	Version string // of perflab

	plan checkPlan // zero: the usual one
}

// checkPlan is how much is measured; tests take little.
type checkPlan struct {
	streams int
	rates   []float64 // events/s; the second one's errors are kept
	long    time.Duration
	tokens  int // of the streams whose latencies are compared
	sends   int
	most    float64 // events/s at which the search for the most begins
	steps   int     // of it, at most
	held    []int   // streams held at a time
	hold    time.Duration
}

func usualPlan() checkPlan {
	return checkPlan{streams: 1000, rates: []float64{20_000, 50_000, 80_000}, long: 1500 * time.Millisecond, tokens: 100, sends: 4000, most: 80_000, steps: 8,
		held: []int{10_000, 20_000}, hold: 4 * time.Second}
}

// Line is one figure of a self check beside its goal.
type Line struct {
	Load    string // what was run
	Figure  string
	Value   string
	Goal    string // "": none
	Verdict string
}

// Verdicts of a line. A figure is not judged where the server itself was the
// limit or was kept from its CPU.
const (
	WithinGoal = "ok"
	OverGoal   = "over"
	NotJudged  = "not judged"
)

// Goals of the client. Arrival errors are for kernel stamps and up to 70 % of
// a core; the errors of latencies are for 1,000 streams.
const (
	goalArrivalP50 = 5 * time.Microsecond
	goalArrivalP99 = 20 * time.Microsecond
	goalMerged     = 0.01
	goalTTFT       = time.Millisecond     // arrivals spread
	goalTTFTBurst  = 3 * time.Millisecond // all at once
	goalITL        = 200 * time.Microsecond
	goalSendP50    = 20 * time.Microsecond
	goalSendP99    = 500 * time.Microsecond
	goalMemory     = 1 << 30 // bytes, of 20,000 streams
)

// checkLead is the time from all streams being open to the first event.
const checkLead = 300 * time.Millisecond

// Run makes every measurement and gives each line to emit as it is known.
func (s Check) Run(ctx context.Context, emit func(Line)) (result.SelfCheck, error) {
	if s.plan.streams == 0 {
		s.plan = usualPlan()
	}
	r := result.SelfCheck{Taken: time.Now().UTC().Truncate(time.Second), Version: s.Version, Streams: s.plan.streams, EventRate: s.plan.rates[1]}
	for _, step := range []func(context.Context, *result.SelfCheck, func(Line)) error{
		s.arrivals, s.latencies, s.sends, s.saturation, s.deep,
	} {
		if err := step(ctx, &r, emit); err != nil {
			return r, err
		}
	}
	return r, nil
}

// evenStreams is so many streams with events at an even pace, rate of them a second
// in all, for about so long, from when all are open.
func evenStreams(streams int, rate float64, long time.Duration) truth.Params {
	itl := time.Duration(float64(streams) / rate * 1e9)
	return truth.Params{TTFT: checkLead, ITL: itl, Tokens: max(2, int(long/itl)), Gate: streams, Slots: streams}
}

// evenInstants is n due instants, evenly over the time.
func evenInstants(n int, over time.Duration) []time.Duration {
	due := make([]time.Duration, n)
	for i := range due {
		due[i] = over * time.Duration(i) / time.Duration(n)
	}
	return due
}

func (s Check) arrivals(ctx context.Context, r *result.SelfCheck, emit func(Line)) error {
	for _, rate := range s.plan.rates {
		a, err := Measure(ctx, s.Server, evenStreams(s.plan.streams, rate, s.plan.long), evenInstants(s.plan.streams, 400*time.Millisecond))
		if err != nil {
			return err
		}
		p50, p99, p999 := quantiles(a.Arrival)
		if rate == r.EventRate {
			r.ArrivalP50, r.ArrivalP99 = p50, p99
		}
		l := lineWriter{fmt.Sprintf("%s events/s, %s streams", withCommas(rate), withCommas(float64(s.plan.streams))), a, emit}
		l.line("arrival error p50 / p99 / p99.9", fmt.Sprintf("%.0f / %.0f / %.0f us", p50, p99, p999),
			fmt.Sprintf("%d / %d us", goalArrivalP50/time.Microsecond, goalArrivalP99/time.Microsecond),
			p50 <= micros(goalArrivalP50) && p99 <= micros(goalArrivalP99))
		l.line("sends that shared a read", fmt.Sprintf("%.2f %%", 100*a.Merged()), fmt.Sprintf("%.0f %%", 100*goalMerged), a.Merged() <= goalMerged)
		text := "not known: never were all streams open at once"
		if a.Window > 0 {
			text = fmt.Sprintf("%.1f us (%.0f %% of a core)", micros(a.PerEvent()), 100*float64(a.CPU)/float64(a.Window))
		}
		l.show("client CPU per event", text)
	}
	return nil
}

func (s Check) latencies(ctx context.Context, r *result.SelfCheck, emit func(Line)) error {
	p := truth.Params{TTFT: 50 * time.Millisecond, ITL: 20 * time.Millisecond, Tokens: s.plan.tokens}
	for _, tt := range []struct {
		name string
		over time.Duration
		ttft time.Duration // goal
	}{{"spread over 1 s", time.Second, goalTTFT}, {"all at once", 0, goalTTFTBurst}} {
		a, err := Measure(ctx, s.Server, p, evenInstants(s.plan.streams, tt.over))
		if err != nil {
			return err
		}
		// Those of the burst, the harder one and last, are kept.
		r.TTFTError, r.ITLError = millis(a.TTFT), millis(a.ITL)
		l := lineWriter{fmt.Sprintf("%s streams of 50 tok/s, %s", withCommas(float64(s.plan.streams)), tt.name), a, emit}
		l.line("mean TTFT error", formatMillis(a.TTFT), fmt.Sprintf("%g ms", millis(tt.ttft)), a.TTFT.Abs() <= tt.ttft)
		l.line("P99 ITL error", formatMillis(a.ITL), fmt.Sprintf("%g ms", millis(goalITL)), a.ITL.Abs() <= goalITL)
		l.show("mean E2E error", formatMillis(a.E2E))
	}
	return nil
}

func (s Check) sends(ctx context.Context, r *result.SelfCheck, emit func(Line)) error {
	const rate = 2000
	rng := stat.Stream(0, "selfcheck arrivals")
	due := make([]time.Duration, s.plan.sends)
	for i, at := 0, 0.0; i < len(due); i++ {
		due[i] = time.Duration(at * 1e9)
		at += rng.ExpFloat64() / rate
	}
	a, err := Measure(ctx, s.Server, truth.Params{TTFT: 5 * time.Millisecond, Tokens: 1}, due)
	if err != nil {
		return err
	}
	r.SendP50, r.SendP99, _ = quantiles(a.Lateness)
	l := lineWriter{fmt.Sprintf("Poisson arrivals, %s/s", withCommas(rate)), a, emit}
	l.line("request at the server after due, p50 / p99", fmt.Sprintf("%.0f / %.0f us", r.SendP50, r.SendP99),
		fmt.Sprintf("%d / %d us", goalSendP50/time.Microsecond, goalSendP99/time.Microsecond),
		r.SendP50 <= micros(goalSendP50) && r.SendP99 <= micros(goalSendP99))
	return nil
}

// saturation looks for the highest rate at which sends come one to a read: up
// in steps from the plan's rate, or down where that is too many already.
func (s Check) saturation(ctx context.Context, r *result.SelfCheck, emit func(Line)) error {
	const step = 1.25
	rate, up, next := s.plan.most, true, s.plan.most
	l := lineWriter{load: fmt.Sprintf("more and more events, %s streams", withCommas(float64(s.plan.streams))), emit: emit}
	for k := range s.plan.steps {
		rate = next
		a, err := Measure(ctx, s.Server, evenStreams(s.plan.streams, rate, s.plan.long/2), evenInstants(s.plan.streams, 300*time.Millisecond))
		if err != nil {
			return err
		}
		l.a = a
		keeps := a.Failed == 0 && a.Merged() <= goalMerged
		if keeps && l.disturbed() {
			text := "not known"
			if r.MaxEvents > 0 {
				text = "over " + withCommas(r.MaxEvents)
			}
			l.show("most events/s", text+": the server is the limit")
			return nil
		}
		if keeps {
			r.MaxEvents = rate
		}
		if k == 0 {
			up = keeps
		}
		if keeps != up {
			break
		}
		if up {
			next = rate * step
		} else {
			next = rate / step
		}
	}
	if r.MaxEvents == 0 {
		l.show("most events/s", fmt.Sprintf("under %s, or something else uses the CPUs", withCommas(rate)))
		return nil
	}
	l.show("most events/s", withCommas(r.MaxEvents))
	return nil
}

func (s Check) deep(ctx context.Context, _ *result.SelfCheck, emit func(Line)) error {
	if !s.Deep {
		return nil
	}
	most, limit, err := load.Capacity(1)
	if err != nil {
		return err
	}
	for _, h := range allowedStreams(s.plan.held, most, limit) {
		if err := s.hold(ctx, h.streams, lineWriter{load: h.load, emit: emit}); err != nil {
			return err
		}
	}
	return nil
}

// streamCount is so many streams at a time, and what to call them.
type streamCount struct {
	streams int
	load    string
}

// allowedStreams are the numbers of streams that this machine allows; the first one
// that it does not is cut to the most that it does, and is the last.
func allowedStreams(wanted []int, most int, limit string) []streamCount {
	var out []streamCount
	for _, n := range wanted {
		name := fmt.Sprintf("%s streams held", withCommas(float64(min(n, most))))
		if n > most {
			return append(out, streamCount{most, name + " (" + limit + ")"})
		}
		out = append(out, streamCount{n, name})
	}
	return out
}

// hold has so many streams open at a time.
func (s Check) hold(ctx context.Context, n int, l lineWriter) error {
	p := evenStreams(n, 2*float64(n), s.plan.hold)
	p.TTFT = s.plan.hold / 2
	err := load.AwaitPorts(ctx, n)
	if err != nil {
		return err
	}
	if l.a, err = Measure(ctx, s.Server, p, evenInstants(n, time.Duration(n)*200*time.Microsecond)); err != nil {
		return err
	}
	failed := fmt.Sprint(l.a.Failed)
	if l.a.Failed > 0 {
		failed += ": " + l.a.Reason
	}
	l.line("calls that failed", failed, "0", l.a.Failed == 0)
	l.line("memory", fmt.Sprintf("%d MB (%.1f KB a stream)", l.a.Peak>>20, float64(l.a.Open)/1024/float64(n)),
		fmt.Sprintf("%d MB", goalMemory>>20), l.a.Peak <= goalMemory)
	return nil
}

// lineWriter makes the lines of one load.
type lineWriter struct {
	load string
	a    *Comparison
	emit func(Line)
}

// lateLimit is beyond what a schedule that is kept is ever late by: the server was
// kept from its CPU, or asked for more than it can.
const lateLimit = 20 * time.Millisecond

func (l lineWriter) disturbed() bool { return l.a.Server.LateP99 > lateLimit }

func (l lineWriter) line(figure, value, goal string, ok bool) {
	c := Line{Load: l.load, Figure: figure, Value: value, Goal: goal, Verdict: OverGoal}
	switch {
	case l.disturbed():
		c.Verdict = NotJudged + ": the server was late"
	case ok:
		c.Verdict = WithinGoal
	}
	l.emit(c)
}

func (l lineWriter) show(figure, value string) {
	l.emit(Line{Load: l.load, Figure: figure, Value: value})
}

func quantiles(sorted []float64) (p50, p99, p999 float64) {
	return stat.Quantile(sorted, 0.5), stat.Quantile(sorted, 0.99), stat.Quantile(sorted, 0.999)
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }
func millis(d time.Duration) float64 { return float64(d) / 1e6 }

// formatMillis is an error to the microsecond, without the sign of what rounds
// to nothing.
func formatMillis(d time.Duration) string {
	return fmt.Sprintf("%.3f ms", millis(d.Round(time.Microsecond)))
}

// withCommas writes a number with commas.
func withCommas(v float64) string {
	n := int(math.Round(v))
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", withCommas(float64(n/1000)), n%1000)
}
