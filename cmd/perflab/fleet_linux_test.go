package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"perflab/internal/rundir"
	"perflab/internal/test/netns"
	"perflab/internal/test/relay"
	"perflab/internal/truth"
)

// office is machines of a fleet, network namespaces: the hub's, which also leads; the server's; and agents'.
type office struct {
	hub, server *netns.Machine
	hubDir      string
	agents      []*station
	hubCmd      *program
	url         string // of the server under test
}

// station is an agent's machine.
type station struct {
	*netns.Machine
	name  string
	dir   string
	ahead time.Duration // of its clock
	cmd   *program
}

// program is a perflab that goes on.
type program struct {
	*exec.Cmd
	out   bytes.Buffer
	mu    sync.Mutex
	lines chan string
	ended chan struct{}
}

// start starts perflab on a machine.
func start(t testing.TB, m *netns.Machine, args ...string) *program {
	t.Helper()
	p := &program{Cmd: m.Command(context.WithoutCancel(t.Context()), os.Args[0], args...), lines: make(chan string, 1000), ended: make(chan struct{})}
	p.Env = append(os.Environ(), "PERFLAB_TEST_MAIN=1", "HOME="+t.TempDir())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout, p.Stderr = w, w
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var read sync.WaitGroup
	read.Go(func() {
		defer r.Close()
		for s := bufio.NewScanner(r); s.Scan(); {
			p.mu.Lock()
			fmt.Fprintln(&p.out, s.Text())
			p.mu.Unlock()
			select {
			case p.lines <- s.Text():
			default: // nobody waits for lines any more
			}
		}
	})
	go func() {
		_ = p.Wait() // how it ended is in its state
		read.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() { p.kill() })
	return p
}

// says waits for a line.
func (p *program) says(t testing.TB, what string) {
	t.Helper()
	give := time.NewTimer(time.Minute)
	defer give.Stop()
	for {
		select {
		case line := <-p.lines:
			if strings.Contains(line, what) {
				return
			}
		case <-p.ended:
			t.Fatalf("%v ended and never said %q:\n%s", p.Args, what, p.text())
		case <-give.C:
			t.Fatalf("%v never said %q:\n%s", p.Args, what, p.text())
		}
	}
}

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// kill kills it without a word.
func (p *program) kill() {
	_ = p.Process.Signal(syscall.SIGKILL) // it may have ended
	<-p.ended
}

// openOffice makes machines, opens a hub, and has agents join whose clocks are apart where the kernel can.
func openOffice(t testing.TB, agents int, p truth.Params) *office {
	t.Helper()
	m := netns.New(t, agents+2, netns.Options{})
	o := &office{hub: m[0], server: m[1], hubDir: filepath.Join(t.TempDir(), "fleet")}
	o.openHub(t)
	for i, m := range m[2:] {
		s := &station{Machine: m, name: fmt.Sprintf("a%d", i+1), dir: t.TempDir()}
		if ahead := time.Duration(i) * 1000 * time.Second; m.Clock(ahead) == nil { // else all clocks are one
			s.ahead = ahead
		}
		o.agents = append(o.agents, s)
		s.join(t, o)
	}
	for _, s := range o.agents {
		s.cmd.says(t, "Agent "+s.name)
	}
	o.serve(t, p)
	return o
}

const hubPort = 7422

func (o *office) openHub(t testing.TB) {
	t.Helper()
	o.hubCmd = start(t, o.hub, "fleet", "hub", "--dir", o.hubDir, "--listen", o.hub.At(hubPort))
	o.hubCmd.says(t, "Hub: ")
}

// invited is the URL of an invitation.
func (o *office) invited(t testing.TB) string {
	t.Helper()
	cmd := o.hub.Command(t.Context(), os.Args[0], "fleet", "invite", "--hub", o.hubDir, "--host", o.hub.Addr.String())
	cmd.Env = append(os.Environ(), "PERFLAB_TEST_MAIN=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("perflab fleet invite: %v", err)
	}
	url := regexp.MustCompile(`perflab://[^']+`).FindString(string(out))
	if url == "" {
		t.Fatalf("perflab fleet invite printed %q", out)
	}
	return url
}

func (s *station) join(t testing.TB, o *office) {
	t.Helper()
	s.cmd = start(t, s.Machine, "agent", "--join", o.invited(t), "--name", s.name, "--dir", s.dir)
}

// serve has a truth server answer on its machine.
func (o *office) serve(t testing.TB, p truth.Params) {
	t.Helper()
	l, err := o.server.Listen("tcp", o.server.At(8000))
	if err != nil {
		t.Fatal(err)
	}
	o.url = "http://" + o.server.At(8000)
	serveTruth(t, l, p)
}

