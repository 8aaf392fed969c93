package workload

import "math"

// rateAt returns the rate in requests/s that sets the gap of request i of n.
// A ramp goes by request index as in `vllm bench serve`, with p = i/(n-1):
//
//	linear:      start + (end-start)·p
//	exponential: start · (end/start)^p
func (s Spec) rateAt(i, n int) float64 {
	p := float64(i) / float64(max(n-1, 1))
	switch s.RampStrategy {
	case "linear":
		return s.RampStart + (s.RampEnd-s.RampStart)*p
	case "exponential":
		return s.RampStart * math.Pow(s.RampEnd/s.RampStart, p)
	}
	return float64(s.Rate)
}
