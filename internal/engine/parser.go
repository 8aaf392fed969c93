package engine

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// parser is one pass over the arguments of one engine.
type parser struct {
	engine *Engine
	table  map[string]flagRef
	args   []string
	cmd    Command
	spec   map[string]string // SGLang's speculation flags, put together at the end
	stray  []string          // positional arguments after the model
	groups string            // of attention, as SGLang is given them
	open   bool              // flags that the catalogue does not have pass
}

// find looks a flag up, in the spellings the engine's parser accepts: underscores
// for dashes, --flag.key of a JSON flag, -O3 for -O 3. Glued is the value
// glued to a short flag.
func (p *parser) find(name string) (ref flagRef, glued string, ok bool) {
	return findFlag(p.engine, p.table, name)
}

// take consumes the values of a flag: one, or for argparse's lists as many as
// there are up to the next flag.
func (p *parser) take(d *Flag) []string {
	n := 0
	for n < len(p.args) && (p.engine.cli.click && n == 0 || !looksLikeFlag(p.args[n])) {
		n++
		if d.Kind != list || p.engine.cli.click {
			break
		}
	}
	values := p.args[:n]
	p.args = p.args[n:]
	return slices.Clone(values)
}

// unread files a flag that the catalogue does not have, with what stands behind it up to
// the next one: how many values it takes is not known.
func (p *parser) unread(arg string) {
	n := 0
	for n < len(p.args) && !looksLikeFlag(p.args[n]) {
		n++
	}
	p.cmd.Unread = append(append(p.cmd.Unread, arg), p.args[:n]...)
	p.args = p.args[n:]
}

// looksLikeFlag is argparse's rule: negative numbers are values.
func looksLikeFlag(arg string) bool {
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

var suffixed = regexp.MustCompile(`^(\d+(?:\.\d+)?)([kKmMgGtT])$`)

// int reads a whole number, with 32k for 32000 and 32K for 32768 where the engine does.
func (c cli) int(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, true
	}
	m := suffixed.FindStringSubmatch(s)
	if m == nil || !c.suffixes {
		return 0, false
	}
	scale := map[string]float64{"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[m[2]]
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
	if ref.def.Flag == attentionGroups && e.Name == "sglang" {
		p.groups = value
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
