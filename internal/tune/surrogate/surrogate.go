// Package surrogate is what is thought of configurations that were not launched: a
// Gaussian process over the errors of a predictor, by the launches of others. Pure.
//
//	m := surrogate.New(points, choices)   // measured, with what was predicted of each
//	mean, sd := m.At(point)               // of one that was not
//
// It knows no engine and no figure: a configuration is a list of coordinates, a figure
// the logarithm of a ratio. Nothing here is exact to the last digit on every processor.
package surrogate

import (
	"cmp"
	"math"
	"slices"

	"perflab/internal/stat"
)

// Model is a Gaussian process over configurations: what a figure is thought
// to be where nothing was launched, from predictions and from the launches so
// far. It works on logarithms of ratios to the baseline, x for predicted and y
// for measured:
//
//	y(c) = x(c) + slope(engine)*x(c) + bias(engine) + sum over parameters of part(value)
//	       + sum over two parameters of pair(value, value) + rest(c) + own(c) + noise
//
// Slope and bias are how wrong the predictor is about an engine, the parts how wrong it
// is about a value as such, wherever it is used: a layout, a checkpoint, a limit. Rest
// is how wrong it is about one configuration, alike for those that share most of their
// settings, and own what no other shares. All are normal with mean 0.
//
// How wide they are nobody knows before. So there are many views: a predictor that errs
// by a few percent or by a factor, about everything or mostly about one parameter. Each
// is weighed by how well it explains the measurements (its marginal likelihood), and
// what is thought of a configuration is the mean over the views. A predictor that errs
// here loses its weight with every launch that shows it. Without predictions x is 0.
//
// The sums over one and two parameters are an additive Gaussian process (Duvenaud, Nickisch and
// Rasmussen 2011). Rasmussen and Williams, Gaussian Processes for Machine Learning (2006),
// chapters 2 and 5; the kernel of the rest is theirs for categorical inputs
// (exponential in the distance).
type Model struct {
	points []Point
	views  []view // the likeliest first
}

// Point is a configuration as the surrogate sees it.
type Point struct {
	Engine string
	At     []Coordinate
	X      float64 // predicted, log ratio to the baseline
	Known  bool    // X is a prediction
	Y      float64 // measured, the same
	Study  int     // 0: this one; other numbers: earlier ones
	Unlike float64 // how far that study is from being of the same kind, 0 to 1
	Noise  float64 // variance of Y beside that between launches
}

// view is one belief about how wide the predictor's errors are, fitted.
type view struct {
	spreads
	prior  float64 // logarithm of its weight before anything is measured
	weight float64 // and after, in the end as a share
	chol   [][]float64
	alpha  []float64
}

// spreads of the predictor's errors, as standard deviations of logarithms.
type spreads struct {
	part, pair    float64
	rest, own     float64
	engine, slope float64
	launch        float64 // between launches of one configuration
	odd           int     // the parameter about which it is wrong by itself; -1: none
	oddBy         float64 // and the spread of that
	alone         bool    // earlier studies say nothing of this one
}

const (
	elsewhere   = 0.5  // share of a part's variance that is of all engines
	blindSpread = 0.05 // of rest and bias, besides, where nothing was predicted
	blindPart   = 0.09 // of a part, besides, there
	// offsetSpread is that of what all figures of an earlier study have in common: its
	// baseline, its load, its machine. So its ratios say something, its level nothing.
	offsetSpread = 1
)

// rated is a spread with its weight before anything is measured.
type rated struct{ spread, weight float64 }

// What competes. The values are fitted, and rounded: under them what is true of configurations that were not
// launched is likeliest, after seven launches of a study and after all of its search, on 624 landscapes of
// internal/test/science (seeds 1 to 48): see docs/tuning.md. The weights of one spread add up to 1.
var (
	partSpreads = []rated{{0.06, 0.9}, {0.16, 0.1}}
	restSpreads = []rated{{0.045, 0.9}, {0.15, 0.1}}
	pairSpreads = []rated{{0.01, 0.85}, {0.03, 0.1}, {0.1, 0.05}}
	ownSpreads  = []rated{{0.006, 0.9}, {0.08, 0.1}}
	launchNoise = []rated{{0.012, 0.8}, {0.05, 0.2}}
	oddSpreads  = []rated{{0.25, 0.7}, {0.8, 0.3}}
	trusts      = []struct{ engine, slope, weight float64 }{{0.25, 0.2, 0.7}, {0.7, 0.35, 0.3}}
)

// doubtful is a view that is kept whatever the measurements say: they are mostly of what is
// alike, and say little of the rest. It has no weight in what is thought; it says where to look
// when nothing is expected of anything.
var doubtful = spreads{part: 0.25, pair: 0.06, rest: 0.2, own: 0.01, engine: 0.7, slope: 1, launch: 0.012, odd: -1}

