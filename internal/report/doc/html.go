package doc

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"perflab/internal/redact"
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
func HTML(w io.Writer, d Document) error { return Page(w, d, Frame{}) }

// Page writes a document as a page in a frame. It is HTML's page with links to the others and
// a search, whose index is the one file that it loads.
func Page(w io.Writer, d Document, f Frame) error {
	in := parts(d)
	title := htmlEscaper.Replace(in.Title)
	var b strings.Builder
	b.WriteString(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'` + f.sources() + `">
<title>` + title + f.titled() + `</title>
` + f.feed() + `<style>` + Style() + `</style>
</head>
<body>
` + f.bar())
	if in.Banner != "" {
		b.WriteString(`<div class="sim" role="alert">` + htmlEscaper.Replace(in.Banner) + "</div>\n")
	}
	b.WriteString(`<div class="layout">
<nav aria-label="Contents"><details open><summary>Contents</summary><ol>
` + in.Contents + `</ol></details></nav>
<main>
<h1>` + title + `</h1>
` + in.Body + `</main>
</div>
<script>` + Script() + `</script>
` + f.scripts() + `</body>
</html>

` + strings.Repeat("\n", d.Tail))
	if _, err := io.WriteString(w, redact.Shown(b.String())); err != nil {
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
		if it.in&InPage != 0 {
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
	case *Section:
		h.section(b)
	case Para:
		h.para(b)
	case List:
		h.list(b)
	case Table:
		h.table(b)
	case figures:
		h.figures(b())
	case Pre:
		h.pre(b)
	case Tiles:
		h.tiles(b)
	case Definitions:
		h.definitions(b)
	}
}

func (h *htmlWriter) section(s *Section) {
	var inner htmlWriter
	inner.items(s.Items)
	content := inner.b.String()
	if strings.TrimSpace(content) == "" {
		if s.Listed {
			h.entries = append(h.entries, contentsEntry{})
		}
		return
	}
	title := s.Title
	if s.Page != "" {
		title = s.Page
	}
	if s.Listed {
		e := contentsEntry{id: s.ID, title: title, inner: inner.entries}
		if s.Entry != "" {
			e.title = s.Entry
		}
		h.entries = append(h.entries, e)
	}
	heading := fmt.Sprintf("h%d", s.Level)
	switch {
	case s.Element == "":
		h.element(heading, "id", s.ID)
		h.b.WriteString(htmlEscaper.Replace(title) + "</" + heading + ">")
	case s.Labels != nil:
		h.element(s.Element, "class", s.Class, "id", s.ID)
		if s.Broken {
			h.b.WriteString("\n")
		}
		h.b.WriteString("<header><" + heading + ">" + htmlEscaper.Replace(title) + "</" + heading + ">" + htmlSpans(s.Labels) + "</header>")
	case title == "":
		h.element(s.Element, "class", s.Class, "id", s.ID)
	default:
		h.element(s.Element, "class", s.Class, "id", s.ID)
		h.b.WriteString("<" + heading + ">" + htmlEscaper.Replace(title) + "</" + heading + ">")
	}
	if !s.Tight {
		h.b.WriteString("\n")
	}
	if s.Element == "" {
		content = strings.TrimSuffix(content, "\n")
	} else {
		content += "</" + s.Element + ">"
	}
	h.b.WriteString(content)
}

func (h *htmlWriter) para(p Para) {
	if text := htmlSpans(p.Text); text != "" {
		h.element("p", "class", p.class)
		h.b.WriteString(text + "</p>")
	}
}

func (h *htmlWriter) list(l List) {
	if len(l.Items) == 0 {
		return
	}
	name, end := "ul", ""
	if l.Numbered {
		name = "ol"
	}
	if l.Lines {
		end = "\n"
	}
	h.element(name)
	for _, it := range l.Items {
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
		h.b.WriteString(`<div class="plotbox"` + reachable + `>` + p.Inline() + "</div>") // the text of a plot is escaped when it is drawn
		if p.Phone != "" {
			h.b.WriteString(`<div class="phone">` + p.Phone + "</div>")
		}
		h.b.WriteString("</figure>\n")
	}
	h.b.WriteString("</div>")
}

// reachable lets a keyboard scroll what is wider than the page. The script of the page takes
// it off where nothing is.
const reachable = ` tabindex="0"`

// pre writes a block of text. The script of the page gives commands a button.
func (h *htmlWriter) pre(p Pre) {
	if p.Text == "" {
		return
	}
	text := "<pre" + reachable + "><code>" + htmlEscaper.Replace(p.Text) + "</code></pre>"
	switch {
	case p.Bare:
		text = "<pre" + reachable + ">" + htmlEscaper.Replace(p.Text) + "</pre>"
	case p.Commands:
		text = `<div class="cmd">` + text + "</div>"
	}
	if p.Summary == "" {
		h.b.WriteString(text)
		return
	}
	start := "<details>"
	if p.Open {
		start = "<details open>"
	}
	if p.Commands {
		text += "\n"
	}
	h.b.WriteString(start + "<summary>" + htmlEscaper.Replace(p.Summary) + "</summary>" + text)
	h.para(Para{"muted", p.After})
	h.b.WriteString("</details>")
}

func (h *htmlWriter) tiles(all Tiles) {
	if len(all) == 0 {
		return
	}
	h.b.WriteString(`<dl class="key">` + "\n")
	for _, t := range all {
		h.b.WriteString("<div")
		if t.Tone != nil {
			h.attribute("class", *t.Tone)
		}
		fmt.Fprintf(&h.b, "><dt>%s</dt><dd>%s<small>%s</small></dd></div>\n", htmlEscaper.Replace(t.Label), htmlEscaper.Replace(t.Value), htmlEscaper.Replace(t.Beside))
	}
	h.b.WriteString("</dl>")
}

func (h *htmlWriter) definitions(all Definitions) {
	h.b.WriteString(`<dl class="answers">`)
	for _, t := range all {
		h.b.WriteString("<dt>" + htmlEscaper.Replace(t.Name) + "</dt>")
		h.element("dd", "class", t.Tone)
		h.b.WriteString(htmlEscaper.Replace(t.Text) + "</dd>\n")
	}
	h.b.WriteString("</dl>")
}

func (h *htmlWriter) table(t Table) {
	if len(t.Rows) == 0 && !t.Empty {
		return
	}
	if t.Caption != "" {
		h.b.WriteString("<details><summary>" + htmlEscaper.Replace(t.Caption) + "</summary>")
	}
	h.b.WriteString(`<div class="tablebox"` + reachable + `>`)
	h.element("table", "class", t.Class)
	if t.NoHead&InPage == 0 {
		h.b.WriteString("<thead><tr>")
		for _, c := range t.Columns {
			h.head(c)
		}
		h.b.WriteString("</tr></thead>")
	}
	h.b.WriteString("<tbody>\n")
	for _, r := range t.Rows {
		h.element("tr", "class", r.Class)
		for i, c := range r.Cells {
			h.cell(t, i, c)
		}
		h.b.WriteString("</tr>\n")
	}
	h.b.WriteString("</tbody></table></div>")
	if t.Caption != "" {
		h.b.WriteString("</details>")
	}
}

func (h *htmlWriter) head(c Column) {
	class, text := "", c.Head
	if c.Right {
		class = "n"
	}
	if c.Wrap {
		class = strings.TrimSpace(class + " wrap")
	}
	if c.Page != nil {
		text = c.Page
	}
	h.element("th", "scope", "col", "class", class, "title", c.Tip)
	h.b.WriteString(htmlSpans(text) + "</th>")
}

// cell writes cell i of a row.
func (h *htmlWriter) cell(t Table, i int, c Cell) {
	if c.Covered {
		return
	}
	var col Column
	if i < len(t.Columns) {
		col = t.Columns[i]
	}
	name, class := "td", col.Class
	switch {
	case i == t.HeadCell:
		name = "th"
	case col.Right:
		class = "n"
	}
	class = strings.TrimSpace(class + " " + c.class)
	if class != "" && (c.Tone != "" || col.Toned) {
		class += " "
	}
	class += c.Tone
	h.b.WriteString("<" + name)
	if name == "th" {
		h.attribute("scope", "row")
	}
	if class != "" || col.Toned {
		h.attribute("class", class)
	}
	if t.Class == "cards" {
		h.attribute("data-label", plainText(col.Head))
	}
	if c.Tip != "" || col.Tipped {
		h.attribute("title", c.Tip)
	}
	if c.Rows > 0 {
		h.attribute("rowspan", fmt.Sprint(c.Rows))
	}
	text := c.Text
	if c.Page != nil {
		text = c.Page
	}
	h.b.WriteString(">" + htmlSpans(text))
	if c.Beside != "" {
		h.b.WriteString(`<small class="ci">` + htmlEscaper.Replace(c.Beside) + "</small>")
	}
	h.b.WriteString("</" + name + ">")
}

// htmlSpans writes a line.
func htmlSpans(all []Span) string {
	var b strings.Builder
	for _, s := range all {
		text := htmlEscaper.Replace(s.Text)
		switch s.kind {
		case wordSpan:
			text = s.Text
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
