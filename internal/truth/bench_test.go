package truth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"perflab/internal/proc"
	"perflab/internal/selfcheck"
	"perflab/internal/stat"
	"perflab/internal/truth"
)

// role says what a process of this test binary is, when it is no test: a truth
// server, or a client that measures one.
const role = "PERFLAB_TRUTH_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(role) {
	case "server":
		err = truth.Main(context.Background(), os.Stdin, os.Stdout, truth.Params{Tokens: 1})
	case "client":
		err = client()
	case "foreign":
		for n := 0; ; n++ { // until it is killed
		}
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// job is what a client process is told to do.
type job struct {
	URL    string
	Params truth.Params
	Due    []time.Duration
}

// seen is what it found.
type seen struct {
	Events, Failed, Calls int
	Reason                string
	CPU                   time.Duration
	P50, P99, P999        float64 // us
	Merged                float64
	Allocs                uint64
	Open, Peak            int64
	ServerP50, ServerP99  time.Duration
	TTFTError, ITLError   time.Duration
	ITLTruth, ITLShown    time.Duration // P99
	Told, Beyond          int
}

// client does one job.
func client() error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return err
	}
	a, err := selfcheck.Measure(context.Background(), truth.Remote{URL: j.URL}, j.Params, j.Due)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(seen{
		Events: a.Events, Failed: a.Failed, Calls: a.Calls, Reason: a.Reason, CPU: a.CPU,
		P50: stat.Quantile(a.Arrival, 0.5), P99: stat.Quantile(a.Arrival, 0.99), P999: stat.Quantile(a.Arrival, 0.999),
		Merged: a.Merged(), Allocs: a.Allocs, Open: a.Open, Peak: a.Peak,
		ServerP50: a.Server.LateP50, ServerP99: a.Server.LateP99, TTFTError: a.TTFT, ITLError: a.ITL,
		ITLTruth: a.ITLTruth, ITLShown: a.ITLShown, Told: a.Told, Beyond: a.Beyond,
	})
}

// bench is one server on the first CPU; clients get the second one.
type bench struct {
	server *truth.Child
	pid    int   // of the server
	cpu    []int // of clients
	floor  string

	// Of the last client: what was read off the machine while it ran, and how
	// many bytes it had at most, with all processes that it started.
	looks []look
	peak  int64
}

// look is what was used until an instant.
type look struct {
	at           time.Time
	machine      machine
	ours, client time.Duration // CPU time of the server and this process, and of the client and what it started
}

// look reads all but what the client used.
func (h *bench) look() look {
	return look{at: time.Now(), machine: readMachine(), ours: processTime(h.pid) + processTime(os.Getpid())}
}

// used is what the last client used from the last look before an instant to its
// end, its CPU time, and in shares of a processor what other processes used
// meanwhile, and what the host of a virtual machine gave to others.
func (h *bench) used(from time.Time) (cpu time.Duration, foreign, stolen float64) {
	a, z := h.looks[0], h.looks[len(h.looks)-1]
	for _, l := range h.looks[:len(h.looks)-1] {
		if l.at.Before(from) {
			a = l
		}
	}
	wall := float64(z.at.Sub(a.at))
	cpu = z.client - a.client
	foreign = math.Max(0, float64(z.machine.busy-a.machine.busy-(z.ours-a.ours)-cpu)) / wall
	return cpu, foreign, float64(z.machine.steal-a.machine.steal) / wall
}

func newBench(b *testing.B) *bench {
	b.Helper()
	cpus := truth.CPUs()
	if len(cpus) < 2 {
		b.Skip("server and client need a CPU each, and this machine has one, or does not let a process choose")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"=server")
	server, err := truth.Start(cmd, cpus[:1])
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Close() })
	return &bench{server: server, pid: cmd.Process.Pid, cpu: cpus[1:2]}
}

// processTime is the CPU time of a process, its threads included.
func processTime(pid int) time.Duration {
	p, _ := proc.Read(pid) // zero where it is not told
	return p.Used
}

// tree is what a process and those that descend from it have used and have
// resident. Pages that they share count for each.
func tree(pid int) (cpu time.Duration, memory int64) {
	root, _ := proc.Read(pid) // none where it is not told
	for _, p := range proc.All().Tree(root.ID) {
		cpu, memory = cpu+p.Used+p.Reaped, memory+resident(p.PID)
	}
	return cpu, memory
}

