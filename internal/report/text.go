package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"perflab/internal/report/plot"
)

// Text writes a document for a terminal: its lines and tables, without headings.
func Text(w io.Writer, d Document) error {
	var b strings.Builder
	if d.banner != "" && d.bare&inText == 0 {
		b.WriteString(d.banner + "\n\n")
	}
	textItems(&b, d.body.items)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write %s: %w", d.subject, err)
	}
	return nil
}

func textItems(b *strings.Builder, all []item) {
	for _, it := range all {
		if it.in&inText == 0 {
			continue
		}
		switch k := it.block.(type) {
		case *section:
			textItems(b, k.items)
		case verbatim:
			b.WriteString(string(k))
		case para:
			b.WriteString(plainText(k.text) + "\n")
		case list:
			for _, text := range k.items {
				b.WriteString(plainText(text) + "\n")
			}
		case table:
			textTable(b, k)
		case terms:
			for _, t := range k {
				fmt.Fprintf(b, "%-16s %s\n", t.name, plot.Clip(oneLine(t.text), textWidth))
			}
		}
	}
}

// textWidth bounds what a line of terms says.
const textWidth = 300

// oneLine joins the words of s by single spaces, so that a label cannot break a
// table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// plainText is a line without its forms.
func plainText(all []span) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(s.text + plainText(s.inner))
	}
	return b.String()
}

// textTable writes a table, or the narrow one in its place where it is too wide.
func textTable(b *strings.Builder, t table) {
	lines := textLines(t)
	if t.narrow != nil && slices.ContainsFunc(lines, func(s string) bool { return utf8.RuneCountInString(s) > t.width }) {
		t = *t.narrow
		lines = textLines(t)
	}
	var above []string
	if t.noHead&inText == 0 {
		above = append(above, "")
	}
	for _, r := range t.rows {
		above = append(above, r.above)
		if t.beneath && r.hasBeside() {
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

// textLines are the lines of a table, its columns aligned.
func textLines(t table) []string {
	var b strings.Builder
	var flags uint
	end := "\n"
	if t.right {
		flags, end = tabwriter.AlignRight, "\t\n"
	}
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', flags)
	line := func(cells []string) { fmt.Fprint(tw, strings.Join(cells, "\t")+end) }
	if t.noHead&inText == 0 {
		var heads []string
		for _, c := range t.columns {
			heads = append(heads, c.textHead())
		}
		line(heads)
	}
	for _, r := range t.rows {
		var first, second []string
		for _, c := range r.cells {
			text := plainText(c.text)
			if c.inText != nil {
				text = *c.inText
			}
			first, second = append(first, text), append(second, c.beside)
		}
		line(first)
		if t.beneath && r.hasBeside() {
			line(second)
		}
	}
	tw.Flush() // into a Builder, which never fails
	var lines []string
	for l := range strings.Lines(b.String()) {
		l = strings.TrimSuffix(l, "\n")
		if t.right || t.trimmed {
			l = strings.TrimRight(l, " ")
		}
		lines = append(lines, l)
	}
	return lines
}
