package document

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// failuresNotReported counts blocks that do not tell of failures.
func failuresNotReported(d *document) []audit.Finding {
	var at []int
	for i := range d.file.Runs {
		r := &d.file.Runs[i]
		if _, ok := r.Figure("failed"); !ok && r.Header.Label(result.LabelFailed) == "" {
			at = append(at, r.Place.Line)
		}
	}
	if len(at) == 0 {
		return nil
	}
	return []audit.Finding{{Type: "failures-not-reported", Severity: audit.Note, Place: d.at(at[0], nil),
		Text: fmt.Sprintf("%d of %s (%s) do not say how many requests failed, so the successful ones are of an unknown number", len(at), audit.Counted(len(d.file.Runs), "block"), audit.Lines(at))}}
}

// repeatWords are found where a document repeats runs or states spread.
var repeatWords = audit.Pattern(`(?i)±|std\.? ?dev|standard deviation|confidence interval|\brepeat(s|ed)? (runs?|measurements?|\d|each)|(average|mean|median) of (\d+|three|five|several) runs|\b\d+ (runs|repetitions|repeats) (each|per)`)

// repeatsTold reports whether a document speaks of repeated runs or their
// spread.
func repeatsTold(d *document) bool {
	return slices.ContainsFunc(d.file.Doc.Prose, func(t interop.Text) bool { return repeatWords().MatchString(t.Text) })
}

// noRepeats finds documents that measure each configuration once.
func noRepeats(d *document) []audit.Finding {
	if repeatsTold(d) {
		return nil
	}
	groups, order := map[string][]step{}, []string{}
	for _, s := range withoutCopies(d.steps) {
		key := repeatKey(s)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], s)
	}
	var first, a, b step
	least, of := math.Inf(1), ""
	loads := map[string]step{}
	for _, key := range order {
		if len(groups[key]) > 1 {
			return nil
		}
		s := groups[key][0]
		if first.run == nil {
			first = s
		}
		last, seen := loads[s.load]
		if d, what := distance(last, s); seen && d > 0 && d < least {
			least, a, b, of = d, last, s, what
		}
		loads[s.load] = s
	}
	if len(order) < 2 {
		return nil
	}
	text := fmt.Sprintf("each of the %d measurements is a single run without an interval", len(order))
	if !math.IsInf(least, 1) {
		text += fmt.Sprintf("; the closest that are compared (lines %d and %d) differ by %.1f %% in %s", a.run.Place.Line, b.run.Place.Line, 100*least, of)
	}
	return []audit.Finding{{Type: "no-repeats", Severity: audit.Note, Place: d.at(first.run.Place.Line, nil), Text: text}}
}

// distance is how far two steps are apart in what they are compared by: latency at
// a rate that was set, throughput else.
func distance(a, b step) (share float64, of string) {
	rate, got := 0.0, 0.0
	if b.run != nil {
		rate, got = b.run.Header.Rate, b.run.Value("request_throughput")
	}
	if d := difference(a, b, "mean_e2el_ms"); d > 0 && rate > 0 && got > 0.8*rate {
		return d, "mean latency"
	}
	return difference(a, b, "total_token_throughput"), "total throughput"
}

// repeatKey is equal for runs that are measurements of one thing.
func repeatKey(s step) string {
	key := s.setup.Key() + "\x00" + s.load
	if s.run.Header.Command == "" {
		key += "\x00" + strings.Join(s.run.Place.Section, "/") + "\x00" + s.role
	}
	return key + "\x00" + command.ModelCore(s.run.Header.Model) + "\x00" + unrecordedChanges(s)
}

// withoutCopies are the steps without those that print the figures of one before.
func withoutCopies(steps []step) []step {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool {
		p := s.run.FigureKey()
		was := seen[p]
		seen[p] = true
		return was
	})
}

// difference is how far a figure of two runs is apart, as a share of the
// first; 0 where one lacks it.
func difference(a, b step, name string) float64 {
	if a.run == nil || b.run == nil {
		return 0
	}
	x, y := a.run.Value(name), b.run.Value(name)
	if x <= 0 || y <= 0 {
		return 0
	}
	return math.Abs(y/x - 1)
}

