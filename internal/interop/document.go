package interop

import (
	"strings"
)

// fence is a fenced part of a document that is being read.
type fence struct {
	mark    string // "```"
	info    string // "bash"
	line    int    // where it opened
	caption string
	lines   []Text // that are of no block
	block   bool   // a block stands in it
}

// scanner reads a text line by line.
type scanner struct {
	doc     *Document
	name    string
	plain   bool // no Markdown: lines that name a model serve as headings
	n       int  // of the line
	path    []Section
	level   int // of the deepest real heading; weak ones are below
	fence   *fence
	caption string // last line of text that was not blank
	head    int    // line of caption when a heading is all that is above
	open    *block
	note    []string // comment lines since the last block or fence
	sim     bool
	orphan  int // line of the last figure outside any block
	events  []event
	faults  []Fault
}

// event is what the attribution of facts goes by, in the order of the text.
type event struct {
	section *Section
	script  *Script
	profile *profile // defined
	prose   *Text
	block   *found
	tail    string // a line under a block that says whose it is
}

// found is a block with what stood around it.
type found struct {
	*block
	section []string
	caption string
	note    string
	sim     bool
}

// scan reads a text.
func scan(name string, data []byte) *scanner {
	s := &scanner{doc: &Document{Lines: splitLines(data)}, name: name}
	s.plain = !hasMarkdown(s.doc.Lines)
	lines := s.doc.Lines
	for i := 0; i < len(lines); {
		s.n = i + 1
		i += s.step(lines[i:])
	}
	s.n = len(lines)
	s.closeBlock("the end of the file")
	if s.fence != nil {
		s.closeFence()
	}
	return s
}

// splitLines cuts a text into lines without their ends.
func splitLines(data []byte) []string {
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// hasMarkdown reports whether a text has headings or fences.
func hasMarkdown(lines []string) bool {
	for _, l := range lines {
		if level, _ := atx(l); level > 0 || isFence(strings.TrimSpace(l)) {
			return true
		}
	}
	return false
}

// step reads the line that lines begins with, and returns how many it took.
func (s *scanner) step(lines []string) int {
	raw := lines[0]
	line := strings.TrimSpace(unquote(raw))
	switch {
	case isHead(line):
		s.closeBlock("the head of the next")
		s.openBlock()
		return 1
	case s.open != nil && isRule(line):
		s.open.end = s.n
		s.closeBlock("")
		return 1
	case s.open != nil && s.open.takes(line):
		s.open.read(s.n, line)
		return 1
	case s.open != nil:
		s.closeBlock("its closing rule")
	}
	s.stray(line)
	if s.fence != nil {
		s.inFence(line)
		return 1
	}
	if isFence(line) {
		s.openFence(line)
		return 1
	}
	return s.text(lines, line)
}

// text reads a line outside fences and blocks.
func (s *scanner) text(lines []string, line string) int {
	if line == "" {
		return 1
	}
	if level, title, took := s.heading(lines, line); level > 0 {
		s.enter(level, title)
		return took
	}
	if took := s.table(lines); took > 0 {
		return took
	}
	if took := s.command(lines, line); took > 0 {
		return took
	}
	t := Text{s.n, s.section(), line}
	s.doc.Prose = append(s.doc.Prose, t)
	s.sim = strings.HasPrefix(line, "SIMULATED")
	s.events = append(s.events, event{prose: &t})
	s.caption = captionOf(line)
	if s.note = nil; strings.HasPrefix(line, "#") {
		s.note = []string{strings.TrimSpace(strings.TrimLeft(line, "#"))}
	}
	return 1
}

// section returns the headings above.
func (s *scanner) section() []string {
	if len(s.path) == 0 {
		return nil
	}
	return s.path[len(s.path)-1].Path
}

// enter begins a section. The path leaves out the title of the document.
func (s *scanner) enter(level int, title string) {
	for len(s.path) > 0 && s.path[len(s.path)-1].Level >= level {
		s.path = s.path[:len(s.path)-1]
	}
	sec := Section{Level: level, Title: title, Line: s.n, Path: []string{title}}
	if k := len(s.path); k > 0 && s.path[k-1].Line != s.doc.Sections[0].Line {
		sec.Path = append(append([]string{}, s.path[k-1].Path...), title)
	}
	if s.doc.Title == "" {
		s.doc.Title = title
	}
	if level < weak {
		s.level = level
	}
	s.path = append(s.path, sec)
	s.doc.Sections = append(s.doc.Sections, sec)
	s.events = append(s.events, event{section: &sec})
	s.caption, s.note, s.sim = "", nil, false
}

func (s *scanner) openBlock() {
	s.open = &block{line: s.n, end: s.n, names: map[string]int{}}
	if s.fence != nil {
		s.fence.block = true
	}
}

// closeBlock ends the block that is open; cut says what came in place of its
// closing rule.
func (s *scanner) closeBlock(cut string) {
	b := s.open
	if b == nil {
		return
	}
	s.open = nil
	switch {
	case len(b.figures) == 0:
		b.fault(b.line, "the head of a result has no figure under it: nothing is read")
	case cut == "its closing rule":
		b.fault(b.end, "the block ends without its closing rule: it may have been cut off")
	case cut != "":
		b.fault(b.end, "the block ends at "+cut+", without its closing rule: it may have been cut off")
	}
	f := &found{block: b, section: s.section(), caption: s.caption, note: strings.Join(s.note, "; "), sim: s.sim}
	if s.fence != nil {
		f.caption = s.fence.caption
	}
	s.note, s.sim = nil, false
	s.events = append(s.events, event{block: f})
}

// stray notes a figure outside any block: once for lines that follow each other.
func (s *scanner) stray(line string) {
	label, text, ok := cutLabel(line)
	if !ok || !strings.HasSuffix(label, ")") || len(label) > 100 {
		return
	}
	if name, _ := metricOf(squeeze(label)); name == "" {
		return
	}
	if _, _, ok := number(text); !ok {
		return
	}
	if s.orphan == 0 || s.n > s.orphan+2 {
		s.faults = append(s.faults, Fault{Place{File: s.name, Line: s.n, Section: s.section()},
			quoteShort(label) + " looks like a figure of a result, but stands in no block: give it the head \"Serving Benchmark Result\" between = signs"})
	}
	s.orphan = s.n
}

func (s *scanner) openFence(line string) {
	mark := line[:3]
	s.fence = &fence{mark: mark, info: strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, mark[:1]))), line: s.n, caption: s.caption}
	s.note = nil
}

