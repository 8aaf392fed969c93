package engine

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// Parse takes a serving command line apart: environment assignments, "vllm serve",
// "python3 -m sglang.launch_server", "sglang serve", "trtllm-serve" or "llama-server", and
// flags. It is as strict as the engine: an unknown flag or an unreadable value is
// a *UsageError in the engine's own words. Flags of any known version of the
// engine pass; abbreviated flags do not.
func Parse(argv []string) (Command, error) { return parse(argv, false) }

// parse is Parse, or, open, one that takes flags which the catalogue does not have.
func parse(argv []string, open bool) (Command, error) {
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
	p := parser{engine: e, table: flagTables()[name], args: rest, cmd: Command{Engine: name, Env: env}, spec: map[string]string{}, open: open}
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

func (p *parser) flag(arg string) error {
	if p.engine.cli.plain {
		return p.plainFlag(arg)
	}
	name, value, inline := strings.Cut(arg, "=")
	ref, glued, ok := p.find(name)
	switch {
	case !ok && (arg == "--help" || arg == "-h" && !p.engine.cli.click):
		return p.engine.help(p.table)
	case !ok && p.open:
		p.unread(arg)
		return nil
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
	switch {
	case len(values) > 0:
	case ref.def.Bare:
		return p.set(ref, "true", raw)
	default:
		return p.engine.cli.noValue(ref.def, name)
	}
	for _, v := range values {
		if err := p.check(ref.def, v); err != nil {
			return err
		}
	}
	return p.set(ref, values[0], raw)
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
	p.together()
	p.cmd.settleRanks()
	p.hostCache()
	return nil
}

// together files flags that say a parameter only together.
func (p *parser) together() {
	switch n, _ := strconv.Atoi(p.groups); {
	case p.groups == "":
	case n > 1 && p.cmd.Params[DP] == "" && p.cmd.Params[AttentionDP] == "":
		p.put(DP, strconv.Itoa(n))
		p.put(AttentionDP, "true")
	default:
		p.cmd.Extra = append(p.cmd.Extra, attentionGroups, p.groups)
	}
	for i := range p.engine.Params {
		q := &p.engine.Params[i]
		missing := func(flag string) bool { return !slices.Contains(p.cmd.Extra, flag) }
		if len(q.All) == 0 || slices.ContainsFunc(q.All, missing) {
			continue
		}
		p.cmd.Extra = slices.DeleteFunc(p.cmd.Extra, func(arg string) bool { return slices.Contains(q.All, arg) })
		p.put(q.Name, "true")
	}
	if len(p.cmd.Extra) == 0 {
		p.cmd.Extra = nil
	}
}
