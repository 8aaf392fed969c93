package report

import (
	"fmt"
	"strings"

	"perflab/internal/report/plot"
)

// Document is a report for a reader: sections of paragraphs, tables, figures and
// blocks of text. What is not for every form says for which it is. Text,
// Markdown and HTML write it.
type Document struct {
	body    section
	banner  string // above everything else
	subject string // names the document in errors
	bare    form   // forms that begin with neither banner nor title
	tail    int    // empty lines after the end of a page
}

func newDocument(title, banner, subject string) Document {
	return Document{body: section{level: 1, title: title}, banner: banner, subject: subject}
}

// form is a set of the forms of a document.
type form uint8

const (
	inText form = 1 << iota
	inMarkdown
	inPage
	inDocument = inMarkdown | inPage
	everywhere = inText | inDocument
)

// block is one of the types below.
type block any

// item is a block with the forms that it is for.
type item struct {
	in    form
	block block
	tight bool // a page does not end the line after it
}

// section is a part of a document under a heading. In a form for which none of
// its blocks has anything it is left out, its heading with it.
type section struct {
	level   int // of the heading, from 1
	id      string
	title   string
	page    string // title on a page, where it is another
	listed  bool   // among the contents of a page
	entry   string // there, where it is another than the title
	element string // that holds it on a page: section, article
	class   string // of that element
	labels  []span // beside the title, on a page
	suffix  string // of the title, in Markdown
	broken  bool   // a page ends the line before the heading
	tight   bool   // a page does not end the line after the heading
	items   []item
}

// section begins a part under a title in words, which a page writes in lower
// case and lists in its contents.
func (s *section) section(id, title string) *section {
	page := title
	if title != "" {
		page = title[:1] + strings.ToLower(title[1:])
	}
	return s.part(everywhere, section{id: id, title: title, page: page, listed: true})
}

// part begins a part as it is described.
func (s *section) part(in form, p section) *section {
	if p.level == 0 {
		p.level = s.level + 1
	}
	s.add(in, &p)
	return &p
}

func (s *section) add(in form, b block) { s.items = append(s.items, item{in: in, block: b}) }

// joined makes a page go on in the same line after the block added last.
func (s *section) joined() { s.items[len(s.items)-1].tight = true }

// text adds lines for a terminal.
func (s *section) text(lines ...string) {
	for _, l := range lines {
		s.add(inText, verbatim(l+"\n"))
	}
}

func (s *section) textf(format string, args ...any) { s.text(fmt.Sprintf(format, args...)) }

// para adds a paragraph for documents; see spans for its parts.
func (s *section) para(parts ...any) { s.add(inDocument, para{text: spans(parts...)}) }

// styled adds a paragraph of a class: lead, note, muted, result.
func (s *section) styled(in form, class string, parts ...any) {
	s.add(in, para{class, spans(parts...)})
}

// styledEach adds a paragraph for each text.
func (s *section) styledEach(in form, class string, texts ...string) {
	for _, t := range texts {
		s.styled(in, class, t)
	}
}

// list adds a list of plain texts.
func (s *section) list(in form, texts ...string) {
	l := list{}
	for _, t := range texts {
		l.items = append(l.items, spans(t))
	}
	s.add(in, l)
}

// The blocks.
type (
	// verbatim is text for a terminal as it stands.
	verbatim string

	// para is a paragraph. In Markdown one of class lead is bold and a note is
	// quoted.
	para struct {
		class string
		text  []span
	}

	// list is a list of points, or a numbered one. On a page, items of lines end
	// their line.
	list struct {
		numbered, lines bool
		items           [][]span
	}

	// figures are plots. They are drawn when a form shows them.
	figures func() []plot.Plot

	// pre is a block of text, or commands to copy. With a summary it opens on a
	// click.
	pre struct {
		commands bool
		text     string
		summary  string
		open     bool   // already
		bare     bool   // no code element on a page
		after    []span // under it on a page, within what opens
	}

	// tiles are the figures that a reader of a page looks for first.
	tiles []tile

	// terms are names with what is to be said of each.
	terms []term

	// banner says above what follows that it is simulated. A page has one at its
	// top.
	banner string

	// gap is an empty line of a page's source, or an empty paragraph of Markdown.
	gap struct{}
)

// tile is a figure with what stands small under it.
type tile struct {
	label, value, beside string
	tone                 *string // class on a page
}

// term is a name with its text; tone is up or down for good or bad news.
type term struct {
	name, text, tone string
}

// figures adds plots to a section.
func (s *section) figures(in form, draw func() []plot.Plot) { s.add(in, figures(draw)) }

// span is a piece of a line.
type span struct {
	kind  spanKind
	text  string
	class string // of a tag
	href  string
	inner []span // of what is small or bold
}

type spanKind int

const (
	plainSpan spanKind = iota
	codeSpan
	wordSpan // words of ours, which need no escaping
	boldSpan
	smallSpan // on a page
	tagSpan   // on a page in a frame of its class
	linkSpan  // on a page
	breakSpan // a new line
)

// words are some of our own, which are shown as they are.
func words(s string) span { return span{kind: wordSpan, text: s} }

func code(s string) span     { return span{kind: codeSpan, text: s} }
func bold(parts ...any) span { return span{kind: boldSpan, inner: spans(parts...)} }

// toned is text of a class.
func toned(class, text string) span { return span{kind: tagSpan, class: class, text: text} }

func small(parts ...any) span     { return span{kind: smallSpan, inner: spans(parts...)} }
func tag(class, text string) span { return span{kind: tagSpan, class: "tag " + class, text: text} }
func link(href, text string) span { return span{kind: linkSpan, href: href, text: text} }
func newLine() span               { return span{kind: breakSpan} }

// spans makes a line of strings, which are plain text, of spans, and of lines of
// both.
func spans(parts ...any) []span {
	var out []span
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, span{text: p})
		case span:
			out = append(out, p)
		case []span:
			out = append(out, p...)
		default:
			panic(fmt.Sprintf("report: %T is no part of a line", p))
		}
	}
	return out
}
