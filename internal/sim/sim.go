// Package sim is a simulated continuous-batching engine: a step core in
// virtual time, an OpenAI-compatible HTTP server over it in real time, and a
// replay that runs a whole workload in milliseconds. Everything it makes says
// SIMULATED.
package sim

import (
	"time"
)

// Job is one request as the core sees it.
type Job struct {
	Index  int
	Arrive time.Duration // virtual time of arrival
	Prompt []uint32      // token ids; equal prefixes share KV blocks
	Output int           // tokens to produce
}

// Outcome is what became of a job, in virtual time.
type Outcome struct {
	Index  int
	Tokens []Emit // output tokens as they left the engine
	Cached int    // prompt tokens found in the prefix cache
	Err    string // refused: longer than the context, say
}

// Emit is one chunk of output.
type Emit struct {
	At time.Duration
	N  int // tokens; more than one with speculation
}
