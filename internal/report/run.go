package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perflab/internal/block"
	"perflab/internal/gauge"
	"perflab/internal/report/agents"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/report/runplot"
	"perflab/internal/result"
)

// Run shows a run: the printed block with the precision of its figures and the
// verdict, and in documents all there is to know of it. A page has the plots of
// the calls and of the readings beside them.
func Run(h result.Header, s result.Summary, st block.Style, calls []result.Call, readings []gauge.Reading) (doc.Document, error) {
	if err := st.Validate(); err != nil {
		return doc.Document{}, err
	}
	d := doc.New(runTitle(h), simulatedBanner(h.Simulated || s.Simulated, h.Predicted || s.Predicted), "the run of "+h.Model)
	d.Bare = doc.InText // the block says what is simulated
	b := &d.Body
	runText(b, h, s, st)
	if text := origin(h); text != "" {
		b.Styled(doc.InMarkdown, "", text+".")
		b.Styled(doc.InPage, "note", text+".")
	}
	runResult(b.Section("result", "Result"), h, &s, printed(s, st))
	if defined := definitions(&s); len(defined) > 0 && s.Compat == "" {
		k := b.Section("definitions", "Definitions")
		k.Styled(doc.InMarkdown, "", "These figures are not by perflab's definitions:")
		k.Styled(doc.InPage, "", doc.Words("These figures are not by perflab's definitions."))
		t := definitionTable(defined)
		for i := range t.Rows {
			t.Rows[i].Cells[2].Page = doc.Spans(defined[i].Formula)
		}
		k.Add(doc.InDocument, t)
	}
	addReadings(b, "sessions", block.SessionsTitle, block.SessionRows(s))
	addReadings(b, "cache", block.CacheTitle, block.CacheRows(s))
	addReadings(b, "telemetry", block.TelemetryTitle(s), block.TelemetryRows(s))
	addSpeculation(b, &s, calls)
	addFleet(b, h, &s)
	runVerdict(b, doc.InMarkdown, h, s.Verdict)
	b.Section("plots", "Plots").Figures(doc.InPage, func() []plot.Plot { return runplot.Plots(h, calls, s.OneIn, readings, s.Compat) })
	failed := b.Section("failures", "Failed Calls")
	all := failures(&s, calls)
	failed.Add(doc.InMarkdown, failureTable(all, false))
	failed.Add(doc.InPage, failureTable(all, true))
	addFigures(b.Section("figures", "All Figures"), &s)
	runVerdict(b, doc.InPage, h, s.Verdict)
	ran := b.Section("ran", "What Ran")
	facts := runFacts(h, s.Partial)
	if s.Compat == result.VLLM {
		facts = append(facts, Fact{"Definitions", "vllm bench serve's (--compat vllm); verdict and plots by perflab's own"})
	}
	t := factTable(facts)
	t.NoHead = doc.InPage
	ran.Add(doc.InDocument, t)
	var settings bytes.Buffer
	if h.Imported != nil || json.Indent(&settings, h.Spec, "", "  ") != nil {
		settings.Reset()
	}
	ran.Add(doc.InPage, doc.Pre{Summary: "All settings of the run", Text: settings.String()})
	AddRepeat(&d, h.Invoked)
	return d, nil
}

// addReadings shows what stands beside the block, where there is any of it.
func addReadings(b *doc.Section, id, title string, beside []block.TelemetryRow) {
	if len(beside) == 0 {
		return
	}
	t := doc.Table{Class: "few", NoHead: doc.InPage, Columns: doc.Columns("Reading", ">Value")}
	for _, x := range beside {
		row := doc.Texts(x.Label, x.Value)
		row.Cells[1].Page = doc.Unbroken(x.Value)
		t.Rows = append(t.Rows, row)
	}
	b.Part(doc.InDocument, doc.Section{ID: id, Title: title, Listed: true}).Add(doc.InDocument, t)
}

// addFleet shows who sent the load, where a fleet did.
func addFleet(b *doc.Section, h result.Header, s *result.Summary) {
	if h.Fleet == nil {
		return
	}
	b.Text("Fleet")
	b.Section("fleet", "Fleet").Add(doc.Everywhere, agents.Table(h, s))
}

func runTitle(h result.Header) string {
	title := "Benchmark of " + cmp.Or(h.Model, "an unnamed model")
	if h.Workload != "" {
		return title + " under " + h.Workload
	}
	if h.Imported != nil && h.Label(result.LabelCase) != "" {
		return title + " under " + h.Label(result.LabelCase)
	}
	return title
}

// runText adds the block with all that is printed above and under it.
func runText(b *doc.Section, h result.Header, s result.Summary, st block.Style) {
	s.Simulated = s.Simulated || h.Simulated || h.Predicted // the block says so
	if h.Imported != nil {
		b.Text(origin(h))
	}
	b.Add(doc.InText, doc.Verbatim(block.Text(s, st)))
	if h.Imported != nil {
		b.Text(definitionLines(definitions(&s))...)
	}
	b.Add(doc.InText, doc.Verbatim(block.Precision(s, st)+block.Sessions(s)+block.Cache(s)+block.Telemetry(s)+block.Speculation(s)+s.Verdict.Text()))
}

