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

// selectiveCitations finds prose that cites the worse of two configurations.
func selectiveCitations(d *document) []audit.Finding {
	var out []audit.Finding
	for _, l := range d.statements {
		if l.kind == inProse {
			out = append(out, selectiveCitation(d, l)...)
		}
	}
	return out
}

// selectiveCitation reports prose that cites one configuration of a model while
// another at the same load is better in that figure.
func selectiveCitation(d *document, l statement) []audit.Finding {
	for _, t := range l.citations {
		if len(t.runs) == 0 || t.metric == "" {
			continue
		}
		for _, g := range d.configurations {
			at := slices.IndexFunc(g.runs, func(r *citedRun) bool { return slices.Contains(t.runs, r) })
			if at < 0 || g.nodes == "" || !slices.ContainsFunc(modelNames(l.text), g.runs[0].named) {
				continue
			}
			for _, o := range d.configurations {
				if o.model != g.model || o.nodes == g.nodes || o.nodes == "" {
					continue
				}
				if f, ok := otherConfiguration(d, l, t, g.runs[at], o); ok {
					return []audit.Finding{f}
				}
			}
		}
	}
	return nil
}

// otherConfiguration compares a cited run with the run of another configuration at the same
// load.
func otherConfiguration(d *document, l statement, t citation, run *citedRun, o configuration) (audit.Finding, bool) {
	for _, r := range o.runs {
		x, y := run.value(t.metric), r.value(t.metric)
		if r.requests() != run.requests() || !(x > 0) || !(y > 0) {
			continue
		}
		gain := y/x - 1
		if !t.named.isRate() {
			gain = x/y - 1
		}
		if gain < usualNoise || slices.ContainsFunc(l.citations, func(u citation) bool { return slices.Contains(u.runs, r) && u.metric == t.metric }) {
			continue
		}
		there := fmt.Sprintf("%s (%+.1f %%%s)", strings.TrimSpace(r.cite(t.metric).Text), 100*(y/x-1), perNodeChange(run, r, t, y/x))
		return audit.Finding{Type: "selective-citation", Severity: audit.Note, Place: d.place(l.line), Figures: []audit.Cited{t.cited(), r.cite(t.metric)}, Expected: there,
			Text: fmt.Sprintf("%s is cited of the run on %s nodes; on %s nodes it was %s, which is not mentioned", t.Text, run.run.Header.Label(result.LabelNodes), o.nodes, there)}, true
	}
	return audit.Finding{}, false
}

// perNodeChange is the change of a rate per node between runs on different numbers of
// them; "" for what is no rate.
func perNodeChange(from, to *citedRun, t citation, ratio float64) string {
	a, errA := strconv.ParseFloat(from.run.Header.Label(result.LabelNodes), 64)
	b, errB := strconv.ParseFloat(to.run.Header.Label(result.LabelNodes), 64)
	if errA != nil || errB != nil || !t.named.isRate() || !(a > 0) || !(b > 0) {
		return ""
	}
	return fmt.Sprintf(", %+.0f %% per node", 100*(ratio*a/b-1))
}

// inLines checks each line of prose.
func inLines(d *document, check func(*document, interop.Text) []audit.Finding) []audit.Finding {
	var out []audit.Finding
	for _, t := range d.file.Doc.Prose {
		out = append(out, check(d, t)...)
	}
	return out
}

// degradationClaims finds claims of the worst degradation that figures contradict.
func degradationClaims(d *document) []audit.Finding { return inLines(d, degradationClaim) }

// degradationClaim checks "degrades the hardest" by how much TTFT and TPOT grow from
// the smallest to the largest load of each setup.
func degradationClaim(d *document, t interop.Text) []audit.Finding {
	lower := strings.ToLower(t.Text)
	if !hardest().MatchString(lower) || len(d.configurations) > manyRuns {
		return nil
	}
	at := slices.IndexFunc(d.configurations, func(g configuration) bool {
		return len(g.runs) > 1 && slices.ContainsFunc(modelNames(t.Text), g.runs[0].named)
	})
	if at < 0 {
		return nil
	}
	for _, m := range []struct{ name, label string }{{"mean_ttft_ms", "TTFT"}, {"mean_tpot_ms", "TPOT"}} {
		own := 0.0
		for _, g := range d.configurations {
			if g.model == d.configurations[at].model {
				own = max(own, g.growth(m.name))
			}
		}
		worst := slices.MaxFunc(d.configurations, func(a, b configuration) int { return cmp.Compare(a.growth(m.name), b.growth(m.name)) })
		if most := worst.growth(m.name); own > 0 && most > own*(1+usualNoise) {
			where := worst.model
			if worst.nodes != "" {
				where += " on " + worst.nodes + " nodes"
			}
			return []audit.Finding{{Type: "degradation-claim", Severity: audit.Note, Place: d.place(t.Line), Expected: fmt.Sprintf("%.0fx against %.0fx", own, most),
				Figures: []audit.Cited{worst.smallestLoad().cite(m.name), worst.largestLoad().cite(m.name)},
				Text:    fmt.Sprintf("%s of %s grows %.0fx from its smallest to its largest load, and that of %s %.0fx: it does not degrade the hardest in %s", m.label, d.configurations[at].model, own, where, most, m.label)}}
		}
	}
	return nil
}

var hardest = audit.Pattern(`degrades? (?:the )?(?:hardest|most|worst)`)

// fewestConfigurations is how many of them make a load that one of them lacks
// stand out.
const fewestConfigurations = 4

