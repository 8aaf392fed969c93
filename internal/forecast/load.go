package forecast

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"perflab/internal/calib"
	"perflab/internal/field"
	"perflab/internal/outline"
	"perflab/internal/sim"
	"perflab/internal/workload"
)

// Load is one load that configurations are asked to serve.
type Load struct {
	name  string
	spec  workload.Spec
	line  string // the workload in a few words
	rate  float64
	calib calib.Load

	longest workload.Extent // of a load whose requests are not listed
}

// NewLoad reads a workload into what package calib replays, with the tokenizer
// that measures its lengths (nil: package token's approximation). Synthetic
// prompts that share nothing are lengths alone.
func NewLoad(w *workload.Workload, tok workload.Tokenizer) (Load, error) {
	s, t := w.Spec(), w.Totals()
	if t.Requests > 0 && t.Output > calib.MostTokens {
		return Load{}, field.Errorf("", "%d requests have %d output tokens, and a prediction keeps the instant of each: %d are the limit, give fewer by [num_prompts] (a steady load keeps its figures)", t.Requests, t.Output, calib.MostTokens)
	}
	l := Load{name: "burst", spec: s, rate: w.Offered()}
	var err error
	if outline.Needs(w) {
		l.course(w, tok)
	} else if l.calib, err = listed(w, tok); err != nil {
		return Load{}, err
	}
	if t.Requests > 0 {
		l.line = fmt.Sprintf("%s, %d requests, %d tokens in and %d out on average", s.Dataset, t.Requests, t.Input/t.Requests, t.Output/t.Requests)
	} else {
		l.line = fmt.Sprintf("%s, %v long, %.0f tokens in and %.0f out on average", s.Dataset, w.Until(), l.calib.Input.Mean, l.calib.Output.Mean)
	}
	if by := w.MeasuredBy(); by != "" {
		l.line += ", counted by " + by
	}
	if l.rate > 0 {
		l.name = fmt.Sprintf("%.4g/s", l.rate)
	}
	if s.MaxConcurrency > 0 {
		l.name = strings.TrimPrefix(l.name+", "+fmt.Sprintf("%d at once", s.MaxConcurrency), "burst, ")
	}
	return l, nil
}

// listed is a load of which every request is known in advance.
func listed(w *workload.Workload, tok workload.Tokenizer) (calib.Load, error) {
	s := w.Spec()
	alike := s.SharesPrefixes() || !slices.Contains([]string{"random", "azure", "burstgpt"}, s.Dataset)
	c := calib.Load{Requests: w.Len(), Rate: w.Offered(), Arrival: s.Arrival, Concurrency: s.MaxConcurrency}
	c.Shuffle = s.Arrival != "trace" && !s.DisableShuffle
	for r := range w.All() {
		tokens, err := outline.Tokens(r, tok)
		if err != nil {
			return c, err
		}
		x := calib.Request{Due: r.Due, Input: len(tokens), Output: r.Output}
		if alike {
			x.Prompt = tokens
		}
		c.Exact = append(c.Exact, x)
	}
	return c, nil
}

// sampled is how many requests the mean lengths of a load without an end are taken of.
const sampled = 1000

// course makes the load one whose requests follow from what the engine does. Its rate is of sessions, which is no
// rate of requests: it offers none.
func (l *Load) course(w *workload.Workload, tok workload.Tokenizer) {
	var others sync.Map // workloads by seed
	l.calib = calib.Load{Requests: w.Len(), Concurrency: l.spec.MaxConcurrency, Sessions: w.Conversations()}
	l.calib.Course = func(replicas int, seed *uint64) (calib.Course, error) {
		of := w
		if seed != nil {
			open, _ := others.LoadOrStore(*seed, sync.OnceValues(func() (*workload.Workload, error) {
				s := l.spec
				s.Seed = *seed
				return workload.OpenWith(s, tok)
			}))
			var err error
			if of, err = open.(func() (*workload.Workload, error))(); err != nil {
				return calib.Course{}, fmt.Errorf("draw the workload again: %w", err)
			}
		}
		p := outline.New(of, tok)
		return calib.Course{Jobs: p.Jobs(), Options: p.Options(sim.ReplayOptions{}, replicas), Err: p.Err}, nil
	}
	l.calib.Input.Mean, l.calib.Output.Mean = outline.New(w, tok).Means(sampled)
	if t := w.Totals(); t.Requests > 0 {
		l.calib.Input.Mean, l.calib.Output.Mean = float64(t.Input)/float64(t.Requests), float64(t.Output)/float64(t.Requests)
	}
	l.longest, _, _ = w.Longest()
}
