package candidate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Removals are the settings of a configuration that the engine would have otherwise, and
// that may go: the further ones first, then those of the structure. The checkpoint and
// the engine stay, and so does what the configuration does not run without.
func (f *Field) Removals(c tune.Config) []tune.Change {
	return f.remembered(f.removals, c, f.removalsOf)
}

func (f *Field) removalsOf(c tune.Config) []tune.Change {
	var further, made []tune.Change
	for _, name := range inOrder(c) {
		if name == engineKey || name == modelKey || name == engine.DP && c[engine.AttentionDP] == "true" || !f.counts(c, name) {
			continue
		}
		set := tune.Config{name: ""}
		if name == engine.AttentionDP && c[engine.DP] != "" {
			set[engine.DP] = "" // the number of its groups
		}
		if f.Refuse(with(c, set)) != "" || f.Settings(with(c, set)) >= f.Settings(c) {
			continue
		}
		r := tune.Change{Label: f.spelled(c, name), Set: set}
		if slices.Contains(structure, name) {
			made = append(made, r)
		} else {
			further = append(further, r)
		}
	}
	return append(further, made...)
}

// spelled is a setting as its engine spells it.
func (f *rules) spelled(c tune.Config, name string) string {
	e, err := engine.ByName(c[engineKey])
	if err != nil {
		return said(name, c[name])
	}
	set := map[string]string{name: c[name]}
	if name == engine.ExpertParallel && c[engine.TP] != "" || name == engine.MaxModelLen && e.Name == "llamacpp" {
		set[engine.TP], set[engine.MaxNumSeqs] = c[engine.TP], c[engine.MaxNumSeqs] // what it is counted by
	}
	one, err := engine.New(e.Name, c[modelKey], set, nil)
	delete(set, name)
	none, err2 := engine.New(e.Name, c[modelKey], set, nil)
	if err != nil || err2 != nil {
		return said(name, c[name])
	}
	whole := f.resolve(c).cmd
	one.Version, one.Help = whole.Version, whole.Help
	none.Version, none.Help = whole.Version, whole.Help
	p, _ := e.Param(name)
	if len(one.Files()) > 0 && p != nil && p.Key != "" {
		return fmt.Sprintf("%s: %s", p.Key, cmp.Or(p.Spell[c[name]], c[name]))
	}
	words := one.Argv()
	for _, w := range none.Argv() {
		if i := slices.Index(words, w); i >= 0 {
			words = slices.Delete(words, i, i+1)
		}
	}
	if len(words) == 0 {
		return said(name, c[name])
	}
	for i := range words {
		words[i] = engine.Quote(words[i])
	}
	return strings.Join(words, " ")
}
