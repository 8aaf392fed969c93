package prediction

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"perflab/internal/forecast"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
)

// maxWidth is how wide a table for a terminal may be: beyond that, each
// configuration is named on a line of its own, above its rows.
const maxWidth = 100

// table adds a row for each configuration and load, its ranges under it. All
// machines are of one size, so that figures per GPU are left to page and JSON.
func (f *forecastTable) table(s *doc.Section) {
	figures := slices.DeleteFunc(f.columns(), func(c forecastColumn) bool { return c.perGPU })
	wide := len("configuration")
	for i := range f.Configurations {
		wide = max(wide, utf8.RuneCountInString(f.Configurations[i].Label))
	}
	padded := func(text string) string { return text + strings.Repeat(" ", max(0, wide-utf8.RuneCountInString(text))) }
	head := []string{"GPUs"}
	for _, c := range figures {
		head = append(head, c.head)
	}
	head = append(head, "KV peak", "preempted")
	if len(f.SLOs) > 0 {
		head = append(head, "SLO")
	}
	narrowHead := []string{""}
	if f.loads() {
		narrowHead = append(narrowHead, "load")
	}
	narrow := doc.Table{Right: true, Beneath: true, Columns: doc.Columns(append(narrowHead, head...)...)}
	full := doc.Table{Right: true, Beneath: true, Width: maxWidth, Narrow: &narrow, Columns: slices.Insert(slices.Clone(narrow.Columns), 1, doc.Column{Head: doc.Spans(padded("configuration"))})}
	last := 0
	for i := range f.Rows {
		r := &f.Rows[i]
		mark := map[bool]string{true: "*"}[r.Front]
		short := doc.Cells(mark)
		if r.Configuration != last {
			short.Above = fmt.Sprintf("#%d %s", r.Configuration, f.command(r).Label)
			last = r.Configuration
		}
		if f.loads() {
			short.Cells = append(short.Cells, doc.Cell{Text: doc.Spans(r.Load)})
		}
		short.Cells = append(short.Cells, doc.Cell{Text: doc.Spans(filledText(f.command(r)))})
		if r.Figures == nil {
			short.Cells = append(short.Cells, doc.Cell{Text: doc.Spans("refused")})
		} else {
			short.Cells = append(short.Cells, f.cells(r, figures)...)
		}
		narrow.Rows = append(narrow.Rows, short)
		long := doc.Cells(fmt.Sprintf("%s#%d", mark, r.Configuration), padded(doc.OneLine(f.command(r).Label)))
		long.Cells = append(long.Cells, short.Cells[1:]...)
		full.Rows = append(full.Rows, long)
	}
	s.Text("")
	s.Add(doc.InText, full)
	if text := f.frontSentence(); text != "" {
		s.Text("* " + text)
	}
}

// cells are a row's figures, cache and bounds.
func (f *forecastTable) cells(r *forecast.Row, figures []forecastColumn) []doc.Cell {
	var out []doc.Cell
	for _, col := range figures {
		k := doc.Cell{Text: doc.Spans(doc.None)}
		if e, ok := col.of(r); ok {
			value, between := estimate(e, col.metric)
			k = doc.Cell{Text: doc.Spans(value), Beside: between}
		}
		out = append(out, k)
	}
	kv, preempted := kvCells(r)
	out = append(out, doc.Texts(kv, preempted).Cells...)
	if len(f.SLOs) > 0 {
		out = append(out, doc.Cell{Text: doc.Spans(r.SLO)})
	}
	return out
}

// pageTable has a row for each configuration and load.
func (f *forecastTable) pageTable() doc.Table {
	t := doc.Table{Empty: true, HeadCell: 1, Columns: doc.Columns("#", "Configuration")}
	if f.loads() {
		t.Columns = append(t.Columns, doc.Columns("Load")...)
	}
	t.Columns = append(t.Columns, doc.Columns(">GPUs")...)
	figures := f.columns()
	for _, c := range figures {
		t.Columns = append(t.Columns, doc.Column{Head: doc.Spans(c.head), Right: true, Wrap: true})
	}
	t.Columns = append(t.Columns, doc.Column{Head: doc.Spans("KV cache, peak"), Right: true, Wrap: true}, doc.Column{Head: doc.Spans("Preempted"), Right: true, Wrap: true})
	if len(f.SLOs) > 0 {
		t.Columns = append(t.Columns, doc.Columns("SLOs")...)
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		name := doc.Spans(f.command(r).Label)
		if r.Front {
			name = append(name, doc.Span{Text: " "}, doc.Tag("ok", "front"))
		}
		if r.Figures == nil {
			name = append(name, doc.Span{Text: " "}, doc.Tag("refused", "refused"))
		}
		k := doc.Cells(doc.Link(fmt.Sprintf("#c%d", r.Configuration), fmt.Sprintf("#%d", r.Configuration)), name)
		if f.loads() {
			k.Cells = append(k.Cells, doc.Cell{Text: doc.Spans(r.Load)})
		}
		k.Cells = append(k.Cells, doc.Cell{Text: doc.Spans(filledText(f.command(r)))})
		k.Cells = append(k.Cells, f.cells(r, figures)...)
		t.Rows = append(t.Rows, k)
	}
	return t
}

