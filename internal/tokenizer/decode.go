package tokenizer

import (
	"strings"
	"unicode/utf8"
)

func (t *Tokenizer) join(tokens []string) string {
	for _, d := range t.decode {
		tokens = d.decode(tokens)
	}
	return strings.Join(tokens, t.joiner)
}

// eachToken rewrites token by token.
type eachToken func(i int, token string) string

func (f eachToken) decode(tokens []string) []string {
	for i, s := range tokens {
		tokens[i] = f(i, s)
	}
	return tokens
}

// fuse makes one token of all.
type fuse struct{}

func (fuse) decode(tokens []string) []string { return []string{strings.Join(tokens, "")} }

// decodeBytes reads the alphabet of byte-level models; a token that is not in
// it stands for itself.
type decodeBytes struct{}

func (decodeBytes) decode(tokens []string) []string {
	var out []byte
	for _, s := range tokens {
		start := len(out)
		for _, r := range s {
			b, ok := runeByte(r)
			if !ok {
				out = append(out[:start], s...)
				break
			}
			out = append(out, b)
		}
	}
	return []string{lossy(out)}
}

// lossy makes a string of bytes; what is not UTF-8 becomes U+FFFD, once for
// each beginning of a code point that is cut short, once for each other byte.
func lossy(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out strings.Builder
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			size = cutShort(b)
		}
		out.WriteRune(r)
		b = b[size:]
	}
	return out.String()
}

// cutShort returns how many of the bytes could begin a code point, at least 1.
func cutShort(b []byte) int {
	need, low, high := 0, byte(0x80), byte(0xBF)
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 {
			low = 0xA0
		} else if c == 0xED {
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 {
			high = 0x8F
		}
	}
	n := 1
	for n <= need && n < len(b) && b[n] >= low && b[n] <= high {
		n++
		low, high = 0x80, 0xBF
	}
	return n
}

// byteFallback reads tokens like <0x0A>: a run that is UTF-8 becomes its text,
// any other a U+FFFD for each byte.
type byteFallback struct{}

func (byteFallback) decode(tokens []string) []string {
	var out []string
	var run []byte
	flush := func() {
		if len(run) > 0 && utf8.Valid(run) {
			out = append(out, string(run))
		} else {
			for range run {
				out = append(out, "\uFFFD")
			}
		}
		run = run[:0]
	}
	for _, s := range tokens {
		if b, ok := byteOf(s); ok {
			run = append(run, b)
			continue
		}
		flush()
		out = append(out, s)
	}
	flush()
	return out
}

// byteOf reads the name of a byte token.
func byteOf(s string) (byte, bool) {
	if len(s) != 6 || !strings.HasPrefix(s, "<0x") || s[5] != '>' {
		return 0, false
	}
	hi, ok1 := hexDigit(s[3])
	lo, ok2 := hexDigit(s[4])
	if s[3] == '+' {
		hi, ok1 = 0, true
	}
	return hi<<4 | lo, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// decodeReplace puts a text in the place of every match, token by token.
func decodeReplace(n *replace) decoder {
	return eachToken(func(_ int, s string) string {
		spans, _ := n.found(nil, []byte(s))
		if len(spans) == 0 {
			return s
		}
		var out strings.Builder
		done := 0
		for i := 0; i < len(spans); i += 2 {
			out.WriteString(s[done:spans[i]])
			out.WriteString(n.with)
			done = spans[i+1]
		}
		out.WriteString(s[done:])
		return out.String()
	})
}

// decodeMetaspace turns marks into spaces; those of the first token were put
// there by the splitter, unless it never does.
func decodeMetaspace(mark string, never bool) decoder {
	return eachToken(func(i int, s string) string {
		if i == 0 && !never {
			return strings.ReplaceAll(s, mark, "")
		}
		return strings.ReplaceAll(s, mark, " ")
	})
}

// decodeStrip takes up to so many of a code point off the ends of each token.
func decodeStrip(content rune, start, stop int) decoder {
	return eachToken(func(_ int, s string) string {
		for range start {
			r, size := utf8.DecodeRuneInString(s)
			if s == "" || r != content {
				break
			}
			s = s[size:]
		}
		for range stop {
			r, size := utf8.DecodeLastRuneInString(s)
			if s == "" || r != content {
				break
			}
			s = s[:len(s)-size]
		}
		return s
	})
}

// decodeWordPiece joins pieces that have the prefix to what is before them.
func decodeWordPiece(prefix string, clean bool) decoder {
	return eachToken(func(i int, s string) string {
		if i > 0 {
			if rest, ok := strings.CutPrefix(s, prefix); ok {
				s = rest
			} else {
				s = " " + s
			}
		}
		if clean {
			s = cleanUp(s)
		}
		return s
	})
}

// cleanUp takes out the spaces that English does not write, in the
// reference's order.
func cleanUp(s string) string {
	for _, pair := range [][2]string{
		{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"},
		{" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
	} {
		s = strings.ReplaceAll(s, pair[0], pair[1])
	}
	return s
}

// decodeSuffix turns the mark at the end of a word into a space, except in the
// last token.
type decodeSuffix string

func (d decodeSuffix) decode(tokens []string) []string {
	for i, s := range tokens {
		with := " "
		if i == len(tokens)-1 {
			with = ""
		}
		tokens[i] = strings.ReplaceAll(s, string(d), with)
	}
	return tokens
}
