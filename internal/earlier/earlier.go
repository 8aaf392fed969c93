// Package earlier says what a study may learn from studies made before: which of their
// configurations mean something to it, and how alike they are to it. Pure.
//
//	facts := earlier.Weigh(target, sources) // an outcome.Earlier of each source
//	known := earlier.Known(facts)           // as a race takes them
//
// Invariants: figures are compared as ratios within one study under one load, to its own
// baseline where it has one, so nothing depends on its level; of several loads, models or
// machines the most alike are used, and the rest is counted and said; what cannot be mapped
// is said.
//
// Absent: files (source), and what a search makes of it (tune).
package earlier

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/outcome"
	"perflab/internal/tune"
)

// Keys of a tune.Config that are no parameters of an engine.
const (
	engineKey = "engine"
	modelKey  = "model"
)

// Source is what was read of one path that a study names.
type Source struct {
	Name      string
	Path      string // as the study names it
	Simulated bool   // a simulator answered
	Results   []Result
	Unused    []string // what of it could not be read, a sentence each
}

// Result is a configuration measured once under one load.
type Result struct {
	Config   tune.Config // nil: not known
	Further  string      // flags that are no parameters of perflab's and may change figures
	Version  string      // of its engine; "": not known
	GPU      string      // accelerator, by its short name; "": not known
	GPUs     int         // devices in all; 0: not known
	Load     Load
	Share    float64 // of the load; 0: all of it
	Baseline bool    // what its study counts gains from
	Figures  map[string]float64
}

// Load is what was sent, as far as loads are held against each other.
type Load struct {
	Dataset       string  // "": not known
	Input, Output float64 // tokens of a request, on average; 0: not known
	Rate          float64 // requests/s; 0: none is given
	Limit         int     // in flight; 0: none
	Traced        bool    // requests come at the times of a trace
	Searched      string  // what is searched for each configuration: rate, concurrency; "": the load is given
}

// Target is the study that learns.
type Target struct {
	Metric     string                           // of its objective
	Model      string                           // of its baseline
	Models     []string                         // all that it serves
	Lookup     func(string) (arch.Model, error) // by the name of a checkpoint
	Engines    map[string]string                // that it may try -> version; "": not known
	GPU        arch.Accelerator
	GPUs       int
	Load       Load             // of its primary workload
	Simulated  bool             // its engines are
	Dimensions []tune.Dimension // parameters in which its configurations may differ
}

// ErrSimulated refuses what no hardware was measured for in a study that starts real engines.
var ErrSimulated = errors.New("it is SIMULATED and this study starts real engines: leave it out, a simulator must not direct what is measured")

// Refuse says why a study must not learn from a source at all.
func (t Target) Refuse(s Source) error {
	if s.Simulated && !t.Simulated {
		return ErrSimulated
	}
	return nil
}

// mostConfigurations bounds what one source gives: the search takes the cube of it in time.
const mostConfigurations = 100

// Weigh says of each source what it gives and how alike it is.
func Weigh(t Target, sources []Source) []outcome.Earlier {
	out := make([]outcome.Earlier, len(sources))
	for i, s := range sources {
		out[i] = t.weigh(s)
	}
	return out
}

// Known is what a race takes of earlier studies: those that teach anything.
func Known(facts []outcome.Earlier) []tune.Earlier {
	var out []tune.Earlier
	for _, e := range facts {
		if e.Likeness > 0 && len(e.Measured) > 0 {
			out = append(out, tune.Earlier{Name: e.Name, Likeness: e.Likeness, Measured: e.Measured})
		}
	}
	return out
}

