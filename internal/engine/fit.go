package engine

import (
	"fmt"
	"slices"
	"strings"
)

// spelling is the flag that the command's engine has, of several that do the same: the
// first one that its own help lists, else the first one that its version is known to
// have. Without a version it is the first of all, the newest: an engine of which nothing
// is said is most likely a new one, and engines keep an old spelling for a while beside
// the new one, but never have the new one early.
func (e *Engine) spelling(c Command, flags []string) string {
	if len(flags) == 1 || c.Help == nil && c.Version == "" {
		return flags[0]
	}
	table := flagTables()[e.Name]
	for _, has := range []func(string) bool{
		func(flag string) bool { return c.Help != nil && c.Help.lists(e, flag) },
		func(flag string) bool { return table[flag].def.In(c.Version) },
	} {
		if i := slices.IndexFunc(flags, has); i >= 0 {
			return flags[i]
		}
	}
	return flags[0]
}

// has reports whether the command's engine has all of the flags, as spelling goes by: one of
// which nothing is said has the newest.
func (e *Engine) has(c Command, flags ...string) bool {
	for _, flag := range flags {
		if c.Help != nil && !c.Help.lists(e, flag) || c.Help == nil && !flagTables()[e.Name][flag].def.In(c.Version) {
			return false
		}
	}
	return true
}

// Unknown are the given flags that the catalogue does not have: what they do is not
// known, no rule is checked of them, and they are passed on as they stand.
func (c Command) Unknown() (flags []string) {
	for _, arg := range c.Unread {
		if looksLikeFlag(arg) {
			flags = append(flags, flagName(arg))
		}
	}
	return flags
}

// Unlisted are those of them that the installed engine does not list either; none where
// it was not asked.
func (c Command) Unlisted() (flags []string) {
	e, err := ByName(c.Engine)
	if err != nil || c.Help == nil {
		return nil
	}
	for _, flag := range c.Unknown() {
		base, _, dotted := strings.Cut(flag, ".")
		if !c.Help.lists(e, flag) && !(dotted && e.cli.underscores && c.Help.lists(e, base)) {
			flags = append(flags, flag)
		}
	}
	return flags
}

// Fit says by a *Rejection which flag of the command its engine does not have: by the
// engine's own help where that is known, else by its version. Where neither is known
// every known flag passes. typed are the words that the command was parsed from: without
// them the spellings that Argv prints are judged, which are the engine's own.
func (c Command) Fit(typed ...string) *Rejection {
	e, err := ByName(c.Engine)
	if err != nil || c.Help == nil && c.Version == "" {
		return nil
	}
	args := typed
	if len(typed) == 0 {
		if args, err = (speller{c, e}).args(); err != nil {
			return nil
		}
		args = append(args, c.Extra...)
	}
	table := flagTables()[e.Name]
	for i, arg := range args {
		name := flagName(arg)
		ref, glued, ok := findFlag(e, table, name)
		if !ok || name[0] != '-' {
			continue // a value, such as -1
		}
		if glued != "" {
			name = name[:2]
		}
		if base, _, dotted := strings.Cut(name, "."); dotted && ref.param == nil { // --flag.key is there where --flag is
			if whole, _, ok := findFlag(e, table, base); ok {
				name, ref = base, whole
			}
		}
		if e.Name == "vllm" && name == "-O" { // which it rewrites before it looks
			continue
		}
		if rej := e.misses(c, name, ref); rej != nil {
			return rej
		}
		if rej := e.untaken(c, ref.def, args[i:]); rej != nil {
			return rej
		}
	}
	if flags := c.Unlisted(); len(flags) > 0 {
		advice := "leave it out"
		if could := c.Help.match(e, flags[0]); len(could) > 0 {
			advice = "write " + strings.Join(could, " or ")
		}
		return &Rejection{Rule: "version", Log: e.cli.unknown(flags...).Error(),
			Reason: fmt.Sprintf("%s is not in %s, and perflab does not know it: %s", flags[0], e.installed(c.Help), advice)}
	}
	return nil
}

// untaken says that the version does not take a value of a flag that other versions do.
func (e *Engine) untaken(c Command, d *Flag, words []string) *Rejection {
	_, value, inline := strings.Cut(words[0], "=")
	if !inline && len(words) > 1 {
		value = words[1]
	}
	if d.Kind != Choice || d.Takes(value, c.Version) {
		return nil
	}
	takes := slices.DeleteFunc(slices.Clone(d.Choices), func(v string) bool { return !d.Takes(v, c.Version) })
	return &Rejection{Rule: "version", Log: e.cli.badChoice(d, value, takes).Error(),
		Reason: fmt.Sprintf("%s %s does not take %s %s: %s", e.Title, strings.TrimPrefix(c.Version, "v"), d.Flag, value, d.span(value).presence())}
}

// installed names an engine that was asked.
func (e *Engine) installed(h *Help) string {
	if h.Version == "" {
		return "this " + e.Title
	}
	return fmt.Sprintf("this %s (%s by its own account)", e.Title, h.Version)
}

// misses says that the engine does not have a flag, and what helps: what does the same
// there, or which versions have it.
func (e *Engine) misses(c Command, name string, ref flagRef) *Rejection {
	h, who := c.Help, ""
	switch {
	case h != nil:
		who = e.installed(h)
	case !ref.def.lacks(c.Version):
		return nil
	default:
		h, who = e.listed(c.Version), e.Title+" "+strings.TrimPrefix(c.Version, "v")
	}
	could := h.match(e, name)
	if len(could) == 1 {
		return nil
	}
	rej := &Rejection{Rule: "version", Log: e.cli.unknown(name).Error()}
	if len(could) > 0 {
		rej.Log = e.cli.fail("ambiguous option: %s could match %s", name, strings.Join(could, ", ")).Error()
	}
	what, advice := name, ref.def.presence()
	p := ref.param
	if p == nil {
		p = &Param{}
	} else {
		what += " (" + p.Name + ")"
	}
	spellings := slices.Concat(p.Flags, []string{ref.def.Flag}, ref.def.Aliases)
	if ref.off {
		spellings = slices.Concat(p.Off, ref.def.Off)
	}
	if i := slices.IndexFunc(spellings, func(s string) bool { return h.lists(e, s) }); i >= 0 {
		advice = "write " + spellings[i]
	} else if len(could) > 0 {
		advice = "it could mean " + strings.Join(could, " or ")
	}
	rej.Reason = what + " is not in " + who
	if advice != "" {
		rej.Reason += ": " + advice
	}
	return rej
}
