package load

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perflab/internal/result"
)

// helperEngine in the environment makes the test binary listen and compute until its
// input ends.
const helperEngine = "PERFLAB_TEST_ENGINE"

func TestMain(m *testing.M) {
	if os.Getenv(helperEngine) == "" {
		os.Exit(m.Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	var ended atomic.Bool
	go func() {
		os.Stdin.Read(make([]byte, 1))
		ended.Store(true)
	}()
	for !ended.Load() {
	}
}

// What listens on a target's port of this machine is the engine, and its time is not that of
// other programs.
func TestEngineOfThisMachine(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEngine+"=1")
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
	defer cmd.Wait() //nolint:errcheck // it ends with its input
	defer in.Close()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	measured := func(servers ...string) *result.Machine {
		u := StartUsage(servers...)
		for begun := processCPU(); processCPU()-begun < 10*tick && time.Since(u.start) < 10*time.Second; { // so that the counters of both move
		}
		return u.Stop().Machine
	}
	m := measured(address)
	if m == nil || !m.Here || m.Processes != 1 || m.Engine <= 0 || m.Client < 5*tick || m.CPUs == 0 || m.EngineWaits.Runs == 0 {
		t.Errorf("with an engine at %s: %+v", address, m)
	}
	if m.Engine+m.Client+m.Idle > m.Time+10*tick*time.Duration(m.CPUs) {
		t.Errorf("more than all: %+v", m)
	}
	if m := measured("192.0.2.1:80"); m.Here || m.Processes != 0 || m.Engine != 0 {
		t.Errorf("with an engine elsewhere: %+v", m)
	}
	if m := measured("127.0.0.1:1"); !m.Here || m.Processes != 0 || m.Others() <= 0 {
		t.Errorf("where nothing listens that can be told: %+v", m)
	}
}

// The children of what listens are the engine too, and so is its group unless it is ours.
func TestEngineProcesses(t *testing.T) {
	own := os.Getpid()
	all := processTable{
		100: {parent: 1, group: 100},   // launcher
		101: {parent: 100, group: 100}, // listens
		102: {parent: 101, group: 102}, // worker in a group of its own
		103: {parent: 102, group: 103},
		104: {parent: 1, group: 104},
		own: {parent: 101, group: 105}, // this process is never the engine
	}
	all.markWith(101)
	for pid, want := range map[int]bool{100: true, 101: true, 102: true, 103: true, 104: false, own: false} {
		if all[pid].marked != want {
			t.Errorf("process %d is the engine's: %v, want %v", pid, all[pid].marked, want)
		}
	}
	p, ok := parseProcess("7 (a) b (c) S 3 4 4 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9 10")
	if !ok || p.parent != 3 || p.group != 4 || p.used != (5+6+7+8)*tick {
		t.Errorf("%+v %v", p, ok)
	}
	for _, bad := range []string{"", "7 (a", "7 (a) S 3"} {
		if _, ok := parseProcess(bad); ok {
			t.Errorf("%q is no process", bad)
		}
	}
}