// missingLoads finds configurations that lack a load which all others have.
func missingLoads(d *document) []audit.Finding {
	if len(d.configurations) < fewestConfigurations {
		return nil
	}
	count := map[float64]int{}
	for _, g := range d.configurations {
		for _, n := range g.loads() {
			count[n]++
		}
	}
	var out []audit.Finding
	for _, g := range d.configurations {
		for n, c := range count {
			if c == len(d.configurations)-1 && !slices.Contains(g.loads(), n) && len(g.loads()) > 1 {
				out = append(out, audit.Finding{Type: "missing-cell", Severity: audit.Note, Place: g.runs[0].run.Place, Expected: fmt.Sprintf("%d of %d configurations have it", c, len(d.configurations)),
					Text: fmt.Sprintf("%s has no run of %.0f requests, which all others have", cmp.Or(g.model, "this configuration"), n)})
			}
		}
	}
	slices.SortFunc(out, func(a, b audit.Finding) int {
		return cmp.Or(a.Place.Line-b.Place.Line, strings.Compare(a.Text, b.Text))
	})
	return out
}

// nodeCount finds a number of machines in the title that the blocks exceed:
// "6x", of which some run on 8 nodes.
func nodeCount(d *document) []audit.Finding {
	title := d.file.Doc.Title
	for w := range strings.FieldsSeq(title) {
		w = strings.TrimRight(strings.ToLower(w), "x×")
		n, err := strconv.Atoi(w)
		if err != nil || n < 2 || !strings.Contains(strings.ToLower(title), w+"x") && !strings.Contains(title, w+"×") {
			continue
		}
		for _, r := range d.runs {
			if nodes, err := strconv.Atoi(r.run.Header.Label(result.LabelNodes)); err == nil && nodes > n {
				return []audit.Finding{{Type: "count-contradiction", Severity: audit.Note, Place: d.place(1), Expected: fmt.Sprintf("%d nodes", nodes),
					Figures: []audit.Cited{{Label: "nodes", Text: strconv.Itoa(nodes), Line: r.run.Place.Line}},
					Text:    fmt.Sprintf("the title %q says %d, and blocks ran on %d nodes", title, n, nodes)}}
			}
		}
	}
	return nil
}

// modelSizes finds comparisons of sizes that the models contradict.
func modelSizes(d *document) []audit.Finding { return inLines(d, modelSize) }

// modelSize checks "smaller than MODEL" by the parameters that a token reads.
func modelSize(d *document, t interop.Text) []audit.Finding {
	lower := strings.ToLower(t.Text)
	i := strings.Index(lower, "smaller than ")
	if i < 0 {
		return nil
	}
	there := modelNames(t.Text[i:])
	here := modelNames(t.Text[:i])
	if len(there) == 0 || len(here) == 0 {
		return nil
	}
	a, okA := d.modelNamed(here[0])
	b, okB := d.modelNamed(there[0])
	if !okA || !okB || a.Active() <= b.Active() {
		return nil
	}
	return []audit.Finding{{Type: "size-claim", Severity: audit.Note, Place: d.place(t.Line), Expected: fmt.Sprintf("%.1fB against %.1fB active parameters", float64(a.Active())/1e9, float64(b.Active())/1e9),
		Text: fmt.Sprintf("a token of %s reads %.1fB parameters, one of %s %.1fB: in a decode step it is the larger model", here[0], float64(a.Active())/1e9, there[0], float64(b.Active())/1e9)}}
}

// modelNamed finds the model that a text's name means, by the headings of a run
// that has all its words.
func (d *document) modelNamed(name string) (arch.Model, bool) {
	if m, err := arch.LookupModel(name); err == nil {
		return m, true
	}
	for _, r := range d.runs {
		if m, ok := r.model(); ok && r.named(name) {
			return m, true
		}
	}
	return arch.Model{}, false
}

// boundRequests is the load from which a step is more than the wait for one
// stream: below it a step is mostly latency whatever bounds it.
const boundRequests = 16

// boundShare is the least part of a step that reading the weights takes where
// bandwidth bounds it.
const boundShare = 0.5

// boundClaims finds models called latency-bound whose steps are bound by
// bandwidth.
func boundClaims(d *document) []audit.Finding { return inLines(d, boundClaim) }

// boundClaim checks "latency-bound" of a model whose step at the highest load takes
// about as long as its weights take to read.
func boundClaim(d *document, t interop.Text) []audit.Finding {
	if !strings.Contains(strings.ToLower(t.Text), "latency-bound") {
		return nil
	}
	acc := d.accelerator()
	for _, g := range d.configurations {
		nodes, err := strconv.Atoi(g.nodes)
		m, ok := g.runs[0].model()
		if acc == nil || err != nil || nodes < 1 || !ok || !slices.ContainsFunc(modelNames(t.Text), g.runs[0].named) {
			continue
		}
		top := g.largestLoad()
		floor := float64(m.WeightBytesPerGPU(nodes, 1, 1)) / (acc.BandwidthGBs * 1e9) * 1e3
		step := top.value("median_itl_ms")
		if top.requests() < boundRequests || !(floor > boundShare*step) || floor > step || math.IsNaN(step) {
			continue
		}
		return []audit.Finding{{Type: "bound-claim", Severity: audit.Note, Place: d.place(t.Line), Figures: []audit.Cited{top.cite("median_itl_ms")}, Expected: fmt.Sprintf("%.0f ms to read the weights", floor),
			Text: fmt.Sprintf("a median step of %.0f ms at %.0f requests is mostly the %.0f ms that the weights take to read: bound by bandwidth, not latency", step, top.requests(), floor)}}
	}
	return nil
}

// accelerator is the one that the reader of the document gave, or that its
// title or hardware names.
func (d *document) accelerator() *arch.Accelerator {
	if d.options.Accelerator != nil {
		return d.options.Accelerator
	}
	text := d.file.Doc.Title
	if len(d.runs) > 0 {
		text += " " + d.runs[0].run.Header.Label(result.LabelHardware)
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
