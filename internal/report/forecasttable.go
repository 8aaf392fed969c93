package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"perflab/internal/forecast"
	"perflab/internal/report/plot"
)

// maxWidth is how wide a table for a terminal may be: beyond that, each
// configuration is named on a line of its own, above its rows.
const maxWidth = 100

// table adds a row for each configuration and load, its ranges under it. All
// machines are of one size, so that figures per GPU are left to page and JSON.
func (f *forecastTable) table(s *section) {
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
	narrow := table{right: true, beneath: true, columns: columns(append(narrowHead, head...)...)}
	full := table{right: true, beneath: true, width: maxWidth, narrow: &narrow, columns: slices.Insert(slices.Clone(narrow.columns), 1, column{head: spans(padded("configuration"))})}
	last := 0
	for i := range f.Rows {
		r := &f.Rows[i]
		mark := map[bool]string{true: "*"}[r.Front]
		short := cells(mark)
		if r.Configuration != last {
			short.above = fmt.Sprintf("#%d %s", r.Configuration, f.command(r).Label)
			last = r.Configuration
		}
		if f.loads() {
			short.cells = append(short.cells, cell{text: spans(r.Load)})
		}
		short.cells = append(short.cells, cell{text: spans(filledText(f.command(r)))})
		if r.Figures == nil {
			short.cells = append(short.cells, cell{text: spans("refused")})
		} else {
			short.cells = append(short.cells, f.cells(r, figures)...)
		}
		narrow.rows = append(narrow.rows, short)
		long := cells(fmt.Sprintf("%s#%d", mark, r.Configuration), padded(oneLine(f.command(r).Label)))
		long.cells = append(long.cells, short.cells[1:]...)
		full.rows = append(full.rows, long)
	}
	s.text("")
	s.add(inText, full)
	if text := f.frontSentence(); text != "" {
		s.text("* " + text)
	}
}

// cells are a row's figures, cache and bounds.
func (f *forecastTable) cells(r *forecast.Row, figures []forecastColumn) []cell {
	var out []cell
	for _, col := range figures {
		k := cell{text: spans(none)}
		if e, ok := col.of(r); ok {
			value, between := estimate(e, col.metric)
			k = cell{text: spans(value), beside: between}
		}
		out = append(out, k)
	}
	kv, preempted := kvCells(r)
	out = append(out, texts(kv, preempted).cells...)
	if len(f.SLOs) > 0 {
		out = append(out, cell{text: spans(r.SLO)})
	}
	return out
}

// pageTable has a row for each configuration and load.
func (f *forecastTable) pageTable() table {
	t := table{empty: true, headCell: 1, columns: columns("", "Configuration")}
	if f.loads() {
		t.columns = append(t.columns, columns("Load")...)
	}
	t.columns = append(t.columns, columns(">GPUs")...)
	figures := f.columns()
	for _, c := range figures {
		t.columns = append(t.columns, column{head: spans(c.head), right: true, wrap: true})
	}
	t.columns = append(t.columns, column{head: spans("KV cache, peak"), right: true, wrap: true}, column{head: spans("Preempted"), right: true, wrap: true})
	if len(f.SLOs) > 0 {
		t.columns = append(t.columns, columns("SLOs")...)
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		name := spans(f.command(r).Label)
		if r.Front {
			name = append(name, span{text: " "}, tag("ok", "front"))
		}
		if r.Figures == nil {
			name = append(name, span{text: " "}, tag("refused", "refused"))
		}
		k := cells(link(fmt.Sprintf("#c%d", r.Configuration), fmt.Sprintf("#%d", r.Configuration)), name)
		if f.loads() {
			k.cells = append(k.cells, cell{text: spans(r.Load)})
		}
		k.cells = append(k.cells, cell{text: spans(filledText(f.command(r)))})
		k.cells = append(k.cells, f.cells(r, figures)...)
		t.rows = append(t.rows, k)
	}
	return t
}

// single adds the figures of the only row as a list.
func (f *forecastTable) single(s *section, r *forecast.Row) {
	c := f.command(r)
	s.text("Hardware: "+deploymentText(c), "")
	t := table{noHead: inText}
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
		t.rows = append(t.rows, texts(head, value, strings.TrimPrefix(bracketed(between), " ")))
	}
	s.add(inText, t)
	s.text("")
	f.reasonLines(s, r, "")
	if m := memoryText(c); m != "" {
		s.text("Memory of a GPU: " + m)
	}
	s.text(c.Notes...)
	s.text("", c.Command)
}

