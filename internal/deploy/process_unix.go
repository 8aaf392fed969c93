//go:build unix && !linux

package deploy

import (
	"os"
	"syscall"

	"perflab/internal/proc"
)

// childAttr puts a child at the head of its own process group. The system has
// no way to end it together with perflab.
func childAttr() *syscall.SysProcAttr { return ownGroup() }

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
