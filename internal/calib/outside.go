package calib

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/arch"
)

// beyond is by how much a mean length or a rate may leave what was seen before
// it counts as outside.
const beyond = 2

// saturating is the share of the capacity from which latency at a rate grows
// faster than any error of it is known.
const saturating = 0.8

// heavy is the share of requests preempted from which the cache decides the
// figures.
const heavy = 0.1

// Widths of ranges outside what was seen, the largest counts.
const (
	outsideEnvelope  = 1.5
	outsideSaturated = 2.0
)

// outsider is one thing that the calibration has not seen.
type outsider struct {
	text  string
	widen float64 // of the ranges; 1: they stay
}

func widest(o []outsider) float64 {
	w := 1.0
	for _, x := range o {
		w = max(w, x.widen)
	}
	return w
}

// outside says what of a question lies outside the runs of the calibration.
func (a *asked) outside() []outsider {
	var out []outsider
	_, _, ranged := a.cal.known(a.Config, Throughput)
	say := func(widen float64, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if widen > 1 && ranged {
			text += fmt.Sprintf(": ranges are %g times as wide", widen)
		}
		out = append(out, outsider{text + ".", widen})
	}
	a.hardware(say)
	if e, ok := a.envelope(); ok {
		a.beyondSeen(e, say)
	}
	a.load(say)
	return out
}

type sayer = func(widen float64, format string, args ...any)

// hardware says what the errors and constants are borrowed from.
func (a *asked) hardware(say sayer) {
	cfg := a.Config
	var here, engine bool
	for _, e := range a.cal.Seen {
		if strings.HasPrefix(cfg.GPU.Name, e.Accelerator) {
			here, engine = true, engine || e.Engine == cfg.Engine
		}
	}
	_, borrowed, ranged := a.cal.known(cfg, Throughput)
	rest := ""
	switch {
	case !ranged:
		rest = ", and no figure has a range"
	case borrowed > 1:
		rest = fmt.Sprintf(": ranges are those of the widest other, %g times as wide", borrowed)
	}
	switch {
	case len(a.cal.Seen) == 0 && !ranged:
		say(1, "The calibration does not say what it has seen, nor how far off it is: no figure has a range")
	case !here:
		say(1, "No run on %s is in the calibration, its constants are as wide as they are elsewhere%s", cfg.GPU.Title, rest)
	case !engine:
		say(1, "No run of %s on %s is in the calibration, only of another engine%s", cfg.Engine, cfg.GPU.Title, rest)
	case borrowed > 1 || !ranged:
		say(1, "Too few runs of %s on %s were held out to know its errors%s", cfg.Engine, cfg.GPU.Title, rest)
	}
}

// envelope is what was seen on the accelerator with the engine, several
// envelopes as one.
func (a *asked) envelope() (e Envelope, ok bool) {
	for _, x := range a.cal.Seen {
		if x.Engine != a.Config.Engine || !strings.HasPrefix(a.Config.GPU.Name, x.Accelerator) {
			continue
		}
		if !ok {
			e, ok = x, true
			continue
		}
		e.Formats, e.GPUs = append(slices.Clone(e.Formats), x.Formats...), append(slices.Clone(e.GPUs), x.GPUs...)
		e.Input, e.Output, e.Rate = span(e.Input, x.Input), span(e.Output, x.Output), span(e.Rate, x.Rate)
		e.Speculation = e.Speculation || x.Speculation
	}
	return e, ok
}

// span is what two spans cover; 0, 0 is none.
func span(a, b [2]float64) [2]float64 {
	none := [2]float64{}
	switch {
	case a == none:
		return b
	case b == none:
		return a
	}
	return [2]float64{min(a[0], b[0]), max(a[1], b[1])}
}

// beyondSeen compares the question with what was seen of its engine on its
// accelerator.
func (a *asked) beyondSeen(e Envelope, say sayer) {
	cfg := a.Config
	if f := string(cfg.Model.Format); len(e.Formats) > 0 && !slices.Contains(e.Formats, f) {
		say(outsideEnvelope, "Weights in %s were not seen here, only in %s", f, strings.Join(unique(e.Formats), ", "))
	}
	if len(e.GPUs) > 0 && cfg.GPUs > slices.Max(e.GPUs) {
		say(outsideEnvelope, "A configuration of %d GPUs is beyond the %d seen", cfg.GPUs, slices.Max(e.GPUs))
	}
	for _, x := range []struct {
		what string
		mean float64
		seen [2]float64
	}{{"Prompts", a.facts.input, e.Input}, {"Answers", a.facts.output, e.Output}} {
		if x.seen[1] > 0 && (x.mean > beyond*x.seen[1] || x.mean < x.seen[0]/beyond) {
			say(outsideEnvelope, "%s of %.0f tokens on average are far from the %s seen", x.what, x.mean, fromTo(x.seen))
		}
	}
	if rate := a.Load.Rate / float64(a.Replicas); rate > 0 {
		switch {
		case e.Rate[1] == 0:
			say(outsideEnvelope, "Only bursts were seen here, no load at a rate; the front end's cost was fitted on them, at most %.0f requests/s pass it in each replica", a.passes())
		case rate > beyond*e.Rate[1]:
			say(outsideEnvelope, "%.3g requests/s to a replica are far above the %.3g seen", rate, e.Rate[1])
		}
	}
	if cfg.Spec != "" && !e.Speculation {
		say(outsideEnvelope, "Speculation was not seen here: its cost and the share of drafts that are accepted are assumed")
	}
}

// load says where the load itself makes figures doubtful.
func (a *asked) load(say sayer) {
	switch u := a.utilisation; {
	case math.IsInf(u, 1): // nothing was served
	case u > 1:
		say(outsideSaturated, "%.3g requests/s are more than the %.3g that the same requests reach when all are sent at once: the queue grows for as long as they come", a.Load.Rate, a.Load.Rate/u)
	case u > saturating:
		say(outsideSaturated, "%.3g requests/s are %.0f %% of what the same requests reach when all are sent at once: near saturation latency is uncertain", a.Load.Rate, 100*u)
	}
	if n := a.run.stats.Preemptions; float64(n) > heavy*float64(a.facts.requests) {
		say(outsideEnvelope, "%d preemptions of %d requests: the KV cache is short, and small errors of its size matter", n, a.facts.requests)
	}
}

// passes is how many requests a second the front end of a replica lets through.
func (a *asked) passes() float64 {
	cfg := a.Config
	return 1e3 / a.constants.Value(cfg.Engine, cfg.GPU.Name, arch.Format(cfg.Model.Format), "f_req")
}

// fromTo writes a span of tokens.
func fromTo(s [2]float64) string {
	if s[0] == s[1] {
		return fmt.Sprintf("%.0f", s[0])
	}
	return fmt.Sprintf("%.0f to %.0f", s[0], s[1])
}

func unique(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}
