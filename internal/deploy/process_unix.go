//go:build unix && !linux

package deploy

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"perflab/internal/proc"
)

// childAttr puts a child at the head of its own process group. The system has
// no way to end it together with perflab.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit blocks until the process has ended and returns its state.
func awaitExit(p *os.Process) *os.ProcessState {
	state, _ := p.Wait()
	return state
}

// survivors lists the groups that still have members, each by its first
// process's id. Processes that left their group are not found.
func (s scope) survivors() []proc.Process {
	var out []proc.Process
	for _, g := range s.groups {
		if syscall.Kill(-g, 0) == nil {
			out = append(out, proc.Process{ID: proc.ID{PID: g}, Group: g})
		}
	}
	return out
}

// signal reaches no process: without its start time none is known for the one meant.
func (s scope) signal(syscall.Signal) {}

func (s scope) remove() {}

func signalExactly(identity, syscall.Signal) error { return nil }

// guardable: there is nothing by which a guard would hold more than the group.
const guardable = false

// GuardMain does nothing on this system: engines have no guard.
func GuardMain() {}

func spawnGuarded(j Job, _ *exec.Cmd, _ Fence) (Running, error) {
	return nil, &InfraError{Op: j.Op, Err: errors.ErrUnsupported}
}
