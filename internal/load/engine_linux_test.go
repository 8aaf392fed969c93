package load

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"perflab/internal/proc"
	"perflab/internal/result"
)

// tick is the unit in which the kernel counts processor time.
const tick = 10 * time.Millisecond

// helperEngine in the environment makes the test binary an engine that ends with its input: it
// listens and is a "busy" one, which computes, an "idle" one, which has a thousand files open, or a
// "parent", which starts a child that computes when it gets a byte.
const helperEngine = "PERFLAB_TEST_ENGINE"

func TestMain(m *testing.M) {
	switch os.Getenv(helperEngine) {
	case "":
		os.Exit(m.Run())
	case "child":
		compute()
		return
	}
	// The port of the test's choice, which an earlier engine may have had.
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", os.Getenv(helperPort)))
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	switch os.Getenv(helperEngine) {
	case "busy":
		compute()
	case "idle":
		for range 1000 {
			if _, err := syscall.Dup(0); err != nil {
				panic(err)
			}
		}
		fmt.Println("open")
		os.Stdin.Read(make([]byte, 1))
	case "parent":
		os.Stdin.Read(make([]byte, 1))
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), helperEngine+"=child")
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout // the input ends for both
		if err := cmd.Run(); err != nil {
			panic(err)
		}
	}
}

// compute computes until the input ends, and says when the kernel has seen it.
func compute() {
	var ended atomic.Bool
	go func() {
		os.Stdin.Read(make([]byte, 1))
		ended.Store(true)
	}()
	for said := false; !ended.Load(); {
		if !said && processCPU() > 5*tick {
			said = true
			fmt.Println("computes")
		}
	}
}

// helper is a started engine.
type helper struct {
	address string
	in      io.WriteCloser
	out     *bufio.Scanner
	cmd     *exec.Cmd
}

const helperPort = "PERFLAB_TEST_PORT"

// startEngine starts one and waits until it listens.
func startEngine(t testing.TB, kind, port string) helper {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEngine+"="+kind, helperPort+"="+port)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := helper{in: in, out: bufio.NewScanner(out), cmd: cmd}
	t.Cleanup(h.end)
	h.address = h.says(t)
	if kind == "idle" {
		h.says(t) // that its files are open
	}
	return h
}

// says is the next line that the engine prints.
func (h helper) says(t testing.TB) string {
	t.Helper()
	if !h.out.Scan() {
		t.Fatal("the engine has ended")
	}
	return h.out.Text()
}

func (h helper) end() {
	h.in.Close()
	_ = h.cmd.Wait() // it ends with its input
}

// measured is what the usage of a time says in which this process computes, so that the
// counters of both move.
func measured(meanwhile func(), servers ...string) *result.Machine {
	u := StartUsage(servers...)
	meanwhile()
	for begun := processCPU(); processCPU()-begun < 10*tick && time.Since(u.start) < 10*time.Second; {
	}
	return u.Stop().Machine
}

func nothing() {}

// What listens on a target's port of this machine is the engine, and its time is not that of
// other programs.
func TestEngineOfThisMachine(t *testing.T) {
	t.Parallel()
	address := startEngine(t, "busy", "0").address
	m := measured(nothing, address)
	if m == nil || !m.Here || m.Processes != 1 || m.Engine <= 0 || m.Client < 5*tick || m.CPUs == 0 || m.EngineWaits.Runs == 0 {
		t.Errorf("with an engine at %s: %+v", address, m)
	}
	if m.Engine+m.Client+m.Idle > m.Time+10*tick*time.Duration(m.CPUs) {
		t.Errorf("more than all: %+v", m)
	}
	if m := measured(nothing, "192.0.2.1:80"); m.Here || m.Processes != 0 || m.Engine != 0 {
		t.Errorf("with an engine elsewhere: %+v", m)
	}
	if m := measured(nothing, "127.0.0.1:1"); !m.Here || m.Processes != 0 || m.Others() <= 0 {
		t.Errorf("where nothing listens that can be told: %+v", m)
	}
}

// What an engine starts during a load is of it.
func TestEngineStartsAnother(t *testing.T) {
	t.Parallel()
	h := startEngine(t, "parent", "0")
	m := measured(func() {
		if _, err := h.in.Write([]byte{1}); err != nil {
			t.Error(err)
		}
		h.says(t) // that the other one computes
	}, h.address)
	if m == nil || m.Processes != 2 || m.Engine <= 0 || m.EngineWaits.Runs == 0 {
		t.Errorf("%+v", m)
	}
}

// An engine that another took the place of during a load is found again.
func TestEngineRestarts(t *testing.T) {
	t.Parallel()
	first := startEngine(t, "idle", "0")
	m := measured(func() {
		first.end()
		_, port, _ := net.SplitHostPort(first.address)
		startEngine(t, "busy", port).says(t) // that it computes
	}, first.address)
	if m == nil || m.Processes != 1 || m.Engine <= 0 || m.EngineWaits.Runs == 0 {
		t.Errorf("%+v", m)
	}
}

