package document

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
)

// manyRuns is the number of runs above which pairs of runs are not looked
// through: no document that a person wrote has as many.
const manyRuns = 200

// options checks the tables that give the gain of each option alone.
func options(s *study) []audit.Finding {
	var out []audit.Finding
	for _, o := range s.gains[:min(len(s.gains), manyRuns)] {
		out = append(out, s.untried(o)...)
		if o.ratio != nil {
			out = append(out, s.gain(o)...)
		} else {
			out = append(out, s.undecided(o)...)
		}
	}
	return out
}

// common are words of an option's name that say nothing of what it is.
func common(w string) bool {
	switch w {
	case "in", "of", "the", "a", "and", "for", "max", "maximum", "option", "options", "selection", "size", "number", "numbers", "tuning", "enable", "disable", "configuration", "config", "adjust", "adjustment", "with", "to", "on", "vs":
		return true
	}
	return false
}

// stem makes words comparable that differ in number or ending.
func stem(w string) string {
	for _, end := range []string{"ing", "ed", "s", "e"} {
		if t, ok := strings.CutSuffix(w, end); ok && len(t) >= 4 {
			return t
		}
	}
	return w
}

// keys are the stems of the words that tell an option from others.
func keys(name string) []string {
	var out []string
	for _, w := range wordsOf(name) {
		if !common(w.text) {
			out = append(out, stem(w.text))
		}
	}
	return out
}

// untried reports an option of which the document has no experiment: no
// heading, caption, command or line besides the table shares a word with it.
func (s *study) untried(o option) []audit.Finding {
	want := keys(o.name)
	if len(want) == 0 || slices.Contains(want, "total") || len(s.subjects) == 0 {
		return nil
	}
	has := func(text string) bool {
		return slices.ContainsFunc(keys(strings.ReplaceAll(text, "_", "-")), func(w string) bool { return slices.Contains(want, w) })
	}
	for _, h := range s.file.Doc.Sections {
		if has(h.Title) {
			return nil
		}
	}
	for _, c := range s.file.Doc.Scripts {
		if engine := c.Kind == interop.ScriptServing || c.Kind == interop.ScriptFlags; engine && (has(c.Text) || has(c.Note)) {
			return nil // a load generator has backends too
		}
	}
	for _, sub := range s.subjects {
		if has(sub.run.Header.Label("case")) {
			return nil
		}
	}
	for _, t := range s.file.Doc.Prose {
		if len(t.Text) < 60 && has(t.Text) {
			return nil // a line that serves as a heading
		}
	}
	return []audit.Finding{{Type: "option-without-run", Severity: audit.Warning, Place: s.place(o.line), Figures: []audit.Cited{{Label: o.name, Line: o.line}},
		Text: fmt.Sprintf("the table lists %q, of which the document has no experiment", o.name)}}
}

// step is a pair of runs that gives an option's gain.
type step struct {
	from, to *subject
	times    float64
	metric   string
	changes  []string
}

// gain looks for the runs that give the gain of an option.
func (s *study) gain(o option) []audit.Finding {
	var best *step
	for _, st := range s.steps(o) {
		if best == nil || s.closer(o, st, *best) {
			best = &st
		}
	}
	if best == nil {
		if len(s.subjects) < 2 || len(s.subjects) > manyRuns || len(s.file.Faults) > 0 || s.product(o) || s.citedGain(o) {
			return nil
		}
		return []audit.Finding{{Type: "percentage-wrong", Severity: audit.Error, Place: s.place(o.line), Figures: []audit.Cited{{Label: o.name, Text: o.ratio.Text, Line: o.line}},
			Text: fmt.Sprintf("no two blocks of the same workload give the %s of %q", o.ratio.Text, o.name)}}
	}
	var out []audit.Finding
	a, b := best.from.cite(best.metric), best.to.cite(best.metric)
	if math.Abs(o.ratio.Value) < 100*usualNoise && o.ratio.Value != 0 {
		out = append(out, audit.Finding{Type: "within-noise", Severity: audit.Warning, Place: s.place(o.line), Figures: []audit.Cited{a, b}, Expected: "below 2 %",
			Text: fmt.Sprintf("the %s of %q is within the noise of single runs (%s and %s)", o.ratio.Text, o.name, a.Text, b.Text)})
	}
	changes := best.changes
	if best.times > 1 {
		changes = append(changes, fmt.Sprintf("a multiplication by %.0f", best.times))
	}
	if others := o.foreign(changes); len(others) > 1 || len(others) == 1 && (len(changes) > 1 || others[0] == "the engine") {
		out = append(out, audit.Finding{Type: "baseline-mixed", Severity: audit.Warning, Place: s.place(o.line), Figures: []audit.Cited{a, b}, Expected: s.single(*best),
			Text: fmt.Sprintf("the %s of %q (%s to %s) has other causes in it: by the commands %s", o.ratio.Text, o.name, a.Text, b.Text, best.causes(others))})
	}
	return out
}

