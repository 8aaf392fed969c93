package result

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
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
	blocks int    // of the time of sending
	width  time.Duration
	took   time.Duration // mean of a call, by which blocks are told apart
	cut    map[string]*blocked
	events []event
	other  []*Call // failed
}

// blocked is a family's samples in blocks, and sorted.
type blocked struct {
	stat.Blocks
	sorted []float64
	calls  int
}

// found is an interval with what it rests on.
type found struct {
	stat.Interval
	n string // "1200 calls in 40 blocks of 2.5 s"
}

// observe prepares a run. A block must be longer than a call takes, or calls of
// several blocks share what happened to them.
func observe(m Measured) *evidence {
	e := &evidence{run: run{h: m.Header, o: m.Options}, m: m, cut: map[string]*blocked{}}
	for i := range m.Calls {
		e.add(&m.Calls[i])
		if c := &m.Calls[i]; !c.OK() {
			e.other = append(e.other, c)
		}
	}
	if len(e.ok) == 0 {
		e.none = "figures only, without calls: nothing to make an interval of"
		return e
	}
	slices.SortStableFunc(e.ok, func(a, b *Call) int { return cmp.Or(cmp.Compare(a.Sent, b.Sent), a.Index-b.Index) })
	for _, c := range e.ok {
		e.took += (c.End - c.Sent) / time.Duration(len(e.ok))
	}
	span := e.ok[len(e.ok)-1].Sent - e.ok[0].Sent
	if e.blocks = e.blocksIn(span); e.blocks < stat.MinBlocks {
		e.none = fmt.Sprintf("one observation: all requests were sent within %s and a call takes %s, so that it has no %d independent blocks of time",
			seconds(span), seconds(e.took), stat.MinBlocks)
		return e
	}
	e.width = span / time.Duration(e.blocks)
	return e
}

// blocksIn is how many blocks a span has.
func (e *evidence) blocksIn(span time.Duration) int {
	n := int(min(maxBlocks, span/max(e.took, 1)))
	if n >= 2*stat.MinBlocks {
		n -= n % 4 // so that joined ones are equal
	}
	return n
}

// block is the one in which a call was sent.
func (e *evidence) block(c *Call) int {
	return int(max(0, min(time.Duration(e.blocks-1), (c.Sent-e.ok[0].Sent)/max(e.width, 1))))
}

// confirmed is how far the calls' figure may be from the run's, as a share, for
// the interval of the one to be that of the other; and by as much every interval
// is widened, which so is never narrower.
const confirmed = 1e-3

// interval returns the interval of a figure, or why there is none.
func (e *evidence) interval(m Metric, figure float64) (found, string) {
	if e.none != "" {
		return found{}, e.none
	}
	f, value, err := e.find(m)
	switch {
	case errors.Is(err, errWhole):
		return found{}, "one figure of the whole run: several runs are needed to see how it varies"
	case math.Abs(value-figure) > max(confirmed*math.Abs(figure), e.m.Half[m.Name]) || math.IsNaN(value):
		return found{}, "the calls do not give this figure: it is by another definition than theirs"
	case err != nil:
		return found{}, err.Error()
	}
	f.Value = figure
	return f, ""
}

// errWhole is for figures that blocks of time have no part of.
var errWhole = errors.New("of the whole run")

func (e *evidence) find(m Metric) (f found, value float64, err error) {
	if m.Family != "" {
		return e.findFamily(m)
	}
	switch m.Name {
	case "success_rate", "goodput_ratio":
		return e.findShare(m.Name == "goodput_ratio")
	}
	return e.findRate(m.Name)
}

