package tune

import (
	"maps"
	"math"
	"slices"
	"strconv"
)

// surrogate is a Gaussian process over configurations: what a figure is thought
// to be where nothing was launched, from predictions and from the launches so
// far. It works on logarithms of ratios to the baseline, x for predicted and y
// for measured:
//
//	y(c) = x(c) + slope(engine)*x(c) + sum over parameters of part(value) + rest(c) + own(c) + noise
//
// The parts are how wrong the predictor is about an engine, a layout, a way to
// speculate as such, wherever it is used; rest is how wrong it is about one
// configuration, alike for those that share most of their settings, and own what no
// other shares. All are normal with mean 0; the spreads of parts, rest and own are
// those of a few that explain the measurements best (the largest marginal likelihood).
// Without predictions x is 0 and rest wider.
//
// Rasmussen and Williams, Gaussian Processes for Machine Learning (2006),
// chapters 2 and 5; the kernel of the rest is theirs for categorical inputs
// (exponential in the distance).
type surrogate struct {
	points []point
	scale  spreads
	chol   [][]float64
	alpha  []float64
}

// point is a configuration as the surrogate sees it.
type point struct {
	engine string
	at     []coordinate
	x      float64 // predicted, log ratio to the baseline
	known  bool    // x is a prediction
	y      float64 // measured, the same
	noise  float64 // variance of y
}

// spreads of the predictor's errors, as standard deviations of logarithms.
type spreads struct{ part, rest, own float64 }

// The simulator's held-out errors are of this order: docs/accuracy.md.
const (
	engineSpread = 0.15
	slopeSpread  = 0.25
	elsewhere    = 0.6  // share of a part's variance that is of all engines
	blindSpread  = 0.35 // of rest where nothing was predicted
)

// competing are the spreads that compete, the usual first.
var competing = []spreads{
	{0.08, 0.06, 0.01}, {0.08, 0.03, 0.01}, {0.03, 0.03, 0.01}, {0.03, 0.06, 0.01}, {0.15, 0.06, 0.01}, {0.15, 0.12, 0.01}, {0.25, 0.12, 0.01}, {0.25, 0.25, 0.01},
	{0.08, 0.06, 0.1}, {0.15, 0.12, 0.1}, {0.08, 0.06, 0.3}, {0.15, 0.12, 0.3},
}

// newSurrogate fits the measurements.
func newSurrogate(points []point) *surrogate {
	var best *surrogate
	most := math.Inf(-1)
	for _, scale := range competing {
		s := &surrogate{points: points, scale: scale}
		if l := s.fit(); l > most {
			best, most = s, l
		}
		if len(points) < 5 {
			break // too few to choose by
		}
	}
	return best
}

// fit factors the covariance and returns the log marginal likelihood, but for a
// constant.
func (s *surrogate) fit() float64 {
	n := len(s.points)
	s.chol = make([][]float64, n)
	for i := range s.points {
		s.chol[i] = make([]float64, i+1)
		for j := range i + 1 {
			k := s.kernel(s.points[i], s.points[j])
			if i == j {
				k += s.points[i].noise
			}
			for m := range j {
				k -= s.chol[i][m] * s.chol[j][m]
			}
			if i == j {
				s.chol[i][i] = math.Sqrt(max(k, 1e-12))
			} else {
				s.chol[i][j] = k / s.chol[j][j]
			}
		}
	}
	z := make([]float64, n)
	for i, p := range s.points {
		z[i] = p.y - p.x
	}
	z = s.forward(z)
	likelihood := 0.0
	for i, v := range z {
		likelihood -= v*v/2 + math.Log(s.chol[i][i])
	}
	s.alpha = s.backward(z)
	return likelihood
}

// forward solves L z = b, backward its transpose.
func (s *surrogate) forward(b []float64) []float64 {
	z := slices.Clone(b)
	for i := range z {
		for j := range i {
			z[i] -= s.chol[i][j] * z[j]
		}
		z[i] /= s.chol[i][i]
	}
	return z
}

