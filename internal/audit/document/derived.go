package document

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/audit"
)

// How far a latency that a text gives may be from what its parts make, as a
// share: of answers of one length, and of varied ones, whose means do not add up.
const (
	derivedOff = 0.1
	variedOff  = 0.5
)

// derivedLatencies finds latencies of requests that no block prints, and that do
// not follow from the times that they are made of.
func derivedLatencies(d *document) []audit.Finding {
	var out []audit.Finding
	for _, l := range d.statements {
		for _, t := range l.citations {
			if t.named.kind != "e2el" || t.named.stat != "" && t.named.stat != "mean" || len(t.runs) > 0 || !(t.Value > 0) {
				continue
			}
			if f, ok := derivedLatency(d, l, t); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// derivedLatency holds a latency against TTFT + TPOT (n - 1), with the times of
// its own line where it has them, else of the run that the line is of.
func derivedLatency(d *document, l statement, t citation) (audit.Finding, bool) {
	var matched []citation
	parts := map[string]audit.Interval{}
	for _, o := range l.citations {
		if len(o.runs) > 0 {
			matched = append(matched, o)
		}
		if kind := o.named.kind; (kind == "ttft" || kind == "tpot") && (o.named.stat == "" || o.named.stat == "mean") {
			if _, twice := parts[kind]; twice {
				return audit.Finding{}, false // of two runs
			}
			parts[kind] = o.span()
		}
	}
	r := d.runOf(l.label, l.line, matched)
	n, one := tokensIn(l.text), true
	if r != nil {
		for kind, name := range map[string]string{"ttft": "mean_ttft_ms", "tpot": "mean_tpot_ms"} {
			if f, ok := r.figures[name]; ok && len(parts) < 2 && parts[kind].Hi == 0 {
				parts[kind] = spanOf(f)
			}
		}
		if n == 0 {
			n = r.outputPerRequest()
			one = n == math.Round(n)
		}
	}
	ttft, tpot := parts["ttft"], parts["tpot"]
	if !(n >= 1) || !(ttft.Hi > 0) || !(tpot.Hi > 0) {
		return audit.Finding{}, false
	}
	low, high := ttft.Lo+tpot.Lo*(n-1), ttft.Hi+tpot.Hi*n
	if r != nil && r.firstInTPOT {
		low = tpot.Lo * n
	}
	off := derivedOff
	if !one {
		off = variedOff
	}
	fits := audit.Between(low*(1-off), high*(1+off))
	if s := t.span(); s.Meets(fits) || t.Unit == bare && audit.Between(1000*s.Lo, 1000*s.Hi).Meets(fits) { // in s or ms
		return audit.Finding{}, false
	}
	right := fmt.Sprintf("%.2f s", (low+high)/2000)
	return audit.Finding{Type: "latency-not-derived", Severity: audit.Warning, Place: d.place(l.line), Expected: right, Figures: []audit.Cited{t.cited()},
		Text: fmt.Sprintf("no block prints the latency of %s, and a TTFT of %.4g ms and %s tokens of %.4g ms make %s", t.Text, (ttft.Lo+ttft.Hi)/2, strconv.FormatFloat(math.Round(n), 'f', -1, 64), (tpot.Lo+tpot.Hi)/2, right)}, true
}

// answerTokens finds the length of an answer in a line: "a 500-token answer".
var answerTokens = audit.Pattern(`(?i)(\d[\d,]*)[ -](?:output[ -])?tokens?\b(?: (?:answers?|responses?|outputs?|completions?))?`)

// tokensIn is the length of an answer that a line gives; 0 where it gives none,
// or several.
func tokensIn(text string) float64 {
	var all []float64
	for _, m := range answerTokens().FindAllStringSubmatch(text, -1) {
		if v, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64); err == nil && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	if len(all) != 1 {
		return 0
	}
	return all[0]
}
