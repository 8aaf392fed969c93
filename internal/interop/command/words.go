package command

import (
	"strings"
	"unicode"
)

// Rune is one character of a word, and whether quotes protect it.
type Rune struct {
	R      rune
	Quoted bool
}

// Word is one word of a command line, as a POSIX shell splits it.
type Word struct {
	Raw      string // as written, quotes included
	Runes    []Rune // quotes removed
	Operator bool   // an operator: ; | && < >
}

// Text returns the word without its quotes.
func (w Word) Text() string { return Plain(w.Runes) }

// Plain drops what is known of quoting.
func Plain(runes []Rune) string {
	var b strings.Builder
	for _, c := range runes {
		b.WriteRune(c.R)
	}
	return b.String()
}

// shellLexer splits a line into words.
type shellLexer struct {
	words []Word
	word  Word
	open  bool // a word has begun
	raw   strings.Builder
}

// end closes the word.
func (l *shellLexer) end() {
	if l.open {
		l.word.Raw = l.raw.String()
		l.words = append(l.words, l.word)
	}
	l.word, l.open = Word{}, false
	l.raw.Reset()
}

// add puts one character into the word.
func (l *shellLexer) add(r rune, quoted bool) {
	l.open = true
	l.word.Runes = append(l.word.Runes, Rune{r, quoted})
}

// Split splits a command as a shell does, up to a comment. It does not
// expand anything.
func Split(line string) []Word {
	var l shellLexer
	var quote rune
	text := []rune(line)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
			l.raw.WriteRune(c)
			continue
		case c == '\\' && quote != '\'' && i+1 < len(text) && (quote == 0 || strings.ContainsRune("\\\"$`", text[i+1])):
			l.raw.WriteString(string(text[i : i+2]))
			l.add(text[i+1], true)
			i++
			continue
		case quote != 0:
			l.add(c, true)
		case c == '\'' || c == '"':
			quote, l.open = c, true
		case unicode.IsSpace(c) && c != '\u00a0':
			l.end()
			continue
		case c == '#' && !l.open:
			return l.words
		case strings.ContainsRune(";|<>", c) || c == '&' && i+1 < len(text) && text[i+1] == '&':
			l.end()
			l.words = append(l.words, Word{Raw: string(c), Operator: true})
			if c == '&' {
				i++
			}
			continue
		default:
			l.add(c, false)
		}
		l.raw.WriteRune(c)
	}
	l.end()
	return l.words
}

// typographic turns quotes of print into spaces, for reading what they hold.
var typographic = strings.NewReplacer("“", " ", "”", " ", "„", " ", "‘", " ", "’", " ")

// Words splits a command into words without quotes. A command inside
// another's argument, as in bash -c "vllm serve ...", is split too.
func Words(text string) []string {
	var out []string
	for _, w := range Split(typographic.Replace(text)) {
		t := w.Text()
		if strings.ContainsRune(t, ' ') && (strings.Contains(t, " serve ") || strings.Contains(t, "launch_server") || strings.Contains(t, "trtllm-serve ")) {
			out = append(out, strings.Fields(t)...)
			continue
		}
		out = append(out, t)
	}
	return out
}