// knows is what the server recorded.
func (o *office) knows(t testing.TB) truth.Truth {
	t.Helper()
	return recorded(t, o.hub, o.server.At(8000))
}

// prompts is a file of prompts by which the server knows which is which.
func prompts(t testing.TB, n, tokens int) string {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "{\"prompt\":%q,\"output_tokens\":%d}\n", truth.Prompt(i), tokens)
	}
	path := filepath.Join(t.TempDir(), "prompts.jsonl")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// bench starts a load by the fleet, led on the hub's machine.
func (o *office) bench(t testing.TB, dir, fleet string, args ...string) *program {
	t.Helper()
	return start(t, o.hub, append([]string{
		"bench", "--fleet", fleet, "--hub", o.hubDir, "--base-url", o.url, "--model", truth.Model, "--tokenizer", "estimate",
		"--num-warmups", "0", "--telemetry", "off", "--max-error-rate", "1", "--out", dir,
	}, args...)...)
}

// run is what came of a load: 0 and 4 are good ends.
func (p *program) run(t testing.TB, dir string) *rundir.Run {
	t.Helper()
	<-p.ended
	if code := p.ProcessState.ExitCode(); code != 0 && code != 4 {
		t.Fatalf("perflab bench: %v\n%s", p.ProcessState, p.text())
	}
	r, err := rundir.OpenRun(dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.text())
	}
	return r
}

// indices are those of the calls, in order.
func indices(r *rundir.Run) []int {
	out := make([]int, 0, len(r.Calls))
	for i := range r.Calls {
		out = append(out, r.Calls[i].Index)
	}
	slices.Sort(out)
	return out
}

