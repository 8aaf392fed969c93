package sim

import (
	"math/rand/v2"
	"time"
)

// seq is a job on its way through the engine. What every step reads is first.
type seq struct {
	prompt     int     // tokens
	produced   int     // tokens
	computed   int     // tokens whose keys and values are in the cache, or will be when the step that runs ends
	pending    int     // tokens that the step that runs will bring
	output     int     // tokens to produce
	registered int     // blocks published since admission
	blocks     []int32 // held
	out        Outcome // of a replay, so far

	job    Job
	order  uint64
	cached int           // prompt tokens found in the cache at first admission
	ready  time.Duration // left the front end
	begun  time.Duration // its first step began; 0: none has
	first  bool          // never scheduled yet
	gone   bool          // cancelled or finished
	parked bool          // not to be computed before an engine has room for what comes of it
	remote bool          // its KV cache is in another engine, and nothing here holds room for it
	pulled bool          // its KV cache has come, and the last token of its prompt is computed next
	phase  phase
	state  []int32  // blocks of windows and recurrent states
	shared int      // leading blocks full of Job.Prompt or Job.Pieces, which others may share
	hashes []uint64 // of the prefix up to the end of each of them
	place  place    // behind those hashed, in Job.Pieces
	own    []int32  // the blocks after them that have been published, as long as they carry their stamps
	chance *rand.Rand
	r      *relay // of a group, that this is the part of an engine of; nil in an engine that does all

	guesses *Guesses // nil: none was made, or nobody asks
}

type phase byte

const (
	inFront phase = iota
	inWaiting
	inRunning
	inTransfer // holds blocks that its KV cache is fetched from, or into
	hasCome    // holds its KV cache and waits to be run
)

// known is the number of tokens whose ids are settled, or will be when the step
// that runs ends.
func (s *seq) known() int { return s.prompt + s.produced + s.pending }

// stamp marks the block that holds tokens of s alone as its i-th. It is even,
// and no other's.
func (s *seq) stamp(i int) uint64 { return (s.order+1)<<32 | uint64(i)<<1 }

// decoding says that only the newest token is left to compute.
func (s *seq) decoding() bool { return s.produced+s.pending > 0 && s.known()-s.computed == 1 }

// work is a sequence's part in a step: n tokens after those computed.
type work struct {
	s      *seq
	n      int
	decode bool // of one token and drafts after it
	ends   bool // brings a token
}
