package calib

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// envelopeFactor is by how much a mean length or a rate may leave what was seen before
// it counts as outside.
const envelopeFactor = 2

// saturationShare is the share of the capacity from which latency at a rate grows
// faster than any error of it is known.
const saturationShare = 0.8

// heavyPreemption is the share of requests preempted from which the cache decides the
// figures.
const heavyPreemption = 0.1

// Widths of ranges outside what was seen, the largest counts.
const (
	outsideEnvelope  = 1.5
	outsideSaturated = 2.0
)

// extrapolation is one thing that the calibration has not seen.
type extrapolation struct {
	text  string
	widen float64 // of the ranges; 1: they stay
}

func widest(o []extrapolation) float64 {
	w := 1.0
	for _, x := range o {
		w = max(w, x.widen)
	}
	return w
}

// coverage holds a question against the runs of a calibration.
type coverage struct {
	*predictor
	ranged bool            // figures have ranges, which may be widened
	found  []extrapolation // so far
}

// extrapolations says what of a question lies outside the runs of the
// calibration.
func (a *predictor) extrapolations() []extrapolation {
	c := coverage{predictor: a}
	_, _, c.ranged = a.cal.errorOf(a.Config.Engine, a.novelty, Throughput)
	c.hardware()
	e, ok := c.envelope()
	if ok {
		c.beyondSeen(e)
	}
	if a.Config.Prefills > 0 && !e.Disaggregated {
		c.widens(outsideEnvelope, "No run of separate prefill and decode engines is in the calibration: what moving KV caches and the router cost is assumed")
	}
	if len(a.Config.Tiers) > 0 && !e.Tiered {
		c.widens(outsideEnvelope, "No run with a host cache is in the calibration: what it costs to fetch KV blocks is assumed")
	}
	c.load()
	return c.found
}

// say adds a sentence. What is new is in the errors of ranges already.
func (c *coverage) say(format string, args ...any) { c.widens(1, format, args...) }

// widens adds a sentence on what no held-out error has in it, and by how much it widens the
// ranges.
func (c *coverage) widens(by float64, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if by > 1 && c.ranged {
		text += fmt.Sprintf(": ranges are %g times as wide", by)
	}
	c.found = append(c.found, extrapolation{text + ".", by})
}

// hardware says whether the device, and the engine on it, were seen.
func (c *coverage) hardware() {
	cfg := c.Config
	var here, engine, sibling bool
	for _, e := range c.cal.Seen {
		if strings.HasPrefix(cfg.GPU.Name, e.Accelerator) {
			here, engine, sibling = true, engine || e.of(&cfg), sibling || e.Engine == cfg.Engine
		}
	}
	switch {
	case len(c.cal.Seen) == 0 && !c.ranged:
		c.say("The calibration does not say what it has seen, nor how far off it is: no figure has a range")
	case !here && !c.ranged:
		c.say("No run on %s is in the calibration, and no figure has a range", cfg.GPU.Title)
	case !here:
		c.say("Nobody has measured anything like it: no run on %s is in the calibration. A run there would help most (perflab predict --with RUN)", cfg.GPU.Title)
	case !engine && sibling && cfg.Generation == "":
		c.say("No run of %s on %s in so old a version is in the calibration", cfg.Engine, cfg.GPU.Title)
	case !engine && sibling:
		c.say("No run of %s since %s on %s is in the calibration, only of versions before it", cfg.Engine, cfg.Generation, cfg.GPU.Title)
	case !engine:
		c.say("No run of %s on %s is in the calibration, only of another engine", cfg.Engine, cfg.GPU.Title)
	}
}

// envelope is what was seen on the accelerator with the engine, several
// envelopes as one.
func (c *coverage) envelope() (e Envelope, ok bool) {
	for _, x := range c.cal.Seen {
		if !x.of(&c.Config) || !strings.HasPrefix(c.Config.GPU.Name, x.Accelerator) {
			continue
		}
		if !ok {
			e, ok = x, true
			continue
		}
		e.Formats, e.GPUs = append(slices.Clone(e.Formats), x.Formats...), append(slices.Clone(e.GPUs), x.GPUs...)
		e.Models = append(slices.Clone(e.Models), x.Models...)
		e.Input, e.Output, e.Rate = span(e.Input, x.Input), span(e.Output, x.Output), span(e.Rate, x.Rate)
		e.Burst = span(e.Burst, x.Burst)
		e.Speculation = e.Speculation || x.Speculation
		e.Disaggregated = e.Disaggregated || x.Disaggregated
		e.Tiered = e.Tiered || x.Tiered
	}
	return e, ok
}

// span is what two spans cover; 0, 0 is none.
func span[T int | float64](a, b [2]T) [2]T {
	none := [2]T{}
	switch {
	case a == none:
		return b
	case b == none:
		return a
	}
	return [2]T{min(a[0], b[0]), max(a[1], b[1])}
}

// far says that a number is far from a span that was seen.
func far[T int | float64](v T, seen [2]T) bool {
	return v > envelopeFactor*seen[1] || envelopeFactor*v < seen[0]
}

