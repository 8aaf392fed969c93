// Package proc reads what Linux tells below /proc: processes and what came of them, the time of
// the processors, and who listens on a port.
//
//	all := proc.All()
//	servers := all.Listening(8000)
//	engine := all.Tree(servers...) // with all their descendants
//	later := all.Update(engine)    // reads these, and what has started since
//
// Parsers are functions of bytes alone and serve files of other machines too. Readers know nothing
// where there is no such file, as on other systems: no process, no time, no error. They never
// tell a number that was not read.
//
// Deliberately absent: names and command lines to find a process by, and what one package alone
// asks of /proc.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ID is a process told apart from later ones of the same number, and from those of other machines.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`          // clock ticks after boot; 0 where the system does not tell
	Boot  string `json:"boot,omitempty"` // of its machine, different each time and everywhere
}

// Process is a process as it was when it was read.
type Process struct {
	ID
	Name   string        // as it calls itself, 15 bytes at most
	Parent int           // 0: none, or out of sight
	Group  int           // 0: out of sight
	Ended  bool          // and not reaped
	Used   time.Duration // processor time of its threads, those that ended too
	Reaped time.Duration // that of its children which ended and were waited for, and of theirs
}

// tick is the unit of the kernel's counters of processor time: on every architecture that Go
// knows a hundredth of a second.
const tick = 10 * time.Millisecond

// ParseProcess reads /proc/PID/stat: "PID (NAME) STATE PARENT GROUP ...". NAME may hold blanks and
// parentheses, so fields count from its last ")".
func ParseProcess(stat []byte) (Process, error) {
	first, last := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if first < 0 || last < first {
		return Process{}, errors.New("a line of /proc/PID/stat names no command")
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(stat[:first])))
	if err != nil {
		return Process{}, fmt.Errorf("a line of /proc/PID/stat begins with no process id: %w", err)
	}
	f := bytes.Fields(stat[last+1:])
	if len(f) < 20 {
		return Process{}, fmt.Errorf("/proc/%d/stat has %d fields after the command, not 20 or more", pid, len(f))
	}
	number := func(i int) int {
		n, bad := strconv.Atoi(string(f[i]))
		err = errors.Join(err, bad)
		return n
	}
	times := func(i, j int) time.Duration { return time.Duration(number(i)+number(j)) * tick }
	p := Process{
		ID: ID{PID: pid, Start: uint64(number(19))}, Name: string(stat[first+1 : last]),
		Parent: number(1), Group: number(2), Ended: f[0][0] == 'Z' || f[0][0] == 'X',
		Used: times(11, 12), Reaped: times(13, 14), // user and system
	}
	if err != nil {
		return Process{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return p, nil
}

// Table is processes by their ids.
type Table map[int]Process

// IDs are those of its processes, in no order.
func (t Table) IDs() []ID {
	out := make([]ID, 0, len(t))
	for _, p := range t {
		out = append(out, p.ID)
	}
	return out
}

// Holds reports whether the table has this very process.
func (t Table) Holds(id ID) bool {
	p, ok := t[id.PID]
	return ok && p.ID == id
}

// Tree returns those of the roots that the table holds, with their descendants. A parent that
// started after its child is no parent: it has the number of one that has ended.
func (t Table) Tree(roots ...ID) Table {
	tree := Table{}
	decided := map[int]bool{}
	for _, id := range roots {
		if t.Holds(id) {
			tree[id.PID], decided[id.PID] = t[id.PID], true
		}
	}
	if len(tree) == 0 {
		return tree
	}
	var belongs func(Process) bool
	belongs = func(p Process) bool {
		if is, ok := decided[p.PID]; ok {
			return is
		}
		decided[p.PID] = false // so that a ring, which numbers taken over could make, has an end
		parent, ok := t[p.Parent]
		if ok && parent.Start <= p.Start && belongs(parent) {
			tree[p.PID], decided[p.PID] = p, true
		}
		return decided[p.PID]
	}
	for _, p := range t {
		belongs(p)
	}
	return tree
}
