package netns

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// role says what a process of this test binary is, when it is no test.
const role = "PERFLAB_NETNS_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "clock": // the monotonic clock and the wall clock
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(now.Nano(), time.Now().UnixNano())
		os.Exit(0)
	case "hold": // writes its id, and waits for ever
		fmt.Println(os.Getpid())
		select {}
	}
	os.Exit(m.Run())
}

// limit is how long a test waits for what happens at once.
const limit = 20 * time.Second

// echo answers on a machine with what it is sent.
func echo(t *testing.T, m *Machine) (address string) {
	t.Helper()
	l, err := m.Listen("tcp", m.At(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// dial connects from a machine.
func dial(t *testing.T, m *Machine, address string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c, err := m.Dial(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// say sends a text and wants it back in time.
func say(c net.Conn, text string, within time.Duration) error {
	c.SetDeadline(time.Now().Add(within))
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	return hear(c, text)
}

// hear wants a text.
func hear(c net.Conn, text string) error {
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != text {
		return fmt.Errorf("heard %q, want %q", got, text)
	}
	return nil
}

// interfaces are those of the host.
func interfaces(t *testing.T) (names []string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

// TestTalk has machines talk to each other, by sockets of this process and by programs, and not to
// those of another test; the host has no part in it.
func TestTalk(t *testing.T) {
	before := interfaces(t)
	m := New(t, 3, Options{})
	others := New(t, 2, Options{})
	address := echo(t, m[0])
	for _, from := range m {
		if err := say(dial(t, from, address), "hello", limit); err != nil {
			t.Errorf("from %s: %v", from.Name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if c, err := others[1].Dial(ctx, "tcp", address); err == nil {
		c.Close()
		t.Error("a machine of another bridge connects")
	}
	if d := cmp.Diff(before, interfaces(t)); d != "" {
		t.Errorf("the host's interfaces: %s", d)
	}
	out, err := m[1].Command(t.Context(), "sh", "-c", "hostname; ip -o -4 addr show dev eth0").Output()
	if err != nil || !strings.HasPrefix(string(out), "m2\n") || !strings.Contains(string(out), "10.77.0.2/24") {
		t.Errorf("a command says %q, %v", out, err)
	}
	if _, err := m[0].Listen("tcp", "localhost:0"); err == nil {
		t.Error("a name was looked up on the host")
	}
}

// TestHome looks at the threads of this process after a thousand sockets: all are at home.
func TestHome(t *testing.T) {
	m := New(t, 2, Options{})
	address := echo(t, m[0])
	errs := make(chan error)
	const many = 1000
	for range many {
		go func() {
			c, err := m[1].Dial(t.Context(), "tcp", address)
			if err == nil {
				err = c.Close()
			}
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	links, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && at != home {
			t.Errorf("%s is %s, and home is %s", link, at, home)
		}
	}
	if len(links) > many/2 {
		t.Errorf("%d threads for %d connections", len(links), many)
	}
}

// TestCut cuts a link and mends it: nothing comes meanwhile, nothing is lost in the end, and
// the third machine does not notice.
func TestCut(t *testing.T) {
	m := New(t, 3, Options{})
	address := echo(t, m[0])
	cut, whole := dial(t, m[1], address), dial(t, m[2], address)
	for _, c := range []net.Conn{cut, whole} {
		if err := say(c, "before", limit); err != nil {
			t.Fatal(err)
		}
	}
	if err := m[1].Cut(); err != nil {
		t.Fatal(err)
	}
	if err := say(cut, "meanwhile", 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("over a link that is cut: %v, want that nothing comes", err)
	}
	if err := say(whole, "meanwhile", limit); err != nil {
		t.Errorf("over a link that is whole: %v", err)
	}
	if err := m[1].Mend(); err != nil {
		t.Fatal(err)
	}
	cut.SetDeadline(time.Now().Add(limit))
	if err := hear(cut, "meanwhile"); err != nil {
		t.Errorf("over a link that is mended: %v", err)
	}
}

// TestRate sends what takes half a second over a limited link, either way and then without the limit.
func TestRate(t *testing.T) {
	m := New(t, 2, Options{})
	const rate, size = 4_000_000, 2_000_000
	l, err := m[0].Listen("tcp", m[0].At(0))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	transfer := func() (up, down time.Duration) {
		t.Helper()
		c := dial(t, m[1], l.Addr().String())
		peer, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		one := func(from, to net.Conn) time.Duration {
			begun := time.Now()
			go from.Write(make([]byte, size))
			to.SetReadDeadline(begun.Add(limit))
			if _, err := io.CopyN(io.Discard, to, size); err != nil {
				t.Fatal(err)
			}
			return time.Since(begun)
		}
		return one(c, peer), one(peer, c)
	}
	Need(t, m[1].Rate(rate))
	up, down := transfer()
	// Headers add to it; the bucket is full in the beginning.
	const least = time.Duration(size-2*rate/100) * time.Second / rate
	if up < least || down < least {
		t.Errorf("%d bytes at %d/s came in %s and %s, want at least %s", size, rate, up, down, least)
	}
	if err := m[1].Rate(0); err != nil {
		t.Fatal(err)
	}
	out, err := m[1].Command(t.Context(), "tc", "qdisc", "show", "dev", "eth0").CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("tbf")) {
		t.Errorf("the limit was lifted, and tc says %q, %v", out, err)
	}
	freeUp, freeDown := transfer()
	t.Logf("%d bytes at %d/s: up %s, down %s; without limit %s, %s", size, rate, up, down, freeUp, freeDown)
}

// TestDelay needs a kernel with a network emulator.
func TestDelay(t *testing.T) {
	m := New(t, 2, Options{})
	address := echo(t, m[0])
	const delay = 20 * time.Millisecond
	Need(t, m[1].Delay(delay))
	c := dial(t, m[1], address)
	for range 5 {
		begun := time.Now()
		if err := say(c, "hello", limit); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 2*delay {
			t.Errorf("there and back in %s, want at least %s", took, 2*delay)
		}
	}
}

func TestDisciplines(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  int64
		delay time.Duration
		want  []string
	}{
		{"none", 0, 0, nil},
		{"rate", 1000, 0, []string{"qdisc add dev eth0 root handle 10: tbf rate 1000bps burst 16384 latency 100ms"}},
		{"fast", 1e9, 0, []string{"qdisc add dev eth0 root handle 10: tbf rate 1000000000bps burst 10000000 latency 100ms"}},
		{"delay", 0, 1500 * time.Microsecond, []string{"qdisc add dev eth0 root handle 1: netem delay 1500us limit 100000"}},
		{"both", 1e6, time.Second, []string{
			"qdisc add dev eth0 root handle 1: netem delay 1000000us limit 100000",
			"qdisc add dev eth0 parent 1:1 handle 10: tbf rate 1000000bps burst 16384 latency 100ms",
		}},
	} {
		if d := cmp.Diff(c.want, disciplines("eth0", c.rate, c.delay)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// clocks asks a process on a machine for its clocks, and holds them against this process's, which
// are read before and after.
func clocks(t *testing.T, m *Machine) (monotonic, wall [2]time.Duration) {
	t.Helper()
	read := func() (mono, wall int64) {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			t.Fatal(err)
		}
		return now.Nano(), time.Now().UnixNano()
	}
	cmd := m.Command(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), role+"=clock")
	m0, w0 := read()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	m1, w1 := read()
	var itsMono, itsWall int64
	if _, err := fmt.Sscan(string(out), &itsMono, &itsWall); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return [2]time.Duration{time.Duration(itsMono - m1), time.Duration(itsMono - m0)},
		[2]time.Duration{time.Duration(itsWall - w1), time.Duration(itsWall - w0)}
}

// TestClock sets the clocks of machines apart. The host's own has run for long enough to be set back a little.
func TestClock(t *testing.T) {
	m := New(t, 3, Options{})
	for i, offset := range []time.Duration{0, 12345 * time.Second, -time.Second} {
		Need(t, m[i].Clock(offset))
		mono, wall := clocks(t, m[i])
		if mono[0] > offset || mono[1] < offset {
			t.Errorf("a clock %s ahead is between %s and %s ahead", offset, mono[0], mono[1])
		}
		if wall[0] > 0 || wall[1] < 0 {
			t.Errorf("the wall clock is between %s and %s ahead", wall[0], wall[1])
		}
	}
	if err := m[1].Clock(0); err != nil {
		t.Fatal(err)
	}
	if mono, _ := clocks(t, m[1]); mono[0] > 0 || mono[1] < 0 {
		t.Errorf("a clock that was set back is between %s and %s ahead", mono[0], mono[1])
	}
	if err := m[0].Clock(1500 * time.Millisecond); err == nil || errors.Is(err, ErrMissing) {
		t.Errorf("a clock half a second ahead: %v, want that it is refused", err)
	}
}

// holder starts a program on a machine that starts another one out of its group, and both
// wait for ever; they are the first two ids.
func holder(t *testing.T, ctx context.Context, m *Machine) (cmd *exec.Cmd, ids []int) {
	t.Helper()
	cmd = m.Command(ctx, "sh", "-c", `setsid "$0" & exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), role+"=hold")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var id int
		if _, err := fmt.Fscan(out, &id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return cmd, ids
}

// gone waits until none of the processes runs.
func gone(t *testing.T, ids []int) {
	t.Helper()
	for _, id := range ids {
		for begun := time.Now(); runs(id); time.Sleep(time.Millisecond) {
			if time.Since(begun) > limit {
				t.Fatalf("process %d is left", id)
			}
		}
	}
}

// runs says whether there is a process, and it is no zombie.
func runs(id int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(rest, []byte("Z"))
}

// TestProcesses ends what runs on machines: by a context its group, by a crash and the end
// of the test all of it.
func TestProcesses(t *testing.T) {
	var left []int
	t.Run("machines", func(t *testing.T) {
		m := New(t, 2, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended, of := holder(t, ctx, m[0])
		if ended.Process.Pid != of[0] && ended.Process.Pid != of[1] {
			t.Errorf("the process is %d, and the program is one of %v", ended.Process.Pid, of)
		}
		cancel()
		if err := ended.Wait(); err == nil {
			t.Error("a program was killed and ended well")
		}
		gone(t, []int{ended.Process.Pid})
		crashed, of0 := holder(t, t.Context(), m[0])
		_, of1 := holder(t, context.WithoutCancel(t.Context()), m[1])
		if err := m[0].Crash(); err != nil {
			t.Fatal(err)
		}
		if err := crashed.Wait(); err == nil || crashed.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("a program on a machine that crashed ended with %v", err)
		}
		gone(t, append(of, of0...))
		for _, id := range of1 {
			if !runs(id) {
				t.Errorf("process %d of another machine died", id)
			}
		}
		left = of1
	})
	gone(t, left)
}

// TestKilled kills a test in the midst: the guard ends what it left, and the kernel removes the machines.
func TestKilled(t *testing.T) {
	New(t, 1, Options{}) // or skip
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$", "-test.v")
	cmd.Env = append(os.Environ(), role+"=victim")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []int
	for lines := bufio.NewScanner(out); len(ids) < 2 && lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "holder "); ok {
			n, err := strconv.Atoi(id)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, n)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if len(ids) != 2 {
		t.Fatalf("the test to be killed started %v", ids)
	}
	gone(t, ids)
}

// TestVictim is the test that is killed.
func TestVictim(t *testing.T) {
	if os.Getenv(role) != "victim" {
		t.Skip("TestKilled runs it in a process of its own")
	}
	m := New(t, 1, Options{})
	_, ids := holder(t, t.Context(), m[0])
	for _, id := range ids {
		fmt.Println("holder", id)
	}
	<-t.Context().Done() // until it is killed
}

// TestNine says how long nine machines take. The time depends on the host, so it is no rule.
func TestNine(t *testing.T) {
	begun := time.Now()
	var made time.Duration
	t.Run("machines", func(t *testing.T) {
		m := New(t, 9, Options{})
		made = time.Since(begun)
		address := echo(t, m[8])
		if err := say(dial(t, m[0], address), "hello", limit); err != nil {
			t.Error(err)
		}
	})
	if made == 0 {
		t.Skip("there are no machines here")
	}
	t.Logf("9 machines made in %s, gone in %s", made.Round(time.Millisecond), (time.Since(begun) - made).Round(time.Millisecond))
}

// TestOptions limits all links from the beginning.
func TestOptions(t *testing.T) {
	m := New(t, 2, Options{Rate: 1e6})
	for _, m := range m {
		out, err := m.Command(t.Context(), "tc", "qdisc", "show", "dev", "eth0").CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("tbf")) {
			t.Errorf("%s has a limit, and tc says %q, %v", m.Name, out, err)
		}
	}
	if err := m[0].Rate(-1); err == nil || errors.Is(err, ErrMissing) {
		t.Errorf("a negative rate: %v, want that it is refused", err)
	}
}
