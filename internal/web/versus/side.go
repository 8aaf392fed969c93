package versus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/source"
	"perflab/internal/store"
	"perflab/internal/store/scan"
	"perflab/internal/web/guard"
)

// side is one of the things compared, with the entries that it is of.
type side struct {
	Name    string
	Entries []store.Entry // runs, or one of repeated runs
}

// chosen are the entries of a choice, those that are there, and what is to be said of the others.
type chosen struct {
	entries []store.Entry            // in the order of the choice
	parts   map[string][]store.Entry // the runs of those that hold some, by ID
	notes   []string
}

// choose finds what a choice names, of what somebody may see.
func (s *screen) choose(ctx context.Context, who guard.Who, c *choice) (chosen, error) {
	out := chosen{parts: map[string][]store.Entry{}}
	var ids []string
	for _, id := range c.IDs {
		e, err := s.store.Get(ctx, id)
		if missing, ok := errors.AsType[*store.NotFoundError](err); ok {
			out.notes = append(out.notes, missing.Error()+".")
			continue
		}
		if err != nil {
			return out, err
		}
		if !who.Sees(e.ID) {
			out.notes = append(out.notes, "This link does not open "+id+".")
			continue
		}
		if slices.Contains(ids, e.ID) {
			continue
		}
		ids = append(ids, e.ID)
		out.entries = append(out.entries, e)
		if e.Kind != scan.Run {
			parts, err := s.store.Parts(ctx, e.ID, "*")
			if err != nil {
				return out, err
			}
			out.parts[e.ID] = slices.DeleteFunc(parts, func(p store.Entry) bool { return p.Kind != scan.Run })
		}
	}
	c.IDs = ids
	return out, nil
}

// sides are the sides of a comparison: runs of one configuration under one load are one side,
// unless each shall stand alone. What has runs of several loads is no side, and a note says so.
func (c *chosen) sides(alone bool) []side {
	var out []side
	at := map[string]int{}
	add := func(e store.Entry) {
		key := e.ID
		if !alone && e.Kind == scan.Run && e.Known {
			key = e.Config + "\x00" + e.Fingerprint + "\x00" + fmt.Sprint(e.Rate, e.Limit, e.Simulated, e.Predicted, e.Imported)
		}
		if i, ok := at[key]; ok {
			out[i].Entries = append(out[i].Entries, e)
			return
		}
		at[key] = len(out)
		out = append(out, side{Entries: []store.Entry{e}})
	}
	for _, e := range c.entries {
		switch {
		case e.Dir() == "":
			c.notes = append(c.notes, e.Called()+" lies on another machine: its figures are in the list, and what needs its calls is not here.")
		case e.Kind == scan.Run:
			add(e)
		case e.Kind == scan.Series && isRepeat(e, c.parts[e.ID]):
			add(e)
		case e.Kind == scan.Import:
			for _, p := range c.parts[e.ID] {
				add(p)
			}
		default:
			c.notes = append(c.notes, fmt.Sprintf("%s is a %s with runs of different loads or configurations: it is in the plot of the front alone. Tick runs of it to compare them.", e.Called(), e.Kind))
		}
	}
	name(out)
	return out
}

// isRepeat reports whether a series is of one load again and again.
func isRepeat(e store.Entry, parts []store.Entry) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(p store.Entry) bool {
		return p.Rate != parts[0].Rate || p.Limit != parts[0].Limit || p.Requests != parts[0].Requests
	}) && e.Workload == parts[0].Workload
}

// name calls each side by what people call its first run, with a number where two would be alike.
func name(sides []side) {
	seen := map[string]int{}
	for i := range sides {
		e := sides[i].Entries[0]
		text := e.Called()
		if e.Marks.Name == "" {
			text = cmp.Or(e.Label, text)
		}
		if n := len(sides[i].Entries); n > 1 {
			text = fmt.Sprintf("%s and %d more", text, n-1)
		}
		text = strings.NewReplacer("=", "-", ",", " ").Replace(text)
		seen[text]++
		if n := seen[text]; n > 1 {
			text = fmt.Sprintf("%s (%d)", text, n)
		}
		sides[i].Name = text
	}
}

// groups are sides as source opens them.
func groups(sides []side) []source.Group {
	var out []source.Group
	for _, s := range sides {
		g := source.Group{Name: s.Name}
		for _, e := range s.Entries {
			g.Places, g.Names = append(g.Places, e.Dir()), append(g.Names, e.Called())
		}
		out = append(out, g)
	}
	return out
}
