package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/result"
)

// prose checks what lines of prose say of the runs of a model.
func prose(s *study) []audit.Finding {
	var out []audit.Finding
	setups := s.setups()
	for _, l := range s.lines {
		if l.kind == "prose" {
			out = append(out, s.cached(l, setups)...)
			out = append(out, s.unlike(l, setups)...)
			out = append(out, s.selective(l, setups)...)
		}
	}
	for _, t := range s.file.Doc.Prose {
		out = append(out, s.size(t)...)
		out = append(out, s.bound(t, setups)...)
		out = append(out, s.degradation(t, setups)...)
	}
	out = append(out, s.missing(setups)...)
	return append(out, s.machines()...)
}

// setup is the runs of one configuration of a model under one heading, at
// several loads.
type setup struct {
	model string
	nodes string
	runs  []*subject
}

// setups are the configurations of a document that measures several models.
func (s *study) setups() []setup {
	var out []setup
	for _, sub := range s.subjects {
		model, nodes := sub.run.Header.Model, sub.run.Header.Label(result.LabelNodes)
		if n := len(out); n > 0 && out[n-1].model == model && out[n-1].nodes == nodes && slices.Equal(out[n-1].runs[0].run.Place.Section, sub.run.Place.Section) {
			out[n-1].runs = append(out[n-1].runs, sub)
			continue
		}
		out = append(out, setup{model, nodes, []*subject{sub}})
	}
	return out
}

// warm reports whether the TTFT of one prompt alone is that of a prefix cache:
// under four decode steps, while each of several prompts at once took more than
// two and a half times as long, by the first token of the last of them.
func (g setup) warm(one *subject) (each float64, ok bool) {
	ttft, step := one.value("mean_ttft_ms"), one.value("mean_tpot_ms")
	if one.load() != 1 || !(ttft < 4*step) {
		return 0, false
	}
	for _, r := range g.runs {
		if last := r.value("p99_ttft_ms") / r.load(); r.load() >= 4 && last > 0 && (each == 0 || last < each) {
			each = last
		}
	}
	return each, each > 2.5*ttft
}

// cached reports prose that cites a TTFT which the prefix cache explains.
func (s *study) cached(l statement, setups []setup) []audit.Finding {
	var out []audit.Finding
	for _, t := range l.terms {
		if t.measure.kind != "ttft" {
			continue
		}
		for _, g := range setups {
			for _, r := range g.runs {
				if !slices.Contains(t.runs, r) || !s.spokenOf(l, t, g) {
					continue
				}
				if each, ok := g.warm(r); ok {
					out = append(out, audit.Finding{Type: "claim-on-cached-ttft", Severity: audit.Warning, Place: s.place(l.line),
						Figures: []audit.Cited{t.cited(), r.cite("mean_ttft_ms"), r.cite("mean_tpot_ms")}, Expected: fmt.Sprintf("%.0f ms", each),
						Text: fmt.Sprintf("TTFT of %s is %.1f decode steps, and prompts sent together took %.0f ms each: this prompt was in the prefix cache already", t.Text, r.value("mean_ttft_ms")/r.value("mean_tpot_ms"), each)})
				}
			}
		}
	}
	return out
}

// unlike reports prose that calls the TTFT of one prompt high, of a model that
// had no prompt in its cache, in a document whose others had.
func (s *study) unlike(l statement, setups []setup) []audit.Finding {
	var warmed *subject
	for _, g := range setups {
		for _, r := range g.runs {
			if _, ok := g.warm(r); ok && warmed == nil {
				warmed = r
			}
		}
	}
	if warmed == nil {
		return nil
	}
	for _, t := range l.terms {
		if t.measure.kind != "ttft" || len(t.runs) != 1 || t.runs[0].load() != 1 || !calledHigh(l.text, t) {
			continue
		}
		r := t.runs[0]
		if slices.ContainsFunc(setups, func(g setup) bool { _, ok := g.warm(r); return ok && slices.Contains(g.runs, r) }) {
			continue
		}
		return []audit.Finding{{Type: "claim-on-cached-ttft", Severity: audit.Warning, Place: s.place(l.line), Figures: []audit.Cited{t.cited(), warmed.cite("mean_ttft_ms")},
			Text: fmt.Sprintf("TTFT of %s is called high, but those it is compared with are hits in the prefix cache (%s ms at line %d)", t.Text, warmed.cite("mean_ttft_ms").Text, warmed.cite("mean_ttft_ms").Line)}}
	}
	return nil
}