// beyondSeen compares the question with what was seen of its engine on its
// accelerator.
func (c *coverage) beyondSeen(e Envelope) {
	cfg := c.Config
	if n, seen := shapes(e.Models, cfg.Model); n > 0 && n < manyModels && !seen {
		c.say("%s was not seen here, only %s", cfg.Model.Name, strings.Join(unique(e.Models), ", "))
	}
	if f := string(cfg.Model.Format); len(e.Formats) > 0 && !slices.Contains(e.Formats, f) {
		c.say("Weights in %s were not seen here, only in %s", f, strings.Join(unique(e.Formats), ", "))
	}
	for _, gpus := range engineGPUs(cfg) {
		if n := len(e.GPUs); n > 0 && (gpus > slices.Max(e.GPUs) || gpus < slices.Min(e.GPUs)) {
			seen := [2]float64{float64(slices.Min(e.GPUs)), float64(slices.Max(e.GPUs))}
			c.say("The GPUs of a replica are %d, of those seen %s", gpus, fromTo(seen))
		}
	}
	for _, x := range []struct {
		what string
		mean float64
		seen [2]float64
	}{{"Prompts", c.facts.input, e.Input}, {"Answers", c.facts.output, e.Output}} {
		if x.seen[1] > 0 && far(x.mean, x.seen) {
			c.say("%s of %.0f tokens on average are far from the %s seen", x.what, x.mean, fromTo(x.seen))
		}
	}
	c.arrivals(e)
	if cfg.Spec != "" && !e.Speculation {
		c.say("Speculation was not seen here: its cost and the share of drafts that are accepted are assumed")
	}
}

// engineGPUs are the devices of an engine, of each pool where there are two: an engine of a
// pool is like a whole one.
func engineGPUs(cfg engine.Config) []int {
	if cfg.Prefill == nil || cfg.Decodes == 0 {
		return []int{cfg.GPUs}
	}
	of := []int{cfg.Prefill.GPUs, (cfg.GPUs - cfg.Prefills*cfg.Prefill.GPUs) / cfg.Decodes}
	return slices.Compact(of)
}

// arrivals compares how many requests come, and how, with what was seen.
func (c *coverage) arrivals(e Envelope) {
	if rate := c.Load.Rate / float64(c.Replicas); rate > 0 {
		switch {
		case e.Rate[1] == 0:
			c.say("Only bursts were seen here, no load at a rate; the front end's cost was fitted on them, at most %.0f requests/s pass it in each replica", c.frontEndRate())
		case rate > envelopeFactor*e.Rate[1]:
			c.say("%.3g requests/s to a replica are far above the %.3g seen", rate, e.Rate[1])
		}
		return
	}
	n := c.Load.atOnce(c.Replicas)
	switch {
	case e.Burst[1] == 0 && e.Rate[1] > 0:
		c.say("Only loads at a rate were seen here, none that keeps requests waiting or so many in flight")
	case e.Burst[1] > 0 && far(n, e.Burst):
		c.say("%d requests at once to a replica are far from the %s seen", n, fromTo([2]float64{float64(e.Burst[0]), float64(e.Burst[1])}))
	}
}

// manyModels is from how many models on the errors of held-out runs stand for
// another one too.
const manyModels = 3

// shapes counts the models of other shapes among names, and says whether one is
// of the shape of m: variants of a checkpoint are one model.
func shapes(names []string, m arch.Model) (n int, seen bool) {
	type shape struct{ layers, hidden, heads, kvHeads, experts int }
	of := func(m arch.Model) shape {
		s := shape{m.Layers, m.Hidden, m.Heads, m.KVHeads, 0}
		if m.MoE != nil {
			s.experts = m.MoE.Experts
		}
		return s
	}
	all := map[shape]bool{}
	for _, name := range names {
		if known, err := arch.LookupModel(name); err == nil {
			all[of(known)] = true
		} else if name == m.Name { // of a config.json
			all[of(m)] = true
		}
	}
	return len(all), all[of(m)]
}

// load says where the load itself makes figures doubtful.
func (c *coverage) load() {
	if c.Load.Sessions {
		c.widens(outsideEnvelope, "No run of sessions is in the calibration: what prompts cost of which the prefix cache has most is assumed")
	}
	switch u := c.utilisation; {
	case math.IsInf(u, 1): // nothing was served
	case u > 1:
		c.widens(outsideSaturated, "%.3g requests/s are more than the %.3g that such requests reach when they are sent at once: latencies grow for as long as they come", c.Load.Rate, c.Load.Rate/u)
	case u > saturationShare:
		c.widens(outsideSaturated, "%.3g requests/s are %.0f %% of what such requests reach when they are sent at once: near saturation latency is uncertain", c.Load.Rate, 100*u)
	}
	if n := c.run.stats.Preemptions; float64(n) > heavyPreemption*float64(c.facts.requests) {
		c.widens(outsideEnvelope, "%d preemptions of %d requests: the KV cache is short, and small errors of its size matter", n, c.facts.requests)
	}
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