// single adds the figures of the only row as a list, for a terminal.
func (f *forecastTable) single(to *doc.Section, r *forecast.Row) {
	c := f.command(r)
	s := to.Part(doc.InText, doc.Section{})
	s.Text("Hardware: "+deploymentText(c), "")
	t := doc.Table{NoHead: doc.InText}
	for _, col := range f.columns() {
		e, ok := col.of(r)
		if !ok {
			continue
		}
		value, between := estimate(e, col.metric)
		head := col.head
		if col.perGPU {
			head = "  " + head
		}
		t.Rows = append(t.Rows, doc.Texts(head, value, strings.TrimPrefix(bracketed(between), " ")))
	}
	s.Add(doc.InText, t)
	s.Text("")
	f.reasons(s, r, "")
	s.Text(doubtTexts(r)...)
	if m := memoryText(c); m != "" {
		s.Text("Memory of a GPU: " + m)
	}
	s.Text(c.Notes...)
	s.Text("", c.Command)
}

// configuration adds a configuration with the reasons of its rows.
func (f *forecastTable) configuration(to *doc.Section, i int, in doc.Form) {
	c := &f.Configurations[i]
	k := doc.Section{Element: "section", Class: "trial", ID: fmt.Sprintf("c%d", i+1), Title: fmt.Sprintf("#%d %s", i+1, c.Label)}
	if c.Refused != "" {
		k.Labels = doc.Spans(doc.Tag("refused", "refused"))
	}
	k.Labels = append(k.Labels, doc.Toned("fig", deploymentText(c)))
	s := to.Part(in, k)
	margin := "  "
	if strings.Contains(c.Command, "\n") { // a here-document ends at the margin only
		margin = ""
	}
	s.Text("", k.Title+", "+deploymentText(c), margin+c.Command)
	s.Add(doc.InPage, doc.Pre{Commands: true, Text: doc.WrapCommand(c.Command)})
	if c.Refused != "" {
		s.Text("  Refused: " + c.Refused)
		s.Styled(doc.InPage, "", c.Refused+".")
	}
	if m := memoryText(c); m != "" {
		s.Styled(doc.InPage, "muted", "Memory of a GPU: "+m)
		if c.Refused == "" {
			s.Text("  Memory of a GPU: " + m)
		}
	}
	for _, note := range c.Notes {
		s.Styled(doc.InPage, "note", note)
		if c.Refused == "" {
			s.Text("  " + note)
		}
	}
	for k := range f.Rows {
		r := &f.Rows[k]
		if r.Configuration != i+1 || r.Figures == nil {
			continue
		}
		indent := "  "
		if f.loads() {
			s.Text("  " + r.Load + ":")
			s.Styled(doc.InPage, "", doc.Bold(r.Load))
			indent = "    "
		}
		f.reasons(s, r, indent)
		for _, text := range doubtTexts(r) {
			s.Styled(doc.InPage, "muted", strings.TrimPrefix(text, "  - "))
		}
	}
}

// reasons adds what is behind a row: what holds it back, the cache, the bounds and
// what is outside the calibration.
func (f *forecastTable) reasons(s *doc.Section, r *forecast.Row, indent string) {
	say := func(head, class, pageHead, text string) {
		s.Text(indent + head + text)
		s.Styled(doc.InPage, class, pageHead+text)
	}
	if r.SLO != "" {
		s.Text(indent + "SLO: " + strings.Join(append([]string{r.SLO}, r.Missed...), "; "))
	}
	if r.Bottleneck != nil && r.Bottleneck.Text != "" {
		say("Bottleneck: ", "result", "", r.Bottleneck.Text)
	}
	if r.KV != nil {
		say("KV cache: ", "", "KV cache: ", kvText(r))
	}
	if len(r.Missed) > 0 {
		s.Styled(doc.InPage, "", "Missed: "+strings.Join(r.Missed, "; "))
	}
	if r.Failed != "" {
		say("Not served: ", "note", "Not served: ", r.Failed)
	}
	for _, text := range ownOutside(r, f.common()) {
		say("Outside: ", "note", "Outside the calibration: ", text)
	}
}

// filledText is how a configuration fills the machine, as 2x4: two replicas of four.
func filledText(c *forecast.Configuration) string {
	if c.Replicas > 1 {
		return fmt.Sprintf("%dx%d", c.Replicas, c.Each)
	}
	return fmt.Sprint(c.GPUs)
}

// kvCells are the cache's peak and the preemptions.
func kvCells(r *forecast.Row) (peak, preempted string) {
	k := r.KV
	if k == nil {
		return doc.None, doc.None
	}
	return fmt.Sprintf("%.0f %%", 100*k.Peak), plot.Tally(k.Preemptions)
}
