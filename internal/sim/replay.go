package sim

import (
	"fmt"
	"iter"
	"math"
	"time"

	"perflab/internal/engine"
)

// ReplayOptions are the client's side of a replay.
type ReplayOptions struct {
	MaxConcurrency int // jobs in flight over all replicas; 0: no limit
	Seed           uint64
	KVTokens       int                        // overrides the size of the KV cache
	Constants      *Constants                 // of the step model; nil: Default()
	Stats          func(replica int, s Stats) // called for each replica after the last outcome; nil: not
	Warm           []Job                      // served by every replica before time 0, one after another: their prompts may be in its cache
}

// Replay runs jobs, whose arrivals must not decrease, through replicas copies
// of an engine in virtual time. A job goes to the replica with the fewest in
// flight, the first of equals; with a concurrency limit it starts when one
// before it has ended. Outcomes come in the order in which they end. Ranging
// again over the result runs the replay again.
func Replay(cfg engine.Config, replicas int, jobs iter.Seq[Job], o ReplayOptions) (iter.Seq[Outcome], error) {
	if replicas < 1 {
		return nil, fmt.Errorf("replay on %d replicas: need at least one", replicas)
	}
	if _, err := New(cfg, Options{Seed: o.Seed, KVTokens: o.KVTokens, Constants: o.Constants}); err != nil {
		return nil, err
	}
	return func(yield func(Outcome) bool) {
		r := &replay{limit: o.MaxConcurrency, yield: yield}
		for i := range replicas {
			c, err := New(cfg, Options{Seed: o.Seed + uint64(i), KVTokens: o.KVTokens, Constants: o.Constants})
			if err != nil {
				panic("sim: " + err.Error()) // it could be built above
			}
			c.warm(o.Warm)
			c.records()
			r.replicas = append(r.replicas, &replica{engine: c})
		}
		for j := range jobs {
			for r.advance(j.Arrive) {
			}
			for r.full() && r.advance(math.MaxInt64) {
			}
			if r.stopped {
				return
			}
			r.start(j, max(j.Arrive, r.now))
		}
		for r.advance(math.MaxInt64) {
		}
		if o.Stats == nil || r.stopped {
			return
		}
		for i, c := range r.replicas {
			o.Stats(i, c.engine.Stats())
		}
	}, nil
}

type replay struct {
	replicas []*replica
	limit    int
	inFlight int
	now      time.Duration // when the last step ended
	yield    func(Outcome) bool
	stopped  bool
}

// full says that the next job has to wait for the end of another.
func (r *replay) full() bool { return r.limit > 0 && r.inFlight >= r.limit }

// replica is a copy of the engine and the step it is in, if any.
type replica struct {
	engine   Engine
	inFlight int
	step     *Step
}

// advance runs the next event by t: a step that ends by t, or one that begins
// before t (one that could begin at t waits for the arrivals at t). It is false
// when there is none.
func (r *replay) advance(t time.Duration) bool {
	at, next, ends := time.Duration(0), (*replica)(nil), false
	for _, c := range r.replicas {
		e, isEnd, ok := c.event()
		if ok && (next == nil || e < at || e == at && isEnd && !ends) {
			at, next, ends = e, c, isEnd
		}
	}
	switch {
	case r.stopped || next == nil || at > t || at == t && !ends:
		return false
	case ends:
		r.deliver(next)
	default:
		next.step, _ = next.engine.Step()
	}
	return true
}

// event is when something happens next at a replica: its step ends, or one can
// begin.
func (c *replica) event() (at time.Duration, ends, ok bool) {
	if c.step != nil {
		return c.step.End, true, true
	}
	at, ok = c.engine.Next()
	return at, false, ok
}

func (r *replay) start(j Job, at time.Duration) {
	best := 0
	for i, c := range r.replicas {
		if c.inFlight < r.replicas[best].inFlight {
			best = i
		}
	}
	o := Outcome{Index: j.Index, Replica: best, Prompt: j.promptLen(), Output: j.Output, Due: j.Arrive, Ready: at, Sent: at}
	j.Arrive = at
	e := r.replicas[best].engine
	if err := e.check(j); err != nil {
		o.Err = err.Error()
		r.emit(o)
		return
	}
	o.Tokens = make([]Emit, 0, j.Output)
	e.put(j, o)
	r.inFlight++
	r.replicas[best].inFlight++
}

// deliver hands out what a step has finished.
func (r *replay) deliver(c *replica) {
	step := c.step
	c.step = nil
	r.now = step.End
	for _, p := range step.Progress {
		p.s.out.Cached = p.Cached
		r.inFlight--
		c.inFlight--
		r.emit(p.s.out)
	}
}

func (r *replay) emit(o Outcome) {
	if !r.stopped && !r.yield(o) {
		r.stopped = true
	}
}
