package interop

import (
	"strings"

	"perflab/internal/interop/markdown"
)

// weak is the level of headings that are none to Markdown: lines in bold, and
// short lines right above an admonition.
const weak = 7

// heading returns the level of the heading that lines begin with, its title
// and its lines; 0 for none.
func (s *scanner) heading(lines []string, line string) (level int, title string, took int) {
	if s.plain {
		if level, title = s.plainHeading(lines, line); level > 0 {
			return level, title, 1
		}
	}
	if level, title := markdown.Heading(markdown.Unindent(lines[0])); level > 0 {
		return level, title, 1
	}
	if len(line) > markdown.MaxCaption || len(lines) < 2 || markdown.StartsMark(line) {
		return 0, "", 0
	}
	next := strings.TrimSpace(lines[1])
	if rule := strings.Trim(next, "="); len(next) >= 3 && rule == "" {
		return 1, markdown.Text(line), 2
	}
	if rule := strings.Trim(next, "-"); len(next) >= 3 && rule == "" && !isRule(line) {
		return 2, markdown.Text(line), 2
	}
	if bold, ok := markdown.Bold(lines[0]); ok {
		return weak, bold, 1
	}
	if markdown.IsAdmonition(next) && s.isBare(lines[0]) {
		return weak, line, 1
	}
	return 0, "", 0
}

// isBare reports whether a line that stands right above an admonition is its
// heading: short, not indented, no sentence, after a blank line.
func (s *scanner) isBare(raw string) bool {
	if len(raw) > 60 || raw != strings.TrimSpace(raw) || strings.ContainsAny(raw[len(raw)-1:], ".:;,!?") {
		return false
	}
	return s.n == 1 || strings.TrimSpace(s.doc.Lines[s.n-2]) == "" || s.caption == ""
}

// plainHeading finds the headings of a text without Markdown: its first line,
// lines that name a model alone, and lines like "4 nodes (tp)".
func (s *scanner) plainHeading(lines []string, line string) (level int, title string) {
	alone := (s.n == 1 || strings.TrimSpace(s.doc.Lines[s.n-2]) == "") && (len(lines) < 2 || strings.TrimSpace(lines[1]) == "")
	switch {
	case !alone || len(line) > 100:
	case isModelName(line):
		return 2, line
	case nodesOf(line) != "" && len(strings.Fields(line)) <= 4:
		return 3, line
	case s.doc.Title == "" && len(s.doc.Prose) == 0:
		return 1, line
	}
	return 0, ""
}
