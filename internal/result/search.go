package result

import (
	"fmt"
	"strconv"
	"strings"
)

// Search is how the load of a run was found: its trial made several runs of one
// launch, each under another load, and this one is the edge, or the lowest load
// where none met the bounds.
type Search struct {
	Axis    string  `json:"axis"`               // rate, concurrency
	Load    float64 `json:"load,omitzero"`      // the highest that met every bound; 0: none, and the run is no edge
	Missed  float64 `json:"missed,omitzero"`    // the lowest that missed one; 0: none did
	Met     int     `json:"times_met,omitzero"` // Load did, 2 where the edge was tested again
	AtLeast bool    `json:"at_least,omitempty"` // the search ended before the bracket was narrow
	Points  int     `json:"points"`             // runs that were made
	LoadS   float64 `json:"load_s"`             // seconds under load, of all of them
	Dir     string  `json:"dir,omitempty"`      // that has them, relative to the study directory
	Code    string  `json:"code"`               // why the search ended, as a series has it
	Text    string  `json:"text"`               // in a sentence
	Share   float64 `json:"share,omitempty"`    // of the requests of a full search; 0: all

	Sessions bool `json:"sessions,omitempty"` // a concurrency is of sessions of agents, or conversations

	Precision float64 `json:"precision"` // that was asked of the bracket
}

// Figure is the metric that a search of the axis gives: goodput_rate.
func (s Search) Figure() string {
	switch {
	case s.Axis == "concurrency" && s.Sessions:
		return AgentsServed
	case s.Axis == "concurrency":
		return goodputConcurrency
	}
	return goodputRate
}

// AddFigures puts what the search found among the figures of its run; gpus are those
// allocated, 0 where there are none. A search without an edge has no figure.
func (s Search) AddFigures(figures map[string]float64, gpus int) {
	if !(s.Load > 0) {
		return
	}
	figures[s.Figure()] = s.Load
	if s.Figure() != goodputConcurrency && gpus > 0 {
		figures[s.Figure()+perGPU] = s.Load / float64(gpus)
	}
	if s.Figure() != AgentsServed {
		return
	}
	figures[goodputConcurrency] = s.Load
	if power := figures["mean_gpu_power_w"] * figures["gpus"]; power > 0 {
		figures[AgentsServed+perKW] = 1000 * s.Load / power
	}
}

// Served says in a phrase what a search found of sessions per GPU and per kW, "" where neither is known.
func Served(figures map[string]float64) string {
	var parts []string
	for _, x := range []struct{ name, of string }{{AgentsServed + perGPU, "per GPU"}, {AgentsServed + perKW, "per kW of the GPUs"}} {
		if v, ok := figures[x.name]; ok {
			parts = append(parts, strconv.FormatFloat(v, 'g', 3, 64)+" "+x.of)
		}
	}
	return strings.Join(parts, ", ")
}

// Uncertainty is how far the edge may lie above the figure, as a share of it: the
// width of the bracket. ok is false where no load above it missed.
func (s Search) Uncertainty() (share float64, ok bool) {
	if !(s.Load > 0 && s.Missed > s.Load) {
		return 0, false
	}
	return s.Missed/s.Load - 1, true
}

// Note is what a reader must know of the figure besides, one sentence; "" where the
// search came to its end.
func (s Search) Note(workload string) string {
	switch {
	case !(s.Load > 0):
		return fmt.Sprintf("Workload %s has no %s: %s.", workload, s.Figure(), s.Text)
	case s.AtLeast:
		return fmt.Sprintf("Workload %s: %s is at least %s: %s.", workload, s.Figure(), strconv.FormatFloat(s.Load, 'f', -1, 64), s.Text)
	case s.Met < 2:
		return fmt.Sprintf("Workload %s: the edge of %s was tested once.", workload, s.Figure())
	}
	return ""
}

// Spread is how one figure varies between runs of the same spec.
type Spread struct {
	Metric string   `json:"metric"`
	Label  string   `json:"label"` // says of a percentile that it is the mean of the runs' percentiles
	Runs   int      `json:"runs"`
	Mean   float64  `json:"mean"`
	Low    *float64 `json:"low,omitempty"` // 95 % t-interval of the mean over runs; absent for fewer than two
	High   *float64 `json:"high,omitempty"`
	CV     *float64 `json:"cv,omitempty"` // standard deviation (divisor n-1) over mean
	Min    float64  `json:"min"`
	Max    float64  `json:"max"`
}
