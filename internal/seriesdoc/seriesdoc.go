// Package seriesdoc says what the series of package bench are to package report: a sweep or a
// search a curve over load, a repeated run a spread. It reads the headers and the calls of their
// runs, which report, being pure, cannot.
package seriesdoc

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/report"
	"perflab/internal/result"
	"perflab/internal/rundir"
)

// Curve is a sweep or a search as a curve over load.
func Curve(facts *bench.SeriesFacts) report.Curve {
	axis := seriesAxis(facts)
	what := "Sweep"
	if facts.Kind == bench.KindFindMax {
		what = "Search for the highest " + axis
	}
	c := report.Curve{
		Title: fmt.Sprintf("%s of %s under %s", what, facts.Model, facts.Workload),
		Axis:  "Concurrent requests", SLOs: facts.SLOs, Facts: seriesFacts(facts), Started: facts.Started, Invoked: facts.Invoked,
	}
	if axis == bench.AxisRate {
		c.Axis, c.Offered = "Request rate (req/s)", true
	}
	for _, p := range facts.Points {
		x := p.Load.Value
		switch p.Load.Axis {
		case bench.Synchronous: // its rate follows from the server
			x = p.Achieved
		case bench.Throughput:
			x = math.Inf(1)
		}
		c.Points = append(c.Points, report.CurvePoint{
			X: x, Load: p.Load.String(), Name: p.Dir, Offered: p.Offered, Achieved: p.Achieved,
			Saturated: p.Saturated, Capped: p.Capped, Void: p.Void, Failed: p.Failed, Partial: p.Partial, Missed: p.Missed, Summary: p.Summary,
		})
	}
	switch {
	case facts.Kind == bench.KindFindMax:
		if facts.Max != nil {
			c.Concluded = append(c.Concluded, facts.Max.Text(facts.SLOs))
		}
		c.Concluded = append(c.Concluded, "search "+endingText(facts.Stop))
	case facts.Stop.Code != bench.StopDone:
		c.Notes = append(c.Notes, facts.Kind+" "+endingText(facts.Stop))
	}
	return c
}

// seriesAxis is what a series varies.
func seriesAxis(facts *bench.SeriesFacts) string {
	for _, p := range facts.Points {
		if p.Load.Axis == bench.AxisConcurrency {
			return bench.AxisConcurrency
		}
	}
	return bench.AxisRate
}

// endingText says how a series ended, or that it did not.
func endingText(s bench.Stop) string {
	if s.Code == "" {
		return "was cut short: these are the runs it had made"
	}
	return fmt.Sprintf("ended (%s): %s", s.Code, s.Text)
}

// seriesFacts says what ran, for all runs alike.
func seriesFacts(facts *bench.SeriesFacts) []report.Fact {
	first, last := facts.Points[0], facts.Points[len(facts.Points)-1]
	seeds := fmt.Sprint(first.Seed)
	if last.Seed != first.Seed {
		seeds = fmt.Sprintf("%d to %d", first.Seed, last.Seed)
	}
	return slices.DeleteFunc([]report.Fact{
		{Label: "Started", Value: report.Date(facts.Started)}, {Label: "Model", Value: facts.Model}, {Label: "Targets", Value: strings.Join(facts.Targets, ", ")},
		{Label: "Workload", Value: facts.Workload}, {Label: "Seeds", Value: seeds + NonceText(first.Nonce)},
		{Label: "Prefix cache policy", Value: facts.Cache}, {Label: "Client", Value: strings.TrimSpace("perflab " + facts.Version)},
		{Label: report.LoadGenerator, Value: report.Host(facts.Host)}, {Label: "Calls that may fail", Value: fmt.Sprintf("%g %%", 100*facts.MaxErrors)},
	}, func(f report.Fact) bool { return f.Value == "" })
}

// Repeat is a repeated run, with the headers of the runs in dir and without
// their calls.
func Repeat(facts *bench.SeriesFacts, dir string) report.Repeat {
	r := report.Repeat{
		Title:  fmt.Sprintf("%d runs of %s under %s", len(facts.Points), facts.Model, facts.Workload),
		Spread: facts.Spread, Started: facts.Started, Invoked: facts.Invoked,
	}
	for _, p := range facts.Points {
		if p.Usable() {
			r.Believed++
		}
		h, err := rundir.ReadHeader(filepath.Join(dir, p.Dir))
		if err != nil { // the series' file says as much
			h = result.Header{Simulated: p.Summary.Simulated, Predicted: p.Summary.Predicted, Cache: facts.Cache}
		}
		r.Sides = append(r.Sides, report.Side{Name: p.Dir, Header: h, Summary: p.Summary})
	}
	r.SameSeed = len(facts.Points) > 1 && facts.Points[0].Seed == facts.Points[1].Seed
	for _, slo := range facts.SLOs {
		met := 0
		for _, p := range facts.Points {
			if ok, _ := slo.Judge(p.Summary); ok && p.Usable() && !p.Failed {
				met++
			}
		}
		text := fmt.Sprintf("SLO: %s: met in %d of %d runs", slo, met, r.Believed)
		if left := len(facts.Points) - r.Believed; left > 0 {
			text += fmt.Sprintf("; not judged in %d void or stopped before their end", left)
		}
		r.SLOs = append(r.SLOs, text)
	}
	if facts.Stop.Code != bench.StopDone {
		r.Notes = append(r.Notes, facts.Kind+" "+endingText(facts.Stop))
	}
	return r
}

// plottedRuns is how many repeated runs are drawn in one plot: no more
// can be distinguished.
const plottedRuns = 6

// AddCalls adds what the plots need.
func AddCalls(r report.Repeat, dir string) report.Repeat {
	r.Sides = slices.Clone(r.Sides)
	for i := range r.Sides[:min(len(r.Sides), plottedRuns)] {
		if run, err := rundir.OpenRun(filepath.Join(dir, r.Sides[i].Name)); err == nil { // else its figures stand without a line
			r.Sides[i].Calls = run.Calls
		}
	}
	return r
}

// NonceText says which nonce the prompts had; "" for none.
func NonceText(nonce string) string {
	if nonce == "" {
		return ""
	}
	return ", nonce " + nonce
}
