package command

import "strings"

// maxBraceWords bounds what one word is expanded to: enough to show.
const maxBraceWords = 16

// expandBraces returns the words that bash makes of one by brace expansion:
// the word itself where there is none.
func expandBraces(word []Rune) [][]Rune {
	work, done := [][]Rune{word}, [][]Rune(nil)
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
func braceGroup(word []Rune) [][]Rune {
	type open struct {
		at     int
		commas []int
	}
	var stack []open
	best, end := open{at: -1}, 0
	for i, c := range word {
		if c.Quoted {
			continue
		}
		switch {
		case c.R == '{' && (i == 0 || word[i-1].R != '$'):
			stack = append(stack, open{at: i})
		case c.R == ',' && len(stack) > 0:
			top := &stack[len(stack)-1]
			top.commas = append(top.commas, i)
		case c.R == '}' && len(stack) > 0:
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
	var out [][]Rune
	from := best.at + 1
	for _, to := range append(best.commas, end) {
		if len(out) == maxBraceWords {
			break
		}
		var w []Rune
		w = append(append(append(w, word[:best.at]...), word[from:to]...), word[end+1:]...)
		out, from = append(out, w), to+1
	}
	return out
}

// Fault tells what a shell makes of the word that its writer did not mean; "" for
// nothing.
func (w Word) Fault() string {
	if w.Operator {
		return ""
	}
	json, quotes := false, strings.ContainsRune(w.Raw, '"')
	substitutes := strings.Contains(w.Raw, "$(") || strings.Contains(w.Raw, "=(")
	for i, c := range w.Runes {
		if c.Quoted {
			continue
		}
		switch c.R {
		case '{', '[':
			json = json || quotes && (i == 0 || w.Runes[i-1].R != '$')
		case '&':
			redirect := i == 0 || w.Runes[i-1].R == '>'
			if !redirect && i+1 < len(w.Runes) {
				return w.Raw + " is cut at its &, which starts another command"
			}
		case '(', ')':
			if !substitutes && i > 0 && c.R == '(' {
				return w.Raw + " is a syntax error, for its parenthesis is not quoted"
			}
		case '*':
			if i > 0 && i+1 < len(w.Runes) && strings.HasPrefix(w.Raw, "-") {
				return w.Raw + " is replaced by the files that match its *"
			}
		}
	}
	passed := expandBraces(w.Runes)
	if len(passed) == 1 && !json {
		return ""
	}
	var words []string
	for _, p := range passed {
		words = append(words, Plain(p))
	}
	if len(words) == 1 {
		return w.Raw + " reaches the program as " + words[0] + ", without its quotes"
	}
	if !quotes && !strings.ContainsRune(w.Raw, ':') {
		return "" // {a,b} of a list of files is what it looks like
	}
	if len(words) > 4 {
		words = append(words[:3:3], "…")
	}
	return w.Raw + " becomes " + Spelled(len(passed)) + " words by brace expansion, without their quotes: " + strings.Join(words, " ")
}

// Spelled writes small counts as words.
func Spelled(n int) string {
	names := []string{"no", "one", "two", "three", "four", "five", "six"}
	if n < len(names) {
		return names[n]
	}
	return "several"
}
