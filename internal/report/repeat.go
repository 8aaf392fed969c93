package report

import (
	"fmt"
	"slices"
	"strconv"

	"perflab/internal/result"
)

// Repeat is one run made several times, with requests of the same kind.
type Repeat struct {
	Title    string
	Sides    []Side          // one a run, void and partial ones too
	Spread   []result.Spread // of the figures of those that can be believed
	Believed int             // so many
	SLOs     []string        // how often each was met, a sentence each
	Notes    []string
	SameSeed bool // the runs sent the same requests
}

// Document shows how the figures of repeated runs vary, and the runs side by
// side.
func (r Repeat) Document(st result.Style) Document {
	b := layOut(r.Sides, !r.SameSeed)
	d := newDocument(r.Title, b.Banner, r.Title)
	notes := r.Notes
	if slices.ContainsFunc(r.Sides, func(s Side) bool { return s.Summary.Compat != "" }) {
		notes = append(slices.Clone(notes), compatNote)
	}
	d.body.list(inMarkdown, slices.Concat(b.Warnings, r.SLOs, notes)...)
	d.body.styledEach(inPage, "lead", r.SLOs...)
	d.body.styledEach(inPage, "note", slices.Concat(b.Warnings, notes)...)
	spread := d.body.section("spread", "Spread")
	spread.add(everywhere, para{text: spans(fmt.Sprintf("%d of %d runs; an interval is Student's for the mean over runs, at 95 %%", r.Believed, len(r.Sides)))})
	spread.add(everywhere, r.table(st))
	spread.text(slices.Concat(r.SLOs, b.Warnings, notes)...)
	b.show(&d, d.body.part(inDocument, section{id: "figures", title: "Runs", listed: true}))
	return d
}

// table has the spread of each figure that a style shows.
func (r Repeat) table(st result.Style) table {
	t := table{empty: true, columns: columns("figure", ">mean", ">95 % interval", ">CV", ">min", ">max")}
	for i, head := range []string{"Figure", "Mean", "95 % interval", "CV", "Min", "Max"} {
		t.columns[i].page = spans(head)
	}
	for _, s := range r.Spread {
		m, err := result.Lookup(s.Metric)
		if err != nil || !spreads(m, st) {
			continue
		}
		n := func(v float64) string { return strconv.FormatFloat(v, 'f', m.Decimals, 64) }
		interval, cv := none, none
		if s.Low != nil {
			interval = n(*s.Low) + " to " + n(*s.High)
		}
		if s.CV != nil {
			cv = strconv.FormatFloat(100**s.CV, 'f', 2, 64) + " %"
		}
		t.rows = append(t.rows, texts(s.Label, n(s.Mean), interval, cv, n(s.Min), n(s.Max)))
	}
	return t
}

// spreads reports whether a figure is in the table of a style: the scalars that
// have a better direction, and the sections' means, medians and percentiles.
func spreads(m result.Metric, st result.Style) bool {
	if m.Family == "" {
		return m.Better != result.Neither && m.Section == "" && m.Unit != "requests" || m.Name == "success_rate"
	}
	p, isPercentile := result.Percentile(m.Name)
	return slices.Contains(st.Sections, m.Family) &&
		(m.Stat == "mean" || m.Stat == "median" || isPercentile && slices.Contains(st.Percentiles, p))
}
