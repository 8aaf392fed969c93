package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// maxBlocks is into how many blocks of equal time a run is cut at most.
const maxBlocks = 40

// confidence of the intervals.
const confidence = 0.95

// blockedRun is one run's calls as intervals are made of them: in the order of
// time, cut into blocks.
type blockedRun struct {
	Run
	calls    *result.CallSet
	goodput  func(*result.Call) bool // nil: there are no bounds, or none that the figures are by
	inOrder  []*result.Call          // failed ones too, in the order in which they were due
	unusable string                  // why there is no interval of anything; "" where there may be
	blocks   int                     // of the time of sending, at most
	span     time.Duration           // of the sending
	callTime time.Duration           // mean of a call, by which blocks are told apart
	families map[blockKey]*blockSamples
	tokens   []result.Event
	view     *View // whose definitions the samples follow; nil: the run's own
}

// blockKey is a family in so many blocks.
type blockKey struct {
	family string
	blocks int
}

// blockSamples is a family's samples in blocks, and sorted.
type blockSamples struct {
	stat.Blocks
	sorted []float64
	calls  int
}

// estimate is an estimated figure with what it rests on.
type estimate struct {
	stat.Estimate
	calls int
	span  time.Duration
}

// newBlockedRun prepares a run. A block must be longer than a call takes, or calls
// of several blocks share what happened to them.
func newBlockedRun(m Run) *blockedRun {
	r := &blockedRun{Run: m, calls: result.NewCallSet(m.Calls), families: map[blockKey]*blockSamples{}}
	if len(r.calls.Succeeded) == 0 {
		r.unusable = "figures only, without calls: nothing to make an interval of"
		return r
	}
	if met, err := m.Options.GoodputTest(m.Header.Limit); err == nil && m.Options.Compat == "" {
		r.goodput = met
	}
	for i := range m.Calls {
		r.inOrder = append(r.inOrder, &m.Calls[i])
	}
	slices.SortStableFunc(r.inOrder, func(a, b *result.Call) int { return cmp.Or(cmp.Compare(a.Due, b.Due), a.Index-b.Index) })
	ok := r.calls.Succeeded
	first, last := ok[0].Sent, ok[0].Sent
	for _, c := range ok {
		r.callTime += (c.End - c.Sent) / time.Duration(len(ok))
		first, last = min(first, c.Sent), max(last, c.Sent)
	}
	r.span = last - first
	if r.blocks = r.blocksIn(r.span); r.blocks < stat.MinBlocks {
		r.unusable = fmt.Sprintf("one observation: all requests were sent within %s and a call takes %s, so that it has no %d independent blocks of time",
			result.SpanText(r.span), result.SpanText(r.callTime), stat.MinBlocks)
	}
	return r
}

// blocksIn is how many blocks a span has.
func (r *blockedRun) blocksIn(span time.Duration) int {
	return int(min(maxBlocks, span/max(r.callTime, 1)))
}

// commonBlocks is into how many blocks two runs are cut that can have at most so
// many each.
func commonBlocks(a, b int) int {
	n := min(a, b)
	if n >= 2*stat.MinBlocks {
		n -= n % 4 // so that joined ones are equal
	}
	return n
}

// tolerance is how far the calls' figure may be from the run's, as a share, for
// the interval of the one to be that of the other; and by as much every interval
// is widened, which so is never narrower.
const tolerance = 1e-3

// estimate estimates a figure from n blocks, or says why it cannot.
func (r *blockedRun) estimate(m result.Metric, figure float64, n int) (estimate, string) {
	if r.unusable != "" {
		return estimate{}, r.unusable
	}
	e, err := r.fromBlocks(m, max(n, 1))
	switch {
	case errors.Is(err, errWholeRun):
		return estimate{}, "one figure of the whole run: several runs are needed to see how it varies"
	case math.Abs(e.Value-figure) > max(r.tolerance(e)*math.Abs(figure), r.Half[m.Name]) || math.IsNaN(e.Value):
		return estimate{}, "the calls do not give this figure: it is by another definition than theirs"
	case err != nil:
		return estimate{}, err.Error()
	}
	e.Value = figure
	return e, ""
}

// tolerance of an estimate. One of some calls of a very long run may be off by its own
// standard errors: by five of them it is another figure.
func (r *blockedRun) tolerance(e estimate) float64 {
	se, ok := e.Estimate.Error()
	if r.Summary.OneIn <= 1 || !ok {
		return tolerance
	}
	return max(tolerance, 5*se)
}

// errWholeRun is for figures that blocks of time have no part of.
var errWholeRun = errors.New("of the whole run")

func (r *blockedRun) fromBlocks(m result.Metric, n int) (estimate, error) {
	switch {
	case m.Family != "":
		return r.statistic(m, n)
	case m.Name == "success_rate":
		return r.share((*result.Call).OK, n)
	case m.Name == "goodput_ratio" && r.goodput == nil:
		return estimate{}, errWholeRun
	case m.Name == "goodput_ratio":
		return r.share(func(c *result.Call) bool { return c.OK() && r.goodput(c) }, n)
	}
	return r.rate(m.Name, n)
}

// statistic estimates a mean or a quantile.
func (r *blockedRun) statistic(m result.Metric, n int) (e estimate, err error) {
	b := r.family(m.Family, n)
	e.calls, e.span = b.calls, r.span
	q, isQuantile := result.Percentile(m.Name)
	if m.Stat == "median" {
		q, isQuantile = 50, true
	}
	switch {
	case len(b.Samples) == 0:
		e.Value = math.NaN()
	case m.Stat == "mean":
		e.Estimate, err = b.Mean(confidence)
	case isQuantile:
		e.Estimate, err = b.Quantile(b.sorted, q/100, confidence)
	default:
		err = errWholeRun
	}
	return e, err
}

