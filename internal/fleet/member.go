package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/clock"
	"perflab/internal/fleet/order"
	"perflab/internal/fleet/ship"
	"perflab/internal/generator"
	"perflab/internal/result"
)

// member is an agent at work for a run.
type member struct {
	Agent
	x       *run
	number  int
	process string
	agent   generator.Agent // as the header has it
	told    time.Duration   // its start instant, by its clock

	clocks  sync.Mutex
	track   clock.Track
	slowest time.Duration // exchange of all in it

	taking sync.Mutex // before run.mu, where both are held
	calls  *ship.Receiver

	// What it tells, guarded by run.mu.
	live   order.Progress
	done   order.Done
	isDone bool
	lost   string
	lostAt time.Duration
	last   time.Duration // when it was last heard of, by the leader's clock
}

func newMember(x *run, i, of int, a Agent) *member {
	return &member{
		Agent: a, x: x, number: i, calls: ship.NewReceiver(), last: x.l.now(),
		agent: generator.Agent{ID: a.ID, Name: a.Facts.Name, Version: a.Facts.Version, Host: a.Facts.Host, Shard: i, Of: of},
	}
}

// prepare has the agent open its shard of a run with this header.
func (w *member) prepare(ctx context.Context, files []order.File, h result.Header) error {
	job := order.Job{
		Load: order.Load{Epoch: w.x.epoch}, ShardJob: w.x.job.Shard(w.number, len(w.x.all)), Fetch: files,
		Lease: w.x.l.o.Lease, Who: w.x.l.o.Who, Header: h, Dir: w.x.job.Dir,
	}
	ready, err := order.Ask[order.Ready](ctx, w.x.l.conn, bus.Do(w.ID, order.Prepare), job)
	if err != nil {
		return err
	}
	w.process, w.agent = ready.Process, ready.Agent
	w.heard()
	return nil
}

// compare asks the agent's clock some times.
func (w *member) compare(ctx context.Context, times int) error {
	for range times {
		if err := w.ask(ctx); err != nil {
			return fmt.Errorf("compare its clock: %w", err)
		}
	}
	return nil
}

// ask asks the agent what time it is.
func (w *member) ask(ctx context.Context) error {
	sent := w.x.l.now()
	times, err := order.Ask[order.Times](ctx, w.x.l.conn, bus.Do(w.ID, order.Clock), struct{}{})
	back := w.x.l.now()
	switch {
	case err != nil:
		return err
	case times.Process != w.process:
		return errOther
	}
	w.clocks.Lock()
	w.track.Add(clock.Exchange{T1: sent, T2: times.Received, T3: times.Answered, T4: back})
	w.slowest = max(w.slowest, back-sent)
	w.clocks.Unlock()
	w.heard()
	return nil
}

// note writes into the agent's part of the header how far its clock is off at the start of the load, for a leader that does not
// live to say what was found later.
func (w *member) note(start time.Duration) {
	w.clocks.Lock()
	offset, bound, ok := w.track.At(start)
	fit := w.track.Fit()
	w.clocks.Unlock()
	if !ok {
		return // the start says so
	}
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	w.agent.Offset = &generator.Offset{Offset: offset, Bound: bound, DriftPPM: fit.DriftPPM, Exchanges: fit.Exchanges}
}

// errOther says that who answers is not the process that prepared.
var errOther = errors.New("the agent was started anew")

// look compares clocks during a load, and finds out whether the agent is still there.
func (w *member) look(ctx context.Context) {
	one, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := w.ask(one)
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	silent := w.x.l.now() - w.last
	switch {
	case w.isDone || w.lost != "":
	case errors.Is(err, errOther):
		w.lose("its process ended, and another one came in its place")
	case silent > w.x.l.o.Lease+bringing:
		w.lose(fmt.Sprintf("nothing was heard of it for %v", silent.Round(time.Second)))
	}
}

