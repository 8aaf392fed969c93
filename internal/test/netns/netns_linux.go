package netns

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// most is how many machines one test may have: what an address has room for.
const most = 250

// Options are the links as they are in the beginning.
type Options struct {
	Rate  int64         // bytes a second of each link, each way; 0: as fast as it goes
	Delay time.Duration // of each link, each way
}

// Machine is one of the machines of a test.
type Machine struct {
	Name string     // its host name: m1, m2, and so on
	Addr netip.Addr // on the bridge: 10.77.0.1, 10.77.0.2, and so on

	hub   *space
	space *space
	time  *os.File // its time namespace; nil: the host's
	rate  int64
	delay time.Duration
}

// ErrMissing is what errors are where this machine lacks what was asked for.
var ErrMissing = errors.New("this machine lacks it")

// missing says what is not there.
func missing(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrMissing, fmt.Errorf(format, args...))
}

// Need skips the test if the error says that this machine lacks something, and
// fails it if it says something else.
func Need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// New makes n machines that exist until the test ends. Where they cannot be had
// it skips the test and says why.
func New(t testing.TB, n int, o Options) []*Machine {
	t.Helper()
	if n < 1 || n > most {
		t.Fatalf("%d machines: between 1 and %d are possible", n, most)
	}
	Need(t, possible())
	hub, err := newSpace("hub")
	Need(t, err)
	machines, err := join(hub, n)
	spaces := []*space{hub}
	for _, m := range machines {
		spaces = append(spaces, m.space)
	}
	g, guardErr := startGuard(spaces)
	t.Cleanup(func() {
		if err := g.end(); err != nil {
			t.Errorf("end the processes of the machines: %v", err)
		}
		for _, m := range machines {
			m.close()
		}
		hub.close()
	})
	Need(t, errors.Join(err, guardErr))
	for _, m := range machines {
		Need(t, m.shape(o.Rate, o.Delay))
	}
	return machines
}

// At is a port of the machine as others reach it.
func (m *Machine) At(port int) string { return netip.AddrPortFrom(m.Addr, uint16(port)).String() }

func (m *Machine) close() {
	m.space.close()
	if m.time != nil {
		m.time.Close()
	}
}

// possible looks for what machines need.
func possible() error {
	if os.Geteuid() != 0 {
		return missing("network namespaces need root")
	}
	for _, tool := range []struct{ name, of string }{
		{"ip", "iproute2"}, {"tc", "iproute2"}, {"nsenter", "util-linux"}, {"unshare", "util-linux"}, {"find", "findutils"},
	} {
		if _, err := exec.LookPath(tool.name); err != nil {
			return missing("there is no program %s, which is part of %s", tool.name, tool.of)
		}
	}
	return nil
}

// join makes n machines and connects them by a bridge in the hub. What it has made it gives
// back with an error too.
func join(hub *space, n int) (machines []*Machine, err error) {
	lines := []string{"link add bridge type bridge forward_delay 0", "link set bridge up"}
	for i := 1; i <= n; i++ {
		m := &Machine{Name: fmt.Sprintf("m%d", i), Addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(i)}), hub: hub}
		if m.space, err = newSpace(m.Name); err != nil {
			return machines, err
		}
		machines = append(machines, m)
		lines = append(lines,
			fmt.Sprintf("link add %s type veth peer name eth0 netns %s", m.Name, m.space.net()),
			fmt.Sprintf("link set %s master bridge up", m.Name))
	}
	// Some kernels have namespaces and none of these.
	for _, kind := range []string{"bridge", "veth"} {
		if err := hub.ip("link add tried type "+kind, "link del tried"); err != nil {
			return machines, missing("the kernel makes no %s: %w", kind, err)
		}
	}
	if err := hub.ip(lines...); err != nil {
		return machines, fmt.Errorf("connect the machines: %w", err)
	}
	for _, m := range machines {
		if err := m.space.ip("link set lo up", fmt.Sprintf("addr add %s/24 dev eth0", m.Addr), "link set eth0 up"); err != nil {
			return machines, fmt.Errorf("give machine %s its address: %w", m.Name, err)
		}
	}
	return machines, nil
}

// space is a network namespace with a host name. It has no name in the file
// system: it lasts as long as these files are open, or something is in it.
type space struct {
	network, uts *os.File
	inode        uint64 // of the network namespace
}

// newSpace makes one.
func newSpace(hostname string) (*space, error) {
	s := new(space)
	err := apart(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWUTS); err != nil {
			return missing("the kernel makes no network namespace: %w", err)
		}
		if err := unix.Sethostname([]byte(hostname)); err != nil {
			return fmt.Errorf("name a machine %s: %w", hostname, err)
		}
		s.network, s.uts, err = here()
		return err
	})
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(s.network.Fd()), &st); err != nil {
		s.close()
		return nil, fmt.Errorf("look at a network namespace: %w", err)
	}
	s.inode = st.Ino
	return s, nil
}

func (s *space) close() {
	s.network.Close()
	s.uts.Close()
}

// here are the namespaces of the thread.
func here() (network, uts *os.File, err error) {
	if network, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return nil, nil, fmt.Errorf("hold a network namespace: %w", err)
	}
	if uts, err = os.Open("/proc/thread-self/ns/uts"); err != nil {
		network.Close()
		return nil, nil, fmt.Errorf("hold a host name: %w", err)
	}
	return network, uts, nil
}

// isHere says whether the thread is in a network namespace.
func isHere(network *os.File) bool {
	is, err := os.Stat("/proc/thread-self/ns/net")
	if err != nil {
		return false
	}
	held, err := network.Stat()
	return err == nil && os.SameFile(is, held)
}

// path is where other processes find a file of this one.
func path(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()) }

func (s *space) net() string { return path(s.network) }

// apart runs f on a thread whose namespaces f may change, and puts them back. A
// thread for which that fails ends.
func apart(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		network, uts, err := here()
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		defer network.Close()
		defer uts.Close()
		err = f()
		if !isHere(network) { // who may not leave may not come back either
			if back := errors.Join(enter(network, unix.CLONE_NEWNET), enter(uts, unix.CLONE_NEWUTS)); back != nil {
				done <- errors.Join(err, back)
				return
			}
		}
		runtime.UnlockOSThread()
		done <- err
	}()
	return <-done
}

// enter brings the thread into a namespace.
func enter(space *os.File, kind int) error {
	if err := unix.Setns(int(space.Fd()), kind); err != nil {
		return fmt.Errorf("enter a namespace: %w", err)
	}
	return nil
}

// ip has ip do these lines in the namespace.
func (s *space) ip(lines ...string) error { return s.batch("ip", lines) }

// tc has tc do these lines in the namespace.
func (s *space) tc(lines ...string) error { return s.batch("tc", lines) }

// batch has a program of iproute2 do lines in the namespace. It stops at the first
// that fails.
func (s *space) batch(program string, lines []string) error {
	var out bytes.Buffer
	cmd := exec.Command(program, "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.Stdout, cmd.Stderr = io.Discard, &out
	err := apart(func() error {
		if err := enter(s.network, unix.CLONE_NEWNET); err != nil {
			return err
		}
		return cmd.Run() // a child is in the namespaces of the thread that forks it
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}