// Weights of what competes before anything is measured, and how many views are kept: those
// that have most of the weight.
const (
	doubtEarlier = 0.25 // of a view to which earlier studies say nothing, against its like
	evenWeight   = 0.4  // of a predictor that is wrong about no parameter in particular
	mostOdd      = 4    // of the likeliest, to which views are added that are wrong about one
	mostViews    = 8
	leastView    = 0.003 // of the likeliest one's weight
)

// New fits the measurements. Choices are the parameters about which the
// predictor may be wrong by itself, by their place.
func New(points []Point, choices []int) *Model {
	s := &Model{points: points}
	pairs := make([][]relation, len(points))
	for i, p := range points {
		for _, q := range points[:i+1] {
			pairs[i] = append(pairs[i], relate(p, q))
		}
	}
	add := func(of []view) {
		for _, v := range of {
			v.weight = v.prior + v.fit(points, pairs)
			s.views = append(s.views, v)
		}
		slices.SortStableFunc(s.views, func(a, b view) int { return -cmp.Compare(a.weight, b.weight) })
	}
	add(competing())
	if slices.ContainsFunc(points, func(p Point) bool { return p.Study > 0 }) {
		add(unlearned(s.views))
	}
	add(oddOnes(s.views[:mostOdd], choices))
	s.keepLikely()
	wide := view{spreads: doubtful}
	wide.fit(points, pairs)
	s.views = append(s.views, wide)
	return s
}

// competing are the views of a predictor that is wrong about no parameter in particular,
// before anything is measured; weights are logarithms.
func competing() []view {
	out := []view{{spreads: spreads{odd: -1}}}
	vary := func(values []rated, set func(s *spreads, to float64)) {
		var next []view
		for _, v := range out {
			for _, to := range values {
				w := v
				set(&w.spreads, to.spread)
				w.prior += math.Log(to.weight)
				next = append(next, w)
			}
		}
		out = next
	}
	vary(partSpreads, func(s *spreads, to float64) { s.part = to })
	vary(pairSpreads, func(s *spreads, to float64) { s.pair = to })
	vary(restSpreads, func(s *spreads, to float64) { s.rest = to })
	vary(ownSpreads, func(s *spreads, to float64) { s.own = to })
	vary(launchNoise, func(s *spreads, to float64) { s.launch = to })
	var all []view
	for _, v := range out {
		for _, t := range trusts {
			w := v
			w.engine, w.slope = t.engine, t.slope
			w.prior += math.Log(t.weight * evenWeight)
			all = append(all, w)
		}
	}
	return all
}

// unlearned are views like others to which earlier studies say nothing of this one: where their
// figures contradict its own launches, these explain both better.
func unlearned(like []view) []view {
	out := slices.Clone(like)
	for i := range out {
		out[i].alone = true
		out[i].prior += math.Log(doubtEarlier)
	}
	return out
}

// oddOnes are views like some that were fitted, of a predictor that is wrong about one
// parameter.
func oddOnes(like []view, choices []int) []view {
	var out []view
	for _, v := range like {
		prior := v.prior + math.Log((1-evenWeight)/evenWeight/float64(len(choices)))
		for _, a := range choices {
			for _, by := range oddSpreads {
				v.odd, v.oddBy = a, by.spread
				out = append(out, view{spreads: v.spreads, prior: prior + math.Log(by.weight)})
			}
		}
	}
	return out
}

// keepLikely keeps the views that matter, and makes their weights shares: the likeliest, and
// of those that are wrong about a parameter the likeliest each, for they alone look where
// all others see nothing.
func (s *Model) keepLikely() {
	most, sum := s.views[0].weight, 0.0
	seen := map[int]bool{}
	var kept []view
	for _, v := range s.views {
		if v.weight < most+math.Log(leastView) || seen[v.odd] && len(kept) >= mostViews {
			continue
		}
		seen[v.odd] = true
		v.weight = math.Exp(v.weight - most)
		sum += v.weight
		kept = append(kept, v)
	}
	s.views = kept
	for i := range s.views {
		s.views[i].weight /= sum
	}
}

