package compare

import (
	"fmt"
	"slices"

	"perflab/internal/result"
)

// New compares sides with the first of them. It is pure. Figures of
// different definitions are never in one row.
func New(sides []Side, o Options) (Comparison, error) {
	c := Comparison{Schema: "perflab.comparison/1"}
	if len(sides) < 2 {
		return c, fmt.Errorf("a comparison needs two sides, and there are %d", len(sides))
	}
	metrics, err := o.metrics(sides)
	if err != nil {
		return c, err
	}
	used := make([]Side, len(sides))
	for i, s := range sides {
		if len(s.Runs) == 0 {
			return c, fmt.Errorf("%s has no run", s.Name)
		}
		var warnings []string
		used[i], warnings = s.usableRuns()
		for _, text := range warnings {
			if !slices.Contains(c.Warnings, text) { // a run may be in two sides
				c.Warnings = append(c.Warnings, text)
			}
		}
		c.Sides = append(c.Sides, used[i].info())
		for _, m := range s.Runs {
			c.Predicted = c.Predicted || m.Header.Predicted || m.Summary.Predicted
			c.Simulated = c.Simulated || m.Header.Simulated || m.Summary.Simulated
		}
	}
	if err := c.describeDifferences(used, o.By); err != nil {
		return c, err
	}
	b := &rowBuilder{sides: used, runs: map[blockedKey]*blockedRun{}}
	for _, m := range metrics {
		c.Rows = append(c.Rows, b.rows(m)...)
	}
	c.addNotes()
	c.noteAnew()
	return c, nil
}

// metrics are those to compare.
func (o Options) metrics(sides []Side) ([]result.Metric, error) {
	var out []result.Metric
	add := func(names []string) error {
		for _, name := range names {
			m, err := result.Lookup(name)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(out, func(x result.Metric) bool { return x.Name == m.Name }) {
				out = append(out, m)
			}
		}
		return nil
	}
	if err := add(o.Metrics); err != nil {
		return nil, err
	}
	if o.Metrics != nil && !o.All {
		err := add(o.Also)
		return out, err
	}
	packed := slices.ContainsFunc(sides, func(s Side) bool {
		return slices.ContainsFunc(s.Runs, func(r Run) bool { return r.Summary.PerEvent() != "" })
	})
	for _, m := range result.Metrics() {
		if slices.ContainsFunc(out, func(x result.Metric) bool { return x.Name == m.Name }) {
			continue
		}
		has := slices.ContainsFunc(sides, func(s Side) bool {
			return slices.ContainsFunc(s.Runs, func(r Run) bool { _, ok := r.Summary.Figures[m.Name]; return ok })
		})
		if has && (o.All || comparedByDefault(m) || packed && m.Family == "itl_token" && comparedStat(m)) {
			out = append(out, m)
		}
	}
	err := add(o.Also)
	return out, err
}

// blockFamilies are the latencies that are compared without being asked for.
var blockFamilies = []string{"ttft", "tpot", "itl", "e2el"}

// comparedByDefault reports whether a figure is compared without being asked for. What
// was configured is among the facts.
func comparedByDefault(m result.Metric) bool {
	return m.Headline() || m.Name == "success_rate" || m.Name == "goodput_ratio" || slices.Contains(blockFamilies, m.Family) && comparedStat(m)
}

// comparedStat reports whether a statistic is one that is compared without being asked for.
func comparedStat(m result.Metric) bool {
	return slices.Contains([]string{"mean", "median", "p90", "p95", "p99"}, m.Stat)
}
