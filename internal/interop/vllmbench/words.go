package vllmbench

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// item is a flag of a line with its values.
type item struct {
	name   string // without --, with - for _
	values []string
}

// read takes a line apart as vLLM's parser does: _ in a name is -, a flag of several
// values has all words up to the next flag, a name may be cut short where it is
// one flag's alone, --extra-body.a.b V is
// --extra-body '{"a": {"b": V}}', and --extra-body.a+ V,W adds to a list.
func (t *translation) read(args []string) error {
	args = slices.Clone(args)
	objects := map[string]map[string]any{}
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			t.rest = args[i:]
			break
		}
		if args[i] == "-h" {
			args[i] = "--help"
		}
		rest, ok := strings.CutPrefix(args[i], "--")
		if !ok {
			t.words = append(t.words, args[i])
			continue
		}
		name, value, joined := strings.Cut(rest, "=")
		name, path, dotted := strings.Cut(name, ".")
		it := item{name: t.whole(strings.ReplaceAll(name, "_", "-"))}
		if joined {
			it.values = []string{value}
		} else {
			it.values = t.valuesOf(it.name, args[i+1:], dotted)
			i += len(it.values)
		}
		if !dotted {
			if err := t.add(it); err != nil {
				return err
			}
			continue
		}
		if objects[it.name] == nil {
			objects[it.name] = map[string]any{}
		}
		if err := put(objects[it.name], strings.Split(path, "."), it.values); err != nil {
			return fmt.Errorf("--%s: %w", rest, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		b, err := json.Marshal(objects[name])
		if err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
		t.items = append(t.items, item{name, []string{string(b)}})
	}
	return nil
}

// valuesOf are the words behind a flag that are its values.
func (t *translation) valuesOf(name string, behind []string, dotted bool) []string {
	takes := t.takes(name)
	switch {
	case takes == some || takes == anyOf:
		n := slices.IndexFunc(behind, isFlag)
		if n < 0 {
			n = len(behind)
		}
		return behind[:n]
	case (takes == one || dotted) && len(behind) > 0:
		return behind[:1]
	}
	return nil
}

// add keeps a flag, unless it lacks its values. Of a list that is given twice vLLM takes the
// last; without the word serve both count, as they do for perflab's own flags.
func (t *translation) add(it item) error {
	takes := t.takes(it.name)
	list := takes == some || takes == anyOf
	own, _ := t.own.Flag(it.name)
	if len(it.values) == 0 && (takes == some || takes == one && !own) { // perflab bench says it of its own flags
		return fmt.Errorf("--%s needs a value", it.name)
	}
	if list && t.serve && t.has(it.name) {
		t.note("--%s is given more than once: the last counts, as in vllm bench serve", it.name)
		t.items = slices.DeleteFunc(t.items, func(x item) bool { return x.name == it.name })
	}
	if takes != anyOf || len(it.values) > 0 {
		t.items = append(t.items, it)
	}
	return nil
}

// put sets a value deep in an object. What is no JSON is a string.
func put(o map[string]any, path, values []string) error {
	if len(values) != 1 {
		return fmt.Errorf("it needs a value")
	}
	for _, key := range path[:len(path)-1] {
		inner, ok := o[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			o[key] = inner
		}
		o = inner
	}
	last, list := strings.CutSuffix(path[len(path)-1], "+")
	if list { // elements, by commas
		all, _ := o[last].([]any)
		for word := range strings.SplitSeq(values[0], ",") {
			all = append(all, word)
		}
		o[last] = all
		return nil
	}
	if json.Valid([]byte(values[0])) {
		o[last] = json.RawMessage(values[0])
	} else {
		o[last] = values[0]
	}
	return nil
}

// takes is how many values a flag has.
func (t *translation) takes(name string) string {
	if f := known(name); f != nil {
		return f.Values
	}
	if _, value := t.own.Flag(name); value {
		return one
	}
	return none
}

// whole is the flag whose name is cut short to this, as Python's parser takes it.
func (t *translation) whole(name string) string {
	if own, _ := t.own.Flag(name); own || known(name) != nil || name == "help" {
		return name
	}
	var fit []string
	for _, f := range read().Python {
		if strings.HasPrefix(f.Name, name) {
			fit = append(fit, f.Name)
		}
	}
	if len(fit) != 1 || name == "" {
		return name
	}
	t.note("--%s is read as --%s, as vllm bench serve does", name, fit[0])
	return fit[0]
}

// isFlag tells flags from values: a value may be a negative number.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && !strings.ContainsRune("0123456789.", rune(word[1]))
}
