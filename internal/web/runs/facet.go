package runs

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/store"
	"perflab/internal/store/filter"
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
func (s *screen) facets(ctx context.Context, st state, parts []filter.Part, path string, version int64) ([]facet, error) {
	var out []facet
	for _, f := range facetFacts {
		rest := slices.DeleteFunc(slices.Clone(parts), func(p filter.Part) bool { return p.Fact == f.Name && p.Op == "=" })
		chosen := chosenOf(parts, f.Name)
		all, err := s.counts.groups(ctx, s.o.Store, version, st.condition(filter.Join(rest)), f.Name)
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

// countCache keeps the counts of facets: they are of a version of the index, and the same for all
// pages and orders of a list.
type countCache struct {
	mu       sync.Mutex
	version  int64
	since    time.Time
	groupsOf map[countKey][]store.Group
	totals   map[string]int
}

const (
	mostCounts = 2000        // lists whose counts are kept
	countsFor  = time.Minute // since an expression may speak of ages
)

// at empties the cache where it is of another version of the index, too old or full.
func (c *countCache) at(version int64) {
	if c.version == version && time.Since(c.since) < countsFor && len(c.groupsOf)+len(c.totals) < mostCounts {
		return
	}
	c.version, c.since, c.groupsOf, c.totals = version, time.Now(), map[countKey][]store.Group{}, map[string]int{}
}

// groups are the counts of a fact's values in a list. Those of the other facts of facets are found in
// the same look.
func (c *countCache) groups(ctx context.Context, s *store.Store, version int64, condition, fact string) ([]store.Group, error) {
	c.mu.Lock()
	c.at(version)
	known, ok := c.groupsOf[countKey{fact, condition}]
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	found := map[string][]store.Group{}
	var err error
	switch {
	case slices.Contains(together, fact):
		found, err = s.Counts(ctx, store.Query{Filter: condition}, together...)
	default:
		found[fact], err = s.Groups(ctx, store.Query{Filter: condition, Limit: store.MostPage}, fact)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		for name, all := range found {
			c.groupsOf[countKey{name, condition}] = all
		}
	}
	return found[fact], nil
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

// countKey is a fact of a list.
type countKey struct{ fact, condition string }

// total is how many entries a list has.
func (c *countCache) total(ctx context.Context, s *store.Store, version int64, condition string) (int, error) {
	c.mu.Lock()
	c.at(version)
	known, ok := c.totals[condition]
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	p, err := s.List(ctx, store.Query{Filter: condition, Limit: 1})
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		c.totals[condition] = p.Total
	}
	return p.Total, nil
}
