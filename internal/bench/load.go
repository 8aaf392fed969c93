package bench

import (
	"cmp"
	"math"
	"strconv"

	"perflab/internal/workload"
)

// What a series varies from run to run.
const (
	AxisRate        = "rate"        // requests/s
	AxisConcurrency = "concurrency" // calls in flight at most
	Synchronous     = "synchronous" // one call at a time
	Throughput      = "throughput"  // all requests at once
	Same            = "run"         // nothing but the seed
)

// Load is how hard one run of a series presses.
type Load struct {
	Axis  string  `json:"axis"`
	Value float64 `json:"value,omitzero"` // of a rate, a concurrency, or the number of a repeated run
}

// String returns "rate 4", "synchronous".
func (l Load) String() string {
	if l.Value == 0 {
		return l.Axis
	}
	return l.Axis + " " + Short(l.Value)
}

// Name is the load as the name of a directory: "rate-4".
func (l Load) Name() string {
	if l.Value == 0 {
		return l.Axis
	}
	return l.Axis + "-" + Short(l.Value)
}

// Text is the load for a reader of a report: "8 in flight", "4 requests/s".
func (l Load) Text() string {
	switch l.Axis {
	case AxisRate:
		return Short(l.Value) + " requests/s"
	case AxisConcurrency:
		return Short(l.Value) + " in flight"
	}
	return l.String()
}

func Short(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// rounded writes a figure with as many digits as a sentence bears.
func rounded(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Apply returns the workload under this load.
func (l Load) Apply(w workload.Spec) workload.Spec {
	switch l.Axis {
	case AxisRate:
		if w.Arrival == "inf" || w.Arrival == "trace" {
			w.Arrival, w.Speed = "", 0
		}
		w.Rate = workload.Rate(l.Value)
	case AxisConcurrency:
		w.MaxConcurrency = int(l.Value)
	case Synchronous, Throughput:
		w.Arrival, w.Rate, w.Burstiness, w.Speed = "inf", workload.Rate(math.Inf(1)), 0, 0
		if l.Axis == Synchronous {
			w.MaxConcurrency = 1
		}
	}
	return w.Defaults()
}

// digits3 rounds to three significant digits, and digits2 to two.
func digits3(v float64) float64 { return digits(v, 3) }
func digits2(v float64) float64 { return digits(v, 2) }

func digits(v float64, n int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	return cmp.Or(map[bool]float64{true: r}[err == nil], v)
}
