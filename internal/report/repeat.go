package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/block"
	"perflab/internal/report/doc"
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

	Started time.Time // of the first run; zero: not known
	Invoked string    // the command line that made them; "": not known
}

// Document shows how the figures of repeated runs vary, and the runs side by
// side.
func (r Repeat) Document(st block.Style) doc.Document {
	b := layOut(r.Sides, !r.SameSeed)
	d := doc.New(r.Title, b.Banner, r.Title)
	notes := r.Notes
	if slices.ContainsFunc(r.Sides, func(s Side) bool { return s.Summary.Compat != "" }) {
		notes = append(slices.Clone(notes), compatNote)
	}
	d.Body.List(doc.InMarkdown, slices.Concat(b.Warnings, r.SLOs, notes)...)
	d.Body.StyledEach(doc.InPage, "lead", r.SLOs...)
	d.Body.StyledEach(doc.InPage, "note", slices.Concat(b.Warnings, notes)...)
	spread := d.Body.Section("spread", "Spread")
	made := fmt.Sprintf("%d of %d runs", r.Believed, len(r.Sides))
	if when := Date(r.Started); when != "" {
		made += ", started " + when
	}
	spread.Add(doc.Everywhere, doc.Para{Text: doc.Spans(fmt.Sprintf("%s; an interval is Student's for the mean over runs, at 95 %%, on the scale of logarithms", made))})
	spread.Add(doc.Everywhere, r.table(st))
	spread.Text(slices.Concat(r.SLOs, b.Warnings, notes)...)
	b.show(&d, d.Body.Part(doc.InDocument, doc.Section{ID: "figures", Title: "Runs", Listed: true}))
	AddRepeat(&d, r.Invoked)
	return d
}

// table has the spread of each figure that a style shows.
func (r Repeat) table(st block.Style) doc.Table {
	t := doc.Table{Empty: true, Columns: doc.Columns("figure", ">mean", ">95 % interval", ">CV", ">min", ">max")}
	var all []*result.Summary
	for i := range r.Sides {
		all = append(all, &r.Sides[i].Summary)
	}
	for i, head := range []string{"Figure", "Mean", "95 % interval", "CV", "Min", "Max"} {
		t.Columns[i].Page = doc.Spans(head)
	}
	for _, s := range r.Spread {
		m, err := result.Lookup(s.Metric)
		if err != nil || !spreads(m, st) {
			continue
		}
		n := func(v float64) string { return strconv.FormatFloat(v, 'f', m.Decimals, 64) }
		interval, cv := doc.None, doc.None
		if s.Low != nil {
			interval = n(*s.Low) + " to " + n(*s.High)
		}
		if s.CV != nil {
			cv = strconv.FormatFloat(100**s.CV, 'f', 2, 64) + " %"
		}
		label := strings.Replace(s.Label, m.Label, result.Label(m, all...), 1) // it may say that it is a mean of percentiles
		t.Rows = append(t.Rows, doc.Texts(label, n(s.Mean), interval, cv, n(s.Min), n(s.Max)))
	}
	return t
}

// spreads reports whether a figure is in the table of a style: the scalars that
// have a better direction, and the sections' means, medians and percentiles.
func spreads(m result.Metric, st block.Style) bool {
	if m.Family == "" {
		return m.Better != result.Neither && m.Section == "" && m.Unit != "requests" || m.Name == "success_rate"
	}
	p, isPercentile := result.Percentile(m.Name)
	return slices.Contains(st.Sections, m.Family) &&
		(m.Stat == "mean" || m.Stat == "median" || isPercentile && slices.Contains(st.Percentiles, p))
}
