package load

import (
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"perflab/internal/proc"
	"perflab/internal/result"
)

// engines are the processes that serve the targets of a load on this machine: those that listen there,
// their groups, and all that came of these. Of other users' processes the sockets may not be looked
// at, and they are not told.
type engines struct {
	ports   []int      // of the targets that are on this machine
	all     proc.Table // the processes that were there when they were looked for, or have started since
	owners  []proc.ID  // those that listen
	members proc.Table // the engines, by the newest look
	waits   map[int]result.Waits
}

// find looks through the open files of all processes for those that listen, which takes long where many
// are open.
func (e engines) find() engines {
	if len(e.ports) == 0 {
		return e
	}
	e.all = proc.All()
	e.owners = e.all.Listening(e.ports...)
	e.members = e.family()
	return e
}

// again reads the members and what has started since, and counts.
func (e engines) again() engines {
	if len(e.ports) == 0 {
		return e
	}
	e.all = e.all.Update(e.members)
	e.members = e.family()
	e.waits = map[int]result.Waits{}
	for pid := range e.members {
		e.waits[pid] = waits(pid)
	}
	return e
}

// lost says that one of those that listened has ended, or that none was found: somebody else may
// listen now.
func (e engines) lost() bool {
	return len(e.owners) == 0 || slices.ContainsFunc(e.owners, func(id proc.ID) bool { return !e.all.Holds(id) })
}

// family returns the owners, those of their groups, the members so far, and all that came of these. A
// group that this process is in is a script's, and not the engine's. This process is
// not the engine, nor is what it started, even where it came of the engine itself.
func (e engines) family() proc.Table {
	roots := slices.Concat(e.owners, e.members.IDs())
	self := e.all[os.Getpid()]
	for _, id := range e.owners {
		group := e.all[id.PID].Group
		if !e.all.Holds(id) || group == self.Group || group == 0 { // 0: out of sight, where many may be
			continue
		}
		for _, p := range e.all {
			if p.Group == group {
				roots = append(roots, p.ID)
			}
		}
	}
	all := maps.Clone(e.all)
	delete(all, self.PID)
	return all.Tree(roots...)
}

// since returns what the engines used of the processors since an earlier look, and how long their
// threads waited for one.
func (e engines) since(before engines) (used time.Duration, waits result.Waits) {
	var reaped time.Duration
	for pid, p := range e.members {
		var was proc.Process
		var waited result.Waits
		if before.all.Holds(p.ID) {
			was, waited = before.all[pid], before.waits[pid]
		}
		used += max(0, p.Used-was.Used)
		reaped += p.Reaped - was.Reaped
		w := e.waits[pid].Since(waited)
		waits.Time, waits.Runs = waits.Time+w.Time, waits.Runs+w.Runs
	}
	// Of a child that has ended its parent counts all that it ever used.
	for _, p := range before.members {
		if _, inside := before.members[p.Parent]; inside && !e.all.Holds(p.ID) {
			reaped -= p.Used + p.Reaped
		}
	}
	return used + max(0, reaped), waits
}

// waits are those of the threads of a process; none where the kernel does not say.
func waits(pid int) (w result.Waits) {
	w.Time, w.Runs = proc.Waits(pid)
	return w
}

// portsHere returns the ports of the addresses that are of this machine.
func portsHere(addresses []string) []int {
	var ports []int
	own, _ := net.InterfaceAddrs() // without them the loopback alone is known
	for _, address := range addresses {
		host, text, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			continue
		}
		if host == "localhost" {
			host = "127.0.0.1"
		}
		ip := net.ParseIP(host)
		here := ip.IsLoopback() || ip.IsUnspecified()
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				here = true
			}
		}
		if here {
			ports = append(ports, port)
		}
	}
	return ports
}
