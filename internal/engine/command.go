package engine

import (
	"cmp"
	"slices"
	"strings"
)

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
	args = slices.Concat(c.head(e), args, c.Extra, c.Unread)
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

// attentionGroups is what says dp and attention_dp at once in newer versions of SGLang.
const attentionGroups = "--attn-dp-size"

func (c Command) grouped(e *Engine) bool {
	return e.Name == "sglang" && c.Params[AttentionDP] == "true" && c.Count(DP) > 1 && e.has(c, attentionGroups)
}

func (c Command) spell(e *Engine, p *Param, value string) ([]string, error) {
	switch {
	case p.Name == DP && c.grouped(e):
		return nil, nil
	case p.Name == AttentionDP && c.grouped(e):
		return []string{attentionGroups, c.Params[DP]}, nil
	case p.Name == Disaggregation: // said by which processes there are: see Members
		return nil, nil
	case p.Name == Speculative:
		s, err := parseSpec(value)
		if err != nil {
			return nil, err
		}
		return specArgs(e.Name, s)
	case e.cli.plain:
		return c.llamacppSpell(e, p, value)
	case p.Kind == Bool && !p.Ranks:
		return p.switchArgs(e, c, value)
	case len(p.Flags) == 0:
		return nil, e.lacks(p, value)
	}
	flag := e.spelling(c, p.Flags)
	switch value = cmp.Or(p.Spell[value], value); {
	case p.Ranks && value == "false":
		value = "1"
	case p.Ranks && value == "true":
		value = cmp.Or(c.Params[TP], "1")
	case strings.HasPrefix(value, "-"): // would read as a flag
		return []string{flag + "=" + value}, nil
	}
	return []string{flag, value}, nil
}
