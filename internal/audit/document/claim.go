package document

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// claimChecks are the types that claims finds.
func claimChecks() []check {
	return []check{
		{"percentage-wrong", audit.Error, "A percentage that does not follow from the two figures it stands with.", "The figures as printed, any value that rounds to them; a change of the figure or, for times, of the speed; per GPU where it says so."},
		{"factor-wrong", audit.Error, "A factor (\"1.63x faster\") that does not follow from the two figures it stands with.", "As percentage-wrong; times are divided the other way round than rates."},
		{"difference-wrong", audit.Error, "A difference (\"faster by 0.12s\") that is not that of its two figures, or has its direction reversed.", "The figures as printed, any value that rounds to them."},
		{"figure-unmatched", audit.Error, "A figure of a table or summary that no block of the document has.", "Documents with blocks that have the metric; a warning for prose and for approximate figures."},
		{"replicas-not-measured", audit.Error, "A throughput that was multiplied by a number of replicas, of which one was measured.", "No block has the product; the ratio of one replica is recomputed."},
		{"ranking-wrong", audit.Error, "A ranking (A > B > C) that its own figures contradict.", "Figures as printed; equal ones may stand in either order."},
		{"recommended-underuses-gpus", audit.Warning, "The recommended command starts fewer GPUs than the hardware of the document has.", "A number of GPUs in the text and in the command; the table multiplies or the baseline uses more."},
		{"recommended-not-measured", audit.Warning, "No block was measured with the recommended command.", "Flags that say nothing of performance are left out; blocks whose command is known."},
		{"within-noise", audit.Warning, "A choice or gain that rests on a difference within the noise of single runs.", "The spread of equal configurations in the document, else 2 %; a note where the document draws no conclusion."},
		{"claim-on-broken-figure", audit.Warning, "A ratio or table row that uses a time per token that the block's own latency contradicts.", "TPOT below half of (latency - TTFT) / (n - 1), with next to nothing as its median."},
		{"claim-on-cached-ttft", audit.Warning, "A statement about a time to first token that the prefix cache explains.", "One prompt alone took under four decode steps, and prompts together took several times as long each."},
		{"baseline-mixed", audit.Warning, "A gain of an option that holds other changes besides.", "Rows of options that contain each other; the commands of the two blocks."},
		{"baseline-not-best", audit.Warning, "A gain quoted against a start that was not the best measured one.", "A ranking of starts, and a table against one of the lower; a note where the better start was built upon."},
		{"option-without-run", audit.Warning, "A row of the table of options of which the document has no experiment.", "No heading, caption or command shares a word with it."},
		{"hidden-cost", audit.Warning, "A figure that got worse by more than a tenth and is not shown beside the gain.", "Pairs of blocks that a table compares, combined options against the part that was measured alone, TTFT by its median where a few requests stalled; a note where it is shown."},
		{"unequal-work", audit.Warning, "Compared blocks that did not do the same work.", "Different success, prompts or generated totals; a note for generated totals within 5 %."},
		{"totals-across-workloads", audit.Note, "Total token throughput where nearly all tokens are prompt.", "Tables whose rows differ in length, and prose."},
		{"selective-citation", audit.Note, "Prose that cites one configuration of a model where another is better in that figure.", "Equal load; more than 2 % better."},
		{"missing-cell", audit.Note, "A model that lacks a load which all others were measured at.", "Three models or more."},
		{"count-contradiction", audit.Note, "A number of machines in the title that the blocks exceed.", "Numbers of nodes in headings."},
		{"size-claim", audit.Note, "A comparison of model sizes that the parameters read per token contradict.", "Both models are known."},
		{"degradation-claim", audit.Note, "Said to degrade most under load, while a figure of another model grows more.", "Mean TTFT and TPOT at the largest load of each model over those at its smallest."},
		{"bound-claim", audit.Note, "Called latency-bound, while a step takes about as long as the weights take to read.", "Model, accelerator and nodes are known."},
	}
}

// study is a document and its runs, as the checks of claims see them.
type study struct {
	file     *interop.File
	options  audit.Options
	subjects []*subject
	lines    []statement // tables first, then prose, in order
	rows     []pair      // what tables compare
	gains    []option    // of tables that give gains alone
	rankings []ranking
}

