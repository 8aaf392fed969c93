// Package sim is a simulated continuous-batching engine: a step core in
// virtual time, a replay that runs a whole workload over it in milliseconds,
// and an OpenAI-compatible HTTP server over it in real time. Everything it
// makes says SIMULATED.
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
// Deliberately absent: disaggregated prefill, KV offloading, LoRA, images and
// logits: the text that comes back is filler of the right length, and the answers
// to questions are declared (ServerOptions.Questions). Pipeline and data
// parallel ranks are perfectly balanced (see stepModel).
package sim

import "time"

// Job is one request as the core sees it.
type Job struct {
	Index  int           // unique among the jobs in flight
	Arrive time.Duration // virtual time of arrival
	Prompt []uint32      // token ids; equal prefixes share KV blocks
	Output int           // tokens to produce

	PromptLen int // of a job without Prompt: tokens that no other job begins with
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
}

// Emit is one chunk of output.
type Emit struct {
	At time.Duration
	N  int // tokens; more than one with speculation
}