func counted(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestFleetOfEight: eight machines send what one would, each request once; clocks that are apart by hours
// are known to within the bound; and the mean TTFT is the server's. PERFLAB_FLEET_STREAMS is how many
// streams each machine has at once.
func TestFleetOfEight(t *testing.T) {
	each := 100
	if text := os.Getenv("PERFLAB_FLEET_STREAMS"); text != "" {
		var err error
		if each, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const agents, tokens = 8, 6
	total := agents * each
	// Every stream lasts 5 s, so that after 4 s of sending nearly all of them are there.
	o := openOffice(t, agents, truth.Params{TTFT: 100 * time.Millisecond, ITL: time.Second, Tokens: tokens})
	dir := filepath.Join(t.TempDir(), "run")
	r := o.bench(t, dir, "all", "--dataset-name", "jsonl", "--dataset-path", prompts(t, total, tokens), "--disable-shuffle", "--request-rate", strconv.Itoa(total/4)).run(t, dir)
	if got := indices(r); !slices.Equal(got, counted(total)) {
		t.Errorf("%d calls came back, want each of %d once", len(got), total)
	}
	known := o.knows(t)
	var ids []int
	var server time.Duration
	for _, q := range known.Requests {
		ids = append(ids, q.ID)
		server += time.Duration(q.First - q.Received)
	}
	slices.Sort(ids)
	if !slices.Equal(ids, counted(total)) {
		t.Errorf("the server was sent %d requests, want each of %d once", len(ids), total)
	}
	var client time.Duration
	for i := range r.Calls {
		d, ok := r.Calls[i].TTFT()
		if !ok {
			t.Fatalf("call %d failed: %s", r.Calls[i].Index, r.Calls[i].Class)
		}
		client += d
	}
	off := (client/time.Duration(len(r.Calls)) - server/time.Duration(len(known.Requests)))
	t.Logf("%d streams: mean TTFT is %v more than the server's", total, off)
	if off < 0 {
		t.Errorf("mean TTFT is %v less than the server's", -off)
	}
	if f := r.Header.Fleet; f == nil || len(f.Agents) != agents {
		t.Fatalf("the header has %+v", f)
	}
	checkStarts(t, r, known)
}

// checkStarts holds the start of every agent, as its calls have it, against those of the others by the server's
// clock: they are one instant to within what the header says is known of their clocks. The server gets a
// request a little after it was sent, which the least of many says.
func checkStarts(t *testing.T, r *rundir.Run, known truth.Truth) {
	t.Helper()
	received := map[int]int64{}
	for _, q := range known.Requests {
		received[q.ID] = q.Received
	}
	starts := map[int]int64{}
	for i := range r.Calls {
		c := &r.Calls[i]
		at := received[c.Index] - int64(c.Sent)
		if was, ok := starts[c.Agent]; !ok || at < was {
			starts[c.Agent] = at
		}
	}
	const transit = time.Millisecond
	first := r.Header.Fleet.Agents[0]
	for i, a := range r.Header.Fleet.Agents {
		if a.Offset == nil || first.Offset == nil {
			t.Errorf("the clock of %s is not known", a.Name)
			continue
		}
		apart := time.Duration(starts[i+1] - starts[1])
		t.Logf("%s: bound %v, drift %.2f ppm by %d exchanges; it started %v after %s", a.Name, a.Offset.Bound, a.Offset.DriftPPM, a.Offset.Exchanges, apart, first.Name)
		if most := a.Offset.Bound + first.Offset.Bound + transit; a.Offset.Bound <= 0 || apart.Abs() > most {
			t.Errorf("%s started %v after %s, known to %v", a.Name, apart, first.Name, most)
		}
	}
}

// TestFleetFar has an agent whose way to the hub takes longer there than back, which no exchange of messages can tell
// from a clock that is ahead: the bound says how far off the start may be, and it is.
func TestFleetFar(t *testing.T) {
	o := openOffice(t, 1, truth.Params{TTFT: 20 * time.Millisecond, ITL: 20 * time.Millisecond, Tokens: 3})
	far := o.agents[0].Machine
	l, err := far.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const there, back = 12 * time.Millisecond, 2 * time.Millisecond
	r, err := relay.Serve(l, o.hub.At(hubPort), relay.Options{Up: relay.Link{Delay: there}, Down: relay.Link{Delay: back}, Dial: far.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	// Its URL leads to the relay; the certificate is the hub's all the same.
	url := strings.Replace(o.invited(t), o.hub.At(hubPort), r.Addr(), 1)
	start(t, far, "agent", "--join", url, "--name", "a2", "--dir", t.TempDir()).says(t, "Agent a2")
	const total = 80
	dir := filepath.Join(t.TempDir(), "run")
	run := o.bench(t, dir, "a1,a2", "--dataset-name", "jsonl", "--dataset-path", prompts(t, total, 3), "--disable-shuffle", "--request-rate", "40").run(t, dir)
	if got := indices(run); !slices.Equal(got, counted(total)) {
		t.Errorf("%d calls came back, want each of %d once", len(got), total)
	}
	checkStarts(t, run, o.knows(t))
	a := run.Header.Fleet.Agents[1]
	if a.Offset == nil {
		t.Fatal("its clock is not known")
	}
	if least := (there + back) / 2; a.Name != "a2" || a.Offset.Bound < least {
		t.Errorf("the clock of %s is known to %v, which a way of %v there and %v back cannot prove: at best %v", a.Name, a.Offset.Bound, there, back, least)
	}
}

// TestFleetFaults breaks a fleet while it sends. Each load would take 16 s.
func TestFleetFaults(t *testing.T) {
	const total, tokens = 320, 3
	load := []string{"--dataset-name", "jsonl", "--request-rate", "20"}
	for _, c := range []struct {
		name    string
		breaks  func(t *testing.T, o *office, b *program)
		partial string // what the note says of it; "": all came back
		lost    int    // number of the agent that is lost, or stopped; 0: none
	}{
		{"an agent is killed", func(_ *testing.T, o *office, _ *program) { o.agents[0].cmd.kill() }, "a1", 1},
		{"a link is cut for a second", func(t *testing.T, o *office, _ *program) { o.cut(t, 0, time.Second) }, "", 0},
		{"a link is cut for longer than the lease", func(t *testing.T, o *office, _ *program) { o.cut(t, 0, 11*time.Second) }, "a1", 1},
		{"the hub is killed and comes back", func(t *testing.T, o *office, _ *program) {
			o.hubCmd.kill()
			o.openHub(t)
		}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t, 2, truth.Params{TTFT: 20 * time.Millisecond, ITL: 20 * time.Millisecond, Tokens: tokens})
			dir := filepath.Join(t.TempDir(), "run")
			b := o.bench(t, dir, "2", append(load, "--dataset-path", prompts(t, total, tokens))...)
			o.sent(t, 40)
			c.breaks(t, o, b)
			r := b.run(t, dir)
			if got := indices(r); len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Error("calls came back twice")
			} else if c.partial == "" && len(got) != total {
				t.Errorf("%d calls of %d came back\n%s", len(got), total, b.text())
			}
			if r.Partial != (c.partial != "") || c.partial != "" && !strings.Contains(r.Client.StopNote, c.partial) {
				t.Errorf("partial %v: %q\n%s", r.Partial, r.Client.StopNote, b.text())
			}
			by := map[int]int{}
			for i := range r.Calls {
				by[r.Calls[i].Agent]++
			}
			for n := 1; n <= 2; n++ {
				if n != c.lost && by[n] != total/2 {
					t.Errorf("agent %d brought %d calls of %d\n%s", n, by[n], total/2, b.text())
				}
			}
			if c.lost > 0 && by[c.lost] >= total/2 {
				t.Errorf("agent %d brought all of its calls", c.lost)
			}
		})
	}
	t.Run("the leader is killed", func(t *testing.T) {
		t.Parallel()
		o := openOffice(t, 2, truth.Params{TTFT: 20 * time.Millisecond, ITL: 20 * time.Millisecond, Tokens: tokens})
		dir := filepath.Join(t.TempDir(), "run")
		b := o.bench(t, dir, "2", append(load, "--dataset-path", prompts(t, 2000, tokens))...) // 100 s
		o.sent(t, 40)
		b.kill()
		o.idle(t)
		sent := len(o.knows(t).Requests)
		if sent > 40+20*30 {
			t.Errorf("%d requests were sent without a leader", sent)
		}
		again := filepath.Join(t.TempDir(), "run")
		if r := o.bench(t, again, "2", append(load, "--dataset-path", prompts(t, 40, tokens))...).run(t, again); len(r.Calls) != 40 || r.Partial {
			t.Errorf("after it: %d calls, partial %v", len(r.Calls), r.Partial)
		}
	})
}

// sent waits until the server has so many requests.
func (o *office) sent(t testing.TB, n int) {
	t.Helper()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(time.Minute); len(o.knows(t).Requests) < n; <-every.C {
		if time.Now().After(end) {
			t.Fatalf("the server never had %d requests", n)
		}
	}
}

// cut cuts an agent's link for a while.
func (o *office) cut(t testing.TB, i int, d time.Duration) {
	t.Helper()
	if err := o.agents[i].Cut(); err != nil {
		t.Fatal(err)
	}
	<-time.After(d)
	if err := o.agents[i].Mend(); err != nil {
		t.Fatal(err)
	}
}

// idle waits until no agent is at work.
func (o *office) idle(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		cmd := o.hub.Command(t.Context(), os.Args[0], "fleet", "--hub", o.hubDir)
		cmd.Env = append(os.Environ(), "PERFLAB_TEST_MAIN=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("perflab fleet: %v\n%s", err, out)
		}
		if strings.Count(string(out), " idle ") == len(o.agents) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the agents never became idle:\n%s", out)
		}
	}
}

