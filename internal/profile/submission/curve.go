package submission

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"perflab/internal/bench"
	"perflab/internal/profile"
	"perflab/internal/profile/mlperf"
	"perflab/internal/result"
	"perflab/internal/rundir"
)

// Curve is a measured curve with what its files need besides.
type Curve struct {
	mlperf.Curve
	Outcome *profile.Outcome
	Runs    []Run // in the order of the concurrency
}

// Run is the run of a point.
type Run struct {
	Point  mlperf.Point
	Header result.Header
}

// Open reads a curve that perflab bench --profile mlperf-endpoints measured, computed again from its calls.
func Open(dir string) (*Curve, error) {
	if rundir.SeriesFile(dir) == "" {
		return nil, fmt.Errorf("%s is no directory of a series: give one that perflab bench --profile %s made", dir, profile.MLPerf)
	}
	facts, damage, err := bench.OpenSeries(dir)
	switch {
	case err != nil:
		return nil, err
	case facts.Curve == nil:
		return nil, fmt.Errorf("%s was not measured by the rules of MLPerf Endpoints: make it with perflab bench --profile %s", dir, profile.MLPerf)
	case facts.Curve.Profile != profile.MLPerf:
		return nil, fmt.Errorf("%s is of the short form, which is no submission: measure it with perflab bench --profile %s", dir, profile.MLPerf)
	case len(damage) > 0:
		return nil, errors.New("a submission needs every call of its curve: " + damage[0])
	}
	c := &Curve{Curve: *facts.Curve, Outcome: facts.Submission}
	for i, p := range facts.Curve.Points { // there is one for each of the series, since nothing is damaged
		h, err := rundir.ReadHeader(filepath.Join(dir, facts.Points[i].Dir))
		if err != nil {
			return nil, err
		}
		c.Runs = append(c.Runs, Run{p, h})
	}
	slices.SortFunc(c.Runs, func(a, b Run) int { return a.Point.Concurrency - b.Point.Concurrency })
	for i := 1; i < len(c.Runs); i++ {
		if k := c.Runs[i].Point.Concurrency; k == c.Runs[i-1].Point.Concurrency {
			return nil, fmt.Errorf("%s has two points at concurrency %d: a curve has one", dir, k)
		}
	}
	return c, nil
}

// best is the highest throughput of the curve.
func (c *Curve) best() float64 {
	best := 0.0
	for _, r := range c.Runs {
		best = max(best, r.Point.SystemTPS)
	}
	return best
}
