package result

import (
	"math"
	"slices"
	"time"

	"perflab/internal/stat"
)

// doubtsOf are those of a family.
func (t *Tally) doubtsOf(family string) *stat.Doubts {
	d := t.Doubts[family]
	if d == nil {
		if t.Doubts == nil {
			t.Doubts = map[string]*stat.Doubts{}
		}
		d = &stat.Doubts{}
		t.Doubts[family] = d
	}
	return d
}

// arrival is chunks that came together, as far as the stamps tell.
type arrival struct {
	first, last int           // of the chunks, both included
	at          time.Duration // their stamp
	early       time.Duration // the first can have come so much earlier
	tail        time.Duration // and the last: 0 unless a message without tokens may be behind it
}

// chunks is how many came.
func (v arrival) chunks() int { return v.last - v.first + 1 }

// arrivals returns the chunks of the call by arrival.
func (c *Call) arrivals() []arrival {
	var all []arrival
	before := c.Sent // nothing of the stream came earlier
	for _, at := range []time.Duration{c.First, c.Headers} {
		if len(c.Chunks) > 0 && at < c.Chunks[0].At { // else they came in the same read
			before = max(before, at)
		}
	}
	for i := 0; i < len(c.Chunks); {
		v := arrival{first: i, last: i, at: c.Chunks[i].At}
		by := c.late(c.Chunks[i].Read)
		for v.last+1 < len(c.Chunks) && c.joined(v.last+1) {
			v.last++
			by = max(by, c.late(c.Chunks[v.last].Read))
		}
		by = max(0, min(by, v.at-before))
		if c.followed(v.last) {
			v.tail = by
		}
		if v.chunks() > 1 || v.tail > 0 {
			v.early = by
		}
		all, before, i = append(all, v), v.at, v.last+1
	}
	return all
}

// late is how much before its stamp the messages of a read can have come.
func (c *Call) late(read int32) time.Duration {
	i, ok := slices.BinarySearchFunc(c.Late, read, func(l LateRead, read int32) int { return int(l.Read) - int(read) })
	if !ok {
		return 0
	}
	return c.Late[i].By
}

// followed reports whether a message without tokens shares the stamp of a chunk, the
// last of its arrival: it may be the newer one. A role does not count, which
// comes before the first chunk.
func (c *Call) followed(chunk int) bool {
	at := c.Chunks[chunk].At
	if at == c.UsageAt || at == c.Done {
		return true
	}
	with := 0
	for _, s := range c.Empty {
		if s.At == at {
			with++
		}
	}
	role := at == c.Chunks[0].At && chunk < len(c.Chunks)-1
	return with > 1 || with == 1 && !role
}

// addLate notes what the late reads of a call leave open.
func (t *Tally) addLate(c *Call) {
	for _, l := range c.Late {
		t.Late, t.LateBy = t.Late+1, max(t.LateBy, l.By)
	}
	if len(c.Late) == 0 || len(c.Chunks) == 0 {
		return
	}
	all := c.arrivals()
	first, last := all[0], all[len(all)-1]
	t.addSpans(c, first, last)
	t.addTPOT(c, all)
	t.addGaps(all)
	t.addTokenGaps(c, all)
}

// addSpans notes the times from one instant to the first or last token.
func (t *Tally) addSpans(c *Call, first, last arrival) {
	for family, from := range map[string]time.Duration{"ttft": c.Sent, "ttft_due": c.Due} {
		if first.early > 0 {
			t.doubtsOf(family).Add(ms(first.at-from), ms(first.at-first.early-from), ms(first.at-from))
		}
	}
	for family, from := range map[string]time.Duration{"e2el": c.Sent, "e2el_due": c.Due} {
		if last.tail > 0 {
			t.doubtsOf(family).Add(ms(last.at-from), ms(last.at-last.tail-from), ms(last.at-from))
		}
	}
}

// addTPOT notes the time per output token. With the first read apart, fewer
// tokens came with the first arrival, and that one was earlier.
func (t *Tally) addTPOT(c *Call, all []arrival) {
	first, last := all[0], all[len(all)-1]
	n, _ := c.Output()
	if len(all) == 1 {
		if first.early > 0 && first.chunks() > 1 && n > 1 {
			k := c.atStart(len(c.Chunks) - 1) // all but the last chunk at most came first
			t.doubtsOf("tpot").Hidden.Add(ms(first.early) / float64(max(1, n-k)))
		}
		return
	}
	k, _ := c.FirstRead()
	if n <= k || first.early == 0 && last.tail == 0 {
		return
	}
	least := k
	if first.early > 0 {
		least = c.atStart(1)
	}
	span := last.at - first.at
	taken, _ := tpotMS(c, 0)
	t.doubtsOf("tpot").Add(taken, ms(span-last.tail)/float64(n-least), ms(span+first.early)/float64(n-k))
}

