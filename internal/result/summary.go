package result

import "iter"

// Options choose what Summarize computes beyond the fixed figures.
type Options struct {
	Percentiles []float64 // in percent, "99.9" style names; nil: 50 90 95 99
	Goodput     []SLO     // all must hold for a request to count
}

// Summary is the figures computed from a run, by metric name. A figure that
// the data does not support is absent, never zero.
type Summary struct {
	Simulated bool
	Predicted bool
	Partial   bool
	Figures   map[string]float64
	Failures  map[Class]int // failed calls by class
	Verdict   Verdict
}

// SLO is one bound on a metric. No data never passes.
type SLO struct {
	Metric string
	Op     string // <= or >=
	Limit  float64
}

// Status of a verdict or of one of its checks.
type Status string

// Sound: believe the figures. Noted: believe them with what is said. Void: do
// not.
const (
	Sound  Status = "sound"
	Noted  Status = "noted"
	Voided Status = "void"
)

// Check is one thing looked at, with its figures in the sentence.
type Check struct {
	Name   string `json:"name"` // stable: dispatch_lag, client_cpu, gc, tokens, little, identity, peak, failures ...
	Status Status `json:"status"`
	Text   string `json:"text"`
}

// Verdict says whether a run's figures can be believed, with reasons.
type Verdict struct {
	Status Status  `json:"status"` // the worst of its checks
	Checks []Check `json:"checks"`
}

// Summarize computes every figure of a run. It is pure and exact.
func Summarize(h Header, c *Client, o Options, calls iter.Seq[Call]) (Summary, error) {
	panic("not written yet")
}
