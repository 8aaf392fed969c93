package logs

import (
	"regexp"
	"strings"

	"perflab/internal/redact"
)

// pattern is an expression with texts one of which is in every line that it matches.
type pattern struct {
	keys []string
	re   *regexp.Regexp // nil where the texts are all
}

// compile makes a pattern; without keys, the text that the expression begins with is
// the one to look for.
func compile(expr string, keys []string) pattern {
	p := pattern{keys: keys, re: regexp.MustCompile(expr)}
	if len(keys) == 0 {
		prefix, _ := p.re.LiteralPrefix()
		p.keys = []string{prefix}
	}
	return p
}

// scanner looks for the texts of many patterns in one pass over a log. Of each text it
// knows four bytes, and of these a bit of their hash: most of a log is passed over at
// some nanoseconds for four bytes, and no expression sees a line without a text of its own.
type scanner struct {
	bits  [1 << 10]uint64
	texts map[uint32][]scanText
}

type scanText struct {
	key     string
	offset  int // of the four bytes in key
	pattern int
}

const gramLen = 4

func newScanner(patterns []pattern) *scanner {
	s := &scanner{texts: map[uint32][]scanText{}}
	for i, p := range patterns {
		for _, key := range p.keys {
			at := rarest(key)
			g := uint32(key[at]) | uint32(key[at+1])<<8 | uint32(key[at+2])<<16 | uint32(key[at+3])<<24
			s.texts[g] = append(s.texts[g], scanText{key, at, i})
			h := gramHash(g)
			s.bits[h>>6] |= 1 << (h & 63)
		}
	}
	return s
}

func gramHash(g uint32) uint32 { return g * 2654435761 >> 16 }

// rarest is where the four bytes of a key stand that a log has least of, by what is
// not a small letter or a blank in them.
func rarest(key string) int {
	best, most := 0, -1
	for i := 0; i+gramLen <= len(key); i++ {
		n := 0
		for _, c := range []byte(key[i : i+gramLen]) {
			if (c < 'a' || c > 'z') && c != ' ' {
				n++
			}
		}
		if n > most {
			best, most = i, n
		}
	}
	return best
}

// scan visits each text in the order of the log: which pattern it is of, and from
// where to where it stands.
func (s *scanner) scan(log string, visit func(pattern, from, to int)) {
	var g uint32
	for i := 0; i < len(log); i++ {
		g = g>>8 | uint32(log[i])<<24
		h := gramHash(g)
		if s.bits[h>>6]>>(h&63)&1 == 0 {
			continue
		}
		for _, t := range s.texts[g] {
			from := i + 1 - gramLen - t.offset
			if from >= 0 && strings.HasPrefix(log[from:], t.key) {
				visit(t.pattern, from, from+len(t.key))
			}
		}
	}
}

// longestLine is how far to either side of a byte its line is looked at: what tells of
// facts and failures is shorter, and progress bars make lines without end.
const longestLine = 16 << 10

// lineAt is the line that a byte of a log stands in, and where it begins.
func lineAt(log string, at int) (start int, line string) {
	low := max(0, at-longestLine)
	start = low + strings.LastIndexByte(log[low:at], '\n') + 1
	line, _, _ = strings.Cut(log[start:min(len(log), at+longestLine)], "\n")
	return start, plain(line)
}

var (
	prefix = regexp.MustCompile(`^(?:\([^)]*\) *|\[[^\]]*\] *|(?:INFO|WARNING|ERROR|CRITICAL)\b:? *|\d\d-\d\d \d\d:\d\d:\d\d *|\d+\.\d\d\.\d{3}\.\d{3} [A-Z] *)+`)
	source = regexp.MustCompile(`^(?:raise |except |File ")`)
)

// plain is a line without colours and blanks around it.
func plain(line string) string { return strings.TrimSpace(redact.Plain(line)) }

// bare is a plain line without time, level, process and rank before it.
func bare(line string) string { return prefix.ReplaceAllString(line, "") }
