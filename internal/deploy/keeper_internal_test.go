package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestSplitter(t *testing.T) {
	const tag = "@perflab-x:"
	text := "motd\n" + tag + "ready\nout@perflab-" + tag + "started 1 2\n put @perflab-y: é" + tag + "exit 0\n@perf"
	for size := 1; size <= len(text); size++ {
		var before, out strings.Builder
		var heard []string
		s := &splitter{tag: tag, before: &before, out: &out, onLine: func(l string) { heard = append(heard, l) }}
		for chunk := range slices.Chunk([]byte(text), size) {
			if n, err := s.Write(chunk); n != len(chunk) || err != nil {
				t.Fatal(n, err)
			}
		}
		s.flush()
		if want := "out@perflab- put @perflab-y: é@perf"; out.String() != want || before.String() != "motd\n" {
			t.Errorf("in pieces of %d: %q, then %q; want %q", size, before.String(), out.String(), want)
		}
		if want := []string{"ready", "started 1 2", "exit 0"}; !slices.Equal(heard, want) {
			t.Errorf("in pieces of %d: hears %q, want %q", size, heard, want)
		}
	}
}

func TestJobText(t *testing.T) {
	for _, c := range []struct {
		env  string
		want string
	}{
		{"A.B=c", `environment variable "A.B"`},
		{"A=b\x00c", "NUL"},
	} {
		if _, err := jobText("", "a", []string{"a"}, []string{c.env}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.env, err, c.want)
		}
	}
}

const tables = `32768	60999
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
  sl  local_address                         remote_address                        st
   0: 00000000000000000000000001000000:%04X 00000000000000000000000000000000:0000 0A 00000000:00000000
`

func TestFreePorts(t *testing.T) {
	var first []int
	for first == nil || chosen.given > blockPorts-10 { // near its end what comes next is of another block
		var err error
		if first, err = freePorts(nil, 1); err != nil {
			t.Fatal(err)
		}
	}
	next := func(n int) int { return first[0] + n }
	ports, err := freePorts(fmt.Appendf(nil, tables, next(1), next(3)), 3)
	if want := []int{next(2), next(4), next(5)}; err != nil || !slices.Equal(ports, want) {
		t.Errorf("ports %v, %v; want %v", ports, err, want)
	}
	// A kernel that takes all ports for outgoing connections.
	if ports, err := freePorts([]byte("1024 65535\n"), 2); err != nil || len(ports) != 2 || ports[0] < lowestPort || ports[1] >= highestPort {
		t.Errorf("ports %v, %v", ports, err)
	}
	var all bytes.Buffer
	for p := lowestPort; p < highestPort; p++ {
		fmt.Fprintf(&all, "0: 0100007F:%04X 00000000:0000 0A\n", p)
	}
	if ports, err := freePorts(all.Bytes(), 1); err == nil {
		t.Errorf("ports %v where none is free", ports)
	}
}

// TestChooser: a perflab gives out the ports of its own block, each once before those of another.
// Nobody else has that block, nor the one before, and one before these is free again.
func TestChooser(t *testing.T) {
	var c chooser
	low, high := thisMachine()
	var firsts []string
	for range 4 {
		begin := c.next(low, high) - 1
		for i := range blockPorts - 2 {
			if p := c.next(low, high); p != begin+2+i {
				t.Fatalf("port %d after %d ports of the block at %d", p, i+1, begin)
			}
		}
		firsts = append(firsts, net.JoinHostPort(loopback, strconv.Itoa(begin)))
	}
	runtime.GC() // which closes a listener that nothing refers to
	for i, first := range firsts {
		held := slices.Index(firsts[2:], first) >= 0
		l, err := net.Listen("tcp", first)
		if (err != nil) != held {
			t.Errorf("block %d of %v: %v", i, firsts, err)
		}
		if err == nil {
			l.Close()
		}
	}
	for _, l := range c.held {
		l.Close()
	}
}

// TestBlindPorts: ports of a machine of which nothing is known are distinct, and none that a cluster gives to services.
func TestBlindPorts(t *testing.T) {
	ports, err := BlindPorts(2 * blockPorts)
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] || p < lowestPort || p >= nodePorts {
			t.Errorf("port %d of %v", p, ports)
		}
		seen[p] = true
	}
	if err != nil || len(ports) != 2*blockPorts {
		t.Errorf("%d ports, %v", len(ports), err)
	}
	if ports, err := BlindPorts(nodePorts); err == nil {
		t.Errorf("%d ports of fewer", len(ports))
	}
}

