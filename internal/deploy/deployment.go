package deploy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"perflab/internal/redact"
)

// deployment is what a Launcher started.
type deployment struct {
	Launcher
	spec   Spec
	op     string // for messages: "start trial 3"
	marker string // KEY=value; each process has it with a number of its own
	record record
	path   string // of the record

	members []*member      // in the order in which they were started
	fronts  []*member      // one a replica
	targets []string       // base URLs of fronts
	watch   sync.WaitGroup // one goroutine a member

	done chan struct{} // closed with err set

	mu       sync.Mutex
	err      error // why the first process ended that should run
	ready    bool
	stopping bool

	hurry     chan struct{} // closed when the grace is over
	hurryOnce sync.Once
	stopOnce  sync.Once
	stopErr   error
}

// member is one process of a deployment.
type member struct {
	replica int
	name    string // "replica 0", "replica 0's head"
	peer    *Peer  // nil for a front process
	log     *memberLog
	Running
}

func newDeployment(l Launcher, op string, s Spec) *deployment {
	l.Grace = cmp.Or(l.Grace, defaultGrace)
	return &deployment{
		Launcher: l, spec: s, op: op,
		marker: markerKey + "=" + rand.Text(),
		path:   filepath.Join(s.Dir, recordName),
		done:   make(chan struct{}),
		hurry:  make(chan struct{}),
	}
}

// startAll starts every process.
func (d *deployment) startAll(ctx context.Context) error {
	ports, err := d.choosePorts(ctx)
	if err != nil {
		return err
	}
	d.record = record{Kind: d.Kind, Marker: d.marker, Owner: currentOwner()}
	for i, rep := range d.spec.Replicas {
		for j := range rep.Peers {
			if err := d.startPeer(ctx, i, &rep.Peers[j], ports[i]); err != nil {
				return err
			}
		}
		m, err := d.start(ctx, i, nil, rep.Member, ports[i])
		if err != nil {
			return err
		}
		d.fronts = append(d.fronts, m)
		target, err := m.URL(ctx, ports[i].front)
		if late, ok := errors.AsType[*lateError](err); ok {
			return d.explainWait(m, late, nil)
		}
		if err != nil {
			return err
		}
		d.targets = append(d.targets, target)
	}
	return nil
}

// start starts one process and watches it. It is in the record before it starts, by its
// marker, and afterwards by its identity: at no moment something runs that the record does
// not lead to.
func (d *deployment) start(ctx context.Context, replica int, p *Peer, m Member, ports portSet) (*member, error) {
	file, name := fmt.Sprintf("replica-%d", replica), fmt.Sprintf("replica %d", replica)
	if p != nil {
		file, name = file+"."+p.Name, name+"'s "+p.Name
	}
	m = ports.fill(m, d.Bind)
	log, out, err := openLog(d.spec.Dir, file, m.Argv, m.Env)
	if err != nil {
		return nil, fileError(d.op, err)
	}
	defer out.Close()
	j := Job{
		Member: m, Op: d.op, Name: file, Marker: fmt.Sprintf("%s/%d", d.marker, len(d.members)),
		Ports: ports.all(), Visible: d.spec.Visible, Dir: d.spec.Dir, Log: out,
	}
	listed := len(d.record.Processes)
	d.record.Processes = append(d.record.Processes, Record{Replica: replica, Name: file, Node: m.Node, Marker: j.Marker, Argv: redact.Argv(m.Argv)})
	if err := d.record.write(d.path); err != nil {
		return nil, fileError(d.op, err)
	}
	run, err := d.Spawn(ctx, j)
	if late, ok := errors.AsType[*lateError](err); ok {
		err = &InfraError{
			Op: d.op, Err: fmt.Errorf("%s is %w: it was still being started", name, late),
			Help: "allow more time, or see what its machine is busy with; its log is " + log.path,
		}
	}
	if infra, ok := errors.AsType[*InfraError](err); ok && infra.Log == "" {
		infra.Log = log.path
	}
	if err != nil {
		return nil, err
	}
	c := &member{replica: replica, name: name, peer: p, log: log, Running: run}
	d.members = append(d.members, c)
	d.watch.Go(func() { d.watchExit(c) })
	d.record.Processes[listed] = d.record.Processes[listed].withIdentity(run.Record())
	if err := d.record.write(d.path); err != nil {
		return nil, fileError(d.op, err)
	}
	return c, nil
}

// Pauses between two looks at a log for a peer's sign.
const (
	firstPoll = 5 * time.Millisecond
	lastPoll  = 200 * time.Millisecond
)

