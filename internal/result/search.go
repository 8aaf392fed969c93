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

	Precision float64 `json:"precision"` // that was asked of the bracket
}

// Figures that a search gives, by its axis.
const (
	goodputRate        = "goodput_rate"
	goodputConcurrency = "goodput_concurrency"
	perGPU             = "_per_gpu"
)

// Figure is the metric that a search of the axis gives: goodput_rate.
func (s Search) Figure() string {
	if s.Axis == "concurrency" {
		return goodputConcurrency
	}
	return goodputRate
}

// Enter puts what the search found among the figures of its run; gpus are those
// allocated, 0 where there are none. A search without an edge has no figure.
func (s Search) Enter(figures map[string]float64, gpus int) {
	if !(s.Load > 0) {
		return
	}
	figures[s.Figure()] = s.Load
	if gpus > 0 && s.Figure() == goodputRate {
		figures[goodputRate+perGPU] = s.Load / float64(gpus)
	}
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

// LoadSeconds is how long the run, or the search that it is the edge of, was under load.
func (r Run) LoadSeconds() float64 {
	if r.Search != nil {
		return r.Search.LoadS
	}
	return r.Summary.Figures["duration"]
}

// searchScalars are the rows of the metric table that a search gives.
func searchScalars() []Metric {
	return []Metric{
		{Name: goodputRate, Label: "Goodput rate within the SLOs (req/s)", Unit: "req/s", Section: sectionSearch, Better: Higher, Decimals: 2,
			Doc:     "The highest request rate that met every SLO, by a search over runs of one launch that ended with the edge tested again; the other figures beside it are those of the edge's run. A figure of a study's workload with find_max; absent where the lowest rate misses.",
			Formula: "max offered rate with every SLO met and no lower rate missed"},
		{Name: goodputConcurrency, Label: "Goodput concurrency within the SLOs", Unit: "requests", Section: sectionSearch, Better: Higher,
			Doc:     "As goodput_rate, of the number of requests in flight in a closed loop.",
			Formula: "max concurrency limit with every SLO met and no lower one missed"},
	}
}

// gpuScalars are the rows that are another figure by the number of GPUs.
func gpuScalars() []Metric {
	row := func(of, label, unit, what string) Metric {
		return Metric{Name: of + perGPU, Label: label, Unit: unit, Section: sectionGPU, Better: Higher, Decimals: 2,
			Doc:     what + ", for each GPU that is allocated, idle ones among them; absent on a CPU, and where their number is not known.",
			Formula: of + " / GPUs allocated"}
	}
	return []Metric{
		row("request_throughput", "Request throughput per GPU (req/s)", "req/s", "Successful calls per second"),
		row("output_throughput", "Output token throughput per GPU (tok/s)", "tok/s", "Output tokens per second"),
		row("total_token_throughput", "Total token throughput per GPU (tok/s)", "tok/s", "Input and output tokens per second"),
		row(goodputRate, "Goodput rate per GPU within the SLOs (req/s)", "req/s", "The highest request rate that met every SLO, by a search as of goodput_rate"),
	}
}

// perGPU sets the figures per GPU, where their number is known.
func (a *Analysis) perGPU() {
	if a.Options.GPUs <= 0 {
		return
	}
	for _, m := range gpuScalars() {
		if v, ok := a.Figures[strings.TrimSuffix(m.Name, perGPU)]; ok {
			a.Figures[m.Name] = v / float64(a.Options.GPUs)
		}
	}
}

// What a figure may need beyond the calls of a run, besides SourceEngine, SourceGPU
// and SourceHost, readings of which it is made.
const (
	NeedPrice  = "price"  // of the deployment
	NeedGPUs   = "gpus"   // their number
	NeedSearch = "search" // for the load
)

// Needs are what the figure needs beyond the calls of a run.
func (m Metric) Needs() []string {
	var needs []string
	if strings.HasSuffix(m.Name, perGPU) {
		needs = append(needs, NeedGPUs)
	}
	switch {
	case strings.HasPrefix(m.Name, goodputRate), m.Name == goodputConcurrency:
		needs = append(needs, NeedSearch)
	case m.Unit == "price":
		needs = append(needs, NeedPrice)
	case m.Section != sectionTelemetry:
	case strings.Contains(m.Name, "host"):
		needs = append(needs, SourceHost)
	case strings.Contains(m.Name, "gpu"), m.Name == "throttled_ratio", m.Unit == "J", m.Unit == "tok/s/W":
		needs = append(needs, SourceGPU)
	default:
		needs = append(needs, SourceEngine)
	}
	return needs
}