func TestExplainSSH(t *testing.T) {
	for _, c := range []struct{ said, want, help string }{
		{"ssh: Could not resolve hostname n7: Name or service not known\r\n", "its name cannot be resolved", "n7"},
		{"ssh: connect to host n7 port 22: Connection timed out\r\n", "connect to host n7 port 22: Connection timed out", "is up"},
		{"@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.\n", "not the one that is known", "ssh-keygen -R"},
		{"mux_client_request_session: session request failed: Session open refused by peer\n", "no more sessions", "MaxSessions"},
		{"Timeout, server 10.0.0.1 not responding.\n", "not responding", "are up"},
		{"n7: something else\n", "n7: something else", "by hand"},
		{"", "without a word", "by hand"},
	} {
		e, ok := errors.AsType[*InfraError](explainSSH(HostEntry{Name: "n7"}, c.said))
		if !ok || !strings.Contains(e.Error(), c.want) || !strings.Contains(e.Hint(), c.help) || !strings.Contains(e.Hint(), "n7") && !strings.Contains(e.Hint(), "-R") {
			t.Errorf("%q: %v (%s)", c.said, e, e.Hint())
		}
	}
}

// An order to a connection that is given up before the client has started is no crash.
func TestControlCancelled(t *testing.T) {
	interrupted := errors.New("interrupted")
	for range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		go cancel(interrupted)
		l := newLink(HostEntry{Name: "n7"}, "/dev/null/none")
		if err := l.control(ctx, "forward", "127.0.0.1:1:127.0.0.1:1"); err == nil {
			t.Error("an order over no connection is carried out")
		}
		l.close()
	}
}

func TestValidateHosts(t *testing.T) {
	for _, c := range []struct {
		hosts []HostEntry
		want  string // "": valid
	}{
		{[]HostEntry{{Name: "a"}, {Name: "b", Address: "10.0.0.1", Port: 2222, GPUs: 8}}, ""},
		{nil, "no host is given"},
		{[]HostEntry{{}}, "no name"},
		{[]HostEntry{{Name: "a"}, {Name: "a"}}, "host a is given twice"},
		{[]HostEntry{{Name: "-oProxyCommand=x"}}, "begins with -"},
		{[]HostEntry{{Name: "a", Address: "-x"}}, "address"},
		{[]HostEntry{{Name: "a", User: "-x"}}, "user"},
		{[]HostEntry{{Name: "a", Port: 70000}}, "port 70000"},
		{[]HostEntry{{Name: "a", GPUs: -1}}, "negative"},
	} {
		if err := validateHosts(c.hosts); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.hosts, err, c.want)
		}
	}
}

func TestExitStatus(t *testing.T) {
	for code, want := range map[int]string{0: "exit status 0", 1: "exit status 1", 128: "exit status 128", 137: "signal: killed", 143: "signal: terminated", 255: "exit status 255"} {
		if got, _ := exitStatus(code); got != want {
			t.Errorf("%d: %s, want %s", code, got, want)
		}
	}
}

func TestScriptLimit(t *testing.T) {
	k := Keeper{Silence: 100 * time.Millisecond}
	if s := k.script("@x:", "keep", Record{Marker: "A=b'c"}, time.Second); !strings.Contains(s, "k_limit='1'\n") || !strings.Contains(s, `k_marker='A=b'\''c'`) {
		t.Errorf("script begins %q", s[:100])
	}
}

// TestChoosePorts: ports of this machine are distinct, free, and none that the kernel gives to
// whoever asks for any.
func TestChoosePorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tables, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	low, high := portRange(tables)
	ports, err := ChoosePorts("127.0.0.1", 20)
	if err != nil || len(ports) != 20 {
		t.Fatal(ports, err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] || p < low || p >= high {
			t.Errorf("port %d of %v, from %d to %d", p, ports, low, high)
		}
		seen[p] = true
	}
	if ports, err := ChoosePorts("192.0.2.1", 1); err == nil {
		t.Errorf("ports %v of an address that is not of this machine", ports)
	}
}
