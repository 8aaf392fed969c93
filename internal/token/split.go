package token

import (
	"unicode"
	"unicode/utf8"
)

// class is what the splitter needs to know of one byte.
type class uint8

const (
	punct class = iota // ASCII punctuation and control characters
	lower
	upper
	digit
	space // ' ' alone: it joins what follows
	blank // other ASCII white space on a line
	line  // \n and \r
	wide  // first or stray byte of a non-ASCII rune
)

var classes = func() (t [256]class) {
	for b := range t {
		switch c := byte(b); {
		case c >= utf8.RuneSelf:
			t[b] = wide
		case 'a' <= c && c <= 'z':
			t[b] = lower
		case 'A' <= c && c <= 'Z':
			t[b] = upper
		case '0' <= c && c <= '9':
			t[b] = digit
		case c == ' ':
			t[b] = space
		case c == '\t' || c == '\v' || c == '\f':
			t[b] = blank
		case c == '\n' || c == '\r':
			t[b] = line
		}
	}
	return t
}()

const (
	maxBlank  = 64 // bytes of white space in one piece
	maxRepeat = 16 // equal punctuation characters in one piece
	maxCaps   = 4  // capitals in one piece
	maxJoined = 5  // letters that join a punctuation character before them
)

// next returns the length of the first piece of s, which is not empty. It
// needs no state from the pieces before, and a piece never depends on text
// behind it in a way that cutting there would change; Cut relies on both.
func next(s string) int {
	switch c := classes[s[0]]; c {
	case lower, upper:
		return letters(s)
	case digit:
		return digits(s)
	case space, blank, line:
		return blanks(s)
	case wide:
		if n := letters(s); n > 0 {
			return n
		}
		_, n := utf8.DecodeRuneInString(s)
		return n
	}
	return symbols(s)
}

// digits takes up to three.
func digits(s string) int {
	n := 1
	for n < min(3, len(s)) && classes[s[n]] == digit {
		n++
	}
	return n
}

// blanks takes white space: up to the last line end of the run if it has one,
// else all of it but a last space that belongs to the word or punctuation
// behind it. The space of " word" is thus part of the word's piece.
func blanks(s string) int {
	n, end := 0, 0
	for n < min(maxBlank, len(s)) {
		c := classes[s[n]]
		if c != space && c != blank && c != line {
			break
		}
		n++
		if c == line {
			end = n
		}
	}
	switch {
	case end > 0:
		return end
	case n == len(s) || s[n-1] != ' ':
		return n
	}
	c := classes[s[n]]
	if c == digit || c == space || c == blank || c == line {
		return n // digits take no space; white space goes on beyond maxBlank
	}
	if n > 1 {
		return n - 1
	}
	if m := letters(s[1:]); m > 0 {
		return 1 + m
	}
	if c == punct {
		return 1 + run(s[1:])
	}
	_, size := utf8.DecodeRuneInString(s[1:])
	return 1 + size
}

// symbols takes punctuation: 's and its like, one character with a short word
// behind it (".com", "_id"), or a run.
func symbols(s string) int {
	if s[0] == '\'' {
		if n := contraction(s); n > 0 {
			return n
		}
	}
	if len(s) > 1 && (classes[s[1]] == lower || classes[s[1]] == upper) {
		if n := letters(s[1:]); n <= maxJoined {
			return 1 + n
		}
		return 1
	}
	return run(s)
}

// run takes one punctuation character repeated, or two different ones, and
// the line ends behind them.
func run(s string) int {
	n := 1
	for n < min(maxRepeat, len(s)) && s[n] == s[0] {
		n++
	}
	if n == 1 && len(s) > 1 && classes[s[1]] == punct {
		n = 2
	}
	for n < len(s) && classes[s[n]] == line {
		n++
	}
	return n
}

// contraction takes 's 'd 'm 't 'll 've 're.
func contraction(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 'd', 'm', 't':
		return 2
	case 'l', 'v', 'r':
		if len(s) > 2 && (s[1:3] == "ll" || s[1:3] == "ve" || s[1:3] == "re") {
			return 3
		}
	}
	return 0
}

// letters takes one piece of a letter run, 0 if s begins with no letter:
// capitals, or a word with at most one capital in front (camelCase is two).
func letters(s string) int {
	n, weight := 0, 0
	if classes[s[0]] == upper {
		n, weight = 1, weightASCII
		for n <= maxCaps && n < len(s) && classes[s[n]] == upper {
			n++
		}
		switch {
		case n > maxCaps:
			return maxCaps
		case n > 1 && n < len(s) && classes[s[n]] == lower:
			return n - 1 // the last capital begins the word behind it
		case n > 1:
			return n
		}
	}
	for n < len(s) {
		c := classes[s[n]]
		size, w := 1, weightASCII
		if c == wide {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[n:]); !unicode.IsLetter(r) {
				break
			}
			w = letterWeight(r)
		} else if c != lower {
			break
		}
		if weight += w; weight > weightPiece {
			break
		}
		n += size
	}
	return n
}

// A piece of a letter run holds letters of weightPiece together: ten ASCII
// letters, as English words to that length are one token nearly always and
// longer ones two more often than not.
const (
	weightASCII = 12
	weightPiece = 120
)

// letterWeight is the share of a piece that a non-ASCII letter takes.
func letterWeight(r rune) int {
	switch {
	case r < 0x0370: // accented Latin
		return 48
	case r < 0x0400: // Greek
		return 60
	case r < 0x0590: // Cyrillic, Armenian
		return 40
	case r < 0x0900: // Hebrew, Arabic
		return 60
	}
	return weightPiece // Indic, Thai, CJK, Hangul: a piece each
}
