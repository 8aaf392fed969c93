// Package shellwords takes command lines apart as a shell does. Pure.
//
//	args, err := shellwords.Split("vllm serve 'my model' -tp 2") // [vllm serve my model -tp 2]
//
// It is apart from engine, whose flags it knows none of. Deliberately absent: expansion.
package shellwords

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Split takes a command line apart as a POSIX shell does, for engine.Parse: quotes,
// escapes, lines continued by a backslash. It expands nothing. What would need a
// shell (a pipe, a variable, a second command) is an error.
func Split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	open := false // a word has begun
	end := func() {
		if open {
			words = append(words, word.String())
		}
		open = false
		word.Reset()
	}
	text := []rune(strings.TrimSpace(strings.ReplaceAll(line, "\r\n", "\n")))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			if i++; text[i] != '\n' {
				open = true
				word.WriteRune(text[i])
			}
		case c == '\'' || c == '"':
			n, part := quoted(text[i:])
			if n == 0 {
				return nil, fmt.Errorf("the quote %c at character %d of the command is not closed", c, i+1)
			}
			open = true
			word.WriteString(part)
			i += n - 1
		case c == '\n' && strings.TrimSpace(string(text[i:])) != "" || strings.ContainsRune(";|&<>`$", c):
			return nil, fmt.Errorf("%q in the command needs a shell: give one serving command alone, with values in place of variables", c)
		case unicode.IsSpace(c):
			end()
		default:
			open = true
			word.WriteRune(c)
		}
	}
	end()
	return words, nil
}

// quoted reads what stands in the quotes that text begins with, and how many
// characters that took; 0 where they are not closed.
func quoted(text []rune) (n int, part string) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == text[0]:
			return i + 1, b.String()
		case c == '\\' && text[0] == '"' && i+1 < len(text) && slices.Contains([]rune("\\\"$`"), text[i+1]):
			i++
			b.WriteRune(text[i])
		default:
			b.WriteRune(c)
		}
	}
	return 0, ""
}

// Lines are the command lines of a text: one a line, but where a backslash continues it;
// empty lines and those that # begins are left out.
func Lines(text string) []string {
	var out []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}
