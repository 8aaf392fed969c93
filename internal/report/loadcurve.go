package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// loadCurves adds how baseline and recommendation do over the loads of each workload that has several.
func (d *studyDocument) loadCurves(body *doc.Section) {
	if len(d.Curves) == 0 {
		return
	}
	s := body.Section("loads", "Over the Loads")
	for _, c := range d.Curves {
		title := c.Title
		if len(d.Curves) == 1 {
			title = "Workload " + c.Title
		}
		s.Para(title + ", each load in the same launches. " + d.curveSentence(c))
		metrics := d.curveMetrics(c)
		t := doc.Table{Columns: doc.Columns("Load", "Configuration", ">Launches", ">Gain", ">95 % interval", "Verdict")} // figures last: a narrow window shows the rest
		for _, m := range metrics {
			t.Columns = append(t.Columns, doc.Column{Head: doc.Spans(m.Label), Right: true})
		}
		for _, p := range c.Points {
			t.Rows = append(t.Rows, d.curveRow(p, "baseline", p.Baseline, metrics, "", "", ""))
			if !d.keepsBaseline() {
				gain, span := d.curveGain(p)
				tone := verdictTone(p.Verdict)
				t.Rows = append(t.Rows, d.curveRow(p, d.curveWinner(), p.Recommended, metrics, gain, span, p.Verdict).Toned(3, tone).Toned(5, tone))
			}
		}
		s.Add(doc.InDocument, t)
		s.Figures(doc.InDocument, func() []plot.Plot { return d.curvePlots(c, metrics) })
	}
	s.Styled(doc.InDocument, "muted", "Figures are means over the launches; a percentile is the mean of the launches' percentiles. Each interval is at 95 % by itself.")
}

func (d *studyDocument) curveWinner() string { return strings.ToLower(d.standing().word) }

// curveMetrics are the figures of a curve's table that any of its points has: the objective, what is served, and
// what a user waits for.
func (d *studyDocument) curveMetrics(c outcome.Curve) []result.Metric {
	var out []result.Metric
	seen := map[string]bool{}
	for _, name := range []string{d.objective.Name, "output_throughput", "p95_ttft_ms", "mean_tpot_ms"} {
		m := d.metric(name)
		for _, p := range c.Points {
			_, before := p.Baseline.Figures[m.Name]
			if _, after := p.Recommended.Figures[m.Name]; (before || after) && !seen[m.Name] {
				seen[m.Name] = true
				out = append(out, m)
			}
		}
	}
	return out
}

func (d *studyDocument) curveRow(p outcome.CurvePoint, who string, side outcome.CurveSide, metrics []result.Metric, gain, span, verdict string) doc.Row {
	cells := []string{p.Text, who, strconv.Itoa(len(side.Trials)), gain, span, verdict}
	for _, m := range metrics {
		text := ""
		if v, ok := side.Figures[m.Name]; ok {
			text = strconv.FormatFloat(v, 'f', m.Decimals, 64)
		}
		cells = append(cells, text)
	}
	return doc.Dashed(cells...)
}

// curveGain writes the gain under one load and its interval.
func (d *studyDocument) curveGain(p outcome.CurvePoint) (gain, span string) {
	if p.Gain == nil {
		return "", ""
	}
	gain = d.gain(&p.Gain.Value)
	if p.Verdict != "" {
		span = d.brackets(p.Gain.Value, *p.Gain)
	}
	return gain, span
}

// curveSentences are those of all curves, for a terminal.
func (d *studyDocument) curveSentences() []string {
	var out []string
	for _, c := range d.Curves {
		if text := d.curveSentence(c); text != "" {
			out = append(out, c.Title+" over its loads: "+text)
		}
	}
	return out
}

// curveSentence says at which loads the recommendation is better, and at which it is worse.
func (d *studyDocument) curveSentence(c outcome.Curve) string {
	if d.keepsBaseline() {
		return ""
	}
	var parts []string
	for _, v := range []struct{ verdict, text string }{{tune.Worse, "WORSE than the baseline at"}, {tune.Better, "better at"}, {tune.NoDifference, "no difference shown at"}} {
		var at []string
		for _, p := range c.Points {
			if p.Verdict == v.verdict {
				at = append(at, loadNumber(p.Load))
			}
		}
		if len(at) > 0 {
			unit := strings.TrimPrefix(c.Points[0].Text, loadNumber(c.Points[0].Load)+" ")
			parts = append(parts, v.text+" "+listed(at)+" "+unit)
		}
	}
	if len(parts) == 0 {
		return "Each side is of one launch: how far the differences are of the launches is not known."
	}
	return d.sentence(strings.Join(parts, "; "))
}

func loadNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// listed joins words: "1, 8 and 32".
func listed(all []string) string {
	if n := len(all); n > 1 {
		return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	return strings.Join(all, "")
}

// curvePlots draw each figure over the loads, a line for each side.
func (d *studyDocument) curvePlots(c outcome.Curve, metrics []result.Metric) []plot.Plot {
	type side struct {
		name string
		of   func(outcome.CurvePoint) outcome.CurveSide
	}
	sides := []side{{"baseline", func(p outcome.CurvePoint) outcome.CurveSide { return p.Baseline }}}
	if !d.keepsBaseline() {
		sides = append(sides, side{d.curveWinner(), func(p outcome.CurvePoint) outcome.CurveSide { return p.Recommended }})
	}
	xtitle := map[string]string{"rate": "Requests per second", "concurrency": "Requests in flight"}[c.Axis]
	var out []plot.Plot
	for _, m := range metrics {
		chart := plot.Curves{Name: "loads-" + c.Workload + "-" + m.Name, Title: m.Label, Simulated: d.Simulated, XTitle: xtitle}
		first, last, most := math.Inf(1), 0.0, 0.0
		least := math.Inf(1)
		for k, s := range sides {
			line := plot.CurveLine{Colour: []string{"0", "2"}[k]}
			for _, p := range c.Points {
				v, ok := s.of(p).Figures[m.Name]
				if !ok {
					continue
				}
				first, last, least, most = min(first, p.Load), max(last, p.Load), min(least, v), max(most, v)
				line.Marks = append(line.Marks, plot.Mark{Point: plot.Point{X: p.Load, Y: v}, Tip: fmt.Sprintf("%s, %s: %.*f", s.name, p.Text, m.Decimals, v)})
			}
			if len(line.Marks) > 1 {
				chart.Lines, chart.Classes, chart.Names = append(chart.Lines, line), append(chart.Classes, "s"+line.Colour), append(chart.Names, s.name)
			}
		}
		if len(chart.Lines) == 0 {
			continue
		}
		chart.X, chart.Y = plot.Fit(first, last, 7), plot.Fit(least, most, 7)
		if m.Unit == "ms" {
			chart.Y = chart.Y.Milliseconds()
		}
		out = append(out, chart.Draw())
	}
	return out
}
