package workload

import (
	"iter"
	"math"
	"slices"
	"time"
)

// maxLong bounds the requests of a workload that is drawn while it is sent: ten days at
// 1,000 requests/s.
const maxLong = 1_000_000_000

// longRows is how many lengths are drawn for one: of a million different requests no
// figure can tell that the lengths come again.
const longRows = 1 << 20

// long is the schedule of a workload of so many requests that due times and lengths do
// not fit into memory. Due times are drawn anew each time they are gone through, and
// lengths repeat after longRows requests; prompts do not.
type long struct {
	spec  Spec
	n     int
	span  time.Duration // until the last is due
	scale float64       // of the gaps, in seconds
}

// drawnLong reports whether a workload can be drawn while it is sent: prompts are made up
// each by itself, and the rate stays the same.
func drawnLong(s Spec) bool {
	return lengthsRepeat(s) && s.RandomImages == 0 && s.Steps == "" && s.RampStrategy == "" && !s.Rate.Inf() && slices.Contains([]string{"constant", "poisson", "gamma"}, s.Arrival)
}

// lengthsRepeat reports whether lengths may come again while prompts stay new.
func lengthsRepeat(s Spec) bool {
	return s.Dataset == "random" && s.Scenario == "" && s.RandomRNG != "vllm" && !s.RandomIDs
}

// newLong lays out such a workload of a spec with its defaults; nil for one that has no
// more requests than others may have.
func newLong(s Spec) *long {
	if !drawnLong(s) {
		return nil
	}
	rate, end := float64(s.Rate), math.Inf(1)
	switch d := s.length(); {
	case d > 0:
		end = d.Seconds()
		if n := rate * end; n <= maxRequests || n > maxLong {
			return nil
		}
	case s.NumPrompts <= maxRequests:
		return nil
	}
	l := &long{spec: s, n: s.NumPrompts, scale: 1 / rate}
	if l.n == 0 {
		l.n = math.MaxInt
	}
	n, last := 0, 0.0
	for at := range l.seconds() {
		if at >= end {
			break
		}
		n, last = n+1, at
	}
	if l.n = n; math.IsInf(end, 1) && s.Arrival != "constant" && last > 0 {
		// As paced has it: the last of n is due at n/rate.
		l.scale *= float64(n) / rate / last
		last = float64(n) / rate
	}
	l.span = time.Duration(math.Round(last * 1e9))
	return l
}

// seconds yields when requests are due.
func (l *long) seconds() iter.Seq[float64] {
	return func(yield func(float64) bool) {
		gap, t := gaps(l.spec), 0.0
		for i := range l.n {
			if l.spec.Arrival == "constant" {
				t = float64(i) // no rounding piles up
			} else {
				t += gap(1)
			}
			if !yield(t * l.scale) {
				return
			}
		}
	}
}

// due yields when each request is due.
func (l *long) due() iter.Seq2[int, time.Duration] {
	return func(yield func(int, time.Duration) bool) {
		i := 0
		for at := range l.seconds() {
			if !yield(i, time.Duration(math.Round(at*1e9))) {
				return
			}
			i++
		}
	}
}

// peak is the most requests that are due within a span.
func (l *long) peak(span time.Duration) int {
	var within []time.Duration
	most := 0
	for _, at := range l.due() {
		for len(within) > 0 && within[0] <= at-span {
			within = within[1:]
		}
		within = append(within, at)
		most = max(most, len(within))
	}
	return most
}

// longShard yields the requests of a shard.
func longShard(w *Workload, i, n int, yield func(Request) bool) {
	for k, at := range w.long.due() {
		if k%n != i {
			continue
		}
		r := w.request(k)
		r.Due = at
		if !yield(r) {
			return
		}
	}
}

// row is row k of rows that repeat.
func (src *source) row(k int) row { return src.rows[k%len(src.rows)] }

// repeats is how often row i comes in n requests.
func (src *source) repeats(i, n int) int { return (n - i + len(src.rows) - 1) / len(src.rows) }
