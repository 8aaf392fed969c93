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
	variedOff  = 0.3 // short answers take longer a token, so that the product of means is above the mean
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

// derivedLatency holds a latency against TTFT + TPOT (n - 1): with the times of
// its own line where it has both, else with those of the runs that the line may
// be of, one of which must give it.
func derivedLatency(d *document, l statement, t citation) (audit.Finding, bool) {
	parts, ok := partsOf(l)
	if !ok {
		return audit.Finding{}, false
	}
	var first *derivation
	for _, r := range d.runsMeant(l) {
		x := derivationOf(r, parts, tokensIn(l.text))
		if !x.known() {
			continue
		}
		if x.fits(t) {
			return audit.Finding{}, false
		}
		if first == nil || x.off(t) < first.off(t) {
			first = &x
		}
	}
	if first == nil {
		return audit.Finding{}, false
	}
	right := fmt.Sprintf("%.2f s", (first.low+first.high)/2000)
	return audit.Finding{Type: "latency-not-derived", Severity: audit.Warning, Place: d.place(l.line), Expected: right, Figures: []audit.Cited{t.cited()},
		Text: fmt.Sprintf("no block prints the latency of %s, and a TTFT of %.4g ms and %.0f tokens of %.4g ms make %s", t.Text, (first.ttft.Lo+first.ttft.Hi)/2, first.tokens, (first.tpot.Lo+first.tpot.Hi)/2, right)}, true
}

// partsOf are the mean TTFT and TPOT that a statement gives; false where it gives
// those of several runs.
func partsOf(l statement) (parts map[string]audit.Interval, ok bool) {
	parts = map[string]audit.Interval{}
	for _, o := range l.citations {
		if kind := o.named.kind; (kind == "ttft" || kind == "tpot") && (o.named.stat == "" || o.named.stat == "mean") {
			if _, twice := parts[kind]; twice {
				return nil, false
			}
			parts[kind] = o.span()
		}
	}
	return parts, true
}

// runsMeant are the runs that a latency of a statement may be of: that of its
// other figures, else, but for prose, those under its label or all; nil stands
// for none.
func (d *document) runsMeant(l statement) []*citedRun {
	var matched []citation
	for _, o := range l.citations {
		if len(o.runs) > 0 {
			matched = append(matched, o)
		}
	}
	if r := d.runOf(l.label, l.line, matched); r != nil {
		return []*citedRun{r}
	}
	ofBlocks := l.table == nil || summarises(d, l.table) && len(l.table.Rows) <= len(d.runs)
	if l.kind == inProse || len(l.comparisons) == 0 && !ofBlocks {
		return []*citedRun{nil} // it may tell of an aim, or of other measurements
	}
	if own := d.runsUnder(optionRow{name: l.label}); l.table != nil && len(own) > 0 {
		return own
	}
	return append(slices.Clone(d.runs[:min(len(d.runs), manyRuns)]), nil)
}

// derivation is what a latency is made of, in ms.
type derivation struct {
	ttft, tpot        audit.Interval
	tokens, low, high float64
	even              bool // all answers have one length
}

// derivationOf makes a latency of the parts that a text gives and, where it
// lacks them, of those of a run; nil: no run.
func derivationOf(r *citedRun, parts map[string]audit.Interval, tokens float64) derivation {
	x := derivation{ttft: parts["ttft"], tpot: parts["tpot"], tokens: tokens, even: true}
	if r != nil {
		if x.ttft.Hi == 0 {
			x.ttft = spanOf(r.figures["mean_ttft_ms"])
		}
		if x.tpot.Hi == 0 {
			x.tpot = spanOf(r.figures["mean_tpot_ms"])
		}
		if tokens == 0 {
			x.tokens = r.outputPerRequest()
			x.even = x.tokens == math.Round(x.tokens)
		}
	}
	x.low, x.high = x.ttft.Lo+x.tpot.Lo*(x.tokens-1), x.ttft.Hi+x.tpot.Hi*x.tokens
	if r != nil && r.firstInTPOT {
		x.low = x.tpot.Lo * x.tokens
	}
	return x
}

// known reports whether all parts are.
func (x derivation) known() bool { return x.tokens >= 1 && x.ttft.Hi > 0 && x.tpot.Hi > 0 }

// fits reports whether a latency follows; where its text has no unit, in s or ms.
func (x derivation) fits(t citation) bool {
	off := variedOff
	if x.even {
		off = derivedOff
	}
	span, want := t.span(), audit.Between(x.low*(1-off), x.high*(1+off))
	return span.Meets(want) || t.Unit == bare && audit.Between(1000*span.Lo, 1000*span.Hi).Meets(want)
}

// off is how far a latency is from the middle, as a ratio.
func (x derivation) off(t citation) float64 {
	return math.Abs(math.Log(2 * t.Value / (x.low + x.high)))
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
