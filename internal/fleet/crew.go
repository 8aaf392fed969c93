package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/bench"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
	"perflab/internal/load"
	"perflab/internal/result"
)

// Crew is agents of a fleet as bench knows them.
type Crew struct {
	l      *Leader
	choice Choice
}

var _ bench.Crew = (*Crew)(nil)

// Crew chooses agents, now for an error that comes soon, and for each load those that are there then.
func (l *Leader) Crew(ctx context.Context, c Choice) (*Crew, error) {
	crew := &Crew{l, c}
	_, err := crew.choose(ctx)
	return crew, err
}

func (c *Crew) choose(ctx context.Context) ([]Agent, error) {
	all := c.l.Gather(ctx, func(all []Agent) bool {
		if c.choice.Count == 0 && len(c.choice.Names) == 0 {
			return false // all are meant: who has not spoken yet is waited for
		}
		_, err := c.l.Choose(all, c.choice)
		return err == nil
	})
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return c.l.Choose(all, c.choice)
}

// Load is bench.Crew's.
func (c *Crew) Load(ctx context.Context, job bench.CrewJob, emit func(result.Call)) (load.Stats, *result.Fleet, error) {
	agents, err := c.choose(ctx)
	if err != nil {
		return load.Stats{}, nil, err
	}
	agents = agents[:job.Agents(len(agents))]
	if s := bench.Size(bench.NeedOf(job.Workload), able(agents)); !s.Enough() && c.l.o.Say != nil {
		c.l.o.Say(s.Text())
	}
	return c.l.load(ctx, agents, job, emit)
}

// load has agents send a load.
func (l *Leader) load(ctx context.Context, agents []Agent, job bench.CrewJob, emit func(result.Call)) (load.Stats, *result.Fleet, error) {
	x, err := l.begin(ctx, agents, job, emit)
	if err != nil {
		return load.Stats{}, nil, err
	}
	defer x.close()
	if err := x.prepare(ctx); err != nil {
		return load.Stats{}, nil, err
	}
	if err := x.start(ctx); err != nil {
		return load.Stats{}, nil, err
	}
	return x.attend(ctx)
}

// able is what each agent can send.
func able(agents []Agent) []bench.Able {
	out := make([]bench.Able, len(agents))
	for i, a := range agents {
		out[i] = bench.AbleOf(a.Facts.Name, a.Facts.Streams, a.Facts.Limit, a.Facts.SelfCheck)
	}
	return out
}

// run is one load over agents.
type run struct {
	l      *Leader
	job    bench.CrewJob
	epoch  uint64
	all    []*member
	emit   func(result.Call)
	closes []func()
	leases []*bus.Lease

	notice time.Duration // how long before the start instant agents are told of it
	begin  time.Duration // that instant, by the leader's clock
	at     time.Time

	mu    sync.Mutex // emit, and what members tell
	woken chan struct{}
}

