package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/test/deploytest"
)

// serving is an agent's side alone, to which orders are given by hand.
func serving(t *testing.T) *server {
	t.Helper()
	s := newServer("a", Options{Dir: t.TempDir(), Processes: true})
	t.Cleanup(func() { s.close() })
	return s
}

func give[T any](s *server, word string, token uint64, o any) (T, error) {
	var out T
	e := envelope{Token: token, Order: order.Encode(o)}
	v, err := s.do(word, e)
	if err == nil && v != nil {
		err = json.Unmarshal(order.Encode(v), &out)
	}
	return out, err
}

// spawnFake starts a fake engine by hand and gives the directory of its process's id.
func spawnFake(t *testing.T, s *server, token uint64, number int) (dir string) {
	t.Helper()
	return spawnIn(t, s, token, number, nil)
}

// spawnIn starts it in a container, where settings are given.
func spawnIn(t *testing.T, s *server, token uint64, number int, containers json.RawMessage) (dir string) {
	t.Helper()
	dir = t.TempDir()
	start := Settings{Containers: containers}
	ports, err := give[[]int](s, wordPorts, token, portsOrder{1, start})
	if err != nil {
		t.Fatal(err)
	}
	m := deploytest.Engine(t, dir, deploytest.Ready).Member
	for i := range m.Argv {
		m.Argv[i] = strings.ReplaceAll(m.Argv[i], "{port}", fmt.Sprint(ports[0]))
	}
	_, err = give[deploy.Record](s, wordSpawn, token, spawnOrder{Number: number, Start: start, Op: "start", Name: "replica-0", Marker: fmt.Sprintf("PERFLAB_DEPLOYMENT=%s/%d", t.Name(), number), Ports: ports, Argv: m.Argv, Env: m.Env})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// gone waits until no process of a fake engine runs, and fails when that takes longer than a bound.
func gone(t *testing.T, dir string, within time.Duration) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(within); ; <-look.C {
		alive := 0
		pids := deploytest.PIDs(t, dir)
		for _, pid := range pids {
			if deploytest.Alive(pid) {
				alive++
			}
		}
		if len(pids) > 0 && alive == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of the processes %v run after %v", alive, pids, within)
		}
	}
}

// TestFencing: an order of a token that was followed by a higher one is refused, whatever it wants, and what its holder
// started has ended before the next one's first order is done.
func TestFencing(t *testing.T) {
	s := serving(t)
	refused := func(word string, token uint64, o any) {
		t.Helper()
		_, err := give[json.RawMessage](s, word, token, o)
		if _, ok := errors.AsType[*FencedError](err); !ok {
			t.Errorf("%s with token %d: %v, want that it is refused", word, token, err)
		}
	}
	refused(wordPorts, 5, portsOrder{N: 1}) // nobody holds it
	if _, err := give[held](s, wordHold, 5, holdOrder{Lease: time.Minute}); err != nil {
		t.Fatal(err)
	}
	refused(wordHold, 4, holdOrder{Lease: time.Minute})
	for _, word := range []string{wordRenew, wordPorts, wordSpawn, wordLog, wordStop, wordReady, wordRun, wordOutput, wordKill, wordOpen, wordRead, wordWrite, wordShut, wordLeave} {
		refused(word, 4, struct{}{})
		refused(word, 6, struct{}{}) // it must be held first
	}
	dir := spawnFake(t, s, 5, 1)
	if again, err := give[held](s, wordHold, 5, holdOrder{Lease: time.Minute}); err != nil || len(again.Ended) > 0 {
		t.Errorf("the same order again: %+v, %v", again, err)
	}
	next, err := give[held](s, wordHold, 7, holdOrder{Lease: time.Minute})
	if err != nil || len(next.Ended) != 1 || next.Ended[0].Name != "replica-0" {
		t.Fatalf("the next holder finds %+v, %v", next, err)
	}
	for _, pid := range deploytest.PIDs(t, dir) {
		if deploytest.Alive(pid) {
			t.Errorf("process %d of the holder before still runs", pid)
		}
	}
	refused(wordStop, 5, stopOrder{Number: 1})
	refused(wordHold, 5, holdOrder{Lease: time.Minute})
	refused(wordHold, 6, holdOrder{Lease: time.Minute})
}

// TestLapse: an engine without its leader's lease ends by itself, soon; one with it goes on.
func TestLapse(t *testing.T) {
	s := serving(t)
	if _, err := give[held](s, wordHold, 1, holdOrder{Lease: leastLease}); err != nil {
		t.Fatal(err)
	}
	dir := spawnFake(t, s, 1, 1)
	every := time.NewTicker(leastLease / 10)
	for range 20 { // twice the lease
		<-every.C
		if _, err := give[json.RawMessage](s, wordRenew, 1, nil); err != nil {
			t.Skipf("this machine is too busy for a lease of %v: %v", leastLease, err)
		}
	}
	every.Stop()
	gone(t, dir, leastLease+lapseGrace+30*time.Second) // and what a busy machine takes
	if _, err := give[json.RawMessage](s, wordRenew, 1, nil); err == nil {
		t.Error("a lease that has lapsed is renewed")
	}
}

