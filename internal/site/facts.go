package site

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perflab/internal/arch"
	"perflab/internal/interop/command"
	"perflab/internal/outcome"
	"perflab/internal/report"
	"perflab/internal/report/audited"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// figures are the columns of a page of a model or a GPU.
var figures = []string{"total_token_throughput", "output_throughput", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms", "mean_e2el_ms"}

// modelKey is what names of one model have in common, whatever it is stored as.
func modelKey(name string) string { return strings.ToLower(command.ModelCore(name)) }

// notStated stands for a model or hardware that nobody named.
const notStated = "not stated"

// OfStudy is a study with its report.
func OfStudy(name string, s outcome.Study, d doc.Document, a audited.Audit) Entry {
	e := Entry{Name: name, Title: cmp.Or(s.Title, s.Name), Date: s.Started, Document: d, Audit: a}
	gpu := gpuName(s.Hardware)
	r := Result{Model: cmp.Or(s.Model, notStated), GPU: gpu, Hardware: cmp.Or(s.Hardware, notStated), Simulated: s.Simulated || s.Predicted, Headline: report.StudyHeadline(s)}
	titles := map[string]string{}
	for _, l := range s.Workloads {
		titles[l.Name] = cmp.Or(l.Title, l.Name)
	}
	for i := range s.Trials {
		t := &s.Trials[i]
		for k := range t.Runs {
			sum := &t.Runs[k].Summary
			r.Simulated = r.Simulated || sum.Simulated || sum.Predicted
			if t.Status != tune.Measured {
				continue
			}
			e.Measured = append(e.Measured, Measured{
				Model: r.Model, GPU: gpu, Hardware: r.Hardware, Label: fmt.Sprintf("#%d %s", t.ID, t.Label), Load: cmp.Or(titles[t.Runs[k].Workload], t.Runs[k].Workload),
				Anchor: fmt.Sprintf("trial-%d", t.ID), Command: t.Command, Status: string(sum.Verdict.Status), Simulated: sum.Simulated || sum.Predicted, Figures: shown(sum),
			})
		}
	}
	e.Results = []Result{r}
	return e
}

// OfRuns is an import, a series or a run with its report, under the title of its document, which
// may name hardware.
func OfRuns(name, title string, sides []report.Side, d doc.Document, a audited.Audit) Entry {
	d.Body.Title = cmp.Or(title, d.Body.Title)
	e := Entry{Name: name, Title: title, Document: d, Audit: a}
	var all []measurement
	for i := range sides {
		m := measured(&sides[i], title)
		if len(sides) > 1 {
			m.Anchor = fmt.Sprintf("run-%d", i)
		}
		all = append(all, m)
		e.Measured = append(e.Measured, m.Measured)
		if at := sides[i].Header.Started; !at.IsZero() && (e.Date.IsZero() || at.Before(e.Date)) {
			e.Date = at.UTC().Truncate(time.Second)
		}
	}
	for _, g := range grouped(all, func(m measurement) string { return modelKey(m.Model) + "\x00" + m.Hardware }) {
		e.Results = append(e.Results, conclude(g))
	}
	return e
}

// measurement is a run with what it is judged by.
type measurement struct {
	Measured
	header  *result.Header
	summary *result.Summary
	load    string // runs are compared under the same
	gpus    float64
}

// measured is what a site shows of a run.
func measured(s *report.Side, title string) measurement {
	h := &s.Header
	m := measurement{header: h, summary: &s.Summary, gpus: float64(command.Read(h.Command).GPUs())}
	m.Measured = Measured{
		Model: cmp.Or(h.Model, notStated), Label: runLabel(s), Command: h.Command, Status: string(s.Summary.Verdict.Status),
		Simulated: h.Simulated || h.Predicted || s.Summary.Simulated || s.Summary.Predicted, Figures: shown(&s.Summary),
	}
	m.GPU = gpuName(h.Label(result.LabelHardware), title)
	m.Hardware = cmp.Or(m.GPU, h.Label(result.LabelHardware), notStated)
	if n := h.Label(result.LabelGPUs); n != "" && m.GPU != "" {
		m.Hardware = n + " x " + m.GPU
	}
	if n := h.Label(result.LabelNodes); n != "" && n != "1" {
		m.Hardware = n + " nodes, " + m.Hardware
	}
	parts := []string{cmp.Or(h.Workload, "unnamed workload")}
	if h.Label(result.LabelRole) != "" { // before and after, of a case that is a load
		parts = []string{cmp.Or(h.Label(result.LabelCase), parts[0])}
	}
	if h.Requests > 0 {
		parts = append(parts, fmt.Sprintf("%d requests", h.Requests))
	}
	if text := h.RateText(); text != "" {
		parts = append(parts, text)
	}
	if h.Limit > 0 {
		parts = append(parts, fmt.Sprintf("at most %d at once", h.Limit))
	}
	m.Load = strings.Join(parts, ", ")
	m.load = m.Load
	return m
}

// runLabel is what a reader calls a run: of a document its heading, and of a case that is a load
// what it is a case of.
func runLabel(s *report.Side) string {
	if s.Header.Imported == nil || len(s.Header.Imported.Section) == 0 {
		return filepath.Base(s.Name)
	}
	path := s.Header.Imported.Section
	label := withoutNumber(path[len(path)-1])
	for _, text := range []string{s.Header.Label(result.LabelCase), s.Header.Label(result.LabelRole)} {
		if text != "" && !strings.Contains(label, text) {
			label += ", " + text
		}
	}
	return label
}

// withoutNumber removes the number of a heading, as of "2. Quantization".
func withoutNumber(title string) string {
	number, rest, ok := strings.Cut(title, " ")
	if ok && strings.Contains(number, ".") && strings.Trim(number, "0123456789.") == "" {
		return rest
	}
	return title
}

// shown are the figures of a summary that a table has.
func shown(s *result.Summary) []string {
	var out []string
	for _, name := range figures {
		out = append(out, report.Figure(s, name))
	}
	return out
}

// grouped are the members of each key, in the order of the first of each.
func grouped[T any](all []T, key func(T) string) [][]T {
	at := map[string]int{}
	var out [][]T
	for _, x := range all {
		k := key(x)
		i, ok := at[k]
		if !ok {
			i, at[k] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], x)
	}
	return out
}