// runResult adds the block, and on a page what it says first.
func runResult(b *doc.Section, h result.Header, s *result.Summary, block string) {
	lead := doc.Spans("Verdict: " + believable(h, s.Verdict) + ".")
	if status := string(s.Verdict.Status); status != "" {
		lead = doc.Spans(doc.Tag(status, status), " ", lead)
	}
	b.Styled(doc.InPage, "lead", lead)
	for _, c := range unsound(s.Verdict) {
		if c.Status == "remark" {
			b.Styled(doc.InPage, "muted", sentence(c.Text))
		} else {
			b.Styled(doc.InPage, "note", doubtful(c))
		}
	}
	b.Add(doc.InPage, keyFigures(s))
	b.Add(doc.InMarkdown, doc.Pre{Text: block})
	b.Add(doc.InPage, doc.Pre{Text: block, Summary: "Benchmark result", Open: true})
}

// runVerdict adds all checks of the verdict.
func runVerdict(b *doc.Section, in doc.Form, h result.Header, v result.Verdict) {
	k := b.Part(in, doc.Section{ID: "verdict", Title: "Verdict", Listed: true})
	k.Styled(doc.InMarkdown, "lead", strings.TrimPrefix(string(v.Status)+": "+believable(h, v), ": "))
	k.Styled(doc.InPage, "", "What was checked before the figures were believed.")
	t := doc.Table{Columns: doc.Columns("Check", "Status", "Finding")}
	for _, c := range v.Checks {
		status := string(c.Status)
		t.Rows = append(t.Rows, doc.Cells(c.Name, doc.Cell{Text: doc.Spans(status), Page: doc.Spans(doc.Tag(status, status))}, c.Text))
	}
	k.Add(doc.InDocument, t)
}

// failureTable has a row for each class of failed calls, with examples where they
// are asked for.
func failureTable(all []failure, examples bool) doc.Table {
	t := doc.Table{Columns: doc.Columns("Class", ">Calls", ">Share")}
	if examples {
		t.Columns = append(t.Columns, doc.Columns("For example")...)
	}
	for _, f := range all {
		t.Rows = append(t.Rows, doc.Texts([]string{f.Class, f.Calls, f.Share, f.Example}[:len(t.Columns)]...))
	}
	return t
}

// doubtful is a check that is not sound as a line.
func doubtful(c result.Check) []doc.Span {
	return doc.Spans(doc.Bold(string(c.Status)), " ("+c.Name+"): "+c.Text)
}

// failure is a class of failed calls.
type failure struct {
	Class, Calls, Share string
	Example             string // what one of its calls said, where calls are at hand
}

// keyFigures are the throughputs and the latencies of a run, those it has.
func keyFigures(s *result.Summary) doc.Tiles {
	var out doc.Tiles
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
		f := doc.Tile{Label: label, Value: quantity(s, m), Beside: openFrom(s, m)}
		if _, ok := value(s, b); ok && s.Definition(b.Name) == s.Definition(m.Name) {
			what, _, _ := strings.Cut(b.Label, " (")
			beside := what + " " + quantity(s, b)
			if b.Unit == "requests" {
				beside = what + " " + number(s, b)
			}
			f.Beside = strings.TrimSuffix(beside+"; "+f.Beside, "; ")
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
func runFacts(h result.Header, partial bool) []Fact {
	client := "Client"
	if h.Imported != nil {
		client = "Measured by"
	}
	f := []Fact{
		{"Model", h.Model}, {"Workload", h.Workload}, {"Workload fingerprint", h.Fingerprint},
		{"Requests planned", cmp.Or(plannedText(h), notRecorded)}, {"Request rate", cmp.Or(h.RateText(), notRecorded)},
		{"Concurrency limit", cmp.Or(h.LimitText(), notRecorded)},
		{"Prefix cache policy", h.Cache}, {"Lengths counted by", h.CountedBy()},
		{"Backend", h.Backend}, {"Targets", strings.Join(h.Targets, ", ")}, {"Serving command", h.Command},
		{client, clientName(h)}, {"Stamps taken by", h.ClockText()},
		{"Error of this client", agents.SelfChecked(h.SelfCheck)},
	}
	f = append(f, serviceFact(h))
	nodes, images, gpus := agents.Pods(h.Pods)
	f = append(f, Fact{"Pods on", nodes}, Fact{"Image of the pods", images}, Fact{"GPUs of the pods", gpus})
	f = append(f, importedFacts(h)...)
	if !h.Started.IsZero() {
		f = append(f, Fact{"Started", h.Started.Format(time.RFC3339)})
	}
	if h.Fleet == nil {
		f = append(f, Fact{LoadGenerator, Host(h.Host)})
	} else {
		f = append(f, Fact{LoadGenerator, agents.Sender(h.Fleet)}, Fact{"Leader", Host(h.Host)})
	}
	if partial {
		f = append(f, Fact{"Partial", "the run was stopped before its end"})
	}
	return slices.DeleteFunc(f, func(x Fact) bool { return x.Value == "" })
}

// serviceFact names the Service that was measured, and what is not known of it.
func serviceFact(h result.Header) Fact {
	if h.Service == nil {
		return Fact{}
	}
	return Fact{"Service", strings.Join(append([]string{h.Service.Name}, h.Service.Lacks...), "; ")}
}

// believable says what a verdict means.
func believable(h result.Header, v result.Verdict) string {
	switch foreign := h.Imported != nil && !strings.HasPrefix(h.Imported.Client, "perflab"); {
	case foreign && v.Status == result.Sound:
		return "nothing in the figures contradicts itself"
	case foreign && v.Status == result.Noted:
		return "the figures are doubtful where it is said here"
	case foreign && v.Status == result.Voided:
		return "the figures cannot all be true"
	}
	switch v.Status {
	case result.Sound:
		return "the figures can be believed"
	case result.Noted:
		return "the figures can be believed with what is said here"
	case result.Voided:
		return "the figures cannot be believed"
	}
	return "none was given"
}
