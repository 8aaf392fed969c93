package mlperf

import (
	"math"
	"slices"
	"time"

	"perflab/internal/stat"
)

// States of a steady window, as a submission names them.
const (
	Windowable           = "windowable"
	InsufficientDuration = "insufficient_duration"
	InsufficientPasses   = "insufficient_passes"
	PartialDataset       = "partial_dataset"

	SteadyVerdict = "STEADY STATE"
	NotFound      = "not found"
	DriftingUp    = "drifting_up"
	DriftingDown  = "drifting_down"

	Plateau    = "Plateau"
	DriftsUp   = "Drifting Up"
	DriftsDown = "Drifting Down"
)

const (
	leastPasses = 4    // of a window: fewer tell no trend
	band        = 0.1  // of the steady TPOT, within which a pass belongs to the steady part
	leastDrift  = 0.05 // over the window, as a share of its median: less is noise
	surely      = 1.96 // standard deviations of Mann and Kendall's statistic
)

// Steady is the steady window of a run: passes over the data set in the order in which their requests
// were sent, behind those in which the server fills.
type Steady struct {
	Status    string            `json:"status,omitempty"` // "": a window that drifts
	Verdict   string            `json:"verdict"`
	First     int               `json:"super_pass_start"`
	Last      int               `json:"super_pass_end"` // below First: there is no window
	Size      int               `json:"super_pass_size"`
	Samples   int               `json:"n_samples"`
	DurationS float64           `json:"duration_s"`
	State     map[string]string `json:"state,omitempty"` // by figure
}

// Official reports whether figures are of the window: else they are of the whole run.
func (s Steady) Official() bool { return s.Status == Windowable }

// gates are the figures that may not drift.
var gates = []struct {
	name  string
	value func(Sample) float64
	q     float64
}{
	{"ttft_p50", func(s Sample) float64 { return s.TTFT }, 0.5}, {"ttft_p90", func(s Sample) float64 { return s.TTFT }, 0.9},
	{"tpot_p50", func(s Sample) float64 { return s.TPOT }, 0.5}, {"tpot_p90", func(s Sample) float64 { return s.TPOT }, 0.9},
}

// steadyOf finds the window in samples sorted by the time they were sent.
func steadyOf(samples []Sample, pass int, least time.Duration) Steady {
	s := Steady{Size: pass, Verdict: NotFound, Last: -1}
	passes := 0
	if pass > 0 {
		passes = len(samples) / pass
	}
	if passes == 0 {
		s.Status = PartialDataset
		return s
	}
	s.First, s.Last = filled(series(samples, pass, passes, gates[2].value, gates[2].q)), passes-1
	within := samples[s.First*pass : passes*pass]
	s.Samples, s.DurationS = len(within), (within[len(within)-1].Sent - within[0].Sent).Seconds()
	if s.Last-s.First+1 < leastPasses {
		s.Status = InsufficientPasses
		return s
	}
	s.State, s.Verdict = map[string]string{}, SteadyVerdict
	for _, g := range gates {
		state := drift(series(within, pass, len(within)/pass, g.value, g.q))
		if s.State[g.name] = state; state == DriftsUp || state == DriftsDown && s.Verdict != DriftingUp {
			s.Verdict = map[string]string{DriftsUp: DriftingUp, DriftsDown: DriftingDown}[state]
		}
	}
	switch {
	case s.DurationS < least.Seconds():
		s.Status = InsufficientDuration
	case s.Verdict == SteadyVerdict:
		s.Status = Windowable
	}
	return s
}

// series is a quantile of each pass; NaN of one without a sample.
func series(samples []Sample, pass, passes int, value func(Sample) float64, q float64) []float64 {
	out := make([]float64, passes)
	for i := range out {
		var x []float64
		for _, s := range samples[i*pass : (i+1)*pass] {
			if v := value(s); !math.IsNaN(v) {
				x = append(x, v)
			}
		}
		slices.Sort(x)
		out[i] = stat.Quantile(x, q)
	}
	return out
}

// filled is how many passes at the start lie off the level of the second half, at most half of them.
func filled(x []float64) int {
	back := slices.Sorted(slices.Values(x[len(x)/2:]))
	level := stat.Quantile(back, 0.5)
	n := 0
	for n < len(x)/2 && math.Abs(x[n]-level) > band*level {
		n++
	}
	return n
}

// drift says whether a series has a trend: one that is no chance by Mann and Kendall, and large enough to matter.
func drift(x []float64) string {
	n := len(x)
	sum := 0.0
	for i := range x {
		for k := i + 1; k < n; k++ {
			switch {
			case x[k] > x[i]:
				sum++
			case x[k] < x[i]:
				sum--
			}
		}
	}
	deviation := math.Sqrt(float64(n*(n-1)*(2*n+5)) / 18)
	z := (math.Abs(sum) - 1) / deviation
	median := stat.Quantile(slices.Sorted(slices.Values(x)), 0.5)
	change := slope(x) * float64(n-1)
	switch {
	case z < surely || math.Abs(change) < leastDrift*median:
		return Plateau
	case change > 0:
		return DriftsUp
	}
	return DriftsDown
}

// slope is that of the least squares line over 0, 1, 2, ...
func slope(x []float64) float64 {
	middle, mean := float64(len(x)-1)/2, stat.Mean(x)
	var over, under float64
	for i, v := range x {
		d := float64(i) - middle
		over, under = over+d*(v-mean), under+d*d
	}
	return over / under
}
