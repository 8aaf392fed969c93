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

// optionGains checks the tables that give the gain of each option alone.
func optionGains(d *document) []audit.Finding {
	var out []audit.Finding
	for _, o := range d.optionRows[:min(len(d.optionRows), manyRuns)] {
		out = append(out, untriedOption(d, o)...)
		if o.ratio != nil {
			out = append(out, optionGain(d, o)...)
		} else if o.named.kind == "" || o.named.isRate() {
			out = append(out, noEffect(d, o)...)
		}
	}
	return out
}

// isCommonWord are words of an option's name that say nothing of what it is.
func isCommonWord(w string) bool {
	switch w {
	case "in", "of", "the", "a", "and", "for", "max", "maximum", "option", "options", "selection", "size", "number", "numbers", "tuning", "enable", "disable", "configuration", "config", "adjust", "adjustment", "with", "to", "on", "vs":
		return true
	}
	return false
}

// shortestStem is how many letters make a stem: a shorter one is many words'.
const shortestStem = 4

// wordStem makes words comparable that differ in number or ending.
func wordStem(w string) string {
	for _, end := range []string{"ing", "ed", "s", "e"} {
		if t, ok := strings.CutSuffix(w, end); ok && len(t) >= shortestStem {
			return t
		}
	}
	return w
}

// keywords are the stems of the words that tell an option from others.
func keywords(name string) []string {
	var out []string
	for _, w := range wordsOf(name) {
		if !isCommonWord(w.text) {
			out = append(out, wordStem(w.text))
		}
	}
	return out
}

// headingLength is how many bytes a line of prose has at most that serves as a
// heading.
const headingLength = 60

// untriedOption reports an option of which the document has no experiment: no
// heading, caption, command or line besides the table shares a word with it.
func untriedOption(d *document, o optionRow) []audit.Finding {
	want := keywords(o.name)
	if len(want) == 0 || slices.Contains(want, "total") || len(d.runs) == 0 {
		return nil
	}
	has := func(text string) bool {
		return slices.ContainsFunc(keywords(strings.ReplaceAll(text, "_", "-")), func(w string) bool { return slices.Contains(want, w) })
	}
	for _, h := range d.file.Doc.Sections {
		if has(h.Title) {
			return nil
		}
	}
	for _, c := range d.file.Doc.Scripts {
		if engine := c.Kind == interop.ScriptServing || c.Kind == interop.ScriptFlags; engine && (has(c.Text) || has(c.Note)) {
			return nil // a load generator has backends too
		}
	}
	for _, r := range d.runs {
		if has(r.run.Header.Label("case")) {
			return nil
		}
	}
	for _, t := range d.file.Doc.Prose {
		if len(t.Text) < headingLength && has(t.Text) {
			return nil // a line that serves as a heading
		}
	}
	return []audit.Finding{{Type: "option-without-run", Severity: audit.Warning, Place: d.place(o.line), Figures: []audit.Cited{{Label: o.name, Line: o.line}},
		Text: fmt.Sprintf("the table lists %q, of which the document has no experiment", o.name)}}
}

// runPair is a pair of runs that gives an option's gain.
type runPair struct {
	from, to *citedRun
	times    float64
	metric   string
	changes  []command.Difference
}

// optionGain looks for the runs that give the gain of an option.
func optionGain(d *document, o optionRow) []audit.Finding {
	var best *runPair
	for _, st := range gainPairs(d, o) {
		if best == nil || likelier(d, o, st, *best) {
			best = &st
		}
	}
	if best == nil {
		if len(d.runs) < 2 || len(d.runs) > manyRuns || d.unread() || isProduct(d, o) || citedGain(d, o) {
			return nil
		}
		f := d.wrongGain(o, fmt.Sprintf("no two blocks of the same workload give the %s of %q", o.ratio.Text, o.name))
		if !d.citesOthers(o) {
			f.Severity = audit.Error
		}
		return []audit.Finding{f}
	}
	a, b := best.from.cite(best.metric), best.to.cite(best.metric)
	if own := d.runsUnder(o); len(own) > 0 && !slices.ContainsFunc(own, func(r *citedRun) bool { return r == best.to || r.copies(best.to) }) && !isProduct(d, o) && !citedGain(d, o) {
		return []audit.Finding{d.wrongGain(o, fmt.Sprintf("no block under the heading of %q gives its %s: only others do by chance, as %s against %s (lines %d and %d)",
			o.name, o.ratio.Text, strings.TrimSpace(b.Text), strings.TrimSpace(a.Text), b.Line, a.Line))}
	}
	var out []audit.Finding
	if gain := o.gain(); math.Abs(gain.Lo+gain.Hi)/2 < 100*usualNoise && o.ratio.Value != 0 {
		out = append(out, audit.Finding{Type: "within-noise", Severity: audit.Warning, Place: d.place(o.line), Figures: []audit.Cited{a, b}, Expected: fmt.Sprintf("below %.0f %%", 100*usualNoise),
			Text: fmt.Sprintf("the %s of %q is within the noise of single runs (%s and %s)", o.ratio.Text, o.name, a.Text, b.Text)})
	}
	if f, ok := optionByDuration(d, o, best); ok {
		out = append(out, f)
	}
	changes := best.changes
	if best.times > 1 {
		changes = append(changes, command.Difference{Name: fmt.Sprintf("a multiplication by %.0f", best.times)})
	}
	if others := o.otherChanges(changes); len(others) > 1 || len(others) == 1 && (len(changes) > 1 || others[0].Part == command.InEngine) {
		out = append(out, audit.Finding{Type: "baseline-mixed", Severity: audit.Warning, Place: d.place(o.line), Figures: []audit.Cited{a, b}, Expected: singleChangeGain(d, *best),
			Text: fmt.Sprintf("the %s of %q (%s to %s) has other causes in it: by the commands %s", o.ratio.Text, o.name, a.Text, b.Text, causes(others))})
	}
	return out
}

