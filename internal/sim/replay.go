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
	FirstUse       bool                       // as Options.FirstUse, of each replica
	Warm           []Job                      // served by every replica before time 0, one after another: their prompts may be in its cache

	// What follows is of jobs that wait for others: see Sessions.
	Sessions Sessions
	Affinity bool                                                // all jobs of a session go to the replica of its first one
	Home     func(first Job) int                                 // that replica; negative or nil: the one with the fewest jobs in flight, which equals take in turns
	Closed   bool                                                // a job of the sequence is due when the limit lets it pass
	Until    time.Duration                                       // no job is sent from then on; 0: all are
	Fill     func(replica int) (jobs iter.Seq[Job], of Sessions) // served by a replica before time 0, without a limit, after Warm; nil: nothing is
}

// Replay runs jobs, whose arrivals must not decrease, through replicas copies
// of an engine in virtual time. A job goes to the replica with the fewest in
// flight, the first of equals; with a concurrency limit it starts when one
// before it has ended. Outcomes come in the order in which they end. Ranging
// again over the result runs the replay again, which Sessions must allow.
func Replay(cfg engine.Config, replicas int, jobs iter.Seq[Job], o ReplayOptions) (iter.Seq[Outcome], error) {
	if replicas < 1 {
		return nil, fmt.Errorf("replay on %d replicas: need at least one", replicas)
	}
	if _, err := New(cfg, Options{Seed: o.Seed, KVTokens: o.KVTokens, Constants: o.Constants}); err != nil {
		return nil, err
	}
	return func(yield func(Outcome) bool) {
		r := &replay{options: o, yield: yield, lanes: map[int]*lane{}}
		for i := range replicas {
			c, err := New(cfg, Options{Seed: o.Seed + uint64(i), KVTokens: o.KVTokens, Constants: o.Constants, FirstUse: o.FirstUse})
			if err != nil {
				panic("sim: " + err.Error()) // it could be built above
			}
			c.warm(o.Warm)
			c.records()
			r.replicas = append(r.replicas, &replica{engine: c})
			r.fill(i)
		}
		r.run(jobs)
		if o.Stats == nil || r.stopped {
			return
		}
		for i, c := range r.replicas {
			o.Stats(i, c.engine.Stats())
		}
	}, nil
}

type replay struct {
	options  ReplayOptions
	replicas []*replica
	inFlight int           // jobs that stand alone, and sessions
	now      time.Duration // when the last step ended, or a job of a session came
	lanes    map[int]*lane // sessions under way, by number
	later    laterJobs
	order    int // jobs that waited for their time so far
	turn     int // replica at which the search for the least busy begins, of sessions
	yield    func(Outcome) bool
	stopped  bool
}

// run runs a sequence of jobs, and what follows on them, to the end.
func (r *replay) run(jobs iter.Seq[Job]) {
	for j := range jobs {
		for r.advance(j.Arrive) {
		}
		for r.full() && r.advance(math.MaxInt64) {
		}
		at := max(j.Arrive, r.now)
		if r.stopped || r.over(at) {
			break
		}
		r.begin(j, at)
	}
	for r.advance(math.MaxInt64) {
	}
}

// full says that the next job has to wait for the end of another.
func (r *replay) full() bool {
	return r.options.MaxConcurrency > 0 && r.inFlight >= r.options.MaxConcurrency
}

// over says that nothing is sent at a time any more.
func (r *replay) over(at time.Duration) bool { return r.options.Until > 0 && at >= r.options.Until }

// replica is a copy of the engine and the step it is in, if any.
type replica struct {
	engine   Engine
	inFlight int
	step     *Step
}

// advance runs the next event by t: a step that ends by t, or one that begins
// before t (one that could begin at t waits for the arrivals at t), or a job comes
// that waited for others. It is false when there is none.
func (r *replay) advance(t time.Duration) bool {
	if len(r.later) > 0 && r.later[0].Arrive <= t && !r.stopped {
		if !r.step(r.later[0].Arrive) {
			r.arrive()
		}
		return true
	}
	return r.step(t)
}

// step is advance for what happens in engines.
func (r *replay) step(t time.Duration) bool {
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

// begin sends a job of the sequence, and begins the session of which it is the first.
func (r *replay) begin(j Job, at time.Duration) {
	if r.options.Closed {
		j.Arrive = at
	}
	r.inFlight++
	if j.Session > 0 && r.options.Sessions != nil {
		r.open(j, at)
		return
	}
	r.send(j, at, r.least(0))
}

// least is the replica with the fewest jobs in flight, of equals the first from one on.
func (r *replay) least(from int) int {
	best := from
	for i := range r.replicas {
		if k := (from + i) % len(r.replicas); r.replicas[k].inFlight < r.replicas[best].inFlight {
			best = k
		}
	}
	return best
}

// send hands a job to a replica.
func (r *replay) send(j Job, at time.Duration, to int) {
	o := Outcome{
		Index: j.Index, Replica: to, Prompt: j.promptLen(), Output: j.Output, Due: j.Arrive, Ready: at, Sent: at,
		Session: j.Session, Turn: j.Turn, Turns: j.Turns,
	}
	j.Arrive = at
	e := r.replicas[to].engine
	if err := e.check(j); err != nil {
		o.Err = err.Error()
		r.end(o, at)
		return
	}
	o.Tokens = make([]Emit, 0, j.Output)
	e.put(j, o)
	r.replicas[to].inFlight++
}

// deliver hands out what a step has finished.
func (r *replay) deliver(c *replica) {
	step := c.step
	c.step = nil
	r.now = step.End
	for _, p := range step.Progress {
		p.s.out.Cached = p.Cached
		c.inFlight--
		r.end(p.s.out, step.End)
	}
}

// end hands an outcome out, and goes on with its session or frees its place at the limit.
func (r *replay) end(o Outcome, at time.Duration) {
	r.emit(o)
	if l := r.lanes[o.Session]; l != nil {
		r.follow(l, o, at)
		return
	}
	r.inFlight--
}

func (r *replay) emit(o Outcome) {
	if !r.stopped && !r.yield(o) {
		r.stopped = true
	}
}
