package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// New builds a command from canonical parameters and further flags. An empty value
// or one that is the engine's default adds no flag. A parameter that the engine
// lacks is a *Rejection; a further flag that it does not know, a *UsageError.
func New(engineName, model string, params map[string]string, extra []string) (Command, error) {
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
	args, err := c.paramArgs(e)
	if err != nil {
		return Command{}, err
	}
	if e.MetricsFlag != "" && !slices.Contains(extra, e.MetricsFlag) {
		extra = append(slices.Clone(extra), e.MetricsFlag)
	}
	// Reading the line back lets the engine's own parser judge every value, and
	// files further flags that are parameters as such.
	out, err := Parse(slices.Concat(c.head(e), args, extra))
	if err != nil {
		return Command{}, err
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
	_, err := c.content(e)
	return c, err
}

func (e *Engine) lacks(p *Param, value string) *Rejection {
	return &Rejection{
		Rule:   "parameter",
		Reason: fmt.Sprintf("%s has no setting for %s=%s: leave it out", e.Title, p.Name, value),
		Log:    e.cli.unknown("--" + p.Name).Error(),
	}
}

// readable checks a value by its kind, before it is spelled the engine's way.
func (p *Param) readable(value string) error {
	var err error
	switch {
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

// Argv is the command line without environment, host and port, in the catalogue's
// order and spelling. A configuration file that belongs to it stands as {file:NAME},
// for the path of that of Files.
func (c Command) Argv() []string {
	e, err := ByName(c.Engine)
	if err != nil {
		return nil
	}
	args, err := c.paramArgs(e)
	if err != nil {
		return nil
	}
	args = slices.Concat(c.head(e), args, c.Extra)
	switch files := c.Files(); {
	case len(files) > 0:
		return append(args, e.file.flag, "{file:"+files[0].Name+"}")
	case c.FilePath == "" || e.file == nil:
		return args
	case strings.HasPrefix(c.FilePath, "-"):
		return append(args, e.file.flag+"="+c.FilePath)
	}
	return append(args, e.file.flag, c.FilePath)
}

// ArgvPort is Argv listening on host and port.
func (c Command) ArgvPort(host, port string) []string {
	e, err := ByName(c.Engine)
	if err != nil {
		return nil
	}
	return append(c.Argv(), e.hostFlag, host, e.portFlag, port)
}

// String is the command as it pastes into a shell, with its environment, and host
// and port where they were given. Where it reads a file, a here-document that writes
// the file stands before it.
func (c Command) String() string {
	args := c.Argv()
	var before strings.Builder
	for _, f := range c.Files() {
		before.WriteString(hereBegin + f.Name + hereWord + strings.TrimSuffix(f.Text, "\n") + hereEnd)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "{file:"+f.Name+"}", f.Name)
		}
	}
	if e, err := ByName(c.Engine); err == nil {
		if c.Host != "" {
			args = append(args, e.hostFlag, c.Host)
		}
		if c.Port != 0 {
			args = append(args, e.portFlag, strconv.Itoa(c.Port))
		}
	}
	var words []string
	for _, kv := range c.Env {
		key, value, _ := strings.Cut(kv, "=")
		words = append(words, key+"="+Quote(value))
	}
	for _, a := range args {
		words = append(words, Quote(a))
	}
	return before.String() + strings.Join(words, " ")
}

// Quote quotes what a POSIX shell would take apart; braces too, as bash expands them.
func Quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (c Command) head(e *Engine) []string {
	head := slices.Clone(e.launch)
	switch {
	case e.cli.plain && !isGGUF(c.Model):
		head = append(head, "-hf")
	case e.modelFlag != "":
		head = append(head, e.modelFlag)
	}
	return append(head, c.Model)
}

// paramArgs is the parameters as flags, in the catalogue's order.
func (c Command) paramArgs(e *Engine) ([]string, error) {
	var args []string
	for i := range e.Params {
		p := &e.Params[i]
		value, ok := c.Params[p.Name]
		if !ok || value == "" || c.inFile(e, p) {
			continue
		}
		more, err := c.spell(e, p, value)
		if err != nil {
			return nil, err
		}
		args = append(args, more...)
	}
	return args, nil
}

func (c Command) spell(e *Engine, p *Param, value string) ([]string, error) {
	switch {
	case p.Name == Speculative:
		s, err := parseSpec(value)
		if err != nil {
			return nil, err
		}
		return e.behaviour().specArgs(s)
	case e.cli.plain:
		return c.llamacppSpell(e, p, value)
	case p.Ranks && value == "false":
		return []string{p.Flags[0], "1"}, nil
	case p.Ranks && value == "true":
		return []string{p.Flags[0], cmp.Or(c.Params[TP], "1")}, nil
	case p.Kind == Bool && !p.Ranks:
		return p.switchArgs(value)
	case len(p.Flags) == 0:
		return nil, e.lacks(p, value)
	}
	value = cmp.Or(p.Spell[value], value)
	if strings.HasPrefix(value, "-") { // would read as a flag
		return []string{p.Flags[0] + "=" + value}, nil
	}
	return []string{p.Flags[0], value}, nil
}

// switchArgs is a Bool as flags. Where only the other value has one, none is needed.
func (p *Param) switchArgs(value string) ([]string, error) {
	switch {
	case value == "true" && len(p.Flags) > 0:
		return p.Flags[:1], nil
	case value == "false" && len(p.Off) > 0:
		return p.Off[:1], nil
	case value == "false" && len(p.OffArgs) > 0:
		return p.OffArgs, nil
	case value == "true" || value == "false":
		return nil, nil
	}
	return nil, fmt.Errorf("parameter %s=%q: write true or false", p.Name, value)
}

// World is how many devices the command's parallelism takes, 1 where it says nothing.
func (c Command) World() int {
	world := 1
	for _, ranks := range c.parallel() {
		world *= ranks.n
	}
	return world
}

// Sizes is the command's parallelism in words: "tp 8 x pp 2".
func (c Command) Sizes() string {
	var out []string
	for _, r := range c.parallel() {
		if r.n > 1 || r.name == TP {
			out = append(out, fmt.Sprintf("%s %d", r.name, r.n))
		}
	}
	return strings.Join(out, " x ")
}

// ranks is one kind of parallelism and its width.
type ranks struct {
	name string
	n    int
}

// parallel is the kinds of parallelism that multiply to the devices of a command.
func (c Command) parallel() []ranks {
	all := []ranks{{TP, c.Count(TP)}, {PP, c.Count(PP)}, {DP, c.Count(DP)}}
	if c.Has("--enable-dp-attention") || c.Engine == "trtllm" {
		all = all[:2] // copies of the attention alone, on the same devices
	}
	given := []string{c.Flag("--prefill-context-parallel-size"), c.Flag("--context_parallel_size")}
	if v, ok := at(c.File, "context_parallel_size"); ok {
		given = append(given, scalarText(v))
	}
	for _, text := range given {
		if n, err := strconv.Atoi(text); err == nil && n > 1 {
			return append(all, ranks{"context parallel", n})
		}
	}
	return all
}

// Count is a parameter that counts something, 1 where the command does not say it.
func (c Command) Count(name string) int { return max(1, c.number(name, 1)) }

// number is a parameter's whole number, or another where the command does not say one.
func (c Command) number(name string, otherwise int) int {
	if n, err := strconv.Atoi(c.Params[name]); err == nil {
		return n
	}
	return otherwise
}

// extras walks over the further flags and their values; a spelling that says
// false has the value false.
func (c Command) extras(visit func(d *Flag, values []string)) {
	e, err := ByName(c.Engine)
	if err != nil {
		return
	}
	table := flagTables()[c.Engine]
	for i := 0; i < len(c.Extra); {
		name, inline, has := strings.Cut(c.Extra[i], "=")
		ref, glued, ok := findFlag(e, table, name)
		j := i + 1
		for j < len(c.Extra) {
			if _, _, isFlag := findFlag(e, table, flagName(c.Extra[j])); isFlag && strings.HasPrefix(c.Extra[j], "-") {
				break
			}
			j++
		}
		values := c.Extra[i+1 : j]
		switch {
		case has:
			values = []string{inline}
		case glued != "":
			values = []string{glued}
		}
		if ref.off {
			values = []string{"false"}
		}
		if ok {
			visit(ref.def, values)
		}
		i = j
	}
}

// Unmodelled lists the given flags that may change figures and that Resolve
// ignores: what is predicted from the configuration does not know of them.
func (c Command) Unmodelled() []string {
	var flags []string
	c.extras(func(d *Flag, _ []string) {
		if d.Figures {
			flags = append(flags, d.Flag)
		}
	})
	flags = append(flags, c.unmodelledParams()...)
	if c.Params[PerfMode] == "interactivity" { // graphs of every small size; ours have no padding
		flags = append(flags, "--performance-mode=interactivity")
	}
	if e, err := ByName(c.Engine); err == nil && e.file != nil && c.FilePath != "" {
		flags = append(flags, e.file.flag)
	}
	return append(flags, c.unmodelledKeys()...)
}

// unmodelledParams are the given parameters that Resolve ignores, as flags or keys.
func (c Command) unmodelledParams() (names []string) {
	e, err := ByName(c.Engine)
	if err != nil {
		return nil
	}
	for _, name := range []string{AttentionDP, MoEBackend, StreamInterval, CapacityPolicy} {
		p, _ := e.Param(name)
		value := c.Params[name]
		modelled := name == CapacityPolicy && value != "static_batch"
		switch {
		case p == nil || value == "" || value == p.Default || value == "false" || modelled:
		case c.inFile(e, p) || len(p.Flags) == 0:
			names = append(names, p.Key)
		default:
			names = append(names, flagTables()[c.Engine][p.Flags[0]].def.Flag)
		}
	}
	return names
}

// Flag is the value of a flag without a canonical name, "" when it is not given.
func (c Command) Flag(name string) string {
	value, _ := c.extra(name)
	return value
}

// Has reports whether a flag without a canonical name was given.
func (c Command) Has(name string) bool {
	_, given := c.extra(name)
	return given
}

// extra is the value of a further flag, "" when it is not given.
func (c Command) extra(flag string) (value string, given bool) {
	values, given := c.extraValues(flag)
	if len(values) > 0 {
		value = values[0]
	}
	return value, given
}

// extraValues is the values of a further flag, as last given.
func (c Command) extraValues(flag string) (values []string, given bool) {
	c.extras(func(d *Flag, v []string) {
		if d.Flag == flag {
			values, given = v, true
		}
	})
	ref, known := flagTables()[c.Engine][flag]
	if given || !known || ref.param == nil || ref.def == nil || ref.def.Kind != Bool {
		return values, given
	}
	switch v := c.Params[ref.param.Name]; { // a switch that is a parameter
	case v == "":
	case (v == "false") == ref.off:
		return []string{"true"}, true
	case v == "false" && len(ref.def.Off) > 0:
		return []string{"false"}, true
	}
	return nil, false
}
