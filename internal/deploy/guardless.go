//go:build !linux

package deploy

import (
	"errors"
	"os/exec"
	"syscall"
)

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
