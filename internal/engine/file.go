package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	yaml "go.yaml.in/yaml/v4"
)

// configFile is a file that an engine reads beside its command line.
type configFile struct {
	name  string // that it is given here
	flag  string // that names it
	model string // what the engine's messages call its content
}

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
	tree, err := c.content(e)
	if err != nil || len(tree) == 0 {
		return nil
	}
	return []File{{e.file.name, writeYAML(tree)}}
}

// ParseText is Parse for what String prints: a command line as a shell takes it, and
// before it the file that it names.
func ParseText(text string) (Command, error) {
	name, body, rest := hereDocument(text)
	argv, err := Split(rest)
	if err != nil {
		return Command{}, err
	}
	c, err := Parse(argv)
	if err != nil || name == "" || c.FilePath != name {
		return c, err
	}
	tree, err := readYAML(body)
	if err != nil {
		return c, fmt.Errorf("file %s: %w", name, err)
	}
	return c.WithFile(tree)
}

const (
	hereBegin = "cat > "
	hereWord  = " <<'EOF'\n"
	hereEnd   = "\nEOF\n"
)

// hereDocument takes the file off a text that String printed.
func hereDocument(text string) (name, body, rest string) {
	text = strings.TrimLeft(strings.ReplaceAll(text, "\r\n", "\n"), " \t\n")
	after, ok := strings.CutPrefix(text, hereBegin)
	if !ok {
		return "", "", text
	}
	name, after, ok = strings.Cut(after, hereWord)
	body, rest, end := strings.Cut(after, hereEnd)
	if !ok || !end || strings.Contains(name, "\n") {
		return "", "", text
	}
	return name, body, rest
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
func (c Command) inFile(e *Engine, p *Param) bool {
	return e.inFile(p, c.Version) && (c.FilePath == "" || len(p.Flags) == 0)
}

// content is the configuration file: parameters without a flag, over what File says.
func (c Command) content(e *Engine) (map[string]any, error) {
	if e.file == nil {
		if len(c.File) > 0 {
			return nil, fmt.Errorf("%s takes no configuration file here: use its flags", e.Title)
		}
		return nil, nil
	}
	if c.FilePath != "" {
		return nil, nil // its content is not ours to write
	}
	copied, err := normal(c.File)
	if err != nil {
		return nil, err
	}
	tree := copied.(map[string]any)
	for i := range e.Params {
		p := &e.Params[i]
		value, ok := c.Params[p.Name]
		if !ok || value == "" || !c.inFile(e, p) {
			continue
		}
		if err := trtllmPut(tree, p, value); err != nil {
			return nil, err
		}
	}
	if p, _ := e.Param(MemoryShare); p != nil && c.Params[MemoryShare] != "" && tree[section(p.Key)] != nil {
		if err := trtllmPut(tree, p, c.Params[MemoryShare]); err != nil { // before 1.2 the section drops the flag
			return nil, err
		}
	}
	if rej := checkKeys(e, tree, ""); rej != nil {
		return nil, rej
	}
	return tree, nil
}

// section is the first part of a dotted key.
func section(key string) string { s, _, _ := strings.Cut(key, "."); return s }

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
	copied, err := normal(content)
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
	if rest, err := normal(c.File); err == nil {
		c.File = rest.(map[string]any)
	}
	if named && tree[section(kvFraction)] != nil && !c.AtLeast("1.2") {
		delete(c.Params, MemoryShare) // the whole section replaces what flags said of it
	}
	if err := trtllmTake(&c, e, tree); err != nil {
		return c, err
	}
	overlay(c.File, tree)
	prune(c.File)
	if len(c.File) == 0 {
		c.File = nil
	}
	c.settleRanks()
	if len(c.Params) == 0 {
		c.Params = nil
	}
	_, err = c.content(e)
	return c, err
}

// overlay puts a tree's leaves over another's.
func overlay(base, over map[string]any) {
	for key, value := range over {
		below, isMap := value.(map[string]any)
		if was, ok := base[key].(map[string]any); ok && isMap {
			overlay(was, below)
			continue
		}
		base[key] = value
	}
}

// prune removes mappings that say nothing.
func prune(tree map[string]any) {
	for key, value := range tree {
		if m, ok := value.(map[string]any); ok {
			prune(m)
			if len(m) == 0 {
				delete(tree, key)
			}
		}
	}
}

// at finds the value of a dotted key.
func at(tree map[string]any, key string) (any, bool) {
	head, rest, deeper := strings.Cut(key, ".")
	value, ok := tree[head]
	if !deeper || !ok {
		return value, ok
	}
	below, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	return at(below, rest)
}

// put sets the value of a dotted key.
func put(tree map[string]any, key string, value any) {
	head, rest, deeper := strings.Cut(key, ".")
	if !deeper {
		tree[head] = value
		return
	}
	below, ok := tree[head].(map[string]any)
	if !ok {
		below = map[string]any{}
		tree[head] = below
	}
	put(below, rest, value)
}

