package deploy

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"perflab/internal/proc"
)

// Engines are not started on this system: see Supported. What is below is for commands, such as
// questions to a GPU's tool, which are single processes.

func childAttr() *syscall.SysProcAttr { return ownGroup() }

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup ends a process; there are no signals.
func killGroup(pid int, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

// isOurs is not known.
func isOurs(fs.FileInfo) bool { return false }

// awaitExit blocks until the process has ended and returns its state.
func awaitExit(p *os.Process) *os.ProcessState {
	state, _ := p.Wait()
	return state
}

// survivors are none: nothing is known of what a process started.
func (s scope) survivors() []proc.Process { return nil }

// signal reaches no process.
func (s scope) signal(syscall.Signal) {}

func (s scope) remove() {}

func signalExactly(identity, syscall.Signal) error { return nil }

// guardable: there are no guards here.
const guardable = false

// GuardMain does nothing on this system: engines have no guard.
func GuardMain() {}

func spawnGuarded(j Job, _ *exec.Cmd, _ Fence) (Running, error) {
	return nil, &InfraError{Op: j.Op, Err: errors.ErrUnsupported}
}