func (t Target) weigh(s Source) outcome.Earlier {
	e := outcome.Earlier{Name: s.Name, Path: s.Path, Simulated: s.Simulated, Unused: slices.Clone(s.Unused)}
	all := len(s.Results)
	leave := func(n int, why string) {
		if n > 0 {
			e.Unused = append(e.Unused, left(n, all, why))
		}
	}
	mapped := slices.DeleteFunc(slices.Clone(s.Results), func(r Result) bool { return r.Config[engineKey] == "" || r.Config[modelKey] == "" })
	leave(all-len(mapped), "no configuration is known")
	usable := slices.DeleteFunc(slices.Clone(mapped), func(r Result) bool { v := r.Figures[t.Metric]; return !(v > 0) || math.IsInf(v, 1) })
	leave(len(mapped)-len(usable), "they have no "+t.Metric)
	if len(usable) == 0 {
		e.Differences = []string{"it has no result that this study could use"}
		return e
	}
	g := t.nearest(usable)
	leave(len(usable)-len(g.results), "they are of other loads, models or hardware than those that are most like this study's")
	e.Likeness, e.Differences = g.likeness, g.differences
	if s.Simulated != t.Simulated { // the other way round it was refused
		e.Likeness *= unlikeReal
		e.Differences = append(e.Differences, "real engines were measured, and this study simulates them")
	}
	e.Likeness = math.Round(100*e.Likeness) / 100
	comparable := t.comparable(g.results)
	leave(len(g.results)-len(comparable), "they set what this study does not vary, and otherwise than the others")
	var lost int
	e.Measured, lost = t.ratios(comparable)
	leave(lost, "they are of a part of the load, and the baseline was not measured under it")
	switch n := len(e.Measured); {
	case e.Likeness == 0:
		e.Measured = nil
	case n < 2:
		e.Measured = nil
		e.Unused = append(e.Unused, "It gives no more than one configuration: only what is better than what can be learned from another study")
	case n > mostConfigurations:
		e.Measured = e.Measured[:mostConfigurations]
		e.Unused = append(e.Unused, fmt.Sprintf("Of its %d configurations the first %d are used", n, mostConfigurations))
	}
	e.Configurations = len(e.Measured)
	return e
}

// left says that some of all results are not used.
func left(n, all int, why string) string {
	are := "are"
	if n == 1 {
		are = "is"
	}
	return fmt.Sprintf("Of %d results %d %s not used: %s", all, n, are, why)
}

// group are results under one load, of one model on one machine.
type group struct {
	results     []Result
	likeness    float64
	differences []string
}

// nearest is the group of results that is most alike; of several the one that has most
// configurations.
func (t Target) nearest(all []Result) group {
	var groups []group
	for _, r := range all {
		i := slices.IndexFunc(groups, func(g group) bool { return t.together(g.results[0], r) })
		if i < 0 {
			i, groups = len(groups), append(groups, group{})
		}
		groups[i].results = append(groups[i].results, r)
	}
	for i := range groups {
		groups[i].likeness, groups[i].differences = t.likeness(groups[i].results)
	}
	configs := func(g group) int {
		seen := map[string]bool{}
		for _, r := range g.results {
			seen[fmt.Sprint(r.Config)] = true
		}
		return min(2, len(seen)) // one alone says nothing
	}
	return slices.MaxFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(configs(a), configs(b)), cmp.Compare(a.likeness, b.likeness), cmp.Compare(len(a.results), len(b.results)))
	})
}

// sameLength is how far mean lengths of one load may be apart: answers end by themselves.
const sameLength = 0.1

// together reports whether the figures of two results may be held against each other.
func (t Target) together(a, b Result) bool {
	near := func(x, y float64) bool { return math.Abs(x-y) <= sameLength*max(x, y) }
	l, m := a.Load, b.Load
	return a.GPU == b.GPU && a.GPUs == b.GPUs && t.sameModel(a.Config[modelKey], b.Config[modelKey]) &&
		l.Dataset == m.Dataset && l.Traced == m.Traced && l.Searched == m.Searched && l.Limit == m.Limit &&
		near(l.Rate, m.Rate) && near(l.Input, m.Input) && near(l.Output, m.Output)
}