// bringing is how long an agent that was cut off has, after its lease, to come back with its calls.
const bringing = 10 * time.Second

// lose says that an agent is lost.
func (w *member) lose(why string) {
	w.lost, w.lostAt = why, max(0, w.last-w.x.begin)
	w.x.l.log.Warn("an agent is lost", "agent", w.Facts.Name, "why", why)
}

// over reports whether nothing more comes of the agent.
func (w *member) over() bool { return w.isDone || w.lost != "" }

func (w *member) heard() {
	w.x.mu.Lock()
	w.last = w.x.l.now()
	w.x.mu.Unlock()
}

// onLive takes how far the agent is.
func (w *member) onLive(m bus.Message) {
	p, err := order.Decode[order.Progress](m.Data)
	if err != nil {
		return // the next one comes soon
	}
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	w.last = w.x.l.now()
	to := w.x.job.Progress
	to.Sent.Add(p.Sent - w.live.Sent)
	to.InFlight.Add(p.InFlight - w.live.InFlight)
	to.Tokens.Add(p.Tokens - w.live.Tokens)
	w.live = p
}

// onCalls takes a batch of calls: to decode it keeps no other agent waiting.
func (w *member) onCalls(m bus.Message) {
	w.taking.Lock()
	seq, batch, err := order.ReadBatch(m.Data)
	if err == nil {
		var calls []result.Call
		calls, err = w.calls.Take(seq, batch)
		w.bring(calls)
	}
	w.taking.Unlock()
	if w.x.job.Keep != nil && err == nil {
		w.x.job.Keep() // what is acknowledged the agent does not keep
	}
	if m.Reply != nil {
		_ = m.Reply(order.Answer(nil, err)) // else it comes again
	}
}

// bring gives calls to the run.
func (w *member) bring(calls []result.Call) {
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	w.last = w.x.l.now()
	for i := range calls {
		calls[i].Agent = w.number + 1
		w.x.job.Progress.Ended(&calls[i])
		w.x.emit(calls[i])
	}
}

// onEnd takes how the agent's part ended.
func (w *member) onEnd(m bus.Message) {
	d, err := order.Decode[order.Done](m.Data)
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	if err == nil {
		w.done, w.isDone, w.last = d, true, w.x.l.now()
		w.x.wake()
	}
	if m.Reply != nil {
		_ = m.Reply(order.Answer(nil, err))
	}
}

// conclude writes into the agent's part of the header what came of it.
func (w *member) conclude() {
	w.taking.Lock()
	defer w.taking.Unlock()
	w.bring(w.calls.Finish(w.done.Batches))
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	a, to := &w.agent, w.x.job.Progress
	to.InFlight.Add(-w.live.InFlight)
	a.Sent = max(w.done.Sent, int(w.live.Sent))
	to.Sent.Add(int64(a.Sent) - w.live.Sent)
	if w.isDone {
		c := w.done.Client
		a.Client = &c
	}
	why := cmp.Or(w.lost, w.done.Wrong)
	if missing := w.calls.Missing(); why == "" && (w.done.Left != "" || len(missing) > 0) {
		why = cmp.Or(w.done.Left, "some of its calls did not come")
	}
	if why != "" && (w.lost != "" || !w.done.Client.Partial) {
		a.Lost, a.LostAt = why, w.lostAt
	}
	w.clocks.Lock()
	defer w.clocks.Unlock()
	offset, bound, ok := w.track.At(w.x.begin)
	if !ok {
		a.Offset = nil
		if a.Lost == "" {
			a.Lost = "its clock stepped, so that nobody knows when its calls were"
		}
		return
	}
	fit := w.track.Fit()
	// Calls are not moved once they are written: by how much the start was off is a part of the bound.
	off := (w.told - w.x.begin - offset).Abs()
	a.Offset = &generator.Offset{Offset: offset, Bound: bound + off, DriftPPM: fit.DriftPPM, Exchanges: fit.Exchanges}
}
