package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// child is one replica's front process, at the head of its own group.
type child struct {
	n      int
	url    string
	argv   []string
	log    *replicaLog
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended

	mu     sync.Mutex
	reaped bool
	state  *os.ProcessState // set when reaped
}

// inUse is how engines say that they cannot bind.
var inUse = regexp.MustCompile(`(?im)^.*(?:address already in use|EADDRINUSE).*$`)

// spawn starts one replica. Its goroutine is locked to its thread until the
// child ends, for the child is bound to the thread that forked it.
func (d *processes) spawn(n int, rep Replica, port int) (*child, error) {
	argv, env := withPort(rep.Argv, port), withPort(rep.Env, port)
	log, file, err := openLog(d.spec.Dir, n, argv, env)
	if err != nil {
		return nil, fileError(d.op, err)
	}
	defer file.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	// Python engines set process titles, which overwrites the environment that
	// /proc shows, and with it the marker, unless SPT_NOENV is set.
	cmd.Env = slices.Concat(os.Environ(), []string{"SPT_NOENV=1"}, env, []string{d.record.Marker})
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = childAttr()
	c := &child{
		n: n, url: fmt.Sprintf("http://127.0.0.1:%d", port),
		argv: argv, log: log, cmd: cmd, exited: make(chan struct{}),
	}
	started := make(chan error)
	d.running.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			d.ended(c, awaitExit(cmd.Process))
		}
	})
	if err := <-started; err != nil {
		return nil, &InfraError{Op: d.op, Err: err, Help: missingHelp(argv[0], err), Log: log.path}
	}
	return c, nil
}

// ended takes note of a child's end. When nobody asked for it, the rest of its
// group is of no use and is ended at once.
func (d *processes) ended(c *child, state *os.ProcessState) {
	defer close(c.exited)
	d.mu.Lock()
	asked, ready := d.stopping, d.ready
	d.mu.Unlock()
	if asked && state == nil {
		return // Stop gives the group its grace, then reaps
	}
	c.reap(state)
	if asked {
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

// explainDeath says why a child has ended after it was ready.
func (d *processes) explainDeath(c *child) error {
	tail := c.log.tail()
	reason, _ := d.spec.refusal(tail)
	return &DiedError{
		Replica: c.n,
		Status:  c.status(),
		Reason:  reason,
		Last:    lastOf(tail, lastLines),
		Log:     c.log.path,
	}
}

// pid is the child's process id and its group's.
func (c *child) pid() int { return c.cmd.Process.Pid }

// signal sends sig to the child's group, whose id is its own until it is
// reaped.
func (c *child) signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		_ = syscall.Kill(-c.pid(), sig) // fails only when the group is gone
	}
}

// reap ends what is left of the group and takes the ended child's state.
func (c *child) reap(state *os.ProcessState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	_ = syscall.Kill(-c.pid(), syscall.SIGKILL)
	if state == nil {
		state, _ = c.cmd.Process.Wait()
	}
	c.state, c.reaped = state, true
}

// status is "exit status 1" or "signal: killed".
func (c *child) status() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		return "status unknown"
	}
	return c.state.String()
}

// exitCode is -1 when a signal ended the child.
func (c *child) exitCode() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		return -1
	}
	return c.state.ExitCode()
}

func (c *child) recorded() recorded {
	id, _ := identify(c.pid())
	id.PID = c.pid() // also when it has ended already
	return recorded{identity: id, Replica: c.n, Argv: redactArgv(c.argv)}
}

// Stop ends all processes of the deployment: SIGTERM, and SIGKILL when the
// grace is over or ctx ends. The logs stay.
func (d *processes) Stop(ctx context.Context) error {
	release := context.AfterFunc(ctx, func() { d.hurryOnce.Do(func() { close(d.hurry) }) })
	defer release()
	d.stopOnce.Do(func() { d.stopErr = d.end() })
	return d.stopErr
}

func (d *processes) end() error {
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	left := endAll(d.left, d.signal, d.grace, d.hurry)
	if len(left) > 0 {
		return &InfraError{
			Op:   "stop " + d.spec.name(),
			Err:  fmt.Errorf("%s does not end after SIGKILL", describe(left[0])),
			Help: "it waits inside the kernel, as with a device that hangs: see dmesg",
		}
	}
	for _, c := range d.children {
		<-c.exited
		c.reap(nil)
	}
	d.running.Wait()
	if err := os.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fileError("stop "+d.spec.name(), err)
	}
	return nil
}

// groups are the ids of the groups of children not reaped yet.
func (d *processes) groups() []int {
	var out []int
	for _, c := range d.children {
		c.mu.Lock()
		if !c.reaped {
			out = append(out, c.pid())
		}
		c.mu.Unlock()
	}
	return out
}

// left lists what still runs of the deployment.
func (d *processes) left() []running {
	out := survivors(d.record.Marker, d.groups()...)
	for _, c := range d.children {
		select {
		case <-c.exited:
		default:
			if !slices.ContainsFunc(out, func(r running) bool { return r.PID == c.pid() }) {
				out = append(out, running{identity: identity{PID: c.pid()}, name: c.argv[0], group: c.pid()})
			}
		}
	}
	return out
}

// signal reaches every group, and every process that left its group.
func (d *processes) signal(sig syscall.Signal) {
	groups := d.groups()
	for _, c := range d.children {
		c.signal(sig)
	}
	for _, r := range survivors(d.record.Marker) {
		if !slices.Contains(groups, r.group) {
			_ = signalExactly(r.identity, sig) // what stays is found again
		}
	}
}

// Pauses between two looks at what still runs.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 100 * time.Millisecond
	killWait  = 10 * time.Second // for the kernel to end what SIGKILL was sent to
)

// endAll sends SIGTERM and, when the grace is over or hurry is closed, SIGKILL
// until find finds nothing. It returns what even that did not end.
func endAll(find func() []running, signal func(syscall.Signal), grace time.Duration, hurry <-chan struct{}) []running {
	signal(syscall.SIGTERM)
	left := awaitNone(find, grace, hurry)
	for end := time.Now().Add(killWait); len(left) > 0 && time.Now().Before(end); {
		signal(syscall.SIGKILL) // again: a process may have forked in between
		left = awaitNone(find, lastLook, nil)
	}
	return left
}

// awaitNone looks until find finds nothing, for at most limit.
func awaitNone(find func() []running, limit time.Duration, hurry <-chan struct{}) []running {
	end := time.NewTimer(limit)
	defer end.Stop()
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		left := find()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-end.C:
			return left
		case <-hurry:
			return left
		}
	}
}
