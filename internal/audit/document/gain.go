package document

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// leastChanged is by how many percentage points a gain must change to cast doubt
// on a conclusion, where its direction stays: less is told as a note.
const leastChanged = 1.0

// gainsByDuration finds gains in throughput that are others, or none, where
// throughput is tokens over duration and not what the client printed.
func gainsByDuration(d *document) []audit.Finding {
	var out []audit.Finding
	for _, l := range d.statements {
		for _, c := range l.comparisons {
			if !c.changed.named.isRate() || !(c.base.Value > 0) || !(c.changed.Value > 0) {
				continue
			}
			a, b := d.runsOf(l, c)
			if a == nil || b == nil || a == b {
				continue
			}
			if f, ok := gainByDuration(d, c, a, b); ok {
				out = append(out, f)
			}
		}
	}
	for _, r := range d.rankings {
		out = append(out, rankingByDuration(d, r)...)
	}
	return out
}

// byDuration is a throughput of a run as its counts and its duration give it;
// false where they are not printed, or where they give the printed one.
func (r *citedRun) byDuration(name string) (rate audit.Interval, differs bool) {
	counts := map[string][]string{
		"total_token_throughput": {"total_input_tokens", "total_output_tokens"}, "output_throughput": {"total_output_tokens"}, "request_throughput": {"completed"},
	}[name]
	printed, ok := r.figures[name]
	duration, timed := r.figures["duration"]
	sum := 0.0
	for _, n := range counts {
		f, counted := r.figures[n]
		ok, sum = ok && counted, sum+f.Value
	}
	if !ok || !timed || len(counts) == 0 || !(sum > 0) || !(duration.Value > duration.Half) {
		return audit.Interval{}, false
	}
	rate = audit.Between(sum, sum).Over(spanOf(duration))
	if rate.Meets(spanOf(printed)) {
		return spanOf(printed), false // which is the finer
	}
	return rate, true
}

// spanOf is every value that prints as a figure.
func spanOf(f interop.Figure) audit.Interval { return audit.Between(f.Value-f.Half, f.Value+f.Half) }

// gainByDuration recomputes what a comparison of throughputs says.
func gainByDuration(d *document, c comparison, a, b *citedRun) (audit.Finding, bool) {
	x, offX := a.byDuration(c.changed.metric)
	y, offY := b.byDuration(c.changed.metric)
	if c.changed.metric == "" || c.base.metric != c.changed.metric || !offX && !offY || x.Hi == 0 || y.Hi == 0 {
		return audit.Finding{}, false
	}
	scale := float64(c.changed.Times) / float64(max(1, c.base.Times))
	if c.perGPU {
		n, ok := gpuRatio(c)
		if !ok {
			return audit.Finding{}, false
		}
		scale /= n
	}
	x = audit.Between(x.Lo*scale, x.Hi*scale)
	ratio := x.Over(y)
	right := (ratio.Lo + ratio.Hi) / 2
	claimed := c.changed.Value * scale / c.base.Value
	reversed := (claimed-1)*(right-1) < 0 && (ratio.Lo > 1 || ratio.Hi < 1)
	printed, expected := fmt.Sprintf("%+.1f %%", 100*(claimed-1)), fmt.Sprintf("%+.1f %%", 100*(right-1))
	if c.ratio != nil {
		if slices.ContainsFunc(c.readings(x, y), c.ratio.interval().Meets) {
			return audit.Finding{}, false
		}
		if printed = c.ratio.Text; c.ratio.Unit == asFactor {
			expected = fmt.Sprintf("%.2fx", right)
		}
	} else if !reversed {
		return audit.Finding{}, false
	}
	return gainFinding(d.place(c.line), printed, expected, c.changed.metric, a, b, reversed, 100*math.Abs(claimed-right)), true
}

// gainFinding tells of a gain that tokens over duration do not give.
func gainFinding(at interop.Place, printed, expected, metric string, a, b *citedRun, reversed bool, points float64) audit.Finding {
	f := audit.Finding{Type: "gain-not-by-duration", Severity: audit.Warning, Place: at, Expected: expected, Figures: []audit.Cited{b.cite(metric), a.cite(metric), b.cite("duration"), a.cite("duration")}}
	if points < leastChanged && !reversed {
		f.Severity = audit.Note
	}
	count := "tokens"
	if metric == "request_throughput" {
		count = "requests"
	}
	f.Text = fmt.Sprintf("the gain of %s is %s where throughput is %s over duration (%s against %s/s): the client's own rates leave out another part of each run",
		printed, expected, count, perSecond(a, metric), perSecond(b, metric))
	if reversed {
		f.Text += ", and the order is the other way round"
	}
	return f
}

// perSecond writes a throughput as counts and duration give it.
func perSecond(r *citedRun, metric string) string {
	v, _ := r.byDuration(metric)
	return fmt.Sprintf("%.2f", (v.Lo+v.Hi)/2)
}

// rankingByDuration finds neighbours of a ranking that tokens over duration put
// the other way round.
func rankingByDuration(d *document, r ranking) []audit.Finding {
	var out []audit.Finding
	for i, sign := range r.signs {
		a, b := r.citations[i], r.citations[i+1]
		if sign != '>' || len(a.runs) == 0 || len(b.runs) == 0 || a.metric != b.metric || strings.HasSuffix(a.metric, "_ms") {
			continue
		}
		to, from := d.runOf(a.owner, r.line, []citation{a}), d.runOf(b.owner, r.line, []citation{b})
		x, offX := to.byDuration(a.metric)
		y, offY := from.byDuration(a.metric)
		if !offX && !offY || x.Hi == 0 || y.Hi == 0 || x.Hi >= y.Lo || a.Value < b.Value {
			continue
		}
		claimed, right := a.Value/b.Value, (x.Lo+x.Hi)/(y.Lo+y.Hi)
		out = append(out, gainFinding(d.place(r.line), fmt.Sprintf("%+.1f %% of %s over %s", 100*(claimed-1), a.owner, b.owner), fmt.Sprintf("%+.1f %%", 100*(right-1)), a.metric, to, from, true, 100*(claimed-right)))
	}
	return out
}