// BenchmarkFleet is a load of 4,000 streams that get 40,000 events/s together, by 1, 2 and 4 agents in
// namespaces of this machine, which also has the hub, the leader and the server: what comes of it, and how much of
// a processor each of them used.
func BenchmarkFleet(b *testing.B) {
	const streams, tokens = 4000, 60
	itl := 100 * time.Millisecond
	for _, agents := range []int{1, 2, 4} {
		b.Run(strconv.Itoa(agents), func(b *testing.B) {
			o := openOffice(b, agents, truth.Params{TTFT: 100 * time.Millisecond, ITL: itl, Tokens: tokens, Slots: 1000})
			path := prompts(b, streams, tokens)
			for b.Loop() {
				dir := filepath.Join(b.TempDir(), "run")
				r := o.bench(b, dir, "all", "--dataset-name", "jsonl", "--dataset-path", path, "--request-rate", strconv.Itoa(streams/2)).run(b, dir)
				var client, server, span time.Duration
				for i := range r.Calls {
					d, _ := r.Calls[i].TTFT()
					client, span = client+d, max(span, r.Calls[i].End)
				}
				known := o.knows(b)
				for _, q := range known.Requests {
					server += time.Duration(q.First - q.Received)
				}
				var busy time.Duration
				var sched time.Duration
				for _, a := range r.Header.Fleet.Agents {
					busy, sched = busy+a.Client.CPU, max(sched, a.Client.SchedP99)
				}
				n := time.Duration(max(1, len(r.Calls)))
				b.ReportMetric(float64(len(r.Calls)), "calls")
				b.ReportMetric(float64(len(r.Calls)*tokens)/span.Seconds(), "events/s")
				b.ReportMetric(float64((client/n - server/max(1, time.Duration(len(known.Requests)))).Microseconds()), "ttft-error-us")
				b.ReportMetric(100*busy.Seconds()/span.Seconds(), "agents-cpu-%")
				b.ReportMetric(float64(sched.Microseconds()), "sched-p99-us")
			}
		})
	}
}
