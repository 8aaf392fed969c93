package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/compare"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// Compare shows a comparison: in Markdown as a comment on a pull request, what
// came out first, and what is to be known of it folded.
func Compare(c compare.Comparison, rulings []compare.Ruling) doc.Document {
	names := c.Names()
	title := strings.Join(names[1:], ", ") + " compared with " + names[0]
	d := doc.New(title, simulatedBanner(c.Simulated, c.Predicted), title)
	d.Bare = doc.InMarkdown
	b := &d.Body
	verdict := compareVerdict(c, rulings)
	b.Styled(doc.InDocument, "lead", verdict[0])
	b.StyledEach(doc.InDocument, "muted", verdict[1:]...)
	b.Add(doc.InMarkdown, doc.Banner(d.Banner))
	b.Add(doc.InPage, doc.Para{Text: doc.Spans(c.Head)})
	b.StyledEach(doc.InPage, "note", c.Warnings...)
	b.StyledEach(doc.InPage, "muted", c.Notes...)
	conditions := rulingTable(rulings)
	if len(rulings) > 0 {
		b.Part(doc.InDocument, doc.Section{ID: "conditions", Page: "Conditions", Listed: true}).Add(doc.InDocument, conditions)
	}
	b.Part(doc.InPage, doc.Section{ID: "plots", Title: "Ratios", Listed: true}).Figures(doc.InPage, func() []plot.Plot { return ratioPlots(c) })
	b.Add(doc.InText|doc.InMarkdown, doc.Para{Text: doc.Spans(c.Head)})
	for _, s := range c.Sides {
		b.Textf("  %s: %s", s.Name, observed(s))
	}
	figures := b.Part(doc.Everywhere, doc.Section{ID: "figures", Page: "Figures", Listed: true})
	var pairs []pair
	for i := 1; i < len(c.Sides); i++ {
		p := newPair(c, i)
		pairs = append(pairs, p)
		p.show(figures.Part(doc.Everywhere, doc.Section{Page: p.name + " beside " + p.first}))
	}
	defined := foreignDefinitions(c)
	b.Text("")
	if len(defined) > 0 {
		b.Text(append(definitionLines(defined), "")...)
		l := doc.List{Lines: true}
		for _, x := range defined {
			l.Items = append(l.Items, doc.Spans(x.Of+" by ", doc.Code(x.Tag), ": "+x.Formula))
		}
		b.Styled(doc.InPage, "", doc.Words("Not by perflab's definitions:"))
		b.Add(doc.InPage, l)
	}
	b.Text(remarked(c)...)
	for _, r := range rulings {
		b.Textf("%s: %s, %s: %s", mark(r), r.Condition, r.Side, r.Text)
	}
	b.Text(verdict...)
	b.Section("ran", "What Ran").Add(doc.InPage, comparedFacts(c, names))
	b.Add(doc.InMarkdown, doc.Pre{Summary: count(len(c.Warnings), "warning") + ", what the figures rest on and what ran", Text: strings.Join(compareDetails(c, pairs, defined, names), "\n")})
	return d
}

