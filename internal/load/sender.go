package load

import (
	"context"
	"sync/atomic"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// Sender sends one request and reports everything it saw. Offsets in the Call
// count from start on the monotonic clock. A failed request is a Call with a
// class, not a Go error. Send fills Sent and all that follows; Run fills
// Index, Target, Due, Ready, WantIn and Want. Send must return soon after ctx
// is cancelled.
type Sender interface {
	Send(ctx context.Context, start time.Time, r workload.Request) result.Call
}

// Starter is a Sender that can begin a request without waiting, so that the
// goroutine that knows the time sends it. Start must return within microseconds;
// what it returns does the rest.
type Starter interface {
	Start(ctx context.Context, start time.Time, r workload.Request) (finish func() result.Call)
}

// Builder is a Sender whose requests can be built before they are due. The
// first sender builds for all.
type Builder interface {
	Build(r workload.Request) workload.Request
}

// Options say how to send.
type Options struct {
	MaxConcurrency int           // 0: no limit
	Spin           time.Duration // before a due instant the dispatcher leaves Go's timers for the kernel's; 0: timers only
	Progress       *Progress     // nil: nobody watches
	Servers        []string      // addresses of the targets, "host:port", to tell an engine on this machine from other programs

	// Next returns what follows a request in its conversation, given the text
	// of the answer, and how long after the end of the call it is due; ok is
	// false after the last turn. nil: requests stand alone.
	Next func(r workload.Request, answer string) (next workload.Request, think time.Duration, ok bool)

	// Begin starts the session of a first request whose later ones wait for each other as a
	// tree, in place of Next; at is its Ready. It returns what besides that request is due without
	// an answer. nil: sessions go one turn after the other.
	Begin func(first workload.Request, at time.Duration) (Session, []workload.Step)

	Prepare  func(r workload.Request)         // called while r is in flight: does what of Next takes long; nil: nothing does
	Affinity bool                             // a conversation stays on its first turn's target
	Home     func(first workload.Request) int // target of a session's first request; nil or -1: the one with the fewest calls in flight
	Until    time.Duration                    // nothing is sent that is ready at this offset or later; 0: everything is sent
	Pass     int                              // a load that Until or Enough ends sends a multiple of so many requests, of sessions so many of these; 0: any number
	Closed   bool                             // requests have no due times: each is due when the limit lets it pass
	MaxIdle  time.Duration                    // of all servers at once: then requests of sessions that wait for their time come earlier; 0: any
	Enough   *atomic.Bool                     // nothing more is sent once it is true; nil: no such end

	// Start is the instant that all offsets count from, for loads that are to start
	// together. The zero time: as soon as the first requests are built. One that has
	// passed by then is a *LateStartError.
	Start time.Time
	Begun func(start time.Time) // told the start instant when it has come, by the dispatcher: may not block; nil: nobody is
}

// Session is one session on its way: Run tells it which of its requests has ended, one at a
// time, and sends what is due then. ok is false for one that failed: what waits for it is never
// sent, and lost counts it.
type Session interface {
	Ended(turn int, at time.Duration, ok bool) (due []workload.Step, lost int)

	// Next are the turns that wait for one, and Request makes the request of a turn: both may
	// be asked at any time, so that a request is built while those that it waits for are in flight.
	Next(turn int) []int
	Request(turn int) workload.Request
}

// DefaultSpin covers the coarseness of Go's timers, about a millisecond on an
// idle thread, and the host taking the processor away for a moment.
const DefaultSpin = 5 * time.Millisecond
