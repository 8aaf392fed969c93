package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"perflab/internal/block"
	"perflab/internal/report/doc"
	"perflab/internal/result"
)

// importedSide is a run that GPUStack's client measured.
func importedSide() Side {
	s := sum(500, 800, 250, 3100, 90, 14)
	for name := range s.Figures {
		if strings.HasPrefix(name, "p90_") {
			delete(s.Figures, name)
		}
	}
	delete(s.Figures, "failed")
	s.Figures["max_concurrency"] = 61
	s.Definitions = map[string]result.Definition{
		"ttft": result.FirstIteration, "tpot": result.E2EPerTokenWeighted, "itl": result.DecodePerTokenWeighted, "e2el": result.StreamEnd,
		"max_concurrency": result.MeasuredMaximum, "max_output_tokens_per_s": result.InverseGapPeak,
	}
	s.Verdict = result.Verdict{}
	s.Verdict.Add(result.Check{Name: "imported", Status: result.Sound, Text: "figures of notes.md:41 by guidellm via benchmark-runner; perflab did not measure them"})
	s.Verdict.Add(result.Check{Name: "peak-inverse-gap", Status: result.Noted, Text: "a peak that is <no> throughput"})
	h := result.Header{Model: "acme/tiny-7b", Requests: 500, Command: "vllm serve acme/tiny-7b", Imported: &result.Imported{
		Client: "guidellm via benchmark-runner", Format: "text", File: "notes.md", Line: 41, Section: []string{"Results", "Baseline"},
		Labels: result.Labels{result.LabelCase: "8 RPS", result.LabelHardware: "1 x H200", result.LabelEngine: "vllm", result.LabelRate: "unclear", "caption": "Benchmark result"},
	}}
	return Side{Name: "imported/001", Header: h, Summary: *s}
}

func TestImportedGolden(t *testing.T) {
	side := importedSide()
	st, ok := ImportedStyle(side.Header, side.Summary.Percentiles())
	if !ok || st.Layout != block.GPUStack {
		t.Errorf("style %+v, %v", st, ok)
	}
	golden(t, "imported.txt", func(w io.Writer) error { return doc.Text(w, must(Run(side.Header, side.Summary, st, nil, nil))) })
	golden(t, "imported.md", func(w io.Writer) error { return doc.Markdown(w, must(Run(side.Header, side.Summary, st, nil, nil))) })
	golden(t, "imported.html", func(w io.Writer) error { return doc.HTML(w, must(Run(side.Header, side.Summary, st, nil, nil))) })

	other := importedSide()
	other.Name = "imported/002"
	other.Header.Imported.Client, other.Header.Rate = "vllm bench serve", 8
	other.Summary.Definitions = result.DefinitionsOf(result.VLLM)
	golden(t, "imported-runs.txt", func(w io.Writer) error { return doc.Text(w, Runs([]Side{side, other})) })

	other.Summary.Verdict.Add(result.Check{Name: "throughput", Status: result.Voided, Text: "no duration gives this throughput"})
	delete(other.Summary.Figures, "mean_e2el_ms")
	l := List{Title: "2 runs of notes.md", Sides: []Side{side, other}}
	golden(t, "list.txt", func(w io.Writer) error { return doc.Text(w, l.Document()) })
	golden(t, "list.md", func(w io.Writer) error { return doc.Markdown(w, l.Document()) })
	golden(t, "list.html", func(w io.Writer) error { return doc.HTML(w, l.Document()) })
}

// TestUnknownIsNotClaimed: what an imported run does not record is not said to
// be none, all at once, or perflab's.
func TestUnknownIsNotClaimed(t *testing.T) {
	side := importedSide()
	side.Header.Requests = 0
	var text bytes.Buffer
	for _, write := range []func() error{
		func() error {
			return doc.Markdown(&text, must(Run(side.Header, side.Summary, block.Style{}, nil, nil)))
		},
		func() error { return doc.Text(&text, must(Run(side.Header, side.Summary, block.Style{}, nil, nil))) },
		func() error { return doc.Markdown(&text, Runs([]Side{side, side})) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	for _, claim := range []string{"all at once", "as many as there was time", "`none`", "perflab bench"} {
		if strings.Contains(text.String(), claim) {
			t.Errorf("the report claims %q", claim)
		}
	}
	side.Header.Imported.Labels[result.LabelRate] = "inf"
	text.Reset()
	if err := doc.Markdown(&text, must(Run(side.Header, side.Summary, block.Style{}, nil, nil))); err != nil || !strings.Contains(text.String(), "all at once") {
		t.Errorf("a rate that the file says is inf is not shown: %v", err)
	}
}
