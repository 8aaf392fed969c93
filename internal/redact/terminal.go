package redact

import "strings"

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
// with a sign for bytes that are no UTF-8. Tabs and ends of lines stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(Plain(text), "\uFFFD"))
}
