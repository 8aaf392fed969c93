package interop

import "strings"

// table reads a Markdown table that lines begin with, and returns how many
// lines it has; 0 for none.
func (s *scanner) table(lines []string) int {
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || !isDelimiter(lines[1]) {
		return 0
	}
	t := Table{Place: Place{File: s.name, Line: s.n, Section: s.section()}, Head: cells(lines[0])}
	i := 2
	for ; i < len(lines) && strings.Contains(lines[i], "|") && !isFence(strings.TrimSpace(lines[i])); i++ {
		t.Rows = append(t.Rows, Row{s.n + i, cells(lines[i])})
	}
	t.End = s.n + i - 1
	s.doc.Tables = append(s.doc.Tables, t)
	s.caption = ""
	return i
}

// isDelimiter reports whether a line stands under a table's head: |---|:--:|.
func isDelimiter(line string) bool {
	line = strings.TrimSpace(unquote(line))
	return strings.Contains(line, "|") && strings.Contains(line, "-") && strings.Trim(line, "|-: \t") == ""
}

// cells returns the cells of a row as text.
func cells(line string) []string {
	line = strings.TrimSpace(unquote(line))
	line = strings.TrimPrefix(line, "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	line = strings.ReplaceAll(line, `\|`, "\x00")
	row := strings.Split(line, "|")
	for i, c := range row {
		row[i] = cell(strings.ReplaceAll(c, "\x00", "|"))
	}
	return row
}

// cell returns a piece of Markdown as text: tags, emphasis and code marks
// removed, <br> a newline.
func cell(s string) string {
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