// causes writes changes, and that of the engine by its names.
func (st step) causes(changes []string) string {
	for i, c := range changes {
		if c == "the engine" {
			changes[i] = fmt.Sprintf("another engine (%s, %s)", command.EngineTitle(st.from.command.Engine), command.EngineTitle(st.to.command.Engine))
		} else if rest, ok := strings.CutPrefix(c, "the model "); ok {
			changes[i] = "another model " + rest
		}
	}
	return joinAnd(changes)
}

// foreign are the changes that are not the option's own by its name.
func (o option) foreign(changes []string) []string {
	want := keys(o.name)
	return slices.DeleteFunc(slices.Clone(changes), func(c string) bool {
		own := keys(c)
		switch {
		case command.FeatureOf(command.FlagName(c)) == "layout" || command.FlagName(c) == "ep":
			own = []string{"parallel", "parallelism"}
		case strings.HasPrefix(c, "the model"):
			own = []string{stem("quantization"), "model"}
		}
		return slices.ContainsFunc(own, func(w string) bool { return slices.Contains(want, w) })
	})
}

// citedGain reports whether two figures that the text itself cites give the
// gain, or whether the text speaks of times that no block prints: what is wrong
// with those is said where they stand.
func (s *study) citedGain(o option) bool {
	said := audit.Between(o.ratio.lo(), o.ratio.hi())
	var all []term
	for _, l := range s.lines {
		for _, t := range l.terms {
			if !s.knows(t.measure) || t.measure.kind == "time" && len(t.runs) == 0 {
				return true
			}
			if t.Value > 0 && len(all) < 300 {
				all = append(all, t)
			}
		}
	}
	for _, a := range all {
		for _, b := range all {
			r := b.span().Over(a.span())
			if !a.measure.rate() {
				r = a.span().Over(b.span())
			}
			if a.Unit == b.Unit && a.measure.same(b.measure) && (len(a.runs) == 0 || len(b.runs) == 0) && audit.Between(100*(r.Lo-1), 100*(r.Hi-1)).Meets(said) {
				return true
			}
		}
	}
	return false
}

// steps lists the pairs of runs of one workload whose figures give the gain.
func (s *study) steps(o option) []step {
	var out []step
	if len(s.subjects) > manyRuns {
		return nil
	}
	said := audit.Between(o.ratio.lo(), o.ratio.hi())
	factors := []float64{1}
	for _, l := range s.lines {
		for _, t := range l.terms {
			if f := float64(t.Times); f > 1 && !slices.Contains(factors, f) {
				factors = append(factors, f)
			}
		}
	}
	for _, a := range s.subjects {
		for _, b := range s.subjects {
			if a == b || !a.sameWork(b) {
				continue
			}
			for _, name := range []string{"total_token_throughput", "output_throughput", "mean_e2el_ms"} {
				x, inA := a.figures[name]
				y, inB := b.figures[name]
				if !inA || !inB || x.Value <= 0 || y.Value <= 0 {
					continue
				}
				for _, n := range append(factors, perEach(a, b)...) {
					if stepFits(x, y, n, said) {
						out = append(out, step{a, b, n, name, b.command.DifferingFlags(a.command)})
						break
					}
				}
			}
		}
	}
	return out
}

// perEach is the factor that makes a gain one per GPU, where the two commands
// use different numbers of them.
func perEach(a, b *subject) []float64 {
	from, to := a.command.GPUs(), b.command.GPUs()
	if from == 0 || to == 0 || from == to {
		return nil
	}
	return []float64{float64(from) / float64(to)}
}

