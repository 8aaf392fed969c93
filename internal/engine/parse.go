package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// UsageError is a command line that the engine's own option parser refuses.
type UsageError struct {
	Text string // as the engine prints it on stderr
	Exit int    // its exit status
}

func (e *UsageError) Error() string {
	return strings.TrimPrefix(e.Text[strings.LastIndexByte(strings.TrimSpace(e.Text), '\n')+1:], "\n")
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

func (c cli) fail(format string, args ...any) *UsageError {
	msg := fmt.Sprintf(format, args...)
	if c.click {
		return &UsageError{Text: c.usage + "\nError: " + msg, Exit: 2}
	}
	return &UsageError{Text: c.usage + "\n" + c.prog + ": error: " + msg, Exit: 2}
}

func (c cli) unknown(args ...string) *UsageError {
	if c.click {
		return c.fail("No such option: %s", flagName(args[0]))
	}
	if c.plain {
		return &UsageError{Text: "error: invalid argument: " + args[0], Exit: 1}
	}
	return c.fail("unrecognized arguments: %s", strings.Join(args, " "))
}

func (c cli) badValue(d *Flag, value, kind string) *UsageError {
	if c.click {
		article := map[string]string{"int": "a valid integer", "float": "a valid float"}[kind]
		return c.fail("Invalid value for '%s': '%s' is not %s.", d.Flag, value, article)
	}
	return c.fail("argument %s: invalid %s value: '%s'", d.names(), kind, value)
}

func (c cli) badChoice(d *Flag, value string, choices []string) *UsageError {
	quoted := "'" + strings.Join(choices, "', '") + "'"
	if c.click {
		return c.fail("Invalid value for '%s': '%s' is not one of %s.", d.Flag, value, quoted)
	}
	return c.fail("argument %s: invalid choice: '%s' (choose from %s)", d.names(), value, quoted)
}

func (c cli) noValue(d *Flag, spelled string) *UsageError {
	if c.click {
		return c.fail("Option '%s' requires an argument.", spelled)
	}
	return c.fail("argument %s: expected one argument", d.names())
}

// help is the answer to --help: not the engine's text, only the flags that pass.
func (e *Engine) help(table map[string]flagRef) *UsageError {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(e.cli.usage) + "\n\nFlags of all known versions, without the engine's own explanations:")
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if strings.HasPrefix(name, "--") {
			b.WriteString("\n  " + name)
		}
	}
	return &UsageError{Text: b.String()}
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// Parse takes a serving command line apart: environment assignments, "vllm serve",
// "python3 -m sglang.launch_server", "sglang serve", "trtllm-serve" or "llama-server", and
// flags. It is as strict as the engine: an unknown flag or an unreadable value is
// a *UsageError in the engine's own words. Flags of any known version of the
// engine pass; abbreviated flags do not.
func Parse(argv []string) (Command, error) {
	var env []string
	for len(argv) > 0 && (assignment.MatchString(argv[0]) || argv[0] == "env" && env == nil) {
		if argv[0] != "env" {
			env = append(env, argv[0])
		}
		argv = argv[1:]
	}
	name, rest, err := detect(argv)
	if err != nil {
		return Command{}, err
	}
	e, err := ByName(name)
	if err != nil {
		return Command{}, err
	}
	p := parser{engine: e, table: flagTables()[name], args: rest, cmd: Command{Engine: name, Env: env}, spec: map[string]string{}}
	if err := p.run(); err != nil {
		return Command{}, err
	}
	return p.cmd, nil
}

// detect tells the engine from the first words, and returns the words after them.
func detect(argv []string) (name string, rest []string, err error) {
	word := func(i int) string {
		if i < len(argv) {
			return argv[i]
		}
		return ""
	}
	program := path.Base(word(0))
	switch {
	case program == "vllm" && word(1) == "serve":
		return "vllm", argv[2:], nil
	case program == "sglang" && word(1) == "serve":
		return "sglang", argv[2:], nil
	case program == "trtllm-serve" && word(1) == "serve":
		return "trtllm", argv[2:], nil
	case program == "trtllm-serve":
		return "trtllm", argv[1:], nil
	case program == "llama-server":
		return "llamacpp", argv[1:], nil
	case strings.HasPrefix(program, "python") && word(1) == "-m" && word(2) == "sglang.launch_server":
		return "sglang", argv[3:], nil
	case strings.HasPrefix(program, "python") && word(1) == "-m" && word(2) == "vllm.entrypoints.openai.api_server":
		return "vllm", argv[3:], nil
	}
	shown := strings.Join(argv[:min(len(argv), 3)], " ")
	return "", nil, fmt.Errorf(`%q is not a serving command: begin with "vllm serve", "python3 -m sglang.launch_server", "sglang serve", "trtllm-serve" or "llama-server"`, shown)
}

