package runs

import (
	"context"
	"slices"
	"strings"

	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/web/recall"
)

// facetFacts are the facts that can be chosen by a click, with the counts of their values.
var facetFacts = []struct{ Name, Label string }{
	{"kind", "Kind"}, {"verdict", "Verdict"}, {"state", "State"}, {"engine", "Engine"}, {"model", "Model"}, {"hardware", "Hardware"},
	{"workload", "Workload"}, {"simulated", "Simulated"}, {"tag", "Tag"},
}

// facet is a fact with the values that the list has of it.
type facet struct {
	Name, Label string
	Options     []option
	On          int // values that are chosen
}

// option is a value of a facet. Its link chooses it, or takes it away.
type option struct {
	Label string
	Count int
	On    bool
	URL   string // "": no expression can say this value
}

// mostOptions is how many values a facet shows: the most frequent ones.
const mostOptions = 30

// chip is a part of the expression, with the list without it.
type chip struct{ Text, URL string }

// inside is the condition of a list that does not go into studies, series and imports.
const inside = "parent=none"

// condition is the whole condition of a list.
func (s state) condition(q string) string {
	if s.Parts {
		return q
	}
	return strings.TrimSpace(q + " " + inside)
}

// facets are the facets of a list whose expression has these parts. Of each fact the counts are of
// the list without what the expression says of that fact, so that another value can be chosen.
func facets(ctx context.Context, st state, parts []filter.Part, path string, now recall.Now) ([]facet, error) {
	var out []facet
	for _, f := range facetFacts {
		rest := slices.DeleteFunc(slices.Clone(parts), func(p filter.Part) bool { return p.Fact == f.Name && p.Op == "=" })
		chosen := chosenOf(parts, f.Name)
		all, err := counted(ctx, now, st.condition(filter.Join(rest)), f.Name)
		if err != nil {
			return nil, err
		}
		all = all[:min(len(all), mostOptions)]
		one := facet{Name: f.Name, Label: f.Label}
		for _, g := range all {
			if g.Value == "" && len(all) == 1 { // nobody has it: there is nothing to choose
				continue
			}
			one.add(st, rest, chosen, g, path)
		}
		if len(one.Options) > 1 || one.On > 0 {
			out = append(out, one)
		}
	}
	return out, nil
}

// counted are the counts of a fact's values in a list. Those of all facets are found in one look.
func counted(ctx context.Context, now recall.Now, condition, fact string) ([]store.Group, error) {
	if !slices.Contains(together, fact) {
		return now.Groups(ctx, store.Query{Filter: condition, Limit: store.MostPage}, fact)
	}
	all, err := now.Counts(ctx, store.Query{Filter: condition}, together...)
	return all[fact], err
}

// together are the facts that are counted in one look: those of facets of which an entry has one.
var together = func() []string {
	var out []string
	for _, f := range facetFacts {
		if f.Name != "tag" {
			out = append(out, f.Name)
		}
	}
	return out
}()

// chosenOf are the values that an expression asks of a fact.
func chosenOf(parts []filter.Part, fact string) []string {
	var out []string
	for _, p := range parts {
		if p.Fact == fact && p.Op == "=" {
			out = append(out, p.Values...)
		}
	}
	return out
}

func (f *facet) add(st state, rest []filter.Part, chosen []string, g store.Group, path string) {
	value := strings.ToLower(g.Value)
	if value == "" {
		value = filter.None
	}
	o := option{Label: g.Value, Count: g.Count, On: slices.Contains(chosen, value)}
	if o.Label == "" {
		o.Label = "none"
	}
	next := append(slices.Clone(chosen), value)
	if o.On {
		f.On++
		next = slices.DeleteFunc(slices.Clone(chosen), func(v string) bool { return v == value })
	}
	st = st.first()
	if st.Q = filter.Join(rest); len(next) > 0 {
		p, ok := filter.Equals(f.Name, next...)
		if !ok {
			f.Options = append(f.Options, o)
			return
		}
		st.Q = filter.Join(append(slices.Clone(rest), p))
	}
	o.URL = st.URL(path)
	f.Options = append(f.Options, o)
}

// chips are the parts of the expression, each to be taken away.
func chips(st state, parts []filter.Part, path string) []chip {
	out := make([]chip, len(parts))
	for i, p := range parts {
		rest := slices.Delete(slices.Clone(parts), i, i+1)
		next := st.first()
		next.Q = filter.Join(rest)
		out[i] = chip{p.Text, next.URL(path)}
	}
	return out
}
