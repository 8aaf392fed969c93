package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"perflab/internal/bench"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
	"perflab/internal/fleet/ship"
	"perflab/internal/load"
	"perflab/internal/result"
)

// job is a shard of a load, from its preparation to its last call.
type job struct {
	order.Job
	a     *agent
	ctx   context.Context // of the load
	kill  context.CancelCauseFunc
	whole context.Context // of all of it, also of bringing in the calls
	leave context.CancelFunc
	shard *bench.Shard // once it is ready

	record record
	ended  chan struct{} // closed when nothing of it goes on

	begun    sync.Once
	at       chan time.Duration // the start instant
	leased   *time.Timer
	progress load.Progress

	mu    sync.Mutex
	state string
	sends string // what all shards send, in words, once it is opened
	ready bool   // shard may be spoken to
}

// Bounds of what a leader may ask for.
const (
	leastLease = 2 * time.Second
	mostLease  = time.Minute
	usualLease = 8 * time.Second
	usualMost  = 6 * time.Hour
	mostWait   = 10 * time.Minute // for a start after the preparation
)

// prepare makes a job ready, and answers.
func (a *agent) prepare(ctx context.Context, m bus.Message) {
	o, err := order.Decode[order.Job](m.Data)
	if err != nil {
		a.reply(m, nil, fmt.Errorf("read the job: %w", err))
		return
	}
	j := a.newJob(ctx, o)
	if err := a.take(j); err != nil {
		j.kill(err)
		close(j.ended)
		a.reply(m, nil, err)
		return
	}
	defer close(j.ended)
	defer a.drop(j)
	defer a.keeper.settle(j.Epoch)
	defer j.leave()
	defer j.kill(nil)
	ready, err := j.prepare()
	a.reply(m, ready, err)
	if err != nil {
		a.log.Info("a load was not prepared", "epoch", j.Epoch, "error", err)
		return
	}
	defer j.shard.Close()
	j.run()
}

func (a *agent) newJob(ctx context.Context, o order.Job) *job {
	if o.Lease <= 0 {
		o.Lease = usualLease
	}
	o.Lease = min(max(o.Lease, leastLease), mostLease)
	if o.Most <= 0 || o.Most > usualMost {
		o.Most = usualMost
	}
	j := &job{Job: o, a: a, at: make(chan time.Duration, 1), ended: make(chan struct{})}
	j.whole, j.leave = context.WithCancel(context.WithoutCancel(ctx))
	j.ctx, j.kill = context.WithCancelCause(ctx)
	j.leased = time.AfterFunc(mostWait, func() { j.kill(errLeft) })
	return j
}

// errLeft ends a load that no leader holds on to.
var errLeft = errors.New("its leader was not heard of for the time of the lease")

// prepare fetches files, opens the shard and its connections.
func (j *job) prepare() (order.Ready, error) {
	var none order.Ready
	if x, err := j.a.keeper.find(j.Epoch); err == nil { // the numbers of another hub began anew
		return none, fmt.Errorf("this agent keeps calls of another load %d, which %s led: fetch or drop them by perflab fleet calls", j.Epoch, cmp.Or(x.Who, "somebody"))
	}
	j.does("fetches files")
	places, err := j.fetch()
	if err != nil {
		return none, err
	}
	j.ShardJob.Files = places
	j.does("opens the workload")
	if j.shard, err = bench.OpenShard(j.ctx, j.ShardJob); err != nil {
		return none, err
	}
	if err := j.shard.Open(j.ctx); err != nil {
		j.shard.Close()
		return none, err
	}
	j.mu.Lock()
	j.state, j.ready, j.sends = "waits for the start", true, j.shard.Describe()
	j.mu.Unlock()
	agent := j.shard.Facts()
	agent.ID, agent.Name, agent.Version, agent.SelfCheck = j.a.id, j.a.o.Facts.Name, j.a.o.Facts.Version, j.a.o.Facts.SelfCheck
	j.record = record{Load: j.Load, Who: j.Who, What: j.sends, Dir: j.Dir, Agent: agent, Header: j.Header}
	if err := j.a.keeper.write(j.record); err != nil {
		j.a.log.Warn("what the load is cannot be kept beside its calls: fetched by another leader, they have no header", "error", err)
	}
	return order.Ready{Agent: agent, Process: j.a.process}, nil
}

// fetch brings files that are not here yet, and says where they are by the spec's keys.
func (j *job) fetch() (map[string]string, error) {
	places := map[string]string{}
	for _, f := range j.Fetch {
		if !filepath.IsLocal(f.Key) || f.Name != "" && !filepath.IsLocal(f.Name) || !isDigest(f.Digest) {
			return nil, fmt.Errorf("fetch %q: that is no name of a file", f.Name)
		}
		kept := filepath.Join(j.a.o.Dir, "files", f.Digest)
		if _, err := os.Stat(kept); err != nil {
			if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
				return nil, err
			}
			if err := j.a.o.Conn.GetFile(j.ctx, f.Digest, kept); err != nil {
				return nil, fmt.Errorf("fetch %s: %w", cmp.Or(f.Name, f.Key), err)
			}
		}
		if f.Name == "" {
			places[f.Key] = kept
			continue
		}
		dir := filepath.Join(j.dir(), f.Key)
		places[f.Key] = dir
		at := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return nil, err
		}
		if err := os.Link(kept, at); err != nil {
			return nil, fmt.Errorf("place %s: %w", f.Name, err)
		}
	}
	return places, nil
}

func isDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}

// dir is the job's own directory.
func (j *job) dir() string { return j.a.keeper.of(j.Epoch) }

func (j *job) does(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state = what
}

func (j *job) doing() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return fmt.Sprintf("%s: shard %d of %d", j.state, j.Index+1, j.Of)
}

// work is what the job is, for who looks at the fleet.
func (j *job) work() *order.Work {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &order.Work{State: j.state, Shard: j.Index, Of: j.Of, Who: j.Who, Load: j.sends, Model: j.Spec.Model, Simulated: j.Simulated}
}

// start is the leader's order to start. Its second one changes nothing.
func (j *job) start(o order.Instant) {
	j.begun.Do(func() {
		j.renew()
		j.at <- o.At
	})
}

func (j *job) renew() { j.leased.Reset(j.Lease) }

// enough has nothing more sent. Before the shard is open there is nothing to send.
func (j *job) enough() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ready {
		j.shard.Enough()
	}
}

// run waits for the start, sends the shard, and has the leader get all of it.
func (j *job) run() {
	defer j.leased.Stop()
	var at time.Duration
	select {
	case <-j.ctx.Done():
		j.tell(order.Done{Wrong: context.Cause(j.ctx).Error()})
		return
	case at = <-j.at:
	}
	j.does("sends")
	most := time.AfterFunc(at-j.a.now()+j.Most, func() { j.kill(fmt.Errorf("its time of %v was up", j.Most)) })
	defer most.Stop()
	done := j.send(at)
	j.does("brings in calls")
	if j.tell(done) && done.Left == "" || done.Sent == 0 {
		return // nothing of it is waited for
	}
	j.record.Done, j.record.Ended = &done, time.Now().UTC()
	if err := j.a.keeper.write(j.record); err != nil {
		j.a.log.Warn("how the load ended cannot be kept beside its calls", "error", err)
	}
}

// send sends the shard from an instant of the agent's clock on.
func (j *job) send(at time.Duration) order.Done {
	s, err := ship.New(link{j.a, j.Epoch}, ship.Options{Dir: filepath.Join(j.dir(), spoolDir)})
	if err != nil {
		return order.Done{Wrong: err.Error()}
	}
	quiet := j.live()
	stats, err := j.shard.Run(j.ctx, j.a.base.Add(at), &j.progress, func(c result.Call) { s.Add(&c) })
	quiet()
	done := order.Done{Client: stats.Client, Sent: stats.Sent}
	if err != nil {
		done.Wrong = err.Error()
	}
	if late, ok := errors.AsType[*load.LateStartError](err); ok {
		done.Late = late.By
	}
	if why := context.Cause(j.ctx); why != nil && done.Wrong == "" {
		done.Client.Partial, done.Client.StopNote = true, why.Error()
		done.Wrong = why.Error()
	}
	// The calls of a load that was cancelled are brought in too: as long as nobody wants this agent for another.
	ctx, cancel := context.WithTimeout(j.whole, j.bringing())
	defer cancel()
	sent, err := s.Close(ctx)
	done.Batches = sent.Batches
	if err != nil {
		done.Left = err.Error()
	}
	return done
}

// How long the calls of a load that has ended may take, where its leader is there and where it was lost.
const (
	mostBringing = 2 * time.Minute
	leftBringing = 10 * time.Second
)

// bringing is how long the agent tries to bring in what is left.
func (j *job) bringing() time.Duration {
	if errors.Is(context.Cause(j.ctx), errLeft) {
		return leftBringing
	}
	return mostBringing
}

// live tells how far the load is, until it is told to be quiet.
func (j *job) live() (quiet func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		every := time.NewTicker(liveEvery)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			p := order.Progress{Sent: j.progress.Sent.Load(), InFlight: j.progress.InFlight.Load(), Tokens: j.progress.Tokens.Load()}
			_ = j.a.o.Conn.Publish(bus.Up(j.a.id, order.Of(order.Live, j.Epoch)), order.Encode(p)) // the next one says more
		}
	})
	return func() { cancel(); wait.Wait() }
}

const liveEvery = 250 * time.Millisecond

// tell says how the job ended, until the leader knows or nobody is there to be told.
func (j *job) tell(d order.Done) (told bool) {
	ctx, cancel := context.WithTimeout(j.whole, j.bringing())
	defer cancel()
	for try := 0; ; try++ {
		one, end := context.WithTimeout(ctx, patience)
		_, err := order.Ask[struct{}](one, j.a.o.Conn, bus.Up(j.a.id, order.Of(order.End, j.Epoch)), d)
		end()
		if err == nil || errors.Is(err, bus.ErrNobody) || ctx.Err() != nil {
			return err == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
		}
	}
}

// link brings batches of calls to the leader of a load.
type link struct {
	a     *agent
	epoch uint64
}

var _ ship.Link = link{}

func (l link) Send(ctx context.Context, seq uint64, batch []byte) error {
	raw, err := l.a.o.Conn.Request(ctx, bus.Up(l.a.id, order.Of(order.Calls, l.epoch)), order.Batch(seq, batch))
	if err != nil {
		return err
	}
	return order.Refused(raw)
}
