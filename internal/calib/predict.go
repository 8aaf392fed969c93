package calib

import (
	"cmp"
	"fmt"
	"math"

	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/sim"
	"perflab/internal/stat"
)

// Question is what a prediction is asked of.
type Question struct {
	Config   engine.Config
	Replicas int // 0: 1
	Load     Load
	Options  result.Options // percentiles and bounds of the figures
	Seed     uint64
	Draws    int // of constants and loads, for the ranges; 0: 12, negative: none
}

// Draws is how often constants and loads are drawn for a range, unless a
// question says otherwise.
const Draws = 12

// Range is a predicted figure and what it lies between in nine of ten cases.
type Range struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Prediction is what the simulator says of one configuration under one load.
// It is SIMULATED throughout.
type Prediction struct {
	Summary     result.Summary   // of the run with the middle constants; without a verdict
	Failed      string           // how many requests are refused and why; "": none is
	Figures     map[string]Range // of the figures of Summary that a range is known of
	Bottleneck  Bottleneck
	KV          KVUse
	Utilisation float64  // offered rate over that of the same requests sent at once; 0: no rate is offered
	Outside     []string // what the calibration has not seen, one sentence each
	Steps       sim.Stats
}

// KVUse is what the KV cache holds.
type KVUse struct {
	Tokens      int     `json:"tokens"`      // of one replica
	Peak        float64 `json:"peak"`        // share of it in use at most
	Concurrency float64 `json:"concurrency"` // requests of the load's mean length that it holds
	Preemptions int     `json:"preemptions"`
	Found       float64 `json:"found"` // share of the prompts' tokens that it held already
}

// Constants are the priors with the calibration's sets over them.
func (c *Calibration) Constants() (*sim.Constants, error) { return sim.Priors().With(c.Sets...) }

// Predict answers a question: one replay with the middle constants, one for
// each draw, and of a load with a rate one of such requests all at once.
func (c *Calibration) Predict(q Question) (Prediction, error) {
	q.Replicas, q.Draws = max(1, q.Replicas), cmp.Or(q.Draws, Draws)
	k, err := c.Constants()
	if err != nil {
		return Prediction{}, fmt.Errorf("calibration: %w", err)
	}
	a := asked{Question: q, cal: c, constants: k, facts: q.Load.facts()}
	if a.run, err = a.replay(k); err != nil {
		return Prediction{}, err
	}
	if q.Load.Rate > 0 {
		if a.burst, _, err = figures(q.Config, q.Replicas, q.Load.atOnce(a.flood()), k, q.Seed); err != nil {
			return Prediction{}, err
		}
		a.utilisation = q.Load.Rate / a.burst["request_throughput"] // +Inf where none was served
	}
	draws, err := a.drawn()
	if err != nil {
		return Prediction{}, err
	}
	p := Prediction{Summary: a.run.Summary, Failed: a.run.failed, Steps: a.run.stats, Utilisation: a.utilisation, KV: a.kv()}
	outside := a.outside()
	for _, o := range outside {
		p.Outside = append(p.Outside, o.text)
	}
	p.Figures = a.ranges(draws, widest(outside))
	p.Bottleneck = a.bottleneck()
	return p, nil
}

// asked is a question while it is answered.
type asked struct {
	Question
	cal         *Calibration
	constants   *sim.Constants
	facts       loadFacts
	run         replayed
	burst       map[string]float64 // figures of the same requests sent at once
	utilisation float64
}

// replayed is a run in virtual time, with the counters of all replicas.
type replayed struct {
	result.Summary
	failed string // as result.CallSet.FailureText
	stats  sim.Stats
}

// flood is how many requests it takes to see what the server can do: twice as
// many as it runs together, if those are not too many to replay in a moment.
func (a *asked) flood() int { return min(2*a.Config.Seqs*a.Replicas, 4000) }

