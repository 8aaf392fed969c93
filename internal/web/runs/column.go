package runs

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/report/progress"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/scan"
	"perflab/internal/web/page"
)

// mostColumns bounds a list.
const mostColumns = 40

// column is one of the list.
type column struct {
	Name   string
	Label  string
	Doc    string
	Sort   string // name to sort by; "": a list cannot be sorted by it
	Down   bool   // the most comes first when the list is sorted by it
	Metric string // of a figure
	Number bool
	of     func(store.Entry) cell
}

// cell is what a row has in a column.
type cell struct {
	Kind    string // of the template: "", name, verdict, tags, age, code
	Text    string
	Tip     string
	Value   string // as it is exported
	Number  bool
	Tags    []string
	Time    time.Time
	Missing bool
}

// usualColumns are those of a list for which none were chosen.
var usualColumns = []string{"name", "verdict", "started", "output_throughput", "p99_ttft_ms", "p99_tpot_ms", "model", "engine", "hardware", "load", "tags"}

// facts are the columns that are no figures.
var facts = []column{
	{Name: "name", Label: "Run", Doc: "its name, and what it is", Sort: "name", of: func(e store.Entry) cell { return cell{Kind: "name", Text: e.Called(), Value: e.Called()} }},
	{Name: "verdict", Label: "Verdict", Doc: "whether its figures can be believed", Sort: "verdict", of: verdictCell},
	{Name: "kind", Label: "Kind", Doc: "run, series, study, import or site", Sort: "kind", of: text(func(e store.Entry) string { return string(e.Kind) })},
	{Name: "state", Label: "State", Doc: "whether it goes on", Sort: "state", of: text(func(e store.Entry) string { return string(e.State) })},
	{Name: "model", Label: "Model", Doc: "the model that was served", Sort: "model", of: clip(func(e store.Entry) string { return e.Model })},
	{Name: "engine", Label: "Engine", Doc: "the engine and its version", Sort: "engine", of: text(engineText)},
	{Name: "hardware", Label: "Hardware", Doc: "accelerators", Sort: "hardware", of: clip(func(e store.Entry) string { return e.Hardware })},
	{Name: "gpus", Label: "GPUs", Doc: "how many were allocated", Sort: "gpus", Down: true, Number: true, of: count(func(e store.Entry) int { return e.GPUs })},
	{Name: "load", Label: "Load", Doc: "what was sent", Sort: "workload", of: clip(func(e store.Entry) string { return e.Load })},
	{Name: "workload", Label: "Workload", Doc: "its name", Sort: "workload", of: text(func(e store.Entry) string { return e.Workload })},
	{Name: "requests", Label: "Requests", Doc: "planned", Number: true, of: count(func(e store.Entry) int { return e.Requests })},
	{Name: "rate", Label: "Rate (req/s)", Doc: "requests per second that were offered", Sort: "rate", Number: true, of: number(func(e store.Entry) float64 { return e.Rate })},
	{Name: "limit", Label: "In flight", Doc: "the limit of requests in flight", Sort: "limit", Number: true, of: count(func(e store.Entry) int { return e.Limit })},
	{Name: "duration", Label: "Took", Doc: "how long it took", Sort: "duration", Down: true, of: spanCell},
	{Name: "build", Label: "Build", Doc: "commit or label of what was measured", Sort: "build", of: text(func(e store.Entry) string { return e.Build })},
	{Name: "image", Label: "Image", Doc: "container image", Sort: "image", of: clip(func(e store.Entry) string { return e.Image })},
	{Name: "host", Label: "Client", Doc: "the machine that sent the load", Sort: "host", of: text(func(e store.Entry) string { return e.Host })},
	{Name: "imported", Label: "Measured by", Doc: "the other client that measured it", Sort: "imported", of: text(func(e store.Entry) string { return e.Imported })},
	{Name: "command", Label: "Serving command", Doc: "that was measured", of: clip(func(e store.Entry) string { return e.Command })},
	{Name: "version", Label: "perflab", Doc: "the version that wrote it", Sort: "version", of: text(func(e store.Entry) string { return e.Version })},
	{Name: "path", Label: "Path", Doc: "where it lies", of: text(func(e store.Entry) string {
		if len(e.Places) == 0 {
			return ""
		}
		return e.Places[0].Path
	})},
	{Name: "size", Label: "Size", Doc: "of its files", Sort: "size", Down: true, of: func(e store.Entry) cell {
		return cell{Text: page.Size(e.Bytes), Value: strconv.FormatInt(e.Bytes, 10), Number: true, Missing: e.Bytes == 0}
	}},
	{Name: "tags", Label: "Tags", Doc: "that people gave it", of: func(e store.Entry) cell {
		return cell{Kind: "tags", Tags: e.Marks.Tags, Value: strings.Join(e.Marks.Tags, " "), Missing: len(e.Marks.Tags) == 0}
	}},
	{Name: "note", Label: "Note", Doc: "that somebody wrote", of: clip(func(e store.Entry) string { return e.Marks.Note })},
	{Name: "id", Label: "ID", Doc: "equal for copies", Sort: "id", of: func(e store.Entry) cell { return cell{Kind: "code", Text: page.Short(e.ID), Value: e.ID} }},
	{Name: "started", Label: "Age", Doc: "since it began", Sort: "started", Down: true, of: func(e store.Entry) cell {
		c := cell{Kind: "age", Time: e.Started, Missing: e.Started.IsZero()}
		if !c.Missing {
			c.Value = e.Started.UTC().Format(time.RFC3339)
		}
		return c
	}},
}