// TestRepeated: an order whose answer was lost is given again, and nothing is started twice.
func TestRepeated(t *testing.T) {
	s := serving(t)
	if _, err := give[held](s, wordHold, 1, holdOrder{Lease: time.Minute}); err != nil {
		t.Fatal(err)
	}
	o := runOrder{Number: 1, Argv: []string{"sh", "-c", "echo x >> " + t.TempDir() + "/ran; cat " + t.TempDir() + "/../*/ran"}}
	for range 3 {
		if _, err := give[json.RawMessage](s, wordRun, 1, o); err != nil {
			t.Fatal(err)
		}
	}
	var text strings.Builder
	for {
		out, err := give[output](s, wordOutput, 1, numbered{1})
		if err != nil {
			t.Fatal(err)
		}
		text.Write(out.Bytes)
		if out.Ended {
			break
		}
	}
	if text.String() != "x\n" {
		t.Errorf("a command that was ordered three times printed %q", text.String())
	}
}

// link is a leader's connection that can be cut.
type link struct {
	*bus.Conn
	cut  atomic.Bool
	late func(subject string) <-chan struct{} // an answer waits for it; nil: it does not
}

func (l *link) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if l.cut.Load() {
		return nil, bus.ErrAway
	}
	out, err := l.Conn.Request(ctx, subject, data)
	if l.late != nil {
		if wait := l.late(subject); wait != nil {
			<-wait
		}
	}
	if l.cut.Load() && l.late == nil {
		return nil, bus.ErrAway
	}
	return out, err
}

// TestNodeLost: a node that is not heard of is lost, its engine counts as ended and ends, and the node can
// be had again.
func TestNodeLost(t *testing.T) {
	s := startSite(t)
	s.start(t, "a", nil)
	l := &link{Conn: s.conn}
	n := s.lead(t, Leader{Conn: l, Lease: 2 * time.Second})
	rt := n.On("a", deploy.Process{}, nil)
	spec := deploytest.Spec(t, deploytest.Ready)
	d, err := rt.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	l.cut.Store(true)
	<-d.Done()
	if died, ok := errors.AsType[*deploy.DiedError](d.Err()); !ok || !strings.Contains(died.Status, "node a was not heard of") {
		t.Errorf("the deployment ended by %v", d.Err())
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	gone(t, spec.Dir, 40*time.Second)
	err = rt.(deploy.Commander).Command(t.Context(), "a", []string{"true"}, &strings.Builder{})
	if infra, ok := errors.AsType[*deploy.InfraError](err); !ok || infra.Hint() == "" {
		t.Errorf("a node that is away: %v", err)
	}
	l.cut.Store(false)
	again := deploytest.Start(t, rt, deploytest.Spec(t, deploytest.Ready))
	if deploytest.Get(t.Context(), again.Targets()[0]+"/health") != 200 {
		t.Error("the node does not serve again")
	}
}

// TestLateAnswer: what a node says after it was lost is refused, whatever it is.
func TestLateAnswer(t *testing.T) {
	s := startSite(t)
	s.start(t, "a", nil)
	asked, lost := make(chan struct{}), make(chan struct{})
	l := &link{Conn: s.conn, late: func(subject string) <-chan struct{} {
		if strings.HasSuffix(subject, wordPorts) {
			close(asked)
			return lost
		}
		return nil
	}}
	n := s.lead(t, Leader{Conn: l, Lease: time.Minute})
	h, err := n.node("a").held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() {
		_, _, err := h.send(context.Background(), wordPorts, portsOrder{N: 1})
		answer <- err
	}()
	<-asked
	h.lost(errors.New("the test has lost it"))
	close(lost)
	if err := <-answer; err == nil || !strings.Contains(err.Error(), "came late") {
		t.Errorf("a late answer: %v", err)
	}
}

// TestForeignAnswer: an answer of another token, or of another process of the agent, is refused.
func TestForeignAnswer(t *testing.T) {
	s := startSite(t)
	s.start(t, "a", nil)
	n := s.lead(t, Leader{Lease: time.Minute})
	h, err := n.node("a").held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		answer answer
		want   string
	}{
		{answer{Token: h.token() - 1, Process: h.process}, "answers with token"},
		{answer{Token: h.token(), Process: "another"}, "started anew"},
	} {
		x := &hold{o: h.o, name: h.name, id: h.id, lease: h.lease, process: h.process, ctx: h.ctx}
		x.o.Conn = saying{h.o.Conn, order.Encode(tt.answer)}
		if _, _, err := x.send(t.Context(), wordRenew, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.answer, err)
		}
	}
}

// saying answers everything with the same.
type saying struct {
	Bus
	text []byte
}

func (s saying) Request(context.Context, string, []byte) ([]byte, error) { return s.text, nil }

