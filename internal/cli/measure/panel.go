package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"perflab/internal/load"
	"perflab/internal/report/progress"
	"perflab/internal/stat"
)

// panel shows a run while it happens: how far it is, how fast, how long tokens
// take, what failed, and the token rate of the last minute.
type panel struct {
	p     *load.Progress
	since time.Time // the load began; zero: not yet

	last      sample
	rate      sample    // per second, over the last look
	spark     []float64 // tokens/s, a value a look of sparkEvery
	lastSpark sample    // at the latest of them
}

// sample is the counters of a run at an instant.
type sample struct {
	at                 time.Time
	sent, done, tokens float64
}

// sparkEvery is how often rates are taken, and sparkWidth how many are drawn.
const (
	sparkEvery = time.Second
	sparkWidth = 60
)

func (v *panel) sample(now time.Time) sample {
	return sample{now, float64(v.p.Sent.Load()), float64(v.p.Done.Load()), float64(v.p.Tokens.Load())}
}

func (s sample) since(before sample) sample {
	d := s.at.Sub(before.at).Seconds()
	return sample{s.at, (s.sent - before.sent) / d, (s.done - before.done) / d, (s.tokens - before.tokens) / d}
}

// shown is what a terminal shows: nothing of the panel before the load begins.
func (v *panel) shown(now time.Time) []string {
	if !v.p.Running.Load() {
		return nil
	}
	return v.lines(now)
}

// lines is the panel as of now.
func (v *panel) lines(now time.Time) []string {
	s := v.sample(now)
	if v.since.IsZero() {
		v.since, v.last, v.lastSpark = now, s, s
	}
	if now.Sub(v.last.at) >= sparkEvery {
		v.rate, v.last = s.since(v.last), s
		v.spark = append(v.spark, v.rate.tokens)
		v.spark = v.spark[max(0, len(v.spark)-sparkWidth):]
	}
	out := []string{v.progress(now), v.rates(), v.latencies()}
	if len(v.spark) > 1 {
		out = append(out, fmt.Sprintf("tok/s  %s  peak %.0f", sparkline(v.spark), slices.Max(v.spark)))
	}
	if text := v.failures(); text != "" {
		out = append(out, text)
	}
	return out
}

func (v *panel) progress(now time.Time) string {
	done, all := int(v.p.Done.Load()), int(v.p.Planned.Load())
	if all == 0 {
		return fmt.Sprintf("%d done after %s", done, progress.Brief(now.Sub(v.since)))
	}
	return strings.TrimRight(fmt.Sprintf("%s %d/%d  %s", progress.Bar(done, all, 24), done, all, progress.Left(done, all, now.Sub(v.since))), " ")
}

func (v *panel) rates() string {
	return fmt.Sprintf("sent %.1f req/s  done %.1f req/s  %.0f tok/s  %d in flight", v.rate.sent, v.rate.done, v.rate.tokens, v.p.InFlight.Load())
}

func (v *panel) latencies() string {
	return "TTFT " + quantiles(&v.p.TTFT) + "   ITL per read " + quantiles(&v.p.ITL)
}

func quantiles(h *stat.Histogram) string {
	if _, ok := h.Quantile(0.5); !ok {
		return "-"
	}
	var parts []string
	for _, p := range []int{50, 90, 99} {
		ns, _ := h.Quantile(float64(p) / 100)
		parts = append(parts, fmt.Sprintf("p%d %s", p, millis(ns/1e6)))
	}
	return strings.Join(parts, "  ") + " ms"
}

// millis prints three digits that matter.
func millis(ms float64) string {
	switch {
	case ms >= 99.95:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 9.995:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.2f", ms)
}

func (v *panel) failures() string {
	all := v.p.Failures()
	if len(all) == 0 {
		return ""
	}
	var parts []string
	total := 0
	for class, n := range all {
		total += n
		parts = append(parts, fmt.Sprintf("%s %d", class, n))
	}
	slices.SortFunc(parts, cmp.Compare[string])
	return fmt.Sprintf("failed %d: %s", total, strings.Join(parts, ", "))
}

// sparkline draws values from 0 to the greatest.
func sparkline(x []float64) string {
	const levels = "▁▂▃▄▅▆▇█"
	marks := []rune(levels)
	most := slices.Max(x)
	out := make([]rune, len(x))
	for i, v := range x {
		out[i] = marks[0]
		if most > 0 {
			out[i] = marks[min(int(v/most*float64(len(marks))), len(marks)-1)]
		}
	}
	return string(out)
}
