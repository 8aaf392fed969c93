package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// ForecastText writes predictions for a terminal: one as a list of figures,
// several as a table with the reasons under it.
func ForecastText(w io.Writer, f Forecast) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s\n\nWorkload: %s\nCalibration: %s\n", forecastBanner, f.Workload, f.calibration())
	if len(f.Rows) == 1 && f.Rows[0].Figures != nil {
		f.single(b, &f.Rows[0])
	} else {
		f.table(b)
		f.details(b)
	}
	common := f.common()
	if len(common) > 0 {
		b.WriteString("\nOutside the calibration:\n")
	}
	for _, text := range common {
		fmt.Fprintf(b, "  - %s\n", text)
	}
	for _, note := range f.Notes {
		fmt.Fprintln(b, note)
	}
	return writeAll(w, b.String())
}

// single lists the figures of the only row.
func (f *Forecast) single(b *strings.Builder, r *ForecastRow) {
	c := f.command(r)
	fmt.Fprintf(b, "Hardware: %s\n\n", c.deployment())
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, col := range f.columns() {
		e, ok := col.of(r)
		if !ok {
			continue
		}
		value, between := estimate(e, col.metric)
		if between != "" {
			between = "(" + between + ")"
		}
		head := col.head
		if col.perGPU {
			head = "  " + head
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", head, value, between)
	}
	tw.Flush() // into a Builder, which never fails
	fmt.Fprintln(b)
	f.reasons(b, r, "")
	if m := c.memory(); m != "" {
		fmt.Fprintf(b, "Memory of a GPU: %s\n", m)
	}
	for _, note := range c.Notes {
		fmt.Fprintln(b, note)
	}
	fmt.Fprintf(b, "\n%s\n", c.Command)
}

// reasons are a row's bottleneck, cache, SLO and what is outside.
func (f *Forecast) reasons(b *strings.Builder, r *ForecastRow, indent string) {
	if r.SLO != "" {
		fmt.Fprintf(b, "%sSLO: %s\n", indent, strings.Join(append([]string{r.SLO}, r.Missed...), "; "))
	}
	if r.Bottleneck != nil && r.Bottleneck.Text != "" {
		fmt.Fprintf(b, "%sBottleneck: %s\n", indent, r.Bottleneck.Text)
	}
	if r.KV != nil {
		fmt.Fprintf(b, "%sKV cache: %s\n", indent, r.KV.text())
	}
	if r.Failed != "" {
		fmt.Fprintf(b, "%sNot served: %s\n", indent, r.Failed)
	}
	if indent != "" {
		for _, text := range r.own(f.common()) {
			fmt.Fprintf(b, "%sOutside: %s\n", indent, text)
		}
	}
}

// table has a row for each configuration and load, its ranges under it.
func (f *Forecast) table(b *strings.Builder) {
	fmt.Fprintln(b)
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...string) { fmt.Fprintln(tw, strings.Join(cells, "\t")+"\t") }
	columns, loads := f.columns(), f.loads()
	wide := len("configuration")
	for i := range f.Commands {
		wide = max(wide, len([]rune(f.Commands[i].Label)))
	}
	left := func(s string) string { return s + strings.Repeat(" ", max(0, min(wide, 48)-len([]rune(s)))) }
	head := []string{"", left("configuration")}
	if loads {
		head = append(head, "load")
	}
	head = append(head, "GPUs")
	for _, c := range columns {
		head = append(head, c.head)
	}
	head = append(head, "KV peak", "preempted")
	if len(f.SLOs) > 0 {
		head = append(head, "SLO")
	}
	row(head...)
	for i := range f.Rows {
		first, second := f.cells(&f.Rows[i], columns, left, loads)
		row(first...)
		if strings.Join(second, "") != "" {
			second[1] = left(second[1])
			row(second...)
		}
	}
	tw.Flush() // into a Builder, which never fails
	if s := f.frontSentence(); s != "" {
		fmt.Fprintf(b, "* %s\n", s)
	}
}

// cells are a row of the table, and the line of ranges under it.
func (f *Forecast) cells(r *ForecastRow, columns []forecastColumn, left func(string) string, loads bool) (first, second []string) {
	c := f.command(r)
	mark := fmt.Sprintf("#%d", r.Configuration)
	if r.Front {
		mark = "*" + mark
	}
	add := func(a, b string) { first, second = append(first, a), append(second, b) }
	add(mark, "")
	add(left(clip(oneLine(c.Label), 48)), "")
	if loads {
		add(r.Load, "")
	}
	gpus := fmt.Sprint(c.GPUs)
	if c.Replicas > 1 {
		gpus = fmt.Sprintf("%dx%d", c.Replicas, c.Each)
	}
	add(gpus, "")
	if r.Figures == nil {
		add("refused", "")
		return first, second
	}
	for _, col := range columns {
		if e, ok := col.of(r); ok {
			add(estimate(e, col.metric))
		} else {
			add("-", "")
		}
	}
	if r.KV != nil {
		add(fmt.Sprintf("%.0f %%", 100*r.KV.Peak), "")
		add(tally(r.KV.Preemptions), "")
	} else {
		add("-", "")
		add("-", "")
	}
	if len(f.SLOs) > 0 {
		add(r.SLO, "")
	}
	return first, second
}

// details are the reasons of each row, and the commands.
func (f *Forecast) details(b *strings.Builder) {
	for i := range f.Commands {
		c := &f.Commands[i]
		fmt.Fprintf(b, "\n#%d %s, %s\n  %s\n", i+1, c.Label, c.deployment(), c.Command)
		if c.Refused != "" {
			fmt.Fprintf(b, "  Refused: %s\n", c.Refused)
			continue
		}
		if m := c.memory(); m != "" {
			fmt.Fprintf(b, "  Memory of a GPU: %s\n", m)
		}
		for _, note := range c.Notes {
			fmt.Fprintf(b, "  %s\n", note)
		}
		indent := "  "
		for k := range f.Rows {
			r := &f.Rows[k]
			if r.Configuration != i+1 {
				continue
			}
			if f.loads() {
				fmt.Fprintf(b, "  %s:\n", r.Load)
				indent = "    "
			}
			f.reasons(b, r, indent)
		}
	}
}