// wrongGain is the finding on a gain that no blocks give. What the option's own
// blocks give instead is told where there are some.
func (d *document) wrongGain(o optionRow, text string) audit.Finding {
	f := audit.Finding{Type: "percentage-wrong", Severity: audit.Warning, Place: d.place(o.line), Figures: []audit.Cited{{Label: o.name, Text: o.ratio.Text, Line: o.line}}, Text: text}
	printed := o.gain()
	least := math.Inf(1)
	for _, to := range d.runsUnder(o) {
		for _, from := range d.runs {
			if from.run.Place.Line >= to.run.Place.Line || !from.sameWork(to) {
				continue
			}
			for _, name := range o.metrics() {
				x, y := from.figures[name], to.figures[name]
				if !(x.Value > 0) || !(y.Value > 0) {
					continue
				}
				gain := 100 * (y.Value/x.Value - 1)
				if strings.HasSuffix(name, "_ms") && printed.Hi > 0 {
					gain = 100 * (x.Value/y.Value - 1)
				}
				if off := math.Abs(gain - (printed.Lo+printed.Hi)/2); off < least {
					least, f.Expected = off, fmt.Sprintf("nearest: %+.1f %%, %s against %s", gain, strings.TrimSpace(y.Text), strings.TrimSpace(x.Text))
				}
			}
		}
	}
	return f
}

// runsUnder are the runs whose headings have most words of an option's name, at
// least half of them.
func (d *document) runsUnder(o optionRow) []*citedRun {
	var out []*citedRun
	most := (len(keywords(o.name)) + 1) / 2
	for _, r := range d.runs[:min(len(d.runs), manyRuns)] {
		n := sharedWords(d, o, r)
		if n > most {
			out, most = nil, n
		}
		if n == most && n > 0 {
			out = append(out, r)
		}
	}
	return out
}

// citesOthers reports whether the text speaks of figures of the option's kind
// that no block prints, of which the gain may be.
func (d *document) citesOthers(o optionRow) bool {
	return slices.ContainsFunc(d.statements, func(l statement) bool {
		return slices.ContainsFunc(l.citations, func(t citation) bool {
			return len(t.runs) == 0 && t.named.isRate() == (o.named.kind == "" || o.named.isRate())
		})
	})
}

// gain is the printed gain in percent.
func (o optionRow) gain() audit.Interval {
	printed := o.ratio.interval()
	if o.ratio.Unit == asFactor {
		printed = change(printed)
	}
	rate := o.named.kind == "" || o.named.isRate()
	if less := o.word == "slower" || o.word == "lower" || o.word == "less" || o.word == "worse"; less && rate && o.ratio.Value > 0 && o.ratio.Unit == inPercent {
		printed = audit.Between(-printed.Hi, -printed.Lo)
	}
	return printed
}

// metrics are the metrics that the gain may be of.
func (o optionRow) metrics() []string {
	switch {
	case o.named.kind == "":
		return []string{"total_token_throughput", "output_throughput", "mean_e2el_ms"}
	case o.named.kind == "throughput":
		return []string{"total_token_throughput", "output_throughput", "request_throughput"}
	}
	return o.named.metrics()
}

