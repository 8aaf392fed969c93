package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"perflab/internal/compare"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// compared is a comparison prepared for a reader.
type compared struct {
	compare.Comparison
	Title    string
	Banner   string
	Verdict  []string // the first thing to read, a sentence for each later side
	Failed   bool
	Rulings  []compare.Ruling
	Names    []string
	Pairs    []pair
	Plots    []plot.Plot
	Defined  []definition // by which figures are made that are not by ours
	Facts    []compare.Fact
	Bases    []figure // what each side is
	Warnings []string
}

// pair is one later side beside the first.
type pair struct {
	First, Name string
	Rows        []pairRow
	Bases       []string // what intervals rest on
	Whys        []string // why there is none, for which figures
}

// pairRow is one figure of both.
type pairRow struct {
	Label, Doc, Was, Is, Ratio, Interval, Outcome, Basis string
}

// Class is how a page marks the outcome.
func (r pairRow) Class() string {
	return map[string]string{string(compare.Better): "up", string(compare.Worse): "down"}[r.Outcome]
}

func newCompared(c compare.Comparison, rulings []compare.Ruling) compared {
	names := c.Names()
	d := compared{Comparison: c, Names: names, Rulings: rulings, Facts: c.Facts, Warnings: c.Warnings,
		Title: strings.Join(names[1:], ", ") + " compared with " + names[0], Banner: simulatedBanner(c.Simulated, c.Predicted)}
	for _, s := range c.Sides {
		d.Bases = append(d.Bases, figure{s.Name, s.Basis})
		if s.Void != "" {
			d.Verdict = append(d.Verdict, fmt.Sprintf("%s is void: do not believe what is said of it.", s.Name))
		}
	}
	for _, r := range c.Rows {
		if r.Definition == result.Ours {
			continue
		}
		if x := explained(r.Metric, r.Definition); !slices.Contains(d.Defined, x) {
			d.Defined = append(d.Defined, x)
		}
	}
	failed := 0
	for _, r := range rulings {
		if r.Failed {
			failed++
		}
	}
	switch {
	case failed > 0:
		d.Failed = true
		d.Verdict = append(d.Verdict, fmt.Sprintf("FAILED: %d of %s.", failed, count(len(rulings), "condition")))
	case len(rulings) > 0:
		d.Verdict = append(d.Verdict, fmt.Sprintf("Passed: none of %s fails.", count(len(rulings), "condition")))
	}
	for i := 1; i < len(c.Sides); i++ {
		d.Verdict = append(d.Verdict, tallied(c, i))
		d.Pairs = append(d.Pairs, newPair(c, i))
		if p, ok := ratioPlot(c, i); ok {
			d.Plots = append(d.Plots, p)
		}
	}
	return d
}

// tallied counts the outcomes of a side.
func tallied(c compare.Comparison, i int) string {
	n := map[compare.Outcome]int{}
	for _, r := range c.Rows {
		n[r.Cells[i].Outcome]++
	}
	var parts []string
	for _, o := range []struct {
		outcome compare.Outcome
		text    string
	}{
		{compare.Better, "better"}, {compare.Worse, "worse"}, {compare.Differs, "different"},
		{compare.Equal, "equal"}, {compare.NoDifference, "with no difference shown"}, {compare.NoInterval, "without an interval"},
		{"", "not compared"},
	} {
		if n[o.outcome] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[o.outcome], o.text))
		}
	}
	return fmt.Sprintf("%s against %s, figures: %s.", c.Sides[i].Name, c.Sides[0].Name, strings.Join(parts, ", "))
}

