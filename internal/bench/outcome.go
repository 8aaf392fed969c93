package bench

import (
	"iter"
	"slices"

	"perflab/internal/gauge"
	"perflab/internal/result"
	"perflab/internal/reuse"
	"perflab/internal/rundir"
	"perflab/internal/verdict"
	"perflab/internal/workload"
)

// Outcome is a finished run.
type Outcome struct {
	Header  result.Header
	Client  *result.Client
	Summary result.Summary
	Totals  workload.Totals // planned; where time decides, of the calls made
	Calls   []result.Call   // all of them, or of a very long run one of Every so many; see All
	Every   int
	Pace    result.Pace

	Readings []gauge.Reading // of what was around the calls
	Prompts  []reuse.Prompt  // what the prompts share; nil: nothing, or it is not known

	Early string   // why it ended before all of its plan was sent; "": it did not
	Dir   string   // "" when nothing was kept; still with .tmp when it could not be finished
	Notes []string // what the user must know beside the figures, one sentence each

	idled string // what is to be said of idle times that were cut

	Engine map[string]float64 // what the engine's metrics would show, of a prediction
}

// summarise makes the figures of the calls that an accumulator has taken in.
func (o *Outcome) summarise(acc *result.Accumulator, opt result.Options) error {
	opt.Readings, opt.Prompts = o.Readings, o.Prompts
	a, err := acc.Analyze(o.Client, opt)
	if err != nil {
		return err
	}
	o.Summary, o.Pace = verdict.Judged(a), a.Pace()
	o.Calls, o.Every = acc.Kept()
	slices.SortFunc(o.Calls, func(a, b result.Call) int { return a.Index - b.Index })
	return nil
}

// All yields every call of the run: those of a long one from its directory. The error
// is nil, or tells at the end why some are missing.
func (o *Outcome) All() iter.Seq2[result.Call, error] {
	if o.Every <= 1 {
		return func(yield func(result.Call, error) bool) {
			for i := range o.Calls {
				if !yield(o.Calls[i], nil) {
					return
				}
			}
		}
	}
	return rundir.Calls(o.Dir)
}

// notes leaves out what there is nothing to say about.
func notes(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// usableReadings leaves out what readings of this machine's GPUs would say of a
// simulated engine.
func usableReadings(readings []gauge.Reading, simulated bool) []gauge.Reading {
	return slices.DeleteFunc(readings, func(r gauge.Reading) bool { return !usable(r, simulated) })
}

func usable(r gauge.Reading, simulated bool) bool { return !simulated || r.Source != gauge.SourceGPU }
