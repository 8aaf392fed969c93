package doc

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"perflab/internal/redact"
	"perflab/internal/report/plot"
)

// Text writes a document for a terminal: its lines and tables, without headings.
func Text(w io.Writer, d Document) error {
	var b strings.Builder
	if d.Banner != "" && d.Bare&InText == 0 {
		b.WriteString(d.Banner + "\n\n")
	}
	textItems(&b, d.Body.Items)
	if _, err := io.WriteString(w, redact.Shown(b.String())); err != nil {
		return fmt.Errorf("write %s: %w", d.subject, err)
	}
	return nil
}

func textItems(b *strings.Builder, all []item) {
	for _, it := range all {
		if it.in&InText == 0 {
			continue
		}
		switch k := it.block.(type) {
		case *Section:
			textItems(b, k.Items)
		case Verbatim:
			b.WriteString(string(k))
		case Para:
			b.WriteString(plainText(k.Text) + "\n")
		case List:
			for _, text := range k.Items {
				b.WriteString(plainText(text) + "\n")
			}
		case Table:
			textTable(b, k)
		case Definitions:
			for _, t := range k {
				fmt.Fprintf(b, "%-16s %s\n", t.Name, plot.Clip(OneLine(t.Text), textWidth))
			}
		}
	}
}

// textWidth bounds what a line of terms says.
const textWidth = 300

// OneLine joins the words of s by single spaces, so that a label cannot break a
// table.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// plainText is a line without its forms.
func plainText(all []Span) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(s.Text + plainText(s.inner))
	}
	return b.String()
}

// textTable writes a table, or the narrow one in its place where it is too wide.
func textTable(b *strings.Builder, t Table) {
	lines := textLines(t)
	if t.Narrow != nil && slices.ContainsFunc(lines, func(s string) bool { return utf8.RuneCountInString(s) > t.Width }) {
		t = *t.Narrow
		lines = textLines(t)
	}
	var above []string
	if t.NoHead&InText == 0 {
		above = append(above, "")
	}
	for _, r := range t.Rows {
		above = append(above, r.Above)
		if t.Beneath && r.hasBeside() {
			above = append(above, "")
		}
	}
	for i, line := range lines {
		if above[i] != "" {
			b.WriteString(above[i] + "\n")
		}
		b.WriteString(line + "\n")
	}
}

// inCell keeps a cell one: tabs and ends of lines are those of the table.
var inCell = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ", "\v", " ", "\f", " ")

// textLines are the lines of a table, its columns aligned.
func textLines(t Table) []string {
	var b strings.Builder
	var flags uint
	end := "\n"
	if t.Right {
		flags, end = tabwriter.AlignRight, "\t\n"
	}
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', flags)
	line := func(cells []string) { fmt.Fprint(tw, strings.Join(cells, "\t")+end) }
	if t.NoHead&InText == 0 {
		var heads []string
		for _, c := range t.Columns {
			heads = append(heads, c.textHead())
		}
		line(heads)
	}
	for _, r := range t.Rows {
		var first, second []string
		for _, c := range r.Cells {
			text := plainText(c.Text)
			if c.inText != nil {
				text = *c.inText
			}
			first, second = append(first, inCell.Replace(text)), append(second, inCell.Replace(c.Beside))
		}
		line(first)
		if t.Beneath && r.hasBeside() {
			line(second)
		}
	}
	tw.Flush() // into a Builder, which never fails
	var lines []string
	for l := range strings.Lines(b.String()) {
		l = strings.TrimSuffix(l, "\n")
		if t.Right || t.Trimmed {
			l = strings.TrimRight(l, " ")
		}
		lines = append(lines, l)
	}
	return lines
}
