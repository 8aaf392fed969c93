package engine

import (
	"fmt"
	"strconv"

	"perflab/internal/engine/nested"
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
	Flags   []string // spellings of all versions; of those that do the same the newest stands first: see Engine.spelling
	Off     []string // spellings that say false
	OffArgs []string // arguments that say false by another parameter's flag
	All     []string // switches that say true together, in versions that have them all
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
	// Metrics maps common names (of package meters) to the engine's, in the spellings of
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

// Param finds a parameter by its canonical name.
func (e *Engine) Param(name string) (*Param, bool) {
	for i := range e.Params {
		if e.Params[i].Name == name {
			return &e.Params[i], true
		}
	}
	return nil, false
}

// readable checks a value by its kind, before it is spelled the engine's way.
func (p *Param) readable(value string) error {
	var err error
	switch {
	case p.Name == Disaggregation:
		_, err := ParsePools(value)
		return err
	case p.Kind == Bool && !p.Ranks:
		if value != "true" && value != "false" {
			err = fmt.Errorf("write true or false")
		}
	case p.Kind == Int:
		_, err = strconv.Atoi(value)
	case p.Kind == Float:
		_, err = strconv.ParseFloat(value, 64)
	}
	if err != nil {
		return fmt.Errorf("parameter %s=%q: not a value of kind %s", p.Name, value, p.Kind)
	}
	return nil
}

// switchArgs is a Bool as flags. Where only the other value has one, none is needed.
func (p *Param) switchArgs(e *Engine, c Command, value string) ([]string, error) {
	switch {
	case value == "true" && len(p.All) > 0 && e.has(c, p.All...):
		return p.All, nil
	case value == "true" && len(p.Flags) > 0:
		return []string{e.spelling(c, p.Flags)}, nil
	case value == "false" && len(p.Off) > 0:
		return []string{e.spelling(c, p.Off)}, nil
	case value == "false" && len(p.OffArgs) > 0:
		return p.OffArgs, nil
	case value == "true" || value == "false":
		return nil, nil
	}
	return nil, fmt.Errorf("parameter %s=%q: write true or false", p.Name, value)
}

// configFile is a file that an engine reads beside its command line.
type configFile struct {
	name  string // that it is given here
	flag  string // that names it
	model string // what the engine's messages call its content
}

// cli is how an engine's option parser speaks: argparse's way, click's, or llama.cpp's.
type cli struct {
	prog        string
	usage       string
	click       bool
	underscores bool // --max_model_len is --max-model-len
	suffixes    bool // 32k is 32000, 32K is 32768
	plain       bool // llama.cpp's, see llamacppparse.go
}

// typed is a parameter's text as a value of its kind.
func (p *Param) typed(value string) (any, error) {
	if err := p.readable(value); err != nil {
		return nil, err
	}
	switch p.Kind {
	case Int:
		return strconv.Atoi(value)
	case Float:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, err
		}
		return nested.Normal(f)
	case Bool:
		return value == "true", nil
	}
	return value, nil
}
