package study

import (
	"math"

	"perflab/internal/bench"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// LoadSearch is a workload's load that is looked for in each launch, and not given:
// the highest that meets the SLOs of the objective. Its keys are the flags of
// perflab bench --find-max.
type LoadSearch struct {
	Axis      string   `yaml:"axis" json:"axis" jsonschema:"required,enum=rate,enum=concurrency,description=What is searched: requests a second\\, or requests in flight"`
	From      float64  `yaml:"from,omitempty" json:"from,omitempty" jsonschema:"description=Load at which the search begins (default 1); a configuration that misses there has no figure"`
	To        float64  `yaml:"to,omitempty" json:"to,omitempty" jsonschema:"description=Highest load of the search (default none)"`
	Precision float64  `yaml:"precision,omitempty" json:"precision,omitempty" jsonschema:"description=How narrow the bracket must be\\, as a share of the load (default 0.05)"`
	Points    int      `yaml:"points,omitempty" json:"points,omitempty" jsonschema:"description=Runs of one launch at most\\, the last kept for the edge (default 18)"`
	Requests  int      `yaml:"requests,omitempty" json:"requests,omitempty" jsonschema:"description=Requests of each run at least (default what the SLOs' percentiles need\\, and 100)"`
	Seconds   *float64 `yaml:"seconds,omitempty" json:"seconds,omitempty" jsonschema:"description=Each run sends for this long at least (default 20)"`
}

// Defaults of a search, and what keeps it small under a part of the load.
const (
	SearchPoints    = 18 // runs at most
	searchFrom      = 1.0
	searchPrecision = 0.05
	searchSeconds   = 20.0
	widestSearch    = 0.5 // precision
	fewestRequests  = 25  // of a point, where all of the load has more
)

// fill writes the defaults out.
func (f *LoadSearch) fill() {
	if f == nil {
		return
	}
	if f.From == 0 {
		f.From = searchFrom
	}
	if f.Precision == 0 {
		f.Precision = searchPrecision
	}
	if f.Points == 0 {
		f.Points = SearchPoints
	}
	if f.Seconds == nil {
		f.Seconds = new(searchSeconds)
	}
}

// first is the workload under the load at which the search begins; without one,
// the workload as it is.
func (f *LoadSearch) first(w workload.Spec, slos []result.SLO) workload.Spec {
	if f == nil {
		return w
	}
	at := bench.Load{Axis: bench.AxisRate, Value: searchFrom} // where the keys are to be refused, which is said of them and not of the workload
	if f.Axis == bench.AxisConcurrency {
		at.Axis = f.Axis
	}
	if f.From > 0 && !math.IsInf(f.From, 1) {
		at.Value = f.From
	}
	w = at.Apply(w)
	if w.NumPrompts > 0 && w.Validate() == nil { // else all of a file, or to be refused
		step, _ := bench.NewFindMax(f.Options(slos, 0)).Ask()
		w = w.Sized(min(w.NumPrompts, step.Requests))
	}
	return w
}

// Options are the search's under a share of the load, 0 for all of it: with fewer
// requests in each point there is no more to say than of a wider bracket.
func (f *LoadSearch) Options(slos []result.SLO, share float64) bench.FindMaxOptions {
	o := bench.FindMaxOptions{Axis: f.Axis, From: f.From, To: f.To, Precision: f.Precision, Points: f.Points, Requests: f.Requests, Seconds: *f.Seconds}
	if o.Requests == 0 {
		o.Requests = bench.MinRequests(slos)
	}
	if share > 0 && share < 1 {
		o.Requests = max(int(math.Ceil(share*float64(o.Requests))), min(o.Requests, fewestRequests))
		o.Seconds *= share
		o.Precision = max(o.Precision, min(o.Precision/share, widestSearch))
	}
	return o
}
