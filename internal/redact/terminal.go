package redact

import (
	"strings"
	"unicode"
)

const escape = 0x1b

// Plain returns a text without the sequences that a terminal obeys and does not
// show, colours above all: ESC [ up to a letter, ESC ] up to its end, and ESC
// with one character. Lines stay lines.
func Plain(text string) string {
	if strings.IndexByte(text, escape) < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != escape {
			out = append(out, text[i])
			continue
		}
		if i++; i >= len(text) {
			break
		}
		switch text[i] {
		case '[':
			for i+1 < len(text) && text[i+1] >= 0x20 && text[i+1] < 0x40 {
				i++
			}
			if i+1 < len(text) && text[i+1] >= 0x40 && text[i+1] < 0x7f {
				i++
			}
		case ']':
			for i+1 < len(text) && text[i] != 0x07 && text[i+1] != escape && text[i+1] != '\n' {
				i++
			}
		case '\n':
			out = append(out, '\n')
		}
	}
	return string(out)
}

// Printable is Plain without the other characters that are no text either, and
// with a sign for bytes that are no UTF-8: control characters of one byte and of
// two (C1), and those that turn the direction of writing or cannot be seen, by
// which a text would look like another one. Tabs and ends of lines stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r':
			return r
		case r == lineSeparator, r == paragraphSeparator:
			return ' '
		case unicode.IsControl(r), unseen(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(Plain(text), "\uFFFD"))
}

const (
	lineSeparator      = '\u2028'
	paragraphSeparator = '\u2029'
)

// unseen tells the characters that steer the direction of writing, and those
// that are not shown at all. The joiners of emoji and of Indic scripts are not
// among them.
func unseen(r rune) bool {
	switch {
	case r == 0x061c, r == 0x200b, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f,
		r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// Shown is Printable for what is written for people as a whole: a return to the
// start of the line, by which a text could be written over, is a space.
func Shown(text string) string {
	text = Printable(text)
	if strings.IndexByte(text, '\r') < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", " ")
}
