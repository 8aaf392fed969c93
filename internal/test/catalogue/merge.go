package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Entry is a flag in flags.json.
type Entry struct {
	Flag     string            `json:"flag"`
	Aliases  []string          `json:"aliases,omitempty"`
	Off      []string          `json:"off,omitempty"`
	Kind     string            `json:"kind"`
	Choices  []string          `json:"choices,omitempty"`
	Gained   map[string]string `json:"gained,omitempty"`
	Lost     map[string]string `json:"lost,omitempty"`
	Bare     bool              `json:"bare,omitempty"`
	Open     bool              `json:"open,omitempty"`
	Figures  bool              `json:"figures,omitempty"`
	Relevant bool              `json:"perf,omitempty"`
	Default  string            `json:"default,omitempty"`
	Note     string            `json:"note,omitempty"`
	Since    string            `json:"since,omitempty"`
	Exact    bool              `json:"exact,omitempty"`
	Until    string            `json:"until,omitempty"`
	Group    string            `json:"group"`
	Doc      string            `json:"doc,omitempty"`
	Try      []string          `json:"try,omitempty"`
	With     json.RawMessage   `json:"with,omitempty"`

	in     map[string]bool     // versions that have it
	takes  map[string][]string // by version, the choices that its parser takes
	fresh  bool                // it was not in the catalogue before
	newest *Option             // of the newest release that has it
}

// Version is one whose flags were read.
type Version struct {
	Version string `json:"version"`
	Read    string `json:"read"`
}

// List is what flags.json has of one engine.
type List struct {
	Versions []Version `json:"versions"`
	Flags    []*Entry  `json:"flags"`
	Keys     []*Entry  `json:"keys,omitempty"`
}

// Merge folds the facts of releases, the oldest first, into an engine's list, and writes
// a line for each change.
func (l *List) Merge(s Source, all []Facts, out io.Writer) {
	l.spread()
	for _, f := range all {
		if i := slices.IndexFunc(l.Versions, func(v Version) bool { return v.Version == f.version }); i >= 0 {
			l.Versions[i].Read = "wheel " + f.Release
		} else {
			l.Versions = append(l.Versions, Version{f.version, "wheel " + f.Release})
		}
	}
	slices.SortFunc(l.Versions, func(a, b Version) int { return compare(a.Version, b.Version) })
	l.split(s, all)
	for _, f := range all {
		l.fold(s, f, out)
	}
	for _, e := range l.Flags {
		if e.newest != nil {
			e.take(*e.newest, out)
		}
	}
	for _, e := range l.Flags {
		l.span(e, out)
		l.spanChoices(e, out)
	}
	slices.SortStableFunc(l.Flags, func(a, b *Entry) int {
		return strings.Compare(strings.TrimLeft(a.Flag, "-"), strings.TrimLeft(b.Flag, "-"))
	})
}

func (l *List) names() []string {
	var names []string
	for _, v := range l.Versions {
		names = append(names, v.Version)
	}
	return names
}

// spread writes out which versions have each flag.
func (l *List) spread() {
	for _, e := range l.Flags {
		e.in = map[string]bool{}
		has := e.Since == ""
		for _, v := range l.names() {
			has = has || v == e.Since
			if has {
				e.in[v] = true
			}
			has = has && v != e.Until
		}
	}
}

// split makes other names of a flag that a release no longer has flags of their own,
// so that they end by themselves.
func (l *List) split(s Source, all []Facts) {
	for _, e := range slices.Clone(l.Flags) {
		for _, name := range slices.Clone(e.Aliases) {
			gone := slices.ContainsFunc(all, func(f Facts) bool {
				_, whole := f.exact(e.Flag)
				_, found := f.option(name, s.Also)
				return whole && !found && e.in[f.version]
			})
			newest := all[len(all)-1]
			_, still := newest.option(name, s.Also)
			if _, whole := newest.exact(e.Flag); !whole || still || !gone && e.in[newest.version] {
				continue
			}
			other := *e
			other.Flag, other.Aliases, other.Off, other.Note = name, nil, nil, ""
			other.Gained, other.Lost = maps.Clone(e.Gained), maps.Clone(e.Lost)
			other.in = map[string]bool{}
			for v := range e.in {
				other.in[v] = true
			}
			l.Flags = append(l.Flags, &other)
			e.Aliases = slices.DeleteFunc(e.Aliases, func(n string) bool { return n == name })
		}
	}
}

// exact finds the option of this very name.
func (f Facts) exact(name string) (*Option, bool) {
	for i := range f.Flags {
		if o := &f.Flags[i]; slices.Contains(o.Names, name) || slices.Contains(o.Off, name) {
			return o, true
		}
	}
	return nil, false
}

