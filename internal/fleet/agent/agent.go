// Package agent is what a machine of a fleet does: it says what it is, answers how late it is, and sends
// the shard of a load that a leader gives it.
//
//	err := agent.Run(ctx, agent.Options{Conn: conn, Dir: dir, Facts: facts})
//
// Invariants: one load at a time, that of the newest epoch, and an order of another one is refused. A load
// whose lease was not renewed, whose time is up or whose agent is stopped ends by itself: there
// is no load without a leader. What was measured is kept on disk until the leader has it; where the leader is gone
// until somebody fetches it, or for keepFor, the oldest first where that is too much.
//
// Deliberately absent: figures, and engines (package deploy starts those).
package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
)

// Conn is a connection to a hub, as bus.Dial makes it.
type Conn interface {
	order.Asker
	ID() string
	Publish(subject string, data []byte) error
	Handle(subject string, f func(bus.Message)) (stop func(), err error)
	GetFile(ctx context.Context, digest, path string) error
}

var _ Conn = (*bus.Conn)(nil)

// Options say what an agent is.
type Options struct {
	Conn  Conn
	Dir   string             // for files that were fetched, and calls that are on their way
	Facts order.Facts        // but for what an agent knows by itself
	Held  func() *order.Held // who holds it for a study; nil: it starts no engines
	Ahead time.Duration      // by which its clock is set apart, to try what that does
	Log   *slog.Logger
}

// agent is one that runs.
type agent struct {
	o       Options
	id      string
	process string
	base    time.Time // that its clock counts from
	log     *slog.Logger

	keeper *keeper

	mu     sync.Mutex
	job    *job   // the load that it is at; nil: none
	newest uint64 // epoch that was prepared last

	work sync.WaitGroup
}

// Run takes part until ctx ends. A load that goes on then is cancelled, and its calls are sent.
func Run(ctx context.Context, o Options) error {
	a := &agent{o: o, id: o.Conn.ID(), process: rand.Text(), base: time.Now().Add(-o.Ahead), log: o.Log}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.keeper = openKeeper(filepath.Join(o.Dir, "loads"), a.log)
	stop, err := a.listen(ctx)
	if err != nil {
		return err
	}
	a.report(ctx)
	stop()
	a.end(errors.New("the agent was stopped"))
	a.work.Wait()
	return context.Cause(ctx)
}

// listen takes orders until stop is called.
func (a *agent) listen(ctx context.Context) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	for word, f := range map[string]func(bus.Message){
		order.Clock: a.clock,
		order.Prepare: func(m bus.Message) {
			a.work.Go(func() { a.prepare(ctx, m) }) // which may take long: orders to others go on
		},
		order.Start:  func(m bus.Message) { a.ordered(m, (*job).start) },
		order.Lease:  func(m bus.Message) { a.ordered(m, func(j *job, _ order.Instant) { j.renew() }) },
		order.Enough: func(m bus.Message) { a.ordered(m, func(j *job, _ order.Instant) { j.enough() }) },
		order.Stop:   func(m bus.Message) { a.ordered(m, func(j *job, _ order.Instant) { j.kill(errStopped) }) },

		order.Kept:      a.kept,
		order.KeptBatch: a.keptBatch,
		order.Forget:    a.forget,
	} {
		s, err := a.o.Conn.Handle(bus.Do(a.id, word), f)
		if err != nil {
			stop()
			return nil, fmt.Errorf("listen to what leaders want: %w", err)
		}
		stops = append(stops, s)
	}
	return stop, nil
}

// now is the agent's clock.
func (a *agent) now() time.Duration { return time.Since(a.base) }

// clock answers what time it is here.
func (a *agent) clock(m bus.Message) {
	received := a.now()
	if m.Reply == nil {
		return
	}
	a.reply(m, order.Times{Received: received, Process: a.process, Answered: a.now()}, nil)
}

func (a *agent) reply(m bus.Message, v any, err error) {
	if m.Reply == nil {
		return
	}
	if err := m.Reply(order.Answer(v, err)); err != nil {
		a.log.Warn("an answer did not leave", "to", m.Subject, "error", err)
	}
}

