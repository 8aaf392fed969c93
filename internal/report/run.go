package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// run is one bench run prepared for a reader.
type run struct {
	result.Header
	Banner   string
	Title    string
	Key      []keyFigure
	Facts    []figure
	Block    string
	Verdict  result.Verdict
	Doubts   []result.Check // of the verdict, those that are not sound
	Failures []failure
	Figures  figures
	Beside   []result.TelemetryRow // what was read beside the calls, and the cost
	BesideOf string                // its heading
	Defined  []definition          // figures that are not by our definitions
	Settings string                // the complete spec as indented JSON
	Plots    []plot.Plot
}

// keyFigure is a figure that a reader looks for first.
type keyFigure struct{ Label, Value, Beside string }

// failure is a class of failed calls.
type failure struct {
	Class, Calls, Share string
	Example             string // what one of its calls said, where calls are at hand
}

func newRun(h result.Header, s result.Summary, st result.Style, calls []result.Call) run {
	r := run{Header: h, Verdict: s.Verdict, Doubts: unsound(s.Verdict), Block: printed(s, st)}
	r.Banner = simulatedBanner(h.Simulated || s.Simulated, h.Predicted || s.Predicted)
	r.Title = "Benchmark of " + cmp.Or(h.Model, "an unnamed model")
	if h.Workload != "" {
		r.Title += " under " + h.Workload
	}
	if h.Imported != nil && h.Workload == "" && h.Label(result.LabelCase) != "" {
		r.Title += " under " + h.Label(result.LabelCase)
	}
	r.Key = keyFigures(&s)
	if s.Compat == "" {
		r.Defined = definitions(&s)
	}
	r.Failures = failures(&s, calls)
	r.Figures = newFigures(&s)
	r.Beside, r.BesideOf = result.TelemetryRows(s), result.TelemetryTitle(s)
	r.Facts = runFacts(h, s.Partial)
	if s.Compat == result.VLLM {
		r.Facts = append(r.Facts, figure{"Definitions", "vllm bench serve's (--compat vllm); verdict and plots by perflab's own"})
	}
	var b bytes.Buffer
	if h.Imported == nil && json.Indent(&b, h.Spec, "", "  ") == nil {
		r.Settings = b.String()
	}
	return r
}

// keyFigures are the throughputs and the latencies of a run, those it has.
func keyFigures(s *result.Summary) []keyFigure {
	var out []keyFigure
	for _, k := range []struct{ name, beside string }{
		{"request_throughput", "completed"}, {"output_throughput", "steady_output_throughput"},
		{"p99_ttft_ms", "median_ttft_ms"}, {"p99_tpot_ms", "median_tpot_ms"}, {"p99_e2el_ms", "median_e2el_ms"},
	} {
		m, b := metric(k.name), metric(k.beside)
		if _, ok := value(s, m); !ok {
			continue
		}
		label, _, _ := strings.Cut(m.Label, " (")
		if s.Compat == "" {
			label = tagged(label, s.Definition(m.Name))
		}
		f := keyFigure{Label: label, Value: quantity(s, m)}
		if _, ok := value(s, b); ok && s.Definition(b.Name) == s.Definition(m.Name) {
			what, _, _ := strings.Cut(b.Label, " (")
			f.Beside = what + " " + quantity(s, b)
			if b.Unit == "requests" {
				f.Beside = what + " " + number(s, b)
			}
		}
		out = append(out, f)
	}
	return out
}

// failures lists the classes of failed calls, the most frequent first.
func failures(s *result.Summary, calls []result.Call) []failure {
	total := 0.0
	for _, name := range []string{"completed", "failed"} {
		v, _ := value(s, metric(name))
		total += v
	}
	classes := slices.SortedFunc(maps.Keys(s.Failures), func(a, b result.Class) int {
		return cmp.Or(s.Failures[b]-s.Failures[a], cmp.Compare(a, b))
	})
	var out []failure
	for _, class := range classes {
		n := s.Failures[class]
		if n == 0 {
			continue
		}
		f := failure{Class: string(class), Calls: plot.Tally(n), Share: missing}
		if total > 0 {
			f.Share = fmt.Sprintf("%.3g %%", 100*float64(n)/total)
		}
		if i := slices.IndexFunc(calls, func(c result.Call) bool { return c.Class == class && c.Error != "" }); i >= 0 {
			f.Example = fmt.Sprintf("call %d: %s", calls[i].Index, calls[i].Error)
		}
		out = append(out, f)
	}
	return out
}