// fold takes over what one release says.
func (l *List) fold(s Source, f Facts, out io.Writer) {
	named := map[string]*Entry{}
	for _, e := range l.Flags {
		for _, n := range slices.Concat(e.Aliases, e.Off) {
			named[n] = e
		}
	}
	for _, e := range l.Flags {
		named[e.Flag] = e
		o, ok := f.exact(e.Flag)
		if !ok && slices.ContainsFunc(e.Aliases, func(n string) bool { _, ok := f.exact(n); return ok }) {
			ok = true // under another of its names
			for _, n := range e.Aliases {
				if o == nil {
					o, _ = f.exact(n)
				}
			}
		}
		e.in[f.version] = ok
		if o != nil && !slices.Contains(o.Off, e.Flag) {
			e.grow(*o, f, out)
			e.newest = o
		}
	}
	for _, o := range f.Flags {
		var known *Entry
		for _, n := range o.Names {
			if known == nil {
				known = named[n]
			}
		}
		if known == nil {
			known = &Entry{Flag: o.Names[0], Kind: o.Kind, Default: o.Default, in: map[string]bool{f.version: true}, fresh: true, newest: &o}
			known.grow(o, f, out)
			l.Flags = append(l.Flags, known)
		}
		for _, n := range o.Names {
			if named[n] == nil && n != known.Flag {
				known.Aliases = append(known.Aliases, n)
				if !known.fresh {
					fmt.Fprintf(out, "%s: also written %s from %s on\n", known.Flag, n, f.version)
				}
			}
			if named[n] == nil {
				named[n] = known
			}
		}
		for _, n := range o.Off {
			if named[n] == nil {
				known.Off = append(known.Off, n)
				named[n] = known
			}
		}
	}
}

// grow adds what a release has and none before it had: spellings and choices.
func (e *Entry) grow(o Option, f Facts, out io.Writer) {
	if e.Kind != "choice" {
		return
	}
	if len(o.Choices) > 0 {
		if e.takes == nil {
			e.takes = map[string][]string{}
		}
		e.takes[f.version] = o.Choices
	}
	var more []string
	for _, c := range o.Choices {
		if c != "None" && !slices.Contains(e.Choices, c) { // None is what leaving it out is
			more = append(more, c)
		}
	}
	if more != nil {
		e.Choices = append(slices.Clone(e.Choices), more...)
		if !e.fresh {
			for _, c := range more {
				e.Gained = set(e.Gained, c, f.version) // no release before had it
			}
			fmt.Fprintf(out, "%s: choices new in %s: %s\n", e.Flag, f.version, strings.Join(more, ", "))
		}
	}
}

// take changes an entry's facts to those of the newest release that has it. The kind
// stays, as it says how perflab reads the value, and a parser often takes any text: but a
// flag with a value is no switch.
func (e *Entry) take(o Option, out io.Writer) {
	if o.Kind == "bool" && e.Kind != "bool" {
		fmt.Fprintf(out, "%s: a switch, was %s\n", e.Flag, e.Kind)
		e.Kind, e.Choices = "bool", nil
	}
	if e.Kind == "bool" && o.Kind != "bool" || e.Kind == "int" && o.Kind == "float" {
		fmt.Fprintf(out, "%s: the catalogue reads %s, the parser %s: say which it is\n", e.Flag, e.Kind, o.Kind)
	}
	if e.Bare != o.Bare {
		fmt.Fprintf(out, "%s: its value may be left out: %v\n", e.Flag, o.Bare)
		e.Bare = o.Bare
	}
	if e.Default != o.Default {
		if !e.fresh {
			fmt.Fprintf(out, "%s: default %q, was %q\n", e.Flag, o.Default, e.Default)
		}
		e.Default = o.Default
	}
}

// span sets since, until and exact by the versions that have the flag.
func (l *List) span(e *Entry, out io.Writer) {
	names := l.names()
	first, last := len(names), -1
	for i, v := range names {
		if e.in[v] {
			first, last = min(first, i), i
		}
	}
	if last < 0 {
		fmt.Fprintf(out, "%s: no release has it: the catalogue keeps it as it was\n", e.Flag)
		return
	}
	for i := first; i <= last; i++ {
		if !e.in[names[i]] {
			fmt.Fprintf(out, "%s: %s lacks it, which the catalogue cannot say\n", e.Flag, names[i])
		}
	}
	since, until := e.Since, e.Until
	e.Since, e.Until, e.Exact = "", "", false
	if first > 0 {
		e.Since, e.Exact = names[first], adjacent(names[first-1], names[first])
	}
	if last < len(names)-1 {
		e.Until = names[last]
	}
	switch {
	case e.fresh:
		fmt.Fprintf(out, "%s: new, %s %q since %q until %q\n", e.Flag, e.Kind, e.Default, e.Since, e.Until)
	case e.Until != until:
		fmt.Fprintf(out, "%s: until %q, was %q\n", e.Flag, e.Until, until)
	case e.Since != since:
		fmt.Fprintf(out, "%s: since %q, was %q\n", e.Flag, e.Since, since)
	}
}

