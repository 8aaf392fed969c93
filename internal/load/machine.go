package load

import (
	"net"
	"time"

	"perflab/internal/result"
)

// machineTicks is the time that all processors together spent, and of it what
// they were idle and what the host of a virtual machine gave to others.
type machineTicks struct {
	all, idle, steal uint64
	cpus             int
}

// tick is the unit of the kernel's counters of processor time: on every architecture
// that Linux tells it by, a hundredth of a second.
const tick = 10 * time.Millisecond

// stolen is the share that was taken away between two samples; 0 where it is
// not known.
func (t machineTicks) stolen(before machineTicks) float64 {
	if t.all <= before.all {
		return 0
	}
	return float64(t.steal-before.steal) / float64(t.all-before.all)
}

// processTimes are what processes used of the processors, and how long they waited for one.
type processTimes struct {
	here  bool // one of the addresses is of this machine
	used  map[int]time.Duration
	waits map[int]result.Waits
}

// portsHere returns the ports of the addresses that are of this machine.
func portsHere(addresses []string) []string {
	var ports []string
	own, _ := net.InterfaceAddrs() // without them the loopback alone is known
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
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
