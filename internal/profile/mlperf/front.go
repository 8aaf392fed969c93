package mlperf

import (
	"cmp"
	"slices"
)

// Step is a step of the front: up to this speed per user the system gives this throughput.
type Step struct {
	TPSPerUser  float64 `json:"tps_per_user"`
	SystemTPS   float64 `json:"system_tps"`
	Concurrency int     `json:"concurrency"`
}

// Front is the published curve as a step function: the points than which none is better in both
// figures, from the slowest user to the fastest. Between two points the next one's throughput holds; nothing is
// interpolated. Points without figures are on no front.
func Front(points []Point) []Step {
	var all []Step
	for _, p := range points {
		if p.TPSPerUser > 0 && p.SystemTPS > 0 && p.Void == "" && !p.Partial {
			all = append(all, Step{p.TPSPerUser, p.SystemTPS, p.Concurrency})
		}
	}
	slices.SortFunc(all, func(a, b Step) int {
		return cmp.Or(cmp.Compare(b.TPSPerUser, a.TPSPerUser), cmp.Compare(b.SystemTPS, a.SystemTPS))
	})
	var out []Step
	for _, s := range all {
		if len(out) == 0 || s.SystemTPS > out[len(out)-1].SystemTPS {
			out = append(out, s)
		}
	}
	slices.Reverse(out)
	return out
}
