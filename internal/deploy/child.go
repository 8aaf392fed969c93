package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"perflab/internal/proc"
)

// child is a process of this machine, at the head of its own group and without a guard.
type child struct {
	name   string // of its program
	marker string
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended

	mu       sync.Mutex
	stopping bool
	reaped   bool
	state    *os.ProcessState // set when reaped
	running  sync.WaitGroup   // its goroutine
}

// handleExit takes note of the child's end. When nobody asked for it, the rest of its
// group is of no use and is ended at once.
func (c *child) handleExit(state *os.ProcessState) {
	c.mu.Lock()
	asked := c.stopping
	c.mu.Unlock()
	if !asked || state != nil { // else Stop gives the group its grace, then reaps
		c.reap(state)
	}
	close(c.exited)
}

// pid is the child's process id and its group's.
func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) Exited() <-chan struct{} { return c.exited }

// Status is "exit status 1" or "signal: killed".
func (c *child) Status() (string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		return "status unknown", -1
	}
	return c.state.String(), c.state.ExitCode()
}

// Record holds the child's identity.
func (c *child) Record() Record {
	id, _ := identify(c.pid())
	id.PID = c.pid() // also when it has ended already
	return Record{identity: id}
}

// URL is a port on the loopback interface.
func (c *child) URL(_ context.Context, port int) (string, error) {
	return loopbackURL(port), nil
}

func loopbackURL(port int) string { return fmt.Sprintf("http://%s:%d", loopback, port) }

// signal sends sig to the child's group, whose id is its own until it is
// reaped, and to every process that left the group.
func (c *child) signal(sig syscall.Signal) {
	c.mu.Lock()
	if !c.reaped {
		_ = killGroup(c.pid(), sig) // fails only when the group is gone
	}
	c.mu.Unlock()
	for _, p := range (scope{marker: c.marker}).survivors() {
		if p.Group != c.pid() {
			_ = signalExactly(p.ID, sig) // what stays is found again
		}
	}
}

// reap ends what is left of the group and takes the ended child's state.
func (c *child) reap(state *os.ProcessState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	_ = killGroup(c.pid(), syscall.SIGKILL)
	if state == nil {
		state, _ = c.cmd.Process.Wait()
	}
	c.state, c.reaped = state, true
}

// group is the id of the child's group as long as it is its own.
func (c *child) group() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return nil
	}
	return []int{c.pid()}
}

// remaining lists what still runs of the child and of what it started.
func (c *child) remaining() []proc.Process {
	out := scope{marker: c.marker, groups: c.group()}.survivors()
	select {
	case <-c.exited:
	default:
		if !slices.ContainsFunc(out, func(p proc.Process) bool { return p.PID == c.pid() }) {
			out = append(out, proc.Process{ID: proc.ID{PID: c.pid()}, Name: c.name, Group: c.pid()})
		}
	}
	return out
}

// Stop sends SIGTERM, and SIGKILL when the grace is over or hurry is closed.
func (c *child) Stop(grace time.Duration, hurry <-chan struct{}) error {
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	if left := endAll(c.remaining, c.signal, grace, hurry); len(left) > 0 {
		return fmt.Errorf("%s does not end after SIGKILL", describe(left[0]))
	}
	<-c.exited
	c.reap(nil)
	c.running.Wait()
	return nil
}

// endAll sends SIGTERM and, when the grace is over or hurry is closed, SIGKILL
// until find finds nothing. It returns what even that did not end.
func endAll(find func() []proc.Process, signal func(syscall.Signal), grace time.Duration, hurry <-chan struct{}) []proc.Process {
	signal(syscall.SIGTERM)
	left := awaitGone(find, grace, hurry)
	for end := time.Now().Add(killWait); len(left) > 0 && time.Now().Before(end); {
		signal(syscall.SIGKILL) // again: a process may have forked in between
		left = awaitGone(find, lastLook, nil)
	}
	return left
}

// awaitGone looks until find finds nothing, for at most limit.
func awaitGone(find func() []proc.Process, limit time.Duration, hurry <-chan struct{}) []proc.Process {
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