// begin makes agents this leader's, with a new epoch.
func (l *Leader) begin(ctx context.Context, agents []Agent, job bench.CrewJob, emit func(result.Call)) (*run, error) {
	epoch, err := l.conn.Next(ctx, "epoch")
	if err != nil {
		return nil, fmt.Errorf("number the load: %w", err)
	}
	x := &run{l: l, job: job, epoch: epoch, emit: emit, woken: make(chan struct{}, 1)}
	for i, a := range agents {
		lease, err := l.conn.Claim(ctx, "agent."+a.ID, []byte(l.o.Who), claimed)
		if held, ok := errors.AsType[*bus.HeldError](err); ok {
			err = &BusyError{Agent: a.Facts.Name, Who: cmp.Or(string(held.Value), "somebody else")}
		}
		if err != nil {
			x.close()
			return nil, err
		}
		x.leases = append(x.leases, lease)
		x.all = append(x.all, newMember(x, i, len(agents), a))
	}
	if err := x.listen(); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

// BusyError says that an agent works for another leader.
type BusyError struct{ Agent, Who string }

func (e *BusyError) Error() string { return fmt.Sprintf("agent %s works for %s", e.Agent, e.Who) }

// claimed is for how long an agent is a leader's that says nothing more.
const claimed = 15 * time.Second

// close gives the agents back.
func (x *run) close() {
	for _, f := range x.closes {
		f()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, l := range x.leases {
		_ = l.Release(ctx) // it ends by itself
	}
}

// listen takes what the agents report of this load, each on a goroutine of its own.
func (x *run) listen() error {
	for _, w := range x.all {
		for word, f := range map[string]func(bus.Message){order.Live: w.onLive, order.Calls: w.onCalls, order.End: w.onEnd} {
			stop, err := x.l.conn.Handle(bus.Up(w.ID, order.Of(word, x.epoch)), f)
			if err != nil {
				return fmt.Errorf("listen to the agents: %w", err)
			}
			x.closes = append(x.closes, stop)
		}
	}
	return nil
}

// each does something with every agent at once, and tells all that went wrong.
func (x *run) each(do func(*member) error) error {
	errs := make([]error, len(x.all))
	var wait sync.WaitGroup
	for i, w := range x.all {
		wait.Go(func() {
			if err := do(w); err != nil {
				errs[i] = fmt.Errorf("agent %s: %w", w.Facts.Name, err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// mostPreparing is how long an agent may take to fetch files and to open its shard.
const mostPreparing = 10 * time.Minute

// prepare brings files to the hub, has the agents open their shards, and compares clocks.
func (x *run) prepare(ctx context.Context) error {
	files, err := x.files(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mostPreparing)
	defer cancel()
	wait, stop := x.hold(ctx) // preparing may take longer than a claim lasts
	h := x.job.Header
	h.Fleet = x.fleet()
	err = x.each(func(w *member) error { return w.prepare(ctx, files, h) })
	stop()
	wait()
	if err != nil {
		x.tell(order.Stop)
		return err
	}
	if err := x.each(func(w *member) error { return w.compare(ctx, exchangesBefore) }); err != nil {
		x.tell(order.Stop)
		return err
	}
	for _, w := range x.all {
		w.note(x.l.now() + ahead)
	}
	if err := x.job.Ready(x.fleet()); err != nil {
		x.tell(order.Stop)
		return err
	}
	return nil
}

// files are those of the workload, brought to the hub.
func (x *run) files(ctx context.Context) ([]order.File, error) {
	all, err := x.job.Spec.Workload.Files()
	if err != nil {
		return nil, err
	}
	out := make([]order.File, len(all))
	for i, f := range all {
		digest, err := x.l.conn.PutFile(ctx, f.Path)
		if err != nil {
			return nil, fmt.Errorf("bring %s to the fleet: %w", f.Path, err)
		}
		out[i] = order.File{Key: f.Key, Digest: digest, Name: f.Name}
	}
	return out, nil
}

// tell gives all agents an order about the load that nobody waits for.
func (x *run) tell(word string) {
	for _, w := range x.all {
		_ = x.l.conn.Publish(bus.Do(w.ID, word), order.Encode(order.Load{Epoch: x.epoch})) // a lease that is not renewed ends the load too
	}
}

// hold keeps the agents this leader's until it is stopped.
func (x *run) hold(ctx context.Context) (wait func(), stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		every := time.NewTicker(claimed / 5)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			for _, l := range x.leases {
				if err := l.Renew(ctx); err != nil && ctx.Err() == nil {
					x.l.log.Warn("an agent may be taken by another leader", "agent", l.Key, "error", err)
				}
			}
		}
	})
	return all.Wait, stop
}

// Times of a start.
const (
	ahead           = time.Second          // of the start instant, for the order to arrive and the first requests to be built
	aheadEach       = 2 * time.Millisecond // and for each agent
	aheadSlow       = 10                   // and times the slowest answer that there was to what o'clock it is: a busy machine is late with all
	mostAhead       = 10 * time.Second
	exchangesBefore = 24
	exchangesAfter  = 12
)

// lead is the notice that agents need.
func (x *run) lead() time.Duration {
	slowest := time.Duration(0)
	for _, w := range x.all {
		w.clocks.Lock()
		slowest = max(slowest, w.slowest)
		w.clocks.Unlock()
	}
	return min(ahead+time.Duration(len(x.all))*aheadEach+aheadSlow*slowest, mostAhead)
}

// start tells the agents when they start: at one instant, each by its own clock.
func (x *run) start(ctx context.Context) error {
	x.notice = x.lead()
	x.begin = x.l.now() + x.notice
	x.at = x.l.base.Add(x.begin)
	return x.each(func(w *member) error {
		offset, _, ok := w.track.At(x.begin)
		if !ok {
			return errors.New("its clock does not run evenly: no instant can be agreed on with it")
		}
		w.told = x.begin + offset
		_, err := order.Ask[struct{}](ctx, x.l.conn, bus.Do(w.ID, order.Start), order.Instant{Load: order.Load{Epoch: x.epoch}, At: w.told})
		return err
	})
}

// attend follows the load to its end: leases, clocks, and who is still there.
func (x *run) attend(ctx context.Context) (load.Stats, *result.Fleet, error) {
	waitHold, stopHold := x.hold(context.WithoutCancel(ctx))
	defer func() { stopHold(); waitHold() }()
	defer time.AfterFunc(time.Until(x.at), func() { x.job.Begun(x.at) }).Stop()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	stopped, enough := ctx.Done(), x.job.Enough
	var comparing sync.WaitGroup
	defer comparing.Wait()
	for !x.ended() {
		select {
		case <-stopped:
			stopped = nil
			x.tell(order.Stop)
		case <-enough:
			enough = nil
			x.tell(order.Enough)
		case <-every.C:
			if stopped != nil {
				x.tell(order.Lease)
			}
			for _, w := range x.all {
				comparing.Go(func() { w.look(ctx) })
			}
		case <-x.woken:
		}
	}
	return x.finish(ctx)
}

// wake has attend look again.
func (x *run) wake() {
	select {
	case x.woken <- struct{}{}:
	default: // it will anyway
	}
}

// ended reports whether nothing more comes from any agent.
func (x *run) ended() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !slices.ContainsFunc(x.all, func(w *member) bool { return !w.over() })
}

// finish says what came of the load.
func (x *run) finish(ctx context.Context) (load.Stats, *result.Fleet, error) {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = x.each(func(w *member) error { // who does not answer was compared before
		if w.lost != "" {
			return nil
		}
		return w.compare(after, exchangesAfter)
	})
	for _, w := range x.all {
		w.conclude()
	}
	f := x.fleet()
	stats := load.Stats{Start: x.at}
	late := 0
	var wrong []string
	for _, w := range x.all {
		stats.Partial = stats.Partial || w.lost != "" || w.done.Client.Partial
		if w.done.Late > 0 {
			late++
			wrong = append(wrong, fmt.Sprintf("%s by %v", w.Facts.Name, w.done.Late.Round(time.Millisecond)))
		}
	}
	if late == len(x.all) {
		return stats, f, fmt.Errorf("the start instant was past when the order came: %s: the connections to the hub are slower than %v, or the agents' machines are busy", strings.Join(wrong, ", "), x.notice.Round(time.Millisecond))
	}
	return stats, f, nil
}

// fleet is who sends the load, as far as is known.
func (x *run) fleet() *result.Fleet {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := &result.Fleet{Epoch: x.epoch}
	for _, w := range x.all {
		f.Agents = append(f.Agents, w.agent)
	}
	return f
}
