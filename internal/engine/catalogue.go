package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Kind is how a parameter's value reads.
type Kind string

// Kinds of values.
const (
	Int    Kind = "int"
	Float  Kind = "float"
	Bool   Kind = "bool"
	String Kind = "string"
	JSON   Kind = "json"
	Choice Kind = "choice"

	list Kind = "list" // one or more values; no parameter is one, some flags are
)

// Param is one parameter of an engine under its canonical name.
type Param struct {
	Name    string
	Flags   []string // spellings; the first is printed
	Off     []string // spellings that say false
	OffArgs []string // arguments that say false by another parameter's flag
	Key     string   // in the engine's configuration file, dotted, which sets it where no flag does
	Kind    Kind
	Default string            // text; a value equal to it needs no flag
	Choices []string          // of Kind Choice; empty: not closed
	Spell   map[string]string // canonical value -> the engine's own
	Derived bool              // no flag of its own: set through another parameter's
	Ranks   bool              // a Bool whose flag takes a number of ranks; true means as many as tensor-parallel ones
	Min     float64           // least value of Int and Float
	Max     float64           // largest value; 0: no limit
	Ladder  []string          // values worth trying, in order
	Doc     string
}

// fixed reports whether neither command line nor configuration file can change the
// parameter.
func (p *Param) fixed() bool {
	return !p.Derived && len(p.Flags)+len(p.Off)+len(p.OffArgs) == 0 && p.Key == ""
}

// Engine is one kind of server.
type Engine struct {
	Name        string // "vllm"
	Title       string // "vLLM"
	Params      []Param
	Health      string // path that answers 200 when ready
	DefaultHost string
	DefaultPort int
	MetricsPath string
	// Metrics maps common names (see Meters) to the engine's, in the spellings of
	// its versions, the newest first. What it does not publish is absent.
	Metrics     map[string][]string
	MetricsFlag string // without which MetricsPath is closed; New adds it. "": it is open, or not ours to open
	// MeasuredOnly: the simulator has no model of the engine. Its commands are checked
	// and started (Command.Check, Command.Outline), and Resolve refuses them.
	MeasuredOnly bool

	launch    []string // argv before the model
	modelFlag string   // "" when the model is positional
	hostFlag  string
	portFlag  string
	defModel  string      // model served when none is named, "" when that is an error
	cli       cli         // how the engine's option parser speaks
	file      *configFile // nil when it has none, or none that is understood here
}

// behaviour is what of an engine is arithmetic, not data.
type behaviour struct {
	specArgs func(spec) ([]string, error) // speculation as flags; nil where a file sets it
	resolve  func(*resolver)              // fills in the engine's defaults
	pool     func(*Config) int64          // bytes of KV cache on a rank
	startup  func(*Config) []string
}

func (e *Engine) behaviour() behaviour {
	switch e.Name {
	case "vllm":
		return behaviour{vllmSpecArgs, resolveVLLM, poolVLLM, startupVLLM}
	case "sglang":
		return behaviour{sglangSpecArgs, resolveSGLang, poolSGLang, startupSGLang}
	case "llamacpp":
		return behaviour{
			specArgs: llamacppSpecArgs, // Resolve ends before the others
			pool:     func(*Config) int64 { return 0 }, startup: func(*Config) []string { return nil },
		}
	}
	return behaviour{nil, resolveTRTLLM, poolTRTLLM, startupTRTLLM}
}

// Param finds a parameter by its canonical name.
func (e *Engine) Param(name string) (*Param, bool) {
	for i := range e.Params {
		if e.Params[i].Name == name {
			return &e.Params[i], true
		}
	}
	return nil, false
}

// KnownParam is an error that lists the canonical names unless name is one.
func KnownParam(name string, others ...string) error {
	names := slices.Clone(others)
	for _, p := range All()[0].Params { // every engine has a row for each
		if p.Name == name {
			return nil
		}
		names = append(names, p.Name)
	}
	return fmt.Errorf("unknown parameter %q: use one of %s", name, strings.Join(names, ", "))
}

// All lists the engines, the default one first. They are shared: do not change them.
func All() []*Engine { return catalogue() }

var catalogue = sync.OnceValue(func() []*Engine {
	all := []*Engine{vllm(), sglang(), trtllm(), llamacpp()}
	for _, e := range all {
		e.complete(all)
	}
	return all
})

// complete gives an engine a row for each parameter of which it has nothing to say: New
// refuses a value by that row. An engine has a row of its own where a value is what it does
// anyway (then that is its Default), or where something else does the same (then Doc says so).
func (e *Engine) complete(all []*Engine) {
	for _, other := range all {
		for _, p := range other.Params {
			if _, ok := e.Param(p.Name); !ok {
				e.Params = append(e.Params, Param{Name: p.Name, Kind: p.Kind, Doc: e.Title + " has no such setting."})
			}
		}
	}
}

// ByName finds an engine.
func ByName(name string) (*Engine, error) {
	var names []string
	for _, e := range All() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return nil, fmt.Errorf("unknown engine %q: use one of %s", name, strings.Join(names, ", "))
}
