package audit

import (
	"strings"
	"unicode"
)

// shellRune is one character of a word, and whether quotes protect it.
type shellRune struct {
	r      rune
	quoted bool
}

// shellWord is one word of a command line, as a POSIX shell splits it.
type shellWord struct {
	raw   string      // as written, quotes included
	runes []shellRune // quotes removed
	op    bool        // an operator: ; | && < >
}

// text returns the word without its quotes.
func (w shellWord) text() string { return plainText(w.runes) }

// plainText drops what is known of quoting.
func plainText(runes []shellRune) string {
	var b strings.Builder
	for _, c := range runes {
		b.WriteRune(c.r)
	}
	return b.String()
}

// shellLexer splits a line into words.
type shellLexer struct {
	words []shellWord
	word  shellWord
	open  bool // a word has begun
	raw   strings.Builder
}

// end closes the word.
func (l *shellLexer) end() {
	if l.open {
		l.word.raw = l.raw.String()
		l.words = append(l.words, l.word)
	}
	l.word, l.open = shellWord{}, false
	l.raw.Reset()
}

// add puts one character into the word.
func (l *shellLexer) add(r rune, quoted bool) {
	l.open = true
	l.word.runes = append(l.word.runes, shellRune{r, quoted})
}

// shellWords splits a command as a shell does, up to a comment. It does not
// expand anything.
func shellWords(line string) []shellWord {
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
			l.words = append(l.words, shellWord{raw: string(c), op: true})
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

// maxBraceWords bounds what one word is expanded to: enough to show.
const maxBraceWords = 16

// expandBraces returns the words that bash makes of one by brace expansion:
// the word itself where there is none.
func expandBraces(word []shellRune) [][]shellRune {
	work, done := [][]shellRune{word}, [][]shellRune(nil)
	for len(work) > 0 && len(work)+len(done) <= maxBraceWords {
		first := work[0]
		parts := braceGroup(first)
		if parts == nil {
			done, work = append(done, first), work[1:]
			continue
		}
		work = append(parts, work[1:]...)
	}
	return append(done, work...)
}

// braceGroup expands the first group of a word, {a,b} with an unquoted comma;
// nil where there is none.
func braceGroup(word []shellRune) [][]shellRune {
	type open struct {
		at     int
		commas []int
	}
	var stack []open
	best, end := open{at: -1}, 0
	for i, c := range word {
		if c.quoted {
			continue
		}
		switch {
		case c.r == '{' && (i == 0 || word[i-1].r != '$'):
			stack = append(stack, open{at: i})
		case c.r == ',' && len(stack) > 0:
			top := &stack[len(stack)-1]
			top.commas = append(top.commas, i)
		case c.r == '}' && len(stack) > 0:
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if len(top.commas) > 0 && (best.at < 0 || top.at < best.at) {
				best, end = top, i
			}
		}
	}
	if best.at < 0 {
		return nil
	}
	var out [][]shellRune
	from := best.at + 1
	for _, to := range append(best.commas, end) {
		if len(out) == maxBraceWords {
			break
		}
		var w []shellRune
		w = append(append(append(w, word[:best.at]...), word[from:to]...), word[end+1:]...)
		out, from = append(out, w), to+1
	}
	return out
}

// shellFault returns what a shell makes of a word that its writer did not
// mean, "" for nothing.
func shellFault(w shellWord) string {
	if w.op {
		return ""
	}
	json, quotes := false, strings.ContainsRune(w.raw, '"')
	substitutes := strings.Contains(w.raw, "$(") || strings.Contains(w.raw, "=(")
	for i, c := range w.runes {
		if c.quoted {
			continue
		}
		switch c.r {
		case '{', '[':
			json = json || quotes && (i == 0 || w.runes[i-1].r != '$')
		case '&':
			redirect := i == 0 || w.runes[i-1].r == '>'
			if !redirect && i+1 < len(w.runes) {
				return w.raw + " is cut at its &, which starts another command"
			}
		case '(', ')':
			if !substitutes && i > 0 && c.r == '(' {
				return w.raw + " is a syntax error, for its parenthesis is not quoted"
			}
		case '*':
			if i > 0 && i+1 < len(w.runes) && strings.HasPrefix(w.raw, "-") {
				return w.raw + " is replaced by the files that match its *"
			}
		}
	}
	passed := expandBraces(w.runes)
	if len(passed) == 1 && !json {
		return ""
	}
	var words []string
	for _, p := range passed {
		words = append(words, plainText(p))
	}
	if len(words) == 1 {
		return w.raw + " reaches the program as " + words[0] + ", without its quotes"
	}
	if !quotes && !strings.ContainsRune(w.raw, ':') {
		return "" // {a,b} of a list of files is what it looks like
	}
	if len(words) > 4 {
		words = append(words[:3:3], "…")
	}
	return w.raw + " becomes " + spelledCount(len(passed)) + " words by brace expansion, without their quotes: " + strings.Join(words, " ")
}

// spelledCount writes small counts as words.
func spelledCount(n int) string {
	names := []string{"no", "one", "two", "three", "four", "five", "six"}
	if n < len(names) {
		return names[n]
	}
	return "several"
}
