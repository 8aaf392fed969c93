package report

import (
	"fmt"
	"html"
	"io"
	"perflab/internal/report/plot"
	"strings"
)

// mdWriter writes GitHub Markdown that MkDocs renders too: pipe tables, fenced
// code, and <details> that hold nothing but fenced code.
type mdWriter struct {
	b strings.Builder
}

// writeTo hands the document over.
func (m *mdWriter) writeTo(w io.Writer, what string) error {
	text := strings.TrimRight(m.b.String(), "\n") + "\n"
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write %s as Markdown: %w", what, err)
	}
	return nil
}

// para writes a paragraph; the arguments are Markdown already.
func (m *mdWriter) para(format string, args ...any) {
	m.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n\n")
}

func (m *mdWriter) heading(level int, text string) {
	m.para("%s %s", strings.Repeat("#", level), mdText(text))
}

// list writes items of plain text.
func (m *mdWriter) list(mark string, items ...string) {
	if len(items) == 0 {
		return
	}
	for i, it := range items {
		if mark == "1." {
			fmt.Fprintf(&m.b, "%d. %s\n", i+1, mdText(it))
		} else {
			fmt.Fprintf(&m.b, "%s %s\n", mark, mdText(it))
		}
	}
	m.b.WriteString("\n")
}

// code writes a fenced block; the fence is longer than any within.
func (m *mdWriter) code(lang, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	m.para("%s%s\n%s\n%s", fence, lang, strings.Trim(text, "\n"), fence)
}

// folded writes a fenced block that opens on a click.
func (m *mdWriter) folded(summary, lang, text string) {
	m.para(`<details markdown="1"><summary>%s</summary>`, html.EscapeString(summary))
	m.code(lang, text)
	m.para("</details>")
}

// row writes a table row; the cells are Markdown already.
func (m *mdWriter) row(cells ...string) {
	m.b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// plots refers to the files beside the document.
func (m *mdWriter) plots(plots []plot.Plot) {
	for _, p := range plots {
		m.para("![%s](plots/%s.svg)", mdText(p.Title), p.Name)
	}
}