// fit factors the covariance and returns the log marginal likelihood, but for a
// constant.
func (v *view) fit(points []Point, pairs [][]relation) float64 {
	n := len(points)
	v.chol = make([][]float64, n)
	for i := range points {
		row := make([]float64, i+1)
		v.chol[i] = row
		for j := range i + 1 {
			k := v.kernel(pairs[i][j])
			if i == j {
				k += points[i].Noise + v.launch*v.launch
			}
			for m, x := range v.chol[j][:j] {
				k -= row[m] * x
			}
			if i == j {
				row[i] = math.Sqrt(k)
			} else {
				row[j] = k / v.chol[j][j]
			}
		}
	}
	z := make([]float64, n)
	for i, p := range points {
		z[i] = p.Y - p.X
	}
	z = v.forward(z)
	likelihood := 0.0
	for i, x := range z {
		likelihood -= x*x/2 + math.Log(v.chol[i][i])
	}
	v.alpha = v.backward(z)
	return likelihood
}

// forward solves L z = b, backward its transpose.
func (v *view) forward(b []float64) []float64 {
	z := slices.Clone(b)
	for i, row := range v.chol {
		for j, x := range row[:i] {
			z[i] -= x * z[j]
		}
		z[i] /= row[i]
	}
	return z
}

func (v *view) backward(b []float64) []float64 {
	z := slices.Clone(b)
	for i := len(z) - 1; i >= 0; i-- {
		for j := i + 1; j < len(z); j++ {
			z[i] -= v.chol[j][i] * z[j]
		}
		z[i] /= v.chol[i][i]
	}
	return z
}

// Belief is what one view thinks of y, noise apart.
type Belief struct{ Weight, Mean, SD float64 }

// At is what Y is thought to be, with its standard deviation, noise apart.
func (s *Model) At(p Point) (mean, sd float64) {
	square := 0.0
	for _, b := range s.think(p).beliefs(nil) {
		mean += b.Weight * b.Mean
		square += b.Weight * (b.Mean*b.Mean + b.SD*b.SD)
	}
	return mean, math.Sqrt(max(0, square-mean*mean))
}

// Launch is the noise between launches of one configuration, as the views have it.
func (s *Model) Launch() float64 {
	sum := 0.0
	for _, v := range s.views {
		sum += v.weight * v.launch
	}
	return sum
}

// Rival is a configuration that others are held against.
type Rival struct {
	model *Model
	of    thought
}

// Against makes a configuration the one that others are held against.
func (s *Model) Against(p Point) *Rival { return &Rival{s, s.think(p)} }

// Beliefs are what the views think of Y of a configuration less that of the rival. Two that
// are thought to be alike differ by little, however little is known of either.
func (r *Rival) Beliefs(p Point) []Belief { return r.model.think(p).beliefs(&r.of) }

// Ahead is the chance that Y of a configuration is above the rival's by more than so much.
func (r *Rival) Ahead(p Point, by float64) float64 {
	chance := 0.0
	for _, b := range r.Beliefs(p) {
		switch {
		case b.SD > 0:
			chance += b.Weight * stat.NormalCDF((b.Mean-by)/b.SD)
		case b.Mean > by:
			chance += b.Weight
		}
	}
	return chance
}

// Doubt is what the widest of views believes of the difference: what is still possible where
// the others are sure.
func (r *Rival) Doubt(p Point) Belief {
	all := r.Beliefs(p)
	return all[len(all)-1]
}

// thought is what the views think of one configuration.
type thought struct {
	model    *Model
	point    Point
	mean     []float64 // by view
	variance []float64
	z        [][]float64 // covariances with the points, solved
}

func (s *Model) think(p Point) thought {
	to := make([]relation, len(s.points))
	for i, q := range s.points {
		to[i] = relate(p, q)
	}
	self := relate(p, p)
	n := len(s.views)
	t := thought{s, p, make([]float64, n), make([]float64, n), make([][]float64, n)}
	k := make([]float64, len(s.points))
	for i := range s.views {
		v := &s.views[i]
		mean := p.X
		for j, r := range to {
			k[j] = v.kernel(r)
			mean += k[j] * v.alpha[j]
		}
		variance := v.kernel(self)
		t.z[i] = v.forward(k)
		for _, z := range t.z[i] {
			variance -= z * z
		}
		t.mean[i], t.variance[i] = mean, max(variance, 0)
	}
	return t
}

// beliefs are those of the configuration, or of its difference to a rival.
func (t thought) beliefs(rival *thought) []Belief {
	out := make([]Belief, len(t.mean))
	var between relation
	if rival != nil {
		between = relate(t.point, rival.point)
	}
	for i := range out {
		v := &t.model.views[i]
		b := Belief{v.weight, t.mean[i], t.variance[i]}
		if rival != nil {
			both := v.kernel(between)
			for j, z := range t.z[i] {
				both -= z * rival.z[i][j]
			}
			b.Mean -= rival.mean[i]
			b.SD += rival.variance[i] - 2*both
		}
		b.SD = math.Sqrt(max(b.SD, 0))
		out[i] = b
	}
	return out
}

