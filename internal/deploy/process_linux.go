package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"perflab/internal/proc"
)

// childAttr puts a child at the head of its own process group, and has the
// kernel end it when the thread that forked it ends: that thread is locked for
// the child's life, so this means when perflab ends, in whatever way.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit blocks until the process has ended and leaves it unreaped, so that
// its id and its group's cannot pass to a stranger while the group is ended.
func awaitExit(p *os.Process) *os.ProcessState {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return nil
		}
	}
}

// survivors lists the processes of the scope that run.
func (s scope) survivors() []proc.Process {
	all := proc.All()
	members, guarded := cgroupMembers(s.cgroup), all.Tree(s.guard)
	var out []proc.Process
	for _, pid := range slices.Sorted(maps.Keys(all)) {
		p := all[pid]
		if p.Ended || p.ID == s.guard {
			continue
		}
		if slices.Contains(s.groups, p.Group) || slices.Contains(members, pid) || guarded.Holds(p.ID) || s.marker != "" && marked(pid, s.marker) {
			out = append(out, p)
		}
	}
	return out
}

// signal reaches each process of the scope, if it is still the one meant.
func (s scope) signal(sig syscall.Signal) {
	if sig == syscall.SIGKILL {
		killCgroup(s.cgroup)
	}
	for _, p := range s.survivors() {
		_ = signalExactly(p.ID, sig) // what stays is found again
	}
}

// marked tells whether the process was started with the marker KEY=value in its
// environment.
func marked(pid int, marker string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(bytes.Split(b, []byte{0}), func(e []byte) bool { return string(e) == marker })
}

// signalExactly sends sig to the process if it is still the one meant. The
// handle is taken before the check, so that the id cannot pass to another
// process between check and signal.
func signalExactly(id identity, sig syscall.Signal) error {
	p, err := os.FindProcess(id.PID)
	if err != nil {
		return nil // gone
	}
	defer p.Release()
	if now, ok := identify(id.PID); !ok || now != id {
		return nil
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
