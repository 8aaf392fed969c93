package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"perflab/internal/result"
)

// run is one bench run prepared for a reader.
type run struct {
	result.Header
	Banner   string
	Title    string
	Facts    []figure
	Block    string
	Verdict  result.Verdict
	Failures []figure
	Plots    []Plot
}

func newRun(h result.Header, s result.Summary, st result.Style) run {
	r := run{Header: h, Verdict: s.Verdict, Block: printed(s, st)}
	r.Banner = simulatedBanner(h.Simulated || s.Simulated, h.Predicted || s.Predicted)
	r.Title = "Benchmark of " + cmp.Or(h.Model, "an unnamed model")
	if h.Workload != "" {
		r.Title += " under " + h.Workload
	}
	for _, c := range slices.Sorted(maps.Keys(s.Failures)) {
		if n := s.Failures[c]; n > 0 {
			r.Failures = append(r.Failures, figure{string(c), fmt.Sprint(n)})
		}
	}
	r.Facts = runFacts(h, s.Partial)
	return r
}

// runFacts says what was sent where, as the header has it.
func runFacts(h result.Header, partial bool) []figure {
	rate := "all at once"
	if h.Rate > 0 {
		rate = fmt.Sprintf("%g requests/s", h.Rate)
	}
	limit := "none"
	if h.Limit > 0 {
		limit = fmt.Sprint(h.Limit)
	}
	planned := "as many as there was time for"
	if h.Requests > 0 {
		planned = fmt.Sprint(h.Requests)
	}
	f := []figure{
		{"Model", h.Model}, {"Workload", h.Workload}, {"Backend", h.Backend}, {"Targets", strings.Join(h.Targets, ", ")},
		{"Requests planned", planned}, {"Request rate", rate}, {"Concurrency limit", limit},
		{"Serving command", h.Command},
		{"Client", strings.TrimSpace("perflab bench " + h.Version)},
	}
	if !h.Started.IsZero() {
		f = append(f, figure{"Started", h.Started.Format(time.RFC3339)})
	}
	if h.Host.OS != "" {
		f = append(f, figure{"Load generator", fmt.Sprintf("%s/%s, %s, GOMAXPROCS %d, %s", h.Host.OS, h.Host.Arch, count(h.Host.CPUs, "CPU"), h.Host.GOMAXPROCS, h.Host.Go)})
	}
	if partial {
		f = append(f, figure{"Partial", "the run was stopped before its end"})
	}
	return slices.DeleteFunc(f, func(x figure) bool { return x.Value == "" })
}

// VerdictLine is the verdict in one line.
func (r run) VerdictLine() string {
	switch r.Verdict.Status {
	case result.Sound:
		return "sound: the figures can be believed"
	case result.Noted:
		return "noted: the figures can be believed with what is said here"
	case result.Voided:
		return "void: the figures cannot be believed"
	}
	return "none was given"
}

// RunText writes a run as the printed block with the precision of its figures
// and the verdict under it.
func RunText(w io.Writer, h result.Header, s result.Summary, st result.Style) error {
	if err := st.Validate(); err != nil {
		return err
	}
	s.Simulated = s.Simulated || h.Simulated || h.Predicted // the block says so
	if _, err := io.WriteString(w, result.Block(s, st)+result.Precision(s, st)+s.Verdict.Text()); err != nil {
		return fmt.Errorf("write the result of the run of %s: %w", h.Model, err)
	}
	return nil
}

// RunMarkdown writes a run as a document without plots, which would be files.
func RunMarkdown(w io.Writer, h result.Header, s result.Summary, st result.Style) error {
	if err := st.Validate(); err != nil {
		return err
	}
	r, m := newRun(h, s, st), &mdWriter{}
	if r.Banner != "" {
		m.para("> **%s**", mdText(r.Banner))
	}
	m.heading(1, r.Title)
	m.heading(2, "Result")
	m.code("text", r.Block)
	m.heading(2, "Verdict")
	m.para("**%s**", mdText(r.VerdictLine()))
	if len(r.Verdict.Checks) > 0 {
		m.row("Check", "Status", "Finding")
		m.row("---", "---", "---")
		for _, c := range r.Verdict.Checks {
			m.row(mdText(c.Name), mdText(string(c.Status)), mdText(c.Text))
		}
		m.b.WriteString("\n")
	}
	var failed []string
	for _, f := range r.Failures {
		failed = append(failed, "failed calls, "+f.Label+": "+f.Value)
	}
	m.list("-", failed...)
	m.heading(2, "What Ran")
	m.row("Item", "Value")
	m.row("---", "---")
	for _, f := range r.Facts {
		m.row(mdText(f.Label), mdCode(f.Value))
	}
	return m.writeTo(w, "the run of "+h.Model)
}
