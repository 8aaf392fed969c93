package report

import (
	"encoding/json"
	"io"
	"testing"

	"perflab/internal/block"
	"perflab/internal/gauge"
	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/report/finding"
	"perflab/internal/result"
)

// renderAll writes a document in every form.
func renderAll(t *testing.T, d doc.Document) {
	t.Helper()
	for _, write := range []func(io.Writer, doc.Document) error{doc.Text, doc.Markdown, doc.HTML} {
		if err := write(io.Discard, d); err != nil {
			t.Error(err)
		}
	}
}

// FuzzStudy: whatever study.json holds, it is shown or refused: a study of another version, or
// one that somebody changed, ends no report half-way.
func FuzzStudy(f *testing.F) {
	for _, s := range []outcome.Study{throughputStudy(), latencyStudy(), raceStudy(), tieStudy(), smallStudy()} {
		data, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"trials":[{"id":1,"runs":[{}]}],"race":{"candidates":[{}],"arms":[{}]},"recommended":{"trial":7},"baseline":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s outcome.Study
		if json.Unmarshal(data, &s) != nil {
			return
		}
		d, err := Study(finding.Worded(s), Options{})
		if err != nil {
			return
		}
		renderAll(t, d)
		Plots(s)
	})
}

// FuzzRun: likewise of the header, the figures, the calls and the readings of a run.
func FuzzRun(f *testing.F) {
	h, calls := burst(8)
	header, err := json.Marshal(h)
	if err != nil {
		f.Fatal(err)
	}
	s, err := json.Marshal(chat(1000, 100, 20))
	if err != nil {
		f.Fatal(err)
	}
	lines, err := json.Marshal(calls)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(header, s, lines, []byte(`[{"at_ns":1000000,"source":"gpu","values":{"power_w":300}},{"at_ns":2000000,"source":"gpu","values":{"power_w":301}}]`))
	f.Add([]byte(`{"imported":{}}`), []byte(`{}`), []byte(`[{"i":-1,"end_ns":-1}]`), []byte(`[{"source":"x","index":-1}]`))
	f.Fuzz(func(t *testing.T, header, summary, lines, telemetry []byte) {
		var (
			h        result.Header
			s        result.Summary
			calls    []result.Call
			readings []gauge.Reading
		)
		for _, x := range []struct {
			data []byte
			into any
		}{{header, &h}, {summary, &s}, {lines, &calls}, {telemetry, &readings}} {
			if json.Unmarshal(x.data, x.into) != nil {
				return
			}
		}
		if d, err := Run(h, s, block.Style{Percentiles: s.Percentiles()}, calls, readings); err == nil {
			renderAll(t, d)
		}
	})
}
