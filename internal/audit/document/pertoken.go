package document

import (
	"fmt"
	"math"
	"strings"

	"perflab/internal/audit"
)

// tpotRatioOff is how far a ratio of times per token may be from that of the
// latencies, as a share: requests of varied length explain as much.
const tpotRatioOff = 0.1

// sureReversal is from which change of a time per token on its direction is
// known, as a share, besides what rounding leaves: printed TPOTs are means over
// requests, those by the latency over tokens.
const sureReversal = 0.005

// contradictedTPOTs finds comparisons and rows that use a time per token which
// the block's own latency contradicts, or which has the first token in it.
func contradictedTPOTs(d *document) []audit.Finding {
	var out []audit.Finding
	for _, l := range d.statements {
		for _, c := range l.comparisons {
			if k := timeOf(c.changed); k != "tpot" && k != "itl" {
				continue
			}
			a, b := d.runsOf(l, c)
			if a == nil || b == nil || a == b || a.copies(b) {
				continue
			}
			if f, ok := contradictedTPOT(d, c, a, b); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// timeOf is the kind of time that a citation is of: where its text does not name
// it, that of the block which has the figure.
func timeOf(t citation) string {
	if t.named.kind != "time" {
		return t.named.kind
	}
	for _, kind := range []string{"tpot", "itl"} {
		if strings.HasSuffix(t.metric, "_"+kind+"_ms") {
			return kind
		}
	}
	return t.named.kind
}

// mostBeside is how many other comparisons of a statement are looked at to tell
// whose runs one is of.
const mostBeside = 32

// runsOf are the runs that a comparison of a statement is of: those that have
// its figures, and most of the statement's others.
func (d *document) runsOf(l statement, c comparison) (changed, base *citedRun) {
	to, from := []citation{c.changed}, []citation{c.base}
	for _, o := range l.comparisons[:min(len(l.comparisons), mostBeside)] {
		if o.changed.Text != c.changed.Text || o.base.Text != c.base.Text {
			to, from = append(to, o.changed), append(from, o.base)
		}
	}
	return d.runOf(c.changed.owner+" "+l.label, l.line, to), d.runOf(c.base.owner+" "+l.label, l.line, from)
}

// contradictedTPOT holds a comparison of times per token against the times that
// the two blocks give for the tokens after the first.
func contradictedTPOT(d *document, c comparison, a, b *citedRun) (audit.Finding, bool) {
	broken := a.latencyTPOT != 0 || b.latencyTPOT != 0
	first := timeOf(c.changed) == "tpot" && (a.firstInTPOT || b.firstInTPOT)
	if !broken && !first {
		return audit.Finding{}, false
	}
	x, offX := a.decodeTime()
	y, offY := b.decodeTime()
	if !(x > 0) || !(y > 0) || !(c.changed.Value > 0) || !(c.base.Value > 0) {
		return audit.Finding{}, false
	}
	claimed, right := c.base.Value/c.changed.Value, y/x
	reversed := (claimed-1)*(right-1) < 0 && math.Abs(right-1) > sureReversal+offX+offY
	if math.Abs(claimed/right-1) < tpotRatioOff && !reversed {
		return audit.Finding{}, false
	}
	printed := fmt.Sprintf("%.2fx", claimed)
	if c.ratio != nil {
		printed = c.ratio.Text
	}
	how := "contradicts the latencies: (latency - TTFT) / (tokens - 1) is"
	if !broken {
		how = "has the first token in it: those after it take"
	}
	text := fmt.Sprintf("%s of %s against %s %s %.2f against %.2f ms, %.2fx and not %s", c.changed.named, c.changed.Text, c.base.Text, how, x, y, right, printed)
	switch {
	case reversed && claimed > 1:
		text += ": what is told as faster decoding became slower"
	case reversed:
		text += ": what is told as slower decoding became faster"
	}
	return audit.Finding{Type: "claim-on-broken-figure", Severity: audit.Warning, Place: d.place(c.line), Figures: []audit.Cited{c.changed.cited(), c.base.cited()},
		Expected: fmt.Sprintf("%.2fx", right), Text: text}, true
}

// decodeTime is the ms that a token after the first takes, and how far it may
// be off by rounding, as a share: by the latency where it is printed, else by
// the TPOT, from which the first token is taken where it is in it.
func (r *citedRun) decodeTime() (ms, off float64) {
	n := r.outputPerRequest()
	if v := r.msPerToken(); v > 0 && n > 1 && (r.latencyTPOT != 0 || r.firstInTPOT) {
		e2e, ttft := r.figures["mean_e2el_ms"], r.figures["mean_ttft_ms"]
		return v, (e2e.Half + ttft.Half) / (e2e.Value - ttft.Value)
	}
	tpot, ttft := r.figures["mean_tpot_ms"], r.figures["mean_ttft_ms"]
	if !r.firstInTPOT {
		return r.value("mean_tpot_ms"), tpot.Half / tpot.Value
	}
	after := tpot.Value*n - ttft.Value
	return after / (n - 1), (n*tpot.Half + ttft.Half) / after
}