func newPair(c compare.Comparison, i int) pair {
	p := pair{First: c.Sides[0].Name, Name: c.Sides[i].Name}
	whys := map[string][]string{}
	for _, r := range pairRows(c, i) {
		a, b := r.Cells[0], r.Cells[i]
		number := func(v *float64) string {
			if v == nil {
				return missing
			}
			return strconv.FormatFloat(*v, 'f', r.Metric.Decimals, 64)
		}
		row := pairRow{Label: r.Label, Doc: r.Metric.Doc,
			Was: number(a.Value), Is: number(b.Value), Ratio: "-", Interval: "-", Outcome: string(b.Outcome), Basis: b.N}
		if b.Ratio != nil {
			row.Ratio = plot.Times(*b.Ratio)
		}
		if b.Low != nil {
			row.Interval = plot.Times(*b.Low) + " to " + plot.Times(*b.High)
			if b.N != "" && !slices.Contains(p.Bases, b.N) {
				p.Bases = append(p.Bases, b.N)
			}
		}
		if b.Why != "" {
			if _, ok := whys[b.Why]; !ok {
				p.Whys = append(p.Whys, b.Why)
			}
			whys[b.Why] = append(whys[b.Why], row.Label)
		}
		p.Rows = append(p.Rows, row)
	}
	for k, why := range p.Whys {
		p.Whys[k] = fmt.Sprintf("%s: %s", some(whys[why]), why)
	}
	return p
}

// pairRows are the rows that side i and the first one have part in. A label has
// its definition only where two rows are of one figure.
func pairRows(c compare.Comparison, i int) []compare.Row {
	all, shown := map[string]int{}, map[string]int{}
	for _, r := range c.Rows {
		all[r.Name]++
	}
	var out []compare.Row
	for _, r := range c.Rows {
		if all[r.Name] == 1 || r.Cells[0].Value != nil || r.Cells[i].Value != nil {
			shown[r.Name]++
			out = append(out, r)
		}
	}
	for k := range out {
		if shown[out[k].Name] > 1 {
			out[k].Label = tagged(out[k].Label, out[k].Definition)
		}
	}
	return out
}

// columnHeads are the names of two sides as narrow heads of columns: their
// beginnings, or their ends where the beginnings are alike.
func columnHeads(a, b string) (string, string) {
	const most = 12
	end := func(s string) string {
		r := []rune(s)
		if len(r) <= most {
			return s
		}
		return "…" + string(r[len(r)-most+1:])
	}
	if x, y := plot.Clip(a, most), plot.Clip(b, most); x != y {
		return x, y
	}
	if x, y := end(a), end(b); x != y {
		return x, y
	}
	return a, b
}

// some names the first few of many.
func some(names []string) string {
	const shown = 4
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown-1], ", "), len(names)-shown+1)
}

// mark is the word for a ruling.
func mark(r compare.Ruling) string {
	if r.Failed {
		return "FAILED"
	}
	return "passed"
}

// CompareText writes a comparison for a terminal.
func CompareText(w io.Writer, c compare.Comparison, rulings []compare.Ruling) error {
	d, b := newCompared(c, rulings), &strings.Builder{}
	if d.Banner != "" {
		fmt.Fprintf(b, "%s\n\n", d.Banner)
	}
	fmt.Fprintf(b, "%s\n", d.Head)
	for _, x := range d.Bases {
		fmt.Fprintf(b, "  %s: %s\n", x.Label, x.Value)
	}
	for _, p := range d.Pairs {
		fmt.Fprintln(b)
		tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		was, is := columnHeads(p.First, p.Name)
		fmt.Fprintf(tw, "\t%s\t%s\tratio\t95 %% interval\t\n", was, is)
		for _, r := range p.Rows {
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Label, r.Was, r.Is, r.Ratio, r.Interval, r.Outcome)
		}
		tw.Flush() // into a Builder, which never fails
		for _, text := range p.Bases {
			fmt.Fprintf(b, "intervals of %s\n", text)
		}
		for _, text := range p.Whys {
			fmt.Fprintf(b, "no interval for %s\n", text)
		}
	}
	fmt.Fprintln(b)
	if len(d.Defined) > 0 {
		fmt.Fprintf(b, "Not by perflab's definitions (docs/metrics.md):\n%s\n", definitionLines(d.Defined))
	}
	for _, text := range d.Warnings {
		fmt.Fprintf(b, "warning: %s\n", text)
	}
	for _, text := range d.Notes {
		fmt.Fprintf(b, "note: %s\n", text)
	}
	for _, r := range rulings {
		fmt.Fprintf(b, "%s: %s, %s: %s\n", mark(r), r.Condition, r.Side, r.Text)
	}
	for _, text := range d.Verdict {
		fmt.Fprintln(b, text)
	}
	return writeAll(w, b.String())
}