func (s *surrogate) backward(b []float64) []float64 {
	z := slices.Clone(b)
	for i := len(z) - 1; i >= 0; i-- {
		for j := i + 1; j < len(z); j++ {
			z[i] -= s.chol[j][i] * z[j]
		}
		z[i] /= s.chol[i][i]
	}
	return z
}

// at is what y is thought to be, with its standard deviation, noise apart.
func (s *surrogate) at(p point) (mean, sd float64) {
	k := make([]float64, len(s.points))
	mean = p.x
	for i, q := range s.points {
		k[i] = s.kernel(p, q)
		mean += k[i] * s.alpha[i]
	}
	variance := s.kernel(p, p)
	for _, v := range s.forward(k) {
		variance -= v * v
	}
	return mean, math.Sqrt(max(variance, 0))
}

// kernel is the covariance of the predictor's errors about two configurations.
func (s *surrogate) kernel(a, b point) float64 {
	same, d := s.compare(a, b)
	k := s.spread(a) * s.spread(b) * math.Exp(-d)
	if d == 0 {
		k += s.scale.own * s.scale.own
	}
	part := s.scale.part * s.scale.part * float64(same)
	if a.engine != b.engine {
		return k + elsewhere*part
	}
	return k + part + engineSpread*engineSpread + slopeSpread*slopeSpread*a.x*b.x
}

func (s *surrogate) spread(p point) float64 {
	if p.known {
		return s.scale.rest
	}
	return max(s.scale.rest, blindSpread)
}

// engineParameter is the one parameter whose meaning matters here: predictions
// err alike for what runs the same program.
const engineParameter = "engine"

// coordinate is one parameter of a configuration.
type coordinate struct {
	name, value string
	ordered     bool    // a number on a ladder
	log         float64 // to base 2; not a number for what is none above zero
}

// How far configurations are apart that differ in one choice, and in one number. A
// number that is predicted to change nothing is mostly one that does not bind.
const (
	choiceApart = 1
	numberApart = 0.3
	idleApart   = 0.1 // as a factor
	idleEffect  = 0.002
)

// compare counts the choices that two configurations share, and says how far apart they
// are.
func (s *surrogate) compare(p, q point) (same int, distance float64) {
	number := numberApart
	if p.known && q.known && math.Abs(p.x-q.x) < idleEffect {
		number *= idleApart
	}
	for i, a := range p.at {
		b := q.at[i]
		switch {
		case a.value == b.value && !a.ordered:
			same++
		case a.value == b.value:
		case !a.ordered:
			distance += choiceApart
		case math.IsNaN(a.log) || math.IsNaN(b.log):
			distance += number
		default:
			distance += number * min(1, math.Abs(a.log-b.log)/2)
		}
	}
	return same, distance
}

// expected is the mean improvement of a normal variable over best, where it
// improves: what a launch is expected to bring.
func expected(mean, sd, best float64) float64 {
	if sd <= 0 {
		return max(0, mean-best)
	}
	z := (mean - best) / sd
	return (mean-best)*normalCDF(z) + sd*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
}

// normalCDF is the distribution function of the standard normal.
func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// key identifies a configuration.
func (c Config) key() string {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if c[name] != "" {
			b = strconv.AppendQuote(b, name)
			b = strconv.AppendQuote(append(b, '='), c[name])
		}
	}
	return string(b)
}

// predictionFit fits, for one engine, measured = bias + scale*predicted on logarithms,
// pulled towards 0 and 1 by the spreads above: few points say little.
func predictionFit(engine string, points []point) PredictionFit {
	const noise = 0.05
	f := PredictionFit{Engine: engine, N: len(points), Scale: 1}
	a, b, d := noise*noise/(engineSpread*engineSpread), 0.0, noise*noise/(slopeSpread*slopeSpread)
	u, v := 0.0, 0.0
	for _, p := range points {
		r := p.y - p.x
		a, b, d = a+1, b+p.x, d+p.x*p.x
		u, v = u+r, v+r*p.x
		f.Error += math.Abs(math.Expm1(-r)) / float64(len(points))
	}
	if det := a*d - b*b; det > 0 {
		f.Bias = (u*d - v*b) / det
		f.Scale = 1 + (v*a-u*b)/det
	}
	return f
}
