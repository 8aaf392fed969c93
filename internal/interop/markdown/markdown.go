// Package markdown reads the marks of Markdown on single lines: fences,
// admonitions, quotations, headings, captions and the cells of tables.
//
//	level, title := markdown.Heading("## Results") // 2, "Results"
//
// Invariants: no text makes a reader fail, and what a line costs to read is
// bounded by its length. Deliberately absent: what lines mean together
// (package interop).
package markdown

import "strings"

// IsFence reports whether a line opens or closes a fence.
func IsFence(line string) bool {
	return strings.HasPrefix(line, "```") && !strings.Contains(strings.TrimLeft(line, "`"), "`") || strings.HasPrefix(line, "~~~")
}

// IsAdmonition reports whether a line opens an admonition.
func IsAdmonition(line string) bool {
	return strings.HasPrefix(line, "??? ") || strings.HasPrefix(line, "???+") || strings.HasPrefix(line, "!!! ")
}

// Unquote removes the marks of quotations.
func Unquote(line string) string {
	t := strings.TrimLeft(line, " \t")
	if !strings.HasPrefix(t, ">") {
		return line
	}
	return strings.TrimLeft(t, "> \t")
}

// Caption returns what a line says as a caption: the title of an admonition,
// or the text without its marks.
func Caption(line string) string {
	if IsAdmonition(line) {
		if _, rest, ok := strings.Cut(line, `"`); ok {
			line = strings.TrimSuffix(strings.TrimSpace(rest), `"`)
		}
	}
	if len(line) > MaxCaption {
		line = strings.ToValidUTF8(line[:MaxCaption], "")
	}
	line = strings.TrimLeft(line, "-*+!? \t")
	return strings.TrimSuffix(strings.TrimSpace(Text(line)), ":")
}

// MaxCaption bounds captions and headings: what is longer is text, and every
// block under it would look at it again.
const MaxCaption = 300

// Heading returns level and title of a heading such as "## Title"; 0 for none.
func Heading(line string) (level int, title string) {
	rest := strings.TrimLeft(line, "#")
	level = len(line) - len(rest)
	if level < 1 || level > 6 || len(line) > MaxCaption || !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "\t") {
		return 0, ""
	}
	title = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(rest), "#"))
	if title == "" {
		return 0, ""
	}
	return level, Text(title)
}

// Bold returns the text of a line that is bold as a whole, and no sentence.
func Bold(raw string) (string, bool) {
	text, ok := strings.CutPrefix(strings.TrimRight(raw, ": \t"), "**")
	text, end := strings.CutSuffix(text, "**")
	text = strings.TrimRight(text, ": ")
	return text, ok && end && text != "" && len(text) <= 100 && !strings.Contains(text, "**") && !strings.HasSuffix(text, ".")
}

// StartsMark reports whether a line begins with a mark of Markdown that keeps
// it from being a heading.
func StartsMark(line string) bool {
	return IsAdmonition(line) || strings.ContainsAny(line[:1], "-+>|<!=`~[")
}

// Unindent removes the up to three spaces that a heading may have before it.
func Unindent(line string) string {
	for range 3 {
		line = strings.TrimPrefix(line, " ")
	}
	return line
}

// IsDelimiter reports whether a line stands under a table's head: |---|:--:|.
func IsDelimiter(line string) bool {
	line = strings.TrimSpace(Unquote(line))
	return strings.Contains(line, "|") && strings.Contains(line, "-") && strings.Trim(line, "|-: \t") == ""
}

// Cells returns the cells of a row as text.
func Cells(line string) []string {
	line = strings.TrimSpace(Unquote(line))
	line = strings.TrimPrefix(line, "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	line = strings.ReplaceAll(line, `\|`, "\x00")
	row := strings.Split(line, "|")
	for i, c := range row {
		row[i] = Text(strings.ReplaceAll(c, "\x00", "|"))
	}
	return row
}

// Text returns a piece of Markdown as text: tags, emphasis and code marks
// removed, <br> a newline.
func Text(s string) string {
	if strings.ContainsRune(s, '<') {
		s = untag(s)
	}
	s = strings.ReplaceAll(strings.ReplaceAll(s, "**", ""), "`", "")
	return strings.TrimSpace(s)
}

// maxTag bounds the length of a tag, so that no search runs over a whole text.
const maxTag = 500

// untag removes HTML tags; a "<" that opens none stays.
func untag(s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "<")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		tag, _, closed := strings.Cut(rest[:min(len(rest), maxTag)], ">")
		name := strings.ToLower(strings.TrimRight(strings.TrimPrefix(tag, "/"), "/ "))
		if !closed || name == "" || name[0] < 'a' || name[0] > 'z' {
			b.WriteByte('<')
			s = rest
			continue
		}
		if name == "br" {
			b.WriteByte('\n')
		}
		s = rest[len(tag)+1:]
	}
}
