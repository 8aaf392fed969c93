package deploy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"

	"perflab/internal/proc"
)

// Ports are chosen below the range from which the kernel takes those of outgoing connections and
// of whoever asks for any: one of these may be another program's as soon as an engine has ended,
// which then seems to serve still.
const (
	lowestPort     = 20000
	highestPort    = 60000
	fewestPorts    = 2000
	usualEphemeral = 32768
	nodePorts      = 30000 // from which a Kubernetes cluster gives ports of its nodes to services

	mostTaken = 1000 // how many may turn out not to be had before a choice is given up
)

// A perflab has the ports that it gives out in blocks, so that none is one that another perflab on
// this machine has just freed, or will soon have listened on.
const blockPorts = 128

// chooser gives out the ports of a block of a machine's range, then those of another.
type chooser struct {
	mu     sync.Mutex
	number int             // of the block in any range that is divided so
	given  int             // of its ports; 0: there is no block yet
	held   [2]net.Listener // on the first ports of this block and of the one before, in this machine's range
}

// chosen is what all of a perflab's ports come from, so that no two deployments are given the same
// before either listens.
var chosen chooser

// next is the next port, of a range.
func (c *chooser) next(low, high int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given%(blockPorts-1) == 0 {
		c.claim()
	}
	c.given++
	return low + c.number%((high-low)/blockPorts)*blockPorts + c.given
}

// claim takes a block on whose first port nobody listens and listens there, as another perflab
// would: that port is given to nobody. Where it can listen on none of so many, the block is one by chance.
func (c *chooser) claim() {
	low, high := thisMachine()
	if c.held[1] != nil {
		c.held[1].Close()
	}
	c.held[0], c.held[1], c.given = nil, c.held[0], 0
	for range mostTaken {
		c.number = rand.IntN((min(high, nodePorts) - low) / blockPorts)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(low+c.number*blockPorts)))
		if err == nil {
			c.held[0] = l
			return
		}
	}
}

// freePorts chooses ports that do not appear as a local one in a machine's tables:
// ip_local_port_range, then net/tcp and net/tcp6 of its /proc.
func freePorts(tables []byte, n int) ([]int, error) {
	low, high := portRange(tables)
	used := map[int]bool{}
	for s := range proc.Sockets(tables) {
		used[s.Port] = true
	}
	return unused(used, low, high, n)
}

// BlindPorts chooses ports for a machine of which nothing is known, of those that are neither an
// engine's usual ones nor those of outgoing connections or of a cluster's services.
func BlindPorts(n int) ([]int, error) { return unused(map[int]bool{}, lowestPort, nodePorts, n) }

// unused chooses ports of a range that are not used yet.
func unused(used map[int]bool, low, high, n int) ([]int, error) {
	var ports []int
	for range high - low {
		if len(ports) == n {
			return ports, nil
		}
		if p := chosen.next(low, high); !used[p] {
			used[p] = true
			ports = append(ports, p)
		}
	}
	return nil, fmt.Errorf("%d of %d ports from %d to %d are free", len(ports), n, low, high-1)
}

// portRange is where ports are chosen, by what a machine says of ip_local_port_range.
func portRange(tables []byte) (low, high int) {
	ephemeral := usualEphemeral
	for line := range bytes.Lines(tables) {
		if from, _, ok := proc.ParsePortRange(line); ok {
			ephemeral = from
		}
	}
	if ephemeral >= lowestPort+fewestPorts {
		return lowestPort, min(highestPort, ephemeral)
	}
	return lowestPort, highestPort
}

// thisMachine is where ports of this machine are chosen.
func thisMachine() (low, high int) {
	tables, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range") // of another system the usual one
	return portRange(tables)
}

// ChoosePorts chooses ports of an address of this machine on which nothing listens, all held until
// the last is chosen.
func ChoosePorts(host string, n int) (ports []int, err error) {
	low, high := thisMachine()
	for range n + mostTaken {
		if len(ports) == n {
			return ports, nil
		}
		l, lerr := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(chosen.next(low, high))))
		if lerr != nil {
			err = lerr
			continue
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return nil, fmt.Errorf("choose %d ports from %d to %d: %w", n, low, high-1, err)
}
