// Package vllmbench reads command lines of vllm bench serve and writes them in the
// flags of perflab bench.
//
//	line, err := vllmbench.Translate([]string{"serve", "--goodput", "ttft:500", "tpot:50", "--disable-tqdm"}, own)
//
// Every flag of both of vLLM's clients (flags.json, which scripts/benchflags.py reads out
// of a release) has a row here, with what it is in perflab and why: Rows is the
// table of docs/from-vllm.md, and a test fails for a flag without a row. What a line
// means is kept, or the line is refused with what to give instead.
//
// Two ways of writing a line are told apart. Behind the word serve ("perflab bench
// serve ...") it is vLLM's whole: defaults that it leaves out are vLLM's too, and a
// flag that does not apply to the dataset has no effect, as there. Without the word
// the defaults are perflab's, and such a flag is refused later, by who knows datasets.
//
// No file is opened and no server asked.
package vllmbench

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

//go:embed flags.json
var flagsJSON []byte

// Flag is a flag of one of vLLM's clients, as its parser has it.
type Flag struct {
	Name    string   `json:"name"`              // without --
	Values  string   `json:"values"`            // none, one, some (one or more) or any
	Default string   `json:"default,omitempty"` // as it would be written; "" for none
	Choices []string `json:"choices,omitempty"`
}

// Values of Flag.Values.
const (
	none  = "none"
	one   = "one"
	some  = "some"
	anyOf = "any" // or none
)

// release is what scripts/benchflags.py found in a release.
type release struct {
	Release string `json:"release"`
	Python  []Flag `json:"python"`
	Rust    []Flag `json:"rust"`
}

var read = sync.OnceValue(func() release {
	var r release
	if err := json.Unmarshal(flagsJSON, &r); err != nil {
		panic("vllmbench: flags.json: " + err.Error()) // it is part of the program, and a test reads it
	}
	return r
})

// Older returns the flags that scripts for earlier releases use, and --config.
func Older() []Flag { return older() }

// Release is the release of vLLM whose flags are known.
func Release() string { return read().Release }

// Python returns the flags of the client that vllm bench serve is by default.
func Python() []Flag { return read().Python }

// RustOnly returns the flags that only the client in Rust has, which
// VLLM_USE_RUST_BENCH=1 chooses.
func RustOnly() []Flag {
	return slices.DeleteFunc(slices.Clone(read().Rust), func(f Flag) bool { return named(f.Name, read().Python) != nil })
}

// named is the flag of a name; nil for none.
func named(name string, flags []Flag) *Flag {
	if i := slices.IndexFunc(flags, func(f Flag) bool { return f.Name == name }); i >= 0 {
		return &flags[i]
	}
	return nil
}

// known is a flag of either client, or one that older releases had.
func known(name string) *Flag {
	for _, flags := range [][]Flag{read().Python, read().Rust, older()} {
		if f := named(name, flags); f != nil {
			return f
		}
	}
	return nil
}

// older are flags of releases before that scripts still use, and --config, which every
// parser of vLLM takes without listing it.
func older() []Flag {
	return []Flag{
		{Name: "config", Values: one}, {Name: "endpoint-type", Values: one}, {Name: "custom-skip-chat-template", Values: none},
		{Name: "sonnet-input-len", Values: one, Default: "550"}, {Name: "sonnet-output-len", Values: one, Default: "150"}, {Name: "sonnet-prefix-len", Values: one, Default: "200"},
	}
}

// Own says what perflab bench takes itself.
type Own struct {
	Flag      func(name string) (known, takesValue bool)
	Tokenizer func(name string) bool // whether this machine has its file
	Datasets  []string
	Stamp     string // time, for names of files that vLLM names after it
}

// Line is a command line of perflab bench.
type Line struct {
	Args  []string
	Notes []string // what differs from what vLLM would have done, a sentence each
}

// Translate writes a command line in perflab bench's flags. What it does not know it
// leaves as it is.
func Translate(args []string, own Own) (Line, error) {
	t := &translation{own: own, serve: len(args) > 0 && args[0] == "serve"}
	if t.serve {
		args = args[1:]
	}
	if err := t.read(args); err != nil {
		return Line{}, err
	}
	if i := slices.IndexFunc(t.items, func(it item) bool { return it.name == "help" }); i >= 0 {
		if len(t.items[i].values) > 0 { // vLLM has --help=all, too
			return Line{Args: []string{"--help=all"}}, nil
		}
		return Line{Args: []string{"--help"}}, nil
	}
	if err := t.dataset(); err != nil {
		return Line{}, err
	}
	for _, it := range t.items {
		if err := t.item(it); err != nil {
			return Line{}, err
		}
	}
	if err := t.finish(); err != nil {
		return Line{}, err
	}
	return Line{Args: slices.Concat(t.words, t.out, t.rest), Notes: t.notes}, nil
}

// translation is a line on its way.
type translation struct {
	own   Own
	serve bool
	items []item
	words []string // that are no flags
	rest  []string // from -- on
	out   []string
	notes []string

	data  string                     // the dataset, in vLLM's name
	extra map[string]json.RawMessage // what goes into --extra-body, unless that has it
}

// give adds a flag of perflab bench.
func (t *translation) give(name string, values ...string) {
	if len(values) == 0 {
		t.out = append(t.out, "--"+name)
	}
	for _, v := range values {
		t.out = append(t.out, "--"+name+"="+v)
	}
}

// note says something once.
func (t *translation) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

// has reports whether the line gives one of these flags.
func (t *translation) has(names ...string) bool {
	return slices.ContainsFunc(t.items, func(it item) bool { return slices.Contains(names, it.name) })
}

// value is the last value of a flag; "" where it is not given.
func (t *translation) value(name string) string {
	v := ""
	for _, it := range t.items {
		if it.name == name && len(it.values) > 0 {
			v = it.values[len(it.values)-1]
		}
	}
	return v
}

// item writes one flag.
func (t *translation) item(it item) error {
	if r, ok := rowOf(it.name); ok {
		own, _ := t.own.Flag(it.name)
		switch {
		case r.only != "" && !t.applies(r) && (t.serve || !own):
			t.note("--%s has no effect with --dataset-name %s, as in vllm bench serve", it.name, t.data)
			return nil
		case r.do != nil:
			return r.do(t, it)
		case own: // also where the row, older than the flag, says that there is none
		case r.State == Refused:
			return fmt.Errorf("there is no --%s here: %s", it.name, r.Note)
		case r.State == Accepted:
			if r.Say {
				t.note("--%s: %s", it.name, r.Note)
			}
			return nil
		}
	}
	t.give(it.name, it.values...)
	return nil
}
