// Package timebins keeps the course of a run in bins of time, in bounded memory however long the run is: what came when,
// and how many calls were under way.
//
//	c := timebins.New(start)
//	c.Bin(sent).Sent++
//	c.Bin(end).Ended++
//	c.AddTokens(at, 1)
//	n, edges := c.Tokens(from, to)
//
// A run that outgrows its bins has them made twice as wide. What is inside of a bin is not known: each answer says what
// it leaves open. Widths divide a second, so that a second is a whole number of bins.
//
// Deliberately absent: calls, and the figures that are made of the answers (package result).
package timebins

import (
	"math"
	"math/bits"
	"time"
)

// Course is what happened along a run.
type Course struct {
	From   time.Duration // where the first bin begins
	Fine   int           // bins of Output in a second, a power of two; see fineBins
	Output []float32     // output tokens by their stamps
	Coarse int           // bins of Bins in a second, likewise
	Bins   []Bin
	Sum    float64 // of Output
}

// Bin is what happened in a bin. Starts and ends are successful calls' unless
// they say otherwise.
type Bin struct {
	Sent, Ended uint32
	Due         uint32        // first turns of conversations alone, as is what follows from it
	FailedFrom  uint32        // failed calls that took a place
	FailedTo    uint32        // and gave it back
	Prompts     float64       // prompt tokens, by the first token
	Took        time.Duration // from sending to end, of calls that ended here
	Spent       Spent         // from due to end, of calls that were due here
}

// Spent is the time of calls from due to end, by what it was spent on.
type Spent struct {
	Waiting time.Duration // for a place among the calls in flight
	Late    time.Duration // sent later than possible, by the client
	Server  time.Duration // connecting, and from sending to the end
}

