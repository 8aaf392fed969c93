package document

import (
	"fmt"
	"math"

	"perflab/internal/audit"
)

// runSpread returns the relative spread of a metric between runs of one
// configuration and the same prompts in the document; false where it has no
// such runs.
func (d *document) runSpread(name string) (float64, bool) {
	most, found := 0.0, false
	if len(d.runs) > manyRuns {
		return 0, false
	}
	for i, a := range d.runs {
		if !a.command.Known() {
			continue
		}
		for _, b := range d.runs[i+1:] {
			x, y := a.value(name), b.value(name)
			if !(x > 0) || !(y > 0) || a.copies(b) || !a.sameWork(b) || a.command.Engine != b.command.Engine || len(a.command.Differences(b.command)) > 0 ||
				a.command.Model == "" && !a.words["baseline"] || !sameCase(a, b) {
				continue
			}
			most, found = max(most, math.Abs(x/y-1)), true
		}
	}
	return most, found
}

// gainsWithinNoise finds summaries that call one run faster by next to nothing.
func gainsWithinNoise(d *document) []audit.Finding {
	var out []audit.Finding
	for _, l := range d.statements {
		for _, c := range l.comparisons {
			if l.kind == inSummary && c.delta != nil && c.verb == "faster" && c.base.Value > 0 && c.changed.Value > 0 {
				out = append(out, gainWithinNoise(d, c)...)
			}
		}
	}
	return out
}

// gainWithinNoise finds that two figures differ by less than runs of one
// configuration do.
func gainWithinNoise(d *document, c comparison) []audit.Finding {
	least := usualNoise
	if len(c.changed.runs) > 0 {
		if f, ok := d.runSpread(c.changed.metric); ok {
			least = max(least, f)
		}
	}
	by := math.Abs(c.changed.total()/c.base.total() - 1)
	if by >= least {
		return nil
	}
	text := fmt.Sprintf("%s of %s and %s differ by %.2g %%, which is within the noise of single runs", c.changed.named, c.changed.Text, c.base.Text, 100*by)
	if by == 0 {
		text = fmt.Sprintf("%s is %s in both: neither is faster", c.changed.named, c.changed.Text)
	}
	return []audit.Finding{{Type: "within-noise", Severity: audit.Warning, Place: d.place(c.line), Figures: []audit.Cited{c.changed.cited(), c.base.cited()},
		Expected: fmt.Sprintf("more than %.2g %%, the noise of single runs", 100*least), Text: text}}
}
