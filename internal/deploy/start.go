package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"perflab/internal/redact"
)

// startAll starts every process. Where peers serve, those of all replicas load at the same
// time, and fronts start when they are ready.
func (d *deployment) startAll(ctx context.Context, h *health) error {
	ports, err := d.choosePorts(ctx)
	if err != nil {
		return err
	}
	if p, ok := d.Host.(Planner); ok {
		plan := Plan{Op: d.op, Marker: d.marker}
		for _, set := range ports {
			plan.Ports = append(plan.Ports, set.byName())
		}
		if err := p.Plan(plan); err != nil {
			return err
		}
	}
	d.record = record{Kind: d.Kind, Marker: d.marker, Owner: currentOwner()}
	for i, rep := range d.spec.Replicas {
		for j := range rep.Peers {
			if err := d.startPeer(ctx, i, &rep.Peers[j], ports[i]); err != nil {
				return err
			}
		}
		if rep.served() {
			continue
		}
		if err := d.startFront(ctx, i, ports[i]); err != nil {
			return err
		}
	}
	if len(d.serving) == 0 {
		return nil
	}
	urls := make([]string, len(d.engines))
	for i, e := range d.engines {
		urls[i] = e.URL
	}
	if err := d.await(ctx, h, d.serving, urls); err != nil {
		return err
	}
	for i := range d.spec.Replicas {
		if err := d.startFront(ctx, i, ports[i]); err != nil {
			return err
		}
	}
	return nil
}

// served reports whether peers of the replica serve.
func (r Replica) served() bool {
	return slices.ContainsFunc(r.Peers, func(p Peer) bool { return p.Serves != "" })
}

func (d *deployment) startFront(ctx context.Context, replica int, ports portSet) error {
	m, err := d.start(ctx, replica, nil, d.spec.Replicas[replica].Member, ports)
	if err != nil {
		return err
	}
	target, err := d.reach(ctx, m, ports.front)
	if err != nil {
		return err
	}
	d.fronts, d.targets = append(d.fronts, m), append(d.targets, target)
	return nil
}

// reach is the base URL of a port of a process.
func (d *deployment) reach(ctx context.Context, m *member, port int) (string, error) {
	base, err := m.URL(ctx, port)
	if late, ok := errors.AsType[*LateError](err); ok {
		return "", d.explainWait(m, late, nil)
	}
	return base, err
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
	for _, f := range m.Files {
		log.secrets.Learn(f.Text)
	}
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
	if late, ok := errors.AsType[*LateError](err); ok {
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
	d.mu.Lock()
	d.members = append(d.members, c)
	d.mu.Unlock()
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
	if err == nil && p.Serves != "" {
		var base string
		base, err = d.reach(ctx, c, ports.named[p.Serves])
		d.engines, d.serving = append(d.engines, Engine{replica, p.Name, base}), append(d.serving, c)
	}
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

// awaitReady returns when all replicas answer, a process has ended, or ctx has.
func (d *deployment) awaitReady(ctx context.Context, h *health) error {
	if err := d.await(ctx, h, d.fronts, d.targets); err != nil {
		return err
	}
	return d.markReady()
}

// await returns when all of some processes answer at their base URLs, one of any has ended,
// or ctx has.
func (d *deployment) await(ctx context.Context, h *health, members []*member, urls []string) error {
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
	errs, seen := make([]error, len(members)), make([]error, len(members))
	for i := range members {
		probes.Go(func() { errs[i] = h.await(probing, urls[i], &seen[i]) })
	}
	probes.Wait()
	cancel(nil)
	watch.Wait()
	for i, c := range members {
		if errs[i] != nil {
			return d.explainWait(c, errs[i], seen[i])
		}
	}
	return nil
}