// parser is one pass over the arguments of one engine.
type parser struct {
	engine *Engine
	table  map[string]flagRef
	args   []string
	cmd    Command
	spec   map[string]string // SGLang's speculation flags, put together at the end
	stray  []string          // positional arguments after the model
}

func (p *parser) run() error {
	for len(p.args) > 0 {
		arg := p.args[0]
		p.args = p.args[1:]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			if p.cmd.Model != "" || p.engine.modelFlag != "" {
				p.stray = append(p.stray, arg)
				continue
			}
			p.cmd.Model = arg
			continue
		}
		if err := p.flag(arg); err != nil {
			return err
		}
	}
	return p.finish()
}

// flagName is the part of an argument before "=".
func flagName(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}

// find looks a flag up, in the spellings the engine's parser accepts: underscores
// for dashes, --flag.key of a JSON flag, -O3 for -O 3. Glued is the value
// glued to a short flag.
func (p *parser) find(name string) (ref flagRef, glued string, ok bool) {
	return findFlag(p.engine, p.table, name)
}

func findFlag(e *Engine, table map[string]flagRef, name string) (ref flagRef, glued string, ok bool) {
	if ref, ok = table[name]; ok {
		return ref, "", true
	}
	if e.cli.click {
		return flagRef{}, "", false
	}
	if e.cli.plain {
		ref, ok = table[plainName(name)]
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

func (p *parser) flag(arg string) error {
	if p.engine.cli.plain {
		return p.plainFlag(arg)
	}
	name, value, inline := strings.Cut(arg, "=")
	ref, glued, ok := p.find(name)
	switch {
	case !ok && (arg == "--help" || arg == "-h" && !p.engine.cli.click):
		return p.engine.help(p.table)
	case !ok:
		return p.engine.cli.unknown(arg)
	}
	if glued != "" {
		value, inline = strings.TrimPrefix(arg[2:], "="), true
	}
	raw := []string{arg}
	var values []string
	switch {
	case ref.def.Kind == Bool && inline:
		if p.engine.cli.click {
			return p.engine.cli.fail("Option '%s' does not take a value.", name)
		}
		return p.engine.cli.fail("argument %s: ignored explicit argument '%s'", ref.def.names(), value)
	case ref.def.Kind == Bool:
		values = []string{strconv.FormatBool(!ref.off)}
	case inline:
		values = []string{value}
	default:
		values = p.take(ref.def)
		raw = append(raw, values...)
	}
	if len(values) == 0 {
		return p.engine.cli.noValue(ref.def, name)
	}
	for _, v := range values {
		if err := p.check(ref.def, v); err != nil {
			return err
		}
	}
	return p.set(ref, values[0], raw)
}

// take consumes the values of a flag: one, or for argparse's lists as many as
// there are up to the next flag.
func (p *parser) take(d *Flag) []string {
	n := 0
	for n < len(p.args) && (p.engine.cli.click && n == 0 || !p.looksLikeFlag(p.args[n])) {
		n++
		if d.Kind != list || p.engine.cli.click {
			break
		}
	}
	values := p.args[:n]
	p.args = p.args[n:]
	return slices.Clone(values)
}

// looksLikeFlag is argparse's rule: negative numbers are values.
func (p *parser) looksLikeFlag(arg string) bool {
	if !strings.HasPrefix(arg, "-") || arg == "-" {
		return false
	}
	_, err := strconv.ParseFloat(arg, 64)
	return err != nil
}

// check reads a value as the flag's kind.
func (p *parser) check(d *Flag, value string) error {
	c := p.engine.cli
	switch d.Kind {
	case Int:
		if _, ok := c.int(value); !ok && !c.fitsLength(d, value) {
			return c.badValue(d, value, "int")
		}
	case Float:
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return c.badValue(d, value, "float")
		}
	case JSON:
		if !json.Valid([]byte(value)) {
			return c.fail("argument %s: Value %s cannot be converted to <function loads>.", d.names(), value)
		}
	case Choice:
		if len(d.Choices) > 0 && !slices.Contains(d.Choices, value) {
			return c.badChoice(d, value, d.Choices)
		}
	}
	return nil
}

var suffixed = regexp.MustCompile(`^(\d+(?:\.\d+)?)([kKmMgG])$`)

// int reads a whole number, with 32k for 32000 and 32K for 32768 where the engine does.
func (c cli) int(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, true
	}
	m := suffixed.FindStringSubmatch(s)
	if m == nil || !c.suffixes {
		return 0, false
	}
	scale := map[string]float64{"k": 1e3, "m": 1e6, "g": 1e9, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[m[2]]
	f, err := strconv.ParseFloat(m[1], 64)
	n := f * scale
	return int(n), err == nil && n == float64(int(n)) && n < 1<<53
}

// set files one flag: as model, address, parameter, part of speculation, or extra.
func (p *parser) set(ref flagRef, value string, raw []string) error {
	e := p.engine
	switch ref.def.Flag {
	case "--model", "--model-path":
		if strings.HasPrefix(value, "-") {
			return e.cli.noValue(ref.def, ref.def.Flag)
		}
		p.cmd.Model = value
		return nil
	case e.hostFlag:
		p.cmd.Host = value
		return nil
	case e.portFlag:
		port, _ := strconv.Atoi(value)
		if port < 0 || port > 65535 {
			return e.cli.fail("argument --port: %s is not a port", value)
		}
		p.cmd.Port = port
		return nil
	}
	if e.file != nil && ref.def.Flag == e.file.flag {
		p.cmd.FilePath = value
		return nil
	}
	if slices.Contains(sglangSpecFlags, ref.def.Flag) && e.Name == "sglang" {
		p.spec[ref.def.Flag] = value
		return nil
	}
	if ref.param == nil {
		p.cmd.Extra = append(p.cmd.Extra, raw...)
		return nil
	}
	return p.setParam(ref.param, ref.def, value)
}

// fitsLength reports whether value asks for the longest length that fits: vLLM's
// --max-model-len auto or -1.
func (c cli) fitsLength(d *Flag, value string) bool {
	return c.suffixes && d.Flag == "--max-model-len" && (value == "auto" || value == "-1")
}

func (p *parser) setParam(param *Param, d *Flag, value string) error {
	name, cli := param.Name, p.engine.cli
	switch {
	case cli.fitsLength(d, value):
		value = "auto"
	case d.Kind == Int:
		n, _ := cli.int(value)
		value = strconv.Itoa(n)
	case name == Speculative:
		s, err := vllmSpec(value)
		if err != nil {
			return cli.fail("argument %s: %v", d.names(), err)
		}
		value = s
	}
	for canonical, spelled := range param.Spell {
		if spelled == value {
			value = canonical
		}
	}
	for i := range p.engine.Params {
		q := &p.engine.Params[i]
		if len(q.OffArgs) == 2 && slices.Contains(param.Flags, q.OffArgs[0]) && value == q.OffArgs[1] {
			name, value = q.Name, "false"
		}
	}
	p.put(name, value)
	return nil
}

func (p *parser) put(name, value string) {
	if p.cmd.Params == nil {
		p.cmd.Params = map[string]string{}
	}
	p.cmd.Params[name] = value
}

// finish settles what depends on several flags, and what is missing.
func (p *parser) finish() error {
	e := p.engine
	if e.cli.plain {
		return p.finishPlain()
	}
	if len(p.stray) > 0 {
		if e.cli.click {
			return e.cli.fail("Got unexpected extra argument (%s)", strings.Join(p.stray, " "))
		}
		return e.cli.unknown(p.stray...)
	}
	if p.cmd.Model == "" {
		p.cmd.Model = e.defModel
		if file, ok := p.cmd.extra("--config"); ok && e.defModel != "" {
			return fmt.Errorf("%s takes its model from %s, which is not read here: name the model in the command itself", e.Title, file)
		}
	}
	switch {
	case p.cmd.Model != "":
	case e.cli.click:
		return e.cli.fail("Missing argument 'MODEL'.")
	default:
		return e.cli.fail("the following arguments are required: %s", e.modelFlag)
	}
	if len(p.spec) > 0 {
		value, err := sglangSpec(p.spec)
		if err != nil {
			return e.cli.fail("%v", err)
		}
		p.put(Speculative, value)
	}
	p.cmd.settleRanks()
	return nil
}

// settleRanks turns a number of expert-parallel ranks into true where it is that
// of the tensor-parallel ones, and into nothing where it is 1.
func (c *Command) settleRanks() {
	ranks, ok := c.Params[ExpertParallel]
	e, err := ByName(c.Engine)
	if !ok || err != nil {
		return
	}
	if p, _ := e.Param(ExpertParallel); p == nil || !p.Ranks {
		return
	}
	switch ranks {
	case "1":
		delete(c.Params, ExpertParallel)
	case cmp.Or(c.Params[TP], "1"):
		c.Params[ExpertParallel] = "true"
	}
}