// comparable are the results whose configurations differ, of one engine, in nothing but what
// this study may vary: of others nobody could tell what made the difference.
func (t Target) comparable(all []Result) []Result {
	counts := map[string]map[string]int{}
	for _, r := range all {
		name := r.Config[engineKey]
		if counts[name] == nil {
			counts[name] = map[string]int{}
		}
		counts[name][t.foreign(r)]++
	}
	usual := map[string]string{}
	for name, by := range counts {
		usual[name] = slices.MaxFunc(slices.Sorted(maps.Keys(by)), func(a, b string) int { return cmp.Compare(by[a], by[b]) })
	}
	return slices.DeleteFunc(slices.Clone(all), func(r Result) bool { return t.foreign(r) != usual[r.Config[engineKey]] })
}

// foreign are the settings of a result that this study does not vary.
func (t Target) foreign(r Result) string {
	var text strings.Builder
	text.WriteString(r.Further)
	for _, name := range slices.Sorted(maps.Keys(r.Config)) {
		if name != engineKey && name != modelKey && t.dimension(name) == nil && !isDefault(r.Config[engineKey], name, r.Config[name]) {
			text.WriteString(" " + name + "=" + r.Config[name])
		}
	}
	return text.String()
}

func (t Target) dimension(name string) *tune.Dimension {
	if i := slices.IndexFunc(t.Dimensions, func(d tune.Dimension) bool { return d.Name == name }); i >= 0 {
		return &t.Dimensions[i]
	}
	return nil
}

// isDefault reports whether a value is what an engine does when it is told nothing.
func isDefault(engineName, name, value string) bool {
	e, err := engine.ByName(engineName)
	if err != nil || value == "" {
		return value == ""
	}
	p, ok := e.Param(name)
	return ok && p.Default != "" && p.Default == value
}

// translated is a configuration in this study's words: its own name of a checkpoint, its own
// spelling of a default, and nothing that it does not vary.
func (t Target) translated(c tune.Config) tune.Config {
	out := tune.Config{}
	for name, v := range c {
		d := t.dimension(name)
		switch {
		case name == modelKey:
			v = t.checkpoint(v)
		case d == nil && name != engineKey:
			continue
		case d != nil && !slices.Contains(d.Values, v) && slices.Contains(d.Values, "") && isDefault(c[engineKey], name, v):
			v = ""
		}
		if v != "" {
			out[name] = v
		}
	}
	return out
}

// ratios are the configurations of results with the metric as a ratio to the baseline's under
// the same share of the load, the mean over launches on logarithms. Without a baseline it is
// the figure as it is, of the whole load alone. What cannot be held against the rest is lost.
func (t Target) ratios(all []Result) (out []tune.Known, lost int) {
	base, n := map[float64]float64{}, map[float64]float64{}
	for _, r := range all {
		if r.Baseline {
			base[r.Share] += math.Log(r.Figures[t.Metric])
			n[r.Share]++
		}
	}
	reference := func(share float64) (float64, bool) {
		if len(n) == 0 {
			return 0, share == 0
		}
		return base[share] / n[share], n[share] > 0
	}
	type sum struct {
		of    tune.Config
		share float64 // of the load that it is of: the largest
		log   float64
		n     int
	}
	var sums []*sum
	for _, r := range all {
		ref, ok := reference(r.Share)
		if !ok {
			lost++
			continue
		}
		c, share := t.translated(r.Config), cmp.Or(r.Share, 1)
		i := slices.IndexFunc(sums, func(s *sum) bool { return maps.Equal(s.of, c) })
		if i < 0 {
			i, sums = len(sums), append(sums, &sum{of: c})
		}
		s := sums[i]
		if share > s.share {
			*s = sum{of: c, share: share}
		}
		if share == s.share {
			s.log += math.Log(r.Figures[t.Metric]) - ref
			s.n++
		}
	}
	for _, s := range sums {
		out = append(out, tune.Known{Config: s.of, Figures: map[string]float64{t.Metric: math.Exp(s.log / float64(s.n))}})
	}
	return out, lost
}
