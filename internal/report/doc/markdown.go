package doc

import (
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
	"unicode"

	"perflab/internal/redact"
	"perflab/internal/report/plot"
)

// Markdown writes a document as GitHub Markdown that MkDocs renders too: pipe
// tables, fenced code, and <details> that hold nothing but fenced code. It refers
// to plots/NAME.svg for each plot.
func Markdown(w io.Writer, d Document) error {
	var m markdownWriter
	if d.Bare&InMarkdown == 0 {
		m.banner(d.Banner)
		m.heading(1, mdText(d.Body.Title))
	}
	m.items(d.Body.Items)
	if _, err := io.WriteString(w, redact.Shown(strings.TrimRight(m.b.String(), "\n")+"\n")); err != nil {
		return fmt.Errorf("write %s as Markdown: %w", d.subject, err)
	}
	return nil
}

type markdownWriter struct{ b strings.Builder }

func (m *markdownWriter) items(all []item) {
	for _, it := range all {
		if it.in&InMarkdown != 0 {
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
	case *Section:
		m.section(b)
	case Para:
		m.para(b)
	case List:
		m.list(b)
	case Table:
		m.table(b)
	case figures:
		for _, p := range b() {
			m.plot(p)
		}
	case Pre:
		m.pre(b)
	case Definitions:
		m.definitions(b)
	case Gap:
		m.b.WriteString("\n\n")
	case Banner:
		m.banner(string(b))
	}
}

func (m *markdownWriter) section(s *Section) {
	var inner markdownWriter
	inner.items(s.Items)
	if inner.b.Len() == 0 {
		return
	}
	if s.Title != "" {
		m.heading(s.Level, mdText(s.Title+s.Suffix))
	}
	m.b.WriteString(inner.b.String())
}

func (m *markdownWriter) para(p Para) {
	text := mdSpans(p.Text)
	switch {
	case strings.TrimSpace(text) == "":
	case p.class == "lead":
		m.line("**" + text + "**")
	case p.class == "note":
		m.line("> " + text)
	default:
		m.line(unmarked(text))
	}
}

// blockMark is what makes a paragraph a heading, a quotation, a list or a rule.
var blockMark = regexp.MustCompile(`^(?:#{1,6}(?:\s|$)|>|[-+](?:\s|$)|[-=]{3}|\d{1,9}[.)](?:\s|$))`)

// unmarked keeps a paragraph one: what begins it may come from anywhere.
func unmarked(text string) string {
	at := blockMark.FindStringIndex(text)
	if at == nil {
		return text
	}
	mark := strings.TrimRight(text[:at[1]], " ")
	if n := len(mark) - 1; mark[n] == '.' || mark[n] == ')' { // 1. is a number before it is a mark
		return mark[:n] + `\` + text[n:]
	}
	return `\` + text
}

func (m *markdownWriter) list(l List) {
	for i, it := range l.Items {
		mark := "-"
		if l.Numbered {
			mark = fmt.Sprintf("%d.", i+1)
		}
		m.b.WriteString(mark + " " + unmarked(mdSpans(it)) + "\n")
	}
	if len(l.Items) > 0 {
		m.b.WriteString("\n")
	}
}

func (m *markdownWriter) definitions(all Definitions) {
	for _, t := range all {
		text := mdText(t.Text)
		if t.Tone == "down" {
			text = "**" + text + "**"
		}
		m.b.WriteString("- **" + mdText(t.Name) + ":** " + text + "\n")
	}
	m.b.WriteString("\n")
}

func (m *markdownWriter) plot(p plot.Plot) {
	m.line(fmt.Sprintf("![%s](plots/%s.svg)", mdText(p.Title), p.Name))
}

// pre writes a fenced block; the fence is longer than any within.
func (m *markdownWriter) pre(p Pre) {
	fence, language := "```", "text"
	for strings.Contains(p.Text, fence) {
		fence += "`"
	}
	if p.Commands {
		language = "bash"
	}
	if p.Summary != "" {
		m.line(`<details markdown="1"><summary>` + mdSummary(p.Summary) + `</summary>`)
	}
	m.line(fmt.Sprintf("%s%s\n%s\n%s", fence, language, strings.Trim(p.Text, "\n"), fence))
	if p.Summary != "" {
		m.line("</details>")
	}
}

// mdSummary is plain text within an element in which MkDocs reads Markdown.
func mdSummary(s string) string {
	return summaryEscaper.Replace(html.EscapeString(strings.Join(strings.Fields(redact.Shown(s)), " ")))
}

var summaryEscaper = strings.NewReplacer("`", "&#96;", "*", "&#42;", "[", "&#91;", "]", "&#93;", "|", "&#124;", "~~", "&#126;&#126;")

func (m *markdownWriter) table(t Table) {
	rows := t.Rows
	if len(rows) == 0 && !t.Empty {
		return
	}
	if t.Caption != "" {
		m.line(mdText(t.Caption) + ":")
	}
	var heads, rules []string
	for _, c := range t.Columns {
		rule := "---"
		if c.Right {
			rule = "---:"
		}
		heads, rules = append(heads, mdSpans(c.Head)), append(rules, rule)
	}
	m.row(heads)
	m.row(rules)
	if t.most > 0 && len(rows) > t.most {
		rows = rows[:t.most]
	}
	for _, r := range rows {
		var all []string
		for i, c := range r.Cells {
			all = append(all, mdCell(c, t.Values, i == 0 && r.Bold))
		}
		m.row(all)
	}
	m.b.WriteString("\n")
	if n := len(t.Rows) - len(rows); n > 0 {
		noun := "rows"
		if n == 1 {
			noun = "row"
		}
		m.line(fmt.Sprintf("and %d more %s in %s.", n, noun, mdCode(t.source)))
	}
}

func (m *markdownWriter) row(cells []string) {
	m.b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func mdCell(c Cell, valueOnly, strong bool) string {
	text := c.Text
	if c.Markdown != nil {
		text = c.Markdown
	}
	s := mdSpans(text)
	if c.Beside != "" && !valueOnly {
		s += " (" + mdText(c.Beside) + ")"
	}
	if s != "" && (c.Strong || strong) {
		s = "**" + s + "**"
	}
	return s
}

// mdSpans writes a line.
func mdSpans(all []Span) string {
	var b strings.Builder
	for _, s := range all {
		switch s.kind {
		case wordSpan:
			b.WriteString(s.Text)
		case codeSpan:
			b.WriteString(mdCode(s.Text))
		case boldSpan:
			b.WriteString("**" + mdSpans(s.inner) + "**")
		case smallSpan:
			b.WriteString(mdSpans(s.inner))
		case breakSpan:
			b.WriteString("<br>")
		default:
			if strings.HasPrefix(s.Text, " ") {
				b.WriteString(" ")
			}
			text := mdText(s.Text)
			b.WriteString(text)
			if text != "" && strings.HasSuffix(s.Text, " ") {
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
	// Before escaping, which would tear apart what steers a terminal.
	r := []rune(strings.Join(strings.Fields(redact.Shown(s)), " "))
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
	s = redact.Shown(s)
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