// TestStartedAnew: when an agent is started anew, what ran there counts as ended, and the node can be had again.
func TestStartedAnew(t *testing.T) {
	s := startSite(t)
	conn := s.join(t, "a", nil)
	t.Cleanup(conn.Close)
	serve := func() (end func()) {
		ctx, cancel := context.WithCancel(context.Background())
		var wait sync.WaitGroup
		wait.Go(func() { _ = Serve(ctx, Options{Conn: conn, Dir: t.TempDir(), Processes: true}) })
		end = sync.OnceFunc(func() { cancel(); wait.Wait() })
		t.Cleanup(end)
		return end
	}
	first := serve()
	n := s.lead(t, Leader{Lease: 20 * time.Second})
	rt := n.On("a", deploy.Process{}, nil)
	awaitServed(t, n)
	d, err := rt.Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
	if err != nil {
		t.Fatal(err)
	}
	first()
	serve()
	<-d.Done()
	if err := d.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	deploytest.Start(t, rt, deploytest.Spec(t, deploytest.Ready))
}

// awaitServed waits until a node answers.
func awaitServed(t *testing.T, n *Nodes) {
	t.Helper()
	for {
		_, err := n.node("a").held(t.Context())
		if err == nil {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// TestTwoLeaders: a node works for one leader at a time, and the other is told who has it.
func TestTwoLeaders(t *testing.T) {
	s := startSite(t)
	s.start(t, "a", nil)
	first, second := s.lead(t, Leader{Who: "of Ada's", Study: "first", Lease: time.Second}), s.lead(t, Leader{Lease: time.Second})
	true := func(n *Nodes) error {
		return n.On("a", deploy.Process{}, nil).(deploy.Commander).Command(t.Context(), "", []string{"true"}, &strings.Builder{})
	}
	if err := true(first); err != nil {
		t.Fatal(err)
	}
	if err := true(second); err == nil || !strings.Contains(err.Error(), "in use by a test of Ada's (study first)") {
		t.Errorf("the second leader: %v", err)
	}
	first.Close()
	if err := true(second); err != nil {
		t.Errorf("after the first one has left: %v", err)
	}
}

// TestNoEngines: an agent that starts no engines, and one that is not there, are told apart.
func TestNoEngines(t *testing.T) {
	s := startSite(t)
	t.Cleanup(s.join(t, "a", nil).Close)
	n := s.lead(t, Leader{})
	for name, want := range map[string]string{"a": "nobody answers there who starts engines", "b": "none of the 1 agents that are there and start engines"} {
		err := n.On(name, deploy.Process{}, nil).(deploy.Commander).Command(t.Context(), "", []string{"true"}, &strings.Builder{})
		if infra, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(err.Error(), want) || infra.Hint() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	s := &site{agents: []Agent{{Name: "b", Labels: map[string]string{"gpu": "h100"}}, {Name: "a", Labels: map[string]string{"gpu": "h100", "x": "y"}}, {Name: "c"}}}
	n := Lead(Leader{Agents: s.there})
	names, err := n.Names(t.Context(), map[string]string{"gpu": "h100"})
	if err != nil || strings.Join(names, " ") != "a b" {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := n.Names(t.Context(), map[string]string{"gpu": "b200"}); err == nil || !strings.Contains(err.Error(), "none of the 3 agents that start engines has the label gpu=b200") {
		t.Error(err)
	}
	s.agents[0].Name = "a"
	if _, err := n.Names(t.Context(), map[string]string{"gpu": "h100"}); err == nil || !strings.Contains(err.Error(), "two agents") {
		t.Error(err)
	}
}

// crew keeps what it is told to send.
type crew struct{ targets []string }

func (c *crew) Load(_ context.Context, job bench.CrewJob, _ func(result.Call)) (load.Stats, *result.Fleet, error) {
	c.targets = job.Spec.Targets
	return load.Stats{}, nil, nil
}

// TestCrew: the load is sent to the port that the engine has on its own machine, by the agent there.
func TestCrew(t *testing.T) {
	s := startSite(t)
	s.start(t, "a", nil)
	c, asked := &crew{}, ""
	n := s.lead(t, Leader{Crew: func(_ context.Context, id string) (bench.Crew, error) {
		asked = id
		return c, nil
	}})
	d := deploytest.Start(t, n.On("a", deploy.Process{}, nil), deploytest.Spec(t, deploytest.Ready))
	job := bench.CrewJob{Spec: bench.Spec{Targets: d.Targets()}}
	if _, _, err := n.Crew("a").Load(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	if asked != s.agents[0].ID || len(c.targets) != 1 || c.targets[0] == d.Targets()[0] || deploytest.Get(t.Context(), c.targets[0]+"/health") != 200 {
		t.Errorf("agent %q sends to %v, here it is %v", asked, c.targets, d.Targets())
	}
	if job.Spec.Targets[0] != d.Targets()[0] {
		t.Error("the run's own targets were changed")
	}
	job.Spec.Targets = []string{"http://127.0.0.1:1"}
	if _, _, err := n.Crew("a").Load(t.Context(), job, nil); err == nil || !strings.Contains(err.Error(), "leads to no engine") {
		t.Errorf("a target that is none of the node's: %v", err)
	}
}
