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

// Runs that are equal but for their tails.
const (
	equalThroughput = 0.02 // apart at most, as a share
	equalTPOT       = 0.1  // the same of the mean TPOT, where that of its tail is compared
	tailRatio       = 1.7  // of their P99, from which the tail is another
)

// unstableTails finds runs that are equal but for their tails.
func unstableTails(d *document) []audit.Finding {
	var pairs []string
	var at int
	all := withoutCopies(d.steps)
	for i, s := range all {
		var worst string
		ratio := float64(tailRatio)
		for _, e := range all[max(0, i-lookback):i] {
			if e.load != s.load || e.setup.Engine != s.setup.Engine || command.ModelCore(e.run.Header.Model) != command.ModelCore(s.run.Header.Model) {
				continue
			}
			d := difference(e, s, "total_token_throughput")
			if d > equalThroughput || e.run.Text("total_token_throughput") == "" || s.run.Text("total_token_throughput") == "" {
				continue
			}
			for _, name := range []string{"p99_tpot_ms", "p99_ttft_ms"} {
				x, okX := e.run.Figure(name)
				y, okY := s.run.Figure(name)
				if !okX || !okY || x.Value <= 0 || y.Value <= 0 || name == "p99_tpot_ms" && difference(e, s, "mean_tpot_ms") > equalTPOT {
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

// What tells an engine that cannot hold a rate from one that can. Shares are of
// the time that sending takes.
const (
	fewestSent      = 20   // requests
	shortestSending = 10   // s: below it the drain is most of the run
	calmOverrun     = 0.08 // that a run without a queue ends after the sending at most
	lateOverrun     = 0.15 // that one with a growing queue ends after it at least
	lateLatency     = 2    // times the latency of the calm run
)

// overloaded finds engines that are compared at a rate one of them cannot
// hold: it needs much longer than the sending takes, and the other does not.
func overloaded(d *document) []audit.Finding {
	var out []audit.Finding
	reported := map[string]bool{}
	for i, s := range d.steps {
		rate, n := s.run.Header.Rate, s.run.Value("completed")
		sending := (n - 1) / rate
		if rate <= 0 || n < fewestSent || sending < shortestSending || reported[s.load] {
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
			if overrun(calm, sending) > calmOverrun || overrun(late, sending) < lateOverrun || late.run.Value("mean_e2el_ms") < lateLatency*calm.run.Value("mean_e2el_ms") {
				continue
			}
			reported[s.load] = true
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

// fewestOptions is how many options make a search.
const fewestOptions = 3

// mostEdges bounds the pairs of steps that one change is known from.
const mostEdges = 32

// oneFactor finds searches that change one option at a time and never two
// together in all combinations.
func oneFactor(d *document) []audit.Finding {
	var trials []step
	for _, s := range withoutCopies(d.steps) {
		if s.role == "" && s.run.Header.Command != "" && len(trials) < lookback {
			trials = append(trials, s)
		}
	}
	var seen, options []string          // features, and as the reader knows them
	start := map[string]command.Setup{} // by engine
	edges := map[string][][2]int{}      // by change: the steps that it leads between
	for i, s := range trials {
		for j := range trials[:i] {
			if trials[j].load != s.load {
				continue
			}
			if d := command.Changes(trials[j].setup, s.setup, true); len(d) == 1 && len(edges[d[0].Text]) < mostEdges {
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
	if len(options) < fewestOptions {
		return nil
	}
	for name, pairs := range edges {
		for _, p := range pairs {
			for _, q := range pairs {
				if d := command.Changes(trials[p[0]].setup, trials[q[0]].setup, true); p != q && len(d) == 1 && d[0].Text != name {
					return nil // four runs cross two options
				}
			}
		}
	}
	return []audit.Finding{{Type: "one-factor-search", Severity: audit.Note, Place: d.at(trials[0].line(), nil),
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

// fewestBlocks is how many blocks, with as many values, show that two lines are
// always equal.
const fewestBlocks = 3

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
	if n < fewestBlocks || len(values) < fewestBlocks {
		return nil
	}
	limit, _ := first.Figure("max_concurrency")
	peak, _ := first.Figure("max_concurrent_requests")
	return []audit.Finding{{Type: "concurrency-is-peak", Severity: audit.Note, Place: d.at(cmp.Or(limit.Line, first.Place.Line), first.Place.Section),
		Figures: []audit.Cited{audit.Cite(limit), audit.Cite(peak)},
		Text:    fmt.Sprintf("%q equals the measured peak in all %s: it is no limit that was set, as the name has it elsewhere", limit.Label, audit.Counted(n, "block"))}}
}

// Prompts of one request as several tokenizers count them.
const (
	shortestPrompt = 100  // tokens: below, lengths are near each other by chance
	sameRequest    = 0.01 // apart at most, as a share
)

// promptLengths finds whole prompt lengths that are nearly but not quite equal.
func promptLengths(d *document) []audit.Finding {
	byLength := map[float64][]int{}
	for i := range d.file.Runs {
		if in := d.file.Runs[i].PerRequest("total_input_tokens"); in >= shortestPrompt && in == math.Trunc(in) {
			byLength[in] = append(byLength[in], d.file.Runs[i].Place.Line)
		}
	}
	lengths := slices.Sorted(maps.Keys(byLength))
	for i := 1; i < len(lengths); i++ {
		if a, b := lengths[i-1], lengths[i]; b-a < sameRequest*b {
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