// stepFits reports whether two figures give the printed gain.
func stepFits(x, y interop.Figure, n float64, said audit.Interval) bool {
	from, to := audit.Between(x.Value-x.Half, x.Value+x.Half), audit.Between(n*(y.Value-y.Half), n*(y.Value+y.Half))
	r := to.Over(from)
	if strings.HasSuffix(x.Name, "_ms") {
		r = from.Over(to)
	}
	return audit.Between(100*(r.Lo-1), 100*(r.Hi-1)).Meets(said)
}

// closer reports whether a step is likelier the one that the option means than
// another: its second run stands under the option's name, and less changes.
func (s *study) closer(o option, a, b step) bool {
	if x, y := s.under(o, a.to), s.under(o, b.to); x != y {
		return x > y
	}
	if a.times != b.times {
		return a.times < b.times
	}
	return len(a.changes) < len(b.changes)
}

// under counts the words of the option's name in the headings of a run.
func (s *study) under(o option, sub *subject) int {
	n := 0
	want := keys(o.name)
	for w := range sub.words {
		if slices.Contains(want, stem(w)) {
			n++
		}
	}
	return n
}

// single is the gain of the option's run against the run that differs from it
// in one thing, the best of them.
func (s *study) single(st step) string {
	if st.times > 1 {
		return fmt.Sprintf("%+.1f %% without the multiplication", 100*(st.to.value(st.metric)/st.from.value(st.metric)-1))
	}
	var best *subject
	for _, sub := range s.subjects {
		if sub == st.to || !sub.sameWork(st.to) || !(sub.value(st.metric) > 0) || len(st.to.command.DifferingFlags(sub.command)) != 1 || sub.command.Engine != st.to.command.Engine {
			continue
		}
		if best == nil || sub.run.Place.Line < best.run.Place.Line {
			best = sub
		}
	}
	if best == nil {
		return ""
	}
	r := st.to.value(st.metric) / best.value(st.metric)
	if strings.HasSuffix(st.metric, "_ms") {
		r = 1 / r
	}
	return fmt.Sprintf("%+.1f %% against %s, which differs in %s alone", 100*(r-1), strings.TrimSpace(best.cite(st.metric).Text), st.to.command.DifferingFlags(best.command)[0])
}

// product reports whether the gain is the product of the other rows': a total.
func (s *study) product(o option) bool {
	lo, hi := 1.0, 1.0
	for _, g := range s.gains {
		if g.ratio != nil && g.line != o.line {
			lo, hi = lo*(1+g.ratio.lo()/100), hi*(1+g.ratio.hi()/100)
		}
	}
	return audit.Between(100*(lo-1), 100*(hi-1)).Meets(audit.Between(o.ratio.lo(), o.ratio.hi()))
}

// undecided notes an option without a claimed gain whose runs lie so close to
// the best one without it that single runs show nothing either way.
func (s *study) undecided(o option) []audit.Finding {
	if len(s.subjects) > manyRuns {
		return nil
	}
	var out []audit.Finding
	for _, sub := range s.subjects {
		if s.under(o, sub) < max(1, len(keys(o.name))-1) {
			continue
		}
		for _, ref := range s.subjects {
			name := "total_token_throughput"
			x, y := ref.value(name), sub.value(name)
			if ref == sub || ref.run.Place.Line > sub.run.Place.Line || !ref.sameWork(sub) || s.under(o, ref) > 0 || !(math.Abs(y/x-1) < usualNoise) ||
				len(sub.command.DifferingFlags(ref.command)) > 1 || sub.command.Engine != ref.command.Engine || sub.copies(ref) {
				continue
			}
			by := fmt.Sprintf("%+.1f %%", 100*(y/x-1))
			out = append(out, audit.Finding{Type: "within-noise", Severity: audit.Note, Place: s.place(o.line), Figures: []audit.Cited{ref.cite(name), sub.cite(name)}, Expected: by,
				Text: fmt.Sprintf("%q shows no effect: %s against %s tok/s is %s, within the noise of single runs", o.name, strings.TrimSpace(sub.cite(name).Text), strings.TrimSpace(ref.cite(name).Text), by)})
			break
		}
	}
	return out
}

