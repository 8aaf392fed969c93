package deploy

import (
	"io/fs"
	"os"
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
