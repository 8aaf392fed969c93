// Package doc is the one model of documents: sections of paragraphs, lists,
// tables, figures and blocks of text, and its writers as text for a terminal,
// Markdown and one self-contained HTML page.
//
//	d := doc.New("Spread of 3 runs", "", "the spread")
//	s := d.Body.Section("figures", "Figures")
//	s.Para("Over ", doc.Bold("3"), " runs.")
//	s.Add(doc.Everywhere, doc.Table{Columns: doc.Columns("Figure", ">Mean"), Rows: rows})
//	err := doc.Markdown(w, d)
//
// Invariants: plain text is escaped where it is written, for the form that it
// stands in; nobody before has to. The same document gives the same bytes.
//
// Deliberately absent: knowledge of runs and studies, themes, templates.
package doc

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/report/plot"
)

// Document is a report for a reader: sections of paragraphs, tables, figures and
// blocks of text. What is not for every form says for which it is. Text,
// Markdown and HTML write it.
type Document struct {
	Body    Section
	Banner  string // above everything else
	subject string // names the document in errors
	Bare    Form   // forms that begin with neither banner nor title
	Tail    int    // empty lines after the end of a page
}

// New begins a document; the subject names it in errors.
func New(title, banner, subject string) Document {
	return Document{Body: Section{Level: 1, Title: title}, Banner: banner, subject: subject}
}

// Form is a set of the forms of a document.
type Form uint8

const (
	InText Form = 1 << iota
	InMarkdown
	InPage
	InDocument = InMarkdown | InPage
	Everywhere = InText | InDocument
)

// block is one of the types below.
type block any

// item is a block with the forms that it is for.
type item struct {
	in    Form
	block block
	tight bool // a page does not end the line after it
}

// Section is a part of a document under a heading. In a form for which none of
// its blocks has anything it is left out, its heading with it.
type Section struct {
	Level   int // of the heading, from 1
	ID      string
	Title   string
	Page    string // title on a page, where it is another
	Listed  bool   // among the contents of a page
	Entry   string // there, where it is another than the title
	Element string // that holds it on a page: section, article
	Class   string // of that element
	Labels  []Span // beside the title, on a page
	Suffix  string // of the title, in Markdown
	Broken  bool   // a page ends the line before the heading
	Tight   bool   // a page does not end the line after the heading
	Items   []item
}

// Section begins a part under a title in words, which a page writes in lower
// case and lists in its contents.
func (s *Section) Section(id, title string) *Section {
	page := title
	if title != "" {
		page = title[:1] + strings.ToLower(title[1:])
	}
	return s.Part(Everywhere, Section{ID: id, Title: title, Page: page, Listed: true})
}

// Part begins a part as it is described.
func (s *Section) Part(in Form, p Section) *Section {
	if p.Level == 0 {
		p.Level = s.Level + 1
	}
	s.Add(in, &p)
	return &p
}

// PartAfter is Part behind the part with an id, at the end where there is none.
func (s *Section) PartAfter(id string, in Form, p Section) *Section {
	added := s.Part(in, p)
	i := slices.IndexFunc(s.Items, func(it item) bool {
		part, ok := it.block.(*Section)
		return ok && part.ID == id
	})
	if last := len(s.Items) - 1; i >= 0 {
		s.Items = slices.Insert(s.Items[:last], i+1, s.Items[last])
	}
	return added
}

// Add adds a block for some forms.
func (s *Section) Add(in Form, b block) { s.Items = append(s.Items, item{in: in, block: b}) }

// Paragraph is a paragraph of a class; see Styled.
func Paragraph(class string, text []Span) Para { return Para{class, text} }

// Prepend puts a block before all others.
func (s *Section) Prepend(in Form, b block) { s.Items = append([]item{{in: in, block: b}}, s.Items...) }

// Without takes the part with an id out, for who shows it in another way.
func (s *Section) Without(id string) {
	s.Items = slices.DeleteFunc(s.Items, func(it item) bool {
		part, ok := it.block.(*Section)
		return ok && part.ID == id
	})
}

// Joined makes a page go on in the same line after the block added last.
func (s *Section) Joined() { s.Items[len(s.Items)-1].tight = true }

