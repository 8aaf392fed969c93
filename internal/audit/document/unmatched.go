package document

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// What decides how a figure without a block is told.
const (
	fewestDigits = 3    // significant ones from which a figure was copied and not rounded by hand
	nearFigure   = 1.05 // ratio up to which a figure of a block is the one that may have been meant
)

// unmatchedFigures finds figures that no block has.
func unmatchedFigures(d *document) []audit.Finding {
	var out []audit.Finding
	for _, l := range d.statements {
		out = append(out, unmatched(d, l)...)
	}
	return out
}

// unmatched reports the figures of a statement that no block has. Where parts
// of the document could not be read, they may be there. A table that has no
// figure of any block is of other measurements, and one with more rows than
// there are blocks is of more than the document shows.
func unmatched(d *document, l statement) []audit.Finding {
	if l.table != nil && !summarises(d, l.table) {
		return nil
	}
	f := audit.Finding{Type: "figure-unmatched", Severity: audit.Error, Place: d.place(l.line)}
	var texts, near []string
	for _, t := range l.citations {
		if len(t.runs) > 0 || !d.knows(t.named) {
			continue
		}
		if t.Approx || l.kind == inProse || t.Digits < fewestDigits || d.unread() || l.table != nil && len(l.table.Rows) > len(d.runs) {
			f.Severity = audit.Warning
		}
		f.Figures = append(f.Figures, t.cited())
		texts = append(texts, fmt.Sprintf("%s of %s", t.named, t.Text))
		if n := nearest(d, t); n != "" {
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
func summarises(d *document, t *interop.Table) bool {
	return slices.ContainsFunc(d.statements, func(l statement) bool {
		return l.table == t && slices.ContainsFunc(l.citations, func(x citation) bool { return len(x.runs) > 0 })
	})
}

// nearest is the figure of the blocks that is closest to a cited one; "" where
// none is near.
func nearest(d *document, t citation) string {
	best, least := "", nearFigure
	for _, name := range t.named.metrics() {
		for _, r := range d.runs {
			f, ok := r.figures[name]
			if ratio := max(f.Value/t.Value, t.Value/f.Value); ok && f.Value > 0 && ratio < least {
				best, least = strings.TrimSpace(f.Text), ratio
			}
		}
		if best != "" {
			return best
		}
	}
	return ""
}