// duplicates finds blocks that print what an earlier one prints.
func duplicates(d *document) []audit.Finding {
	first := map[string]step{}
	var copies, others []string
	var at, otherAt int
	for _, s := range d.steps {
		if len(s.run.Figures) < audit.FewestCopied {
			continue
		}
		print := s.run.FigureKey()
		was, seen := first[print]
		if !seen {
			first[print] = s
			continue
		}
		pair := fmt.Sprintf("%d = %d", s.run.Place.Line, was.run.Place.Line)
		if d := command.Changes(was.setup, s.setup, true); was.run.Header.Command != "" && s.run.Header.Command != "" && len(d) > 0 && was.setup.Case == s.setup.Case {
			others = append(others, pair+" ("+strings.Join(command.Texts(d), "; ")+")")
			otherAt = firstLine(otherAt, s.run.Place.Line)
			continue
		}
		copies = append(copies, pair)
		at = firstLine(at, s.run.Place.Line)
	}
	var out []audit.Finding
	if len(copies) > 0 {
		out = append(out, audit.Finding{Type: "duplicate-block", Severity: audit.Warning, Place: d.at(at, nil),
			Text: fmt.Sprintf("%s every figure of an earlier one: copies are no second measurements (lines %s)", audit.BlocksRepeat(len(copies)), audit.ShortList(copies))})
	}
	if len(others) > 0 {
		out = append(out, audit.Finding{Type: "duplicate-block", Severity: audit.Warning, Place: d.at(otherAt, nil),
			Text: fmt.Sprintf("%s every figure of an earlier one under another command, so one of the two was not measured (lines %s)", audit.BlocksRepeat(len(others)), audit.ShortList(others))})
	}
	return out
}

// firstLine keeps the first line found.
func firstLine(line, found int) int {
	if line != 0 {
		return line
	}
	return found
}

// defaultFlags are flags that repeat what their engine does anyway.
var defaultFlags = map[string]string{command.VLLM + "/max-cudagraph-capture-size": "512"}

// repeated are the measurements of one setup and load.
type repeated struct {
	first, worst step // worst is the farthest from the first
	at           []int
	note         string
}

// repeatedSetups finds measurements of one command and load.
func repeatedSetups(d *document) []audit.Finding {
	groups := map[string]*repeated{}
	var order []*repeated
	for _, s := range withoutCopies(d.steps) {
		if s.run.Header.Command == "" {
			continue
		}
		bare, note := withoutDefaults(s.setup)
		key := repeatKey(step{run: s.run, setup: bare, load: s.load})
		g := groups[key]
		if g == nil {
			g = &repeated{first: s}
			groups[key], order = g, append(order, g)
		} else if g.worst.run == nil || difference(g.first, s, "total_token_throughput") > difference(g.first, g.worst, "total_token_throughput") {
			g.worst = s
		}
		g.at = append(g.at, s.run.Place.Line)
		g.note = cmp.Or(g.note, note)
	}
	var out []audit.Finding
	told := repeatsTold(d)
	for _, g := range order {
		if g.worst.run == nil {
			continue
		}
		text := fmt.Sprintf("%s have the same command and load%s, and differ by up to %s", audit.Lines(g.at), g.note, spreadText(g.first, g.worst))
		if difference(g.first, g.worst, "total_token_throughput") > 0.05 {
			out = append(out, audit.Finding{Type: "same-setup-differs", Severity: audit.Warning, Place: d.at(g.worst.run.Place.Line, g.worst.run.Place.Section),
				Text: text + ": something that is not recorded was changed, or steps of this size mean nothing"})
		} else if !told { // else its own text says how far runs are apart
			out = append(out, audit.Finding{Type: "noise-floor", Severity: audit.Note, Place: d.at(g.worst.run.Place.Line, g.worst.run.Place.Section),
				Text: text + ": differences of this size between configurations mean nothing"})
		}
	}
	return out
}

// withoutDefaults leaves out the flags that repeat what their engine does
// anyway, and says which.
func withoutDefaults(s command.Setup) (bare command.Setup, note string) {
	bare = command.Setup{Engine: s.Engine, Model: s.Model, Flags: map[string]string{}, Case: s.Case}
	for name, value := range s.Flags {
		if d, ok := defaultFlags[s.Engine+"/"+name]; ok && d == value {
			note = fmt.Sprintf(" (--%s %s is the engine's default)", name, value)
			continue
		}
		bare.Flags[name] = value
	}
	return bare, note
}

