package engine

import (
	"fmt"
	"maps"

	"perflab/internal/engine/nested"
)

// File is a small text that an engine reads when it starts.
type File struct {
	Name string
	Text string
}

// Files are the files that Argv names as {file:NAME}: none, or the engine's configuration.
func (c Command) Files() []File {
	e, err := ByName(c.Engine)
	if err != nil {
		return nil
	}
	tree, err := speller{c, e}.content()
	if err != nil || len(tree) == 0 {
		return nil
	}
	return []File{{e.file.name, nested.Write(tree)}}
}

// inFile reports whether the parameter is set by the configuration file: the command
// line of a version has no flag for it.
func (e *Engine) inFile(p *Param, version string) bool {
	if p.Key == "" || len(p.Flags) == 0 {
		return p.Key != "" && len(p.Off)+len(p.OffArgs) == 0
	}
	since := flagTables()[e.Name][p.Flags[0]].def.Since
	return since != "" && !atLeast(version, since)
}

// inFile is Engine.inFile for the command's version. A parameter that has a flag in any
// version keeps it beside a file of the user's own.
func (s speller) inFile(p *Param) bool {
	return s.engine.inFile(p, s.Version) && (s.FilePath == "" || len(p.Flags) == 0)
}

// content is the configuration file: parameters without a flag, over what File says.
func (s speller) content() (map[string]any, error) {
	c, e := s.Command, s.engine
	if e.file == nil {
		if len(c.File) > 0 {
			return nil, fmt.Errorf("%s takes no configuration file here: use its flags", e.Title)
		}
		return nil, nil
	}
	if c.FilePath != "" {
		return nil, nil // its content is not ours to write
	}
	copied, err := nested.Normal(c.File)
	if err != nil {
		return nil, err
	}
	tree := copied.(map[string]any)
	for i := range e.Params {
		p := &e.Params[i]
		value, ok := c.Params[p.Name]
		if !ok || value == "" || !s.inFile(p) {
			continue
		}
		if err := trtllmPut(c, tree, p, value); err != nil {
			return nil, err
		}
	}
	if p, _ := e.Param(MemoryShare); p != nil && c.Params[MemoryShare] != "" && tree[nested.Section(p.Key)] != nil {
		if err := trtllmPut(c, tree, p, c.Params[MemoryShare]); err != nil { // before 1.2 the section drops the flag
			return nil, err
		}
	}
	if rej := checkKeys(e, tree, ""); rej != nil {
		return nil, rej
	}
	return tree, nil
}

// WithFile is the command with content of its configuration file: of the file that
// FilePath names, or further content. Where content and command line differ the
// content wins, as in the engine. What it does not know is a *Rejection.
func (c Command) WithFile(content map[string]any) (Command, error) {
	e, err := ByName(c.Engine)
	if err != nil {
		return c, err
	}
	named := c.FilePath != ""
	if e.file == nil {
		if len(content) == 0 && !named {
			return c, nil
		}
		return c, fmt.Errorf("%s takes no configuration file here: use its flags", e.Title)
	}
	copied, err := nested.Normal(content)
	if err != nil {
		return c, fmt.Errorf("configuration file: %w", err)
	}
	tree := copied.(map[string]any)
	if rej := checkKeys(e, tree, ""); rej != nil {
		return c, rej
	}
	c.FilePath, c.Params = "", maps.Clone(c.Params)
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	if rest, err := nested.Normal(c.File); err == nil {
		c.File = rest.(map[string]any)
	}
	if named && tree[nested.Section(kvFraction)] != nil && !c.AtLeast("1.2") {
		delete(c.Params, MemoryShare) // the whole section replaces what flags said of it
	}
	if err := trtllmTake(&c, e, tree); err != nil {
		return c, err
	}
	nested.Overlay(c.File, tree)
	nested.Prune(c.File)
	if len(c.File) == 0 {
		c.File = nil
	}
	c.settleRanks()
	if len(c.Params) == 0 {
		c.Params = nil
	}
	_, err = speller{c, e}.content()
	return c, err
}
