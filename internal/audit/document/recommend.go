package document

import (
	"fmt"
	"strconv"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// recommendation is the command that a document recommends: the first serving
// command before its first block, under a heading or caption that says so.
func (s *study) recommendation() (interop.Script, bool) {
	for _, c := range s.file.Doc.Scripts {
		if len(s.subjects) == 0 || c.Line > s.subjects[0].run.Place.Line {
			break
		}
		head := strings.ToLower(strings.Join(c.Section, " ") + " " + c.Caption)
		if c.Kind == interop.ScriptServing && (strings.Contains(head, "conclusion") || strings.Contains(head, "recommend")) {
			return c, true
		}
	}
	return interop.Script{}, false
}

// gpus is the number of GPUs that the document has, 0 where it does not say.
func (s *study) gpus() int {
	if s.options.GPUs > 0 {
		return s.options.GPUs
	}
	most := 0
	for _, sub := range s.subjects {
		if n, err := strconv.Atoi(sub.run.Header.Label(result.LabelGPUs)); err == nil {
			most = max(most, n)
		}
	}
	return most
}

// recommended checks the recommended command against the blocks.
func recommended(s *study) []audit.Finding {
	c, ok := s.recommendation()
	if !ok {
		return nil
	}
	cmd := command.Read(c.Text)
	return append(s.underuse(c, cmd), s.unmeasured(c, cmd)...)
}

// underuse reports a recommended command that leaves GPUs idle although the
// figures it stands for were multiplied or the baseline used more.
func (s *study) underuse(c interop.Script, cmd command.Setup) []audit.Finding {
	have, used := s.gpus(), cmd.GPUs()
	if used == 0 || have <= used {
		return nil
	}
	for _, p := range s.rows {
		more := p.from != nil && p.from.command.GPUs() > used
		f, b := p.fresh[0], p.base[0]
		if f.Times < 2 && !more || !f.measure.rate() || f.Value <= 0 || b.Value <= 0 {
			continue
		}
		one := fmt.Sprintf("%s instead of %s tok/s (%+.1f %%)", strconv.FormatFloat(f.Value, 'f', 2, 64), b.Text, 100*(f.Value/b.Value-1))
		return []audit.Finding{{Type: "recommended-underuses-gpus", Severity: audit.Warning, Place: s.place(c.Line), Figures: []audit.Cited{b.cited(), f.cited()}, Expected: one,
			Text: fmt.Sprintf("the recommended command starts one replica on %d of %d GPUs, which was measured at %s", used, have, one)}}
	}
	return nil
}

// unmeasured reports a recommended command with which no block was measured.
func (s *study) unmeasured(c interop.Script, cmd command.Setup) []audit.Finding {
	var nearest []string
	var at, exact *subject
	known := 0
	for _, sub := range s.subjects {
		if sub.run.Header.Command == "" || !sub.command.Known() {
			continue
		}
		known++
		d := cmd.DifferingFlags(sub.command)
		if len(d) == 0 {
			if exact == nil || cmd.SharedFlags(sub.command) > cmd.SharedFlags(exact.command) {
				exact = sub
			}
			continue
		}
		if at == nil || len(d) < len(nearest) || len(d) == len(nearest) && d[0] != "the engine" && nearest[0] == "the engine" {
			nearest, at = d, sub
		}
	}
	if exact != nil {
		return s.elsewhere(c, cmd, exact)
	}
	if known == 0 || known < len(s.subjects) || nearest[0] == "the engine" {
		return nil // a block without a command may be the one
	}
	return []audit.Finding{{Type: "recommended-not-measured", Severity: audit.Warning, Place: s.place(c.Line), Expected: at.run.Header.Command,
		Figures: []audit.Cited{{Label: "nearest block", Line: at.run.Place.Line}},
		Text:    fmt.Sprintf("no block was measured with the recommended command: the nearest differs in %s", strings.Join(nearest, ", "))}}
}

// elsewhere reports a recommended command that was measured, while the table
// of gains shows the figures of another.
func (s *study) elsewhere(c interop.Script, cmd command.Setup, measured *subject) []audit.Finding {
	var other *pair
	for i, p := range s.rows {
		if p.line > s.subjects[0].run.Place.Line || p.to == nil || p.fresh[0].metric == "" {
			continue
		}
		if d := cmd.DifferingFlags(p.to.command); p.to.run.Header.Command == "" || len(d) == 0 || d[0] == "the engine" {
			return nil
		}
		if other == nil && p.to.sameWork(measured) {
			other = &s.rows[i]
		}
	}
	if other == nil {
		return nil
	}
	name := other.fresh[0].metric
	got := strings.TrimSpace(measured.cite(name).Text)
	return []audit.Finding{{Type: "recommended-not-measured", Severity: audit.Warning, Place: s.place(c.Line), Figures: []audit.Cited{other.fresh[0].cited(), measured.cite(name)}, Expected: got,
		Text: fmt.Sprintf("the table shows %s of a command that differs from the recommended one in %s; with the recommended one it was %s", other.fresh[0].Text, strings.Join(cmd.DifferingFlags(other.to.command), ", "), got)}}
}

// starts finds gains quoted against a start that a ranking of the document
// puts below another.
func starts(s *study) []audit.Finding {
	for _, r := range s.rankings {
		if len(r.terms) < 2 {
			continue
		}
		best := r.terms[0]
		for _, t := range r.terms[1:] {
			if t.measure.rate() == (t.Value > best.Value) && t.Value != best.Value {
				best = t
			}
		}
		for _, p := range s.rows {
			if f, ok := s.otherStart(r, best, p); ok {
				return []audit.Finding{f}
			}
		}
	}
	return nil
}

// otherStart recomputes the gain of a row against the best start.
func (s *study) otherStart(r ranking, best term, p pair) (audit.Finding, bool) {
	f, b := p.fresh[0], p.base[0]
	if !p.ratio || !p.improves() || f.Times == 1 && f.fits(interop.Figure{Value: best.Value, Half: best.Half}) || b.fits(interop.Figure{Value: best.Value, Half: best.Half}) || !sameKind(best, b) {
		return audit.Finding{}, false
	}
	for _, t := range r.terms {
		if t.line != best.line || t.name == best.name || !t.fits(interop.Figure{Value: b.Value, Half: b.Half}) {
			continue
		}
		gain := f.total() / best.Value
		if !f.measure.rate() {
			gain = 1 / gain
		}
		out := audit.Finding{Type: "baseline-not-best", Severity: audit.Note, Place: s.place(p.line), Figures: []audit.Cited{b.cited(), best.cited(), f.cited()},
			Expected: fmt.Sprintf("%+.1f %%", 100*(gain-1)),
			Text:     fmt.Sprintf("the gain is quoted against %s (%s), while %s (%s) was the best start: against it the gain is %+.1f %%", t.name, t.Text, best.name, best.Text, 100*(gain-1))}
		if p.to != nil && p.to.command.Engine != "" && len(best.runs) > 0 && best.runs[0].command.Engine != "" && p.to.command.Engine != best.runs[0].command.Engine {
			out.Severity = audit.Warning // the better start was dropped
		}
		return out, true
	}
	return audit.Finding{}, false
}

// sameKind reports whether two figures are of one metric and unit.
func sameKind(a, b term) bool { return a.measure.rate() == b.measure.rate() }
