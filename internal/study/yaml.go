package study

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// yamlProblems turns the parser's errors into "line:column: text" each.
func yamlProblems(err error) []string {
	if many, ok := loadErrors(err); ok {
		var out []string
		for _, e := range many {
			out = append(out, fmt.Sprintf("%d:%d: %s", max(e.Mark.Line, 1), max(e.Mark.Column, 1), reworded(e.Message)))
		}
		return out
	}
	text := err.Error()
	if m := loadMark.FindStringSubmatch(text); m != nil {
		return []string{fmt.Sprintf("%s:%s: %s", m[1], m[2], reworded(m[3]))}
	}
	return []string{"1:1: " + reworded(loadHead.ReplaceAllString(text, ""))}
}

// loadErrors are the errors of single places.
func loadErrors(err error) ([]*yaml.LoadError, bool) {
	var many *yaml.LoadErrors
	if !errors.As(err, &many) {
		return nil, false
	}
	return many.Errors, true
}

// The library gives scanner and parser errors as text: "go-yaml load error in
// scanner (while ...) at L1.C7-L2.C1: found a tab". The last place is where it
// stopped, the first where what it was reading began.
var (
	loadMark = regexp.MustCompile(`^go-yaml load error in [^:]* at (?:L\d+\.C\d+-)?L(\d+)\.C(\d+): (?s)(.*)$`)
	loadHead = regexp.MustCompile(`^go-yaml load error in [^:]*: `)
)

// reworded rewords what the YAML library says about Go.
func reworded(text string) string {
	text = strings.TrimSpace(strings.TrimPrefix(text, "yaml: "))
	if key, kind, ok := unknownKey(text); ok {
		return fmt.Sprintf("unknown key %q%s", key, Suggest(key, keysOfTypes()[kind]))
	}
	switch {
	case strings.HasPrefix(text, "no documents"):
		return "the file is empty: a study has at least name, hardware, objective, workloads and runtime"
	case strings.HasPrefix(text, "expected single document"):
		return "the file holds several documents: keep one, and remove the line ---"
	}
	value, ok := between(text, "`", "`")
	_, kind, into := strings.Cut(text, " into ")
	switch {
	case into && !ok && strings.HasPrefix(text, "cannot construct "):
		return "a value of another kind belongs here: " + expectedKind(kind)
	case !ok || !into:
		return text
	}
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return value + " is not a whole number"
	case strings.HasPrefix(kind, "float"):
		return value + " is not a number"
	case kind == "bool":
		return value + " is neither true nor false"
	case strings.HasPrefix(kind, "["):
		return value + " is no list"
	}
	return value + " is no mapping (key: value)"
}

// expectedKind says what should stand where a list, a mapping or a text does.
func expectedKind(kind string) string {
	switch {
	case strings.HasPrefix(kind, "["):
		return "a list"
	case strings.HasPrefix(kind, "map["), strings.Contains(kind, "."):
		return "a mapping (key: value)"
	}
	return "a single value"
}

func between(s, before, after string) (string, bool) {
	_, s, ok := strings.Cut(s, before)
	if !ok {
		return "", false
	}
	s, _, ok = strings.Cut(s, after)
	return s, ok
}

// position finds a path of package field in the document; an absent element
// gives its parent's position.
func position(doc *yaml.Node, path string) (line, col int) {
	n := doc
	if n == nil || len(n.Content) == 0 {
		return 1, 1
	}
	n = n.Content[0]
	line, col = n.Line, n.Column
	for part := range steps(path) {
		next := child(n, part)
		if next == nil {
			break
		}
		n = next
		line, col = n.Line, n.Column
	}
	return line, col
}

// steps are the keys and indices of a path.
func steps(path string) iter.Seq[string] {
	return strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

func child(n *yaml.Node, part string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == part {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(part); err == nil && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

// present reports whether the element at a path has a key.
func present(doc *yaml.Node, path, key string) bool {
	n := doc
	if n == nil || len(n.Content) == 0 {
		return false
	}
	n = n.Content[0]
	for part := range steps(path) {
		if n = child(n, part); n == nil {
			return false
		}
	}
	return child(n, key) != nil
}