// cut removes a dotted key and returns its value.
func cut(tree map[string]any, key string) (any, bool) {
	value, ok := at(tree, key)
	if !ok {
		return nil, false
	}
	for {
		head, rest, deeper := strings.Cut(key, ".")
		if !deeper {
			delete(tree, head)
			return value, true
		}
		tree, key = tree[head].(map[string]any), rest
	}
}

// keyTables maps an engine's name to the keys and sections of its file. A section, which
// is a mapping of keys that are listed, has no definition of its own; one that is listed
// as open takes any mapping.
var keyTables = sync.OnceValue(func() map[string]map[string]*Flag {
	tables := map[string]map[string]*Flag{}
	for _, e := range All() {
		keys, table := e.Keys(), map[string]*Flag{}
		for i := range keys {
			table[keys[i].Flag] = &keys[i]
		}
		for i := range keys {
			if s := section(keys[i].Flag); s != keys[i].Flag && (table[s] == nil || !table[s].Open) {
				table[s] = nil
			}
		}
		tables[e.Name] = table
	}
	return tables
})

// checkKeys refuses unknown keys and values of another kind in the engine's own words.
func checkKeys(e *Engine, tree map[string]any, under string) *Rejection {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		key, value := under+name, tree[name]
		def, known := keyTables()[e.Name][key]
		below, isMap := value.(map[string]any)
		problem := ""
		switch {
		case !known:
			problem = fmt.Sprintf("Extra inputs are not permitted [type=extra_forbidden, input_value=%s]", flow(value))
		case value == nil:
		case def == nil && isMap:
			if rej := checkKeys(e, below, key+"."); rej != nil {
				return rej
			}
		case def == nil:
			problem = fmt.Sprintf("Input should be a valid dictionary [input_value=%s]", flow(value))
		default:
			problem = def.misfit(value)
		}
		if problem != "" {
			return keyRejection(e, key, problem)
		}
	}
	return nil
}

func keyRejection(e *Engine, key, problem string) *Rejection {
	said, _, _ := strings.Cut(problem, " [")
	if strings.HasPrefix(said, "Extra inputs") {
		said += fmt.Sprintf(", as no version that is known has the key: perflab engines %s --all lists those there are", e.Name)
	}
	return &Rejection{Rule: "file", Reason: fmt.Sprintf("%s refuses %s of its configuration file: %s", e.Title, key, said),
		Log: fmt.Sprintf("pydantic_core._pydantic_core.ValidationError: 1 validation error for %s\n%s\n  %s", e.file.model, key, problem)}
}

// misfit says what is wrong with a value, "" when nothing is. Texts that read as the
// kind pass, as pydantic takes them.
func (f *Flag) misfit(value any) string {
	text, isText := value.(string)
	bad := func(kind string) string {
		return fmt.Sprintf("Input should be a valid %s [input_value=%s]", kind, flow(value))
	}
	switch f.Kind {
	case Int:
		_, whole := value.(int)
		_, err := strconv.Atoi(text)
		if !whole && err != nil {
			return bad("integer")
		}
	case Float:
		if _, ok := number(value); !ok {
			return bad("number")
		}
	case Bool:
		if _, ok := truth(value); !ok {
			return bad("boolean")
		}
	case String:
		if !isText {
			return bad("string")
		}
	case list:
		if _, ok := value.([]any); !ok {
			return bad("list")
		}
	case Choice:
		switch known := slices.Contains(f.Choices, scalarText(value)); {
		case f.Open && !known && !isText:
			return bad("string")
		case !f.Open && !known:
			return fmt.Sprintf("Input should be '%s' [input_value=%s]", strings.Join(f.Choices, "', '"), flow(value))
		}
	}
	return ""
}

// isDefault reports whether a value is what the key has anyway.
func (f *Flag) isDefault(value any) bool {
	have, ok := number(value)
	want, err := strconv.ParseFloat(f.Default, 64)
	return scalarText(value) == f.Default || ok && err == nil && have == want
}

// number reads a number or a text of one.
func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

// truth reads what pydantic takes for true or false.
func truth(value any) (is, ok bool) {
	switch strings.ToLower(scalarText(value)) {
	case "true", "1", "yes", "on", "y", "t":
		return true, true
	case "false", "0", "no", "off", "n", "f":
		return false, true
	}
	return false, false
}

// scalarText is a single value as a parameter's text.
func scalarText(value any) string {
	if n := yamlNode(value); n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return flow(value)
}

// unmodelledKeys are the keys of File that may change figures and that Resolve ignores.
func (c Command) unmodelledKeys() (keys []string) {
	var walk func(tree map[string]any, under string)
	walk = func(tree map[string]any, under string) {
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			key := under + name
			def := keyTables()[c.Engine][key]
			below, isMap := tree[name].(map[string]any)
			switch {
			case def == nil && isMap:
				walk(below, key+".")
			case def == nil || !def.Figures || c.models(key):
			case tree[name] == nil || def.isDefault(tree[name]):
			default:
				keys = append(keys, key)
			}
		}
	}
	walk(c.File, "")
	return keys
}
