package result

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/stat"
)

// maxBlocks is into how many blocks of equal time a run is cut at most.
const maxBlocks = 40

// evidence is one run's calls as intervals are made of them: in the order of
// time, cut into blocks.
type evidence struct {
	run
	m      Measured
	none   string // why there is no interval of anything; "" where there may be
	blocks int    // of the time of sending, at most
	span   time.Duration
	took   time.Duration // mean of a call, by which blocks are told apart
	cut    map[cutting]*blocked
	events []event
	all    []*Call // failed ones too, in the order in which they were due
}

// cutting is a family in so many blocks.
type cutting struct {
	family string
	blocks int
}

// blocked is a family's samples in blocks, and sorted.
type blocked struct {
	stat.Blocks
	sorted []float64
	calls  int
}

// found is an estimate with what it rests on.
type found struct {
	stat.Estimate
	calls int
	span  time.Duration
}

// observe prepares a run. A block must be longer than a call takes, or calls of
// several blocks share what happened to them.
func observe(m Measured) *evidence {
	e := &evidence{run: run{h: m.Header, o: m.Options}, m: m, cut: map[cutting]*blocked{}}
	for i := range m.Calls {
		e.add(&m.Calls[i])
		e.all = append(e.all, &m.Calls[i])
	}
	if len(e.ok) == 0 {
		e.none = "figures only, without calls: nothing to make an interval of"
		return e
	}
	slices.SortStableFunc(e.all, func(a, b *Call) int { return cmp.Or(cmp.Compare(a.Due, b.Due), a.Index-b.Index) })
	first, last := e.ok[0].Sent, e.ok[0].Sent
	for _, c := range e.ok {
		e.took += (c.End - c.Sent) / time.Duration(len(e.ok))
		first, last = min(first, c.Sent), max(last, c.Sent)
	}
	e.span = last - first
	if e.blocks = e.blocksIn(e.span); e.blocks < stat.MinBlocks {
		e.none = fmt.Sprintf("one observation: all requests were sent within %s and a call takes %s, so that it has no %d independent blocks of time",
			seconds(e.span), seconds(e.took), stat.MinBlocks)
	}
	return e
}

// blocksIn is how many blocks a span has.
func (e *evidence) blocksIn(span time.Duration) int {
	return int(min(maxBlocks, span/max(e.took, 1)))
}

// paired is into how many blocks two runs are cut that each can have at most so
// many.
func paired(a, b int) int {
	n := min(a, b)
	if n >= 2*stat.MinBlocks {
		n -= n % 4 // so that joined ones are equal
	}
	return n
}

// confirmed is how far the calls' figure may be from the run's, as a share, for
// the interval of the one to be that of the other; and by as much every interval
// is widened, which so is never narrower.
const confirmed = 1e-3

// estimate estimates a figure from n blocks, or says why it cannot.
func (e *evidence) estimate(m Metric, figure float64, n int) (found, string) {
	if e.none != "" {
		return found{}, e.none
	}
	f, err := e.find(m, max(n, 1))
	switch {
	case errors.Is(err, errWhole):
		return found{}, "one figure of the whole run: several runs are needed to see how it varies"
	case math.Abs(f.Value-figure) > max(confirmed*math.Abs(figure), e.m.Half[m.Name]) || math.IsNaN(f.Value):
		return found{}, "the calls do not give this figure: it is by another definition than theirs"
	case err != nil:
		return found{}, err.Error()
	}
	f.Value = figure
	return f, ""
}

// errWhole is for figures that blocks of time have no part of.
var errWhole = errors.New("of the whole run")

func (e *evidence) find(m Metric, n int) (found, error) {
	if m.Family != "" {
		return e.findFamily(m, n)
	}
	switch m.Name {
	case "success_rate", "goodput_ratio":
		return e.findShare(m.Name == "goodput_ratio", n)
	}
	return e.findRate(m.Name, n)
}

// findFamily estimates a mean or a quantile.
func (e *evidence) findFamily(m Metric, n int) (f found, err error) {
	b := e.family(m.Family, n)
	f.calls, f.span = b.calls, e.span
	q, isQuantile := percentile(m.Stat)
	if m.Stat == "median" {
		q, isQuantile = 50, true
	}
	switch {
	case len(b.Samples) == 0:
		f.Value = math.NaN()
	case m.Stat == "mean":
		f.Estimate, err = b.Mean(confidence)
	case isQuantile:
		f.Estimate, err = b.Quantile(b.sorted, q/100, confidence)
	default:
		err = errWhole
	}
	return f, err
}

// family cuts a family's samples into n blocks of as many calls, once.
func (e *evidence) family(name string, n int) *blocked {
	key := cutting{name, n}
	if b, ok := e.cut[key]; ok {
		return b
	}
	b := &blocked{}
	e.cut[key] = b
	sampler := e.sampler(name)
	for i := range n {
		for _, c := range e.part(i, n) {
			before := len(b.Samples)
			if c.OK() {
				b.Samples = sampler(c, b.Samples)
			}
			if len(b.Samples) > before {
				b.calls++
			}
		}
		b.Ends = append(b.Ends, len(b.Samples))
	}
	b.sorted = slices.Clone(b.Samples)
	stat.Sort(b.sorted)
	return b
}

