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
//	y(c) = x(c) + bias(engine) + slope(engine)*x(c) + rest(c) + noise
//
// bias and slope are how wrong the predictor is about an engine as a whole, and
// rest how wrong it is about one configuration, alike for configurations that
// share most of their parameters. All three are normal with mean 0; the spread of
// rest is the one of a few that explains the measurements best (the largest
// marginal likelihood). Without predictions x is 0 and rest wider.
//
// Rasmussen and Williams, Gaussian Processes for Machine Learning (2006),
// chapters 2 and 5; the kernel of the rest is theirs for categorical inputs
// (exponential in the distance).
type surrogate struct {
	points []point
	rest   float64
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

// Spreads of the predictor's errors, as standard deviations of logarithms. The
// simulator's held-out errors are of this order: docs/accuracy.md.
const (
	biasSpread  = 0.2
	slopeSpread = 0.25
	blindSpread = 0.35 // of rest where nothing was predicted
)

// restSpreads are those that are tried for rest.
var restSpreads = []float64{0.03, 0.06, 0.12, 0.25}

// newSurrogate fits the measurements.
func newSurrogate(points []point) *surrogate {
	best, at := math.Inf(-1), 0.12
	if len(points) >= 4 {
		for _, rest := range restSpreads {
			s := &surrogate{points: points, rest: rest}
			if l := s.fit(); l > best {
				best, at = l, rest
			}
		}
	}
	s := &surrogate{points: points, rest: at}
	s.fit()
	return s
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

// pointOf is a configuration of which nothing is known yet.
func pointOf(c Config) point { return point{engine: c[engineParameter], at: c.coordinates()} }

// kernel is the covariance of the predictor's errors about two configurations.
func (s *surrogate) kernel(a, b point) float64 {
	k := s.spread(a) * s.spread(b) * math.Exp(-apart(a.at, b.at))
	if a.engine == b.engine {
		k += biasSpread*biasSpread + slopeSpread*slopeSpread*a.x*b.x
	}
	return k
}

func (s *surrogate) spread(p point) float64 {
	if p.known {
		return s.rest
	}
	return max(s.rest, blindSpread)
}

// engineParameter is the one parameter whose meaning matters here: predictions
// err alike for what runs the same program.
const engineParameter = "engine"

// coordinate is one parameter of a configuration.
type coordinate struct {
	name, value string
	log         float64 // to base 2; not a number for what is none above zero
}

// coordinates are the parameters in the order of their names.
func (c Config) coordinates() []coordinate {
	out := make([]coordinate, 0, len(c))
	for _, name := range slices.Sorted(maps.Keys(c)) {
		log := math.NaN()
		if x, err := strconv.ParseFloat(c[name], 64); err == nil && x > 0 {
			log = math.Log2(x)
		}
		out = append(out, coordinate{name, c[name], log})
	}
	return out
}

// apart is the distance of two configurations: so much for each parameter that
// differs, and less for numbers that are near each other.
func apart(a, b []coordinate) float64 {
	d := 0.0
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].name < b[0].name:
			d, a = d+differ(a[0], coordinate{log: math.NaN()}), a[1:]
		case len(a) == 0 || b[0].name < a[0].name:
			d, b = d+differ(b[0], coordinate{log: math.NaN()}), b[1:]
		default:
			if a[0].value != b[0].value {
				d += differ(a[0], b[0])
			}
			a, b = a[1:], b[1:]
		}
	}
	return d
}

func differ(a, b coordinate) float64 {
	const most = 0.7
	switch d := math.Abs(a.log - b.log); {
	case a.name == engineParameter:
		return 1
	case math.IsNaN(d):
		return most
	default:
		return min(most, 0.35*d)
	}
}

// expected is the mean improvement of a normal variable over best, where it
// improves: what a launch is expected to bring.
func expected(mean, sd, best float64) float64 {
	if sd <= 0 {
		return max(0, mean-best)
	}
	z := (mean - best) / sd
	return (mean-best)*below(z) + sd*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
}

// below is the normal distribution.
func below(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// feasible is the chance that a configuration runs, by how those most like it
// did: refusals count as far as they resemble it, against a prior of nine in ten.
func feasible(c Config, trials []*trial) float64 {
	yes, no := 0.9*2, 0.1*2
	at := c.coordinates()
	for _, t := range trials {
		like := math.Exp(-2 * apart(at, t.Config.coordinates()))
		switch t.end.Status {
		case Measured:
			yes += like
		case Refused, Failed:
			no += 2 * like
		}
	}
	return yes / (yes + no)
}

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

// foretell fits, for one engine, measured = bias + scale*predicted on logarithms,
// pulled towards 0 and 1 by the spreads above: few points say little.
func foretell(engine string, points []point) Foretold {
	const noise = 0.05
	f := Foretold{Engine: engine, N: len(points), Scale: 1}
	a, b, d := noise*noise/(biasSpread*biasSpread), 0.0, noise*noise/(slopeSpread*slopeSpread)
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
