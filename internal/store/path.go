package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// encodePath is a path as a database takes it: bytes that are no UTF-8, and NULs, are written %FF, and
// a % is %25.
func encodePath(path string) string {
	if utf8.ValidString(path) && !strings.ContainsAny(path, "%\x00") {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); {
		c, n := utf8.DecodeRuneInString(path[i:])
		switch {
		case c == utf8.RuneError && n == 1, c == '%', c == 0:
			fmt.Fprintf(&b, "%%%02X", path[i])
		default:
			b.WriteString(path[i : i+n])
		}
		i += n
	}
	return b.String()
}

// decodePath is the path that encodePath was given.
func decodePath(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		var c byte
		if text[i] == '%' && i+3 <= len(text) {
			if _, err := fmt.Sscanf(text[i+1:i+3], "%02X", &c); err == nil {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
