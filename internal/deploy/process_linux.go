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

// readStat reads what /proc/PID/stat says about a process that runs.
func readStat(pid int) (runningProcess, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runningProcess{}, false
	}
	r, state, err := parseStat(pid, string(b))
	r.Boot = bootID()
	return r, err == nil && state != "Z" && state != "X"
}

// parseStat reads "PID (COMM) STATE PPID PGRP ... STARTTIME ...": COMM may hold
// blanks and parentheses, so fields count from its last ")". STARTTIME is
// field 22 of the line.
func parseStat(pid int, line string) (r runningProcess, state string, err error) {
	first, last := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if first < 0 || last < first {
		return runningProcess{}, "", fmt.Errorf("/proc/%d/stat names no command", pid)
	}
	f := strings.Fields(line[last+1:])
	if len(f) < 20 {
		return runningProcess{}, "", fmt.Errorf("/proc/%d/stat has %d fields after the command, not 20 or more", pid, len(f))
	}
	group, err1 := strconv.Atoi(f[2])
	start, err2 := strconv.ParseUint(f[19], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return runningProcess{}, "", fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return runningProcess{identity{PID: pid, Start: start}, line[first+1 : last], group}, f[0], nil
}

// identify returns the identity of a process that runs.
func identify(pid int) (identity, bool) {
	r, ok := readStat(pid)
	return r.identity, ok
}

// survivors lists the processes that run and either belong to one of the
// groups or carry the marker in their environment.
func survivors(marker string, groups ...int) []runningProcess {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []runningProcess
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		r, ok := readStat(pid)
		if ok && (slices.Contains(groups, r.group) || marked(pid, marker)) {
			out = append(out, r)
		}
	}
	return out
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
