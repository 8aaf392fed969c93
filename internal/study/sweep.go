package study

import (
	"fmt"
	"maps"
	"slices"

	"perflab/internal/bench"
	"perflab/internal/field"
)

// Swept is the place of a workload among those that the sweep of one workload of the file stands for.
type Swept struct {
	Of, Title string     // that workload
	Load      bench.Load // of this one
}

// Swept is what a workload of the study is of a sweep; false where it is none.
func (w Workload) Swept() (Swept, bool) { return w.swept, w.swept.Of != "" }

// mostLoads keeps the runs of one launch within what a launch is worth.
const mostLoads = 20

// spread puts a workload for each of its loads in the place of one with a sweep. In a race that is
// judged by the loads of the first one together, each of them has the same weight; one that the study
// weighs shares its weight out.
func (f *File) spread() {
	var all []Workload
	for i, w := range f.Workloads {
		w.index = i
		loads := w.loads()
		if len(loads) == 0 {
			all = append(all, w)
			continue
		}
		if i == 0 && f.Strategy == Race && len(f.Objective.Weights) == 0 {
			f.Objective.Weights = map[string]float64{w.Name: float64(len(loads))}
		}
		share, weighed := f.Objective.Weights[w.Name]
		if weighed {
			f.Objective.Weights = maps.Clone(f.Objective.Weights)
			delete(f.Objective.Weights, w.Name)
		}
		for _, l := range loads {
			k := w
			k.Name, k.Title = w.Name+"-"+l.Name(), fmt.Sprintf("%s, %s", w.Title, l.Text())
			k.Spec, k.swept = l.Apply(w.Spec), Swept{w.Name, w.Title, l}
			if weighed {
				f.Objective.Weights[k.Name] = share / float64(len(loads))
			}
			all = append(all, k)
		}
	}
	f.Workloads = all
}

// loads are those of a workload's sweep; none where it has none, or a wrong one.
func (w Workload) loads() []bench.Load {
	s, err := bench.ParseSweep(w.Sweep)
	if err != nil || s.Auto || w.Name == "" || w.FindMax != nil || len(s.Values) > mostLoads {
		return nil
	}
	return s.Loads()
}

// firstLoads leaves each workload its first load alone: strategies that measure one workload have no use
// for the others.
func (f *File) firstLoads() {
	for i := range f.Workloads {
		if w := &f.Workloads[i]; len(w.loads()) > 0 {
			w.Spec, w.Sweep = w.loads()[0].Apply(w.Spec), ""
		}
	}
}

// workloadAt is where a workload of the study stands in the file.
func (f *File) workloadAt(i int) string { return field.Index("workloads", f.Workloads[i].index) }

// sweeps checks the workloads with several loads.
func (c *checker) sweeps() {
	last := -1
	for i, w := range c.s.Workloads {
		if n := w.NumPrompts; w.swept.Load.Axis == bench.AxisConcurrency && n > 0 && n < w.MaxConcurrency {
			c.add(c.s.workloadAt(i)+".sweep", "the %d requests of workload %s never reach %s: raise num_prompts", n, w.swept.Of, w.swept.Load.Text())
		}
		if w.Sweep == "" || w.index == last {
			continue
		}
		last = w.index
		at := c.s.workloadAt(i)
		s, err := bench.ParseSweep(w.Sweep)
		switch {
		case err != nil:
			c.add(at+".sweep", "sweep of workload %s: %v", w.Name, err)
			continue
		case s.Auto:
			c.add(at+".sweep", "sweep of workload %s: the loads of rate=auto depend on how fast a configuration is, so that configurations would not compare: name them, as rate=1..16x2", w.Name)
			continue
		case w.FindMax != nil:
			c.add(at+".sweep", "sweep of workload %s does not apply with find_max, which looks for its load: make two workloads of it", w.Name)
			continue
		case len(s.Values) > mostLoads:
			c.add(at+".sweep", "sweep of workload %s has %d loads: each launch runs all of them, so give %d at most", w.Name, len(s.Values), mostLoads)
			continue
		case slices.Contains([]string{Random, Grid, TPE}, c.s.Strategy):
			c.add(at+".sweep", "sweep needs strategy race, staged or survey: %s measures one load", c.s.Strategy)
		}
		c.loadConflicts(at, w.swept.Of, s.Axis, "sweep")
	}
}

// loadConflicts refuses what is set for a workload whose load something else sets.
func (c *checker) loadConflicts(at, name, axis, by string) {
	sets := map[string][]string{
		bench.AxisRate:        {"request_rate", "ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps", "steps"},
		bench.AxisConcurrency: {"max_concurrency", "steps"},
	}[axis]
	for _, key := range sets {
		if present(c.doc, at, key) {
			c.add(at+"."+key, "%s of workload %s does not apply with %s %s, which sets the load", key, name, by, axis)
		}
	}
}