// configuration adds a configuration with the reasons of its rows; for a terminal
// where it is told to.
func (f *forecastTable) configuration(to *section, i int, terminal bool) {
	c := &f.Configurations[i]
	k := section{level: 4, element: "section", class: "trial", id: fmt.Sprintf("c%d", i+1), title: fmt.Sprintf("#%d %s", i+1, c.Label)}
	if c.Refused != "" {
		k.labels = spans(tag("refused", "refused"))
	}
	k.labels = append(k.labels, toned("fig", deploymentText(c)))
	page := to.part(inPage, k)
	page.add(inPage, pre{commands: true, text: wrapCommand(c.Command)})
	memory, refused := memoryText(c), ""
	if c.Refused != "" {
		refused = c.Refused + "."
		page.styled(inPage, "", refused)
	}
	if memory != "" {
		page.styled(inPage, "muted", "Memory of a GPU: "+memory)
	}
	page.styledEach(inPage, "note", c.Notes...)
	for k := range f.Rows {
		if r := &f.Rows[k]; r.Configuration == i+1 && r.Figures != nil {
			f.reasons(page, r)
		}
	}
	if terminal {
		f.configurationLines(to, i)
	}
}

// reasons adds what is behind a row: what holds it back, the cache, the bounds and
// what is outside the calibration.
func (f *forecastTable) reasons(s *section, r *forecast.Row) {
	if f.loads() && r.Load != "" {
		s.styled(inPage, "", bold(r.Load))
	}
	if r.Bottleneck != nil && r.Bottleneck.Text != "" {
		s.styled(inPage, "result", r.Bottleneck.Text)
	}
	if r.KV != nil {
		s.styled(inPage, "", "KV cache: "+kvText(r))
	}
	if len(r.Missed) > 0 {
		s.styled(inPage, "", "Missed: "+strings.Join(r.Missed, "; "))
	}
	if r.Failed != "" {
		s.styled(inPage, "note", "Not served: "+r.Failed)
	}
	for _, text := range ownOutside(r, f.common()) {
		s.styled(inPage, "note", "Outside the calibration: "+text)
	}
}

// configurationLines adds a configuration for a terminal.
func (f *forecastTable) configurationLines(s *section, i int) {
	c := &f.Configurations[i]
	margin := "  "
	if strings.Contains(c.Command, "\n") { // a here-document ends at the margin only
		margin = ""
	}
	s.text("", fmt.Sprintf("#%d %s, %s", i+1, c.Label, deploymentText(c)), margin+c.Command)
	if c.Refused != "" {
		s.text("  Refused: " + c.Refused)
		return
	}
	if m := memoryText(c); m != "" {
		s.text("  Memory of a GPU: " + m)
	}
	for _, note := range c.Notes {
		s.text("  " + note)
	}
	indent := "  "
	for k := range f.Rows {
		r := &f.Rows[k]
		if r.Configuration != i+1 {
			continue
		}
		if f.loads() {
			s.text("  " + r.Load + ":")
			indent = "    "
		}
		f.reasonLines(s, r, indent)
	}
}

// reasonLines adds what is behind a row for a terminal.
func (f *forecastTable) reasonLines(s *section, r *forecast.Row, indent string) {
	if r.SLO != "" {
		s.text(indent + "SLO: " + strings.Join(append([]string{r.SLO}, r.Missed...), "; "))
	}
	if r.Bottleneck != nil && r.Bottleneck.Text != "" {
		s.text(indent + "Bottleneck: " + r.Bottleneck.Text)
	}
	if r.KV != nil {
		s.text(indent + "KV cache: " + kvText(r))
	}
	if r.Failed != "" {
		s.text(indent + "Not served: " + r.Failed)
	}
	if indent != "" {
		for _, text := range ownOutside(r, f.common()) {
			s.text(indent + "Outside: " + text)
		}
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
		return none, none
	}
	return fmt.Sprintf("%.0f %%", 100*k.Peak), plot.Tally(k.Preemptions)
}
