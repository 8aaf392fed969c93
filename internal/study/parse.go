package study

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/field"
)

// Error lists everything that is wrong in a study file, each with its
// line and column.
type Error struct {
	File     string
	Problems []string // "12:5: ..."
}

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = e.File + ":" + p
	}
	return strings.Join(lines, "\n")
}

// Hint says where the format is described.
func (e *Error) Hint() string {
	return "docs/study.schema.json describes the format; examples/ has working files"
}

// Parse reads a study file strictly, checks every field and resolves it. name is
// used in messages.
func Parse(name string, data []byte) (*Study, error) { return ParseAs(name, data, "") }

// ParseAs is Parse with another strategy than the file's; "" is that one. What
// the file says to other strategies is then left unused.
func ParseAs(name string, data []byte, strategy string) (*Study, error) {
	return ParseAllowed(name, data, strategy, func(*File) error { return nil })
}

// ParseAllowed is ParseAs for a text of somebody who may not use everything: before anything
// that the file names is opened, allowed is asked, and an error of it is the answer.
func ParseAllowed(name string, data []byte, strategy string, allowed func(*File) error) (*Study, error) {
	doc := new(yaml.Node) // the tree, into which messages point
	if err := yaml.Load(data, doc); err != nil {
		return nil, &Error{name, yamlProblems(err)}
	}
	f := &File{}
	err := yaml.Load(data, f, yaml.WithKnownFields())
	flaws, whole := flawsOf(doc, err)
	if !whole {
		return nil, &Error{name, yamlProblems(err)}
	}
	if strategy != "" {
		f.follow(strategy)
	}
	f.fill()
	if err := allowed(f); err != nil {
		return nil, err
	}
	s, faults := check(f, doc, len(flaws) > 0)
	if len(flaws)+len(faults) > 0 {
		return nil, &Error{name, told(doc, flaws, faults)}
	}
	s.path = name
	return s, nil
}

// problems are errors of values, each with the line and column where it stands.
func problems(doc *yaml.Node, faults []*field.Error) []string {
	out := make([]string, len(faults))
	for i, e := range faults {
		line, col := position(doc, e.Path)
		out[i] = fmt.Sprintf("%d:%d: %s", line, col, e.Reason)
	}
	return out
}

// Problem is one thing that is wrong with a study file, and where.
type Problem struct {
	Line, Column int // from 1
	Text         string
}

// Located says where the things stand that an error of ParseAllowed is about, those that are not
// allowed too. What is wrong with no single value stands at the beginning.
func Located(data []byte, err error) []Problem {
	if err == nil {
		return nil
	}
	var out []Problem
	if whole, ok := errors.AsType[*Error](err); ok {
		for _, p := range whole.Problems {
			out = append(out, problemOf(p))
		}
		return out
	}
	doc := new(yaml.Node)
	if yaml.Load(data, doc) != nil {
		doc = nil
	}
	for _, e := range field.All(err) {
		line, col := position(doc, e.Path)
		out = append(out, Problem{line, col, e.Reason})
	}
	slices.SortStableFunc(out, func(a, b Problem) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return out
}

// problemOf takes "12:5: text" apart.
func problemOf(text string) Problem {
	first, rest, _ := strings.Cut(text, ":")
	second, said, _ := strings.Cut(rest, ": ")
	line, err1 := strconv.Atoi(first)
	col, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil {
		return Problem{1, 1, text}
	}
	return Problem{line, col, said}
}
