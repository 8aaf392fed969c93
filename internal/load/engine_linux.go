package load

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"perflab/internal/result"
)

// engineTimes are the times of the processes that listen on the addresses, with all
// that came of them. Of those of other users the sockets may not be looked at,
// and they are not told.
func engineTimes(addresses []string) processTimes {
	ports := portsHere(addresses)
	t := processTimes{here: len(ports) > 0, used: map[int]time.Duration{}, waits: map[int]result.Waits{}}
	if !t.here {
		return t
	}
	sockets := listening(ports)
	all := processes()
	for pid := range all {
		if pid != os.Getpid() && listens(pid, sockets) {
			all.markWith(pid)
		}
	}
	for pid, p := range all {
		if p.marked {
			t.used[pid], t.waits[pid] = p.used, waits(pid)
		}
	}
	return t
}

// process is what /proc/PID/stat says.
type process struct {
	parent, group int
	used          time.Duration // with that of children that ended and were waited for
	marked        bool
}

type processTable map[int]*process

// processes reads them all.
func processes() processTable {
	all := processTable{}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		b, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue // it ended
		}
		if p, ok := parseProcess(string(b)); ok {
			all[pid] = p
		}
	}
	return all
}

// parseProcess reads "PID (NAME) STATE PARENT GROUP ... utime stime cutime cstime ...": the name may
// hold anything, so fields count from its last parenthesis.
func parseProcess(stat string) (*process, bool) {
	i := strings.LastIndexByte(stat, ')')
	if i < 0 {
		return nil, false
	}
	f := strings.Fields(stat[i+1:])
	if len(f) < 15 {
		return nil, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(f[i]) // the kernel writes numbers
		return n
	}
	p := &process{parent: number(1), group: number(2)}
	for i := 11; i <= 14; i++ {
		p.used += time.Duration(number(i)) * tick
	}
	return p, true
}

// markWith marks a process, those of its group and all that came of these. A group that
// this process is in is a script's, and not the engine's.
func (all processTable) markWith(pid int) {
	group := all[pid].group
	for id, p := range all {
		if id == pid || p.group == group && group != syscall.Getpgrp() {
			p.marked = true
		}
	}
	for more := true; more; {
		more = false
		for id, p := range all {
			if parent := all[p.parent]; !p.marked && parent != nil && parent.marked && id != os.Getpid() {
				p.marked, more = true, true
			}
		}
	}
}

// listening returns the sockets, as links in /proc/PID/fd name them, that listen on one of
// the ports.
func listening(ports []string) map[string]bool {
	wanted, sockets := map[string]bool{}, map[string]bool{}
	for _, port := range ports {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			wanted[fmt.Sprintf("%X", binary.BigEndian.AppendUint16(nil, uint16(n)))] = true
		}
	}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(file) // without IPv6 the second is not there
		for line := range strings.Lines(string(b)) {
			const stateListen = "0A"
			if !strings.Contains(line, " "+stateListen+" ") { // most are closed ones, by the ten thousand after many short calls
				continue
			}
			f := strings.Fields(line) // "0: 0100007F:1F90 00000000:0000 0A ... INODE"
			if len(f) < 10 || f[3] != stateListen {
				continue
			}
			if _, port, ok := strings.Cut(f[1], ":"); ok && wanted[port] {
				sockets["socket:["+f[9]+"]"] = true
			}
		}
	}
	return sockets
}

// listens reports whether a process has one of the sockets open.
func listens(pid int, sockets map[string]bool) bool {
	if len(sockets) == 0 {
		return false
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return false // it ended, or is another user's
	}
	for _, f := range files {
		if link, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && sockets[link] {
			return true
		}
	}
	return false
}

// waits are those of the threads of a process; none where the kernel does not say.
func waits(pid int) (w result.Waits) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/schedstat", pid)) // the pattern is right
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the thread ended
		}
		if f := strings.Fields(string(b)); len(f) == 3 { // how long it ran, how long it waited, how often it ran
			ns, _ := strconv.ParseInt(f[1], 10, 64)
			runs, _ := strconv.Atoi(f[2])
			w.Time, w.Runs = w.Time+time.Duration(ns), w.Runs+runs
		}
	}
	return w
}