// calledHigh reports whether the words before a figure compare it upwards.
func calledHigh(text string, t term) bool {
	plain, _ := unquote(text)
	words := wordsOf(plain[max(0, min(t.Start, len(plain))-24):min(t.Start, len(plain))])
	return len(words) > 0 && slices.Contains([]string{"higher", "slower", "worse", "high"}, words[len(words)-1].text)
}

// spokenOf reports whether a line speaks of a setup: it names its model, or no
// other run of the document has the figure.
func (s *study) spokenOf(l statement, t term, g setup) bool {
	if slices.ContainsFunc(names(l.text), g.runs[0].names) {
		return true
	}
	return !slices.ContainsFunc(t.runs, func(r *subject) bool { return !slices.Contains(g.runs, r) })
}

// names are the words of a text that may name a model: they have a hyphen and
// a digit.
func names(text string) []string {
	var out []string
	for w := range strings.FieldsSeq(text) {
		w = strings.Trim(w, ".,;:()*•`'\"’“”")
		if strings.Contains(w, "-") && strings.ContainsAny(w, "0123456789") && isWord(w[0]) {
			out = append(out, w)
		}
	}
	return out
}

// selective reports prose that cites one configuration of a model while
// another at the same load is better in that figure.
func (s *study) selective(l statement, setups []setup) []audit.Finding {
	for _, t := range l.terms {
		if len(t.runs) == 0 || t.metric == "" {
			continue
		}
		for _, g := range setups {
			at := slices.IndexFunc(g.runs, func(r *subject) bool { return slices.Contains(t.runs, r) })
			if at < 0 || g.nodes == "" || !slices.ContainsFunc(names(l.text), g.runs[0].names) {
				continue
			}
			for _, o := range setups {
				if o.model != g.model || o.nodes == g.nodes || o.nodes == "" {
					continue
				}
				if f, ok := s.other(l, t, g.runs[at], o); ok {
					return []audit.Finding{f}
				}
			}
		}
	}
	return nil
}

// other compares a cited run with the run of another configuration at the same
// load.
func (s *study) other(l statement, t term, run *subject, o setup) (audit.Finding, bool) {
	for _, r := range o.runs {
		x, y := run.value(t.metric), r.value(t.metric)
		if r.load() != run.load() || !(x > 0) || !(y > 0) {
			continue
		}
		gain := y/x - 1
		if !t.measure.rate() {
			gain = x/y - 1
		}
		if gain < usualNoise || slices.ContainsFunc(l.terms, func(u term) bool { return slices.Contains(u.runs, r) && u.metric == t.metric }) {
			continue
		}
		there := fmt.Sprintf("%s (%+.1f %%%s)", strings.TrimSpace(r.cite(t.metric).Text), 100*(y/x-1), perNode(run, r, t, y/x))
		return audit.Finding{Type: "selective-citation", Severity: audit.Note, Place: s.place(l.line), Figures: []audit.Cited{t.cited(), r.cite(t.metric)}, Expected: there,
			Text: fmt.Sprintf("%s is cited of the run on %s nodes; on %s nodes it was %s, which is not mentioned", t.Text, run.run.Header.Label(result.LabelNodes), o.nodes, there)}, true
	}
	return audit.Finding{}, false
}

// perNode is the change of a rate per node between runs on different numbers of
// them; "" for what is no rate.
func perNode(from, to *subject, t term, ratio float64) string {
	a, errA := strconv.ParseFloat(from.run.Header.Label(result.LabelNodes), 64)
	b, errB := strconv.ParseFloat(to.run.Header.Label(result.LabelNodes), 64)
	if errA != nil || errB != nil || !t.measure.rate() || !(a > 0) || !(b > 0) {
		return ""
	}
	return fmt.Sprintf(", %+.0f %% per node", 100*(ratio*a/b-1))
}

