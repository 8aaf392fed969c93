package deploy

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"

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
)

// lastPort is where the search for ports goes on, so that no two deployments of a
// perflab are given the same before either listens. Each perflab begins elsewhere.
var lastPort = func() *atomic.Uint32 {
	var b [4]byte
	rand.Read(b[:]) // does not fail
	a := new(atomic.Uint32)
	a.Store(binary.NativeEndian.Uint32(b[:]))
	return a
}()

// freePorts chooses ports that do not appear as a local one in a machine's tables:
// ip_local_port_range, then net/tcp and net/tcp6 of its /proc.
func freePorts(tables []byte, n int) ([]int, error) {
	low, high := portRange(tables)
	used := map[int]bool{}
	for s := range proc.Sockets(tables) {
		used[s.Port] = true
	}
	var ports []int
	for range high - low {
		if len(ports) == n {
			return ports, nil
		}
		if p := nextPort(low, high); !used[p] {
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

func nextPort(low, high int) int { return low + int(lastPort.Add(1)%uint32(high-low)) }

// mostTaken is how many ports may turn out not to be had before the search is given up.
const mostTaken = 1000

// ChoosePorts chooses ports of an address of this machine on which nothing listens, all held until
// the last is chosen.
func ChoosePorts(host string, n int) (ports []int, err error) {
	tables, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range") // of another system the usual one
	low, high := portRange(tables)
	for range n + mostTaken {
		if len(ports) == n {
			return ports, nil
		}
		l, lerr := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(nextPort(low, high))))
		if lerr != nil {
			err = lerr
			continue
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return nil, fmt.Errorf("choose %d ports from %d to %d: %w", n, low, high-1, err)
}