// replay is the run that is asked about, with every figure.
func (a *asked) replay(k *sim.Constants) (replayed, error) {
	var out replayed
	l := a.Load
	calls, err := Calls(a.Config, a.Replicas, l.Jobs(a.Seed), sim.ReplayOptions{
		MaxConcurrency: l.Concurrency, Seed: a.Seed, Constants: k, Warm: l.Warm(a.Seed),
		Stats: func(_ int, s sim.Stats) { out.stats = together(out.stats, s) },
	})
	if err != nil {
		return out, err
	}
	h := result.Header{
		Simulated: true, Predicted: true, Model: a.Config.Model.Name,
		Requests: a.facts.requests, Rate: l.Rate, Limit: l.Concurrency,
	}
	run, err := result.Analyze(h, nil, a.Options, calls)
	if err != nil {
		return out, err
	}
	out.Summary, out.failed = run.Summary(), run.FailureText()
	return out, nil
}

// drawn replays other draws of the load. Where no error is known of the engine
// on the accelerator the constants are drawn too; where one is, it has in it what
// they are uncertain by.
func (a *asked) drawn() ([]map[string]float64, error) {
	var out []map[string]float64
	for i := range max(0, a.Draws) {
		seed := stat.Stream(a.Seed, fmt.Sprintf("draw %d", i)).Uint64()
		k := a.constants
		if !a.cal.scored(a.Config) {
			var err error
			if k, err = drawConstants(k, a.Config, seed); err != nil {
				return nil, err
			}
		}
		f, _, err := figures(a.Config, a.Replicas, a.Load.again(seed), k, seed)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// kv says what the cache of one replica holds.
func (a *asked) kv() KVUse {
	s, cfg := a.run.stats, a.Config
	block := max(1, cfg.Block)
	u := KVUse{Tokens: s.KVBlocks * block, Peak: s.PeakKV, Preemptions: s.Preemptions}
	if s.PrefixQueries > 0 {
		u.Found = float64(s.PrefixHits) / float64(s.PrefixQueries)
	}
	if blocks := cfg.Layout().SeqBlocks(int(math.Ceil(a.facts.input + a.facts.output))); blocks > 0 {
		u.Concurrency = float64(s.KVBlocks) / float64(blocks)
	}
	return u
}

// together adds the counters of two replicas; gauges are those of the fuller.
func together(a, b sim.Stats) sim.Stats {
	a.Running, a.Waiting = a.Running+b.Running, a.Waiting+b.Waiting
	a.PeakRunning, a.KVBlocks = max(a.PeakRunning, b.PeakRunning), max(a.KVBlocks, b.KVBlocks)
	a.KVUsage, a.PeakKV = max(a.KVUsage, b.KVUsage), max(a.PeakKV, b.PeakKV)
	a.Steps, a.Preemptions, a.Finished = a.Steps+b.Steps, a.Preemptions+b.Preemptions, a.Finished+b.Finished
	a.PrefixQueries, a.PrefixHits = a.PrefixQueries+b.PrefixQueries, a.PrefixHits+b.PrefixHits
	a.PromptTokens, a.GenerationTokens = a.PromptTokens+b.PromptTokens, a.GenerationTokens+b.GenerationTokens
	a.Drafted, a.Accepted, a.Drafts = a.Drafted+b.Drafted, a.Accepted+b.Accepted, a.Drafts+b.Drafts
	a.Busy += b.Busy
	s, t := &a.Times, b.Times
	s.Weights, s.Arithmetic = s.Weights+t.Weights, s.Arithmetic+t.Arithmetic
	s.ExpertReads, s.Experts = s.ExpertReads+t.ExpertReads, s.Experts+t.Experts
	s.KV, s.Attention = s.KV+t.KV, s.Attention+t.Attention
	s.Collectives, s.Elementwise = s.Collectives+t.Collectives, s.Elementwise+t.Elementwise
	s.Host, s.Drafting = s.Host+t.Host, s.Drafting+t.Drafting
	v, w := &a.Waits, b.Waits
	v.KV, v.Seqs, v.Tokens = v.KV+w.KV, v.Seqs+w.Seqs, v.Tokens+w.Tokens
	v.FrontEnd, v.Idle = v.FrontEnd+w.FrontEnd, v.Idle+w.Idle
	return a
}
