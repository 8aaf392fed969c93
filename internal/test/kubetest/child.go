package kubetest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// undertaker ends what a test binary leaves behind: it hears of each group of processes that
// starts and ends, and when its input ends, as it does with the test binary however that ends,
// it kills the groups that are left, whoever else has the directory in its environment, and
// removes the directory.
const undertaker = `
alive=" "
while read -r what group; do
	case $what in
	+) alive="$alive$group " ;;
	-) alive="${alive%% $group *} ${alive#* $group }" ;;
	esac
done
for group in $alive; do kill -s KILL -- "-$group" 2>/dev/null; done
for file in $(grep -lzsx -- "KUBETEST_DIR=$1" /proc/[0-9]*/environ); do
	process=${file#/proc/}
	kill -s KILL "${process%/environ}" 2>/dev/null
done
rm -rf -- "$1"
`

// family is the child processes of the test binary.
type family struct {
	dir   string
	mu    sync.Mutex
	tell  io.WriteCloser
	guard *exec.Cmd
}

// newFamily starts the undertaker, which removes dir at the end.
func newFamily(dir string) (*family, error) {
	cmd := exec.Command("/bin/sh", "-c", undertaker, "sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the terminal is not for it
	tell, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &family{dir: dir, tell: tell, guard: cmd}, nil
}

// start starts a process as the head of a group of its own.
func (f *family) start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.Env = append(cmd.Env, "KUBETEST_DIR="+f.dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(f.tell, "+ %d\n", cmd.Process.Pid)
	return err
}

// wait waits for a process that start started, and for what it wrote.
func (f *family) wait(cmd *exec.Cmd) {
	_ = cmd.Wait() // its state says how it ended
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = fmt.Fprintf(f.tell, "- %d\n", cmd.Process.Pid) // the undertaker may have ended
}

// end has the undertaker do its work and waits for it.
func (f *family) end() {
	_ = f.tell.Close()
	_ = f.guard.Wait()
}

// marked are the processes that have a variable with a value in their environment.
func marked(variable string) (pids []int) {
	entries, _ := os.ReadDir("/proc") // elsewhere a container has no process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(e []byte) bool { return string(e) == variable }) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killMarked ends the processes that have a variable with a value in their environment.
func killMarked(variable string) {
	for left := marked(variable); len(left) > 0; left = marked(variable) {
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it has ended by itself
		}
		time.Sleep(time.Millisecond)
	}
}

// exitCode is what a process ended with, as a shell shows it.
func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// tail is the end of a file, for messages.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
