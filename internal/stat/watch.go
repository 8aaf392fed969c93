package stat

import (
	"math"
	"slices"
)

// Watch looks at a figure while a run goes on, and says when its 95 % interval is narrow
// enough for the run to end:
//
//	w := &stat.Watch{Within: 0.02, Together: 32}
//	for each call that ends {
//		if w.Add(tokens, seconds) { ... } // ± 2 %
//	}
//
// The figure is the ratio of the sums of y and x (of calls: their tokens by the time that they
// were in flight), or a quantile of y. The first values to come, twice as many as are under way
// together, are left out: they met a server that was filling. The rest is cut, in the order in
// which it came, into blocks of as many values as are under way together or more, so that a block
// lasts about as long as a value takes, and neighbouring blocks that are still alike are joined, as
// in Blocks. So slow changes of the server widen the interval, or keep it from being given.
//
// Whoever looks until an interval is narrow stops where chance made it so, and at many looks
// chance has many tries. So it is looked at seldom, each time with a fifth more values than the
// time before, the run ends only where two looks in a row find it narrow, and every interval is
// made at a stricter level than the one it is stated at. In the simulations of watch_test.go, closed
// loops on a server whose speed wanders and stays alike for up to four times as long as a value takes, the
// stated interval of runs that ended early held the truth in 93 to 99 of 100; where it stays alike for eight
// times as long, in 77: so short a run sees one speed, and cannot tell that there are others.
type Watch struct {
	Figure   string  // its name, for readers of what is found
	Within   float64 // half the width of the interval, as a share of the figure, that is narrow enough
	Together int     // values that are under way together; may change between calls of Add
	Quantile float64 // of y, between 0 and 1; 0: the ratio of the sums
	Rate     bool    // what is stated is what ends in a window by its length: what is under way at its edges counts whole or not at all

	y, x   []float64
	next   int // values in all at which it is looked next
	narrow int // looks in a row that found it narrow
	looks  int
}

// How a Watch looks.
const (
	looksApart  = 1.2  // each look has so many times the values of the one before
	inARow      = 2    // looks that must find the interval narrow
	strictLevel = 0.99 // of intervals that are stated at 95 %
	fewestSeen  = 100  // values that are looked at
	mostBlocks  = 40
	leftOut     = 2 // times the values under way together
)

// WatchLeast is the least number of values, those left out at first among them, after which a
// Watch of so many together looks for the first time.
func WatchLeast(together int) int {
	return leftOut*together + max(fewestSeen, MinBlocks*together)
}

// WatchEnds is the least number after which it can end a run.
func WatchEnds(together int) int {
	return int(math.Ceil(looksApart * float64(WatchLeast(together))))
}

// Watched is what a Watch found.
type Watched struct {
	Figure  string   `json:"metric"`
	Asked   float64  `json:"asked"`             // Watch.Within
	Ended   bool     `json:"ended"`             // it was said that the run may end
	Half    *float64 `json:"half,omitempty"`    // half the width of the 95 % interval, as a share of the figure: the wider side of the two; nil: there is none
	Because string   `json:"because,omitempty"` // why there is none
	Values  int      `json:"requests"`          // that it is of
	Left    int      `json:"left_out"`          // values before them
	Blocks  int      `json:"blocks"`
	Looks   int      `json:"looks"`
}

// Add takes the next value in. It reports whether the run may end.
func (w *Watch) Add(y, x float64) bool {
	w.y, w.x = append(w.y, y), append(w.x, x)
	if n := len(w.y); n < w.next || n < WatchLeast(w.Together) {
		return false
	}
	w.next = int(math.Ceil(looksApart * float64(len(w.y))))
	w.looks++
	if f := w.Found(); f.Half == nil || *f.Half > w.Within {
		w.narrow = 0
		return false
	}
	w.narrow++
	return w.narrow >= inARow
}

// Reserve makes room for so many values.
func (w *Watch) Reserve(n int) { w.y, w.x = slices.Grow(w.y, n), slices.Grow(w.x, n) }

// Found is the interval by all values so far.
func (w *Watch) Found() Watched {
	f := Watched{Figure: w.Figure, Asked: w.Within, Ended: w.narrow >= inARow, Left: min(leftOut*w.Together, len(w.y)), Looks: w.looks}
	y, x := w.y[f.Left:], w.x[f.Left:]
	f.Values = len(y)
	if len(w.y) < WatchLeast(w.Together) {
		f.Because = "too few requests ended"
		return f
	}
	f.Blocks = min(mostBlocks, len(y)/max(1, w.Together))
	var e Estimate
	var err error
	if w.Quantile > 0 {
		b := Blocks{Samples: y}
		for i := range f.Blocks {
			b.Ends = append(b.Ends, (i+1)*len(y)/f.Blocks)
		}
		e, err = b.Quantile(slices.Sorted(slices.Values(y)), w.Quantile, strictLevel)
	} else {
		tops, bottoms := make([]float64, f.Blocks), make([]float64, f.Blocks)
		for i := range f.Blocks {
			from, to := i*len(y)/f.Blocks, (i+1)*len(y)/f.Blocks
			tops[i], bottoms[i] = Sum(y[from:to]), Sum(x[from:to])
		}
		e, err = linear(tops, bottoms, Sum(tops)/Sum(bottoms), strictLevel)
	}
	if err != nil {
		f.Because = err.Error()
		return f
	}
	half := math.Expm1(max(e.down, e.up))
	if w.Rate { // of each of them a share that is anywhere between 0 and 1 is missing at one edge and too much at the other
		half = math.Hypot(half, 2*math.Sqrt(float64(w.Together)/6)/float64(f.Values))
	}
	f.Half = &half
	return f
}