// on runs a command on the client's CPU and decodes what it prints.
func (h *bench) on(b *testing.B, cmd *exec.Cmd, into any) {
	b.Helper()
	cmd.Stderr = os.Stderr
	out := h.run(b, cmd)
	if err := json.Unmarshal(out, into); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// run runs a command on the client's CPU, looks now and then at what it and
// others use, and returns what it prints; with what it says of errors, where that
// goes nowhere else.
func (h *bench) run(b *testing.B, cmd *exec.Cmd) []byte {
	b.Helper()
	var out bytes.Buffer
	cmd.Stdout = &out
	if cmd.Stderr == nil {
		cmd.Stderr = &out
	}
	h.looks, h.peak = []look{h.look()}, 0
	if err := truth.StartOn(cmd, h.cpu); err != nil {
		b.Fatal(err)
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l := h.look()
				cpu, memory := tree(cmd.Process.Pid)
				l.client, h.peak = cpu, max(h.peak, memory)
				h.looks = append(h.looks, l)
			case <-over:
				return
			}
		}
	}()
	err := cmd.Wait()
	close(over)
	<-done
	if err != nil {
		b.Fatalf("%s: %v: %s", cmd.Path, err, out.Bytes())
	}
	l := h.look()
	l.client = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	l.client = max(l.client, h.looks[len(h.looks)-1].client) // it may not wait for what it started
	h.looks, h.peak = append(h.looks, l), max(h.peak, largest(cmd.ProcessState))
	return out.Bytes()
}

// client runs perflab's client in a process with one processor.
func (h *bench) client(b *testing.B, p truth.Params, due []time.Duration) seen {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"=client", "GOMAXPROCS=1")
	in, err := json.Marshal(job{h.server.URL, p, due})
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdin = bytes.NewReader(in)
	var s seen
	h.on(b, cmd, &s)
	if s.Failed > 0 {
		b.Errorf("%d of %d calls failed: %s", s.Failed, s.Calls, s.Reason)
	}
	return s
}

// build compiles the floor.
func (h *bench) build(b *testing.B) {
	b.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS != "linux" {
		b.Skip("the floor is a C program for Linux, and there is no compiler named cc")
	}
	h.floor = filepath.Join(b.TempDir(), "floor")
	if out, err := exec.Command(cc, "-O2", "-o", h.floor, "testdata/floor.c").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// bare is what the floor prints.
type bare struct {
	Events, Reads, Coarse int
	CPU                   time.Duration `json:"cpu_ns"`
	P50                   float64       `json:"p50_us"`
	P99                   float64       `json:"p99_us"`
}

func (h *bench) least(b *testing.B, p truth.Params) (bare, truth.Truth) {
	b.Helper()
	if err := h.server.Set(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	u, err := url.Parse(h.server.URL)
	if err != nil {
		b.Fatal(err)
	}
	var f bare
	h.on(b, exec.Command(h.floor, u.Hostname(), u.Port(), strconv.Itoa(p.Gate), strconv.Itoa(p.Tokens)), &f)
	t, err := h.server.Truth(b.Context(), false)
	if err != nil {
		b.Fatal(err)
	}
	return f, t
}

const (
	streams = 2000
	lasting = 3 * time.Second // of events
	lead    = 500 * time.Millisecond
)

// steady is a load of all streams at a rate of events in all, merged so many
// to a send.
func steady(rate, merge int) truth.Params {
	p := truth.Params{
		TTFT: lead, ITL: time.Duration(streams*merge) * time.Second / time.Duration(rate),
		Merge: merge, Gate: streams, Slots: streams,
	}
	p.Tokens = merge * int(lasting/p.ITL)
	return p
}

// spread is n requests over the time.
func spread(n int, over time.Duration) []time.Duration {
	due := make([]time.Duration, n)
	for i := range due {
		due[i] = over * time.Duration(i) / time.Duration(n)
	}
	return due
}

// BenchmarkClient holds perflab's client, sending through load.Run as perflab
// bench does, against the floor, a C program that does nothing but receive.
// Both get the same CPU in turn and the server has another one; each iteration
// runs both, and the figures are medians: -benchtime 5x makes five. us/event is
// the CPU time of the client's process from when all streams are open to the
// end. A round in which the server was late is made again, and tries says how
// many it took: 3 is a machine too busy to measure on. burst is a batch engine's step: all streams at once.
func BenchmarkClient(b *testing.B) {
	step := steady(50_000, 1)
	step.Slots = 1
	for _, tt := range []struct {
		name string
		p    truth.Params
	}{
		{"20k", steady(20_000, 1)}, {"50k", steady(50_000, 1)}, {"80k", steady(80_000, 1)}, {"100k", steady(100_000, 1)},
		{"burst-50k", step}, {"merged8-200k", steady(200_000, 8)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			h := newBench(b)
			h.build(b)
			m := medians{}
			for b.Loop() {
				f, c, tries := h.round(b, tt.p)
				floor, own := perEvent(f.CPU, f.Events), perEvent(c.CPU, c.Events)
				m.add("floor-us/event", floor)
				m.add("us/event", own)
				m.add("x-floor", own/floor)
				m.add("floor-p50-us", f.P50)
				m.add("floor-p99-us", f.P99)
				m.add("p50-us", c.P50)
				m.add("p99-us", c.P99)
				m.add("p99.9-us", c.P999)
				m.add("merged-%", 100*c.Merged)
				m.add("floor-merged-%", 100*(1-float64(f.Reads)/float64(f.Events/max(1, tt.p.Merge))))
				m.add("allocs/event", float64(c.Allocs)/float64(c.Events))
				m.add("KB/stream", float64(c.Open)/1024/streams)
				m.add("tries", float64(tries))
				_, foreign, stolen := h.used(time.Time{})
				m.add("foreign-%", 100*foreign)
				m.add("stolen-%", 100*stolen)
			}
			m.report(b)
		})
	}
}

// BenchmarkHeldUp is the client beside other programs that want its CPU all the
// time: 1,000 streams of 50 tok/s at once, as a batch engine's steps send them.
// What it then shows, what is true, how many messages it says may have been
// late (told) and how many were later than it says (beyond).
func BenchmarkHeldUp(b *testing.B) {
	const n = 1000
	p := truth.Params{TTFT: 50 * time.Millisecond, ITL: 20 * time.Millisecond, Tokens: 150, Gate: n, Slots: 1}
	even := p
	even.Slots = n
	for _, load := range []struct {
		name string
		p    truth.Params
	}{{"burst", p}, {"even", even}} {
		for _, foreign := range []int{0, 1, 3} {
			b.Run(fmt.Sprintf("%s/foreign=%d", load.name, foreign), func(b *testing.B) {
				h := newBench(b)
				for range foreign {
					h.disturb(b)
				}
				m := medians{}
				for b.Loop() {
					c := h.client(b, load.p, spread(n, time.Second))
					m.add("ttft-error-ms", float64(c.TTFTError)/1e6)
					m.add("itl-p99-ms", float64(c.ITLShown)/1e6)
					m.add("itl-p99-truth-ms", float64(c.ITLTruth)/1e6)
					m.add("p50-us", c.P50)
					m.add("p99-us", c.P99)
					m.add("merged-%", 100*c.Merged)
					m.add("told-%", 100*float64(c.Told)/float64(c.Events))
					m.add("beyond", float64(c.Beyond))
					m.add("us/event", perEvent(c.CPU, c.Events))
				}
				m.report(b)
			})
		}
	}
}

// disturb starts a process on the client's CPU that never rests.
func (h *bench) disturb(b *testing.B) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"=foreign", "GOMAXPROCS=1")
	if err := truth.StartOn(cmd, h.cpu); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