// own are the figures that only studies, series and imports have.
var own = map[string]column{
	scan.Gain:     {Label: "Gain", Doc: "of a study's objective over its baseline", Down: true},
	scan.Trials:   {Label: "Trials", Doc: "of a study", Down: true},
	scan.Points:   {Label: "Runs", Doc: "of a series or an import", Down: true},
	scan.Findings: {Label: "Findings", Doc: "of the audit of an import", Down: true},
	scan.GPUHours: {Label: "GPU hours", Doc: "that a study took", Down: true},
}

// columnOf is the column of a name: a fact, a figure of the metric table, or one that studies have.
func columnOf(name string) (column, bool) {
	if i := slices.IndexFunc(facts, func(c column) bool { return c.Name == name }); i >= 0 {
		return facts[i], true
	}
	if c, ok := own[name]; ok {
		c.Name, c.Sort, c.Metric, c.Number = name, name, name, true
		c.of = figure(name, func(v float64) string { return ownText(name, v) })
		return c, true
	}
	m, err := result.Lookup(name)
	if err != nil {
		return column{}, false
	}
	return column{Name: m.Name, Label: m.Label, Doc: m.Doc, Sort: m.Name, Down: m.Better == result.Higher, Metric: m.Name, Number: true,
		of: figure(m.Name, func(v float64) string { return page.Figure(map[string]float64{m.Name: v}, m.Name) })}, true
}

func ownText(name string, v float64) string {
	switch name {
	case scan.Gain:
		return page.Percent(v)
	case scan.GPUHours:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// columnsOf are the columns of names; those that nobody knows are told.
func columnsOf(names []string) (all []column, unknown []string) {
	if !slices.Contains(names, "name") {
		names = append([]string{"name"}, names...)
	}
	seen := map[string]bool{}
	for _, name := range names {
		c, ok := columnOf(name)
		switch {
		case !ok:
			unknown = append(unknown, name)
		case !seen[c.Name]:
			seen[c.Name] = true
			all = append(all, c)
		}
	}
	return all, unknown
}

// otherColumns are those that can be added to the ones shown.
func otherColumns(shown []column) []column {
	var out []column
	has := func(name string) bool {
		return slices.ContainsFunc(shown, func(c column) bool { return c.Name == name })
	}
	add := func(name string) {
		if c, ok := columnOf(name); ok && !has(c.Name) {
			out = append(out, c)
		}
	}
	for _, c := range facts {
		add(c.Name)
	}
	for _, name := range scan.OwnFigures() {
		add(name)
	}
	for _, m := range result.Metrics() {
		add(m.Name)
	}
	return out
}

func text(of func(store.Entry) string) func(store.Entry) cell {
	return func(e store.Entry) cell {
		s := of(e)
		return cell{Text: s, Value: s, Missing: s == ""}
	}
}

// clip is a text that may be long: a list shows the beginning of it.
func clip(of func(store.Entry) string) func(store.Entry) cell {
	return func(e store.Entry) cell {
		s := of(e)
		return cell{Kind: "clip", Text: s, Value: s, Missing: s == ""}
	}
}

func count(of func(store.Entry) int) func(store.Entry) cell {
	return func(e store.Entry) cell {
		n := of(e)
		return cell{Text: strconv.Itoa(n), Value: strconv.Itoa(n), Number: true, Missing: n == 0}
	}
}

func number(of func(store.Entry) float64) func(store.Entry) cell {
	return func(e store.Entry) cell {
		s := strconv.FormatFloat(of(e), 'g', 6, 64)
		return cell{Text: s, Value: s, Number: true, Missing: of(e) == 0}
	}
}

// figure is a figure with its interval, where there is one.
func figure(name string, write func(float64) string) func(store.Entry) cell {
	return func(e store.Entry) cell {
		f, ok := e.Figure(name)
		if !ok {
			return cell{Number: true, Missing: true}
		}
		c := cell{Text: write(f.Value), Value: strconv.FormatFloat(f.Value, 'g', -1, 64), Number: true}
		if f.Low != nil && f.High != nil {
			c.Tip = "95 % interval: " + write(*f.Low) + " to " + write(*f.High)
		}
		return c
	}
}

func spanCell(e store.Entry) cell {
	if e.Duration == 0 {
		return cell{Missing: true}
	}
	return cell{Text: progress.Brief(time.Duration(e.Duration * float64(time.Second))), Value: strconv.FormatFloat(e.Duration, 'f', 3, 64), Number: true}
}

func engineText(e store.Entry) string { return strings.TrimSpace(e.Engine + " " + e.EngineVersion) }

// verdictCell is the verdict with its reasons.
func verdictCell(e store.Entry) cell {
	return cell{Kind: "verdict", Text: e.Verdict, Value: e.Verdict, Tip: strings.Join(e.Reasons, "; "), Missing: e.Verdict == ""}
}
