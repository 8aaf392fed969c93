package interop

import (
	"strings"
	"unicode"
)

// weak is the level of headings that are none to Markdown: lines in bold, and
// short lines right above an admonition.
const weak = 7

// atx returns level and title of a heading such as "## Title"; 0 for none.
func atx(line string) (level int, title string) {
	rest := strings.TrimLeft(line, "#")
	level = len(line) - len(rest)
	if level < 1 || level > 6 || !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "\t") {
		return 0, ""
	}
	title = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(rest), "#"))
	if title == "" {
		return 0, ""
	}
	return level, cell(title)
}

// heading returns the level of the heading that lines begin with, its title
// and its lines; 0 for none.
func (s *scanner) heading(lines []string, line string) (level int, title string, took int) {
	if s.plain {
		level, title = s.plainHeading(lines, line)
		return level, title, 1
	}
	if level, title := atx(unindent(lines[0])); level > 0 {
		return level, title, 1
	}
	if len(line) > 200 || len(lines) < 2 || startsMark(line) {
		return 0, "", 0
	}
	next := strings.TrimSpace(lines[1])
	if rule := strings.Trim(next, "="); len(next) >= 3 && rule == "" {
		return 1, cell(line), 2
	}
	if rule := strings.Trim(next, "-"); len(next) >= 3 && rule == "" && !isRule(line) {
		return 2, cell(line), 2
	}
	if bold, ok := strings.CutPrefix(line, "**"); ok && lines[0] == strings.TrimLeft(lines[0], " \t") {
		if bold, ok = strings.CutSuffix(strings.TrimSuffix(bold, ":"), "**"); ok && bold != "" && !strings.Contains(bold, "**") {
			return weak, strings.TrimSuffix(bold, ":"), 1
		}
	}
	if isAdmonition(next) && s.isBare(lines[0]) {
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

// startsMark reports whether a line begins with a mark of Markdown that keeps
// it from being a heading.
func startsMark(line string) bool {
	return isAdmonition(line) || strings.ContainsAny(line[:1], "-+>|<!=`~[")
}

// unindent removes the up to three spaces that a heading may have before it.
func unindent(line string) string {
	for range 3 {
		line = strings.TrimPrefix(line, " ")
	}
	return line
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

// isModelName reports whether a line is the name of a model: owner/Name, or
// words joined by hyphens with a size among them, as GPT-OSS-120B.
func isModelName(line string) bool {
	if strings.ContainsFunc(line, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._/", r)
	}) {
		return false
	}
	owner, name, ok := strings.Cut(line, "/")
	if ok {
		return owner != "" && len(name) > 2 && !strings.Contains(name, "/") && strings.ContainsAny(name, "-0123456789") && !strings.Contains(owner, ".")
	}
	for part := range strings.SplitSeq(line, "-") {
		digits := strings.TrimRight(part, "bB")
		if digits != part && digits != "" && strings.Trim(digits, "0123456789.AEx") == "" {
			return strings.Contains(line, "-")
		}
	}
	return false
}

// nodesOf returns the number of "4 nodes (tp)"; "" for none.
func nodesOf(line string) string {
	f := strings.Fields(strings.ToLower(line))
	for i := 1; i < len(f); i++ {
		if w := strings.Trim(f[i], ".,;:()"); w == "node" || w == "nodes" || w == "node(s" {
			if strings.Trim(f[i-1], "0123456789") == "" {
				return f[i-1]
			}
			if f[i-1] == "single" {
				return "1"
			}
		}
	}
	return ""
}
