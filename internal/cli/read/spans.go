package read

import (
	"io"

	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/trace"
	"perflab/internal/trace/export"
)

// exportSpans writes the calls as spans.
func exportSpans(w io.Writer, r *rundir.Run, _ result.Summary) (note string, err error) {
	run := trace.Run{Header: r.Header}
	if r.Client != nil {
		run.Start = r.Client.Start
	}
	_, err = export.Batches(run, func(yield func(result.Call, error) bool) {
		for c := range r.All() {
			if !yield(c, nil) {
				return
			}
		}
	}, func(batch []byte) error {
		_, err := w.Write(append(batch, '\n'))
		return err
	})
	if len(r.Calls) > 0 && r.Calls[0].TraceID == "" {
		note = "the run was made without --traceparent: the ids of its traces are perflab's own, and no engine has spans with them"
	}
	return note, err
}
