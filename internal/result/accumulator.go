package result

import (
	"fmt"
	"math/bits"
	"slices"
)

// Accumulator takes the calls of a run one at a time and holds what its figures
// need, in bounded memory:
//
//	acc, err := result.NewAccumulator(header, options)
//	for c := range calls {
//		acc.Add(&c)
//	}
//	a, err := acc.Analyze(client, options)
//
// Sums and counts (Tally) are exact always. Beyond these it holds
//
//   - of a run whose calls fit into Limits.Bytes: the calls, and every figure is
//     exact;
//   - of a larger one: the calls without their streams (rows), so that figures of one
//     sample a call are exact; gaps between tokens in a sketch, tokens in bins of
//     time, and one whole call in every so many (Kept);
//   - beyond Limits.Rows: sketches and bins for those figures too.
//
// A figure that is not exact is named in Summary.Approximate with its bound. What is
// held goes to a file by Save, so that a report need not read the calls again.
type Accumulator struct {
	header  Header
	options Options
	limits  Limits
	good    func(*Call) bool

	held
}

// held is what an accumulator knows of the calls.
type held struct {
	Tally
	Agents map[int]*AgentTally // of a fleet, by Call.Agent

	Good  int // calls that meet the goodput bounds
	VLLM  int // the same by vLLM's definitions, where they were asked for
	Every int // of so many calls one is kept
	Bytes int // of those kept
	kept  []Call

	Condensed bool // not all calls are kept
	converted int  // of those kept, which were condensed before

	Failed []span // when failed calls were in flight, as long as rows are kept
	Rows   *rows  // from half of Limits.Bytes on; nil again beyond Limits.Rows
	Large  *large // likewise
}

// Limits are what an accumulator may hold.
type Limits struct {
	Bytes int // of whole calls, as long as all are kept
	Some  int // of whole calls, once they are not
	Rows  int // calls without their streams
}

// DefaultLimits keep a run below 2 GB however long it is: 256 MiB are all of some
// 100,000 calls of 128 tokens; 10 million rows take half a GB, and sorting one
// family of them 160 MB for a moment. 48 MiB are 20,000 such calls, more than a plot
// can show apart.
func DefaultLimits() Limits { return Limits{Bytes: 256 << 20, Some: 48 << 20, Rows: 10_000_000} }

// NewAccumulator makes an empty one for a run with this header. Of the options it
// takes those that are of single calls: goodput bounds and compat.
func NewAccumulator(h Header, o Options) (*Accumulator, error) {
	return NewLimited(h, o, DefaultLimits())
}

// NewLimited is NewAccumulator with other limits than the default ones.
func NewLimited(h Header, o Options, l Limits) (*Accumulator, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	good, err := o.GoodputTest(h.Limit)
	if err != nil {
		return nil, err
	}
	return &Accumulator{header: h, options: o, limits: l, good: good, held: held{Every: 1}}, nil
}

// Kept returns the calls that are at hand whole: all of them if every is 1, else one
// of every so many, chosen by its index. They are the accumulator's own.
func (x *Accumulator) Kept() (calls []Call, every int) { return x.kept, x.Every }

// Size is about how many bytes are held.
func (x *Accumulator) Size() int {
	n := x.held.Bytes + 16*len(x.Failed) + len(x.Seen.Bits)*8
	if x.Rows != nil {
		n += len(x.Rows.Segments) * rowSegment
	}
	for _, f := range x.flows() {
		n += f.Size()
	}
	return n
}

// Add takes one call in.
func (x *Accumulator) Add(c *Call) {
	fixed := x.Tally.add(c)
	if c.Agent > 0 {
		x.addAgent(fixed)
	}
	if c.OK() && x.good != nil {
		x.addGood(fixed)
	}
	if !c.OK() && (!x.Condensed || x.Rows != nil) {
		x.Failed = append(x.Failed, span{max(c.Sent, c.Ready), c.End})
	}
	if !x.Condensed {
		x.keep(c)
		x.condense()
		return
	}
	x.addLarge(c, fixed)
	if sampled(c.Index, x.Every) {
		x.keep(c)
		x.thin()
	}
}

func (x *Accumulator) addGood(c *Call) {
	if x.good(c) {
		x.Good++
	}
	if x.options.Compat == VLLM && x.options.vllmGood(c, x.header.Limit) {
		x.VLLM++
	}
}