// Text adds lines for a terminal.
func (s *Section) Text(lines ...string) {
	for _, l := range lines {
		s.Add(InText, Verbatim(l+"\n"))
	}
}

// Textf adds a line for a terminal.
func (s *Section) Textf(format string, args ...any) { s.Text(fmt.Sprintf(format, args...)) }

// Para adds a paragraph for documents; see spans for its parts.
func (s *Section) Para(parts ...any) { s.Add(InDocument, Para{Text: Spans(parts...)}) }

// Styled adds a paragraph of a class: lead, note, muted, result.
func (s *Section) Styled(in Form, class string, parts ...any) {
	s.Add(in, Para{class, Spans(parts...)})
}

// StyledEach adds a paragraph for each text.
func (s *Section) StyledEach(in Form, class string, texts ...string) {
	for _, t := range texts {
		s.Styled(in, class, t)
	}
}

// List adds a list of plain texts.
func (s *Section) List(in Form, texts ...string) {
	l := List{}
	for _, t := range texts {
		l.Items = append(l.Items, Spans(t))
	}
	s.Add(in, l)
}

// The blocks.
type (
	// Verbatim is text for a terminal as it stands.
	Verbatim string

	// Para is a paragraph. In Markdown one of class lead is bold and a note is
	// quoted.
	Para struct {
		class string
		Text  []Span
	}

	// List is a list of points, or a numbered one. On a page, items of lines end
	// their line.
	List struct {
		Numbered, Lines bool
		Items           [][]Span
	}

	// figures are plots. They are drawn when a form shows them.
	figures func() []plot.Plot

	// Pre is a block of text, or commands to copy. With a summary it opens on a
	// click.
	Pre struct {
		Commands bool
		Text     string
		Summary  string
		Open     bool   // already
		Bare     bool   // no code element on a page
		After    []Span // under it on a page, within what opens
	}

	// Tiles are the figures that a reader of a page looks for first.
	Tiles []Tile

	// Definitions are names with what is to be said of each.
	Definitions []Definition

	// Banner says above what follows that it is simulated. A page has one at its
	// top.
	Banner string

	// Gap is an empty line of a page's source, or an empty paragraph of Markdown.
	Gap struct{}
)

// Tile is a figure with what stands small under it.
type Tile struct {
	Label, Value, Beside string
	Tone                 *string // class on a page
}

// Definition is a name with its text; tone is up or down for good or bad news.
type Definition struct {
	Name, Text, Tone string
}

// Figures adds plots to a section.
func (s *Section) Figures(in Form, draw func() []plot.Plot) { s.Add(in, figures(draw)) }

// Span is a piece of a line.
type Span struct {
	kind  spanKind
	Text  string
	class string // of a tag
	href  string
	inner []Span // of what is small or bold
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

// Words are some of our own, which are shown as they are.
func Words(s string) Span { return Span{kind: wordSpan, Text: s} }

// Code is text that somebody could type.
func Code(s string) Span { return Span{kind: codeSpan, Text: s} }

// Bold is a bold line.
func Bold(parts ...any) Span { return Span{kind: boldSpan, inner: Spans(parts...)} }

// Toned is text of a class.
func Toned(class, text string) Span { return Span{kind: tagSpan, class: class, Text: text} }

// Small is a line in small letters, on a page.
func Small(parts ...any) Span { return Span{kind: smallSpan, inner: Spans(parts...)} }

// Tag is a word in a frame, on a page.
func Tag(class, text string) Span { return Span{kind: tagSpan, class: "tag " + class, Text: text} }

// Link leads to another place of a page.
func Link(href, text string) Span { return Span{kind: linkSpan, href: href, Text: text} }

// NewLine breaks a line.
func NewLine() Span { return Span{kind: breakSpan} }

// Spans makes a line of strings, which are plain text, of spans, and of lines of
// both.
func Spans(parts ...any) []Span {
	var out []Span
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, Span{Text: p})
		case Span:
			out = append(out, p)
		case []Span:
			out = append(out, p...)
		default:
			panic(fmt.Sprintf("doc: %T is no part of a line", p))
		}
	}
	return out
}