// ordered gives an order on to the load that it is about; those that are no start have no instant. One of another
// epoch comes from a leader that does not know that it was replaced: it is answered, and nothing is done.
func (a *agent) ordered(m bus.Message, f func(*job, order.Instant)) {
	o, err := order.Decode[order.Instant](m.Data)
	if err != nil {
		a.reply(m, nil, err)
		return
	}
	a.mu.Lock()
	j, newest := a.job, a.newest
	a.mu.Unlock()
	if j == nil || j.Epoch != o.Epoch {
		a.log.Warn("an order of another load was refused", "order", m.Subject, "epoch", o.Epoch, "newest", newest)
		a.reply(m, nil, fmt.Errorf("load %d is not what this agent is at (its newest is %d)", o.Epoch, newest))
		return
	}
	f(j, o)
	a.reply(m, nil, nil)
}

// kept says what is kept of a load.
func (a *agent) kept(m bus.Message) {
	o, err := order.Decode[order.Load](m.Data)
	var p order.KeptPart
	if err == nil {
		p, err = a.keeper.part(o.Epoch)
	}
	a.reply(m, p, err)
}

// keptBatch gives a batch of calls that are kept.
func (a *agent) keptBatch(m bus.Message) {
	o, err := order.Decode[order.BatchOf](m.Data)
	var batch []byte
	if err == nil {
		batch, err = a.keeper.batch(o)
	}
	if m.Reply == nil {
		return
	}
	if err := m.Reply(order.AnswerBatch(batch, err)); err != nil {
		a.log.Warn("a batch of calls that are kept did not leave", "load", o.Epoch, "batch", o.Seq, "error", err)
	}
}

// forget removes what is kept of a load.
func (a *agent) forget(m bus.Message) {
	o, err := order.Decode[order.Load](m.Data)
	if err == nil {
		err = a.keeper.forget(o.Epoch)
	}
	a.reply(m, nil, err)
}

// report says what the agent is, again and again.
func (a *agent) report(ctx context.Context) {
	every := time.NewTicker(order.HereEvery)
	defer every.Stop()
	for {
		if err := a.o.Conn.Publish(bus.Up(a.id, order.Here), order.Encode(a.facts())); err != nil && !errors.Is(err, bus.ErrAway) {
			a.log.Warn("the agent cannot say that it is there", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

func (a *agent) facts() order.Facts {
	f := a.o.Facts
	f.Process, f.Since = a.process, a.base
	a.keeper.lapse(time.Now())
	f.Kept, f.GaveUp = a.keeper.list()
	if a.o.Held != nil {
		f.Held = a.o.Held()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.job != nil {
		f.Epoch, f.Doing, f.Work = a.job.Epoch, a.job.doing(), a.job.work()
	}
	return f
}

// take makes a job the agent's own, and ends one of an earlier epoch.
func (a *agent) take(j *job) error {
	a.mu.Lock()
	old := a.job
	if j.Epoch <= a.newest {
		a.mu.Unlock()
		return fmt.Errorf("load %d is older than %d, which this agent has taken already: its leader was replaced", j.Epoch, a.newest)
	}
	a.newest, a.job = j.Epoch, j
	a.mu.Unlock()
	if old != nil {
		old.kill(fmt.Errorf("load %d came in its place", j.Epoch))
		old.leave() // what it has not brought in stays on disk
		<-old.ended
	}
	return nil
}

// drop says that a job is no more.
func (a *agent) drop(j *job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.job == j {
		a.job = nil
	}
}

// end ends what the agent is at.
func (a *agent) end(why error) {
	a.mu.Lock()
	j := a.job
	a.mu.Unlock()
	if j != nil {
		j.kill(why)
		time.AfterFunc(patience, j.leave)
	}
}

var errStopped = errors.New("the leader stopped the load")

// patience is how long an answer of a hub may take.
const patience = 20 * time.Second