// addLarge takes in a call of which the streams, and more, are not kept.
func (x *Accumulator) addLarge(c, fixed *Call) {
	if !c.OK() {
		addFailed(x.Large.Flow, c)
		return
	}
	x.Large.addStream(fixed)
	x.Large.addFamilies(fixed, x.header.Limit, x.Ended.First)
	if x.Rows == nil {
		return
	}
	x.Rows.add(fixed)
	if x.Rows.N > x.limits.Rows || len(x.Failed) > x.limits.Rows {
		x.Rows, x.Failed = nil, nil
	}
}

// atOnce is how many calls are condensed for each that comes: to do all of a hundred
// thousand at once would take the client a second from its streams.
const atOnce = 4

// condense goes over to what a large run holds, some calls at a time from half the limit
// on, and at the limit lets go of most whole calls.
func (x *Accumulator) condense() {
	if x.held.Bytes <= x.limits.Bytes/2 {
		return
	}
	if x.Large == nil {
		x.Rows, x.Large = &rows{}, newLarge(x.Start, x.options.Compat)
	}
	full := x.held.Bytes > x.limits.Bytes
	for n := 0; x.converted < len(x.kept) && (n < atOnce || full); n++ {
		c := &x.kept[x.converted]
		fixed := c
		if c.OK() {
			fixed, _ = c.Plausible()
		}
		x.addLarge(c, fixed)
		x.converted++
	}
	if full {
		x.Condensed = true
		x.thin()
	}
}

// keep keeps a call whole, without room that its lists do not need.
func (x *Accumulator) keep(c *Call) {
	k := *c
	k.Chunks, k.Empty = slices.Clip(k.Chunks), slices.Clip(k.Empty)
	if cap(c.Chunks) > len(c.Chunks)+len(c.Chunks)/8 {
		k.Chunks = slices.Clone(c.Chunks)
	}
	x.kept = append(x.kept, k)
	x.held.Bytes += k.size()
}

// size is about how many bytes the call takes.
func (c *Call) size() int {
	const call, chunk, stamp = 400, 16, 16
	n := call + chunk*len(c.Chunks) + stamp*len(c.Empty) + stamp*len(c.Late) + len(c.Text) + len(c.Error)
	if g := c.Speculation; g != nil {
		n += 48 + 4*len(g.ByStep)
	}
	return n
}

// thin keeps half as many calls until they fit.
func (x *Accumulator) thin() {
	for x.held.Bytes > x.limits.Some && x.Every < 1<<40 {
		x.Every *= 2
		var few []Call
		x.held.Bytes = 0
		for i := range x.kept {
			if c := &x.kept[i]; sampled(c.Index, x.Every) {
				few = append(few, *c)
				x.held.Bytes += c.size()
			}
		}
		x.kept = few
	}
}

// sampled reports whether a call is among one of every so many, a power of two. It
// goes by a hash: one in so many of the indices themselves could be all of one
// target, or of one turn.
func sampled(index, every int) bool {
	h := uint64(index) + 0x9e3779b97f4a7c15 // SplitMix64
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	return h>>(64-bits.Len(uint(every-1))) == 0 || every == 1
}

// Analyze computes every figure of the calls so far. The options' goodput bounds and
// compat are those that the accumulator was made with.
func (x *Accumulator) Analyze(c *Client, o Options) (*Analysis, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if x.Condensed && o.Compat != x.options.Compat {
		return nil, fmt.Errorf("analyze a run of %d calls: they were taken in by the definitions %q and not %q", x.Total, x.options.Compat, o.Compat)
	}
	a := &Analysis{CallSet: x.set(), Header: x.header, Client: c, Options: o, Every: x.Every, goodVLLM: x.VLLM, statistics: newStatistics(o.Percentiles)}
	a.Simulated = x.header.Simulated || x.header.Predicted || a.Tally.Simulated
	a.Partial = a.callsMissing()
	a.doubts = x.Doubts
	a.addCounts()
	a.addRates(x.good != nil, x.Good)
	a.addFlow()
	a.addLatencies()
	a.addSpeculation()
	a.addSessions()
	a.addSurroundings()
	a.addReuse()
	a.Agents = x.agentFigures()
	return a, nil
}

// set are the calls as figures are made of them, in the order of their index.
func (x *Accumulator) set() CallSet {
	s := CallSet{Tally: x.Tally, failed: x.Failed}
	if x.Condensed {
		s.rows, s.large = x.Rows, x.Large
	}
	for i := range x.kept {
		if c := &x.kept[i]; c.OK() {
			c, _ = c.Plausible()
			s.Succeeded = append(s.Succeeded, c)
		}
	}
	s.sort()
	return s
}
