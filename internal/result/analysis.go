package result

import (
	"math"

	"perflab/internal/gauge"
)

// Analysis is a run with its figures and with what they were computed from, for
// a judge of them. The figures are by our own definitions.
type Analysis struct {
	CallSet
	statistics
	Header  Header
	Client  *Client // nil: the run left no record of it
	Options Options

	Simulated bool
	Partial   bool // calls are missing
	Every     int  // of so many calls one is in Succeeded; 1: all are

	goodVLLM int // calls within the goodput bounds by vLLM's definitions

	Peak      float64 // tokens in the busiest 1 s window
	Steady    Window
	Telemetry gauge.Telemetry // of a run with readings
	Agents    []AgentFigures  // of each agent of a fleet; nil: there was none
}

// callsMissing reports whether calls are missing: the client says that it stopped,
// or left no record, or fewer calls came than were planned. The later turns of
// a conversation that failed are accounted for and not missing.
func (a *Analysis) callsMissing() bool {
	if a.Client == nil {
		return !a.Header.Predicted || a.Total < a.Header.Requests
	}
	return a.Client.Partial || a.Total+a.Client.Unsent < a.Header.Requests
}

// setIf sets a figure where there is one.
func (a *Analysis) setIf(name string, v float64, ok bool) {
	if ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
		a.Figures[name] = v
	}
}
