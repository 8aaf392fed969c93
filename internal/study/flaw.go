package study

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// flaw is a place of a file whose form is wrong: a key that is not known, a value of another
// kind. What is read for it is its absence, of which nothing need be said.
type flaw struct {
	line, col int
	text      string
	at        string // the path that is taken for absent
}

// flawsOf are the flaws that the YAML library found while it filled a File. whole is false where
// it stopped at the first.
func flawsOf(doc *yaml.Node, err error) (flaws []flaw, whole bool) {
	many, ok := loadErrors(err)
	if !ok {
		return nil, err == nil
	}
	keys, values := placesIn(doc)
	for _, e := range many {
		f := flaw{line: max(e.Mark.Line, 1), col: max(e.Mark.Column, 1), text: reworded(e.Message)}
		where := [2]int{e.Mark.Line, e.Mark.Column}
		key, kind, unknown := unknownKey(e.Message)
		switch {
		case strings.Contains(e.Message, "already defined"):
			return append(flaws, f), false
		case unknown:
			above, meant := strings.TrimSuffix(keys[where], key), stat.Nearest(key, keysOfTypes()[kind])
			if !present(doc, above, meant) {
				f.at = above + meant
			}
		default:
			f.at = values[where].path
			f.text = unclipped(f.text, values[where].value)
		}
		flaws = append(flaws, f)
	}
	return flaws, true
}

// hides reports whether a fault is of what was not read for the flaw.
func (f flaw) hides(fault *field.Error) bool {
	below, ok := strings.CutPrefix(fault.Path, f.at)
	return f.at != "" && ok && (below == "" || strings.ContainsAny(below[:1], ".["))
}

// told is all that is wrong, in the order of the file.
func told(doc *yaml.Node, flaws []flaw, faults []*field.Error) []string {
	for _, e := range faults {
		if slices.ContainsFunc(flaws, func(f flaw) bool { return f.hides(e) }) {
			continue
		}
		line, col := position(doc, e.Path)
		flaws = append(flaws, flaw{line: line, col: col, text: e.Reason})
	}
	slices.SortStableFunc(flaws, func(a, b flaw) int { return cmp.Or(a.line-b.line, a.col-b.col) })
	out := make([]string, len(flaws))
	for i, f := range flaws {
		out[i] = fmt.Sprintf("%d:%d: %s", f.line, f.col, f.text)
	}
	return out
}

// unclipped is a text with the whole of a value, of which the library shows the beginning.
func unclipped(text, value string) string {
	if shown, after, ok := strings.Cut(text, "..."); ok && value != "" && strings.HasPrefix(value, shown) {
		return value + after
	}
	return text
}

// place is a value in a document.
type place struct{ path, value string }

// placesIn are the paths of a document's keys and its values, by line and column.
func placesIn(doc *yaml.Node) (keys map[[2]int]string, values map[[2]int]place) {
	keys, values = map[[2]int]string{}, map[[2]int]place{}
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		values[[2]int{n.Line, n.Column}] = place{path, n.Value}
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				k := n.Content[i]
				at := field.Join(path, k.Value)
				keys[[2]int{k.Line, k.Column}] = at
				walk(n.Content[i+1], at)
			}
		case yaml.SequenceNode:
			for i, x := range n.Content {
				walk(x, field.Index(path, i))
			}
		}
	}
	for _, n := range doc.Content {
		walk(n, "")
	}
	return keys, values
}

// unknownKey reads the library's word on a key that the Go type it fills does not have.
func unknownKey(message string) (key, kind string, ok bool) {
	message = strings.TrimPrefix(message, "yaml: ")
	if key, ok = between(message, "field ", " not found in type "); ok {
		_, kind, _ = strings.Cut(message, " not found in type ")
	}
	return key, kind, ok
}

// keysOfTypes are the keys of mappings by the Go type that holds them.
var keysOfTypes = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(t.Elem())
		case reflect.Struct:
			if _, seen := all[t.String()]; seen {
				return
			}
			all[t.String()] = keysOf(t)
			for f := range t.Fields() {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[File]())
	walk(reflect.TypeFor[Recipe]())
	return all
})

// keysOf are the keys that fill a Go type.
func keysOf(t reflect.Type) (keys []string) {
	for f := range t.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case option == "inline":
			keys = append(keys, keysOf(f.Type)...)
		case name != "" && name != "-":
			keys = append(keys, name)
		}
	}
	return keys
}
