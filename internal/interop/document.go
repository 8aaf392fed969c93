package interop

import (
	"slices"
	"strings"

	"perflab/internal/interop/markdown"
)

// scan reads a text.
func scan(name string, data []byte) *scanner {
	s := &scanner{doc: &Document{Lines: splitLines(data)}, name: name}
	s.plain = !hasHeadings(s.doc.Lines)
	lines := unprefixed(s.doc.Lines)
	for i := frontMatter(lines); i < len(lines); {
		s.n = i + 1
		i += s.step(lines[i:])
	}
	s.n = len(lines)
	s.closeBlock("the end of the file")
	if s.fence != nil {
		s.closeFence()
	}
	// Scripts are known when their fence ends, and blocks when they do.
	slices.SortStableFunc(s.events, func(a, b event) int { return a.line - b.line })
	return s
}

// unprefixed returns the lines of a text with the blocks in it without what a
// log, a diff or a comment puts before each of their lines.
func unprefixed(lines []string) []string {
	out := slices.Clone(lines)
	shape := ""
	for i, l := range out {
		at := strings.Index(l, "====")
		if at > 0 && at <= maxPrefix && isHead(strings.TrimSpace(l[at:])) {
			shape = shapeOf(l[:at])
		}
		if shape = strings.TrimRight(shape, " "); strings.Trim(shape, "> \t") == "" {
			shape = ""
			continue // no prefix, or a quotation, which stays one
		}
		if len(l) < len(shape) || shapeOf(l[:len(shape)]) != shape {
			shape = ""
			continue
		}
		out[i] = l[len(shape):]
		if isRule(strings.TrimSpace(out[i])) {
			shape = ""
		}
	}
	return out
}

// maxPrefix bounds what stands before a line of a block.
const maxPrefix = 160

// shapeOf is a prefix with its digits, which may count or tell the time, alike.
func shapeOf(prefix string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, prefix)
}

