package study

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/stat"
)

// unknown judges the flags of an engine that perflab does not know. They pass where the
// study says that its engine is newer than what perflab knows, and where the installed one
// will be asked; else they are written wrongly. The beginning of a flag that is known is
// not taken for it.
func (c *checker) unknown(at string, use EngineUse, cmd engine.Command) {
	e, err := engine.ByName(cmd.Engine)
	if err != nil {
		return
	}
	newer := e.Untried(use.Version) != ""
	for _, flag := range cmd.Unknown() {
		path := at
		if i := slices.IndexFunc(use.Flags, func(f string) bool { return f == flag || strings.HasPrefix(f, flag+"=") }); i >= 0 {
			path = field.Index(at, i)
		}
		fault := &field.Error{Path: path, Reason: fmt.Sprintf("%s has no flag %s in any version that perflab knows, up to %s%s", e.Title, flag, e.Versions()[len(e.Versions())-1], Suggest(flag, e.Spellings()))}
		begins := slices.ContainsFunc(e.Spellings(), func(s string) bool { return strings.HasPrefix(s, flag) })
		switch {
		case newer && !begins && c.s.Runtime.Kind != Simulated: // which knows what perflab knows
		case !c.s.Runtime.StartsEngines():
			c.faults = append(c.faults, fault)
		case newer:
			c.unasked = append(c.unasked, fault)
		default:
			fault.Reason = strings.TrimSuffix(fault.Reason, "?") + fmt.Sprintf("; if yours is newer, say so with engines.%s.version", e.Name)
			c.unasked = append(c.unasked, fault)
		}
	}
}

// Suggest ends a sentence on a name that is not known with the nearest of those that are,
// if any is near.
func Suggest(name string, known []string) string {
	if best := stat.Nearest(name, known); best != "" {
		return ": did you mean " + best + "?"
	}
	return ""
}

// Unasked is what is wrong with flags that perflab does not know as long as no installed
// engine says that it has them; nil for none.
func (s *Study) Unasked() error {
	if len(s.unasked) == 0 {
		return nil
	}
	return &Error{s.path, s.unasked}
}

// UnknownFlags are the flags of the study's engines that perflab does not know, by engine.
func (f *File) UnknownFlags() map[string][]string {
	out := map[string][]string{}
	for name, use := range f.Engines {
		cmd, err := use.command(name, "MODEL", nil)
		if flags := cmd.Unknown(); err == nil && len(flags) > 0 {
			out[name] = flags
		}
	}
	return out
}

// UnknownRemarks says what a reader must know of them, a sentence an engine.
func (f *File) UnknownRemarks() (out []string) {
	unknown := f.UnknownFlags()
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		if e, err := engine.ByName(name); err == nil {
			out = append(out, fmt.Sprintf("perflab does not know what these flags of %s do: %s. They are passed on as they stand, no rule is checked of them, and no prediction heeds them.", e.Title, strings.Join(unknown[name], ", ")))
		}
	}
	return out
}