// addGaps notes the gaps between arrivals.
func (t *Tally) addGaps(all []arrival) {
	d := t.doubtsOf(familyITL)
	for i, v := range all {
		if i == 0 {
			d.Most += ms(v.early)
			d.Hide(ms(v.early), ms(v.early), 1, v.chunks()-1)
			continue
		}
		gap, before := v.at-all[i-1].at, all[i-1].tail
		if v.early > 0 || before > 0 {
			// One gap at least is as long as the mean of all that it may be.
			low := max(gap-v.early, (gap-v.tail)/time.Duration(v.chunks()))
			d.Add(ms(gap), ms(low), ms(gap+before))
			d.Hide(ms(gap+before), ms(v.early), 2, v.chunks()-1)
		}
	}
	d.Least += ms(all[len(all)-1].tail)
}

// addTokenGaps notes the gaps by token: those of a late read sum to the same,
// however its chunks came.
func (t *Tally) addTokenGaps(c *Call, all []arrival) {
	_, w := c.spread() // tokens for one counted
	if w == 0 {
		return
	}
	d := t.doubtsOf(familyITLToken)
	for i, v := range all {
		tokens := 0
		for _, chunk := range c.Chunks[v.first : v.last+1] {
			tokens += int(chunk.Tokens)
		}
		if i == 0 {
			d.Most += ms(v.early) / w
			d.Hide(ms(v.early)/w, math.Inf(1), 1, tokens-int(c.Chunks[0].Tokens))
			continue
		}
		gap, before := ms(v.at-all[i-1].at)/w, ms(all[i-1].tail)/w
		if v.early == 0 && before == 0 {
			continue
		}
		each := ms(v.at-all[i-1].at) / (float64(tokens) * w)
		for j := range tokens {
			low := 0.0
			switch {
			case v.chunks() == 1:
				low = max(0, gap-ms(v.early)/w) / float64(tokens)
			case j == 0: // one is as long as the mean
				low = max(0, gap-ms(v.tail)/w) / float64(tokens)
			}
			high := (gap + before) / float64(j+1)
			if v.chunks() == 1 {
				high = (gap + before) / float64(tokens)
			}
			d.Add(each, low, high)
		}
	}
	d.Least += ms(all[len(all)-1].tail) / w
}

// boundStep is the least by which a bound must differ from its figure to be kept, in
// ms: less is not seen in a figure of two decimals.
const boundStep = 0.01

// How far late reads may have moved a figure, as a share of it. Below Doubtful it
// is less than two runs of one load differ by. Beyond Hopeless it is as much as a
// good change of a setting is worth, so that the figure can no longer tell better
// from worse.
const (
	Doubtful = 0.02
	Hopeless = 0.10
)

// Doubt returns the least and the most that a figure can be where reads were late,
// and the share of the figure by which that differs from it at most; ok is false
// where the figure is as exact as its stamps.
func (t *statistics) Doubt(name string) (low, high, share float64, ok bool) {
	b, ok := t.Bounds[name]
	v := t.Figures[name]
	return b[0], b[1], max(v-b[0], b[1]-v) / v, ok && v > 0
}

// Doubt returns the same of a summary's figure.
func (s *Summary) Doubt(name string) (low, high, share float64, ok bool) {
	return (&statistics{Figures: s.Figures, Bounds: s.Bounds}).Doubt(name)
}

// setBound keeps the least and the most that a figure can be.
func (t *statistics) setBound(name string, bound [2]float64) {
	if t.Bounds == nil {
		t.Bounds = map[string][2]float64{}
	}
	t.Bounds[name] = bound
}

// addBounds sets how far late reads leave the statistics of a family open; samples are those
// that were taken.
func (t *statistics) addBounds(family string, samples *stat.Sketch, pooled bool) {
	d := t.doubts[family]
	if d == nil {
		return
	}
	keep := func(figure string, low, high float64) {
		name := figure + "_" + family + "_ms"
		v := t.Figures[name]
		if v-low < boundStep+2*stat.SketchBlur*v {
			low = v
		}
		if high-v < boundStep+2*stat.SketchBlur*v {
			high = v
		}
		if low < high {
			t.setBound(name, [2]float64{low, high})
		}
	}
	low, high := d.Mean(t.Figures["mean_"+family+"_ms"], samples.N, pooled)
	keep("mean", low, high)
	quantile := d.Quantiles(samples)
	for _, p := range t.percentiles {
		low, high := quantile(p / 100)
		keep(PercentileName(p), low, high)
	}
}
