// Package translate turns a command line of another load client into one of
// perflab bench that sends the same load, and says what differs.
//
//	t, err := translate.Read("guidellm benchmark --target http://localhost:8000 --profile constant --rate 10 ...")
//	fmt.Println(t)              // perflab bench --base-url http://localhost:8000 ...
//	for _, n := range t.Notes { // one sentence for each flag that means something else, or nothing, here
//		fmt.Println(n.Flag, n.Text)
//	}
//
// Invariants: every flag of their command is carried over, named in a note, or
// refused; none is dropped in silence. What would be another load is refused. A
// secret is never part of the command that comes out.
//
// The tables of flags are data, and the documents of docs/from-*.md are made of
// them. Deliberately absent: whether perflab bench takes the flags, which its own
// command line checks, and files of settings, which are refused.
package translate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"perflab/internal/interop/command"
	"perflab/internal/redact"
)

// Translation is a command of perflab bench and how it differs from theirs.
type Translation struct {
	Client string // theirs, with the versions whose flags are known
	Flags  []Flag // of perflab bench
	Notes  []Note
}

// Flag is one of perflab bench, with its value; a bare one has none.
type Flag struct {
	Name, Value string
	Bare        bool
}

// Note says how the two commands differ in one flag.
type Note struct {
	Flag string // of theirs as it was given, or what they have by default
	Text string
}

// Read translates the first command of a known client in a text. The error
// names every flag that has no counterpart and would make it another load.
func Read(text string) (Translation, error) {
	c, words, err := find(text)
	if err != nil {
		return Translation{}, err
	}
	d := &draft{client: c, facts: map[string]string{}, given: map[string]string{}}
	d.take(c.settings(c, words, d))
	c.finish(d)
	d.secrets()
	if len(d.refused) > 0 {
		return Translation{}, errors.Join(d.refused...)
	}
	slices.SortStableFunc(d.flags, func(a, b Flag) int { return place(a.Name) - place(b.Name) })
	return Translation{Client: c.title(), Flags: d.flags, Notes: d.notes}, nil
}

// find returns the client whose command a text has, and the words behind it up to
// an operator of the shell.
func find(text string) (*client, []string, error) {
	var line []string
	for _, w := range command.Split(strings.NewReplacer("\\\r\n", " ", "\\\n", " ").Replace(text)) {
		if !w.Operator {
			line = append(line, marked(w))
			continue
		}
		if c, words := match(line); c != nil {
			return c, words, nil
		}
		line = nil
	}
	if c, words := match(line); c != nil {
		return c, words, nil
	}
	if as := vllmCommand.FindString(text); as != "" {
		return nil, nil, fmt.Errorf("a command of %s runs as it is: write perflab bench serve for those words", as)
	}
	var known []string
	for _, c := range clients() {
		known = append(known, c.example)
	}
	return nil, nil, fmt.Errorf("%q is no command of a client that is known: give the whole command, as '%s ...'", redact.Text(clip(text)), strings.Join(known, " ...', '"))
}

// vllmCommand is a client whose command lines perflab bench takes itself.
var vllmCommand = regexp.MustCompile(`\b(vllm bench serve|vllm-bench|benchmark_serving\.py)\b`)

// match returns the client that a line starts, and its arguments. What stands
// before, as in "uv run guidellm", is passed over.
func match(line []string) (*client, []string) {
	for i := range line {
		for _, c := range clients() {
			for _, start := range c.starts {
				if n := len(start); i+n <= len(line) && startsWith(line[i:i+n], start) {
					return c, line[i+n:]
				}
			}
		}
	}
	return nil, nil
}

// startsWith compares the words of a program, of which the first may be a path.
func startsWith(line, start []string) bool {
	first := line[0][strings.LastIndexByte(line[0], '/')+1:]
	return first == start[0] && slices.Equal(line[1:], start[1:])
}

// variable stands before a $ of the shell, so that it is known from one in quotes.
const variable = '\x00'

// marked is a word's text, with a mark before each $ that the shell would replace.
func marked(w command.Word) string {
	var b strings.Builder
	for i, r := range w.Runes {
		if r.R == variable {
			continue
		}
		if r.R == '$' && !(r.Quoted && singleQuoted(w.Raw)) && i+1 < len(w.Runes) && isName(w.Runes[i+1].R) {
			b.WriteRune(variable)
		}
		b.WriteRune(r.R)
	}
	return b.String()
}

// singleQuoted reports whether a word has no other quotes than single ones.
func singleQuoted(raw string) bool { return strings.Contains(raw, "'") && !strings.Contains(raw, `"`) }

// isName reports whether a character may follow the $ of a variable.
func isName(r rune) bool {
	return r == '{' || r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// shown is a word as its writer wrote it.
func shown(word string) string { return strings.ReplaceAll(word, string(variable), "") }

// Args are the words of the command behind perflab bench.
func (t Translation) Args() []string {
	var out []string
	for _, f := range t.Flags {
		out = append(out, f.Name)
		if !f.Bare {
			out = append(out, shown(f.Value))
		}
	}
	return out
}

// String is the command on lines that fit a screen, with words quoted for a shell.
func (t Translation) String() string {
	const width = 88
	var b strings.Builder
	b.WriteString("perflab bench")
	n := b.Len()
	for _, f := range t.Flags {
		word := f.Name
		if !f.Bare {
			word += " " + quoted(f.Value)
		}
		if n+1+len(word) > width {
			b.WriteString(" \\\n ")
			n = 1
		}
		b.WriteString(" " + word)
		n += 1 + len(word)
	}
	return b.String()
}

// quoted is a word as a shell must have it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("%+,-./:=@_", r)
	}
	switch {
	case word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0:
		return word
	case strings.ContainsRune(word, variable) && !strings.ContainsAny(word, "\"`\\!"):
		return `"` + doubled(word) + `"`
	}
	return "'" + strings.ReplaceAll(shown(word), "'", `'\''`) + "'"
}

// doubled keeps the variables of a word and protects every other $.
func doubled(word string) string {
	var b strings.Builder
	keep := false
	for _, r := range word {
		if r == '$' && !keep {
			b.WriteByte('\\')
		}
		if keep = r == variable; !keep {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// clip shortens a text to show.
func clip(text string) string {
	const most = 80
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
