package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
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

// bootID names this start of this machine.
var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // "" where the system does not tell
	return strings.TrimSpace(string(b))
})

// readStat reads what /proc/PID/stat says about a process, also one that has ended and is not
// reaped.
func readStat(pid int) (r runningProcess, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runningProcess{}, false
	}
	r, err = parseStat(pid, string(b))
	r.Boot = bootID()
	return r, err == nil
}

// parseStat reads "PID (COMM) STATE PPID PGRP ... STARTTIME ...": COMM may hold
// blanks and parentheses, so fields count from its last ")". STARTTIME is
// field 22 of the line.
func parseStat(pid int, line string) (runningProcess, error) {
	first, last := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if first < 0 || last < first {
		return runningProcess{}, fmt.Errorf("/proc/%d/stat names no command", pid)
	}
	f := strings.Fields(line[last+1:])
	if len(f) < 20 {
		return runningProcess{}, fmt.Errorf("/proc/%d/stat has %d fields after the command, not 20 or more", pid, len(f))
	}
	parent, err1 := strconv.Atoi(f[1])
	group, err2 := strconv.Atoi(f[2])
	start, err3 := strconv.ParseUint(f[19], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return runningProcess{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return runningProcess{
		identity: identity{PID: pid, Start: start}, name: line[first+1 : last],
		parent: parent, group: group, ended: f[0] == "Z" || f[0] == "X",
	}, nil
}

// identify returns the identity of a process that runs.
func identify(pid int) (identity, bool) {
	r, ok := readStat(pid)
	return r.identity, ok && !r.ended
}

// survivors lists the processes of the scope that run.
func (s scope) survivors() []runningProcess {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := make(map[int]runningProcess, len(entries))
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if r, ok := readStat(pid); ok {
				all[pid], pids = r, append(pids, pid)
			}
		}
	}
	members := cgroupMembers(s.cgroup)
	var out []runningProcess
	for _, pid := range pids {
		r := all[pid]
		if r.ended || r.identity == s.guard {
			continue
		}
		if slices.Contains(s.groups, r.group) || slices.Contains(members, pid) || s.guards(r, all) || s.marker != "" && marked(pid, s.marker) {
			out = append(out, r)
		}
	}
	return out
}

// guards tells whether a process is a descendant of the guard. A parent that has ended while
// the processes were listed is no longer its parent, so that is read again.
func (s scope) guards(r runningProcess, all map[int]runningProcess) bool {
	if s.guard.PID == 0 || all[s.guard.PID].identity != s.guard {
		return false
	}
	for range len(all) { // each process is passed once
		if r.parent == s.guard.PID {
			return true
		}
		up, ok := all[r.parent]
		if !ok {
			if r, ok = readStat(r.PID); !ok {
				return false
			}
			if up, ok = all[r.parent]; !ok {
				return r.parent == s.guard.PID
			}
			if r.parent == s.guard.PID {
				return true
			}
		}
		r = up
	}
	return false
}

// signal reaches each process of the scope, if it is still the one meant.
func (s scope) signal(sig syscall.Signal) {
	if sig == syscall.SIGKILL {
		killCgroup(s.cgroup)
	}
	for _, r := range s.survivors() {
		_ = signalExactly(r.identity, sig) // what stays is found again
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