// Add adds the time of other calls.
func (s *Spent) Add(o Spent) {
	s.Waiting, s.Late, s.Server = s.Waiting+o.Waiting, s.Late+o.Late, s.Server+o.Server
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

// New makes the course of a run that begins at an instant.
func New(from time.Duration) *Course {
	return &Course{From: from, Fine: fineBins, Coarse: coarseBins}
}

// Size is about how many bytes the course takes.
func (c *Course) Size() int { return 4*cap(c.Output) + 72*cap(c.Bins) }

// width is how long a bin is: a division by a power of two is a shift, which it is worth for every token.
func width(perSecond int) time.Duration { return time.Second >> bits.TrailingZeros(uint(perSecond)) }

// index is the bin that holds an instant, as (from, to]: one that ends at a
// second's end holds it.
func (c *Course) index(at time.Duration, perSecond int) int {
	d := max(0, at-c.From)
	w := width(perSecond)
	return int((d + w - 1) / w)
}

// Bin returns the bin of an instant, to be counted in at once.
func (c *Course) Bin(at time.Duration) *Bin { return c.bin(at, mostCoarse) }

// bin is Bin with so many bins at most.
func (c *Course) bin(at time.Duration, most int) *Bin {
	i := c.index(at, c.Coarse)
	for i >= most && c.Coarse > 1 {
		half := make([]Bin, 0, len(c.Bins)/2+1)
		for k, b := range c.Bins {
			if to := (k + 1) / 2; to == len(half) {
				half = append(half, b)
			} else {
				half[to].join(b)
			}
		}
		c.Bins, c.Coarse = half, c.Coarse/2
		i = c.index(at, c.Coarse)
	}
	i = min(i, most)
	if i >= len(c.Bins) {
		c.Bins = append(c.Bins, make([]Bin, i+1-len(c.Bins))...)
	}
	return &c.Bins[i]
}

func (b *Bin) join(o Bin) {
	b.Sent, b.Ended, b.Due = b.Sent+o.Sent, b.Ended+o.Ended, b.Due+o.Due
	b.FailedFrom, b.FailedTo = b.FailedFrom+o.FailedFrom, b.FailedTo+o.FailedTo
	b.Prompts, b.Took = b.Prompts+o.Prompts, b.Took+o.Took
	b.Spent.Add(o.Spent)
}

// AddTokens counts tokens at an instant.
func (c *Course) AddTokens(at time.Duration, n float64) { c.addTokens(at, n, mostFine) }

// addTokens is AddTokens with so many bins at most.
func (c *Course) addTokens(at time.Duration, n float64, most int) {
	i := c.index(at, c.Fine)
	for i >= most && c.Fine > 1 {
		half := c.Output[:0]
		for k, v := range c.Output {
			if to := (k + 1) / 2; to == len(half) {
				half = append(half, v)
			} else {
				half[to] += v
			}
		}
		c.Output, c.Fine = half, c.Fine/2
		i = c.index(at, c.Fine)
	}
	i = min(i, most)
	if i >= len(c.Output) {
		c.Output = append(c.Output, make([]float32, i+1-len(c.Output))...)
	}
	c.Output[i] += float32(n)
	c.Sum += n
}

// End is the instant up to which tokens came.
func (c *Course) End() time.Duration {
	return c.From + time.Duration(len(c.Output))*time.Second/time.Duration(c.Fine)
}

// Peak returns the most tokens in a second that begins with a bin, and what no
// second had more than.
func (c *Course) Peak() (most, atMost float64) {
	sum := 0.0
	for i, v := range c.Output {
		sum += float64(v)
		if i >= c.Fine {
			sum -= float64(c.Output[i-c.Fine])
		}
		most = max(most, sum)
		if i+1 < len(c.Output) {
			atMost = max(atMost, sum+float64(c.Output[i+1]))
		}
	}
	return most, atMost
}

// Tokens returns the output tokens from one instant to another, the bins at the ends counting in part,
// and what these hold.
func (c *Course) Tokens(from, to time.Duration) (n, edges float64) {
	n = overlap(c, c.Output, c.Fine, from, to, func(v float32) float64 { return float64(v) }, &edges)
	return n, edges
}

// Prompts returns the prompt tokens whose first token came from one instant to another.
func (c *Course) Prompts(from, to time.Duration) (tokens, edges float64) {
	tokens = overlap(c, c.Bins, c.Coarse, from, to, func(b Bin) float64 { return b.Prompts }, &edges)
	return tokens, edges
}

// Ended returns how many calls ended from one instant to another, how long they took, and how many ended
// in the bins at the ends.
func (c *Course) Ended(from, to time.Duration) (n float64, took time.Duration, edges float64) {
	n = overlap(c, c.Bins, c.Coarse, from, to, func(b Bin) float64 { return float64(b.Ended) }, &edges)
	ns := overlap(c, c.Bins, c.Coarse, from, to, func(b Bin) float64 { return float64(b.Took) }, new(float64))
	return math.Round(n), time.Duration(ns), edges
}

// overlap sums bins from one instant to another, those at the ends by the part that is inside; edges
// gets what these hold.
func overlap[T any](c *Course, bins []T, perSecond int, from, to time.Duration, of func(T) float64, edges *float64) float64 {
	wide := float64(width(perSecond))
	sum := 0.0
	lo, hi := float64(from-c.From)/wide, float64(to-c.From)/wide
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

// MaxInFlight returns the most calls in flight at the end of a bin, and what there were never more than
// in between.
func (c *Course) MaxInFlight() (most, atMost float64) {
	open := 0.0
	for _, b := range c.Bins {
		atMost = max(atMost, open+float64(b.Sent))
		open += float64(b.Sent) - float64(b.Ended)
		most = max(most, open)
	}
	if most == 0 {
		most = atMost
	}
	return most, atMost
}

// at is the instant at which bin i ends.
func (c *Course) at(i int) time.Duration {
	return c.From + time.Duration(i)*width(c.Coarse)
}

// MeanInFlight returns the mean number of successful calls in flight from one instant to another.
func (c *Course) MeanInFlight(from, to time.Duration) float64 {
	open, area := 0.0, 0.0
	for i, b := range c.Bins {
		before := open
		open += float64(b.Sent) - float64(b.Ended)
		if span := min(c.at(i), to) - max(c.at(i-1), from); span > 0 {
			area += (before + open) / 2 * float64(span)
		}
	}
	return area / float64(to-from)
}

// Full returns from when to when so many calls were in flight, failed ones too, at the ends of bins; by how
// much longer it may have been, since in between nobody knows; and whether there were ever as many.
func (c *Course) Full(need int) (from, to, more time.Duration, ok bool) {
	var wideFrom, wideTo time.Duration
	wide := false
	open := 0
	for i, b := range c.Bins {
		before, most := open, open+int(b.Sent)+int(b.FailedFrom)
		open = most - int(b.Ended) - int(b.FailedTo)
		if most >= need {
			if !wide {
				wideFrom, wide = c.at(i-1), true
			}
			wideTo = c.at(i)
		}
		if open >= need && !ok {
			from, ok = c.at(i), true
		}
		if before >= need && open < need {
			to = c.at(i - 1)
		}
	}
	return from, to, (wideTo - wideFrom) - (to - from), ok
}

// Thirds returns what the calls of each third of the run, by when they were due, spent their time on, and how
// many they are.
func (c *Course) Thirds() (spent [3]Spent, calls [3]int) {
	all := 0
	for i := range c.Bins {
		all += int(c.Bins[i].Due)
	}
	before := 0
	for i := range c.Bins {
		b := &c.Bins[i]
		k := min(2, 3*before/max(1, all))
		spent[k].Add(b.Spent)
		calls[k] += int(b.Due)
		before += int(b.Due)
	}
	return spent, calls
}

// Quantile is the instant, in seconds, up to which a share of n things had happened.
func (c *Course) Quantile(n int, of func(Bin) uint32, q float64) float64 {
	left := q * float64(n)
	for i, b := range c.Bins {
		v := float64(of(b))
		if left -= v; left < 0 {
			return c.at(i-1).Seconds() + (left+v)/v*width(c.Coarse).Seconds()
		}
	}
	return c.at(len(c.Bins)).Seconds()
}
