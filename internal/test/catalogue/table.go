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
	Choices         []string // the parser takes values that the catalogue does not
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
		if e.Kind == "choice" && slices.ContainsFunc(o.Choices, func(c string) bool { return c != "None" && !slices.Contains(e.Choices, c) }) {
			st.Choices = append(st.Choices, e.Flag)
		}
	}
	for _, e := range l.Flags {
		if _, ok := f.option(e.Flag, s.Also); e.in[f.version] && !ok {
			st.Gone = append(st.Gone, e.Flag)
		}
	}
	return st
}

// Table is the standings as Markdown.
func Table(all []Standing) string {
	var b strings.Builder
	b.WriteString("| release | flags of its parser | missing here | here and gone | other default | values missing |\n|---|---:|---|---|---|---|\n")
	for _, s := range all {
		fmt.Fprintf(&b, "| %s %s | %d | %s | %s | %s | %s |\n", s.Engine, s.Release, s.Flags, named(s.Missing), named(s.Gone), named(s.Defaults), named(s.Choices))
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
