//go:build unix && !linux

package deploy

import (
	"os"
	"syscall"
)

// childAttr puts a child at the head of its own process group. The system has
// no way to end it together with perflab.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit blocks until the process has ended and returns its state.
func awaitExit(p *os.Process) *os.ProcessState {
	state, _ := p.Wait()
	return state
}

// identify finds nothing: without /proc there is no start time by which to tell
// a process from a later one of the same id.
func identify(pid int) (identity, bool) { return identity{PID: pid}, false }

// survivors lists the groups that still have members, each by its first
// process's id. Processes that left their group are not found.
func survivors(_ string, groups ...int) []runningProcess {
	var out []runningProcess
	for _, g := range groups {
		if syscall.Kill(-g, 0) == nil {
			out = append(out, runningProcess{identity: identity{PID: g}, group: g})
		}
	}
	return out
}

func signalExactly(identity, syscall.Signal) error { return nil }
