package seriesdoc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/profile"
	"perflab/internal/profile/mlperf"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
)

// AddRules adds to a curve's document what the rules of MLPerf Endpoints say of it: the points by their definitions, the front,
// and which rules are broken. Of a series that was not made by them it adds nothing.
func AddRules(d *doc.Document, facts *bench.SeriesFacts) {
	if facts.Curve == nil || facts.Submission == nil {
		return
	}
	c, o := *facts.Curve, *facts.Submission
	c.Points = slices.Clone(c.Points)
	slices.SortStableFunc(c.Points, func(a, b mlperf.Point) int { return cmp.Compare(a.Concurrency, b.Concurrency) })
	title := "MLPerf Endpoints"
	if o.Profile == profile.MLPerfShort {
		title = "MLPerf Endpoints, short form: no submission"
	}
	s := d.Body.PartAfter("figures", doc.Everywhere, doc.Section{ID: "rules", Title: title, Page: title, Listed: true})
	s.Text("", title)
	s.Add(doc.Everywhere, curvePoints(c))
	lines := []string{frontText(mlperf.Front(c.Points)), verdictText(o)}
	s.Text(lines...)
	s.StyledEach(doc.InDocument, "", lines...)
	s.Figures(doc.InPage, func() []plot.Plot { return frontPlot(c) })
	var broken, open []string
	for _, f := range o.Broken {
		broken = append(broken, f.Rule+": "+f.Text)
	}
	for _, f := range o.Open {
		open = append(open, f.Rule+": "+f.Text)
	}
	s.List(doc.InDocument, broken...)
	if len(open) > 0 {
		s.StyledEach(doc.InDocument, "", "Still to be shown:")
		s.List(doc.InDocument, open...)
	}
	for _, l := range broken {
		s.Text("  broken   " + l)
	}
	for _, l := range open {
		s.Text("  to show  " + l)
	}
}

// verdictText says whether the rules are kept.
func verdictText(o profile.Outcome) string {
	text := fmt.Sprintf("submission_valid %t", o.Valid)
	switch {
	case o.Valid:
		return text + ": every rule that perflab checks is kept"
	case len(o.Broken) == 1:
		return text + ": a rule is broken"
	}
	return fmt.Sprintf("%s: %d rules are broken", text, len(o.Broken))
}

// frontText is the step front in a sentence.
func frontText(steps []mlperf.Step) string {
	if len(steps) == 0 {
		return "front: no point has a speed per user"
	}
	var parts []string
	for _, s := range steps {
		parts = append(parts, fmt.Sprintf("%s tok/s up to %s tok/s per user (%d in flight)", short(s.SystemTPS), short(s.TPSPerUser), s.Concurrency))
	}
	return "front: " + strings.Join(parts, ", ")
}

// frontPlot draws the front; none where no point has a speed per user. A point that another one beats in both figures is hollow.
func frontPlot(c mlperf.Curve) []plot.Plot {
	front := mlperf.Front(c.Points)
	if len(front) == 0 {
		return nil
	}
	line := plot.CurveLine{Colour: "0", Steps: true}
	var fastest, most float64
	simulated := false
	mark := func(concurrency int, user, system float64, beaten bool) {
		tip := fmt.Sprintf("%d in flight: %s tok/s, %s tok/s per user", concurrency, short(system), short(user))
		line.Marks = append(line.Marks, plot.Mark{Point: plot.Point{X: user, Y: system}, Hollow: beaten, Tip: tip})
		fastest, most = max(fastest, user), max(most, system)
	}
	for _, s := range front {
		mark(s.Concurrency, s.TPSPerUser, s.SystemTPS, false)
	}
	for _, p := range c.Points {
		simulated = simulated || p.Simulated
		on := slices.ContainsFunc(front, func(s mlperf.Step) bool { return s.Concurrency == p.Concurrency })
		if !on && p.TPSPerUser > 0 && p.SystemTPS > 0 {
			mark(p.Concurrency, p.TPSPerUser, p.SystemTPS, true)
		}
	}
	return []plot.Plot{plot.Curves{
		Name: "front", Title: "Front: system_tps", Simulated: simulated, X: plot.Linear(fastest, 6), Y: plot.Linear(most, 5),
		XTitle: "tps_per_user (tok/s)", Classes: []string{"s0"}, Names: []string{"hollow: another point is better in both"}, Lines: []plot.CurveLine{line},
	}.Draw()}
}

// curvePoints are the points by the benchmark's definitions.
func curvePoints(c mlperf.Curve) doc.Table {
	t := doc.Table{Empty: true, Right: true, Columns: doc.Columns(">concurrency", "region", ">system_tps", ">tps_per_user", ">ttft_p90_ms", ">tpot_p90_ms", "figures of", ">seconds", ">samples", ">passes")}
	r, err := c.Regions()
	at := c.AccuracyAt()
	for _, p := range c.Points {
		region := doc.None
		if err == nil {
			region = cmp.Or(r.Of(p.Concurrency), doc.None)
		}
		if slices.Contains(at, p.Concurrency) {
			region += ", accuracy"
		}
		passes := doc.None
		if p.Pass > 0 {
			passes = short(float64(p.Issued) / float64(p.Pass))
		}
		t.Rows = append(t.Rows, doc.Texts(strconv.Itoa(p.Concurrency), region, known(p.SystemTPS), known(p.TPSPerUser), known(p.TTFTP90), known(p.TPOTP90),
			p.Basis, short(p.BasisS()), strconv.Itoa(p.Issued), passes))
	}
	return t
}

// known is a figure that is never zero; none is missing.
func known(v float64) string {
	if v == 0 {
		return doc.None
	}
	return short(v)
}

// short has as many digits as a table bears.
func short(v float64) string {
	return strconv.FormatFloat(v, 'g', max(4, len(strconv.Itoa(int(v)))), 64)
}
