package document

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
)

// recommendationWords show that a heading, a caption or the line above a command
// recommends it.
var recommendationWords = []string{"conclusion", "recommend", "best configuration", "best command", "final configuration", "suggested", "optimal configuration", "tl;dr"}

// recommends reports whether a text recommends what stands under it.
func recommends(text string) bool {
	low := strings.ToLower(text)
	return slices.ContainsFunc(recommendationWords, func(w string) bool { return strings.Contains(low, w) })
}

// captionLines is how far above a command the line stands that speaks of it.
const captionLines = 4

// recommendations are the commands that a document recommends, or the flags where
// it shows no more: those under a heading, a caption or a line that says so, of
// which no block is.
func (d *document) recommendations() []interop.Script {
	var out []interop.Script
	prose := d.file.Doc.Prose
	for i := range d.file.Doc.Scripts {
		c := &d.file.Doc.Scripts[i]
		if c.Kind != interop.ScriptServing && c.Kind != interop.ScriptFlags {
			continue
		}
		n := sort.Search(len(prose), func(i int) bool { return prose[i].Line >= c.Line })
		above := n > 0 && prose[n-1].Line >= c.Line-captionLines && recommends(prose[n-1].Text)
		if !above && !recommends(strings.Join(c.Section, " ")+" "+c.Caption+" "+c.Note) || slices.ContainsFunc(d.steps, func(s step) bool { return s.script == c }) {
			continue
		}
		if out = append(out, *c); len(out) == lookback {
			break
		}
	}
	return out
}

// recommended checks the recommended commands against the blocks.
func recommended(d *document) []audit.Finding {
	var out []audit.Finding
	for i, c := range d.recommendations() {
		cmd := command.Read(c.Text)
		if i == 0 && len(d.runs) > 0 && c.Line < d.runs[0].run.Place.Line && c.Kind == interop.ScriptServing {
			out = append(out, underuse(d, c, cmd)...)
		}
		out = append(out, unmeasured(d, c, cmd)...)
	}
	return out
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

// measuredBy is what a run was served by, as far as the document tells; false
// where it may be any command.
func (d *document) measuredBy(i int) (command.Setup, bool) {
	s := d.steps[i].setup
	s.Case = ""
	return s, d.runs[i].run.Header.Command != "" && s.Known()
}

// unmeasured reports a recommended command with which no block was measured, or
// none of those that the table beside it shows.
func unmeasured(d *document, c interop.Script, cmd command.Setup) []audit.Finding {
	var nearest []command.Difference
	at, exact, unknown := -1, -1, false
	for i := range d.runs {
		s, known := d.measuredBy(i)
		if !known {
			unknown = unknown || s.Engine == "" || cmd.Engine == "" || s.Engine == cmd.Engine
			continue
		}
		diff := cmd.Differences(s)
		switch {
		case len(diff) == 0:
			if exact < 0 || cmd.SharedFlags(s) > cmd.SharedFlags(d.steps[exact].setup) {
				exact = i
			}
		case at < 0 || farther(nearest, diff):
			nearest, at = diff, i
		}
	}
	if exact >= 0 || unknown {
		return elsewhere(d, c, cmd, exact)
	}
	if at < 0 {
		return nil
	}
	what := "the nearest differs in " + strings.Join(command.DifferenceTexts(nearest), ", ")
	if nearest[0].Part == command.InEngine {
		what = "every block is of another engine than " + command.EngineTitle(cmd.Engine)
	}
	r := d.runs[at].run
	return []audit.Finding{{Type: "recommended-not-measured", Severity: audit.Warning, Place: d.place(c.Line), Expected: r.Header.Command,
		Figures: []audit.Cited{{Label: "nearest block", Line: r.Place.Line}}, Text: "no block was measured with the recommended command: " + what}}
}

// farther reports whether a command differs in more than another: the engine is
// more than any flags.
func farther(a, b []command.Difference) bool {
	if x, y := a[0].Part == command.InEngine, b[0].Part == command.InEngine; x != y {
		return x
	}
	return len(b) < len(a)
}

// elsewhere reports a recommended command whose table of gains shows the figures
// of others. measured is a run with the command; -1 where none is known.
func elsewhere(d *document, c interop.Script, cmd command.Setup, measured int) []audit.Finding {
	var other *comparedRow
	var differ []command.Difference
	for i, p := range d.rows {
		beside := d.runs[0].run.Place.Line > p.line || sameChapter(d.place(p.line).Section, c.Section)
		if !beside || p.to == nil || p.changed[0].metric == "" {
			continue
		}
		s, known := d.measuredBy(slices.Index(d.runs, p.to))
		diff := cmd.Differences(s)
		if !known || len(diff) == 0 {
			return nil
		}
		if other == nil || measured >= 0 && !other.to.sameWork(d.runs[measured]) && p.to.sameWork(d.runs[measured]) {
			other, differ = &d.rows[i], diff
		}
	}
	if other == nil {
		return nil
	}
	f := audit.Finding{Type: "recommended-not-measured", Severity: audit.Warning, Place: d.place(c.Line), Figures: []audit.Cited{other.changed[0].cited()}}
	f.Text = fmt.Sprintf("the table shows %s of a command that differs from the recommended one in %s", other.changed[0].Text, strings.Join(command.DifferenceTexts(differ), ", "))
	name := other.changed[0].metric
	if measured >= 0 && other.to.sameWork(d.runs[measured]) && d.runs[measured].value(name) > 0 {
		f.Expected = strings.TrimSpace(d.runs[measured].cite(name).Text)
		f.Figures = append(f.Figures, d.runs[measured].cite(name))
		f.Text += "; with the recommended one it was " + f.Expected
	}
	return []audit.Finding{f}
}

// sameChapter reports whether two places stand under one outermost heading.
func sameChapter(a, b []string) bool { return len(a) > 0 && len(b) > 0 && a[0] == b[0] }

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