// runFacts says what was sent where, as the header has it.
func runFacts(h result.Header, partial bool) []figure {
	client := "Client"
	if h.Imported != nil {
		client = "Measured by"
	}
	f := []figure{
		{"Model", h.Model}, {"Workload", h.Workload}, {"Workload fingerprint", h.Fingerprint},
		{"Requests planned", cmp.Or(plannedText(h), notRecorded)}, {"Request rate", cmp.Or(h.RateText(), notRecorded)},
		{"Concurrency limit", cmp.Or(h.LimitText(), notRecorded)},
		{"Prefix cache policy", h.Cache}, {"Lengths counted by", h.Tokenizer},
		{"Backend", h.Backend}, {"Targets", strings.Join(h.Targets, ", ")}, {"Serving command", h.Command},
		{client, clientName(h)}, {"Stamps taken by", h.ClockText()},
		{"Error of this client", selfChecked(h.SelfCheck)},
	}
	f = append(f, importedFacts(h)...)
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

// selfChecked says how far the client's figures were from a server's truth.
func selfChecked(c *result.SelfCheck) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("stamps late by %.4g µs (p99 %.4g µs), mean TTFT off by %+.4g ms, p99 ITL by %+.4g ms, sends late by %.4g µs (p99 %.4g µs); "+
		"self-check of %s with %d streams at %.4g events/s, one core full at %.4g events/s",
		c.ArrivalP50, c.ArrivalP99, c.TTFTError, c.ITLError, c.SendP50, c.SendP99,
		c.Taken.Format(time.DateOnly), c.Streams, c.EventRate, c.MaxEvents)
}

// Believe says what the verdict means.
func (r run) Believe() string {
	switch foreign := r.Header.Imported != nil && !strings.HasPrefix(r.Header.Imported.Client, "perflab"); {
	case foreign && r.Verdict.Status == result.Sound:
		return "nothing in the figures contradicts itself"
	case foreign && r.Verdict.Status == result.Noted:
		return "the figures are doubtful where it is said here"
	case foreign && r.Verdict.Status == result.Voided:
		return "the figures cannot all be true"
	}
	switch r.Verdict.Status {
	case result.Sound:
		return "the figures can be believed"
	case result.Noted:
		return "the figures can be believed with what is said here"
	case result.Voided:
		return "the figures cannot be believed"
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
	head, defined := "", ""
	if h.Imported != nil {
		head, defined = origin(h)+"\n", definitionsText(&s)
	}
	if _, err := io.WriteString(w, head+result.Block(s, st)+defined+result.Precision(s, st)+result.TelemetryText(s)+s.Verdict.Text()); err != nil {
		return fmt.Errorf("write the result of the run of %s: %w", h.Model, err)
	}
	return nil
}

// definitions writes what is not by our definitions.
func (m *mdWriter) definitions(all []definition) {
	if len(all) == 0 {
		return
	}
	m.heading(2, "Definitions")
	m.para("These figures are not by perflab's definitions:")
	m.definitionRows(all)
}

// definitionRows writes the table of definitions.
func (m *mdWriter) definitionRows(all []definition) {
	m.row("Figure", "Definition", "Formula", "Clients")
	m.row("---", "---", "---", "---")
	for _, d := range all {
		m.row(mdText(d.Of), mdCode(d.Tag), mdCode(d.Formula), mdText(d.Clients))
	}
	m.b.WriteString("\n")
}

// RunMarkdown writes a run as a document without plots, which would be files.
func RunMarkdown(w io.Writer, h result.Header, s result.Summary, st result.Style) error {
	if err := st.Validate(); err != nil {
		return err
	}
	r, m := newRun(h, s, st, nil), &mdWriter{}
	if r.Banner != "" {
		m.para("> **%s**", mdText(r.Banner))
	}
	m.heading(1, r.Title)
	if text := origin(h); text != "" {
		m.para("%s.", mdText(text))
	}
	m.heading(2, "Result")
	m.code("text", r.Block)
	m.definitions(r.Defined)
	if len(r.Beside) > 0 {
		m.heading(2, r.BesideOf)
		m.row("Reading", "Value")
		m.row("---", "---:")
		for _, x := range r.Beside {
			m.row(mdText(x.Label), mdText(x.Value))
		}
		m.b.WriteString("\n")
	}
	m.heading(2, "Verdict")
	m.para("**%s**", mdText(strings.TrimPrefix(string(r.Verdict.Status)+": "+r.Believe(), ": ")))
	if len(r.Verdict.Checks) > 0 {
		m.row("Check", "Status", "Finding")
		m.row("---", "---", "---")
		for _, c := range r.Verdict.Checks {
			m.row(mdText(c.Name), mdText(string(c.Status)), mdText(c.Text))
		}
		m.b.WriteString("\n")
	}
	if len(r.Failures) > 0 {
		m.heading(2, "Failed Calls")
		m.row("Class", "Calls", "Share")
		m.row("---", "---:", "---:")
		for _, f := range r.Failures {
			m.row(mdText(f.Class), f.Calls, f.Share)
		}
		m.b.WriteString("\n")
	}
	m.heading(2, "All Figures")
	r.Figures.writeTo(m)
	m.heading(2, "What Ran")
	m.row("Item", "Value")
	m.row("---", "---")
	for _, f := range r.Facts {
		m.row(mdText(f.Label), mdCode(f.Value))
	}
	return m.writeTo(w, "the run of "+h.Model)
}
