package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/fleet"
	"perflab/internal/fleet/agent"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
	"perflab/internal/workload"
)

// engine answers completions with so many tokens, one after another at a pace, and keeps the prompts.
type engine struct {
	*httptest.Server
	pace time.Duration

	mu      sync.Mutex
	prompts []string
}

func startEngine(t *testing.T, pace time.Duration) *engine {
	t.Helper()
	e := &engine{pace: pace}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
	})
	mux.HandleFunc("POST /v1/completions", e.complete)
	e.Server = httptest.NewServer(mux)
	t.Cleanup(e.Close)
	return e
}

func (e *engine) complete(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Prompt string `json:"prompt"`
		Most   int    `json:"max_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.prompts = append(e.prompts, body.Prompt)
	e.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	every := time.NewTicker(e.pace)
	defer every.Stop()
	for range body.Most {
		select {
		case <-r.Context().Done():
			return
		case <-every.C:
		}
		fmt.Fprint(w, `data: {"choices":[{"text":" a","index":0}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", body.Most)
}

func (e *engine) taken() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.prompts
	e.prompts = nil
	slices.Sort(out)
	return out
}

// site is a hub with agents, all in this process.
type site struct {
	hub    *fleet.Hub
	leader *fleet.Leader
	ends   []func() // of each agent
}

func startSite(t *testing.T, agents int, ahead func(i int) time.Duration) *site {
	t.Helper()
	hub, err := fleet.OpenHub(t.Context(), bus.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{hub: hub}
	for i := range agents {
		s.ends = append(s.ends, s.startAgent(t, fmt.Sprintf("a%d", i+1), ahead(i)))
	}
	t.Cleanup(func() {
		for _, end := range s.ends {
			end()
		}
		if s.leader != nil {
			s.leader.Close()
		}
		if err := hub.Close(); err != nil {
			t.Error(err)
		}
	})
	s.leader, err = fleet.Lead(t.Context(), hub.Conn(), fleet.Options{Who: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) startAgent(t *testing.T, name string, ahead time.Duration) (end func()) {
	t.Helper()
	dir := t.TempDir()
	return s.run(t, s.join(t, dir, name), dir, name, ahead)
}

// join makes a member.
func (s *site) join(t *testing.T, dir, name string) bus.Identity {
	t.Helper()
	url, err := s.hub.Invite(bus.Invite{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	me, err := bus.Join(t.Context(), url, dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return me
}

// run has a member take part, until it is ended.
func (s *site) run(t *testing.T, me bus.Identity, dir, name string, ahead time.Duration) (end func()) {
	t.Helper()
	conn, err := bus.Dial(t.Context(), me, bus.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		_ = agent.Run(ctx, agent.Options{Conn: conn, Dir: dir, Facts: order.Facts{Name: name, Streams: 5, Limit: "ports"}, Ahead: ahead})
	})
	return sync.OnceFunc(func() {
		cancel()
		wait.Wait()
		conn.Close()
	})
}

func spec(e *engine, w workload.Spec) bench.Spec {
	w.RandomInputLen, w.Seed, w.Nonce = 8, 5, "n"
	if w.RandomOutputLen == 0 {
		w.RandomOutputLen = 5
	}
	return bench.Spec{Targets: []string{e.URL}, Backend: "openai", Model: "m", Workload: w}
}

// TestLoad: agents send together what one machine would, whatever their clocks show, and the header says who.
func TestLoad(t *testing.T) {
	t.Parallel()
	e := startEngine(t, time.Millisecond)
	s := startSite(t, 3, func(i int) time.Duration { return time.Duration(i) * 1000 * time.Hour })
	w := workload.Spec{NumPrompts: 40, Rate: 200}
	alone, err := bench.Runner{Spec: spec(e, w)}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := e.taken()
	for n := 1; n <= 3; n++ {
		crew, err := s.leader.Crew(t.Context(), fleet.Choice{Count: n})
		if err != nil {
			t.Fatal(err)
		}
		out, err := bench.Runner{Spec: spec(e, w), Crew: crew, Dir: t.TempDir() + "/run"}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := e.taken(); !slices.Equal(got, want) {
			t.Errorf("%d agents sent %d prompts, and not the %d of one machine", n, len(got), len(want))
		}
		if out.Summary.Figures["completed"] != alone.Summary.Figures["completed"] || out.Client.Partial {
			t.Errorf("%d agents: %v calls, partial %v (%s)", n, out.Summary.Figures["completed"], out.Client.Partial, out.Client.StopNote)
		}
		f := out.Header.Fleet
		if f == nil || len(f.Agents) != n {
			t.Fatalf("%d agents: the header has %+v", n, f)
		}
		for i, a := range f.Agents {
			if a.Lost != "" || a.Shard != i || a.Of != n || a.Client == nil || a.Offset == nil {
				t.Errorf("agent %d of %d: %+v", i+1, n, a)
				continue
			}
			if off := a.Offset.Offset + a.Offset.Bound; a.Offset.Bound <= 0 || a.Offset.Bound > 50*time.Millisecond || off < time.Duration(i)*1000*time.Hour-time.Minute {
				t.Errorf("agent %d of %d: clock %+v", i+1, n, *a.Offset)
			}
		}
	}
}

// TestSized: a load that is too large for its agents is sent, and the user is told before.
func TestSized(t *testing.T) {
	t.Parallel()
	e := startEngine(t, time.Millisecond)
	s := startSite(t, 1, func(int) time.Duration { return 0 })
	said := ""
	l, err := fleet.Lead(t.Context(), s.hub.Conn(), fleet.Options{Say: func(text string) { said = text }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	crew, err := l.Crew(t.Context(), fleet.Choice{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (bench.Runner{Spec: spec(e, workload.Spec{NumPrompts: 9, MaxConcurrency: 7}), Crew: crew}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "needs about 2 agents like a1 (7 requests are in flight at once, of which a1 holds 5 (ports)): 1 is there"; !strings.Contains(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// TestStopped: a run that is interrupted has what was measured, and nothing is sent any more.
func TestStopped(t *testing.T) {
	t.Parallel()
	e := startEngine(t, 5*time.Millisecond)
	s := startSite(t, 2, func(int) time.Duration { return 0 })
	crew, err := s.leader.Crew(t.Context(), fleet.Choice{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, err := bench.Runner{Spec: spec(e, workload.Spec{NumPrompts: 10_000, Rate: 50}), Crew: crew, Phase: func(phase string) {
		if phase == bench.PhaseMeasuring {
			time.AfterFunc(2*time.Second, cancel)
		}
	}}.Run(ctx)
	if out == nil || !out.Client.Partial {
		t.Fatalf("%+v, %v", out, err)
	}
	if out.Summary.Figures["completed"] == 0 {
		t.Error("nothing of what was measured came back")
	}
	for _, a := range s.leader.Gather(t.Context(), nil) {
		if !a.Idle() {
			t.Errorf("agent %s is still %s", a.Facts.Name, a.Facts.Doing)
		}
	}
}

// TestRefusals: what cannot be sent is said by the agent that cannot, and agents are free afterwards.
func TestRefusals(t *testing.T) {
	t.Parallel()
	e := startEngine(t, time.Millisecond)
	s := startSite(t, 2, func(int) time.Duration { return 0 })
	crew, err := s.leader.Crew(t.Context(), fleet.Choice{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.leader.Crew(t.Context(), fleet.Choice{Count: 3}); err == nil || !strings.Contains(err.Error(), "2 of the 3 agents") {
		t.Errorf("three of two agents: %v", err)
	}
	second, err := fleet.Lead(t.Context(), s.hub.Conn(), fleet.Options{Who: "somebody"})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	other, err := second.Crew(t.Context(), fleet.Choice{Names: []string{"a2"}})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := (bench.Runner{Spec: spec(e, workload.Spec{NumPrompts: 60, Rate: 20}), Crew: crew}).Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	busy := func(all []fleet.Agent) bool {
		return slices.ContainsFunc(all, func(a fleet.Agent) bool { return a.Facts.Name == "a2" && !a.Idle() })
	}
	for !busy(s.leader.Gather(t.Context(), busy)) {
	}
	_, err = bench.Runner{Spec: spec(e, workload.Spec{NumPrompts: 3}), Crew: other}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a2") {
		t.Errorf("an agent that is at work: %v", err)
	}
	wait.Wait()
	for busy(s.leader.Gather(t.Context(), nil)) {
	}
	if _, err := (bench.Runner{Spec: spec(e, workload.Spec{NumPrompts: 4}), Crew: other}).Run(t.Context()); err != nil {
		t.Errorf("after the other load: %v", err)
	}
}

// TestLeaderGone: a load whose leader says nothing more ends by itself.
func TestLeaderGone(t *testing.T) {
	t.Parallel()
	e := startEngine(t, time.Millisecond)
	s := startSite(t, 1, func(int) time.Duration { return 0 })
	a := s.leader.Gather(t.Context(), func(all []fleet.Agent) bool { return len(all) == 1 })[0]
	job := order.Job{Load: order.Load{Epoch: 5}, ShardJob: bench.ShardJob{Spec: spec(e, workload.Spec{NumPrompts: 100_000, Rate: 20}), Of: 1}, Lease: 2 * time.Second}
	ready, err := order.Ask[order.Ready](t.Context(), s.hub.Conn(), bus.Do(a.ID, order.Prepare), job)
	if err != nil {
		t.Fatal(err)
	}
	times, err := order.Ask[order.Times](t.Context(), s.hub.Conn(), bus.Do(a.ID, order.Clock), struct{}{})
	if err != nil || times.Process != ready.Process {
		t.Fatal(times, err)
	}
	start := func(epoch uint64) error {
		_, err := order.Ask[struct{}](t.Context(), s.hub.Conn(), bus.Do(a.ID, order.Start), order.Instant{Load: order.Load{Epoch: epoch}, At: times.Answered + 200*time.Millisecond})
		return err
	}
	if err := start(4); err == nil || !strings.Contains(err.Error(), "load 4") {
		t.Errorf("an order of an old load: %v", err)
	}
	job.Epoch = 3
	if _, err := order.Ask[order.Ready](t.Context(), s.hub.Conn(), bus.Do(a.ID, order.Prepare), job); err == nil || !strings.Contains(err.Error(), "older than 5") {
		t.Errorf("a job of an old load: %v", err)
	}
	if err := start(5); err != nil {
		t.Fatal(err)
	}
	for { // the clock of the lease runs
		all := s.leader.Gather(t.Context(), nil)
		if len(all) == 1 && all[0].Idle() {
			break
		}
	}
	if n := len(e.taken()); n == 0 || n > 200 {
		t.Errorf("%d requests were sent without a leader", n)
	}
}

// TestAgentLost: an agent that is killed makes the run partial; what the others measured stays.
func TestAgentLost(t *testing.T) {
	t.Parallel()
	e := startEngine(t, time.Millisecond)
	s := startSite(t, 2, func(int) time.Duration { return 0 })
	crew, err := s.leader.Crew(t.Context(), fleet.Choice{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	out, err := bench.Runner{Spec: spec(e, workload.Spec{NumPrompts: 200, Rate: 50}), Crew: crew, Phase: func(p string) {
		if p == bench.PhaseMeasuring {
			time.AfterFunc(1500*time.Millisecond, s.ends[0])
		}
	}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !out.Client.Partial || !strings.Contains(out.Client.StopNote, "a1") {
		t.Errorf("partial %v: %s", out.Client.Partial, out.Client.StopNote)
	}
	by := map[int]int{}
	for _, a := range out.Summary.Agents {
		by[a.Agent] = a.Calls
	}
	if by[2] != 100 || by[1] >= 100 {
		t.Errorf("calls by agent: %v", by)
	}
}