// part is block i of n.
func (e *evidence) part(i, n int) []*Call {
	return e.all[i*len(e.all)/n : (i+1)*len(e.all)/n]
}

// sampler appends the samples that a call gives to a family, by the run's
// definitions.
func (e *evidence) sampler(name string) func(*Call, []float64) []float64 {
	if e.o.Compat == VLLM {
		one := func(v float64, ok bool, x []float64) []float64 {
			if ok {
				x = append(x, v)
			}
			return x
		}
		switch name {
		case "ttft":
			return func(c *Call, x []float64) []float64 { v, ok := c.asVLLM().ttft(); return one(v, ok, x) }
		case "tpot":
			return func(c *Call, x []float64) []float64 { v, ok := c.asVLLM().tpot(); return one(v, ok, x) }
		case familyITL:
			return func(c *Call, x []float64) []float64 { return c.asVLLM().appendGaps(x) }
		case "e2el":
			return func(c *Call, x []float64) []float64 { return append(x, c.asVLLM().e2el()) }
		}
	}
	f, ok := familyOf(name)
	switch {
	case !ok:
		return func(_ *Call, x []float64) []float64 { return x }
	case f.value == nil && name == familyITL:
		return (*Call).appendGaps
	case f.value == nil:
		return (*Call).appendPerToken
	}
	if f.steady {
		e.steady = steadyWindow(e.ok)
	}
	return func(c *Call, x []float64) []float64 {
		if f.steady && !(e.steady.ok && e.steady.contains(c.Sent)) {
			return x
		}
		if v, ok := f.value(c, e.h.Limit); ok {
			x = append(x, v)
		}
		return x
	}
}

// findShare estimates a share of calls: that succeeded, or that met the goodput
// bounds.
func (e *evidence) findShare(good bool, n int) (f found, err error) {
	bounds, err := e.bounds()
	if err != nil || good && (len(bounds) == 0 || e.o.Compat != "") {
		return f, errWhole
	}
	b := stat.Blocks{}
	for i := range n {
		for _, c := range e.part(i, n) {
			v := 0.0
			if c.OK() && (!good || !slices.ContainsFunc(bounds, func(met func(*Call) bool) bool { return !met(c) })) {
				v = 1
			}
			b.Samples = append(b.Samples, v)
		}
		b.Ends = append(b.Ends, len(b.Samples))
	}
	f.calls, f.span = len(b.Samples), e.span
	f.Estimate, err = b.Mean(confidence)
	return f, err
}

// within is the part of the run's time that a rate is of, and the rate's name
// without it.
func (e *evidence) within(name string) (window, string) {
	if rest, ok := strings.CutPrefix(name, "steady_"); ok {
		return steadyWindow(e.ok), rest
	}
	if rest, ok := strings.CutPrefix(name, "full_load_"); ok {
		return e.fullLoad(), rest
	}
	return window{from: e.start, to: e.end, ok: true}, name
}

// findRate estimates something per second: from what each of n blocks of the
// run's time, or of the window's, holds of it.
func (e *evidence) findRate(name string, n int) (f found, err error) {
	whole, at := e.within(name)
	stamps := e.stamps(at)
	if stamps == nil {
		return f, errWhole
	}
	f.calls, f.span = len(e.ok), whole.to-whole.from
	if !whole.ok || e.blocksIn(f.span) < n {
		return f, stat.ErrFewBlocks
	}
	held := make([]float64, n)
	width := float64(f.span) / float64(n)
	for _, s := range stamps {
		if s.at >= whole.from && s.at <= whole.to {
			held[max(0, min(n-1, int(math.Ceil(float64(s.at-whole.from)/width))-1))] += s.tokens
		}
	}
	f.Estimate, err = stat.BlockRate(held, confidence)
	f.Value *= 1e9 / width
	return f, err
}

// stamps are the instants at which what a rate counts came, with how much; nil
// for what is no rate.
func (e *evidence) stamps(rate string) []event {
	var out []event
	prompts := rate == "total_token_throughput"
	switch rate {
	case "request_throughput", "request_goodput":
		bounds, err := e.bounds()
		if rate == "request_goodput" && (err != nil || len(bounds) == 0 || e.o.Compat != "") {
			return nil
		}
		for _, c := range e.ok {
			if rate == "request_throughput" || !slices.ContainsFunc(bounds, func(met func(*Call) bool) bool { return !met(c) }) {
				out = append(out, event{c.End, 1})
			}
		}
		return out
	case "output_throughput", "total_token_throughput":
		if e.events == nil {
			e.events = tokensByCall(e.ok)
		}
		if out = slices.Clip(e.events); !prompts {
			return out
		}
	default:
		return nil
	}
	for _, c := range e.ok {
		at, ok := c.FirstToken()
		if !ok {
			at = c.End
		}
		p, _ := c.Input()
		out = append(out, event{at, float64(p)})
	}
	return out
}

// count says what an interval rests on.
func (f found) count(blocks int) string {
	return fmt.Sprintf("%d calls in %d blocks of %s", f.calls, blocks, seconds(f.span/time.Duration(blocks)))
}

// seconds writes a span as a reader takes it in.
func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.3g ms", ms(d))
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}