// The children of what listens are the engine too, and so is its group unless it is ours.
func TestEngineProcesses(t *testing.T) {
	own := os.Getpid()
	all := table(
		proc.Process{ID: proc.ID{PID: 100}, Parent: 1, Group: 100},   // launcher
		proc.Process{ID: proc.ID{PID: 101}, Parent: 100, Group: 100}, // listens
		proc.Process{ID: proc.ID{PID: 102}, Parent: 101, Group: 102}, // worker in a group of its own
		proc.Process{ID: proc.ID{PID: 103}, Parent: 102, Group: 103},
		proc.Process{ID: proc.ID{PID: 104}, Parent: 1, Group: 104},
		proc.Process{ID: proc.ID{PID: own}, Parent: 101, Group: 105}, // this process is never the engine
		proc.Process{ID: proc.ID{PID: own + 1}, Parent: own, Group: 106},
		proc.Process{ID: proc.ID{PID: 107}, Parent: 1, Group: 105},
		proc.Process{ID: proc.ID{PID: 108}, Parent: 1, Group: 105}, // listens, started by a script that started us
	)
	e := engines{all: all, owners: []proc.ID{{PID: 101}, {PID: 108}}}
	if got, want := slices.Sorted(maps.Keys(e.family())), []int{100, 101, 102, 103, 108}; !slices.Equal(got, want) {
		t.Errorf("processes %v are the engine, want %v", got, want)
	}
	// A worker whose parent has ended is still one.
	e.members = e.family()
	e.all = table(
		proc.Process{ID: proc.ID{PID: 100}, Parent: 1, Group: 100},
		proc.Process{ID: proc.ID{PID: 101, Start: 9}, Parent: 1, Group: 101}, // another, later
		proc.Process{ID: proc.ID{PID: 102}, Parent: 1, Group: 102},
		proc.Process{ID: proc.ID{PID: 109}, Parent: 102, Group: 109},
	)
	if got, want := slices.Sorted(maps.Keys(e.family())), []int{100, 102, 109}; !slices.Equal(got, want) {
		t.Errorf("later processes %v are the engine, want %v", got, want)
	}
	if !e.lost() {
		t.Error("one of those that listened has ended, and its successor is not looked for")
	}
}

func table(all ...proc.Process) proc.Table {
	t := proc.Table{}
	for _, p := range all {
		t[p.PID] = p
	}
	return t
}

// What processes used before the load is not in it, whoever counts it at the end.
func TestEngineSince(t *testing.T) {
	at := func(pid int, start uint64, parent int, used, reaped time.Duration) proc.Process {
		return proc.Process{ID: proc.ID{PID: pid, Start: start}, Parent: parent, Used: used * time.Second, Reaped: reaped * time.Second}
	}
	before := engines{
		members: table(at(10, 1, 1, 100, 7), at(11, 2, 10, 50, 0), at(12, 3, 11, 20, 0), at(13, 4, 10, 40, 0)),
		waits:   map[int]result.Waits{10: {Time: 5, Runs: 5}, 13: {Time: 100, Runs: 100}},
	}
	before.all = maps.Clone(before.members)
	before.all[14] = at(14, 5, 1, 30, 0) // was there, and listens since
	for name, c := range map[string]struct {
		now  proc.Table
		want time.Duration
	}{
		"nothing changed":               {before.members, 0},
		"all compute":                   {table(at(10, 1, 1, 101, 7), at(11, 2, 10, 52, 0), at(12, 3, 11, 23, 0), at(13, 4, 10, 44, 0)), 10},
		"a child ended":                 {table(at(10, 1, 1, 100, 48), at(11, 2, 10, 50, 0), at(12, 3, 11, 20, 0)), 1},
		"nobody waited for a child":     {table(at(10, 1, 1, 103, 7), at(11, 2, 10, 50, 0), at(12, 3, 11, 20, 0)), 3},
		"a child ended with its child":  {table(at(10, 1, 1, 100, 80), at(13, 4, 10, 40, 0)), 3},
		"a child's number was taken":    {table(at(10, 1, 1, 100, 48), at(11, 2, 10, 50, 0), at(12, 3, 11, 20, 0), at(13, 9, 10, 2, 0)), 3},
		"another one serves the target": {table(at(14, 5, 1, 34, 0)), 4},
	} {
		now := engines{all: maps.Clone(c.now), members: c.now, waits: map[int]result.Waits{10: {Time: 7, Runs: 6}, 13: {Time: 1, Runs: 1}}}
		used, _ := now.since(before)
		if used != c.want*time.Second {
			t.Errorf("%s: the engine used %v, want %v", name, used, c.want*time.Second)
		}
	}
	now := engines{members: table(at(10, 1, 1, 0, 0), at(13, 9, 10, 0, 0)), waits: map[int]result.Waits{10: {Time: 7, Runs: 6}, 13: {Time: 1, Runs: 1}}}
	if _, waits := now.since(before); waits != (result.Waits{Time: 3, Runs: 2}) {
		t.Errorf("the engine waited %+v", waits)
	}
}

// The first look at the engine, through the files of all processes, and a later one.
func BenchmarkEngines(b *testing.B) {
	address := ""
	for range 4 {
		address = startEngine(b, "idle", "0").address
	}
	e := engines{ports: portsHere([]string{address})}
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if e = e.find(); len(e.members) != 1 {
				b.Fatal(e.members)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if again := e.again(); len(again.members) != 1 || again.lost() {
				b.Fatal(again.members)
			}
		}
	})
}
