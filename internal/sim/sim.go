// Package sim is a simulated continuous-batching engine: a step core in
// virtual time, a group of cores that compute prompts or generate behind a router,
// a replay that runs a whole workload over either in milliseconds, and an
// OpenAI-compatible HTTP server over it in real time. Everything it makes says
// SIMULATED.
//
//	cfg, err := command.Resolve(model, gpu, 8)      // package engine
//	out, err := sim.Replay(cfg, 2, jobs, sim.ReplayOptions{MaxConcurrency: 256})
//	for o := range out { fmt.Println(o.Index, o.Tokens[0].At-o.Sent) }
//
// Invariants: core and replay are pure functions of their arguments: they open
// no socket, read no clock and start no goroutine, and the same jobs with the
// same arrivals give the same nanoseconds through the server and through the
// replay. A KV block is held by as many sequences as refer to it and is free
// when none does. Every job that is accepted yields exactly Output tokens
// unless it is cancelled.
//
// Deliberately absent: LoRA, images and
// logits: the text that comes back is filler of the right length, and the answers
// to questions are declared (ServerOptions.Questions). Pipeline and data
// parallel ranks are perfectly balanced (see stepModel).
package sim

import (
	"time"

	"perflab/internal/engine"
)

// Engine is a replica in virtual time: a Core, or a Group of them.
type Engine interface {
	Config() engine.Config
	Submit(Job) error                  // hands a job in at its Arrive, or as soon after as a job can come
	Next() (at time.Duration, ok bool) // when the next step can begin; false: there is nothing to do
	Step() (step *Step, ok bool)       // begins it, and runs it to its end
	Stats() Stats

	check(Job) error                // why a job would not be taken
	put(Job, Outcome) time.Duration // Submit of a job that has been checked
	cancel(index int, at time.Duration)
	warm([]Job) // serves jobs before time 0
	reset()     // turns the time of an engine back in which nothing runs
	records()   // steps write outcomes and report the ends of jobs alone, from now on
}

// New builds what a configuration describes. It fails when it leaves no room for a KV
// cache or names no limits, and for a group of an engine whose groups are not modelled.
func New(cfg engine.Config, o Options) (Engine, error) {
	if cfg.Prefills > 0 || cfg.Decodes > 0 {
		g, err := newGroup(cfg, o)
		if err != nil {
			return nil, err
		}
		return g, nil
	}
	c, err := newCore(cfg, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Job is one request as the core sees it.
type Job struct {
	Index  int           // unique among the jobs in flight
	Arrive time.Duration // virtual time of arrival
	Prompt []uint32      // token ids; equal prefixes share KV blocks
	Output int           // tokens to produce

	PromptLen int     // of a job without Prompt: tokens that no other job begins with, but for Pieces
	Pieces    []Piece // what those are made of, as many in all; nil: tokens of its own

	Session     int // from 1; 0: the job stands alone
	Turn, Turns int // its place in the session, and how many there are: for the outcome alone
}

func (j *Job) promptLen() int {
	if j.Prompt != nil {
		return len(j.Prompt)
	}
	return j.PromptLen
}

// Outcome is what became of a job, in virtual time.
type Outcome struct {
	Index   int
	Replica int           // which copy of the engine served it
	Prompt  int           // tokens of the prompt
	Output  int           // tokens asked for
	Due     time.Duration // the job's Arrive
	Ready   time.Duration // when the concurrency limit let it pass
	Sent    time.Duration // equal to Ready: the replay has no client to be late
	Tokens  []Emit        // output tokens as they left the engine
	Cached  int           // prompt tokens found in the prefix cache
	Err     string        // refused: longer than the context, say

	Session, Turn, Turns int // those of the job
}

// Emit is one chunk of output.
type Emit struct {
	At time.Duration
	N  int // tokens; more than one with speculation
}