// degradation checks "degrades the hardest" by how much TTFT and TPOT grow from
// the smallest to the largest load of each setup.
func (s *study) degradation(t interop.Text, setups []setup) []audit.Finding {
	lower := strings.ToLower(t.Text)
	if !hardest().MatchString(lower) || len(setups) > manyRuns {
		return nil
	}
	at := slices.IndexFunc(setups, func(g setup) bool { return len(g.runs) > 1 && slices.ContainsFunc(names(t.Text), g.runs[0].names) })
	if at < 0 {
		return nil
	}
	for _, m := range []struct{ name, label string }{{"mean_ttft_ms", "TTFT"}, {"mean_tpot_ms", "TPOT"}} {
		own := 0.0
		for _, g := range setups {
			if g.model == setups[at].model {
				own = max(own, g.growth(m.name))
			}
		}
		worst := slices.MaxFunc(setups, func(a, b setup) int { return cmp.Compare(a.growth(m.name), b.growth(m.name)) })
		if most := worst.growth(m.name); own > 0 && most > own*(1+usualNoise) {
			where := worst.model
			if worst.nodes != "" {
				where += " on " + worst.nodes + " nodes"
			}
			return []audit.Finding{{Type: "degradation-claim", Severity: audit.Note, Place: s.place(t.Line), Expected: fmt.Sprintf("%.0fx against %.0fx", own, most),
				Figures: []audit.Cited{worst.least().cite(m.name), worst.most().cite(m.name)},
				Text:    fmt.Sprintf("%s of %s grows %.0fx from its smallest to its largest load, and that of %s %.0fx: it does not degrade the hardest in %s", m.label, setups[at].model, own, where, most, m.label)}}
		}
	}
	return nil
}

var hardest = audit.Pattern(`degrades? (?:the )?(?:hardest|most|worst)`)

// least and most are the runs of a setup at its smallest and largest load.
func (g setup) least() *subject { return slices.MinFunc(g.runs, byLoad) }
func (g setup) most() *subject  { return slices.MaxFunc(g.runs, byLoad) }

func byLoad(a, b *subject) int { return cmp.Compare(a.load(), b.load()) }

// growth is how many times as large a figure is at the largest load as at the
// smallest; 0 where it is not known.
func (g setup) growth(name string) float64 {
	if x := g.most().value(name) / g.least().value(name); x > 0 && !math.IsInf(x, 0) {
		return x
	}
	return 0
}

// missing finds configurations that lack a load which all others have.
func (s *study) missing(setups []setup) []audit.Finding {
	if len(setups) < 4 {
		return nil
	}
	count := map[float64]int{}
	for _, g := range setups {
		for _, n := range g.loads() {
			count[n]++
		}
	}
	var out []audit.Finding
	for _, g := range setups {
		for n, c := range count {
			if c == len(setups)-1 && !slices.Contains(g.loads(), n) && len(g.loads()) > 1 {
				out = append(out, audit.Finding{Type: "missing-cell", Severity: audit.Note, Place: g.runs[0].run.Place, Expected: fmt.Sprintf("%d of %d configurations have it", c, len(setups)),
					Text: fmt.Sprintf("%s has no run of %.0f requests, which all others have", cmp.Or(g.model, "this configuration"), n)})
			}
		}
	}
	slices.SortFunc(out, func(a, b audit.Finding) int {
		return cmp.Or(a.Place.Line-b.Place.Line, strings.Compare(a.Text, b.Text))
	})
	return out
}