// compareVerdict is the first thing to read, a sentence for each later side.
func compareVerdict(c compare.Comparison, rulings []compare.Ruling) []string {
	var out []string
	for _, s := range c.Sides {
		if s.Void != "" {
			out = append(out, fmt.Sprintf("%s is void: do not believe what is said of it.", s.Name))
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
		out = append(out, fmt.Sprintf("FAILED: %d of %s.", failed, count(len(rulings), "condition")))
	case len(rulings) > 0:
		out = append(out, fmt.Sprintf("Passed: none of %s fails.", count(len(rulings), "condition")))
	}
	for i := 1; i < len(c.Sides); i++ {
		out = append(out, tallied(c, i))
	}
	return out
}

// foreignDefinitions are those by which figures are made that are not by ours.
func foreignDefinitions(c compare.Comparison) []definition {
	var out []definition
	for _, r := range c.Rows {
		x := explained(r.Metric, r.Definition)
		if len(r.Anew) > 0 {
			x.Formula += "; perflab's own: " + r.Metric.Formula
		}
		if r.Definition != result.Ours && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

func rulingTable(rulings []compare.Ruling) doc.Table {
	t := doc.Table{Columns: doc.Columns("Condition", "Side", "Result", "Why")}
	for _, r := range rulings {
		tone := "up"
		if r.Failed {
			tone = "down"
		}
		t.Rows = append(t.Rows, doc.Cells(doc.Code(r.Condition), r.Side, doc.Cell{Text: doc.Spans(mark(r)), Page: doc.Spans(strings.ToLower(mark(r))), Tone: tone}, r.Text))
	}
	return t
}

// comparedFacts says what ran on each side, of what is recorded of any.
func comparedFacts(c compare.Comparison, names []string) doc.Table {
	t := doc.Table{Columns: doc.Columns(append([]string{"Item"}, names...)...)}
	r := doc.Cells("Observations")
	for _, s := range c.Sides {
		r.Cells = append(r.Cells, doc.Cell{Text: doc.Spans(s.Basis)})
	}
	t.Rows = append(t.Rows, r)
	started := doc.Cells("Started")
	for _, s := range c.Sides {
		started.Cells = append(started.Cells, doc.Cell{Text: doc.Spans(cmp.Or(Date(s.Started), missing))})
	}
	if slices.ContainsFunc(c.Sides, func(s compare.SideInfo) bool { return !s.Started.IsZero() }) {
		t.Rows = append(t.Rows, started)
	}
	host := compare.Fact{Label: LoadGenerator}
	for _, s := range c.Sides {
		host.Values = append(host.Values, Host(s.Host))
	}
	for _, f := range append(slices.Clone(c.Facts), host) {
		if len(f.Known()) > 0 {
			t.Rows = append(t.Rows, factRow(f))
		}
	}
	return t
}

// observed says how many observations a side is, and when they were begun.
func observed(s compare.SideInfo) string {
	if s.Started.IsZero() {
		return s.Basis
	}
	return s.Basis + "; started " + Date(s.Started)
}

// remarked are the warnings and notes, in lines.
func remarked(c compare.Comparison) []string {
	var out []string
	for _, text := range c.Warnings {
		out = append(out, "warning: "+text)
	}
	for _, text := range c.Notes {
		out = append(out, "note: "+text)
	}
	return out
}

// compareDetails is what a comment folds away.
func compareDetails(c compare.Comparison, pairs []pair, defined []definition, names []string) []string {
	out := remarked(c)
	for _, x := range defined {
		out = append(out, fmt.Sprintf("%s by %s: %s", x.Of, x.Tag, x.Formula))
	}
	for _, s := range c.Sides {
		out = append(out, s.Name+": "+observed(s))
	}
	for _, p := range pairs {
		for _, text := range p.bases {
			out = append(out, p.name+": intervals of "+text)
		}
		for _, text := range p.whys {
			out = append(out, p.name+": no interval for "+text)
		}
	}
	for _, f := range c.Facts {
		if len(f.Known()) > 0 {
			out = append(out, f.Label+": "+f.Each(names))
		}
	}
	return out
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

// pair is one later side beside the first.
type pair struct {
	first, name string
	table       doc.Table
	bases       []string // what intervals rest on
	whys        []string // why there is none, for which figures
}

func newPair(c compare.Comparison, i int) pair {
	p := pair{first: c.Sides[0].Name, name: c.Sides[i].Name}
	was, is := columnHeads(p.first, p.name)
	p.table.Empty = true
	p.table.Columns = doc.Columns("Figure", ">"+p.first, ">"+p.name, ">Ratio", ">95 % interval", "Outcome")
	for k, head := range []string{"", was, is, "ratio", "95 % interval", ""} {
		p.table.Columns[k].Text = &head
	}
	p.table.Columns[0].Tipped, p.table.Columns[4].Tipped, p.table.Columns[5].Toned = true, true, true
	whys := map[string][]string{}
	for _, r := range pairRows(c, i) {
		a, b := r.Cells[0], r.Cells[i]
		number := func(v *float64) string {
			if v == nil {
				return missing
			}
			return strconv.FormatFloat(*v, 'f', r.Metric.Decimals, 64)
		}
		ratio, interval := doc.None, doc.None
		if b.Ratio != nil {
			ratio = plot.Times(*b.Ratio)
		}
		if b.Low != nil {
			interval = plot.Times(*b.Low) + " to " + plot.Times(*b.High)
			if b.N != "" && !slices.Contains(p.bases, b.N) {
				p.bases = append(p.bases, b.N)
			}
		}
		if b.Why != "" {
			if _, ok := whys[b.Why]; !ok {
				p.whys = append(p.whys, b.Why)
			}
			whys[b.Why] = append(whys[b.Why], r.Label)
		}
		tone := map[compare.Outcome]string{compare.Better: "up", compare.Worse: "down"}[b.Outcome]
		p.table.Rows = append(p.table.Rows, doc.Cells(doc.Cell{Text: doc.Spans(r.Label), Tip: r.Metric.Doc}, number(a.Value), number(b.Value), ratio,
			doc.Cell{Text: doc.Spans(interval), Tip: b.N}, doc.Cell{Text: doc.Spans(string(b.Outcome)), Tone: tone, Strong: tone != ""}))
	}
	for k, why := range p.whys {
		p.whys[k] = some(whys[why]) + ": " + why
	}
	return p
}

// show adds the table and what it rests on.
func (p pair) show(s *doc.Section) {
	s.Text("")
	s.Add(doc.Everywhere, p.table)
	for _, text := range p.bases {
		s.Text("intervals of " + text)
		s.Styled(doc.InPage, "muted", "Intervals of "+text+".")
	}
	for _, text := range p.whys {
		s.Text("no interval for " + text)
		s.Styled(doc.InPage, "muted", "No interval for "+text+".")
	}
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
	if _, err := io.WriteString(w, xml.Header+string(b)+"\n"); err != nil {
		return fmt.Errorf("write the JUnit file: %w", err)
	}
	return nil
}
