package report

import (
	"fmt"
	"io"
	"perflab/internal/report/plot"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"perflab/internal/forecast"
)

// ForecastText writes predictions for a terminal: one as a list of figures,
// several as a table with the reasons under it.
func ForecastText(w io.Writer, t forecast.Table) error {
	f := &forecastTable{t}
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
	return oldWriteAll(w, b.String())
}

// single lists the figures of the only row.
func (f *forecastTable) single(b *strings.Builder, r *forecast.Row) {
	c := f.command(r)
	fmt.Fprintf(b, "Hardware: %s\n\n", deploymentText(c))
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
	if m := memoryText(c); m != "" {
		fmt.Fprintf(b, "Memory of a GPU: %s\n", m)
	}
	for _, note := range c.Notes {
		fmt.Fprintln(b, note)
	}
	fmt.Fprintf(b, "\n%s\n", c.Command)
}

// reasons are a row's bottleneck, cache, SLO and what is outside.
func (f *forecastTable) reasons(b *strings.Builder, r *forecast.Row, indent string) {
	if r.SLO != "" {
		fmt.Fprintf(b, "%sSLO: %s\n", indent, strings.Join(append([]string{r.SLO}, r.Missed...), "; "))
	}
	if r.Bottleneck != nil && r.Bottleneck.Text != "" {
		fmt.Fprintf(b, "%sBottleneck: %s\n", indent, r.Bottleneck.Text)
	}
	if r.KV != nil {
		fmt.Fprintf(b, "%sKV cache: %s\n", indent, kvText(r))
	}
	if r.Failed != "" {
		fmt.Fprintf(b, "%sNot served: %s\n", indent, r.Failed)
	}
	if indent != "" {
		for _, text := range ownOutside(r, f.common()) {
			fmt.Fprintf(b, "%sOutside: %s\n", indent, text)
		}
	}
}

// tableWidth is how wide a table may be: beyond that, each configuration is named
// on a line of its own, above its rows.
const tableWidth = 100

// table has a row for each configuration and load, its ranges under it. All
// machines are of one size, so that figures per GPU are left to page and JSON.
func (f *forecastTable) table(b *strings.Builder) {
	columns := slices.DeleteFunc(f.columns(), func(c forecastColumn) bool { return c.perGPU })
	lines, _ := f.tableLines(columns, false)
	var of []int
	if slices.ContainsFunc(lines, func(s string) bool { return utf8.RuneCountInString(s) > tableWidth }) {
		lines, of = f.tableLines(columns, true)
	}
	fmt.Fprintln(b)
	for i, line := range lines {
		if of != nil && of[i] > 0 && of[i] != of[i-1] { // the first line is the head
			fmt.Fprintf(b, "#%d %s\n", of[i], f.Configurations[of[i]-1].Label)
		}
		fmt.Fprintln(b, line)
	}
	if s := f.frontSentence(); s != "" {
		fmt.Fprintf(b, "* %s\n", s)
	}
}

// tableLines are the lines of the table, and the number of the configuration
// that each is of: 0 for the head. Apart from their labels they are narrow.
func (f *forecastTable) tableLines(columns []forecastColumn, apart bool) (lines []string, of []int) {
	wide := len("configuration")
	for i := range f.Configurations {
		wide = max(wide, utf8.RuneCountInString(f.Configurations[i].Label))
	}
	var text strings.Builder
	tw := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	loads := f.loads()
	add := func(n int, mark, label, load string, cells []string) {
		out := []string{mark}
		if !apart {
			out = append(out, label+strings.Repeat(" ", wide-utf8.RuneCountInString(label)))
		}
		if loads {
			out = append(out, load)
		}
		fmt.Fprintln(tw, strings.Join(append(out, cells...), "\t")+"\t")
		of = append(of, n)
	}
	add(0, "", "configuration", "load", f.heads(columns))
	for i := range f.Rows {
		r := &f.Rows[i]
		mark := map[bool]string{true: "*"}[r.Front]
		if !apart {
			mark += fmt.Sprintf("#%d", r.Configuration)
		}
		first, second := f.cells(r, columns)
		add(r.Configuration, mark, oneLine(f.command(r).Label), r.Load, first)
		if strings.Join(second, "") != "" {
			add(r.Configuration, "", "", "", second)
		}
	}
	tw.Flush() // into a Builder, which never fails
	for line := range strings.Lines(text.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return lines, of
}

func (f *forecastTable) heads(columns []forecastColumn) []string {
	out := []string{"GPUs"}
	for _, c := range columns {
		out = append(out, c.head)
	}
	out = append(out, "KV peak", "preempted")
	if len(f.SLOs) > 0 {
		out = append(out, "SLO")
	}
	return out
}

// cells are a row of the table, and the line of ranges under it, as long: text
// is aligned by columns that reach through all lines.
func (f *forecastTable) cells(r *forecast.Row, columns []forecastColumn) (first, second []string) {
	first, second = []string{filledText(f.command(r))}, []string{""}
	if r.Figures == nil {
		return append(first, "refused"), nil
	}
	for _, col := range columns {
		value, between := "-", ""
		if e, ok := col.of(r); ok {
			value, between = estimate(e, col.metric)
		}
		first, second = append(first, value), append(second, between)
	}
	kv, preempted := kvCells(r)
	first, second = append(first, kv, preempted), append(second, "", "")
	if len(f.SLOs) > 0 {
		first, second = append(first, r.SLO), append(second, "")
	}
	return first, second
}

// filled is how a configuration fills the machine, as 2x4: two replicas of four.
func filledText(c *forecast.Configuration) string {
	if c.Replicas > 1 {
		return fmt.Sprintf("%dx%d", c.Replicas, c.Each)
	}
	return fmt.Sprint(c.GPUs)
}

// cells are the cache's peak and the preemptions.
func kvCells(r *forecast.Row) (peak, preempted string) {
	k := r.KV
	if k == nil {
		return "-", "-"
	}
	return fmt.Sprintf("%.0f %%", 100*k.Peak), plot.Tally(k.Preemptions)
}

// details are the reasons of each row, and the commands.
func (f *forecastTable) details(b *strings.Builder) {
	for i := range f.Configurations {
		c := &f.Configurations[i]
		margin := "  "
		if strings.Contains(c.Command, "\n") { // a here-document ends at the margin only
			margin = ""
		}
		fmt.Fprintf(b, "\n#%d %s, %s\n%s%s\n", i+1, c.Label, deploymentText(c), margin, c.Command)
		if c.Refused != "" {
			fmt.Fprintf(b, "  Refused: %s\n", c.Refused)
			continue
		}
		if m := memoryText(c); m != "" {
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
