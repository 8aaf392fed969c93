package redact

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Values are secrets whose values are known, to be found in text that others
// write: engines print their arguments, and servers repeat what they were sent.
type Values struct{ list []known }

type known struct{ value, mark string }

// Add puts a value on the list, as it is and as JSON writes it, with what is to
// stand in its place.
func (v *Values) Add(value, mark string) {
	if value == "" {
		return
	}
	v.list = append(v.list, known{value, mark})
	if quoted, err := json.Marshal(value); err == nil {
		v.list = append(v.list, known{string(quoted[1 : len(quoted)-1]), mark})
	}
	// The longest first: one may hold another.
	slices.SortFunc(v.list, func(a, b known) int {
		return cmp.Or(cmp.Compare(len(b.value), len(a.value)), cmp.Compare(a.value, b.value))
	})
	v.list = slices.Compact(v.list)
}

// AddLong is Add for a value that may be something harmless when it is short.
func (v *Values) AddLong(value, mark string) {
	if len(value) >= shortest {
		v.Add(value, mark)
	}
}

// ValuesOf collects the secrets of a command and its environment.
func ValuesOf(argv, env []string) Values {
	var v Values
	for _, e := range env {
		if name, value, _ := strings.Cut(e, "="); IsSecret(name) || Text(value) != value {
			v.AddLong(value, Mark)
		}
	}
	for i, shown := range Argv(argv) {
		if shown == argv[i] {
			continue
		}
		value := argv[i]
		if name, ok := strings.CutSuffix(shown, Mark); ok {
			value = strings.TrimPrefix(value, name)
		}
		v.AddLong(value, Mark)
	}
	return v
}

// Mask returns the text with each value replaced, and the piece of one that a
// cut left at the text's end.
func (v Values) Mask(text string) string {
	for _, k := range v.list {
		text = strings.ReplaceAll(text, k.value, k.mark)
		for n := len(k.value) - 1; n >= shortest; n-- {
			if head, ok := strings.CutSuffix(text, k.value[:n]); ok {
				text = head + k.mark
				break
			}
		}
	}
	return text
}