// findFamily makes the interval of a mean or a quantile.
func (e *evidence) findFamily(m Metric) (f found, value float64, err error) {
	b := e.family(m.Family)
	q, isQuantile := percentile(m.Stat)
	if m.Stat == "median" {
		q, isQuantile = 50, true
	}
	n := 0
	switch {
	case len(b.Samples) == 0:
		return f, math.NaN(), nil
	case m.Stat == "mean":
		f.Interval, n, err = b.Mean(confidence)
	case isQuantile:
		f.Interval, n, err = b.Quantile(b.sorted, q/100, confidence)
	default:
		return f, 0, errWhole
	}
	f.n = e.count(b.calls, "calls", n, e.width*time.Duration(e.blocks))
	return f, f.Value, err
}

// family cuts a family's samples into blocks, once.
func (e *evidence) family(name string) *blocked {
	if b, ok := e.cut[name]; ok {
		return b
	}
	b := &blocked{Blocks: stat.Blocks{Ends: make([]int, e.blocks)}}
	e.cut[name] = b
	sampler := e.sampler(name)
	for _, c := range e.ok {
		before := len(b.Samples)
		if b.Samples = sampler(c, b.Samples); len(b.Samples) > before {
			b.calls++
		}
		b.Ends[e.block(c)] = len(b.Samples)
	}
	for i := 1; i < len(b.Ends); i++ {
		b.Ends[i] = max(b.Ends[i], b.Ends[i-1]) // a block without a call
	}
	b.sorted = slices.Clone(b.Samples)
	stat.Sort(b.sorted)
	return b
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

// findShare makes the interval of a share of calls: that succeeded, or that
// met the goodput bounds.
func (e *evidence) findShare(good bool) (f found, value float64, err error) {
	bounds, err := e.bounds()
	if err != nil || good && (len(bounds) == 0 || e.o.Compat != "") {
		return f, 0, errWhole
	}
	b := stat.Blocks{}
	parts := make([][]float64, e.blocks)
	for _, c := range slices.Concat(e.ok, e.other) {
		v := 0.0
		if c.OK() && (!good || !slices.ContainsFunc(bounds, func(met func(*Call) bool) bool { return !met(c) })) {
			v = 1
		}
		i := e.block(c)
		parts[i] = append(parts[i], v)
	}
	for _, p := range parts {
		b.Samples = append(b.Samples, p...)
		b.Ends = append(b.Ends, len(b.Samples))
	}
	f.Interval, e.total, err = b.Mean(confidence)
	f.n = e.count(len(b.Samples), "calls", e.total, e.width*time.Duration(e.blocks))
	return f, f.Value, err
}

// findRate makes the interval of something per second: what each block of the
// run's time, or of the window's, holds of it.
func (e *evidence) findRate(name string) (f found, value float64, err error) {
	at, whole := name, window{from: e.start, to: e.end, ok: true}
	for prefix, w := range map[string]func() window{"steady_": func() window { return steadyWindow(e.ok) }, "full_load_": e.fullLoadNow} {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			at, whole = name[len(prefix):], w()
		}
	}
	stamps := e.stamps(at)
	if stamps == nil {
		return f, 0, errWhole
	}
	span := whole.to - whole.from
	n := e.blocksIn(span)
	if !whole.ok || n < stat.MinBlocks {
		return f, 0, stat.ErrFewBlocks
	}
	held := make([]float64, n)
	width := float64(span) / float64(n)
	for _, s := range stamps {
		if s.at >= whole.from && s.at <= whole.to {
			held[max(0, min(n-1, int(math.Ceil(float64(s.at-whole.from)/width))-1))] += s.tokens
		}
	}
	calls := len(e.ok)
	i, blocks, err := stat.BlockRate(held, confidence)
	per := width / 1e9
	f.Interval = stat.Interval{Value: i.Value / per, Low: i.Low / per, High: i.High / per}
	f.n = e.count(calls, "calls", blocks, span)
	return f, f.Value, err
}

func (e *evidence) fullLoadNow() window { return e.fullLoad() }

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
func (e *evidence) count(n int, noun string, blocks int, span time.Duration) string {
	if blocks == 0 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %s in %d blocks of %s", n, noun, blocks, seconds(span/time.Duration(blocks)))
}

// seconds writes a span as a reader takes it in.
func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.3g ms", ms(d))
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}
