// Package lineage makes of the runs of one configuration the histories that package drift
// judges: one for each metric and source, a point for each launch or build.
//
//	all, err := lineage.Of(runs, []string{"output_throughput", "p99_ttft_ms"}, lineage.Builds)
//	for _, h := range all {
//		found, err := h.Find(drift.Options{})
//	}
//
// Runs of one launch share whatever the launch happened to get, so they are one observation:
// their median. A build is the median of its launches, however many runs each had.
//
// Invariants: pure; the order of the runs given does not matter; what was measured, what was
// simulated, what was predicted and what another client measured never share a history; a run
// that cannot be believed enters no figure; a figure that no run has makes no point.
//
// Deliberately absent: which runs are of one configuration, and where they are kept: callers
// hand them in. A run without a date has no place in a history and is counted.
package lineage

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"perflab/internal/drift"
	"perflab/internal/result"
	"perflab/internal/stat"
)

// Source is who made a figure. Figures of different sources are not comparable.
type Source struct {
	Simulated bool   `json:"simulated"` // a simulator answered
	Predicted bool   `json:"predicted"` // nobody did
	Client    string `json:"client"`    // that measured; "": perflab
}

// Run is what a history needs of a run.
type Run struct {
	ID        string // unique; how callers find it again
	Started   time.Time
	Source    Source
	Status    result.Status // of its verdict
	Build     string        // of what was served: a commit, a version; "": not known
	Launch    string        // names the start of the server; "": not known, the run is one of its own
	Figures   map[string]float64
	Intervals map[string][2]float64 // 95 %, of those that have one
}

// By says what a point of a history is.
type By int

// A point is a launch, or a build.
const (
	Launches By = iota
	Builds
)

// Point is one point with what it is made of.
type Point struct {
	drift.Point
	Build string
	Runs  []string // IDs, in order of time
}

// History is a metric over time.
type History struct {
	Metric  result.Metric
	Source  Source
	Points  []Point
	Undated int // runs that have the figure and no date
}

// Values are the points as drift takes them.
func (h History) Values() []drift.Point {
	points := make([]drift.Point, len(h.Points))
	for i, p := range h.Points {
		points[i] = p.Point
	}
	return points
}

// Find finds the changes of the history, in the direction that the metric table gives.
func (h History) Find(o drift.Options) (drift.Found, error) {
	o.Better = drift.Better(h.Metric.Better)
	found, err := drift.Find(h.Values(), o)
	if err != nil {
		return found, fmt.Errorf("find changes of %s: %w", h.Metric.Name, err)
	}
	return found, nil
}

// Of makes the histories of some metrics, metric by metric, what perflab measured first. There
// is none where no run has the figure.
func Of(runs []Run, metrics []string, by By) ([]History, error) {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	sources := sourcesOf(runs)
	var all []History
	for _, name := range metrics {
		metric, err := result.Lookup(name)
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			if h := history(runs, metric, s, by); len(h.Points) > 0 || h.Undated > 0 {
				all = append(all, h)
			}
		}
	}
	return all, nil
}

func sourcesOf(runs []Run) []Source {
	var all []Source
	for _, r := range runs {
		if !slices.Contains(all, r.Source) {
			all = append(all, r.Source)
		}
	}
	made := func(s Source) int {
		switch {
		case s.Predicted:
			return 3
		case s.Simulated:
			return 2
		case s.Client != "":
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(a, b Source) int { return cmp.Or(cmp.Compare(made(a), made(b)), cmp.Compare(a.Client, b.Client)) })
	return all
}

// history is that of one metric and source, of runs in order of time.
func history(runs []Run, metric result.Metric, source Source, by By) History {
	h := History{Metric: metric, Source: source}
	groups := map[string][]Run{}
	for _, r := range runs {
		if _, ok := r.Figures[metric.Name]; !ok || r.Source != source {
			continue
		}
		if r.Started.IsZero() {
			h.Undated++
			continue
		}
		key := r.key(by)
		groups[key] = append(groups[key], r)
	}
	for key, group := range groups {
		h.Points = append(h.Points, point(group, metric.Name, key))
	}
	slices.SortFunc(h.Points, func(a, b Point) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Runs[0], b.Runs[0]))
	})
	return h
}

// key names the point that a run belongs to. A build that is not known is no build that
// several runs have in common.
func (r Run) key(by By) string {
	switch {
	case by == Builds && r.Build != "":
		return "build " + r.Build
	case r.Launch != "":
		return "launch " + r.Launch
	}
	return "run " + r.ID
}

// point is that of the runs that can be believed; where there is none, of all, as void. It is
// dated by the first of them.
func point(group []Run, metric, key string) Point {
	void := !slices.ContainsFunc(group, func(r Run) bool { return r.Status != result.Voided })
	if !void {
		group = slices.DeleteFunc(group, func(r Run) bool { return r.Status == result.Voided })
	}
	p := Point{Build: group[0].Build}
	p.Time, p.Key, p.Void = group[0].Started, key, void
	values, lows, highs := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	bounded := true
	for _, r := range group {
		p.Runs = append(p.Runs, r.ID)
		launch := r.key(Launches)
		values[launch] = append(values[launch], r.Figures[metric])
		interval, ok := r.Intervals[metric]
		bounded = bounded && ok
		lows[launch], highs[launch] = append(lows[launch], interval[0]), append(highs[launch], interval[1])
	}
	p.Value = ofLaunches(values)
	if bounded {
		// What one of its runs tells, and no narrower for there being several: how builds differ
		// is seen between points.
		p.Interval = &drift.Interval{Low: ofLaunches(lows), High: ofLaunches(highs)}
	}
	return p
}

// ofLaunches is the median of the launches' medians.
func ofLaunches(values map[string][]float64) float64 {
	var each []float64
	for _, x := range values {
		each = append(each, stat.Quantile(slices.Sorted(slices.Values(x)), 0.5))
	}
	slices.Sort(each)
	return stat.Quantile(each, 0.5)
}