// CompareMarkdown writes a comparison as a comment on a pull request: what came
// out first, then the table, and what is to be known of it folded.
func CompareMarkdown(w io.Writer, c compare.Comparison, rulings []compare.Ruling) error {
	d, m := newCompared(c, rulings), &mdWriter{}
	for i, text := range d.Verdict {
		if i == 0 {
			m.para("**%s**", mdText(text))
		} else {
			m.para("%s", mdText(text))
		}
	}
	if d.Banner != "" {
		m.para("> **%s**", mdText(d.Banner))
	}
	if len(rulings) > 0 {
		m.row("Condition", "Side", "Result", "Why")
		m.row("---", "---", "---", "---")
		for _, r := range rulings {
			m.row(mdCode(r.Condition), mdText(r.Side), mdText(mark(r)), mdText(r.Text))
		}
		m.b.WriteString("\n")
	}
	m.para("%s", mdText(d.Head))
	for _, p := range d.Pairs {
		m.row("Figure", mdText(p.First), mdText(p.Name), "Ratio", "95 % interval", "Outcome")
		m.row("---", "---:", "---:", "---:", "---:", "---")
		for _, r := range p.Rows {
			outcome := mdText(r.Outcome)
			if r.Class() != "" {
				outcome = "**" + outcome + "**"
			}
			m.row(mdText(r.Label), r.Was, r.Is, r.Ratio, r.Interval, outcome)
		}
		m.b.WriteString("\n")
	}
	m.folded(fmt.Sprintf("%s, %s", count(len(d.Warnings), "warning"), "what the figures rest on and what ran"), "text", d.fine())
	return m.writeTo(w, d.Title)
}

// fine is what a Markdown comment folds away.
func (d compared) fine() string {
	var b strings.Builder
	for _, text := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", text)
	}
	for _, text := range d.Notes {
		fmt.Fprintf(&b, "note: %s\n", text)
	}
	for _, x := range d.Defined {
		fmt.Fprintf(&b, "%s by %s: %s\n", x.Of, x.Tag, x.Formula)
	}
	for _, x := range d.Bases {
		fmt.Fprintf(&b, "%s: %s\n", x.Label, x.Value)
	}
	for _, p := range d.Pairs {
		for _, text := range p.Bases {
			fmt.Fprintf(&b, "%s: intervals of %s\n", p.Name, text)
		}
		for _, text := range p.Whys {
			fmt.Fprintf(&b, "%s: no interval for %s\n", p.Name, text)
		}
	}
	for _, f := range d.Facts {
		if len(f.Known()) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", f.Label, f.Each(d.Names))
		}
	}
	return b.String()
}

// CompareHTML writes a comparison as one page that needs no other file.
func CompareHTML(w io.Writer, c compare.Comparison, rulings []compare.Ruling) error {
	d := newCompared(c, rulings)
	d.Facts = slices.DeleteFunc(slices.Clone(d.Facts), func(f compare.Fact) bool { return len(f.Known()) == 0 })
	return page(w, "compare.html", d.Title, d)
}

// The elements of a JUnit file, as test reporters of CI systems read it.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"` // always 0: what cannot be judged fails
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes rulings as a JUnit file, one test case each.
func JUnit(w io.Writer, c compare.Comparison, rulings []compare.Ruling) error {
	s := junitSuite{Name: "perflab compare", Tests: len(rulings)}
	for _, r := range rulings {
		k := junitCase{Class: "perflab.compare." + c.Sides[0].Name + "." + r.Side, Name: r.Side + ": " + r.Condition}
		if r.Failed {
			s.Failures++
			k.Failure = &junitFailure{Message: r.Text, Text: r.Condition + ": " + r.Text}
		} else {
			k.Out = r.Text
		}
		s.Cases = append(s.Cases, k)
	}
	b, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the JUnit file: %w", err)
	}
	return writeAll(w, xml.Header+string(b)+"\n")
}
