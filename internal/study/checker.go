package study

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/engine"
	"perflab/internal/field"
)

// checker collects what is wrong with the values of a file. Its errors say which
// value they are of: their paths are for the position.
type checker struct {
	s       *File
	doc     *yaml.Node // the file, for keys whose absence shows there alone
	recipes recipes
	faults  []*field.Error
	unasked []*field.Error // faults unless the installed engine says otherwise
}

// add says what is wrong with the value at a path.
func (c *checker) add(path, format string, args ...any) {
	c.faults = append(c.faults, &field.Error{Path: path, Reason: fmt.Sprintf(format, args...)})
}

// addUnder adds the errors of values below a path, whose reasons do not name
// them.
func (c *checker) addUnder(path, what string, err error) {
	for _, e := range field.All(err) {
		c.add(field.Join(path, e.Path), "%s%s", what, strings.TrimSpace(e.Path+" "+e.Reason))
	}
}

// params checks the names of parameters.
func (c *checker) params(at string, set Values) (known bool) {
	before := len(c.faults)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if err := engine.KnownParam(name); err != nil {
			c.add(at+"."+name, "%v", err)
		}
	}
	return len(c.faults) == before
}

// command spells a configuration as far as it is known. A parameter that the
// engine lacks is a finding of the study and no fault of the file.
func (c *checker) command(at, name string, use EngineUse, set Values) {
	cmd, err := use.command(name, "MODEL", set)
	if _, refused := errors.AsType[*engine.Rejection](err); err == nil || refused {
		c.unknown(at, use, cmd)
		return
	}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		if strings.HasPrefix(line, "usage: ") {
			continue // argparse's head: the line after it says what is wrong
		}
		c.add(at, "%s", line)
	}
}

// engine checks that an engine is known, and that the study's runtime has it.
func (c *checker) engine(at, name string) {
	e, err := engine.ByName(name)
	switch {
	case err != nil:
		c.add(at, "%v", err)
	case e.MeasuredOnly && c.s.Runtime.Modelled():
		c.add(at, "%v", engine.ErrMeasuredOnly)
	}
}

func (c *checker) candidate(at string, k Candidate, whole bool) {
	if k.Label == "" {
		c.add(at+".label", "label is missing: it names the candidate in the report")
	}
	c.figure(at, k, whole)
	if k.Engine != "" {
		c.engine(at+".engine", k.Engine)
	} else if whole {
		c.add(at+".engine", "engine is missing: vllm, sglang, trtllm or llamacpp")
	}
	if whole && k.Model == "" && c.s.Model == "" {
		c.add(at+".model", "model is missing, here or at the top of the study")
	}
	if !c.params(at+".set", k.Set) {
		return
	}
	name := k.Engine
	if name == "" && c.s.Baseline != nil {
		name = c.s.Baseline.Engine // whichever engine leads by then: the values are read alike
	}
	if _, err := engine.ByName(name); err == nil {
		c.command(at+".set", name, EngineUse{}, k.Set)
	}
}
