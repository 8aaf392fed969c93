package redact

import (
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"no colours":                       "no colours",
		"\x1b[31mred\x1b[0m\n":             "red\n",
		"\x1b[38;2;1;2;3mexact\x1b[m":      "exact",
		"\x1b]0;a title\x07text":           "text",
		"\x1b]8;;http://h\x1b\\link":       "link",
		"\x1b]cut by the line's end\nnext": "\nnext",
		"\x1bMup":                          "up",
		"\x1b\nline":                       "\nline",
		"half \x1b[":                       "half ",
		"end \x1b":                         "end ",
		"\x1b[2K\rprogress\a":              "\rprogress\a",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[1mtab\there\r\x00\x7f\xff\n":                   "tab\there\r\uFFFD\n",
		"C1: \u009b31m and \x9b31m":                          "C1: 31m and \uFFFD31m",
		"clip: \x1b]52;c;aGk=\x07 \x1b]52;c;aGk=\x1b\\ done": "clip:   done",
		"\u202eevil\u202c \u2066x\u2069 \u200e":              "evil x ",
		"two\u2028lines":                                     "two lines",
		"hid\u200bden\ufeff \U000e0041tag":                   "hidden tag",
		"\U0001f468\u200d\U0001f469 \u0915\u094d\u200d":      "\U0001f468\u200d\U0001f469 \u0915\u094d\u200d",
		"\x1bP1$r\x1b\\":                                     "1$r",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// FuzzPrintable: a terminal gets nothing to obey, and lines stay lines.
func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\n")
	f.Add("\x1b]0;title\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := Printable(text)
		if strings.ContainsAny(got, "\x1b\x00\a\b\u0085\u009b\u202e\u2066") || strings.Contains(Shown(text), "\r") {
			t.Errorf("%q steers the terminal: %q", text, got)
		}
		if strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q has other lines: %q", text, got)
		}
	})
}