// frontMatter returns the number of lines of the metadata that a document
// begins with.
func frontMatter(lines []string) int {
	if lines[0] != "---" {
		return 0
	}
	return 1 + max(0, 1+slices.Index(lines[1:min(len(lines), 200)], "---"))
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

// hasHeadings reports whether a text has headings of Markdown.
func hasHeadings(lines []string) bool {
	fenced := ""
	for _, l := range lines {
		t := strings.TrimSpace(l)
		switch {
		case fenced != "":
			if strings.HasPrefix(t, fenced) {
				fenced = ""
			}
		case markdown.IsFence(t):
			fenced = t[:3]
		default:
			if level, _ := markdown.Heading(markdown.Unindent(l)); level > 0 {
				return true
			}
		}
	}
	return false
}

// step reads the line that lines begins with, and returns how many it took.
func (s *scanner) step(lines []string) int {
	raw := lines[0]
	line := strings.TrimSpace(markdown.Unquote(raw))
	switch {
	case isHead(line):
		s.closeBlock("the head of the next")
		s.openBlock()
		return 1
	case s.open != nil && isRule(line) && s.n == s.open.line+1: // the rest of a head that was wrapped
		s.open.end = s.n
		return 1
	case s.open != nil && isRule(line):
		s.open.end = s.n
		s.closeBlock("")
		return 1
	case s.last != nil && s.n <= s.last.end+3 && titled(line, steadyTitle):
		s.open, s.last.turns, s.last.foreign = s.last, true, true
		return 1
	case s.open != nil && s.open.takes(line):
		s.open.read(s.n, line)
		return 1
	case s.open != nil:
		s.closeBlock("its closing rule")
	}
	if s.open == nil && s.headless(lines, line) {
		s.recover()
		s.open.read(s.n, line)
		return 1
	}
	s.stray(line)
	if s.fence != nil {
		s.inFence(line)
		return 1
	}
	if markdown.IsFence(line) {
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
	s.events = append(s.events, event{line: s.n, prose: &t})
	s.caption = markdown.Caption(line)
	if s.note = nil; strings.HasPrefix(line, "#") {
		s.note = []string{strings.TrimSpace(strings.TrimLeft(line, "#"))}
	}
	return 1
}

// enter begins a section. The path leaves out the title of the document.
func (s *scanner) enter(level int, title string) {
	for len(s.path) > 0 && s.path[len(s.path)-1].Level >= level {
		s.path = s.path[:len(s.path)-1]
	}
	sec := Section{Level: level, Title: title, Line: s.n, Path: []string{title}}
	if k := len(s.path); k > 0 && s.path[k-1].Line != s.title {
		sec.Path = append(append([]string{}, s.path[k-1].Path...), title)
	}
	if level == 1 && s.title == 0 {
		s.doc.Title, s.title = title, s.n
	}
	s.path = append(s.path, sec)
	s.doc.Sections = append(s.doc.Sections, sec)
	s.events = append(s.events, event{line: s.n, section: &sec})
	s.caption, s.note, s.sim = "", nil, false
}

func (s *scanner) openBlock() {
	s.open = &openBlock{line: s.n, end: s.n, names: map[string]int{}}
	if s.fence != nil {
		s.fence.block = true
		s.fence.lines = append(s.fence.lines, Text{Line: s.n}) // no command goes on below
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
	again := b == s.last
	s.last = b
	switch {
	case len(b.figures) == 0:
		b.fault(b.line, "the head of a result has no figure under it that can be read: nothing is read (a paste of wrapped lines is to be unwrapped)")
	case b.headless: // its fault has been told
	case cut == "its closing rule":
		b.fault(b.end, "the block ends without its closing rule: it may have been cut off")
	case cut != "":
		b.fault(b.end, "the block ends at "+cut+", without its closing rule: it may have been cut off")
	}
	if again {
		return
	}
	f := &found{openBlock: b, section: s.section(), caption: s.caption, note: strings.Join(s.note, "; "), sim: s.sim}
	if s.fence != nil {
		f.caption = s.fence.caption
	}
	s.note, s.sim = nil, false
	s.events = append(s.events, event{line: b.line, block: f})
}

// stray notes figures outside any block, once for lines that follow each other.
func (s *scanner) stray(line string) {
	if hidesHead(line) {
		s.hidden = s.n
		s.faults = append(s.faults, Fault{Place: Place{File: s.name, Line: s.n, Section: s.section()},
			Text: "the head of a result stands beside other text, and what is under it is not read: remove from each line what is not the result's, as a log's prefix"})
		return
	}
	o := &s.orphans
	label, text, ok := cutLabel(line)
	if ok && len(label) <= 100 && metricOf(squeeze(label)).name != "" {
		if _, _, ok = number(text); !ok {
			return
		}
		if o.first == 0 || s.n > o.last+2 {
			*o = orphans{first: s.n, label: label}
		}
		o.last = s.n
		if strings.HasSuffix(label, ")") && !o.told {
			o.told = true
			s.faults = append(s.faults, Fault{Place: Place{File: s.name, Line: o.first, Section: s.section()},
				Text: quoteShort(o.label) + " begins what looks like a result without a head: put \"Serving Benchmark Result\" between = signs above it"})
		}
	} else if o.last == s.n-1 && isSection(line) {
		o.last = s.n
	}
}

func (s *scanner) openFence(line string) {
	info := strings.TrimLeft(line, line[:1])
	s.fence = &fence{mark: line[:len(line)-len(info)], info: strings.ToLower(strings.TrimSpace(info)), line: s.n, caption: s.caption}
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
			s.events = append(s.events, event{line: s.n, tail: &Text{Line: s.n, Text: line}})
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
		s.events = append(s.events, event{line: c.Line, script: &c})
	}
	if p := f.profile(); p != nil {
		s.events = append(s.events, event{line: f.line, profile: p})
	}
}
