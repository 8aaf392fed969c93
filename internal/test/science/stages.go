package science

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/tune"
)

// stages are the space as published studies search it: the engine, the
// checkpoint, the layout, how much runs at once, the memory, and speculation; the
// best of each goes on.
func (w *World) stages() []tune.Stage {
	layout := []string{engine.TP, engine.PP, engine.DP, engine.ExpertParallel, engine.AttentionDP}
	limits := []string{engine.MaxNumSeqs, engine.MaxBatched}
	speculation := []string{engine.Speculative}
	var rest []string
	for _, name := range slices.Sorted(maps.Keys(w.Narrow)) {
		if !slices.Contains(slices.Concat(layout, limits, speculation), name) {
			rest = append(rest, name)
		}
	}
	stages := []tune.Stage{
		{Name: "engine", Changes: changes(w.Baseline, "engine", w.Engines)},
		{Name: "quantisation", Changes: changes(w.Baseline, "model", w.Models)},
		{Name: "parallelism", Changes: w.layouts(layout)},
	}
	for _, names := range [][]string{limits[:1], limits[1:], rest, speculation} {
		var s tune.Stage
		for _, name := range names {
			s.Changes = append(s.Changes, changes(w.Baseline, name, w.Narrow[name])...)
		}
		s.Name = strings.Join(names, " and ")
		stages = append(stages, s)
	}
	return slices.DeleteFunc(stages, func(s tune.Stage) bool { return len(s.Changes) == 0 })
}

// changes set one parameter to each value that a configuration does not have.
func changes(of tune.Config, name string, values []string) []tune.Change {
	var out []tune.Change
	for _, v := range values {
		if v != of[name] {
			out = append(out, tune.Change{Label: name + " " + cmp.Or(v, "default"), Set: tune.Config{name: v}})
		}
	}
	return out
}

// layouts are the products of the parameters of the layout.
func (w *World) layouts(names []string) []tune.Change {
	sets := []tune.Config{{}}
	for _, name := range names {
		var next []tune.Config
		for _, s := range sets {
			for _, v := range w.Narrow[name] {
				n := maps.Clone(s)
				n[name] = v
				next = append(next, n)
			}
		}
		if len(next) > 0 {
			sets = next
		}
	}
	var out []tune.Change
	for _, s := range sets {
		c := tune.Change{Set: s}
		whole := c.Apply(w.Baseline)
		if maps.Equal(whole, w.Baseline) || w.plan(whole).err != nil {
			continue
		}
		var parts []string
		for _, name := range names {
			if s[name] != "" {
				parts = append(parts, name+" "+s[name])
			}
		}
		c.Label = cmp.Or(strings.Join(parts, ", "), "one device")
		out = append(out, c)
	}
	return out
}
