package calib

import (
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// Novelty is how much of a question no run of a calibration has seen. Held-out errors
// are known by it, and so ranges are.
type Novelty string

// How much is new, from nothing but the study to the device itself; after a run of the
// very site that a question is of less is left to guess, and least under a load like the run's.
const (
	AfterLike    Novelty = "after a run of the site under such a load"
	AfterRun     Novelty = "after a run of the site"
	NothingNew   Novelty = "nothing"
	OneThingNew  Novelty = "one thing"
	SeveralNew   Novelty = "several things"
	NewDevice    Novelty = "the device"
	nothingFound Novelty = "" // no runs to compare with
)

// Novelties are all, the least first.
var Novelties = []Novelty{AfterLike, AfterRun, NothingNew, OneThingNew, SeveralNew, NewDevice}

// measured says that the very site was.
func (n Novelty) measured() bool { return n == AfterLike || n == AfterRun }

// newThings names what of a configuration under a load the envelopes do not cover.
type newThings struct{ device, engine, family, format, speculation, load bool }

func (n newThings) level() Novelty {
	count := 0
	for _, is := range []bool{n.engine, n.family, n.format, n.speculation, n.load} {
		if is {
			count++
		}
	}
	switch {
	case n.device:
		return NewDevice
	case count == 0:
		return NothingNew
	case count == 1:
		return OneThingNew
	}
	return SeveralNew
}

// novelty is how much of a question is new to the calibration.
func (c *Calibration) novelty(q Question) Novelty {
	if n := c.measured(q); n != nothingFound && len(c.After) > 0 {
		return n
	}
	return noveltyOf(c.Seen, q.Config, q.Replicas, q.Load)
}

// measured is how near the runs of the site come to a question, if they speak of it: they
// do of their engine on their devices.
func (c *Calibration) measured(q Question) Novelty {
	n := nothingFound
	for _, e := range c.Site {
		switch {
		case e.Accelerator != q.Config.GPU.Name || !e.of(&q.Config):
		case e.covers(q.Replicas, q.Load):
			return AfterLike
		default:
			n = AfterRun
		}
	}
	return n
}

// noveltyOf compares a question with what runs have covered.
func noveltyOf(seen []Envelope, cfg engine.Config, replicas int, l Load) Novelty {
	if len(seen) == 0 {
		return nothingFound
	}
	n := newThings{device: true, engine: true, family: true, format: true, speculation: cfg.Spec != "", load: true}
	for _, e := range seen {
		here := strings.HasPrefix(cfg.GPU.Name, e.Accelerator)
		same := e.of(&cfg)
		n.device = n.device && !here
		n.engine = n.engine && !(here && same)
		n.format = n.format && !(here && slices.Contains(e.Formats, string(cfg.Model.Format)))
		n.speculation = n.speculation && !(same && e.Speculation)
		n.family = n.family && !slices.ContainsFunc(e.Models, func(name string) bool {
			return arch.Model{Name: name}.Family() == cfg.Model.Family()
		})
		n.load = n.load && !(same && e.covers(replicas, l))
	}
	return n.level()
}

// covers says whether loads of the kind of l, with lengths like its, were seen.
func (e *Envelope) covers(replicas int, l Load) bool {
	if f := l.facts(); far(f.input, e.Input) || far(f.output, e.Output) {
		return false
	}
	if l.Rate > 0 {
		return e.Rate[1] > 0 && l.Rate/float64(max(1, replicas)) <= envelopeFactor*e.Rate[1]
	}
	return e.Burst[1] > 0 && !far(l.atOnce(replicas), e.Burst)
}
