package result

import (
	"math"
	"time"
)

// flow is the course of a run in bins of time, for a run of which not all calls are
// kept: what came when, and how many calls were under way. Widths divide a second,
// so that a second is a whole number of bins.
type flow struct {
	From   time.Duration // where the first bin begins
	Fine   int           // bins of Tokens in a second; see tokenBins
	Tokens []float32     // output tokens by their stamps
	Coarse int           // bins of Bins in a second
	Bins   []flowBin
	Sum    float64 // of Tokens
}

// flowBin is what happened in a bin. Starts and ends are successful calls' unless
// they say otherwise.
type flowBin struct {
	Sent, Ended uint32
	Due         uint32        // first turns of conversations alone, as is what follows from it
	FailedFrom  uint32        // failed calls that took a place
	FailedTo    uint32        // and gave it back
	Prompts     float64       // prompt tokens, by the first token
	Took        time.Duration // from sending to end, of calls that ended here
	Spent       spent         // from due to end, of calls that were due here
}

// Bins of a second, and how many there may be: beyond it they are made twice as
// wide. 512 a second are 2 ms, and 36 hours of them have place; of the others 64
// a second are 16 ms, and 18 hours have place.
const (
	fineBins   = 512
	coarseBins = 64
	mostFine   = 1 << 26
	mostCoarse = 1 << 22
)

func newFlow(from time.Duration) *flow { return &flow{From: from, Fine: fineBins, Coarse: coarseBins} }

// binOf is the bin that holds an instant, as (from, to]: one that ends at a
// second's end holds it.
func (f *flow) binOf(at time.Duration, perSecond int) int {
	d := max(0, at-f.From)
	w := time.Second / time.Duration(perSecond)
	return int((d + w - 1) / w)
}

// bin returns the coarse bin of an instant.
func (f *flow) bin(at time.Duration) *flowBin {
	i := f.binOf(at, f.Coarse)
	for i >= mostCoarse && f.Coarse > 1 {
		half := make([]flowBin, 0, len(f.Bins)/2+1)
		for k, b := range f.Bins {
			if to := (k + 1) / 2; to == len(half) {
				half = append(half, b)
			} else {
				half[to].join(b)
			}
		}
		f.Bins, f.Coarse = half, f.Coarse/2
		i = f.binOf(at, f.Coarse)
	}
	i = min(i, mostCoarse)
	if i >= len(f.Bins) {
		f.Bins = append(f.Bins, make([]flowBin, i+1-len(f.Bins))...)
	}
	return &f.Bins[i]
}

func (b *flowBin) join(o flowBin) {
	b.Sent, b.Ended, b.Due = b.Sent+o.Sent, b.Ended+o.Ended, b.Due+o.Due
	b.FailedFrom, b.FailedTo = b.FailedFrom+o.FailedFrom, b.FailedTo+o.FailedTo
	b.Prompts, b.Took = b.Prompts+o.Prompts, b.Took+o.Took
	b.Spent.add(o.Spent)
}

// addTokens counts tokens at an instant.
func (f *flow) addTokens(at time.Duration, n float64) {
	i := f.binOf(at, f.Fine)
	for i >= mostFine && f.Fine > 1 {
		half := f.Tokens[:0]
		for k, v := range f.Tokens {
			if to := (k + 1) / 2; to == len(half) {
				half = append(half, v)
			} else {
				half[to] += v
			}
		}
		f.Tokens, f.Fine = half, f.Fine/2
		i = f.binOf(at, f.Fine)
	}
	i = min(i, mostFine)
	if i >= len(f.Tokens) {
		f.Tokens = append(f.Tokens, make([]float32, i+1-len(f.Tokens))...)
	}
	f.Tokens[i] += float32(n)
	f.Sum += n
}

// peak returns the most tokens in a second that begins with a bin, and by what share
// the most of any second may be above it.
func (f *flow) peak() (most, bound float64) {
	sum, wide := 0.0, 0.0
	for i, v := range f.Tokens {
		sum += float64(v)
		if i >= f.Fine {
			sum -= float64(f.Tokens[i-f.Fine])
		}
		most = max(most, sum)
		if i+1 < len(f.Tokens) {
			wide = max(wide, sum+float64(f.Tokens[i+1]))
		}
	}
	return most, share(wide-most, most)
}

// share is the share of one value in another, 0 where there is nothing.
func share(part, of float64) float64 {
	if part <= 0 || of <= 0 {
		return 0
	}
	return part / of
}

// tokens returns the output tokens in a window, the bins at its ends counting in part,
// and what these hold.
func (f *flow) tokens(w Window) (n, edges float64) {
	n = overlap(f.Tokens, f.Fine, f.From, w, func(v float32) float64 { return float64(v) }, &edges)
	return n, edges
}

