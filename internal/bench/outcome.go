package bench

import (
	"slices"

	"perflab/internal/result"
	"perflab/internal/verdict"
	"perflab/internal/workload"
)

// Outcome is a finished run.
type Outcome struct {
	Header  result.Header
	Client  *result.Client
	Summary result.Summary
	Totals  workload.Totals // planned; where time decides, of the calls made
	Calls   []result.Call

	Readings []result.Reading // of what was around the calls

	Dir   string   // "" when nothing was kept; still with .tmp when it could not be finished
	Notes []string // what the user must know beside the figures, one sentence each

	Engine map[string]float64 // what the engine's metrics would show, of a prediction
}

func (o *Outcome) Summarise(s Spec) error {
	opt, err := s.summaryOptions()
	if err != nil {
		return err
	}
	opt.Readings = o.Readings
	slices.SortFunc(o.Calls, func(a, b result.Call) int { return a.Index - b.Index })
	o.Summary, err = verdict.Summarize(o.Header, o.Client, opt, slices.Values(o.Calls))
	return err
}

// notes leaves out what there is nothing to say about.
func notes(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// usableReadings leaves out what readings of this machine's GPUs would say of a
// simulated engine.
func usableReadings(readings []result.Reading, simulated bool) []result.Reading {
	return slices.DeleteFunc(readings, func(r result.Reading) bool { return simulated && r.Source == result.SourceGPU })
}