// family cuts a family's samples into n blocks of as many calls, once.
func (r *blockedRun) family(name string, n int) *blockSamples {
	key := blockKey{name, n}
	if b, ok := r.families[key]; ok {
		return b
	}
	b := &blockSamples{}
	r.families[key] = b
	appendTo := r.calls.Sampler(r.Header, r.Options, name)
	if r.view != nil && r.view.Sampler != nil {
		if f := r.view.Sampler(name); f != nil {
			appendTo = f
		}
	}
	for i := range n {
		for _, c := range r.block(i, n) {
			before := len(b.Samples)
			if c.OK() {
				b.Samples = appendTo(c, b.Samples)
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

// block is block i of n.
func (r *blockedRun) block(i, n int) []*result.Call {
	return r.inOrder[i*len(r.inOrder)/n : (i+1)*len(r.inOrder)/n]
}

// share estimates the share of the calls that something holds of.
func (r *blockedRun) share(holds func(*result.Call) bool, n int) (e estimate, err error) {
	b := stat.Blocks{}
	for i := range n {
		for _, c := range r.block(i, n) {
			v := 0.0
			if holds(c) {
				v = 1
			}
			b.Samples = append(b.Samples, v)
		}
		b.Ends = append(b.Ends, len(b.Samples))
	}
	e.calls, e.span = len(b.Samples), r.span
	e.Estimate, err = b.Mean(confidence)
	return e, err
}

// window is the part of the run's time that a rate is of, and the rate's name
// without it.
func (r *blockedRun) window(name string) (result.Window, string) {
	if rest, ok := strings.CutPrefix(name, "steady_"); ok {
		return r.calls.SteadyWindow(), rest
	}
	if rest, ok := strings.CutPrefix(name, "full_load_"); ok {
		return r.calls.FullLoad(r.Header.Limit), rest
	}
	w := result.Window{OK: true}
	w.From, w.To = r.calls.Start, r.calls.End
	return w, name
}

// rate estimates something per second: from what each of n blocks of the run's
// time, or of the window's, holds of it.
func (r *blockedRun) rate(name string, n int) (e estimate, err error) {
	w, base := r.window(name)
	events := r.events(base)
	if events == nil {
		return e, errWholeRun
	}
	e.calls, e.span = len(r.calls.Succeeded), w.To-w.From
	if !w.OK || r.blocksIn(e.span) < n {
		return e, stat.ErrFewBlocks
	}
	held := make([]float64, n)
	width := float64(e.span) / float64(n)
	for _, x := range events {
		if x.At >= w.From && x.At <= w.To {
			held[max(0, min(n-1, int(math.Ceil(float64(x.At-w.From)/width))-1))] += x.Tokens * float64(max(1, r.Summary.OneIn))
		}
	}
	e.Estimate, err = stat.BlockRate(held, confidence)
	e.Value *= 1e9 / width
	return e, err
}

// events are the instants at which what a rate counts came, with how much; nil
// for what is no rate.
func (r *blockedRun) events(rate string) []result.Event {
	switch {
	case rate == "request_throughput":
		return r.ends(func(*result.Call) bool { return true })
	case rate == "request_goodput" && r.goodput != nil:
		return r.ends(r.goodput)
	case rate != "output_throughput" && rate != "total_token_throughput":
		return nil
	}
	if r.tokens == nil {
		r.tokens = r.calls.TokenEvents()
	}
	if rate == "output_throughput" {
		return r.tokens
	}
	out := slices.Clip(r.tokens)
	for _, c := range r.calls.Succeeded {
		at, ok := c.FirstToken()
		if !ok {
			at = c.End
		}
		p, _ := c.Input()
		out = append(out, result.Event{At: at, Tokens: float64(p)})
	}
	return out
}

// ends are the ends of the calls that something holds of, each counting one.
func (r *blockedRun) ends(holds func(*result.Call) bool) []result.Event {
	var out []result.Event
	for _, c := range r.calls.Succeeded {
		if holds(c) {
			out = append(out, result.Event{At: c.End, Tokens: 1})
		}
	}
	return out
}

// count says what an interval rests on.
func (e estimate) count(blocks, every int) string {
	if every > 1 {
		return fmt.Sprintf("%d calls, one in %d, in %d blocks of %s", e.calls, every, blocks, result.SpanText(e.span/time.Duration(blocks)))
	}
	return fmt.Sprintf("%d calls in %d blocks of %s", e.calls, blocks, result.SpanText(e.span/time.Duration(blocks)))
}

// StandardError is the standard error of one figure of a run as a share of it, by its
// calls alone: by the figure's own interval where it has one, else by blocks of
// the run's time. It is false where neither can be made: what one launch says
// of its own noise is then not known, which is not the same as none.
func StandardError(m Run, metric string) (float64, bool) {
	d, err := result.Lookup(metric)
	if err != nil {
		return 0, false
	}
	v, ok := m.Summary.Figures[d.Name]
	if !ok || !(v > 0) {
		return 0, false
	}
	if i, ok := m.Summary.Intervals[d.Name]; ok {
		se := (i[1] - i[0]) / 2 / normal95 / v
		return se, se > 0 && !math.IsInf(se, 0)
	}
	r := newBlockedRun(m)
	e, why := r.estimate(d, v, r.blocks)
	if why != "" {
		return 0, false
	}
	se, ok := e.Estimate.Error()
	return se, ok && se > 0
}

// normal95 is how many standard errors a 95 % interval reaches to each side.
const normal95 = 1.959964
