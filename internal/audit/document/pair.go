package document

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/result"
)

// replicas finds throughputs that were multiplied on paper.
func replicas(s *study) []audit.Finding {
	var out []audit.Finding
	for _, p := range s.rows {
		for i, f := range p.fresh {
			if f.Times < 2 || len(f.runs) == 0 || s.measured(f) {
				continue
			}
			f1, b := f.Value, p.base[i].Value
			one := fmt.Sprintf("%+.1f %%", 100*(f1/b-1))
			command := ""
			if p.to != nil && p.to.run.Header.Command != "" {
				command = " of " + p.to.run.Header.Command
			}
			out = append(out, audit.Finding{Type: "replicas-not-measured", Severity: audit.Error, Place: s.place(p.line), Expected: one,
				Figures: []audit.Cited{p.base[i].cited(), f.cited()},
				Text: fmt.Sprintf("%s times %d was never measured: the block is of one replica%s, which is %s against %s",
					strings.TrimSpace(f.runs[0].figures[f.metric].Text), f.Times, command, one, p.base[i].Text)})
		}
	}
	return out
}

// measured reports whether a block has the product of a multiplied figure.
func (s *study) measured(f term) bool {
	f.Value, f.Half = f.Value*float64(f.Times), f.Half*float64(f.Times)
	f.runs, f.Times = nil, 1
	s.match(&f)
	return len(f.runs) > 0
}

// families of figures that a change may make worse, in the order of their
// weight, each with the statistics to look at.
func costNames() [][]string {
	return [][]string{
		{"mean_ttft_ms", "median_ttft_ms"}, {"mean_tpot_ms", "median_tpot_ms"}, {"mean_e2el_ms", "median_e2el_ms"},
		{"output_throughput"}, {"request_throughput"},
	}
}

