package engine

import (
	"errors"
	"strings"
)

// Words takes a command line apart as a POSIX shell does, quotes and
// backslashes included: the inverse of Quote. Nothing is expanded.
func Words(line string) ([]string, error) {
	var out []string
	var word strings.Builder
	inside := false // a word, which may be empty when quoted
	end := func() {
		if inside {
			out = append(out, word.String())
		}
		word.Reset()
		inside = false
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\r', '\n':
			end()
		case '\'', '"':
			n, err := quoted(&word, line[i:])
			if err != nil {
				return nil, err
			}
			i, inside = i+n-1, true
		case '\\':
			if i++; i < len(line) && line[i] != '\n' { // one before a line's end joins lines
				word.WriteByte(line[i])
				inside = true
			}
		default:
			word.WriteByte(c)
			inside = true
		}
	}
	end()
	return out, nil
}

// quoted appends what stands in quotes at the beginning of s, and returns how
// long it is with them.
func quoted(word *strings.Builder, s string) (n int, err error) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return i + 1, nil
		case s[0] == '"' && s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\"\\$`", s[i+1]) >= 0:
			i++
		}
		word.WriteByte(s[i])
	}
	return 0, errors.New("a quote is not closed")
}