// claims checks what tables, summaries and prose say of the blocks.
func claims(f *interop.File, o audit.Options) []audit.Finding {
	s := &study{file: f, options: o}
	for i := range f.Runs {
		s.subjects = append(s.subjects, newSubject(&f.Runs[i]))
	}
	for i := range f.Doc.Tables {
		s.readTable(&f.Doc.Tables[i])
	}
	for _, t := range f.Doc.Prose {
		s.readLine(t)
	}
	var out []audit.Finding
	for _, l := range s.lines {
		out = append(out, l.check(s)...)
	}
	for _, check := range []func(*study) []audit.Finding{replicas, orders, costs, work, mixed, options, recommended, starts, totals, prose} {
		out = append(out, check(s)...)
	}
	return once(out)
}

// once drops findings that say the same of the same line.
func once(all []audit.Finding) []audit.Finding {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(f audit.Finding) bool {
		key := f.Place.String() + f.Type + f.Text
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// place is a line of the document.
func (s *study) place(line int) interop.Place {
	p := interop.Place{File: s.file.Name, Line: line}
	all := s.file.Doc.Sections // by line
	if n := sort.Search(len(all), func(i int) bool { return all[i].Line > line }); n > 0 {
		p.Section = all[n-1].Path
	}
	return p
}

// match finds the runs that have the figure, and under which metric. A block
// that is a copy of another counts as well.
func (s *study) match(t *term) {
	for _, name := range t.measure.metrics() {
		for _, sub := range s.subjects {
			if f, ok := sub.figures[name]; ok && t.fits(f) {
				t.runs, t.metric = append(t.runs, sub), name
			}
		}
		if len(t.runs) > 0 {
			return
		}
	}
}

// knows reports whether any run has the metric.
func (s *study) knows(m measure) bool {
	return slices.ContainsFunc(s.subjects, func(sub *subject) bool {
		return slices.ContainsFunc(m.metrics(), func(n string) bool { _, ok := sub.figures[n]; return ok })
	})
}

// statement is a line or row with its figures and comparisons.
type statement struct {
	line        int
	kind        string // "table", "summary", "prose"
	label       string // of a row
	text        string
	terms       []term
	comparisons []comparison
	table       *interop.Table // nil: no row
}

// check recomputes what a statement says, and looks for its figures.
func (l statement) check(s *study) []audit.Finding {
	var out []audit.Finding
	for _, c := range l.comparisons {
		out = append(out, c.check(s)...)
		out = append(out, c.noise(s, l)...)
	}
	out = append(out, l.broken(s)...)
	return append(out, l.unmatched(s)...)
}

// unmatched reports the figures of a statement that no block has. Where parts
// of the document could not be read, they may be there. A table that has no
// figure of any block is of other measurements, and one with more rows than
// there are blocks is of more than the document shows.
func (l statement) unmatched(s *study) []audit.Finding {
	if l.table != nil && !s.summarises(l.table) {
		return nil
	}
	f := audit.Finding{Type: "figure-unmatched", Severity: audit.Error, Place: s.place(l.line)}
	var texts, near []string
	for _, t := range l.terms {
		if len(t.runs) > 0 || !s.knows(t.measure) {
			continue
		}
		if t.Approx || l.kind == "prose" || t.Digits < 3 || len(s.file.Faults) > 0 || l.table != nil && len(l.table.Rows) > len(s.subjects) {
			f.Severity = audit.Warning
		}
		f.Figures = append(f.Figures, t.cited())
		texts = append(texts, fmt.Sprintf("%s of %s", t.measure, t.Text))
		if n := s.nearest(t); n != "" {
			near = append(near, n)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	if len(near) > 0 {
		f.Expected = "nearest: " + strings.Join(near, ", ")
	}
	f.Text = "no block of the document has " + strings.Join(texts, ", ")
	return []audit.Finding{f}
}

// summarises reports whether a figure of a table is one of a block.
func (s *study) summarises(t *interop.Table) bool {
	return slices.ContainsFunc(s.lines, func(l statement) bool {
		return l.table == t && slices.ContainsFunc(l.terms, func(x term) bool { return len(x.runs) > 0 })
	})
}

// nearest is the figure of the blocks that is closest to a term, if it is
// within a twentieth.
func (s *study) nearest(t term) string {
	best, at := "", 1.05
	for _, name := range t.measure.metrics() {
		for _, sub := range s.subjects {
			f, ok := sub.figures[name]
			if d := max(f.Value/t.Value, t.Value/f.Value); ok && f.Value > 0 && d < at {
				best, at = strings.TrimSpace(f.Text), d
			}
		}
		if best != "" {
			return best
		}
	}
	return ""
}
