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
	Each     Each
}

// complete has the defaults of what is left open.
func (q Question) complete() Question {
	q.Replicas, q.Draws = max(1, q.Replicas), cmp.Or(q.Draws, Draws)
	return q
}

// Draws is how often constants and loads are drawn for a range, unless a
// question says otherwise.
const Draws = 12

// predictor is a question while it is answered.
type predictor struct {
	Question
	cal         *Calibration
	constants   *sim.Constants
	facts       loadFacts
	novelty     Novelty // of the question
	run         replayedRun
	burst       map[string]float64 // figures of the same requests sent at once
	utilisation float64
}

// replayedRun is a run in virtual time, with the counters of all replicas.
type replayedRun struct {
	result.Summary
	failed string // as result.CallSet.FailureText
	stats  sim.Stats
}

// burstRequests is how many requests it takes to see what the server can do: twice as
// many as it runs together, if those are not too many to replay in a moment.
func (a *predictor) burstRequests() int {
	return min(2*a.Config.Seqs*max(1, a.Config.Decodes)*a.Replicas, 4000)
}

// replay is the run that is asked about, with every figure.
func (a *predictor) replay(k *sim.Constants) (replayedRun, error) {
	var out replayedRun
	l := a.Load
	c, err := l.course(a.Replicas, a.Seed, k)
	if err != nil {
		return out, err
	}
	c.Options.Stats = func(_ int, s sim.Stats) { out.stats = out.stats.With(s) }
	calls, err := Calls(a.Config, a.Replicas, c.Jobs, c.Options)
	if err != nil {
		return out, err
	}
	h := result.Header{
		Simulated: true, Predicted: true, Model: a.Config.Model.Name,
		Requests: a.facts.requests, Rate: l.Rate, Limit: l.Concurrency, Closed: c.Options.Closed,
	}
	run, err := result.Analyze(h, nil, a.Options, calls)
	if err := cmp.Or(c.Err(), err); err != nil {
		return out, err
	}
	out.Summary, out.failed = run.Summary(), run.FailureText()
	return out, nil
}

// drawn replays other draws of the load. On a device without runs the constants are drawn
// too; elsewhere held-out errors have in them what constants are uncertain by.
func (a *predictor) drawn() ([]map[string]float64, error) {
	out := make([]map[string]float64, max(0, a.Draws))
	errs := make([]error, len(out))
	a.Each.Do(len(out), func(i int) {
		seed := stat.Stream(a.Seed, fmt.Sprintf("draw %d", i)).Uint64()
		k := a.constants
		if a.novelty == NewDevice || a.novelty == nothingFound {
			if k, errs[i] = drawConstants(k, a.Config, seed); errs[i] != nil {
				return
			}
		}
		out[i], _, errs[i] = figures(a.Config, a.Replicas, a.Load.redraw(seed), k, seed)
	})
	return out, cmp.Or(errs...)
}

// frontEndRate is how many requests a second the front end of a replica lets through: of
// several engines each reads requests of its own, and each request is read in both pools.
func (a *predictor) frontEndRate() float64 {
	cfg := a.Config
	return float64(max(1, min(cfg.Prefills, cfg.Decodes))) / a.constants.FrontEnd(cfg).Seconds()
}

// KVUse is what the KV cache holds.
type KVUse struct {
	Tokens      int     `json:"tokens"`      // of one replica
	Peak        float64 `json:"peak"`        // share of it in use at most
	Concurrency float64 `json:"concurrency"` // requests of the load's mean length that it holds
	Preemptions int     `json:"preemptions"`
	Found       float64 `json:"found"`            // share of the prompts' tokens that it held already
	Fetched     float64 `json:"fetched,omitzero"` // and that memory below it held
}

// kv says what the cache of one replica holds.
func (a *predictor) kv() KVUse {
	s, cfg := a.run.stats, a.Config
	block := max(1, cfg.Block)
	u := KVUse{Tokens: s.KVBlocks * block, Peak: s.PeakKV, Preemptions: s.Preemptions}
	if s.PrefixQueries > 0 {
		u.Found = float64(s.PrefixHits) / float64(s.PrefixQueries)
		u.Fetched = float64(s.HostHits()) / float64(s.PrefixQueries)
	}
	if blocks := cfg.Layout().SeqBlocks(int(math.Ceil(a.facts.input + a.facts.output))); blocks > 0 {
		u.Concurrency = float64(s.KVBlocks) / float64(blocks)
	}
	return u
}
