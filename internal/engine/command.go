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
	s := speller{c, e}
	args, err := s.args()
	if err != nil {
		return nil
	}
	args = slices.Concat(s.head(), args, c.Extra, c.Unread)
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

// speller puts a command into the words of its engine.
type speller struct {
	Command
	engine *Engine
}

// head is how the engine is launched with the command's model.
func (s speller) head() []string {
	head := slices.Clone(s.engine.launch)
	switch {
	case s.engine.cli.plain && !isGGUF(s.Model):
		head = append(head, "-hf")
	case s.engine.modelFlag != "":
		head = append(head, s.engine.modelFlag)
	}
	return append(head, s.Model)
}

// args are the parameters as flags, in the catalogue's order.
func (s speller) args() ([]string, error) {
	var args []string
	for i := range s.engine.Params {
		p := &s.engine.Params[i]
		value, ok := s.Params[p.Name]
		if !ok || value == "" || s.inFile(p) {
			continue
		}
		more, err := s.spell(p, value)
		if err != nil {
			return nil, err
		}
		args = append(args, more...)
	}
	return args, nil
}

// attentionGroups is what says dp and attention_dp at once in newer versions of SGLang.
const attentionGroups = "--attn-dp-size"

// grouped reports whether attentionGroups says dp and attention_dp.
func (s speller) grouped() bool {
	return s.engine.Name == "sglang" && s.Params[AttentionDP] == "true" && s.Count(DP) > 1 && s.engine.has(s.Command, attentionGroups)
}

// spell is one parameter as flags.
func (s speller) spell(p *Param, value string) ([]string, error) {
	switch {
	case p.Name == DP && s.grouped():
		return nil, nil
	case p.Name == AttentionDP && s.grouped():
		return []string{attentionGroups, s.Params[DP]}, nil
	case p.Name == Disaggregation: // said by which processes there are: see Members
		return nil, nil
	case p.Name == Speculative:
		guess, err := parseSpec(value)
		if err != nil {
			return nil, err
		}
		return specArgs(s.engine.Name, guess)
	case p.Name == HostCache && len(p.Flags) > 0:
		return s.hostArgs(p, value)
	case p.Name == HostCacheRatio && s.Params[HostCache] == "" && len(p.Flags) > 0:
		return []string{hierarchical, p.Flags[0], value}, nil
	case s.engine.cli.plain:
		return s.llamacppSpell(p, value)
	case p.Kind == Bool && !p.Ranks:
		return p.switchArgs(s.engine, s.Command, value)
	case len(p.Flags) == 0:
		return nil, s.engine.lacks(p, value)
	}
	flag := s.engine.spelling(s.Command, p.Flags)
	switch value = cmp.Or(p.Spell[value], value); {
	case p.Ranks && value == "false":
		value = "1"
	case p.Ranks && value == "true":
		value = cmp.Or(s.Params[TP], "1")
	case strings.HasPrefix(value, "-"): // would read as a flag
		return []string{flag + "=" + value}, nil
	}
	return []string{flag, value}, nil
}
