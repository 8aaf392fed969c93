package interop

import (
	"slices"
	"strings"

	"perflab/internal/interop/markdown"
)

// What shows a block whose head line is missing.
const (
	fewestRecovered = 5  // figures under each other
	fewestFromTop   = 3  // of them, where they begin as a client's block does
	mostLooked      = 60 // lines that are looked at
)

// topLabels begin a client's block, squeezed.
var topLabels = []string{"successful requests", "backend"}

// headless reports whether lines begin the figures of a block without the line
// that heads it, as a paste may lose it. Lines that were looked at in vain are
// not looked at again, so that no text takes long.
func (s *scanner) headless(lines []string, line string) bool {
	label, _, ok := cutLabel(line)
	if !ok || len(label) > 100 {
		return false
	}
	top := slices.Contains(topLabels, squeeze(label))
	if !top && (s.n < s.looked || metricOf(squeeze(label)).name == "") {
		return false
	}
	figures, sections := 0, 0
	for i, l := range lines[:min(len(lines), mostLooked)] {
		l = strings.TrimSpace(markdown.Unquote(l))
		label, text, ok := cutLabel(l)
		switch {
		case l == "":
		case isRule(l) || isHead(l):
			s.looked = s.n + i
			return figures >= fewestRecovered || top && figures >= fewestFromTop
		case isSection(l):
			sections++
		case !ok || len(label) > 100:
			s.looked = s.n + i
			return false
		default:
			if _, _, number := number(text); number && metricOf(squeeze(label)).name != "" {
				figures++
			}
		}
		if figures >= fewestRecovered && sections > 0 || top && figures >= fewestFromTop {
			return true
		}
		s.looked = s.n + i
	}
	return false
}

// recover opens a block at a line that is not its head, and says so. What was
// said of a head that stands beside other text right above is taken back.
func (s *scanner) recover() {
	const near = 2
	if n := len(s.faults); s.hidden > 0 && s.n <= s.hidden+near && n > 0 && s.faults[n-1].Line == s.hidden {
		s.faults = s.faults[:n-1]
	}
	s.openBlock()
	s.open.headless = true
	s.open.faults = append(s.open.faults, Fault{Place: Place{Line: s.n}, Kind: Recovered,
		Text: "the block has no head line (\"Serving Benchmark Result\" between = signs) and is read from its first figure on"})
}
