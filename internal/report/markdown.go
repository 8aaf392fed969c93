package report

import (
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"

	"perflab/internal/report/plot"
)

// Markdown writes a document as GitHub Markdown that MkDocs renders too: pipe
// tables, fenced code, and <details> that hold nothing but fenced code. It refers
// to plots/NAME.svg for each plot.
func Markdown(w io.Writer, d Document) error {
	var m markdownWriter
	if d.bare&inMarkdown == 0 {
		m.banner(d.banner)
		m.heading(1, mdText(d.body.title))
	}
	m.items(d.body.items)
	if _, err := io.WriteString(w, strings.TrimRight(m.b.String(), "\n")+"\n"); err != nil {
		return fmt.Errorf("write %s as Markdown: %w", d.subject, err)
	}
	return nil
}

type markdownWriter struct{ b strings.Builder }

func (m *markdownWriter) items(all []item) {
	for _, it := range all {
		if it.in&inMarkdown != 0 {
			m.block(it.block)
		}
	}
}

// line writes Markdown and an empty line.
func (m *markdownWriter) line(text string) {
	if text = strings.TrimRight(text, " "); text != "" {
		m.b.WriteString(text + "\n\n")
	}
}

func (m *markdownWriter) heading(level int, text string) {
	m.line(strings.Repeat("#", level) + " " + text)
}

func (m *markdownWriter) banner(text string) {
	if text != "" {
		m.line("> **" + mdText(text) + "**")
	}
}

func (m *markdownWriter) block(b block) {
	switch b := b.(type) {
	case *section:
		m.section(b)
	case para:
		m.para(b)
	case list:
		m.list(b)
	case table:
		m.table(b)
	case figures:
		for _, p := range b() {
			m.plot(p)
		}
	case pre:
		m.pre(b)
	case terms:
		m.terms(b)
	case gap:
		m.b.WriteString("\n\n")
	case banner:
		m.banner(string(b))
	}
}

func (m *markdownWriter) section(s *section) {
	var inner markdownWriter
	inner.items(s.items)
	if inner.b.Len() == 0 {
		return
	}
	if s.title != "" {
		m.heading(s.level, mdText(s.title+s.suffix))
	}
	m.b.WriteString(inner.b.String())
}

func (m *markdownWriter) para(p para) {
	text := mdSpans(p.text)
	switch {
	case strings.TrimSpace(text) == "":
	case p.class == "lead":
		m.line("**" + text + "**")
	case p.class == "note":
		m.line("> " + text)
	default:
		m.line(text)
	}
}

func (m *markdownWriter) list(l list) {
	for i, it := range l.items {
		mark := "-"
		if l.numbered {
			mark = fmt.Sprintf("%d.", i+1)
		}
		m.b.WriteString(mark + " " + mdSpans(it) + "\n")
	}
	if len(l.items) > 0 {
		m.b.WriteString("\n")
	}
}

func (m *markdownWriter) terms(all terms) {
	for _, t := range all {
		text := mdText(t.text)
		if t.tone == "down" {
			text = "**" + text + "**"
		}
		m.b.WriteString("- **" + mdText(t.name) + ":** " + text + "\n")
	}
	m.b.WriteString("\n")
}

func (m *markdownWriter) plot(p plot.Plot) {
	m.line(fmt.Sprintf("![%s](plots/%s.svg)", mdText(p.Title), p.Name))
}

// pre writes a fenced block; the fence is longer than any within.
func (m *markdownWriter) pre(p pre) {
	fence, language := "```", "text"
	for strings.Contains(p.text, fence) {
		fence += "`"
	}
	if p.commands {
		language = "bash"
	}
	if p.summary != "" {
		m.line(`<details markdown="1"><summary>` + html.EscapeString(p.summary) + `</summary>`)
	}
	m.line(fmt.Sprintf("%s%s\n%s\n%s", fence, language, strings.Trim(p.text, "\n"), fence))
	if p.summary != "" {
		m.line("</details>")
	}
}

func (m *markdownWriter) table(t table) {
	rows := t.rows
	if len(rows) == 0 && !t.empty {
		return
	}
	if t.caption != "" {
		m.line(mdText(t.caption) + ":")
	}
	var heads, rules []string
	for _, c := range t.columns {
		rule := "---"
		if c.right {
			rule = "---:"
		}
		heads, rules = append(heads, mdSpans(c.head)), append(rules, rule)
	}
	m.row(heads)
	m.row(rules)
	if t.most > 0 && len(rows) > t.most {
		rows = rows[:t.most]
	}
	for _, r := range rows {
		var all []string
		for i, c := range r.cells {
			all = append(all, mdCell(c, t.values, i == 0 && r.bold))
		}
		m.row(all)
	}
	m.b.WriteString("\n")
	if n := len(t.rows) - len(rows); n > 0 {
		m.line("and " + count(n, "more row") + " in `study.json`.")
	}
}

func (m *markdownWriter) row(cells []string) {
	m.b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func mdCell(c cell, valueOnly, strong bool) string {
	text := c.text
	if c.markdown != nil {
		text = c.markdown
	}
	s := mdSpans(text)
	if c.beside != "" && !valueOnly {
		s += " (" + mdText(c.beside) + ")"
	}
	if s != "" && (c.strong || strong) {
		s = "**" + s + "**"
	}
	return s
}

// mdSpans writes a line.
func mdSpans(all []span) string {
	var b strings.Builder
	for _, s := range all {
		switch s.kind {
		case wordSpan:
			b.WriteString(s.text)
		case codeSpan:
			b.WriteString(mdCode(s.text))
		case boldSpan:
			b.WriteString("**" + mdSpans(s.inner) + "**")
		case smallSpan:
			b.WriteString(mdSpans(s.inner))
		case breakSpan:
			b.WriteString("<br>")
		default:
			if strings.HasPrefix(s.text, " ") {
				b.WriteString(" ")
			}
			text := mdText(s.text)
			b.WriteString(text)
			if text != "" && strings.HasSuffix(s.text, " ") {
				b.WriteString(" ")
			}
		}
	}
	return strings.TrimSpace(b.String())
}

// mdText escapes plain text so that it reads the same in a paragraph, a
// heading or a table cell.
func mdText(s string) string {
	var b strings.Builder
	r := []rune(strings.Join(strings.Fields(s), " "))
	for i, c := range r {
		switch c {
		case '\\', '`', '*', '[', ']', '~', '|':
			b.WriteByte('\\')
			b.WriteRune(c)
		case '_':
			if i == 0 || i == len(r)-1 || !alphanumeric(r[i-1]) || !alphanumeric(r[i+1]) {
				b.WriteByte('\\') // within a word it is plain
			}
			b.WriteRune(c)
		case '<':
			b.WriteString("&lt;")
		case '&':
			b.WriteString("&amp;")
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func alphanumeric(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// mdCode writes a code span, also within a table cell. Of nothing it is
// nothing: two backticks would show.
func mdCode(s string) string {
	if strings.TrimSpace(s) == "" {
		return ""
	}
	ticks, pad := "`", ""
	for strings.Contains(s, ticks) {
		ticks, pad = ticks+"`", " "
	}
	s = strings.Join(strings.Fields(s), " ")
	return ticks + pad + strings.ReplaceAll(s, "|", `\|`) + pad + ticks
}
