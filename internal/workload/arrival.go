package workload

import (
	"math"
	"math/rand/v2"
	"time"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// schedule returns the due time of each row. Random gaps come from a stream of
// their own, so that another dataset or length leaves the arrivals as they are.
func schedule(s Spec, rows []row) ([]time.Duration, error) {
	due := make([]time.Duration, len(rows))
	var seconds func(i int) float64
	switch s.Arrival {
	case "inf":
		return due, nil
	case "trace":
		seconds = func(i int) float64 { return (rows[i].at - rows[0].at).Seconds() / s.Speed }
	default:
		at := paced(s, len(rows))
		seconds = func(i int) float64 { return at[i] }
	}
	for i := range due {
		t := seconds(i)
		if !(t <= maxSpan.Seconds()) {
			return nil, field.Errorf("", "request %d of %d would be due after %.3g s: choose a higher [request_rate] or [speed]", i+1, len(rows), t)
		}
		due[i] = time.Duration(math.Round(t * 1e9))
	}
	return due, nil
}

// paced returns arrival times in seconds at a rate or a ramp of rates.
//
// The constant schedule starts at 0: request i is due at i/rate. The random
// ones are those of `vllm bench serve`: the first gap comes before the first
// request, and unless the rate ramps all times are stretched so that the last
// request of N is due at N/rate exactly. That removes the chance of the total
// time from the throughput figure; it also makes the gaps of a short run a
// little less variable than a true Poisson process (a factor N/sum(gaps)
// common to all, with relative deviation 1/sqrt(N·burstiness)).
func paced(s Spec, n int) []float64 {
	gap := gaps(s)
	at := make([]float64, n)
	t := 0.0
	for i := range at {
		g := gap(rateAt(s, i, n))
		if s.Arrival == "constant" {
			at[i] = t
			t += g
			continue
		}
		t += g
		at[i] = t
	}
	switch {
	case s.RampStrategy != "":
	case s.Arrival == "constant":
		for i := range at {
			at[i] = float64(i) / float64(s.Rate) // no rounding piles up
		}
	case t > 0:
		scale := float64(n) / float64(s.Rate) / t
		for i := range at {
			at[i] *= scale
		}
	}
	return at
}

// gaps returns a function that draws the gap in seconds at a rate in 1/s.
func gaps(s Spec) func(rate float64) float64 {
	rng := stat.Stream(s.Seed, "arrivals")
	switch s.Arrival {
	case "poisson": // exponential gaps, mean 1/rate
		return func(rate float64) float64 { return rng.ExpFloat64() / rate }
	case "gamma": // shape k = burstiness, scale 1/(rate·k): mean 1/rate, variance 1/(rate²·k)
		return func(rate float64) float64 { return gamma(rng, s.Burstiness) / (rate * s.Burstiness) }
	}
	return func(rate float64) float64 { return 1 / rate }
}

// gamma draws from the gamma distribution with the given shape and scale 1
// (Marsaglia and Tsang 2000; below shape 1 by Gamma(k) = Gamma(k+1)·U^(1/k)).
func gamma(rng *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(rng, shape+1) * math.Pow(1-rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-rng.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// rateAt returns the rate in requests/s that sets the gap of request i of n.
// A ramp goes by request index as in `vllm bench serve`, with p = i/(n-1):
//
//	linear:      start + (end-start)·p
//	exponential: start · (end/start)^p
func rateAt(s Spec, i, n int) float64 {
	p := float64(i) / float64(max(n-1, 1))
	switch s.RampStrategy {
	case "linear":
		return s.RampStart + (s.RampEnd-s.RampStart)*p
	case "exponential":
		return s.RampStart * math.Pow(s.RampEnd/s.RampStart, p)
	}
	return float64(s.Rate)
}
