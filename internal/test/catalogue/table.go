package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// Standing is how the catalogue stands against the parser of one release.
type Standing struct {
	Engine, Release string
	Flags           int
	Missing         []string // the parser has them, and the catalogue not for this version
	Gone            []string // the other way about
	Defaults        []string // differ
	Choices         []string // the parser takes values that the catalogue does not have for this version
	Refused         []string // the other way about
}

// Compare holds a list against the parser of a release.
func (l *List) Compare(engine string, s Source, f Facts) Standing {
	st := Standing{Engine: engine, Release: f.Release, Flags: len(f.Flags)}
	l.spread()
	for _, o := range f.Flags {
		i := slices.IndexFunc(l.Flags, func(e *Entry) bool {
			return e.in[f.version] && (slices.Contains(o.Names, e.Flag) || slices.ContainsFunc(e.Aliases, func(n string) bool { return slices.Contains(o.Names, n) }))
		})
		if i < 0 {
			st.Missing = append(st.Missing, o.Names[0])
			continue
		}
		e := l.Flags[i]
		if e.Default != o.Default {
			st.Defaults = append(st.Defaults, e.Flag)
		}
		if e.Kind != "choice" || len(o.Choices) == 0 {
			continue
		}
		has := func(c string) bool { return slices.Contains(e.Choices, c) && e.holds(c, f.version) }
		if slices.ContainsFunc(o.Choices, func(c string) bool { return c != "None" && !has(c) }) {
			st.Choices = append(st.Choices, e.Flag)
		}
		if slices.ContainsFunc(e.Choices, func(c string) bool { return has(c) && !slices.Contains(o.Choices, c) }) {
			st.Refused = append(st.Refused, e.Flag)
		}
	}
	for _, e := range l.Flags {
		if _, ok := f.option(e.Flag, s.Also); e.in[f.version] && !ok {
			st.Gone = append(st.Gone, e.Flag)
		}
	}
	return st
}

// holds reports whether a choice's span has a version.
func (e *Entry) holds(choice, version string) bool {
	gained, lost := e.Gained[choice], e.Lost[choice]
	return (gained == "" || compare(version, gained) >= 0) && (lost == "" || compare(version, lost) <= 0)
}

// Table is the standings as Markdown.
func Table(all []Standing) string {
	var b strings.Builder
	b.WriteString("| release | flags of its parser | missing here | here and gone | other default | values missing | values here and refused |\n|---|---:|---|---|---|---|---|\n")
	for _, s := range all {
		fmt.Fprintf(&b, "| %s %s | %d | %s | %s | %s | %s | %s |\n", s.Engine, s.Release, s.Flags, named(s.Missing), named(s.Gone), named(s.Defaults), named(s.Choices), named(s.Refused))
	}
	return b.String()
}

// named is how many there are, and which.
func named(names []string) string {
	if len(names) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: `%s`", len(names), strings.Join(names, "`, `"))
}
