package versus

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"perflab/internal/compare"
	"perflab/internal/interop/command"
	"perflab/internal/web/page"
)

// fact is a row of what differs: one thing, and what each side says of it.
type fact struct {
	Label  string
	Values []string // None where it is not known
	Differ bool
	Code   bool
}

// keyCommand is the covariate of the serving command.
const keyCommand = "command"

// facts are what the sides say of themselves: the serving command flag by flag, and each
// covariate of a comparison.
func facts(sides []side, c *compare.Comparison) []fact {
	out := flags(sides)
	var known []fact
	row := func(label string, of func(side) string) {
		f := fact{Label: label}
		for _, s := range sides {
			f.Values = append(f.Values, of(s))
		}
		known = append(known, f)
	}
	row("Engine", func(s side) string {
		return strings.TrimSpace(s.Entries[0].Engine + " " + s.Entries[0].EngineVersion)
	})
	row("Image", func(s side) string { return s.Entries[0].Image })
	row("Build", func(s side) string { return s.Entries[0].Build })
	row("Client", func(s side) string {
		return strings.TrimSpace(cmp.Or(s.Entries[0].Imported, "perflab") + " " + s.Entries[0].Version)
	})
	if c != nil {
		for _, f := range c.Facts {
			if f.Key == keyCommand && len(out) > 0 { // flag by flag above
				continue
			}
			if !slices.ContainsFunc(known, func(k fact) bool { return strings.EqualFold(k.Label, f.Label) }) {
				known = append(known, fact{Label: f.Label, Values: slices.Clone(f.Values), Differ: f.Differ})
			}
		}
	}
	for _, f := range known {
		some := slices.ContainsFunc(f.Values, func(v string) bool { return v != "" })
		if !some {
			continue
		}
		for i, v := range f.Values {
			f.Differ = f.Differ || v != f.Values[0]
			f.Values[i] = cmp.Or(v, page.None)
		}
		out = append(out, f)
	}
	return out
}

// flags are the rows of serving commands: one for each flag that any side gives.
func flags(sides []side) []fact {
	words := make([]map[string]string, len(sides))
	all, told := map[string]bool{}, 0
	for i, s := range sides {
		if text := s.Entries[0].Command; text != "" {
			told++
			words[i] = command.Read(text).Words()
		}
		for name := range words[i] {
			all[name] = true
		}
	}
	if told == 0 {
		return nil
	}
	var out []fact
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := fact{Label: name, Code: true}
		for _, w := range words {
			value, given := w[name]
			switch {
			case w == nil:
				value = "command not known"
			case !given:
				value = page.None
			case value == "":
				value = "given"
			}
			f.Values = append(f.Values, value)
			f.Differ = f.Differ || value != f.Values[0]
		}
		out = append(out, f)
	}
	return out
}