// loads are the different loads of a setup.
func (g setup) loads() []float64 {
	var out []float64
	for _, r := range g.runs {
		if n := r.load(); n > 0 && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// machines finds a number of machines in the title that the blocks exceed:
// "6x", of which some run on 8 nodes.
func (s *study) machines() []audit.Finding {
	title := s.file.Doc.Title
	for w := range strings.FieldsSeq(title) {
		w = strings.TrimRight(strings.ToLower(w), "x×")
		n, err := strconv.Atoi(w)
		if err != nil || n < 2 || !strings.Contains(strings.ToLower(title), w+"x") && !strings.Contains(title, w+"×") {
			continue
		}
		for _, sub := range s.subjects {
			if nodes, err := strconv.Atoi(sub.run.Header.Label(result.LabelNodes)); err == nil && nodes > n {
				return []audit.Finding{{Type: "count-contradiction", Severity: audit.Note, Place: s.place(1), Expected: fmt.Sprintf("%d nodes", nodes),
					Figures: []audit.Cited{{Label: "nodes", Text: strconv.Itoa(nodes), Line: sub.run.Place.Line}},
					Text:    fmt.Sprintf("the title %q says %d, and blocks ran on %d nodes", title, n, nodes)}}
			}
		}
	}
	return nil
}

// size checks "smaller than MODEL" by the parameters that a token reads.
func (s *study) size(t interop.Text) []audit.Finding {
	lower := strings.ToLower(t.Text)
	i := strings.Index(lower, "smaller than ")
	if i < 0 {
		return nil
	}
	there := names(t.Text[i:])
	here := names(t.Text[:i])
	if len(there) == 0 || len(here) == 0 {
		return nil
	}
	a, okA := s.lookup(here[0])
	b, okB := s.lookup(there[0])
	if !okA || !okB || a.Active() <= b.Active() {
		return nil
	}
	return []audit.Finding{{Type: "size-claim", Severity: audit.Note, Place: s.place(t.Line), Expected: fmt.Sprintf("%.1fB against %.1fB active parameters", float64(a.Active())/1e9, float64(b.Active())/1e9),
		Text: fmt.Sprintf("a token of %s reads %.1fB parameters, one of %s %.1fB: in a decode step it is the larger model", here[0], float64(a.Active())/1e9, there[0], float64(b.Active())/1e9)}}
}

// lookup finds the model that a text's name means, by the headings of a run
// that has all its words.
func (s *study) lookup(name string) (arch.Model, bool) {
	if m, err := arch.LookupModel(name); err == nil {
		return m, true
	}
	for _, sub := range s.subjects {
		if m, ok := sub.shape(); ok && sub.names(name) {
			return m, true
		}
	}
	return arch.Model{}, false
}

// bound checks "latency-bound" of a model whose step at the highest load takes
// about as long as its weights take to read.
func (s *study) bound(t interop.Text, setups []setup) []audit.Finding {
	if !strings.Contains(strings.ToLower(t.Text), "latency-bound") {
		return nil
	}
	acc := s.accelerator()
	for _, g := range setups {
		nodes, err := strconv.Atoi(g.nodes)
		m, ok := g.runs[0].shape()
		if acc == nil || err != nil || nodes < 1 || !ok || !slices.ContainsFunc(names(t.Text), g.runs[0].names) {
			continue
		}
		top := g.most()
		floor := float64(m.WeightBytesPerGPU(nodes, 1, 1)) / (acc.BandwidthGBs * 1e9) * 1e3
		step := top.value("median_itl_ms")
		if top.load() < 16 || !(floor > step/2) || floor > step || math.IsNaN(step) {
			continue
		}
		return []audit.Finding{{Type: "bound-claim", Severity: audit.Note, Place: s.place(t.Line), Figures: []audit.Cited{top.cite("median_itl_ms")}, Expected: fmt.Sprintf("%.0f ms to read the weights", floor),
			Text: fmt.Sprintf("a median step of %.0f ms at %.0f requests is mostly the %.0f ms that the weights take to read: bound by bandwidth, not latency", step, top.load(), floor)}}
	}
	return nil
}

// accelerator is the one that the reader of the document gave, or that its
// title or hardware names.
func (s *study) accelerator() *arch.Accelerator {
	if s.options.Accelerator != nil {
		return s.options.Accelerator
	}
	text := s.file.Doc.Title
	if len(s.subjects) > 0 {
		text += " " + s.subjects[0].run.Header.Label(result.LabelHardware)
	}
	have := map[string]bool{}
	for _, w := range wordsOf(text) {
		have[w.text] = true
	}
	if have["spark"] || have["gb10"] {
		if a, err := arch.LookupAccelerator("gb10"); err == nil {
			return &a
		}
	}
	return nil
}
