package mlperf

import (
	"math"
	"slices"
	"time"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// Bases of a point's figures.
const (
	FromSteady = "steady state"
	FromWhole  = "whole run"
)

// Point is what the rules look at of one run of a curve, with its figures by the benchmark's definitions.
type Point struct {
	Concurrency int     `json:"concurrency"`
	Pass        int     `json:"dataset_samples"` // samples of a pass over the data set
	Issued      int     `json:"samples_issued"`
	Completed   int     `json:"samples_completed"`
	WholeS      float64 `json:"duration_s"` // of the whole run, from the first request to the last answer
	Steady      Steady  `json:"steady_state"`
	Basis       string  `json:"figures_of"` // FromSteady, FromWhole
	SystemTPS   float64 `json:"system_tps,omitzero"`
	TTFTP90     float64 `json:"ttft_p90_ms,omitzero"`
	TPOTP90     float64 `json:"tpot_p90_ms,omitzero"`
	TPSPerUser  float64 `json:"tps_per_user,omitzero"`

	Of Distributions `json:"-"` // of the same samples, for a submission's files

	Closed    bool   `json:"fixed_concurrency"`
	Seed      uint64 `json:"seed"`
	Warmups   int    `json:"warmup_requests,omitzero"`
	Cache     string `json:"cache"`
	Partial   bool   `json:"partial,omitzero"`
	Void      string `json:"void,omitempty"` // why its figures cannot be believed
	Simulated bool   `json:"simulated"`
	Workload  string `json:"workload"` // in words
}

// BasisS is the time that a point's duration is judged by: the issue time of its steady window, else
// the whole run.
func (p Point) BasisS() float64 {
	if p.Basis == FromSteady {
		return p.Steady.DurationS
	}
	return p.WholeS
}

// Distribution is what a submission's files say of one measure of a point, in their units.
type Distribution struct {
	Total       float64            `json:"total"`
	Avg         float64            `json:"avg"`
	Min         float64            `json:"min"`
	Max         float64            `json:"max"`
	Count       int                `json:"count"`
	Percentiles map[string]float64 `json:"percentiles,omitempty"`
}

// Distributions are the measures of a point: times in nanoseconds, lengths in tokens.
type Distributions struct{ TTFT, TPOT, Latency, Output Distribution }

// Sample is a call as the rules see it. Times are offsets from the start; NaN: the call has none.
type Sample struct {
	Sent, End  time.Duration
	OK         bool
	Output     int
	TTFT, TPOT float64 // nanoseconds
}

// SampleOf is what the rules see of a call.
func SampleOf(c *result.Call) Sample {
	s := Sample{Sent: c.Sent, End: c.End, OK: c.OK(), TTFT: math.NaN(), TPOT: math.NaN()}
	if !s.OK {
		return s
	}
	s.Output, _ = c.Output()
	if d, ok := c.TTFT(); ok {
		s.TTFT = float64(d)
	}
	if ns, ok := c.TPOT(); ok {
		s.TPOT = ns
	}
	return s
}

// Measure computes a point's figures of its samples, in any order, which are given to it, and a pass over the data set. What
// the caller knows of the run besides stays as it is. Figures are of the steady window where there is one.
func Measure(p Point, least time.Duration, samples []Sample) Point {
	slices.SortStableFunc(samples, func(a, b Sample) int { return int(a.Sent - b.Sent) })
	p.Issued, p.Completed = len(samples), 0
	var last time.Duration
	for _, s := range samples {
		last = max(last, s.End)
		if s.OK {
			p.Completed++
		}
	}
	p.Basis = FromWhole
	if len(samples) == 0 {
		return p
	}
	p.WholeS = (last - samples[0].Sent).Seconds()
	p.Steady = steadyOf(samples, p.Pass, least)
	within, seconds := samples, p.WholeS
	if p.Steady.Official() {
		p.Basis, seconds = FromSteady, p.Steady.DurationS
		within = samples[p.Steady.First*p.Pass : (p.Steady.Last+1)*p.Pass]
	}
	p.Of = distributions(within)
	if seconds > 0 {
		p.SystemTPS = p.Of.Output.Total / seconds
	}
	p.TTFTP90 = p.Of.TTFT.Percentiles["90"] / 1e6
	if p.TPOTP90 = p.Of.TPOT.Percentiles["90"] / 1e6; p.TPOTP90 > 0 {
		p.TPSPerUser = 1000 / p.TPOTP90
	}
	return p
}

// distributions are those of samples that succeeded.
func distributions(samples []Sample) Distributions {
	var ttft, tpot, latency, output []float64
	for _, s := range samples {
		if !s.OK {
			continue
		}
		latency, output = append(latency, float64(s.End-s.Sent)), append(output, float64(s.Output))
		if !math.IsNaN(s.TTFT) {
			ttft = append(ttft, s.TTFT)
		}
		if !math.IsNaN(s.TPOT) {
			tpot = append(tpot, s.TPOT)
		}
	}
	return Distributions{distribution(ttft), distribution(tpot), distribution(latency), distribution(output)}
}

// shares are the percentiles that a submission's files have.
var shares = []struct {
	name string
	q    float64
}{{"50", 0.5}, {"75", 0.75}, {"80", 0.8}, {"90", 0.9}, {"95", 0.95}, {"97", 0.97}, {"99", 0.99}, {"99.9", 0.999}}

func distribution(x []float64) Distribution {
	if len(x) == 0 {
		return Distribution{}
	}
	slices.Sort(x)
	d := Distribution{Avg: stat.Mean(x), Min: x[0], Max: x[len(x)-1], Count: len(x), Percentiles: map[string]float64{}}
	for _, v := range x {
		d.Total += v
	}
	for _, s := range shares {
		d.Percentiles[s.name] = stat.Quantile(x, s.q)
	}
	return d
}