// optionByDuration recomputes the gain of an option from tokens and duration.
func optionByDuration(d *document, o optionRow, p *runPair) (audit.Finding, bool) {
	x, offX := p.to.byDuration(p.metric)
	y, offY := p.from.byDuration(p.metric)
	if !offX && !offY || x.Hi == 0 || y.Hi == 0 {
		return audit.Finding{}, false
	}
	gain := change(audit.Between(x.Lo*p.times, x.Hi*p.times).Over(y))
	printed := o.gain()
	if gain.Meets(printed) {
		return audit.Finding{}, false
	}
	right, told := (gain.Lo+gain.Hi)/2, (printed.Lo+printed.Hi)/2
	return gainFinding(d.place(o.line), fmt.Sprintf("%s of %q", o.ratio.Text, o.name), fmt.Sprintf("%+.1f %%", right), p.metric, p.to, p.from,
		right*told < 0, math.Abs(right-told)), true
}

// causes writes changes, those of the engine and the model by their names.
func causes(changes []command.Difference) string {
	var out []string
	for _, c := range changes {
		switch c.Part {
		case command.InEngine:
			out = append(out, fmt.Sprintf("another engine (%s, %s)", command.EngineTitle(c.From), command.EngineTitle(c.To)))
		case command.InModel:
			out = append(out, fmt.Sprintf("another model (%s, %s)", c.From, c.To))
		default:
			out = append(out, c.Name)
		}
	}
	return joinAnd(out)
}

// otherChanges are the changes that are not the option's own by its name.
func (o optionRow) otherChanges(changes []command.Difference) []command.Difference {
	want := keywords(o.name)
	return slices.DeleteFunc(slices.Clone(changes), func(c command.Difference) bool {
		own := keywords(c.String())
		switch {
		case command.FeatureOf(command.FlagName(c.Name)) == "layout" || command.FlagName(c.Name) == "ep":
			own = []string{"parallel", "parallelism"}
		case c.Part == command.InModel:
			own = []string{wordStem("quantization"), "model"}
		}
		return slices.ContainsFunc(own, func(w string) bool { return slices.Contains(want, w) })
	})
}

// mostCitations bounds the figures of a text that are paired.
const mostCitations = 300

// citedGain reports whether two figures that the text itself cites give the
// gain, or one of them and a block's: what is wrong with those is said where
// they stand.
func citedGain(d *document, o optionRow) bool {
	printed := o.gain()
	var all []citation
	for _, l := range d.statements {
		for _, t := range l.citations {
			if t.Value > 0 && len(all) < mostCitations {
				all = append(all, t)
			}
		}
	}
	for _, a := range all {
		if len(a.runs) == 0 && slices.ContainsFunc(d.runs[:min(len(d.runs), manyRuns)], func(r *citedRun) bool { return o.gives(a, r) }) {
			return true
		}
		for _, b := range all {
			r := b.span().Over(a.span())
			if !a.named.isRate() {
				r = a.span().Over(b.span())
			}
			if a.Unit == b.Unit && a.named.sameAs(b.named) && (len(a.runs) == 0 || len(b.runs) == 0) && change(r).Meets(printed) {
				return true
			}
		}
	}
	return false
}

// gives reports whether a cited figure and one of a run give the gain.
func (o optionRow) gives(t citation, r *citedRun) bool {
	for _, name := range o.metrics() {
		f, ok := r.figures[name]
		if !ok || !(f.Value > 0) || t.named.isRate() == strings.HasSuffix(name, "_ms") {
			continue
		}
		up := t.span().Over(spanOf(f))
		if change(up).Meets(o.gain()) || change(spanOf(f).Over(t.span())).Meets(o.gain()) {
			return true
		}
	}
	return false
}

