package catalogue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/engine"
)

// Parameter is how a parameter that is tuned stands against the parser of one release.
type Parameter struct {
	Name       string
	Own        bool     // the engine can be told it
	Doc        string   // why not
	Flags      []string // by which it is told in this version
	Gone       []string // of them, those that the parser lacks; why perflab refuses every value
	Deprecated []string // of them, those that the parser says are
	Default    string   // here; "": every value is given
	Parser     string   // the parser's
	Refused    []string // values that are tried and that the parser refuses
}

// Differs reports whether a value is left out as the default that is not the parser's.
func (p Parameter) Differs() bool { return p.Default != "" && !same(p.Default, p.Parser) }

// Asks reports whether a reader is owed a reason.
func (p Parameter) Asks() bool {
	return p.Own && (p.Differs() || len(p.Gone)+len(p.Deprecated)+len(p.Refused) > 0)
}

func same(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return a == b || err == nil && err2 == nil && x == y
}

// Parameters holds every parameter of an engine against the parser of a release: the
// command lines that perflab prints for that version, with each value that it may try.
func (f Facts) Parameters(s Source) (all []Parameter, err error) {
	e, err := engine.ByName(f.Engine)
	if err != nil {
		return nil, err
	}
	for i := range e.Params {
		p := &e.Params[i]
		row := Parameter{Name: p.Name, Default: p.Default, Doc: p.Doc, Own: p.Derived || p.Key != "" || len(p.Flags)+len(p.Off)+len(p.OffArgs) > 0}
		if row.Own {
			f.hold(e, p, s, &row)
		}
		all = append(all, row)
	}
	return all, nil
}

// hold tries every value.
func (f Facts) hold(e *engine.Engine, p *engine.Param, s Source, row *Parameter) {
	var refusal error
	for _, value := range f.tried(e, p) {
		if value == p.Default { // which needs no flag
			continue
		}
		set, bare := map[string]string{p.Name: value}, map[string]string{}
		if p.Name == engine.AttentionDP || p.Ranks { // of one rank there is nothing to say
			bare[engine.TP], set[engine.TP] = "2", "2"
		}
		if p.Name == engine.AttentionDP {
			set[engine.DP] = "2" // groups
		}
		c, err := engine.New(e.Name, "MODEL", set, nil)
		if err != nil {
			continue // refused for every version, or not a value of this engine's
		}
		c.Version = f.Release
		if rej := c.Fit(); rej != nil {
			refusal = rej
			continue
		}
		f.args(c, bare, value, s, row)
	}
	if len(row.Flags) == 0 && refusal != nil {
		row.Gone = append(row.Gone, refusal.Error())
	}
	if len(row.Flags) == 0 || len(p.OffArgs) > 0 {
		return
	}
	o, ok := f.option(row.Flags[0], s.Also)
	if !ok {
		return
	}
	row.Parser = o.Default
	switch {
	case p.Kind == engine.Bool && slices.Contains(p.Off, row.Flags[0]):
		row.Parser = map[string]string{"true": "false", "false": "true"}[o.Default]
	case p.Kind == engine.Bool && o.Default == "1":
		row.Parser = "false"
	}
	for canonical, spelled := range p.Spell {
		if spelled == o.Default {
			row.Parser = canonical
		}
	}
}

// tried are the values of a parameter that perflab may choose: those of its ladder, the
// engine's own choices, and one for a parameter that has neither.
func (f Facts) tried(e *engine.Engine, p *engine.Param) []string {
	values := slices.Clone(p.Ladder)
	if p.Kind == engine.Bool {
		values = append(values, "true", "false")
	}
	for _, flag := range e.Flags() {
		if flag.Param == p.Name && flag.Kind == engine.Choice && p.Name != engine.Speculative {
			values = append(values, flag.Choices...)
		}
	}
	if len(values) == 0 {
		values = []string{"2"}
	}
	return values
}

// args holds the part of a command line that sets a parameter, and is not of the rest,
// against the parser.
func (f Facts) args(c engine.Command, rest map[string]string, value string, s Source, row *Parameter) {
	args := c.Argv()
	bare, err := engine.New(c.Engine, c.Model, rest, nil)
	if err != nil {
		return
	}
	for _, word := range bare.Argv() {
		if i := slices.Index(args, word); i >= 0 {
			args = slices.Delete(args, i, i+1)
		}
	}
	var o *Option
	for _, word := range args {
		name, given, inline := strings.Cut(word, "=")
		_, err := strconv.ParseFloat(word, 64)
		if !strings.HasPrefix(word, "-") || err == nil {
			given, inline = word, true
		} else {
			var ok bool
			if o, ok = f.option(name, s.Also); !ok {
				row.Gone = add(row.Gone, name)
			} else if o.Deprecated {
				row.Deprecated = add(row.Deprecated, name)
			}
			row.Flags = add(row.Flags, name)
		}
		if inline && o != nil && len(o.Choices) > 0 && !slices.Contains(o.Choices, given) {
			row.Refused = add(row.Refused, value)
		}
	}
}

// add appends what is not there yet.
func add(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}

// ParameterTable is how an engine's parameters stand against its last two releases, as
// Markdown. A reason is owed to each that is gone, deprecated or refused, and to each
// default that differs; missing are those without one, and idle the reasons that nothing asks for.
func ParameterTable(title string, releases []Facts, rows [][]Parameter, reasons map[string]string) (text string, missing, idle []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### Parameters of %s\n\n| parameter | flags | default here | default of its parser | tried and refused | why |\n|---|---|---|---|---|---|\n", title)
	var absent, lacking []string
	for i, p := range rows[0] {
		by := func(of func(Parameter) string) string {
			first, last := of(p), of(rows[len(rows)-1][i])
			if first == last {
				return first
			}
			return fmt.Sprintf("%s in %s, %s in %s", first, releases[0].Release, last, releases[len(releases)-1].Release)
		}
		if !p.Own && strings.HasSuffix(p.Doc, "has no such setting.") {
			lacking = append(lacking, "`"+p.Name+"`")
			continue
		}
		if !p.Own {
			absent = append(absent, fmt.Sprintf("`%s` (%s)", p.Name, strings.TrimSuffix(p.Doc, ".")))
			continue
		}
		why := reasons[p.Name]
		asks := slices.ContainsFunc(rows, func(r []Parameter) bool { return r[i].Asks() })
		switch {
		case asks && why == "":
			missing = append(missing, p.Name)
		case !asks && why != "":
			idle = append(idle, p.Name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", p.Name, by(Parameter.flags), by(func(p Parameter) string { return or(p.Default, "-") }),
			by(func(p Parameter) string { return or(p.Parser, "none") }), by(func(p Parameter) string { return named(p.Refused) }), why)
	}
	if len(lacking) > 0 {
		absent = append(absent, strings.Join(lacking, ", ")+" (it has no such setting)")
	}
	if len(absent) > 0 {
		fmt.Fprintf(&b, "\n%s cannot be told: %s.\n", title, strings.Join(absent, ", "))
	}
	return b.String(), missing, idle
}

// flags are the flags of a parameter, and what is to be said of them.
func (p Parameter) flags() string {
	var out []string
	for _, flag := range p.Flags {
		text := "`" + flag + "`"
		if slices.Contains(p.Gone, flag) {
			text += " (gone)"
		}
		if slices.Contains(p.Deprecated, flag) {
			text += " (deprecated)"
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		out = append([]string{"none"}, p.Gone...)
	}
	return strings.Join(out, " ")
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return "`" + text + "`"
}
