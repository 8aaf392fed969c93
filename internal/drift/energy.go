package drift

import (
	"cmp"
	"math"
	"slices"

	"perflab/internal/stat"
)

// windows are the sizes of those, each half over the one before, that are cut on their own
// beside the whole: a short stretch in the middle of a series makes no cut of the whole
// strong, since what is behind it is as what was before. At most half a window long it lies in
// one of them with enough around it, and of a longer one some window sees an edge alone.
// (Matteson and James let the second side end anywhere, in n^2 steps instead of n log n.)
var windows = []int{20, 50}

const largestWindow = 50

// Random orders: as many as cost about the same for any length, within bounds.
const (
	fewestOrders = 99
	mostOrders   = 399
	orderWork    = 60_000 // points in all orders together
)

func orders(n int, level float64) int {
	return max(fewestOrders, min(orderWork/n, mostOrders), int(math.Ceil(1/level))-1)
}

// split cuts x, whose first point is the from-th, wherever the energy statistic is beyond
// chance, and what it has cut again. Each part has the same random stream, so that what is
// found in one does not hang on another's length.
func split(x []float64, from int, o Options) []cut {
	if len(x) < 2*minSize {
		return nil
	}
	e := newEnergy(x)
	order := slices.Clone(e.rank)
	best, at := e.best(order)
	p, ok := e.chance(best, order, o)
	if !ok {
		return nil
	}
	cuts := split(x[:at], from, o)
	cuts = append(cuts, cut{from + at, EDivisive, p})
	return append(cuts, split(x[at:], from+at, o)...)
}

// relocate moves each cut to the strongest place between its neighbours, since one that was found
// while others were still inside may lie beside its change; and from there by a point or two to
// where the medians on both sides leave the least distances, since a side of three points may
// be two that are moved and one that is not.
func relocate(x []float64, cuts []cut) []cut {
	for i := range cuts {
		e := ends(cuts, len(x))
		from, to := e[i], e[i+2]
		part := newEnergy(x[from:to])
		if _, at := part.whole(part.rank); at > 0 {
			cuts[i].at = placed(x, from, from+at-next+1, from+at+next, to)
		}
	}
	return cuts
}

// energy computes the statistic of cuts of any order of its values. With n points before the
// cut and m after, mean distances d between and within (each of two points once),
//
//	q = n m/(n+m) (2 d(before, after) - d(before, before) - d(after, after))
//
// which is large where the two sides are of different distributions.
type energy struct {
	sorted []float64
	rank   []int     // of the points as they came
	rows   []float64 // sum of distances to all others, by rank
	total  float64   // of all distances

	tree  []node    // Fenwick tree over ranks: of those before the cut
	left  []float64 // of a window: distances to those before
	right []float64 // and to those after
}

type node struct{ count, sum float64 }

func newEnergy(x []float64) *energy {
	n := len(x)
	by := make([]int, n)
	for i := range by {
		by[i] = i
	}
	slices.SortStableFunc(by, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	e := &energy{sorted: make([]float64, n), rank: make([]int, n), rows: make([]float64, n), tree: make([]node, n+1),
		left: make([]float64, largestWindow), right: make([]float64, largestWindow)}
	middle := x[by[n/2]] // distances are those of values less the middle, which keeps their digits
	for r, i := range by {
		e.sorted[r], e.rank[i] = x[i]-middle, r
	}
	all, below := stat.Sum(e.sorted), 0.0
	for r, v := range e.sorted {
		e.rows[r] = v*float64(2*r-n) - 2*below + all
		e.total += e.rows[r] / 2
		below += v
	}
	return e
}

// best is the strongest cut of an order, of the whole or of one of its windows.
func (e *energy) best(order []int) (q float64, at int) {
	q, at = e.whole(order)
	for _, size := range windows {
		if len(order) <= size*3/2 {
			break
		}
		for from := 0; len(order)-from > size/2; from += size / 2 { // what is shorter lies within the one before
			to := min(from+size, len(order))
			if wq, wat := e.window(order[from:to]); wq > q {
				q, at = wq, from+wat
			}
		}
	}
	return q, at
}

// whole is the strongest cut of all points, in n log n steps: the distances from a point to
// those before it follow from how many of them have a lower rank, and from their sum.
func (e *energy) whole(order []int) (q float64, at int) {
	clear(e.tree)
	q = math.Inf(-1)
	before, after, all, n := 0.0, e.total, 0.0, len(order)
	for i, r := range order {
		if i >= minSize && n-i >= minSize {
			if v := strength(before, after, e.total, i, n-i); v > q {
				q, at = v, i
			}
		}
		v := e.sorted[r]
		var lower node
		for k := r; k > 0; k &= k - 1 {
			lower.count += e.tree[k].count
			lower.sum += e.tree[k].sum
		}
		d := v*(2*lower.count-float64(i)) - 2*lower.sum + all
		before += d
		after -= e.rows[r] - d
		all += v
		for k := r + 1; k < len(e.tree); k += k & -k {
			e.tree[k].count++
			e.tree[k].sum += v
		}
	}
	return q, at
}

// window is the strongest cut of a few points, by all their distances.
func (e *energy) window(order []int) (q float64, at int) {
	n := len(order)
	left, right := e.left[:n], e.right[:n]
	clear(left)
	clear(right)
	total := 0.0
	for i, a := range order {
		v, d := e.sorted[a], 0.0
		for j, b := range order[:i] {
			w := math.Abs(v - e.sorted[b])
			d += w
			right[j] += w
		}
		left[i] = d
		total += d
	}
	q = math.Inf(-1)
	before, after := 0.0, total
	for i := range order {
		if i >= minSize && n-i >= minSize {
			if v := strength(before, after, total, i, n-i); v > q {
				q, at = v, i
			}
		}
		before += left[i]
		after -= right[i]
	}
	return q, at
}

// strength is q from sums of distances.
func strength(before, after, total float64, before0, after0 int) float64 {
	n, m := float64(before0), float64(after0)
	between := (total - before - after) / (n * m)
	return n * m / (n + m) * (2*between - 2*before/(n*(n-1)) - 2*after/(m*(m-1)))
}

// chance is the share of random orders whose strongest cut is as strong as q, that of the
// points as they came among them. ok is false, and no more orders are drawn, as soon as the
// share must be beyond the level.
func (e *energy) chance(q float64, order []int, o Options) (p float64, ok bool) {
	if !(q > 0) {
		return 1, false
	}
	draws := stat.Stream(o.Seed, "drift")
	n, reached := orders(len(order), o.Level), 1
	for range n {
		draws.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if v, _ := e.best(order); v >= q*(1-1e-9) { // but for rounding
			if reached++; float64(reached) > o.Level*float64(n+1) {
				return 1, false
			}
		}
	}
	return float64(reached) / float64(n+1), float64(reached) <= o.Level*float64(n+1)
}
