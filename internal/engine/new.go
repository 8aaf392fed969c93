package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// New builds a command from canonical parameters and further flags. An empty value
// or one that is the engine's default adds no flag. A parameter that the engine
// lacks is a *Rejection; a further flag that it does not know, a *UsageError.
func New(engineName, model string, params map[string]string, extra []string) (Command, error) {
	return build(engineName, model, params, extra, false)
}

// NewOpen is New for an engine that may be newer than the catalogue: a further flag that
// the catalogue does not have passes. It stands in Command.Unread, and Fit holds it
// against what the installed engine lists.
func NewOpen(engineName, model string, params map[string]string, extra []string) (Command, error) {
	return build(engineName, model, params, extra, true)
}

func build(engineName, model string, params map[string]string, extra []string, open bool) (Command, error) {
	e, err := ByName(engineName)
	if err != nil {
		return Command{}, err
	}
	if model == "" || strings.HasPrefix(model, "-") {
		return Command{}, fmt.Errorf("model %q: name a repository or path", model)
	}
	c := Command{Engine: e.Name, Model: model}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		value := strings.TrimSpace(params[name])
		if err := KnownParam(name); err != nil {
			return Command{}, err
		}
		p, ok := e.Param(name)
		if !ok {
			p = &Param{Name: name}
		}
		if value == "" || value == p.Default {
			continue
		}
		if p.fixed() {
			return Command{}, e.lacks(p, value)
		}
		if err := p.readable(value); err != nil {
			return Command{}, err
		}
		if c.Params == nil {
			c.Params = map[string]string{}
		}
		c.Params[name] = value
	}
	args, err := speller{c, e}.args()
	if err != nil {
		return Command{}, err
	}
	if e.MetricsFlag != "" && !slices.Contains(extra, e.MetricsFlag) {
		extra = append(slices.Clone(extra), e.MetricsFlag)
	}
	// Reading the line back lets the engine's own parser judge every value, and
	// files further flags that are parameters as such.
	out, err := parse(slices.Concat(speller{c, e}.head(), args, extra), open)
	if err != nil {
		return Command{}, err
	}
	if pools := c.Params[Disaggregation]; pools != "" {
		if out.Params == nil {
			out.Params = map[string]string{}
		}
		out.Params[Disaggregation] = pools
	}
	return out.inherit(e, c.Params)
}

// inherit adds the parameters that a configuration file sets.
func (c Command) inherit(e *Engine, params map[string]string) (Command, error) {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		p, _ := e.Param(name)
		if !e.inFile(p, "") {
			continue
		}
		if c.FilePath != "" {
			return Command{}, fmt.Errorf("%s=%s goes into the configuration file of %s, and %s names another, %s: give the content of that one instead", name, params[name], e.Title, e.file.flag, c.FilePath)
		}
		if c.Params == nil {
			c.Params = map[string]string{}
		}
		c.Params[name] = params[name]
	}
	_, err := speller{c, e}.content()
	return c, err
}