// startPeer starts a peer and waits until it is up, or through.
func (d *deployment) startPeer(ctx context.Context, replica int, p *Peer, ports portSet) error {
	c, err := d.start(ctx, replica, p, p.Member, ports)
	if err != nil || p.Up == "" && !p.Once {
		return err
	}
	sign := &textWatch{log: c.log, text: []byte(p.Up)}
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		if !p.Once && sign.seen() {
			return nil
		}
		select {
		case <-d.done:
			return d.Err()
		case <-c.Exited():
			if _, code := c.Status(); p.Once && code == 0 {
				return nil
			}
			<-d.done // its end is being explained
			return d.Err()
		case <-ctx.Done():
			return d.explainWait(c, context.Cause(ctx), nil)
		case <-time.After(pause):
		}
	}
}

// explainStart gives the reason of an end during the start precedence over what
// followed from it.
func (d *deployment) explainStart(err error) error {
	if ended := d.Err(); ended != nil {
		return ended
	}
	return err
}

// watchExit takes note of a process's end that nobody asked for.
func (d *deployment) watchExit(c *member) {
	<-c.Exited()
	d.mu.Lock()
	asked, ready := d.stopping, d.ready
	d.mu.Unlock()
	if _, code := c.Status(); asked || c.peer != nil && c.peer.Once && code == 0 {
		return
	}
	var err error
	if ready {
		err = d.explainDeath(c)
	} else {
		err = d.explainExit(c)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
		close(d.done)
	}
}

// awaitReady returns when all replicas answer, one has ended, or ctx has.
func (d *deployment) awaitReady(ctx context.Context, h *health) error {
	probing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watch, probes sync.WaitGroup
	watch.Go(func() {
		select {
		case <-d.done:
			cancel(d.Err())
		case <-probing.Done():
		}
	})
	errs, seen := make([]error, len(d.fronts)), make([]error, len(d.fronts))
	for i := range d.fronts {
		probes.Go(func() { errs[i] = h.await(probing, d.targets[i], &seen[i]) })
	}
	probes.Wait()
	cancel(nil)
	watch.Wait()
	for i, c := range d.fronts {
		if errs[i] != nil {
			return d.explainWait(c, errs[i], seen[i])
		}
	}
	return d.markReady()
}

// markReady marks the deployment as ready unless a process has ended meanwhile.
func (d *deployment) markReady() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ready = d.err == nil
	return d.err
}

// Targets are the replicas' base URLs.
func (d *deployment) Targets() []string { return slices.Clone(d.targets) }

// Done is closed when a process has ended before Stop.
func (d *deployment) Done() <-chan struct{} { return d.done }

// Err says why Done is closed; nil as long as it is not.
func (d *deployment) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Stop ends all processes of the deployment: it asks them, and forces them when the
// grace is over or ctx ends. The logs stay.
func (d *deployment) Stop(ctx context.Context) error {
	release := context.AfterFunc(ctx, func() { d.hurryOnce.Do(func() { close(d.hurry) }) })
	defer release()
	d.stopOnce.Do(func() { d.stopErr = d.end() })
	return d.stopErr
}

// end stops the processes all at once. The record stays while one may run.
func (d *deployment) end() error {
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	errs := make([]error, len(d.members))
	var wg sync.WaitGroup
	for i, c := range d.members {
		wg.Go(func() { errs[i] = c.Stop(d.Grace, d.hurry) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		help := "one that waits inside the kernel, as with a device that hangs, does not end: see dmesg"
		if infra, ok := errors.AsType[*InfraError](err); ok { // its Host knows better
			help = infra.Help
		}
		d.record.Owner = owner{}   // a leftover now, also to this perflab
		_ = d.record.write(d.path) // the error to tell is the other
		return &InfraError{Op: "stop " + d.spec.name(), Err: err, Help: help}
	}
	d.watch.Wait()
	if err := os.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fileError("stop "+d.spec.name(), err)
	}
	for _, target := range d.targets {
		if addr, served := stillServed(target); served {
			return &InfraError{
				Op:   "stop " + d.spec.name(),
				Err:  fmt.Errorf("%s is still served although every process of the engine has ended", addr),
				Help: "a process that the engine started has left its group, session and environment: find it with ss -ltnp, and end it",
			}
		}
	}
	return nil
}

// stillServed reports whether something accepts connections where a replica did.
func stillServed(target string) (addr string, served bool) {
	u, err := url.Parse(target)
	if err != nil {
		return target, false
	}
	c, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err != nil {
		return u.Host, false
	}
	c.Close()
	return u.Host, true
}
