package engine

import (
	"fmt"
	"strconv"
	"strings"

	"perflab/internal/engine/nested"
)

// envOf is the value of a variable of the command's environment, "" where it has none.
func envOf(env []string, name string) (value string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// resolver reads a command's parameters over defaults. The first error stays.
type resolver struct {
	engine *Engine
	cmd    Command
	cfg    *Config
	err    error
}

func (r *resolver) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *resolver) text(name string) string { return r.cmd.Params[name] }

// flag reports whether a further flag was given.
func (r *resolver) flag(flag string) bool { return r.cmd.Has(flag) }

// extraInt reads a further flag's number, at least 1.
func (r *resolver) extraInt(flag string, otherwise int) int {
	return int(r.extraFloat(flag, float64(otherwise)))
}

// extraFloat reads a further flag's number; one that is not positive counts as
// not given.
func (r *resolver) extraFloat(flag string, otherwise float64) float64 {
	v, _ := r.cmd.extra(flag)
	if f, err := strconv.ParseFloat(v, 64); err == nil && f > 0 {
		return f
	}
	return otherwise
}

func (r *resolver) int(name string, otherwise int) int {
	v := r.text(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		r.fail(fmt.Errorf("parameter %s=%q: not a whole number", name, v))
	}
	return n
}

func (r *resolver) float(name string, otherwise float64) float64 {
	v := r.text(name)
	if v == "" {
		return otherwise
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		r.fail(fmt.Errorf("parameter %s=%q: not a number", name, v))
	}
	return f
}

func (r *resolver) bool(name string, otherwise bool) bool {
	v := r.text(name)
	if v == "" {
		return otherwise
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		r.fail(fmt.Errorf("parameter %s=%q: write true or false", name, v))
	}
	return b
}

// ranks reads a Bool that the engine takes as a number of ranks.
func (r *resolver) ranks(name string) int {
	switch r.text(name) {
	case "", "false":
		return 1
	case "true":
		return r.cfg.TP
	}
	n := r.int(name, 1)
	r.atLeastOne(name, n)
	return n
}

// atLeastOne refuses a count that is not positive, of a parameter whose kind
// has no limits.
func (r *resolver) atLeastOne(name string, n int) {
	if n < 1 {
		r.outside(name, "of at least 1", strconv.Itoa(n))
	}
}

func (r *resolver) outside(name, limit, value string) {
	r.fail(&Rejection{Rule: "value", Reason: fmt.Sprintf("%s does not take %s=%s: use a value %s", r.engine.Title, name, value, limit),
		Log: fmt.Sprintf("pydantic_core._pydantic_core.ValidationError: 1 validation error for %s: Input should be %s (input_value=%s)", name, limit, value)})
}

// fileNumber is a number of the configuration file, 0 where none is given.
func (r *resolver) fileNumber(key string) float64 {
	v, _ := nested.At(r.cmd.File, key)
	f, _ := nested.Number(v)
	return f
}
