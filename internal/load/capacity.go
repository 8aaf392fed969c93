package load

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/proc"
)

// CapacityError says what this machine lacks for a load.
type CapacityError struct {
	Text string
	Do   string
}

func (e *CapacityError) Error() string { return e.Text }

// Hint says how to go on.
func (e *CapacityError) Hint() string { return e.Do }

// otherFiles is how many files are open beside connections in a run on so many
// targets: those that are open now; the files of its directory and what watches
// GPUs; two a target that reads its metrics; and three for each event loop, of
// which there is one for two processors and no more than eight.
func otherFiles(targets int) uint64 {
	loops := max(1, min(8, runtime.GOMAXPROCS(0)/2))
	return openFiles() + uint64(6+2*targets+3*loops)
}

// CheckCapacity reports whether this process can hold so many connections at
// once, spread over so many targets. It raises the limit on open files as far
// as it may.
func CheckCapacity(concurrent, targets int) error {
	files, err := LiftFileLimit()
	if err != nil && files == 0 {
		return err
	}
	return capacity(concurrent, files, otherFiles(targets), localPorts()*max(1, targets))
}

// capacity judges: files is the limit on open files, other how many are no
// connections, ports the number of local ports to all targets (0: not known).
func capacity(concurrent int, files, other uint64, ports int) error {
	if need := uint64(max(0, concurrent)) + other; need > files {
		return &CapacityError{
			Text: fmt.Sprintf("%d requests in flight need %d open files, but the limit is %d", concurrent, need, files),
			Do:   fmt.Sprintf("raise it with ulimit -n %d, or set a lower limit of concurrent requests", need),
		}
	}
	if ports > 0 && concurrent > ports {
		return &CapacityError{
			Text: fmt.Sprintf("%d requests in flight need as many local ports, but there are %d", concurrent, ports),
			Do:   "widen net.ipv4.ip_local_port_range, set a lower limit of concurrent requests, or spread the load over more target addresses",
		}
	}
	return nil
}

// Capacity returns how many connections to so many targets this process can hold
// at once, and what sets the limit. It raises that on open files as far as it
// may.
func Capacity(targets int) (n int, limit string, err error) {
	files, err := LiftFileLimit()
	if err != nil && files == 0 {
		return 0, "", err
	}
	n, limit = most(files, otherFiles(targets), localPorts()*max(1, targets))
	return n, limit, nil
}

// openFiles is how many files this process has open.
func openFiles() uint64 {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if all, err := os.ReadDir(dir); err == nil {
			return uint64(max(0, len(all)-1)) // without the one that reads the directory
		}
	}
	return 3 // input, output and errors
}

// most is the number that capacity allows.
func most(files, other uint64, ports int) (n int, limit string) {
	n, limit = int(min(max(files, other)-other, math.MaxInt32)), "limit on open files"
	if ports > 0 && ports < n {
		return ports, "number of local ports"
	}
	return n, limit
}

// lingers is how long a closed connection keeps its local port, and a little.
const lingers = 61 * time.Second

// AwaitPorts waits until so many connections can be made beside those that
// were closed and still keep their local ports; they do so for a minute.
func AwaitPorts(ctx context.Context, n int) error {
	ports, end := localPorts(), time.After(lingers)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for ports > 0 && n <= ports && n+closing() > ports {
		select {
		case <-tick.C:
		case <-end:
			return nil // others close connections too: connecting will tell
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// closing is how many connections of this machine are closed and keep their
// ports; 0: not known.
func closing() int {
	b, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0
	}
	return waiting(string(b))
}

// waiting reads the number of connections in TIME_WAIT from the kernel's
// "TCP: inuse 5 orphan 0 tw 10012 alloc 9 mem 1".
func waiting(sockstat string) int {
	for line := range strings.Lines(sockstat) {
		f := strings.Fields(line)
		if i := slices.Index(f, "tw"); i > 0 && i+1 < len(f) && f[0] == "TCP:" {
			n, _ := strconv.Atoi(f[i+1]) // 0 is not known
			return n
		}
	}
	return 0
}

// localPorts is how many ports an outgoing connection can have; 0: not known.
func localPorts() int {
	b, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range") // no text has no range
	low, high, ok := proc.ParsePortRange(b)
	if !ok {
		return 0
	}
	return high - low + 1
}