// costs finds what got worse between the runs that a row compares.
func costs(s *study) []audit.Finding {
	var out []audit.Finding
	for _, p := range s.rows {
		if p.from == nil || p.to == nil || p.from == p.to || !p.improves() {
			continue
		}
		against := ""
		if in, ok := within(s.table(p.table), p); ok && in.to != nil {
			if in.fresh[0].measure.rate() == (in.fresh[0].Value >= p.fresh[0].Value) {
				continue // no gain is left: baseline-mixed says it
			}
			p.from, against = in.to, fmt.Sprintf(" against %q", in.label) // the baseline lacks what both have
		}
		var hidden, shown []string
		var figures []audit.Cited
		for _, family := range costNames() {
			if i := slices.IndexFunc(family, p.has); i >= 0 {
				family = family[i : i+1]
			}
			name, by := worst(family, p)
			if name == "" {
				continue
			}
			row, _ := result.Lookup(name)
			label, _, _ := strings.Cut(row.Label, " (")
			if name == "mean_e2el_ms" || name == "median_e2el_ms" {
				label = strings.TrimSuffix(label, "E2EL") + "latency"
			}
			text := fmt.Sprintf("%s %+.0f %%", label, by)
			if p.shows(name) {
				shown = append(shown, text)
			} else {
				hidden = append(hidden, text)
			}
			figures = append(figures, p.from.cite(name), p.to.cite(name))
		}
		f := audit.Finding{Type: "hidden-cost", Place: s.place(p.line), Figures: figures, Severity: audit.Warning}
		switch {
		case len(hidden) > 0:
			f.Expected = strings.Join(append(hidden, shown...), ", ")
			f.Text = fmt.Sprintf("the row %q leaves out what its gain costs%s: %s", p.label, against, strings.Join(hidden, ", "))
			if len(shown) > 0 {
				f.Text += "; it shows a cost: " + strings.Join(shown, ", ")
			}
		case len(shown) > 0:
			f.Severity, f.Expected = audit.Note, strings.Join(shown, ", ")
			f.Text = fmt.Sprintf("the gain in the row %q has a cost%s: %s", p.label, against, f.Expected)
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

// table are the rows of a table.
func (s *study) table(t *interop.Table) []pair {
	return slices.DeleteFunc(slices.Clone(s.rows), func(p pair) bool { return p.table != t })
}

// improves reports whether the row claims a gain: what it shows first is
// better than its baseline.
func (p pair) improves() bool {
	a, b := p.fresh[0].total(), p.base[0].total()
	return p.ratio && (p.fresh[0].measure.rate() && a > b || !p.fresh[0].measure.rate() && a < b)
}

// shows reports whether the row has a figure of the family of a metric.
func (p pair) shows(name string) bool {
	return slices.ContainsFunc(p.fresh, func(t term) bool {
		return t.metric == name || strings.HasSuffix(name, "_"+t.measure.kind+"_ms") && t.metric != "" && !t.measure.rate() && t.measure.kind != "time"
	})
}

// has reports whether the row has this figure.
func (p pair) has(name string) bool {
	return slices.ContainsFunc(p.fresh, func(t term) bool { return t.metric == name })
}

// worst returns the figure of a family that got worse by most between the runs
// of a row, if by more than a tenth, and by how much. Times per token that
// the latency contradicts are left out, and rates of replicas.
func worst(family []string, p pair) (string, float64) {
	name, by := "", 10.0
	if strings.HasSuffix(family[0], "_ttft_ms") && len(family) > 1 && (audit.Stalled(p.from.run) || audit.Stalled(p.to.run)) {
		family = family[1:] // a stall of a few requests is no cost of the option: first-token-stall says it
	}
	for _, n := range family {
		a, b := p.from.value(n), p.to.value(n)
		if strings.Contains(n, "tpot") && (p.from.sound != 0 || p.to.sound != 0) || !(a > 0) || !(b > 0) {
			continue
		}
		loss := 100 * (b/a - 1)
		if isRate(n) {
			loss = 100 * (a/b - 1)
			if slices.ContainsFunc(p.fresh, func(t term) bool { return t.Times > 1 || t.measure.rate() }) {
				continue // the row's own subject, judged by its ratio
			}
		}
		if loss > by {
			name, by = n, loss
		}
	}
	if isRate(name) {
		by = 100 * (p.to.value(name)/p.from.value(name) - 1)
	}
	return name, by
}

// isRate reports whether more of a metric is better, of those of costNames.
func isRate(name string) bool { return strings.HasSuffix(name, "_throughput") }

// work finds compared runs that did not do the same work.
func work(s *study) []audit.Finding {
	var out []audit.Finding
	for _, p := range s.rows {
		if p.from == nil || p.to == nil || p.from == p.to || p.from.copies(p.to) {
			continue
		}
		if f, ok := unequal(p.from, p.to); ok {
			f.Place = s.place(p.line)
			if p.discloses() {
				f.Severity = audit.Note
			}
			f.Text = fmt.Sprintf("the row %q compares runs that %s", p.label, f.Text)
			out = append(out, f)
		}
	}
	return append(out, s.spread()...)
}

// discloses reports whether the row itself says that requests failed.
func (p pair) discloses() bool {
	for _, r := range p.table.Rows {
		if r.Line == p.line {
			return strings.Contains(strings.ToLower(strings.Join(r.Cells, " ")), "success rate")
		}
	}
	return false
}

// unequal tells in what the work of two runs differs.
func unequal(a, b *subject) (audit.Finding, bool) {
	f := audit.Finding{Type: "unequal-work", Severity: audit.Warning}
	for _, name := range []string{"completed", "total_input_tokens", "total_output_tokens"} {
		x, y := a.value(name), b.value(name)
		if !(x > 0) || !(y > 0) || x == y {
			continue
		}
		f.Figures = append(f.Figures, a.cite(name), b.cite(name))
		f.Expected = fmt.Sprintf("ratio %.3f", y/x)
		differ := math.Abs(y/x - 1)
		switch {
		case name == "completed":
			f.Text = fmt.Sprintf("completed %.0f and %.0f requests", x, y)
			return f, true
		case name == "total_input_tokens" && differ > 0.005:
			f.Text = fmt.Sprintf("had %.0f and %.0f prompt tokens: not the same prompts", x, y)
			return f, true
		case name == "total_output_tokens" && differ > 0.0009:
			if differ <= 0.05 {
				f.Severity = audit.Note
			}
			f.Text = fmt.Sprintf("generated %.0f and %.0f tokens (%+.1f %%)", x, y, 100*(y/x-1))
			return f, true
		}
	}
	return f, false
}

// spread finds the spread of the generated totals over all runs of the same
// prompts.
func (s *study) spread() []audit.Finding {
	if len(s.subjects) > manyRuns {
		return nil
	}
	var out []audit.Finding
	done := map[*subject]bool{}
	asked := askedOf(s.file)
	for i, a := range s.subjects {
		if done[a] || !(a.value("total_output_tokens") > 0) {
			continue
		}
		lo, hi, n := a, a, 1
		for j, b := range s.subjects[i+1:] {
			if b.value("completed") != a.value("completed") || b.value("total_input_tokens") != a.value("total_input_tokens") || asked[i+1+j] != asked[i] {
				continue
			}
			done[b] = true
			out, known := b.value("total_output_tokens"), b.value("total_output_tokens") > 0
			if !known {
				continue
			}
			if n++; out < lo.value("total_output_tokens") {
				lo = b
			}
			if out > hi.value("total_output_tokens") {
				hi = b
			}
		}
		x, y := lo.value("total_output_tokens"), hi.value("total_output_tokens")
		if n < 3 || y/x-1 < 0.001 {
			continue
		}
		f := audit.Finding{Type: "unequal-work", Severity: audit.Note, Place: hi.run.Place, Expected: fmt.Sprintf("ratio %.4f", y/x),
			Figures: []audit.Cited{lo.cite("total_output_tokens"), hi.cite("total_output_tokens")},
			Text:    fmt.Sprintf("%d blocks of the same prompts generated %.0f to %.0f tokens, a spread of %.2g %%", n, x, y, 100*(y/x-1))}
		if y/x > 1.05 {
			f.Severity = audit.Warning
		}
		out = append(out, f)
	}
	return out
}

// totals finds tables and statements of total token throughput where nearly
// all tokens are prompt.
func totals(s *study) []audit.Finding {
	var out []audit.Finding
	seen := map[int]bool{}
	for _, l := range s.lines {
		for _, t := range l.terms {
			if t.metric != "total_token_throughput" || l.kind != "prose" || seen[l.line] || len(t.runs) == 0 || t.measure.kind != "total" {
				continue
			}
			if r := t.runs[0]; r.prompts() >= 0.8 {
				seen[l.line] = true
				out = append(out, audit.Finding{Type: "totals-across-workloads", Severity: audit.Note, Place: s.place(l.line), Figures: []audit.Cited{t.cited(), r.cite("output_throughput")},
					Expected: fmt.Sprintf("%.0f tok/s generated", r.value("output_throughput")),
					Text:     fmt.Sprintf("%.0f %% of the tokens of %q are prompt: generation is %.0f tok/s", 100*r.prompts(), t.Text, r.value("output_throughput"))})
			}
		}
	}
	return append(out, s.tableTotals()...)
}

// tableTotals finds tables whose rows of total throughput are of different
// lengths, at least one of them nearly all prompt.
func (s *study) tableTotals() []audit.Finding {
	var out []audit.Finding
	for i, p := range s.rows {
		if i > 0 && s.rows[i-1].table == p.table {
			continue
		}
		lo, hi := 2.0, 0.0
		var low, high pair
		for _, q := range s.rows[i:] {
			if q.table != p.table {
				break
			}
			if q.to == nil || q.fresh[0].metric != "total_token_throughput" {
				continue
			}
			share := q.to.prompts()
			if !(share > 0 && share <= 1) {
				continue
			}
			if share < lo {
				lo, low = share, q
			}
			if share > hi {
				hi, high = share, q
			}
		}
		if hi < 0.95 || hi-lo < 0.02 {
			continue
		}
		out = append(out, audit.Finding{Type: "totals-across-workloads", Severity: audit.Note, Place: s.place(high.line),
			Figures:  []audit.Cited{low.fresh[0].cited(), high.fresh[0].cited(), high.to.cite("output_throughput")},
			Expected: fmt.Sprintf("%.2f tok/s generated", high.to.value("output_throughput")),
			Text: fmt.Sprintf("total token throughput does not compare between the rows: of %q %.1f %% is prompt (%.2f tok/s generated), of %q %.1f %%",
				high.label, 100*hi, high.to.value("output_throughput"), low.label, 100*lo)})
	}
	return out
}