// gainPairs lists the pairs of runs of one workload whose figures give the gain.
func gainPairs(d *document, o optionRow) []runPair {
	var out []runPair
	if len(d.runs) > manyRuns {
		return nil
	}
	printed := o.gain()
	factors := []float64{1}
	for _, l := range d.statements {
		for _, t := range l.citations {
			if f := float64(t.Times); f > 1 && !slices.Contains(factors, f) {
				factors = append(factors, f)
			}
		}
	}
	for _, a := range d.runs {
		for _, b := range d.runs {
			if a == b || !a.sameWork(b) {
				continue
			}
			for _, name := range o.metrics() {
				x, inA := a.figures[name]
				y, inB := b.figures[name]
				if !inA || !inB || x.Value <= 0 || y.Value <= 0 {
					continue
				}
				for _, n := range append(factors, perEach(a, b)...) {
					if stepFits(x, y, n, printed, o.named.kind != "" || o.ratio.Value < 0) {
						out = append(out, runPair{a, b, n, name, b.command.Differences(a.command)})
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
func perEach(a, b *citedRun) []float64 {
	from, to := a.command.GPUs(), b.command.GPUs()
	if from == 0 || to == 0 || from == to {
		return nil
	}
	return []float64{float64(from) / float64(to)}
}

// stepFits reports whether two figures give the printed gain; of times, one may
// be told as a reduction where the text speaks of them.
func stepFits(x, y interop.Figure, n float64, printed audit.Interval, reductions bool) bool {
	from, to := audit.Between(x.Value-x.Half, x.Value+x.Half), audit.Between(n*(y.Value-y.Half), n*(y.Value+y.Half))
	if !strings.HasSuffix(x.Name, "_ms") {
		return change(to.Over(from)).Meets(printed)
	}
	less := change(to.Over(from)) // of a time, a gain is told as speed or as what is less
	return change(from.Over(to)).Meets(printed) || reductions && (less.Meets(printed) || audit.Between(-less.Hi, -less.Lo).Meets(printed))
}

// likelier reports whether a step is likelier the one that the option means than
// another: its second run stands under the option's name, and less changes.
func likelier(d *document, o optionRow, a, b runPair) bool {
	if x, y := sharedWords(d, o, a.to), sharedWords(d, o, b.to); x != y {
		return x > y
	}
	if a.times != b.times {
		return a.times < b.times
	}
	return len(a.changes) < len(b.changes)
}

// sharedWords counts the words of the option's name in the headings of a run.
func sharedWords(d *document, o optionRow, r *citedRun) int {
	n := 0
	want := keywords(o.name)
	for w := range r.words {
		if slices.Contains(want, wordStem(w)) {
			n++
		}
	}
	return n
}

// singleChangeGain is the gain of the option's run against the run that differs from it
// in one thing, the best of them.
func singleChangeGain(d *document, st runPair) string {
	if st.times > 1 {
		return fmt.Sprintf("%+.1f %% without the multiplication", 100*(st.to.value(st.metric)/st.from.value(st.metric)-1))
	}
	var best *citedRun
	for _, r := range d.runs {
		if r == st.to || !r.sameWork(st.to) || !(r.value(st.metric) > 0) || len(st.to.command.Differences(r.command)) != 1 || r.command.Engine != st.to.command.Engine {
			continue
		}
		if best == nil || r.run.Place.Line < best.run.Place.Line {
			best = r
		}
	}
	if best == nil {
		return ""
	}
	r := st.to.value(st.metric) / best.value(st.metric)
	if strings.HasSuffix(st.metric, "_ms") {
		r = 1 / r
	}
	return fmt.Sprintf("%+.1f %% against %s, which differs in %s alone", 100*(r-1), strings.TrimSpace(best.cite(st.metric).Text), st.to.command.Differences(best.command)[0])
}

// fewestFactors is how many other gains a total is the product of.
const fewestFactors = 2

// isProduct reports whether the gain is the product of the other rows': a total.
func isProduct(d *document, o optionRow) bool {
	lo, hi, factors := 1.0, 1.0, 0
	for _, g := range d.optionRows {
		if g.ratio != nil && g.line != o.line && g.named.kind == o.named.kind {
			factors++
			lo, hi = lo*(1+g.gain().Lo/100), hi*(1+g.gain().Hi/100)
		}
	}
	return factors >= fewestFactors && audit.Between(100*(lo-1), 100*(hi-1)).Meets(o.gain())
}

// noEffect notes an option without a claimed gain whose runs lie so close to
// the best one without it that single runs show nothing either way.
func noEffect(d *document, o optionRow) []audit.Finding {
	if len(d.runs) > manyRuns {
		return nil
	}
	var out []audit.Finding
	for _, r := range d.runs {
		if sharedWords(d, o, r) < max(1, len(keywords(o.name))-1) {
			continue
		}
		for _, ref := range d.runs {
			name := "total_token_throughput"
			x, y := ref.value(name), r.value(name)
			if ref == r || ref.run.Place.Line > r.run.Place.Line || !ref.sameWork(r) || sharedWords(d, o, ref) > 0 || !(math.Abs(y/x-1) < usualNoise) ||
				len(r.command.Differences(ref.command)) > 1 || r.command.Engine != ref.command.Engine || r.copies(ref) {
				continue
			}
			by := fmt.Sprintf("%+.1f %%", 100*(y/x-1))
			out = append(out, audit.Finding{Type: "within-noise", Severity: audit.Note, Place: d.place(o.line), Figures: []audit.Cited{ref.cite(name), r.cite(name)}, Expected: by,
				Text: fmt.Sprintf("%q shows no effect: %s against %s tok/s is %s, within the noise of single runs", o.name, strings.TrimSpace(r.cite(name).Text), strings.TrimSpace(ref.cite(name).Text), by)})
			break
		}
	}
	return out
}