// unrecordedChanges are the changes that a step's headings name and its words do not
// show: it is not the same setup as one without them.
func unrecordedChanges(s step) string {
	var names []string
	for _, c := range namedChanges {
		if c.section(s.run.Place.Section) != "" && !c.shownBy(s) && c.name == "quantisation" {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, ",")
}

// spreadText writes how far two runs are apart.
func spreadText(a, b step) string {
	var parts []string
	for _, m := range []struct{ name, label string }{
		{"total_token_throughput", "total throughput"}, {"mean_e2el_ms", "mean latency"}, {"mean_ttft_ms", "mean TTFT"}, {"mean_tpot_ms", "mean TPOT"},
	} {
		if d := difference(a, b, m.name); d > 0 {
			parts = append(parts, fmt.Sprintf("%.1f %% in %s", 100*d, m.label))
		}
	}
	if len(parts) == 0 {
		return "less than is printed"
	}
	return strings.Join(parts, ", ")
}

// unstableTails finds runs that are equal but for their tails.
func unstableTails(d *document) []audit.Finding {
	const most = 1.7
	var pairs []string
	var at int
	all := withoutCopies(d.steps)
	for i, s := range all {
		var worst string
		ratio := most
		for _, e := range all[max(0, i-lookback):i] {
			if e.load != s.load || e.setup.Engine != s.setup.Engine || command.ModelCore(e.run.Header.Model) != command.ModelCore(s.run.Header.Model) {
				continue
			}
			d := difference(e, s, "total_token_throughput")
			if d > 0.02 || e.run.Text("total_token_throughput") == "" || s.run.Text("total_token_throughput") == "" {
				continue
			}
			for _, name := range []string{"p99_tpot_ms", "p99_ttft_ms"} {
				x, okX := e.run.Figure(name)
				y, okY := s.run.Figure(name)
				if !okX || !okY || x.Value <= 0 || y.Value <= 0 || name == "p99_tpot_ms" && difference(e, s, "mean_tpot_ms") > 0.1 {
					continue
				}
				if r := max(x.Value/y.Value, y.Value/x.Value); r >= ratio {
					ratio, worst = r, fmt.Sprintf("%s %s at line %d and %s at line %d", x.Label, x.Text, e.run.Place.Line, y.Text, s.run.Place.Line)
				}
			}
		}
		if worst != "" {
			pairs = append(pairs, worst)
			at = firstLine(at, s.run.Place.Line)
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return []audit.Finding{{Type: "tail-unstable", Severity: audit.Note, Place: d.at(at, nil),
		Text: "runs that are equal within 2 % in throughput have very different tails, as from stalls at the start: " + audit.ShortList(pairs)}}
}

// overloaded finds engines that are compared at a rate one of them cannot
// hold: it needs much longer than the sending takes, and the other does not.
func overloaded(d *document) []audit.Finding {
	var out []audit.Finding
	told := map[string]bool{}
	for i, s := range d.steps {
		rate, n := s.run.Header.Rate, s.run.Value("completed")
		sending := (n - 1) / rate
		if rate <= 0 || n < 20 || sending < 10 || told[s.load] {
			continue
		}
		for _, e := range d.steps[max(0, i-lookback):i] {
			if e.load != s.load || e.setup.Engine == s.setup.Engine || e.setup.Engine == "" || s.setup.Engine == "" {
				continue
			}
			calm, late := e, s
			if calm.run.Value("duration") > late.run.Value("duration") {
				calm, late = late, calm
			}
			if overrun(calm, sending) > 0.08 || overrun(late, sending) < 0.15 || late.run.Value("mean_e2el_ms") < 2*calm.run.Value("mean_e2el_ms") {
				continue
			}
			told[s.load] = true
			out = append(out, audit.Finding{Type: "compared-under-overload", Severity: audit.Warning, Place: d.at(late.run.Place.Line, late.run.Place.Section),
				Text: fmt.Sprintf("at %g requests/s %s cannot keep up (line %d: %s of %g req/s, %s s for %.1f s of sending) and %s can (line %d: %s req/s): no rate is shown at which both are stable",
					rate, command.EngineTitle(late.setup.Engine), late.run.Place.Line, late.run.Text("request_throughput"), rate, late.run.Text("duration"), sending,
					command.EngineTitle(calm.setup.Engine), calm.run.Place.Line, calm.run.Text("request_throughput"))})
			break
		}
	}
	return out
}

// overrun is how much longer a run took than the sending, as a share of it.
func overrun(s step, sending float64) float64 { return s.run.Value("duration")/sending - 1 }

// oneFactor finds searches that change one option at a time and never two
// together in all combinations.
func oneFactor(d *document) []audit.Finding {
	var study []step
	for _, s := range withoutCopies(d.steps) {
		if s.role == "" && s.run.Header.Command != "" && len(study) < lookback {
			study = append(study, s)
		}
	}
	var seen, options []string          // features, and as the reader knows them
	start := map[string]command.Setup{} // by engine
	edges := map[string][][2]int{}      // by change: the steps that it leads between
	for i, s := range study {
		for j := range study[:i] {
			if study[j].load != s.load {
				continue
			}
			if d := command.Changes(study[j].setup, s.setup, true); len(d) == 1 && len(edges[d[0].Text]) < 32 {
				edges[d[0].Text] = append(edges[d[0].Text], [2]int{j, i})
			}
		}
		from, ok := start[s.setup.Engine+s.load]
		if !ok {
			start[s.setup.Engine+s.load], from = s.setup, s.setup
		}
		for _, c := range command.Changes(from, s.setup, false) {
			if c.Feature != "case" && !slices.Contains(seen, c.Feature) {
				seen, options = append(seen, c.Feature), append(options, c.Option())
			}
		}
	}
	if len(options) < 3 {
		return nil
	}
	for name, pairs := range edges {
		for _, p := range pairs {
			for _, q := range pairs {
				if d := command.Changes(study[p[0]].setup, study[q[0]].setup, true); p != q && len(d) == 1 && d[0].Text != name {
					return nil // four runs cross two options
				}
			}
		}
	}
	return []audit.Finding{{Type: "one-factor-search", Severity: audit.Note, Place: d.at(study[0].line(), nil),
		Text: fmt.Sprintf("%d options were tried one after another (%s): no two of them in all four combinations, so what they do together is not known", len(options), strings.Join(options, ", "))}}
}

// brokenText finds UTF-8 that was read as a Western single-byte set.
var brokenText = audit.Pattern("Ã[\u0080-\u00bf\u2013\u2014\u2018-\u203a\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u20ac\u2122]|â€|Â[\u00a0-\u00bf]|\ufffd")

// mojibake finds text that was decoded wrongly.
func mojibake(d *document) []audit.Finding {
	var at []int
	first := ""
	for i, l := range d.file.Doc.Lines {
		if !strings.ContainsAny(l, "ÃâÂ\ufffd") {
			continue // of most lines faster than the expression
		}
		if m := brokenText().FindString(l); m != "" {
			at = append(at, i+1)
			if first == "" {
				first = m
			}
		}
	}
	if len(at) == 0 {
		return nil
	}
	return []audit.Finding{{Type: "mojibake", Severity: audit.Note, Place: d.at(at[0], nil),
		Text: fmt.Sprintf("text at %s was decoded with the wrong character set (%q)", audit.Lines(at), first)}}
}

// concurrencyIsPeak finds clients that print the peak where others print the
// limit that was set.
func concurrencyIsPeak(d *document) []audit.Finding {
	var values []string
	var first *interop.Run
	n := 0
	for i := range d.file.Runs {
		limit, okLimit := d.file.Runs[i].Figure("max_concurrency")
		peak, okPeak := d.file.Runs[i].Figure("max_concurrent_requests")
		if !okLimit || !okPeak {
			continue
		}
		if limit.Value != peak.Value {
			return nil
		}
		if n++; first == nil {
			first = &d.file.Runs[i]
		}
		if !slices.Contains(values, limit.Text) {
			values = append(values, limit.Text)
		}
	}
	if n < 3 || len(values) < 3 {
		return nil
	}
	limit, _ := first.Figure("max_concurrency")
	peak, _ := first.Figure("max_concurrent_requests")
	return []audit.Finding{{Type: "concurrency-is-peak", Severity: audit.Note, Place: d.at(cmp.Or(limit.Line, first.Place.Line), first.Place.Section),
		Figures: []audit.Cited{audit.Cite(limit), audit.Cite(peak)},
		Text:    fmt.Sprintf("%q equals the measured peak in all %s: it is no limit that was set, as the name has it elsewhere", limit.Label, audit.Counted(n, "block"))}}
}

// promptLengths finds whole prompt lengths that are nearly but not quite equal.
func promptLengths(d *document) []audit.Finding {
	byLength := map[float64][]int{}
	for i := range d.file.Runs {
		if in := d.file.Runs[i].PerRequest("total_input_tokens"); in >= 100 && in == math.Trunc(in) {
			byLength[in] = append(byLength[in], d.file.Runs[i].Place.Line)
		}
	}
	lengths := slices.Sorted(maps.Keys(byLength))
	for i := 1; i < len(lengths); i++ {
		if a, b := lengths[i-1], lengths[i]; b-a < 0.01*b {
			return []audit.Finding{{Type: "prompt-length-differs", Severity: audit.Note, Place: d.at(byLength[a][0], nil),
				Text: fmt.Sprintf("prompts have %g tokens at %s and %g at %s: the same request is another length to each tokenizer", a, audit.Lines(byLength[a]), b, audit.Lines(byLength[b]))}}
		}
	}
	return nil
}

// joinAnd joins words with commas and an "and".
func joinAnd(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