// relation is what two configurations have in common, whatever the view.
type relation struct {
	same     []float64 // by parameter: 1 the same value, 0 another; near numbers in between
	sum      float64   // of same, numbers for a part
	all      float64   // of same
	pairs    float64   // of products of what two parameters have in common
	alike    float64   // of all together: exp of the negative distance
	equal    float64   // 1: the same; most of it where they differ in numbers alone
	engine   bool      // is the same
	silent   bool      // nothing was predicted of either
	foretold float64   // product of what was
	kin      float64   // how much the predictor's errors about the two have in common, as they are of other studies
	apart    bool      // they are of two studies
	offset   bool      // both are of one earlier study, whose scale is its own
}

// How far configurations are apart that differ in one choice, and in one number; and how much two
// numbers resemble each other of which something is predicted: what they do is mostly predicted well.
const (
	choiceApart = 0.6
	numberApart = 0.12
	numberAlike = 0.8
	numberShare = 0.35 // of the variance that choices have: what is wrong about a number is less
	defaultLike = 0.6  // how much a number resembles the engine's own, which is not known

	numberBesides = 0.3 // how much a number counts beside another value, where a choice counts 1
)

// relate compares two configurations. Each of its figures is a covariance in itself: of
// features that the two have in common, so that whatever is made of them by sums and
// products is one too.
func relate(p, q Point) relation {
	r := relation{
		same: make([]float64, len(p.At)), alike: 1, equal: 1,
		engine: p.Engine == q.Engine, silent: !p.Known && !q.Known, foretold: p.X * q.X, kin: 1,
	}
	if r.apart = p.Study != q.Study; r.apart {
		r.kin = (1 - p.Unlike) * (1 - q.Unlike)
	}
	r.offset = p.Study == q.Study && p.Study > 0
	ladder, effect, before := 1.0, 0.0, 0.0
	if p.Known || q.Known {
		ladder = 1 - numberAlike
	}
	if p.Known && q.Known {
		effect = numberAlike
	}
	for i, a := range p.At {
		b := q.At[i]
		same := a.Value == b.Value
		switch {
		case !a.Ordered && same:
			r.same[i] = 1
		case !a.Ordered:
			r.alike *= math.Exp(-choiceApart)
			r.equal = 0
		default:
			near, apart, equal := 1.0, 0.0, 1.0
			if !same {
				near, apart, equal = defaultLike, numberApart, 0
				if far := math.Abs(a.Log - b.Log); !math.IsNaN(far) {
					near, apart = math.Exp(-far/2), numberApart*min(1, far/2)
				}
			}
			r.same[i] = ladder*near + effect
			r.alike *= ladder*math.Exp(-apart) + effect
			r.equal *= ladder*equal + effect
		}
		r.all += r.same[i]
		share := besides(a.Ordered, same, r.same[i])
		r.pairs += share * before
		before += share
		if a.Ordered {
			r.sum += numberShare * r.same[i]
		} else {
			r.sum += r.same[i]
		}
	}
	return r
}

// besides is how much two values of a parameter have in common where another is with them: of
// numbers the same alone, and less.
func besides(ordered, same bool, like float64) float64 {
	switch {
	case !ordered:
		return like
	case same:
		return numberBesides
	}
	return 0
}

// kernel is the covariance of the predictor's errors about two configurations.
func (v *view) kernel(r relation) float64 {
	if v.alone && r.apart {
		return 0
	}
	k := v.rest*v.rest*r.alike + v.own*v.own*r.equal + v.pair*v.pair*r.pairs
	part := v.part * v.part * r.sum
	if v.odd >= 0 {
		part += v.oddBy * v.oddBy * r.same[v.odd]
	}
	wrong := v.slope * v.slope * r.foretold
	if !r.engine {
		part *= elsewhere
		wrong *= elsewhere
	} else {
		k += v.engine * v.engine
	}
	if r.silent {
		k += blindSpread*blindSpread*r.alike + blindPart*blindPart*r.all
		if r.engine {
			k += blindSpread * blindSpread
		}
	}
	k = r.kin * (k + part + wrong)
	if r.offset {
		k += offsetSpread * offsetSpread
	}
	return k
}

// Coordinate is one parameter of a configuration.
type Coordinate struct {
	Value   string
	Ordered bool    // a number on a ladder
	Log     float64 // to base 2; not a number for what is none above zero
}

// Expected is the mean of a normal variable where it is above 0, counted as 0 where it is
// below: what a launch is expected to bring.
func Expected(mean, sd float64) float64 {
	if sd <= 0 {
		return max(0, mean)
	}
	z := mean / sd
	return mean*stat.NormalCDF(z) + sd*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
}
