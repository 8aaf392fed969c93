package report

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"perflab/internal/report/plot"
)

var (
	//go:embed page/page.css
	pageStyle string
	//go:embed page/page.js
	pageScript string
)

// HTML writes a document as one page that needs no other file: style, script and
// plots are inside, and its content policy forbids the browser to fetch anything.
func HTML(w io.Writer, d Document) error {
	var h htmlWriter
	h.items(d.body.items)
	title := htmlEscaper.Replace(d.body.title)
	var b strings.Builder
	b.WriteString(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>` + title + `</title>
<style>` + pageStyle + plot.Style + `</style>
</head>
<body>
`)
	if d.banner != "" {
		b.WriteString(`<div class="sim" role="alert">` + htmlEscaper.Replace(d.banner) + "</div>\n")
	}
	b.WriteString(`<div class="layout">
<nav aria-label="Contents"><details open><summary>Contents</summary><ol>
` + contents(h.entries) + `</ol></details></nav>
<main>
<h1>` + title + `</h1>
` + h.b.String() + `</main>
</div>
<script>` + pageScript + `</script>
</body>
</html>

` + strings.Repeat("\n", d.tail))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write %s as HTML: %w", d.subject, err)
	}
	return nil
}

// htmlEscaper escapes plain text for content and for attributes in quotes.
var htmlEscaper = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")

type htmlWriter struct {
	b       strings.Builder
	entries []contentsEntry
}

// contentsEntry is a line of the contents.
type contentsEntry struct {
	id, title string // no id: of a section that is left out
	inner     []contentsEntry
}

// contents are the entries of a list; lines of their own where any has others
// within.
func contents(all []contentsEntry) string {
	var b strings.Builder
	end := ""
	for _, e := range all {
		if e.inner != nil {
			end = "\n"
		}
	}
	for _, e := range all {
		if e.id != "" {
			inner := ""
			if e.inner != nil {
				inner = "<ol>\n"
				for _, k := range e.inner {
					inner += contents([]contentsEntry{k})
				}
				inner += "</ol>"
			}
			fmt.Fprintf(&b, `<li><a href="#%s">%s</a>%s</li>`, htmlEscaper.Replace(e.id), htmlEscaper.Replace(e.title), inner)
		}
		b.WriteString(end)
	}
	if end == "" {
		b.WriteString("\n")
	}
	return b.String()
}

func (h *htmlWriter) items(all []item) {
	for _, it := range all {
		if it.in&inPage != 0 {
			h.block(it.block)
			if !it.tight {
				h.b.WriteString("\n")
			}
		}
	}
}

// element writes a start tag with those attributes that have a value: names and
// values in turn.
func (h *htmlWriter) element(name string, attributes ...string) {
	h.b.WriteString("<" + name)
	for i := 0; i < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			h.attribute(attributes[i], attributes[i+1])
		}
	}
	h.b.WriteString(">")
}

func (h *htmlWriter) attribute(name, value string) {
	h.b.WriteString(" " + name + `="` + htmlEscaper.Replace(value) + `"`)
}

// block writes a block without the end of its last line.
func (h *htmlWriter) block(b block) {
	switch b := b.(type) {
	case *section:
		h.section(b)
	case para:
		h.para(b)
	case list:
		h.list(b)
	case table:
		h.table(b)
	case figures:
		h.figures(b())
	case pre:
		h.pre(b)
	case tiles:
		h.tiles(b)
	case terms:
		h.terms(b)
	}
}

func (h *htmlWriter) section(s *section) {
	var inner htmlWriter
	inner.items(s.items)
	content := inner.b.String()
	if strings.TrimSpace(content) == "" {
		if s.listed {
			h.entries = append(h.entries, contentsEntry{})
		}
		return
	}
	title := s.title
	if s.page != "" {
		title = s.page
	}
	if s.listed {
		e := contentsEntry{id: s.id, title: title, inner: inner.entries}
		if s.entry != "" {
			e.title = s.entry
		}
		h.entries = append(h.entries, e)
	}
	heading := fmt.Sprintf("h%d", s.level)
	switch {
	case s.element == "":
		h.element(heading, "id", s.id)
		h.b.WriteString(htmlEscaper.Replace(title) + "</" + heading + ">")
	case s.labels != nil:
		h.element(s.element, "class", s.class, "id", s.id)
		if s.broken {
			h.b.WriteString("\n")
		}
		h.b.WriteString("<header><" + heading + ">" + htmlEscaper.Replace(title) + "</" + heading + ">" + htmlSpans(s.labels) + "</header>")
	case title == "":
		h.element(s.element, "class", s.class, "id", s.id)
	default:
		h.element(s.element, "class", s.class, "id", s.id)
		h.b.WriteString("<" + heading + ">" + htmlEscaper.Replace(title) + "</" + heading + ">")
	}
	if !s.tight {
		h.b.WriteString("\n")
	}
	if s.element == "" {
		content = strings.TrimSuffix(content, "\n")
	} else {
		content += "</" + s.element + ">"
	}
	h.b.WriteString(content)
}

func (h *htmlWriter) para(p para) {
	if text := htmlSpans(p.text); text != "" {
		h.element("p", "class", p.class)
		h.b.WriteString(text + "</p>")
	}
}

func (h *htmlWriter) list(l list) {
	if len(l.items) == 0 {
		return
	}
	name, end := "ul", ""
	if l.numbered {
		name = "ol"
	}
	if l.lines {
		end = "\n"
	}
	h.element(name)
	for _, it := range l.items {
		h.b.WriteString("<li>" + htmlSpans(it) + "</li>" + end)
	}
	h.b.WriteString("</" + name + ">")
}

func (h *htmlWriter) figures(all []plot.Plot) {
	if len(all) == 0 {
		return
	}
	h.element("div", "class", "plots")
	for _, p := range all {
		class := ""
		if p.Half {
			class = "half"
		}
		h.element("figure", "class", class)
		h.b.WriteString(p.Inline() + "</figure>\n") // the text of a plot is escaped when it is drawn
	}
	h.b.WriteString("</div>")
}

// pre writes a block of text. The script of the page gives commands a button.
func (h *htmlWriter) pre(p pre) {
	if p.text == "" {
		return
	}
	text := "<pre><code>" + htmlEscaper.Replace(p.text) + "</code></pre>"
	switch {
	case p.bare:
		text = "<pre>" + htmlEscaper.Replace(p.text) + "</pre>"
	case p.commands:
		text = `<div class="cmd">` + text + "</div>"
	}
	if p.summary == "" {
		h.b.WriteString(text)
		return
	}
	start := "<details>"
	if p.open {
		start = "<details open>"
	}
	if p.commands {
		text += "\n"
	}
	h.b.WriteString(start + "<summary>" + htmlEscaper.Replace(p.summary) + "</summary>" + text)
	h.para(para{"muted", p.after})
	h.b.WriteString("</details>")
}

func (h *htmlWriter) tiles(all tiles) {
	if len(all) == 0 {
		return
	}
	h.b.WriteString(`<dl class="key">` + "\n")
	for _, t := range all {
		h.b.WriteString("<div")
		if t.tone != nil {
			h.attribute("class", *t.tone)
		}
		fmt.Fprintf(&h.b, "><dt>%s</dt><dd>%s<small>%s</small></dd></div>\n", htmlEscaper.Replace(t.label), htmlEscaper.Replace(t.value), htmlEscaper.Replace(t.beside))
	}
	h.b.WriteString("</dl>")
}

func (h *htmlWriter) terms(all terms) {
	h.b.WriteString(`<dl class="answers">`)
	for _, t := range all {
		h.b.WriteString("<dt>" + htmlEscaper.Replace(t.name) + "</dt>")
		h.element("dd", "class", t.tone)
		h.b.WriteString(htmlEscaper.Replace(t.text) + "</dd>\n")
	}
	h.b.WriteString("</dl>")
}

func (h *htmlWriter) table(t table) {
	if len(t.rows) == 0 && !t.empty {
		return
	}
	if t.caption != "" {
		h.b.WriteString("<details><summary>" + htmlEscaper.Replace(t.caption) + "</summary>")
	}
	h.b.WriteString(`<div class="tablebox">`)
	h.element("table", "class", t.class)
	if t.noHead&inPage == 0 {
		h.b.WriteString("<thead><tr>")
		for _, c := range t.columns {
			h.head(c)
		}
		h.b.WriteString("</tr></thead>")
	}
	h.b.WriteString("<tbody>\n")
	for _, r := range t.rows {
		h.element("tr", "class", r.class)
		for i, c := range r.cells {
			h.cell(t, i, c)
		}
		h.b.WriteString("</tr>\n")
	}
	h.b.WriteString("</tbody></table></div>")
	if t.caption != "" {
		h.b.WriteString("</details>")
	}
}

func (h *htmlWriter) head(c column) {
	class, text := "", c.head
	if c.right {
		class = "n"
	}
	if c.wrap {
		class = strings.TrimSpace(class + " wrap")
	}
	if c.page != nil {
		text = c.page
	}
	h.element("th", "class", class, "title", c.tip)
	h.b.WriteString(htmlSpans(text) + "</th>")
}

// cell writes cell i of a row.
func (h *htmlWriter) cell(t table, i int, c cell) {
	if c.covered {
		return
	}
	var col column
	if i < len(t.columns) {
		col = t.columns[i]
	}
	name, class := "td", col.class
	switch {
	case i == t.headCell:
		name = "th"
	case col.right:
		class = "n"
	}
	class = strings.TrimSpace(class + " " + c.class)
	if class != "" && (c.tone != "" || col.toned) {
		class += " "
	}
	class += c.tone
	h.b.WriteString("<" + name)
	if class != "" || col.toned {
		h.attribute("class", class)
	}
	if c.tip != "" || col.tipped {
		h.attribute("title", c.tip)
	}
	if c.rows > 0 {
		h.attribute("rowspan", fmt.Sprint(c.rows))
	}
	text := c.text
	if c.page != nil {
		text = c.page
	}
	h.b.WriteString(">" + htmlSpans(text))
	if c.beside != "" {
		h.b.WriteString(`<small class="ci">` + htmlEscaper.Replace(c.beside) + "</small>")
	}
	h.b.WriteString("</" + name + ">")
}

// htmlSpans writes a line.
func htmlSpans(all []span) string {
	var b strings.Builder
	for _, s := range all {
		text := htmlEscaper.Replace(s.text)
		switch s.kind {
		case wordSpan:
			text = s.text
		case codeSpan:
			text = "<code>" + text + "</code>"
		case boldSpan:
			text = "<b>" + htmlSpans(s.inner) + "</b>"
		case smallSpan:
			text = "<small>" + htmlSpans(s.inner) + "</small>"
		case tagSpan:
			text = `<span class="` + htmlEscaper.Replace(s.class) + `">` + text + "</span>"
		case linkSpan:
			text = `<a href="` + htmlEscaper.Replace(s.href) + `">` + text + "</a>"
		case breakSpan:
			text = "<br>"
		}
		b.WriteString(text)
	}
	return b.String()
}
