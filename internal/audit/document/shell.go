package document

import (
	"fmt"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
)

// maxBraceWords bounds what one word is expanded to: enough to show.
const maxBraceWords = 16

// expandBraces returns the words that bash makes of one by brace expansion:
// the word itself where there is none.
func expandBraces(word []command.Rune) [][]command.Rune {
	work, done := [][]command.Rune{word}, [][]command.Rune(nil)
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
func braceGroup(word []command.Rune) [][]command.Rune {
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
	var out [][]command.Rune
	from := best.at + 1
	for _, to := range append(best.commas, end) {
		if len(out) == maxBraceWords {
			break
		}
		var w []command.Rune
		w = append(append(append(w, word[:best.at]...), word[from:to]...), word[end+1:]...)
		out, from = append(out, w), to+1
	}
	return out
}

// shellFault returns what a shell makes of a word that its writer did not
// mean, "" for nothing.
func shellFault(w command.Word) string {
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
		words = append(words, command.Plain(p))
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
	return w.Raw + " becomes " + spelledCount(len(passed)) + " words by brace expansion, without their quotes: " + strings.Join(words, " ")
}

// spelledCount writes small counts as words.
func spelledCount(n int) string {
	names := []string{"no", "one", "two", "three", "four", "five", "six"}
	if n < len(names) {
		return names[n]
	}
	return "several"
}

// shellFaults finds what a shell makes of commands.
func shellFaults(d *document) []audit.Finding {
	var out []audit.Finding
	for s := range d.scripts(interop.ScriptServing, interop.ScriptBenchmark) {
		var faults []string
		if strings.ContainsAny(s.Text, "“”„‘’") {
			faults = append(faults, "it has quotes of print (“ ” or ‘ ’), which a shell does not take for quotes")
		}
		for _, w := range command.Split(s.Text) {
			if t := w.Text(); strings.HasPrefix(t, "–") || strings.HasPrefix(t, "—") {
				faults = append(faults, t+" begins with a dash of print and not with a hyphen")
				continue
			}
			if fault := shellFault(w); fault != "" {
				faults = append(faults, fault)
			}
		}
		faults = append(faults, continuationFaults(d.file.Doc, s)...)
		if len(faults) > 0 {
			out = append(out, audit.Finding{Type: "command-not-shell-safe", Severity: audit.Warning, Place: d.at(s.Line, s.Section),
				Text: "a shell does not run this as it is meant: " + strings.Join(faults, "; ")})
		}
	}
	return out
}

// continuationFaults finds lines of a command that a shell does not join.
func continuationFaults(doc *interop.Document, s *interop.Script) []string {
	var out []string
	last := min(max(s.End, s.Line), len(doc.Lines))
	for n := s.Line; n >= 1 && n <= last; n++ {
		line := doc.Lines[n-1]
		trimmed := strings.TrimRight(line, " \t\r")
		if strings.HasSuffix(trimmed, `\`) {
			if rest := line[len(trimmed):]; strings.Trim(rest, "\r") != "" && n < last {
				out = append(out, fmt.Sprintf("spaces follow the backslash of line %d, which then joins nothing", n))
			}
			continue
		}
		if n < len(doc.Lines) && trimmed != "" && command.IsFlag(strings.TrimSpace(trimmed)+" ") == (n > s.Line) {
			next := strings.TrimSpace(doc.Lines[n])
			first, _, _ := strings.Cut(next, " ")
			if strings.HasPrefix(next, "-") && command.IsFlag(first) && indentOf(doc.Lines[n]) >= indentOf(doc.Lines[s.Line-1]) {
				out = append(out, fmt.Sprintf("line %d lacks a backslash at its end, so %s of line %d is run as a command of its own", n, first, n+1))
				break
			}
		}
	}
	return out
}

// indentOf counts leading spaces.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