// undisturbed is how late the server's 99th percentile may be: beyond it
// something else had its CPU, and the round says nothing about a client.
const undisturbed = 2 * time.Millisecond

// round runs floor and client, again if the server was disturbed, some times.
func (h *bench) round(b *testing.B, p truth.Params) (f bare, c seen, tries int) {
	b.Helper()
	for tries = 1; ; tries++ {
		var t truth.Truth
		f, t = h.least(b, p)
		c = h.client(b, p, spread(streams, time.Second))
		most := undisturbed
		if p.Slots == 1 { // the last of a step waits for the others
			most += streams * 10 * time.Microsecond
		}
		if max(t.LateP99, c.ServerP99) < most || tries == 3 {
			return f, c, tries
		}
	}
}

func perEvent(cpu time.Duration, events int) float64 { return float64(cpu) / 1e3 / float64(events) }

// medians collects figures over rounds.
type medians map[string][]float64

func (m medians) add(unit string, v float64) { m[unit] = append(m[unit], v) }

func (m medians) report(b *testing.B) {
	for unit, v := range m {
		slices.Sort(v)
		b.ReportMetric(stat.Quantile(v, 0.5), unit)
	}
	b.ReportMetric(0, "ns/op") // the rounds last as long as they are told to
}

// BenchmarkServer is the most events that the server sends in single sends: the
// highest rate at which half of them are late by less than a millisecond, read
// by the floor. Beyond it the delay grows from send to send; a host that takes
// the CPU away for a moment moves the high percentiles alone.
func BenchmarkServer(b *testing.B) {
	h := newBench(b)
	h.build(b)
	best := 0.0
	for b.Loop() {
		for rate := 60_000; rate <= 400_000; rate += 20_000 {
			p := steady(rate, 1)
			p.Tokens = int(time.Second / p.ITL)
			if _, t := h.least(b, p); t.LateP50 > time.Millisecond || t.Blocked > 0 {
				break
			}
			best = math.Max(best, float64(rate))
		}
	}
	b.ReportMetric(best, "events/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory is the memory of a process that made 1,000 calls of 500
// chunks each, all at once.
func BenchmarkMemory(b *testing.B) {
	h := newBench(b)
	m := medians{}
	for b.Loop() {
		p := truth.Params{TTFT: lead, ITL: 20 * time.Millisecond, Tokens: 500, Gate: 1000, Slots: 1000}
		c := h.client(b, p, spread(1000, 0))
		m.add("MB-peak", float64(c.Peak)/(1<<20))
		m.add("KB/stream", float64(c.Open)/1024/1000)
	}
	m.report(b)
}