// mixed checks tables of options whose rows contain each other, "X && Y"
// beside "Y", all against one baseline.
func mixed(s *study) []audit.Finding {
	var out []audit.Finding
	for i, p := range s.rows {
		if i > 0 && s.rows[i-1].table == p.table {
			continue
		}
		var table []pair
		for _, q := range s.rows[i:] {
			if q.table != p.table {
				break
			}
			table = append(table, q)
		}
		out = append(out, s.mixedTable(table)...)
	}
	return out
}

// parts splits the name of a combined option.
func parts(name string) []string {
	var out []string
	for p := range strings.SplitSeq(name, "&&") {
		for q := range strings.SplitSeq(p, " + ") {
			if q = strings.ToLower(strings.TrimSpace(q)); q != "" {
				out = append(out, q)
			}
		}
	}
	return out
}

// within returns the row that holds most of the parts of another and no
// others.
func within(rows []pair, of pair) (pair, bool) {
	all := parts(of.label)
	var best pair
	most := 0
	for _, r := range rows {
		some := parts(r.label)
		if len(some) >= len(all) || len(some) <= most || slices.ContainsFunc(some, func(p string) bool { return !slices.Contains(all, p) }) ||
			r.base[0].Text != of.base[0].Text || !r.fresh[0].measure.same(of.fresh[0].measure) || r.line == of.line {
			continue
		}
		best, most = r, len(some)
	}
	return best, most > 0
}

// mixedTable recomputes the gains of combined options against the option that
// they contain.
func (s *study) mixedTable(rows []pair) []audit.Finding {
	if len(rows) > 100 {
		return nil
	}
	var all, better []string
	var figures []audit.Cited
	line := 0
	for _, r := range rows {
		in, ok := within(rows, r)
		if !ok || r.fresh[0].Value <= 0 || in.fresh[0].Value <= 0 {
			continue
		}
		speed := r.fresh[0].total() / in.fresh[0].total()
		if !r.fresh[0].measure.rate() {
			speed = 1 / speed
		}
		text := fmt.Sprintf("%s %.2fx against %s", r.label, speed, in.label)
		text += s.variants(r, in)
		all = append(all, text)
		if speed >= 1.005 {
			better = append(better, r.label)
		}
		for _, x := range []pair{in, r} {
			if c := (audit.Cited{Label: x.label, Text: x.fresh[0].Text, Line: x.line}); !slices.Contains(figures, c) {
				figures = append(figures, c)
			}
		}
		if line == 0 {
			line = r.line
		}
	}
	if len(all) == 0 {
		return nil
	}
	text := fmt.Sprintf("combined options are compared with %s, which has none of their parts: against the part that was measured alone, ", rows[0].base[0].Text)
	switch n := len(all) - len(better); {
	case len(better) == 0:
		text += fmt.Sprintf("none of the %d is faster", len(all))
	case n > 0:
		text += fmt.Sprintf("%d of %d are not faster, only %s", n, len(all), joinAnd(better))
	default:
		text += "their gains are smaller"
	}
	return []audit.Finding{{Type: "baseline-mixed", Severity: audit.Warning, Place: s.place(line), Figures: figures, Expected: strings.Join(all, "; "), Text: text}}
}

// variants are the factors of the other runs under the heading of a row, of
// which the table shows the best.
func (s *study) variants(r, in pair) string {
	name := r.fresh[0].metric
	if r.to == nil || name == "" || len(s.subjects) > manyRuns {
		return ""
	}
	var out []string
	for _, sub := range s.subjects {
		section := sub.run.Place.Section
		if sub == r.to || sub.copies(r.to) || !sub.sameWork(r.to) || !(sub.value(name) > 0) || !slices.ContainsFunc(section, func(h string) bool { return strings.EqualFold(h, r.label) }) {
			continue
		}
		speed := sub.value(name) / r.to.value(name) * r.fresh[0].total() / in.fresh[0].total()
		if !r.fresh[0].measure.rate() {
			speed = 1 / speed
		}
		out = append(out, fmt.Sprintf("%s %.2fx", section[len(section)-1], speed))
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}
