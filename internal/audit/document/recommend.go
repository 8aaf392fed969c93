package document

import (
	"fmt"
	"strconv"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
)

// recommendation is the command that a document recommends: the first serving
// command before its first block, under a heading or caption that says so.
func (d *document) recommendation() (interop.Script, bool) {
	for _, c := range d.file.Doc.Scripts {
		if len(d.runs) == 0 || c.Line > d.runs[0].run.Place.Line {
			break
		}
		head := strings.ToLower(strings.Join(c.Section, " ") + " " + c.Caption)
		if c.Kind == interop.ScriptServing && (strings.Contains(head, "conclusion") || strings.Contains(head, "recommend")) {
			return c, true
		}
	}
	return interop.Script{}, false
}

// recommended checks the recommended command against the blocks.
func recommended(d *document) []audit.Finding {
	c, ok := d.recommendation()
	if !ok {
		return nil
	}
	cmd := command.Read(c.Text)
	return append(underuse(d, c, cmd), unmeasured(d, c, cmd)...)
}

// underuse reports a recommended command that leaves GPUs idle although the
// figures it stands for were multiplied or the baseline used more.
func underuse(d *document, c interop.Script, cmd command.Setup) []audit.Finding {
	have, used := d.gpus(), cmd.GPUs()
	if used == 0 || have <= used {
		return nil
	}
	for _, p := range d.rows {
		more := p.from != nil && p.from.command.GPUs() > used
		f, b := p.changed[0], p.base[0]
		if f.Times < 2 && !more || !f.named.isRate() || f.Value <= 0 || b.Value <= 0 {
			continue
		}
		one := fmt.Sprintf("%s instead of %s tok/s (%+.1f %%)", strconv.FormatFloat(f.Value, 'f', 2, 64), b.Text, 100*(f.Value/b.Value-1))
		return []audit.Finding{{Type: "recommended-underuses-gpus", Severity: audit.Warning, Place: d.place(c.Line), Figures: []audit.Cited{b.cited(), f.cited()}, Expected: one,
			Text: fmt.Sprintf("the recommended command starts one replica on %d of %d GPUs, which was measured at %s", used, have, one)}}
	}
	return nil
}

// unmeasured reports a recommended command with which no block was measured.
func unmeasured(d *document, c interop.Script, cmd command.Setup) []audit.Finding {
	var nearest []command.Difference
	var at, exact *citedRun
	known := 0
	for _, sub := range d.runs {
		if sub.run.Header.Command == "" || !sub.command.Known() {
			continue
		}
		known++
		d := cmd.Differences(sub.command)
		if len(d) == 0 {
			if exact == nil || cmd.SharedFlags(sub.command) > cmd.SharedFlags(exact.command) {
				exact = sub
			}
			continue
		}
		if at == nil || len(d) < len(nearest) || len(d) == len(nearest) && d[0].Part != command.InEngine && nearest[0].Part == command.InEngine {
			nearest, at = d, sub
		}
	}
	if exact != nil {
		return elsewhere(d, c, cmd, exact)
	}
	if known == 0 || known < len(d.runs) || nearest[0].Part == command.InEngine {
		return nil // a block without a command may be the one
	}
	return []audit.Finding{{Type: "recommended-not-measured", Severity: audit.Warning, Place: d.place(c.Line), Expected: at.run.Header.Command,
		Figures: []audit.Cited{{Label: "nearest block", Line: at.run.Place.Line}},
		Text:    fmt.Sprintf("no block was measured with the recommended command: the nearest differs in %s", strings.Join(command.DifferenceTexts(nearest), ", "))}}
}

// elsewhere reports a recommended command that was measured, while the table
// of gains shows the figures of another.
func elsewhere(d *document, c interop.Script, cmd command.Setup, measured *citedRun) []audit.Finding {
	var other *comparedRow
	for i, p := range d.rows {
		if p.line > d.runs[0].run.Place.Line || p.to == nil || p.changed[0].metric == "" {
			continue
		}
		if d := cmd.Differences(p.to.command); p.to.run.Header.Command == "" || len(d) == 0 || d[0].Part == command.InEngine {
			return nil
		}
		if other == nil && p.to.sameWork(measured) {
			other = &d.rows[i]
		}
	}
	if other == nil {
		return nil
	}
	name := other.changed[0].metric
	got := strings.TrimSpace(measured.cite(name).Text)
	return []audit.Finding{{Type: "recommended-not-measured", Severity: audit.Warning, Place: d.place(c.Line), Figures: []audit.Cited{other.changed[0].cited(), measured.cite(name)}, Expected: got,
		Text: fmt.Sprintf("the table shows %s of a command that differs from the recommended one in %s; with the recommended one it was %s", other.changed[0].Text, strings.Join(command.DifferenceTexts(cmd.Differences(other.to.command)), ", "), got)}}
}

// betterBaselines finds gains quoted against a start that a ranking of the document
// puts below another.
func betterBaselines(d *document) []audit.Finding {
	for _, r := range d.rankings {
		if len(r.citations) < 2 {
			continue
		}
		best := r.citations[0]
		for _, t := range r.citations[1:] {
			if t.named.isRate() == (t.Value > best.Value) && t.Value != best.Value {
				best = t
			}
		}
		for _, p := range d.rows {
			if f, ok := betterBaseline(d, r, best, p); ok {
				return []audit.Finding{f}
			}
		}
	}
	return nil
}

// betterBaseline recomputes the gain of a row against the best start.
func betterBaseline(d *document, r ranking, best citation, p comparedRow) (audit.Finding, bool) {
	f, b := p.changed[0], p.base[0]
	if !p.ratio || !p.improves() || f.Times == 1 && f.fits(interop.Figure{Value: best.Value, Half: best.Half}) || b.fits(interop.Figure{Value: best.Value, Half: best.Half}) || !sameKind(best, b) {
		return audit.Finding{}, false
	}
	for _, t := range r.citations {
		if t.line != best.line || t.owner == best.owner || !t.fits(interop.Figure{Value: b.Value, Half: b.Half}) {
			continue
		}
		gain := f.total() / best.Value
		if !f.named.isRate() {
			gain = 1 / gain
		}
		out := audit.Finding{Type: "baseline-not-best", Severity: audit.Note, Place: d.place(p.line), Figures: []audit.Cited{b.cited(), best.cited(), f.cited()},
			Expected: fmt.Sprintf("%+.1f %%", 100*(gain-1)),
			Text:     fmt.Sprintf("the gain is quoted against %s (%s), while %s (%s) was the best start: against it the gain is %+.1f %%", t.owner, t.Text, best.owner, best.Text, 100*(gain-1))}
		if p.to != nil && p.to.command.Engine != "" && len(best.runs) > 0 && best.runs[0].command.Engine != "" && p.to.command.Engine != best.runs[0].command.Engine {
			out.Severity = audit.Warning // the better start was dropped
		}
		return out, true
	}
	return audit.Finding{}, false
}

// sameKind reports whether two figures are of one metric and unit.
func sameKind(a, b citation) bool { return a.named.isRate() == b.named.isRate() }