// conclude says what runs of one model on one hardware come to: the best of those under the load
// that most of them had, against the first. What is void is in no conclusion.
func conclude(all []measurement) Result {
	loads := grouped(all, func(m measurement) string { return m.load })
	main := slices.MaxFunc(loads, func(a, b []measurement) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a[0].header.Requests, b[0].header.Requests))
	})
	r := Result{Model: main[0].Model, GPU: main[0].GPU, Hardware: main[0].Hardware}
	r.Simulated = slices.ContainsFunc(all, func(m measurement) bool { return m.Simulated })
	j := newJudge(main)
	r.Measure = j.label + ", " + main[0].Load
	believed := slices.DeleteFunc(slices.Clone(main), func(m measurement) bool {
		_, ok := j.value(m)
		return m.summary.Verdict.Status == result.Voided || !ok
	})
	if len(believed) == 0 {
		r.Basis = "no conclusion: " + j.why(main)
		return r
	}
	best := slices.MaxFunc(believed, func(a, b measurement) int {
		x, _ := j.value(a)
		y, _ := j.value(b)
		if j.lower {
			x, y = y, x
		}
		return cmp.Or(cmp.Compare(x, y), -1) // the first of equals
	})
	first := main[0]
	voided := len(main) - len(believed)
	named := func(m measurement) string {
		if slices.ContainsFunc(main, func(o measurement) bool { return o.Model != m.Model && o.Label == m.Label }) {
			return m.Label + ", " + m.Model
		}
		return m.Label
	}
	r.Word, r.Best, r.Command, r.Figure = "best", named(best), best.Command, report.Quantity(best.summary, j.name)
	switch {
	case len(main) == 1:
		r.Word, r.Basis = "the only run under this load", "nothing to compare it with"
	case first.summary.Verdict.Status == result.Voided:
		r.Best, r.Command, r.Figure, r.Word = "", "", "", ""
		r.Basis = fmt.Sprintf("no conclusion: %d of %s cannot be believed, the first among them", voided, counted(len(main), "run"))
	case best.header == first.header:
		r.Gain, r.Basis = "none", "the first configuration is the best of "+counted(len(believed), "run")
	default:
		x, _ := j.value(best)
		y, _ := j.value(first)
		r.Gain = report.Gain(j.gain(x, y), j.name, j.lower)
		r.Basis = "over " + named(first) + j.per + "; no interval: one run of each"
	}
	return r
}

// judge says by which figure runs under one load are compared: at a given rate by latency, since
// throughput follows the rate, and else by throughput, a GPU where the runs name theirs.
type judge struct {
	name, label, per string
	lower            bool
	perGPU           bool
}

func newJudge(all []measurement) judge {
	j := judge{name: "total_token_throughput"}
	if all[0].header.HasRate() {
		j.name, j.lower = "mean_e2el_ms", true
	}
	uneven := slices.ContainsFunc(all, func(m measurement) bool { return m.gpus != all[0].gpus })
	named := !slices.ContainsFunc(all, func(m measurement) bool { return m.gpus == 0 })
	if uneven && named && !j.lower {
		j.perGPU, j.per = true, ", per GPU"
	}
	m, err := result.Lookup(j.name)
	if err == nil {
		j.label = m.Label
	}
	return j
}

// why says why none of the runs is in a conclusion.
func (j judge) why(all []measurement) string {
	switch {
	case !slices.ContainsFunc(all, func(m measurement) bool { _, ok := j.value(m); return ok }):
		return "no run has the figure"
	case len(all) == 1:
		return "the run cannot be believed"
	}
	return fmt.Sprintf("none of %d runs can be believed", len(all))
}

// value is what a run is judged by.
func (j judge) value(m measurement) (float64, bool) {
	v, ok := m.summary.Figures[j.name]
	if ok && j.perGPU {
		v /= m.gpus
	}
	return v, ok && v > 0
}

// gain is that of x over y in the direction that is better.
func (j judge) gain(x, y float64) float64 {
	if j.lower {
		return y/x - 1
	}
	return x/y - 1
}

// gpuName is what the first of texts that names a GPU calls it: the part, or what the parts that
// it leaves open have in common. It is empty where none does.
func gpuName(texts ...string) string {
	for _, t := range texts {
		all := arch.AcceleratorsIn(t)
		if len(all) == 0 {
			continue
		}
		words := strings.Fields(all[0].Title)
		for _, a := range all[1:] {
			other := strings.Fields(a.Title)
			n := 0
			for n < min(len(words), len(other)) && words[n] == other[n] {
				n++
			}
			words = words[:n]
		}
		if len(words) > 1 || len(all) == 1 { // the maker alone names no GPU
			return strings.Join(words, " ")
		}
	}
	return ""
}

// counted writes "1 run", "2 runs".
func counted(n int, noun string) string { return countedAs(n, noun, noun+"s") }

// countedAs is counted for a noun with a plural of its own.
func countedAs(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
