package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perflab/internal/engine/nested"
)

// keyTables maps an engine's name to the keys and sections of its file. A section, which
// is a mapping of keys that are listed, has no definition of its own; one that is listed
// as open takes any mapping.
var keyTables = sync.OnceValue(func() map[string]map[string]*Flag {
	tables := map[string]map[string]*Flag{}
	for _, e := range All() {
		keys, table := e.Keys(), map[string]*Flag{}
		for i := range keys {
			table[keys[i].Flag] = &keys[i]
		}
		for i := range keys {
			if s := nested.Section(keys[i].Flag); s != keys[i].Flag && (table[s] == nil || !table[s].Open) {
				table[s] = nil
			}
		}
		tables[e.Name] = table
	}
	return tables
})

// checkKeys refuses unknown keys and values of another kind in the engine's own words.
func checkKeys(e *Engine, tree map[string]any, under string) *Rejection {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		key, value := under+name, tree[name]
		def, known := keyTables()[e.Name][key]
		below, isMap := value.(map[string]any)
		problem := ""
		switch {
		case !known:
			problem = fmt.Sprintf("Extra inputs are not permitted [type=extra_forbidden, input_value=%s]", nested.Flow(value))
		case value == nil:
		case def == nil && isMap:
			if rej := checkKeys(e, below, key+"."); rej != nil {
				return rej
			}
		case def == nil:
			problem = fmt.Sprintf("Input should be a valid dictionary [input_value=%s]", nested.Flow(value))
		default:
			problem = def.misfit(value)
		}
		if problem != "" {
			return keyRejection(e, key, problem)
		}
	}
	return nil
}

func keyRejection(e *Engine, key, problem string) *Rejection {
	said, _, _ := strings.Cut(problem, " [")
	if strings.HasPrefix(said, "Extra inputs") {
		said += fmt.Sprintf(", as no version that is known has the key: perflab engines %s --all lists those there are", e.Name)
	}
	return &Rejection{Rule: "file", Reason: fmt.Sprintf("%s refuses %s of its configuration file: %s", e.Title, key, said),
		Log: fmt.Sprintf("pydantic_core._pydantic_core.ValidationError: 1 validation error for %s\n%s\n  %s", e.file.model, key, problem)}
}

// misfit says what is wrong with a value, "" when nothing is. Texts that read as the
// kind pass, as pydantic takes them.
func (f *Flag) misfit(value any) string {
	text, isText := value.(string)
	bad := func(kind string) string {
		return fmt.Sprintf("Input should be a valid %s [input_value=%s]", kind, nested.Flow(value))
	}
	switch f.Kind {
	case Int:
		_, whole := value.(int)
		_, err := strconv.Atoi(text)
		if !whole && err != nil {
			return bad("integer")
		}
	case Float:
		if _, ok := nested.Number(value); !ok {
			return bad("number")
		}
	case Bool:
		if _, ok := nested.Truth(value); !ok {
			return bad("boolean")
		}
	case String:
		if !isText {
			return bad("string")
		}
	case list:
		if _, ok := value.([]any); !ok {
			return bad("list")
		}
	case Choice:
		switch known := slices.Contains(f.Choices, nested.Text(value)); {
		case f.Open && !known && !isText:
			return bad("string")
		case !f.Open && !known:
			return fmt.Sprintf("Input should be '%s' [input_value=%s]", strings.Join(f.Choices, "', '"), nested.Flow(value))
		}
	}
	return ""
}

// isDefault reports whether a value is what the key has anyway.
func (f *Flag) isDefault(value any) bool {
	have, ok := nested.Number(value)
	want, err := strconv.ParseFloat(f.Default, 64)
	return nested.Text(value) == f.Default || ok && err == nil && have == want
}
