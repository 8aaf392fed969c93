package document

import (
	"fmt"
	"math"

	"perflab/internal/audit"
)

// unequalWork finds compared runs that did not do the same work.
func unequalWork(d *document) []audit.Finding {
	var out []audit.Finding
	for _, p := range d.rows {
		if p.from == nil || p.to == nil || p.from == p.to || p.from.copies(p.to) {
			continue
		}
		if f, ok := unequal(p.from, p.to); ok {
			f.Place = d.place(p.line)
			if p.discloses() {
				f.Severity = audit.Note
			}
			f.Text = fmt.Sprintf("the row %q compares runs that %s", p.label, f.Text)
			out = append(out, f)
		}
	}
	return append(out, outputSpread(d)...)
}

// How far totals of equal work are apart, as shares.
const (
	promptsDiffer   = 0.005  // of prompt tokens: more is not of the same prompts
	answersDiffer   = 0.0009 // of generated tokens of two runs: what prints as 0.1 %
	answersSpread   = 0.001  // of generated tokens of several
	answersDoubtful = 0.05   // of generated tokens: more makes a comparison doubtful
)

// fewestSpread is how many runs show a spread.
const fewestSpread = 3

// unequal tells in what the work of two runs differs.
func unequal(a, b *citedRun) (audit.Finding, bool) {
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
		case name == "total_input_tokens" && differ > promptsDiffer:
			f.Text = fmt.Sprintf("had %.0f and %.0f prompt tokens: not the same prompts", x, y)
			return f, true
		case name == "total_output_tokens" && differ > answersDiffer:
			if differ <= answersDoubtful {
				f.Severity = audit.Note
			}
			f.Text = fmt.Sprintf("generated %.0f and %.0f tokens (%+.1f %%)", x, y, 100*(y/x-1))
			return f, true
		}
	}
	return f, false
}

// outputSpread finds the spread of the generated totals over all runs of the same
// prompts.
func outputSpread(d *document) []audit.Finding {
	if len(d.runs) > manyRuns {
		return nil
	}
	var out []audit.Finding
	done := map[*citedRun]bool{}
	requested := requestedByRun(d.file)
	for i, a := range d.runs {
		if done[a] || !(a.value("total_output_tokens") > 0) {
			continue
		}
		lo, hi, n := a, a, 1
		for j, b := range d.runs[i+1:] {
			if b.value("completed") != a.value("completed") || b.value("total_input_tokens") != a.value("total_input_tokens") || requested[i+1+j] != requested[i] {
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
		if n < fewestSpread || y/x-1 < answersSpread {
			continue
		}
		f := audit.Finding{Type: "unequal-work", Severity: audit.Note, Place: hi.run.Place, Expected: fmt.Sprintf("ratio %.4f", y/x),
			Figures: []audit.Cited{lo.cite("total_output_tokens"), hi.cite("total_output_tokens")},
			Text:    fmt.Sprintf("%d blocks of the same prompts generated %.0f to %.0f tokens, a spread of %.2g %%", n, x, y, 100*(y/x-1))}
		if y/x-1 > answersDoubtful {
			f.Severity = audit.Warning
		}
		out = append(out, f)
	}
	return out
}

// Shares of prompt tokens.
const (
	mostlyPrompt    = 0.8  // a total throughput tells little of the generation
	nearlyAllPrompt = 0.95 // it tells nothing
	sharesDiffer    = 0.02 // rows that far apart are of different workloads
)

// promptTotals finds tables and statements of total token throughput where nearly
// all tokens are prompt.
func promptTotals(d *document) []audit.Finding {
	var out []audit.Finding
	seen := map[int]bool{}
	for _, l := range d.statements {
		for _, t := range l.citations {
			if t.metric != "total_token_throughput" || l.kind != inProse || seen[l.line] || len(t.runs) == 0 || t.named.kind != "total" {
				continue
			}
			if r := t.runs[0]; r.promptShare() >= mostlyPrompt {
				seen[l.line] = true
				out = append(out, audit.Finding{Type: "totals-across-workloads", Severity: audit.Note, Place: d.place(l.line), Figures: []audit.Cited{t.cited(), r.cite("output_throughput")},
					Expected: fmt.Sprintf("%.0f tok/s generated", r.value("output_throughput")),
					Text:     fmt.Sprintf("%.0f %% of the tokens of %q are prompt: generation is %.0f tok/s", 100*r.promptShare(), t.Text, r.value("output_throughput"))})
			}
		}
	}
	return append(out, tableTotals(d)...)
}

// tableTotals finds tables whose rows of total throughput are of different
// lengths, at least one of them nearly all prompt.
func tableTotals(d *document) []audit.Finding {
	var out []audit.Finding
	for i, p := range d.rows {
		if i > 0 && d.rows[i-1].table == p.table {
			continue
		}
		lo, hi := 2.0, 0.0
		var low, high comparedRow
		for _, q := range d.rows[i:] {
			if q.table != p.table {
				break
			}
			if q.to == nil || q.changed[0].metric != "total_token_throughput" {
				continue
			}
			share := q.to.promptShare()
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
		if hi < nearlyAllPrompt || hi-lo < sharesDiffer {
			continue
		}
		out = append(out, audit.Finding{Type: "totals-across-workloads", Severity: audit.Note, Place: d.place(high.line),
			Figures:  []audit.Cited{low.changed[0].cited(), high.changed[0].cited(), high.to.cite("output_throughput")},
			Expected: fmt.Sprintf("%.2f tok/s generated", high.to.value("output_throughput")),
			Text: fmt.Sprintf("total token throughput does not compare between the rows: of %q %.1f %% is prompt (%.2f tok/s generated), of %q %.1f %%",
				high.label, 100*hi, high.to.value("output_throughput"), low.label, 100*lo)})
	}
	return out
}
