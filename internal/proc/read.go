package proc

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// root is where the files are; tests have others.
var root = "/proc"

func file(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }

// bootID names this start of this machine; "" where the system does not tell.
var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // which leaves ""
	return strings.TrimSpace(string(b))
})

// Read reads a process, also one that has ended and is not reaped. The process id is set in any case.
func Read(pid int) (Process, bool) {
	b, err := os.ReadFile(file(strconv.Itoa(pid), "stat"))
	if err != nil {
		return Process{ID: ID{PID: pid}}, false
	}
	p, err := ParseProcess(b)
	p.PID, p.Boot = pid, bootID()
	return p, err == nil
}

// numbers lists the names in a directory that are numbers.
func numbers(dir string) (out []int) {
	d, err := os.Open(dir)
	if err != nil {
		return nil // it ended, or is out of sight
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // those that it could read
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// All lists the processes of this system.
func All() Table { return Table{}.Update(nil) }

// Update returns the table with the members as they are now and with what has started since. Members
// that ended are absent; the others stay as they were, and are not read. What took over
// the number of one of these is not seen.
func (t Table) Update(members Table) Table {
	now := Table{}
	maps.Copy(now, t)
	fresh := slices.Collect(maps.Keys(members))
	for _, pid := range numbers(root) {
		if _, known := t[pid]; !known {
			fresh = append(fresh, pid)
		}
	}
	for _, pid := range fresh {
		now.read(pid)
	}
	now.adopt(fresh)
	return now
}

// read reads a process into the table, or out of it.
func (t Table) read(pid int) {
	if p, ok := Read(pid); ok {
		t[pid] = p
	} else {
		delete(t, pid)
	}
}

// adopt reads those processes again whose parent is not in the table: it ended while all were
// listed, and somebody else is the parent since.
func (t Table) adopt(pids []int) {
	for _, pid := range pids {
		p, ok := t[pid]
		if _, listed := t[p.Parent]; ok && !listed && p.Parent != 0 {
			t.read(pid)
		}
	}
}

// Listening returns those of the processes, but for this one, that listen on one of the TCP ports. Of
// those of other users the sockets may not be looked at, and they are not told.
func (t Table) Listening(ports ...int) []ID {
	sockets := map[string]bool{} // as links to open files name them
	for _, name := range []string{"tcp", "tcp6"} {
		b, _ := os.ReadFile(file("net", name)) // without IPv6 the second is not there
		for s := range Sockets(b) {
			if s.Listens && slices.Contains(ports, s.Port) {
				sockets["socket:["+strconv.FormatUint(s.Inode, 10)+"]"] = true
			}
		}
	}
	var out []ID
	if len(sockets) == 0 {
		return nil
	}
	for pid, p := range t {
		if pid != os.Getpid() && opens(pid, sockets) {
			out = append(out, p.ID)
		}
	}
	return out
}

// opens reports whether a process has one of the files open.
func opens(pid int, links map[string]bool) bool {
	dir := file(strconv.Itoa(pid), "fd")
	for _, fd := range numbers(dir) {
		if link, err := os.Readlink(filepath.Join(dir, strconv.Itoa(fd))); err == nil && links[link] {
			return true
		}
	}
	return false
}

// ReadCPU reads what the processors of this machine have counted.
func ReadCPU() CPU {
	b, _ := os.ReadFile(file("stat")) // no text
	c, _ := ParseCPU(b)               // is not known
	return c
}

// Waits is how long threads of a process that could have run had no processor, and how often one was
// given one; 0, 0 where the kernel does not say.
func Waits(pid int) (waited time.Duration, runs int) {
	dir := file(strconv.Itoa(pid), "task")
	for _, thread := range numbers(dir) {
		b, _ := os.ReadFile(filepath.Join(dir, strconv.Itoa(thread), "schedstat")) // the thread may have ended
		f := bytes.Fields(b)                                                       // how long it ran, how long it waited, how often it ran
		if len(f) != 3 {
			continue
		}
		ns, err1 := strconv.ParseInt(string(f[1]), 10, 64)
		n, err2 := strconv.Atoi(string(f[2]))
		if err1 == nil && err2 == nil {
			waited, runs = waited+time.Duration(ns), runs+n
		}
	}
	return waited, runs
}
