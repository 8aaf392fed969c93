package interop

import (
	"strings"

	"perflab/internal/interop/markdown"
)

// table reads a Markdown table that lines begin with, and returns how many
// lines it has; 0 for none.
func (s *scanner) table(lines []string) int {
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || !markdown.IsDelimiter(lines[1]) {
		return 0
	}
	t := Table{Place: Place{File: s.name, Line: s.n, Section: s.section()}, Head: markdown.Cells(lines[0])}
	i := 2
	for ; i < len(lines) && strings.Contains(lines[i], "|") && !markdown.IsFence(strings.TrimSpace(lines[i])); i++ {
		t.Rows = append(t.Rows, Row{s.n + i, markdown.Cells(lines[i])})
	}
	t.End = s.n + i - 1
	s.doc.Tables = append(s.doc.Tables, t)
	s.caption = ""
	return i
}
