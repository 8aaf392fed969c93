package surrogate

import "math"

// Line is measured = Bias + Scale*predicted on logarithms, of the launches of one engine.
type Line struct {
	Bias, Scale float64
	Error       float64 // mean absolute relative error of the predictions as they were
}

// Spreads of an engine's bias and slope where predictions are held against launches.
const (
	biasSpread  = 0.15
	slopeSpread = 0.25
)

// LineOf fits a line to launches, pulled towards a bias of 0 and a scale of 1 by the spreads
// above: few points say little.
func LineOf(points []Point) Line {
	const noise = 0.05
	f := Line{Scale: 1}
	a, b, d := noise*noise/(biasSpread*biasSpread), 0.0, noise*noise/(slopeSpread*slopeSpread)
	u, v := 0.0, 0.0
	for _, p := range points {
		r := p.Y - p.X
		a, b, d = a+1, b+p.X, d+p.X*p.X
		u, v = u+r, v+r*p.X
		f.Error += math.Abs(math.Expm1(-r)) / float64(len(points))
	}
	if det := a*d - b*b; det > 0 {
		f.Bias = (u*d - v*b) / det
		f.Scale = 1 + (v*a-u*b)/det
	}
	return f
}