// prompts returns the prompt tokens whose first token came in a window.
func (f *flow) prompts(w Window) (tokens, edges float64) {
	tokens = overlap(f.Bins, f.Coarse, f.From, w, func(b flowBin) float64 { return b.Prompts }, &edges)
	return tokens, edges
}

// ended returns how many calls ended in a window, how long they took, and how many ended
// in the bins at its ends.
func (f *flow) ended(w Window) (n float64, took time.Duration, edges float64) {
	n = overlap(f.Bins, f.Coarse, f.From, w, func(b flowBin) float64 { return float64(b.Ended) }, &edges)
	ns := overlap(f.Bins, f.Coarse, f.From, w, func(b flowBin) float64 { return float64(b.Took) }, new(float64))
	return math.Round(n), time.Duration(ns), edges
}

// overlap sums bins over a window, those at its ends by the part that is inside; edges
// gets what these hold.
func overlap[T any](bins []T, perSecond int, from time.Duration, w Window, of func(T) float64, edges *float64) float64 {
	width := float64(time.Second / time.Duration(perSecond))
	sum := 0.0
	lo, hi := float64(w.From-from)/width, float64(w.To-from)/width
	for i := max(0, int(lo)); i <= int(hi)+1 && i < len(bins); i++ {
		inside := min(hi, float64(i)) - max(lo, float64(i-1)) // bin i is (i-1, i]
		if i == 0 {
			inside = 1 // what came before the start is in it
		}
		if inside <= 0 {
			continue
		}
		v := of(bins[i])
		if inside = min(inside, 1); inside < 1 {
			*edges += v
		}
		sum += v * inside
	}
	return sum
}

// maxInFlight returns the most calls in flight at the end of a bin, and by what share
// there may have been more in between.
func (f *flow) maxInFlight() (most, bound float64) {
	open, wide := 0.0, 0.0
	for _, b := range f.Bins {
		wide = max(wide, open+float64(b.Sent))
		open += float64(b.Sent) - float64(b.Ended)
		most = max(most, open)
	}
	if most == 0 {
		return wide, 0
	}
	return most, share(wide-most, most)
}

// at is the instant at which bin i ends.
func (f *flow) at(i int) time.Duration {
	return f.From + time.Duration(i)*(time.Second/time.Duration(f.Coarse))
}

// inFlight returns the mean number of successful calls in flight over a window.
func (f *flow) inFlight(w Window) float64 {
	open, area := 0.0, 0.0
	for i, b := range f.Bins {
		before := open
		open += float64(b.Sent) - float64(b.Ended)
		from, to := max(f.at(i-1), w.From), min(f.at(i), w.To)
		if to > from {
			area += (before + open) / 2 * float64(to-from)
		}
	}
	return area / float64(w.To-w.From)
}

// fullLoad returns from where to where so many calls were in flight, failed ones too,
// at the ends of bins; and by how much longer it may have been, since in between
// nobody knows.
func (f *flow) fullLoad(need int) (w Window, more time.Duration) {
	var wide Window
	open := 0
	for i, b := range f.Bins {
		before, most := open, open+int(b.Sent)+int(b.FailedFrom)
		open = most - int(b.Ended) - int(b.FailedTo)
		if most >= need {
			if !wide.OK {
				wide.From, wide.OK = f.at(i-1), true
			}
			wide.To = f.at(i)
		}
		if open >= need && !w.OK {
			w.From, w.OK = f.at(i), true
		}
		if before >= need && open < need {
			w.To = f.at(i - 1)
		}
	}
	return w, (wide.To - wide.From) - (w.To - w.From)
}

// pace is what CallSet.Pace is of, from bins.
func (f *flow) pace(ended int) Pace {
	dues := 0
	for _, b := range f.Bins {
		dues += int(b.Due)
	}
	span := func(n int, of func(flowBin) uint32) float64 { return f.quantile(n, of, 0.9) - f.quantile(n, of, 0.1) }
	var thirds [3]spent
	var calls [3]int
	before := 0
	for _, b := range f.Bins {
		k := min(2, 3*before/max(1, dues))
		thirds[k].add(b.Spent)
		calls[k] += int(b.Due)
		before += int(b.Due)
	}
	return Pace{
		Calls:   dues,
		DueSpan: span(dues, func(b flowBin) uint32 { return b.Due }), EndSpan: span(ended, func(b flowBin) uint32 { return b.Ended }),
		First: thirds[0].mean(calls[0]), Middle: thirds[1].mean(calls[1]), Last: thirds[2].mean(calls[2]),
	}
}

// quantile is the instant, in seconds, up to which a share of n things had happened.
func (f *flow) quantile(n int, of func(flowBin) uint32, q float64) float64 {
	left := q * float64(n)
	for i, b := range f.Bins {
		v := float64(of(b))
		if left -= v; left < 0 {
			return f.at(i-1).Seconds() + (left+v)/v*(time.Second/time.Duration(f.Coarse)).Seconds()
		}
	}
	return f.at(len(f.Bins)).Seconds()
}
