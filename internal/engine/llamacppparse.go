package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// llama.cpp's option parser: an option is one argument and its value the next one,
// whatever it looks like; there is no "=". Underscores in long options are dashes.
// Whole numbers are read as far as they go, so that 32k is 32 there; here that is an
// error, as nobody means it.

// collected are flags that one parameter is made of, in the order in which they are
// printed where they make none.
var collected = []string{"--cache-type-k", "--cache-type-v", "--spec-type", "--model-draft", "--hf-repo-draft", "--spec-draft-n-max", "--spec-ngram-simple-size-m"}

// is reports whether the flag has the name, as its own or as another spelling.
func (d *Flag) is(name string) bool { return d.Flag == name || slices.Contains(d.Aliases, name) }

// plainFlag reads one option.
func (p *parser) plainFlag(arg string) error {
	name := p.engine.cli.normal(arg)
	ref, ok := p.table[name]
	switch {
	case !ok && p.open:
		p.unread(arg)
		return nil
	case !ok:
		return p.engine.cli.unknown(name)
	case ref.def.is("--help"):
		return p.engine.help(p.table)
	case ref.def.Kind == Bool:
		return p.set(ref, strconv.FormatBool(!ref.off), []string{name})
	}
	n := 1
	if ref.def.is("--control-vector-layer-range") {
		n = 2
	}
	if len(p.args) < n {
		return p.engine.cli.handling(name, "expected value for argument")
	}
	values := p.args[:n]
	p.args = p.args[n:]
	value, err := p.plainValue(ref.def, name, values[0])
	if err != nil {
		return err
	}
	for _, flag := range collected {
		if ref.def.is(flag) {
			if earlier := p.spec[flag]; flag == "--spec-type" && earlier != "" { // the one that adds up
				value = earlier + "," + value
			}
			p.spec[flag] = value
			return nil
		}
	}
	return p.plainSet(ref, value, append([]string{name}, values...))
}

// plainSet files an option: the model, or what every engine has.
func (p *parser) plainSet(ref flagRef, value string, raw []string) error {
	switch {
	case ref.def.is("--hf-repo") && isGGUF(value):
		return fmt.Errorf("%s is taken for a file: name the repository without .gguf, or the file with -m", value)
	case ref.def.is("--hf-repo"):
		p.cmd.Model = value
		return nil
	case ref.def.is("--model"):
		if !isGGUF(value) {
			value = "./" + value
		}
		p.cmd.Model = value
		return nil
	}
	return p.set(ref, value, raw)
}

// handling is how llama.cpp's parser speaks of a value that it cannot take. What an
// option is for stands under it there.
func (c cli) handling(name, why string) *UsageError {
	return &UsageError{Text: fmt.Sprintf("error while handling argument %q: %s", name, why), Exit: 1}
}

var leading = regexp.MustCompile(`^\s*[+-]?\d+`)

// plainValue reads a value as the option's kind and gives it in one spelling.
func (p *parser) plainValue(d *Flag, name, value string) (string, error) {
	c := p.engine.cli
	switch d.Kind {
	case Int:
		digits := strings.TrimSpace(leading.FindString(value))
		n, err := strconv.ParseInt(strings.TrimPrefix(digits, "+"), 10, 32)
		if err != nil {
			return "", c.handling(name, "stoi")
		}
		if digits != strings.TrimSpace(value) {
			return "", fmt.Errorf("%s %s: llama-server reads %d, without the rest: write the number in full", name, value, n)
		}
		if d.is("--parallel") && n == 0 {
			return "", c.handling(name, "error: invalid value for n_parallel")
		}
		return strconv.FormatInt(n, 10), nil
	case Float:
		if _, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil {
			return "", c.handling(name, "stof")
		}
	case Choice:
		return plainChoice(c, d, name, value)
	}
	return value, nil
}

// switchWords are other words for on, off and auto.
var switchWords = map[string]string{"enabled": "on", "true": "on", "1": "on", "disabled": "off", "false": "off", "0": "off", "-1": "auto"}

func plainChoice(c cli, d *Flag, name, value string) (string, error) {
	if len(d.Choices) == 0 || slices.Contains(d.Choices, value) {
		return value, nil
	}
	word := switchWords[value]
	switches := slices.Contains(d.Choices, "on")
	switch {
	case switches && slices.Contains(d.Choices, word):
		return word, nil
	case switches:
		return "", c.handling(name, fmt.Sprintf("error: unknown value for %s: '%s'", d.Flag, value))
	case strings.Contains(d.Flag, "cache-type"):
		return "", c.handling(name, "Unsupported cache type: "+value)
	}
	return "", c.handling(name, "invalid value")
}

// finishPlain settles what depends on several options.
func (p *parser) finishPlain() error {
	if len(p.stray) > 0 {
		return p.engine.cli.unknown(p.stray[0])
	}
	if p.cmd.Model == "" {
		return fmt.Errorf("the command names no model: give -m FILE.gguf or -hf REPOSITORY; without one llama-server hands requests on to others, which is not measured here")
	}
	p.hostCache()
	k, v := p.spec["--cache-type-k"], p.spec["--cache-type-v"]
	if k != "" && k == v {
		p.put(KVDtype, k)
		delete(p.spec, "--cache-type-k")
		delete(p.spec, "--cache-type-v")
	}
	if value, ok := llamacppSpec(p.spec); ok {
		p.put(Speculative, value)
		for _, flag := range collected[2:] {
			delete(p.spec, flag)
		}
	}
	for _, flag := range collected {
		if value, ok := p.spec[flag]; ok {
			p.cmd.Extra = append(p.cmd.Extra, flag, value)
		}
	}
	return nil
}
