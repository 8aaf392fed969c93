package workload

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// datasets are the rows of the registry, in the order in which they are listed
// for users. A new dataset is a file with its row, that row here, and fields of
// Spec where it has parameters of its own.
func datasets() []dataset {
	return []dataset{
		random(), shareGPT(), azure(), mooncake(), burstGPT(), jsonl(), custom(), gsm8k(), hf(), sonnet(), prefixRepetition(), sharedPrefix(), conversations(), agentSessions(),
	}
}

// Datasets returns the names that Spec.Dataset takes; the first is the default.
func Datasets() []string { return namesOf(func(dataset) bool { return true }) }

// namesOf are the names of the datasets that a question is true of.
func namesOf(is func(d dataset) bool) []string {
	var names []string
	for _, d := range datasets() {
		if is(d) {
			names = append(names, d.name)
		}
	}
	return names
}

// row is the dataset of a spec; an empty row where it is not known.
func (s Spec) row() dataset {
	for i, d := range datasets() {
		if d.name == s.Dataset || s.Dataset == "" && i == 0 {
			return d
		}
	}
	return dataset{}
}

// Param is a field of Spec that applies to some datasets only.
type Param struct {
	Key      string // of the field in JSON; its flag has - for _
	Group    string // heading under which it stands in a help text
	Usage    string // its help; other fields stand in brackets
	Positive bool   // 0 stands for the default and cannot be asked for
}

// Params returns the fields of Spec that apply to some datasets only, those of
// a dataset together, in the order of Datasets. A field of several stands with
// the first.
func Params() []Param {
	var list []Param
	all := datasets()
	for _, d := range all {
		for _, p := range d.params {
			if !slices.ContainsFunc(list, func(x Param) bool { return x.Key == p.key }) {
				list = append(list, Param{p.key, d.group, usage(all, p.key), p.positive || p.standard != 0})
			}
		}
	}
	return list
}

// usage joins what the datasets say of a field, each behind the names of those
// that say it: "sharegpt, jsonl: keep the file's order".
func usage(all []dataset, key string) string {
	var parts, helps []string
	for _, d := range all {
		p, ok := d.param(key)
		if !ok || p.help == "" {
			continue
		}
		help := p.help
		if p.standard != 0 {
			help += fmt.Sprintf(" (default %d)", p.standard)
		}
		if i := slices.Index(helps, help); i >= 0 {
			parts[i] += ", " + d.name
			continue
		}
		parts, helps = append(parts, d.name), append(helps, help)
	}
	for i, help := range helps {
		if rest, ok := strings.CutPrefix(help, "..."); ok {
			parts[i] += rest
		} else {
			parts[i] += ": " + help
		}
	}
	return strings.Join(parts, "; ")
}

// Field is a pointer to the field of a spec with a key: to a number, a string
// or a truth value.
func (s *Spec) Field(key string) any { return s.value(key).Addr().Interface() }

// value is the field of a spec with a key.
func (s *Spec) value(key string) reflect.Value {
	i, ok := specFields()[key]
	if !ok {
		panic("workload: a spec has no field " + key) // a row of the registry names it, which every start of the program asks for
	}
	return reflect.ValueOf(s).Elem().Field(i)
}

// specFields is where in Spec the field with a key is.
var specFields = sync.OnceValue(func() map[string]int {
	fields := map[string]int{}
	for f := range reflect.TypeFor[Spec]().Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[key] = f.Index[0]
	}
	return fields
})

// Sessions reports whether requests are turns of conversations, or of sessions of agents.
func (s Spec) Sessions() bool { return s.row().sessions }

// MadeUp reports whether the prompts of a spec with its defaults are made from
// its seed alone: another seed then repeats nothing, and lengths are exact.
func (s Spec) MadeUp() bool { return is(s.row().isMadeUp, s) }

// SharesPrefixes reports whether requests of a spec with its defaults have the
// same beginnings on purpose, which a server's prefix cache finds again.
func (s Spec) SharesPrefixes() bool { return is(s.row().shares, s) }

// CountsSessions reports whether rates, limits and numbers of a spec with its defaults are of sessions of several requests.
func (s Spec) CountsSessions() bool { return s.row().sessions }

// Generates reports whether a later turn's prompt holds what the server
// answered before, so that a sender must keep the answers' text.
func (s Spec) Generates() bool { return s.row().sessions && s.History == historyGenerated }

// NeedsChat says what of the spec only a chat API can send: the path of a field
// and, where only that one does, its value; "" and "" for nothing.
func (s Spec) NeedsChat() (path, value string) {
	switch {
	case s.row().sessions && !s.row().whole:
		return "dataset_name", s.Dataset
	case s.RandomImages > 0:
		return "random_images", ""
	}
	return "", ""
}
