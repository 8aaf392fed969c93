package tune

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"perflab/internal/tune/surrogate"
)

// Parameters whose meaning matters here: predictions err alike for what runs the same
// program, and every checkpoint has its launch.
const (
	engineParameter = "engine"
	modelParameter  = "model"
)

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

// Spreads of an engine's bias and slope where predictions are held against launches.
const (
	engineSpread = 0.15
	slopeSpread  = 0.25
)

// predictionFit fits, for one engine, measured = bias + scale*predicted on logarithms,
// pulled towards 0 and 1 by the spreads above: few points say little.
func predictionFit(engine string, points []surrogate.Point) PredictionFit {
	const noise = 0.05
	f := PredictionFit{Engine: engine, N: len(points), Scale: 1}
	a, b, d := noise*noise/(engineSpread*engineSpread), 0.0, noise*noise/(slopeSpread*slopeSpread)
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
