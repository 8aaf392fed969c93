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
)

// deployment is what a Launcher started.
type deployment struct {
	Launcher
	spec   Spec
	op     string // for messages: "start trial 3"
	marker string // KEY=value; each process has it with a number of its own
	record record
	path   string // of the record

	members []*member      // in the order in which they were started; guarded by mu while some are still being started
	fronts  []*member      // one a replica
	targets []string       // base URLs of fronts
	engines []Engine       // peers that serve
	serving []*member      // their processes
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

// markReady marks the deployment as ready unless a process has ended meanwhile.
func (d *deployment) markReady() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ready = d.err == nil
	return d.err
}

// Targets are the replicas' base URLs.
func (d *deployment) Targets() []string { return slices.Clone(d.targets) }

// Engines are the peers that serve.
func (d *deployment) Engines() []Engine { return slices.Clone(d.engines) }

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
	for _, c := range d.members {
		if err := c.log.conceal(); err != nil {
			return fileError("stop "+d.spec.name(), err)
		}
	}
	if err := concealFiles(d.spec.Dir); err != nil {
		return fileError("stop "+d.spec.name(), err)
	}
	if err := os.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fileError("stop "+d.spec.name(), err)
	}
	if d.Forwarded {
		return nil
	}
	for _, base := range d.bases() {
		if err := Unserved("stop "+d.spec.name(), base); err != nil {
			return err
		}
	}
	return nil
}

// bases are the URLs of what serves, but those that are ports of perflab's own.
func (d *deployment) bases() (out []string) {
	add := func(m *member, base string) {
		if f, ok := m.Running.(Forwarder); !ok || !f.Forwarded() {
			out = append(out, base)
		}
	}
	for i, m := range d.fronts {
		add(m, d.targets[i])
	}
	for i, m := range d.serving {
		add(m, d.engines[i].URL)
	}
	return out
}

// Unserved says that something accepts connections at a base URL on this machine where an engine did, of which every
// process has ended.
func Unserved(op, base string) error {
	addr, served := stillServed(base)
	if !served {
		return nil
	}
	return &InfraError{
		Op:   op,
		Err:  fmt.Errorf("%s is still served although every process of the engine has ended", addr),
		Help: "a process that the engine started has left its group, session and environment: find it with ss -ltnp, and end it",
	}
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