// inFence reads a line of a fence that is of no block.
func (s *scanner) inFence(line string) {
	switch {
	case strings.HasPrefix(line, s.fence.mark) && strings.Trim(line, s.fence.mark[:1]) == "":
		s.closeFence()
	case line == "":
		s.fence.lines = append(s.fence.lines, Text{Line: s.n})
	default:
		s.sim = strings.HasPrefix(line, "SIMULATED")
		if strings.HasPrefix(line, "#") {
			s.note = append(s.note, strings.TrimSpace(strings.TrimLeft(line, "#")))
		} else {
			s.events = append(s.events, event{tail: line})
		}
		s.fence.lines = append(s.fence.lines, Text{Line: s.n, Section: s.section(), Text: line})
	}
}

func (s *scanner) closeFence() {
	f := s.fence
	s.fence, s.note, s.sim = nil, nil, false
	for _, c := range f.scripts() {
		c.File, c.Section = s.name, s.section()
		s.doc.Scripts = append(s.doc.Scripts, c)
		s.events = append(s.events, event{script: &c})
	}
	if p := f.profile(); p != nil {
		s.events = append(s.events, event{profile: p})
	}
}

// isFence reports whether a line opens or closes a fence.
func isFence(line string) bool {
	return strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~")
}

// isAdmonition reports whether a line opens an admonition.
func isAdmonition(line string) bool {
	return strings.HasPrefix(line, "??? ") || strings.HasPrefix(line, "???+") || strings.HasPrefix(line, "!!! ")
}

// unquote removes the marks of quotations.
func unquote(line string) string {
	t := strings.TrimLeft(line, " \t")
	if !strings.HasPrefix(t, ">") {
		return line
	}
	return strings.TrimLeft(t, "> \t")
}

// captionOf returns what a line says as a caption: the title of an admonition,
// or the text without its marks.
func captionOf(line string) string {
	if isAdmonition(line) {
		if _, rest, ok := strings.Cut(line, `"`); ok {
			return strings.TrimSuffix(strings.TrimSpace(rest), `"`)
		}
	}
	line = strings.TrimLeft(line, "-*+ \t")
	return strings.TrimSuffix(strings.TrimSpace(cell(line)), ":")
}