// spanChoices sets which versions take each choice, as far as they were read: of one that
// the releases read do not tell apart, what was known before stays.
func (l *List) spanChoices(e *Entry, out io.Writer) {
	var read []string // versions whose choices are known now
	for _, v := range l.names() {
		if e.takes[v] != nil {
			read = append(read, v)
		}
	}
	if len(read) == 0 {
		return
	}
	before := l.before(e, read[0])
	for _, c := range e.Choices {
		first, last := -1, -1
		for i, v := range read {
			if slices.Contains(e.takes[v], c) {
				if first < 0 {
					first = i
				}
				last = i
			}
		}
		gained, lost := e.Gained[c], e.Lost[c]
		switch {
		case first > 0:
			gained = read[first]
		case first == 0 && gained != "" && compare(gained, read[0]) > 0:
			gained = ""
		case first < 0 && gained == "" && lost == "" && before == "": // no release that was read has it
			fmt.Fprintf(out, "%s: no release takes %s: the catalogue keeps it as it was\n", e.Flag, c)
			continue
		}
		switch {
		case first < 0 && (lost == "" || compare(lost, before) > 0):
			lost = before
		case last == len(read)-1:
			lost = ""
		case first >= 0:
			lost = read[last]
		}
		e.Gained, e.Lost = set(e.Gained, c, gained), set(e.Lost, c, lost)
	}
}

// before is the version that stands before another and has the flag, "" for none.
func (l *List) before(e *Entry, version string) (last string) {
	for _, v := range l.names() {
		if v == version {
			return last
		}
		if e.in[v] {
			last = v
		}
	}
	return last
}

// set is a map with a value set, or removed where it is empty; nil without any.
func set(m map[string]string, key, value string) map[string]string {
	if value == "" {
		delete(m, key)
	} else {
		if m == nil {
			m = map[string]string{}
		}
		m[key] = value
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// adjacent reports whether no version can stand between two.
func adjacent(a, b string) bool {
	i, j := strings.LastIndexByte(a, '.'), strings.LastIndexByte(b, '.')
	var x, y int
	fmt.Sscan(a[i+1:], &x)
	fmt.Sscan(b[j+1:], &y)
	return a[:i] == b[:j] && y == x+1
}

// Read reads flags.json.
func Read(text []byte) (lists map[string]*List, order []string, err error) {
	if err := json.Unmarshal(text, &lists); err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	for depth := 0; ; {
		t, err := d.Token()
		if err == io.EOF {
			return lists, order, nil
		}
		switch t := t.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				depth++
			} else {
				depth--
			}
		case string:
			if _, engine := lists[t]; engine && depth == 1 {
				order = append(order, t)
			}
		}
	}
}

// Write writes flags.json, a flag a line.
func Write(lists map[string]*List, order []string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{")
	for i, engine := range order {
		l := lists[engine]
		fmt.Fprintf(&b, "%s\n %q: {", comma(i), engine)
		if err := rows(&b, "versions", l.Versions); err != nil {
			return nil, err
		}
		b.WriteString(",")
		if err := rows(&b, "flags", l.Flags); err != nil {
			return nil, err
		}
		if l.Keys != nil {
			b.WriteString(",")
			if err := rows(&b, "keys", l.Keys); err != nil {
				return nil, err
			}
		}
		b.WriteString("\n }")
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func rows[T any](b *bytes.Buffer, name string, all []T) error {
	fmt.Fprintf(b, "\n  %q: [", name)
	for i, row := range all {
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(row); err != nil {
			return err
		}
		b.WriteString(comma(i) + "\n   ")
		b.Write(spaced(bytes.TrimSpace(line.Bytes())))
	}
	b.WriteString("\n  ]")
	return nil
}

// spaced puts a blank behind the commas and colons of compact JSON.
func spaced(text []byte) []byte {
	var out []byte
	quoted, escaped := false, false
	for _, c := range text {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = quoted
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return out
}
