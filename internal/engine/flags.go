package engine

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Flag is one flag that an engine accepts in any of its known versions, or one key
// of its configuration file, nested keys with dots between.
type Flag struct {
	Flag     string            `json:"flag"`
	Aliases  []string          `json:"aliases,omitempty"`
	Off      []string          `json:"off,omitempty"` // spellings that say false
	Kind     Kind              `json:"kind"`
	Choices  []string          `json:"choices,omitempty"` // of all known versions together
	Gained   map[string]string `json:"gained,omitempty"`  // choices that not every version takes: the first known one that does
	Lost     map[string]string `json:"lost,omitempty"`    // and the last one
	Bare     bool              `json:"bare,omitempty"`    // its value may be left out
	Open     bool              `json:"open,omitempty"`    // of a file's key: what the list does not have passes too
	Default  string            `json:"default,omitempty"` // of the newest known version, as text; "": none
	Note     string            `json:"note,omitempty"`    // what the engine decides where no value is given, or another version's default
	Since    string            `json:"since,omitempty"`   // first known version that has it, "" for the oldest
	Exact    bool              `json:"exact,omitempty"`   // Since is the very version that brought it, not the first one that was read
	Until    string            `json:"until,omitempty"`   // last known version that has it, "" for the newest
	Group    string            `json:"group"`
	Doc      string            `json:"doc"`
	Try      []string          `json:"try,omitempty"`     // values worth trying, in order
	With     []Interaction     `json:"with,omitempty"`    // flags that change what it does
	Relevant bool              `json:"perf,omitempty"`    // bears on performance
	Figures  bool              `json:"figures,omitempty"` // may change measured figures, and Resolve ignores it
	Param    string            `json:"param,omitempty"`   // canonical name, "" without one

	known []string // the engine's known versions
}

// Interaction is a flag that another one has to be seen with.
type Interaction struct {
	Flag string `json:"flag"`
	Why  string `json:"why"` // what that other flag does to this one
}

// names is how an option parser calls the flag in its messages.
func (f *Flag) names() string { return strings.Join(append([]string{f.Flag}, f.Aliases...), "/") }

// flagRef is one spelling of a flag.
type flagRef struct {
	def   *Flag
	param *Param // nil when the flag has no canonical name
	off   bool   // the spelling says false
}

// flagsJSON lists the flags as the engines' own sources define them, in the versions
// that it names, with what each was read from.
//
//go:embed flags.json
var flagsJSON []byte

// flagList is what flags.json says of an engine.
type flagList struct {
	Versions []struct {
		Version string `json:"version"`
	} `json:"versions"`
	Flags []Flag `json:"flags"`
	Keys  []Flag `json:"keys"`

	known []string // names of Versions
}

// flagLists maps an engine's name to its flags. It is read when first asked for, as
// most commands never do.
var flagLists = sync.OnceValue(func() map[string]*flagList {
	var lists map[string]*flagList
	if err := json.Unmarshal(flagsJSON, &lists); err != nil {
		panic(fmt.Sprintf("engine: embedded flags.json: %v", err))
	}
	for _, l := range lists {
		for _, v := range l.Versions {
			l.known = append(l.known, v.Version)
		}
		for i := range l.Flags {
			l.Flags[i].known = l.known
		}
		for i := range l.Keys {
			l.Keys[i].known = l.known
		}
	}
	return lists
})

// Flags lists the engine's flags of all known versions by name. The list is shared: do not change it.
func (e *Engine) Flags() []Flag {
	flagTables() // which names their parameters
	return e.list().Flags
}

// Keys lists the keys of the engine's configuration file, nil for an engine that has
// none of its own. It is what checks go by, so that it has the keys of every version whose
// sources were read, and Since says nothing of them: of which version a key is was read
// for the newest one only.
func (e *Engine) Keys() []Flag { return e.list().Keys }

func (e *Engine) list() *flagList {
	if l := flagLists()[e.Name]; l != nil {
		return l
	}
	return &flagList{}
}

// flagTables maps engine -> spelling -> flag.
var flagTables = sync.OnceValue(func() map[string]map[string]flagRef {
	tables := map[string]map[string]flagRef{}
	for _, e := range All() {
		tables[e.Name] = flagTable(e, e.list().Flags)
	}
	return tables
})

func flagTable(e *Engine, defs []Flag) map[string]flagRef {
	t := map[string]flagRef{}
	for i := range defs {
		d := &defs[i]
		for _, f := range append([]string{d.Flag}, d.Aliases...) {
			t[f] = flagRef{def: d}
		}
		for _, f := range d.Off {
			t[f] = flagRef{def: d, off: true}
		}
	}
	for i := range e.Params {
		p := &e.Params[i]
		for _, f := range p.Flags {
			t[f] = flagRef{def: t[f].def, param: p}
		}
		for _, f := range p.Off {
			t[f] = flagRef{def: t[f].def, param: p, off: true}
		}
		for _, f := range slices.Concat(p.Flags, p.Off) {
			if d := t[f].def; d != nil && d.Param == "" {
				d.describe(p, !t[f].off)
			}
		}
	}
	return t
}

// describe takes over what the parameter says of its flag, where the list is silent.
func (f *Flag) describe(p *Param, same bool) {
	f.Param = p.Name
	if !same { // the flag says the opposite
		return
	}
	if f.Doc == "" {
		f.Doc = p.Doc
	}
	if f.Try == nil && p.Name != Speculative { // whose values are spelled in several flags
		for _, v := range p.Ladder {
			if spelled, ok := p.Spell[v]; ok {
				v = spelled
			}
			f.Try = append(f.Try, v)
		}
	}
}

// flagName is the part of an argument before "=".
func flagName(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}

func findFlag(e *Engine, table map[string]flagRef, name string) (ref flagRef, glued string, ok bool) {
	if ref, ok = table[name]; ok {
		return ref, "", true
	}
	if e.cli.click {
		return flagRef{}, "", false
	}
	if e.cli.plain {
		ref, ok = table[e.cli.normal(name)]
		return ref, "", ok
	}
	if key, ok := strings.CutPrefix(name, "-O."); ok && e.Name == "vllm" { // as 0.11 wrote it
		name = "--compilation-config." + key
	}
	if e.cli.underscores && strings.HasPrefix(name, "--") {
		base, key, dotted := strings.Cut(strings.ReplaceAll(name, "_", "-"), ".")
		ref, ok = table[base]
		if !dotted {
			return ref, "", ok
		}
		if ok && ref.def.Kind == JSON && key != "" {
			return flagRef{def: &Flag{Flag: name, Kind: String, Figures: ref.def.Figures}}, "", true
		}
		return flagRef{}, "", false
	}
	if len(name) > 2 && name[1] != '-' {
		if ref, ok = table[name[:2]]; ok && ref.def.Kind != Bool {
			return ref, name[2:], true
		}
	}
	return flagRef{}, "", false
}

// normal is a flag as the option parser looks it up.
func (c cli) normal(flag string) string {
	if (c.plain || c.underscores) && strings.HasPrefix(flag, "--") {
		return strings.ReplaceAll(flag, "_", "-")
	}
	return flag
}
