//go:build unix

package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Names by which this program starts itself as something else.
const (
	supervisorName = "perflab-launch"
	gateName       = "perflab-gate"
)

// Files of a supervisor and of a gate beside the standard ones.
const (
	aliveFD = 3 // of a supervisor: the lock of its launch
	openFD  = 3 // of a gate: a byte when it may go on
)

// supervise starts the supervisor of an attempt in a session of its own, so that neither the end
// of this process nor of its terminal ends it.
func supervise(dir folder, id string, attempt int, env []string, alive *os.File) (pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this program: %w", err)
	}
	out, err := os.OpenFile(dir.path(id, stdoutFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	said, err := os.OpenFile(dir.path(id, stderrFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer said.Close()
	cmd := &exec.Cmd{
		Path: self, Args: []string{supervisorName, dir.path(id), strconv.Itoa(attempt)}, Env: env, Dir: dir.path(id),
		Stdout: out, Stderr: said, ExtraFiles: []*os.File{alive}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start its supervisor: %w", err)
	}
	pid = cmd.Process.Pid
	return pid, cmd.Process.Release() // it may outlive us; reap looks for its end
}

// reap takes note of the end of a process that this one started, and reports whether it has
// ended. It does not wait.
func reap(pid int) bool {
	var status syscall.WaitStatus
	got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	return got == pid || errors.Is(err, syscall.ECHILD)
}
