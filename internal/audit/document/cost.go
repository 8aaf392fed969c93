package document

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/result"
)

// replicas finds throughputs that were multiplied on paper.
func replicas(d *document) []audit.Finding {
	var out []audit.Finding
	for _, p := range d.rows {
		for i, f := range p.changed {
			if f.Times < 2 || len(f.runs) == 0 || measured(d, f) {
				continue
			}
			f1, b := f.Value, p.base[i].Value
			one := fmt.Sprintf("%+.1f %%", 100*(f1/b-1))
			command := ""
			if p.to != nil && p.to.run.Header.Command != "" {
				command = " of " + p.to.run.Header.Command
			}
			out = append(out, audit.Finding{Type: "replicas-not-measured", Severity: audit.Error, Place: d.place(p.line), Expected: one,
				Figures: []audit.Cited{p.base[i].cited(), f.cited()},
				Text: fmt.Sprintf("%s times %d was never measured: the block is of one replica%s, which is %s against %s",
					strings.TrimSpace(f.runs[0].figures[f.metric].Text), f.Times, command, one, p.base[i].Text)})
		}
	}
	return out
}

// measured reports whether a block has the product of a multiplied figure.
func measured(d *document, f citation) bool {
	f.Value, f.Half = f.Value*float64(f.Times), f.Half*float64(f.Times)
	f.runs, f.Times = nil, 1
	d.match(&f)
	return len(f.runs) > 0
}

// costNames are families of figures that a change may make worse, in the order of their
// weight, each with the statistics to look at.
func costNames() [][]string {
	return [][]string{
		{"mean_ttft_ms", "median_ttft_ms"}, {"mean_tpot_ms", "median_tpot_ms"}, {"mean_e2el_ms", "median_e2el_ms"},
		{"output_throughput"}, {"request_throughput"},
	}
}

// hiddenCosts finds what got worse between the runs that a row compares.
func hiddenCosts(d *document) []audit.Finding {
	var out []audit.Finding
	for _, p := range d.rows {
		if p.from == nil || p.to == nil || p.from == p.to || !p.improves() {
			continue
		}
		against := ""
		if in, ok := containedRow(d.rowsOf(p.table), p); ok && in.to != nil {
			if in.changed[0].named.isRate() == (in.changed[0].Value >= p.changed[0].Value) {
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
			name, by := worstCost(family, p)
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
		f := audit.Finding{Type: "hidden-cost", Place: d.place(p.line), Figures: figures, Severity: audit.Warning}
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

// leastCost is the loss in percent from which a figure got worse by more than
// runs of one configuration do in any of the families.
const leastCost = 10.0

// worstCost returns the figure of a family that got worse by most between the runs
// of a row, if by more than leastCost, and by how much. Times per token that
// the latency contradicts are left out, and rates of replicas.
func worstCost(family []string, p comparedRow) (string, float64) {
	name, by := "", leastCost
	if strings.HasSuffix(family[0], "_ttft_ms") && len(family) > 1 && (audit.Stalled(p.from.run) || audit.Stalled(p.to.run)) {
		family = family[1:] // a stall of a few requests is no cost of the option: first-token-stall says it
	}
	for _, n := range family {
		a, b := p.from.value(n), p.to.value(n)
		if strings.Contains(n, "tpot") && (p.from.latencyTPOT != 0 || p.to.latencyTPOT != 0) || !(a > 0) || !(b > 0) {
			continue
		}
		loss := 100 * (b/a - 1)
		if isRate(n) {
			loss = 100 * (a/b - 1)
			if slices.ContainsFunc(p.changed, func(t citation) bool { return t.Times > 1 || t.named.isRate() }) {
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
