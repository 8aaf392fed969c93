package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/workload"
)

// localCrew are agents in this process. It gives calls on late and in another order than they ended.
type localCrew struct {
	agents int
	lead   time.Duration // from ready to the start; 0: each starts when its first requests are built
	lose   int           // number of the agent that is lost
	after  int           // after so many of its calls; 0: none is lost
	ready  func(*result.Fleet)

	mu   sync.Mutex
	jobs []ShardJob
}

func (k *localCrew) Load(ctx context.Context, job CrewJob, emit func(result.Call)) (load.Stats, *result.Fleet, error) {
	n := job.Agents(k.agents)
	shards, fleet := make([]*Shard, n), &result.Fleet{Epoch: 7}
	for i := range n {
		j, err := carried(job.Shard(i, n))
		if err != nil {
			return load.Stats{}, nil, err
		}
		k.jobs = append(k.jobs, j)
		if shards[i], err = OpenShard(ctx, j); err != nil {
			return load.Stats{}, nil, err
		}
		defer shards[i].Close()
		if err := shards[i].Open(ctx); err != nil {
			return load.Stats{}, nil, err
		}
		a := shards[i].Facts()
		a.Name, a.Offset = fmt.Sprintf("local-%d", i+1), &result.ClockOffset{}
		fleet.Agents = append(fleet.Agents, a)
	}
	if err := job.Ready(fleet); err != nil {
		return load.Stats{}, nil, err
	}
	if k.ready != nil {
		k.ready(fleet)
	}
	var start time.Time
	if k.lead > 0 {
		start = time.Now().Add(k.lead)
	}
	return k.send(ctx, job, shards, start, fleet, emit)
}

// carried is a job as it comes out of a message.
func carried(j ShardJob) (out ShardJob, err error) {
	b, err := json.Marshal(j)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	return out, err
}

func (k *localCrew) send(ctx context.Context, job CrewJob, shards []*Shard, start time.Time, fleet *result.Fleet, emit func(result.Call)) (load.Stats, *result.Fleet, error) {
	all := load.Stats{Start: start}
	job.Begun(cmp.Or(start, time.Now()))
	done := make(chan struct{})
	var told, agents sync.WaitGroup
	told.Go(func() {
		select {
		case <-job.Enough:
			for _, s := range shards {
				s.Enough()
			}
		case <-done:
		}
	})
	errs := make([]error, len(shards))
	for i, s := range shards {
		agents.Go(func() {
			stats, err := k.agent(ctx, s, i+1, start, job.Progress, fleet, emit)
			k.mu.Lock()
			defer k.mu.Unlock()
			errs[i] = err
			all.Start = cmp.Or(all.Start, stats.Start)
			all.Partial = all.Partial || stats.Partial
			all.Client.StopNote = stats.Client.StopNote
		})
	}
	agents.Wait()
	close(done)
	told.Wait()
	return all, fleet, errors.Join(errs...)
}

// agent sends a shard and brings its calls, newest first, in small batches; or is lost, and with it what it holds.
func (k *localCrew) agent(ctx context.Context, s *Shard, number int, start time.Time, p *load.Progress, fleet *result.Fleet, emit func(result.Call)) (load.Stats, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var batch []result.Call
	brought := 0
	bring := func() {
		for _, c := range slices.Backward(batch) {
			if k.lose == number && brought == k.after {
				cancel()
				break
			}
			brought++
			emit(c)
		}
		batch = batch[:0]
	}
	stats, err := s.Run(ctx, start, p, func(c result.Call) {
		if batch = append(batch, c); len(batch) == 3 {
			bring()
		}
	})
	bring()
	a := &fleet.Agents[number-1]
	if a.Sent = stats.Sent; k.lose == number {
		a.Lost, a.LostAt = "no word from it for 5 s", stats.Client.Wall
		return load.Stats{Start: stats.Start}, nil
	}
	a.Client = &stats.Client
	return stats, err
}

// planned is of a call what does not depend on a server's speed.
type planned struct {
	Index, Session, Turn, WantIn, Want int
	Due                                time.Duration
	Model                              string
}

// plan are the calls of an outcome, by index. Later turns are due when the one before has ended, and
// requests of some closed loops when there is a place.
func plan(t *testing.T, out *Outcome) []planned {
	t.Helper()
	var all []planned
	for c, err := range out.All() {
		if err != nil {
			t.Fatal(err)
		}
		if c.Class != result.OK {
			t.Errorf("call %d: %s %s", c.Index, c.Class, c.Error)
		}
		p := planned{c.Index, c.Session, c.Turn, c.WantIn, c.Want, c.Due, c.Model}
		if c.Turn > 0 || out.Header.Closed {
			p.Due = 0
		}
		all = append(all, p)
	}
	return all
}

// sent makes a run and returns what was planned and what the server was asked.
func sent(t *testing.T, l *listener, spec Spec, crew Crew) (out *Outcome, calls []planned, asked []string) {
	t.Helper()
	out, err := Runner{Spec: spec, Crew: crew}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	prompts, tokens := l.take()
	for i, p := range prompts {
		asked = append(asked, fmt.Sprint(tokens[i], " ", p))
	}
	slices.Sort(asked)
	return out, plan(t, out), asked
}

// crewWorkloads are loads of every kind.
func crewWorkloads(t *testing.T) map[string]workload.Spec {
	path := func(name string) string {
		p := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(p, []byte(files[name]), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	random := workload.Spec{NumPrompts: 23, RandomInputLen: 8, RandomOutputLen: 2, RandomRangeRatio: 0.5, Seed: 3}
	with := func(change func(*workload.Spec)) workload.Spec {
		s := random
		change(&s)
		return s
	}
	return map[string]workload.Spec{
		"burst":               random,
		"poisson":             with(func(s *workload.Spec) { s.Rate = 300 }),
		"gamma under a limit": with(func(s *workload.Spec) { s.Rate, s.Arrival, s.Burstiness, s.MaxConcurrency = 300, "gamma", 0.4, 5 }),
		"closed loop":         with(func(s *workload.Spec) { s.MaxConcurrency = 8 }),
		"steps":               with(func(s *workload.Spec) { s.NumPrompts, s.Steps = 0, "100:100ms,0:20ms,200:50ms" }),
		"for a time":          with(func(s *workload.Spec) { s.NumPrompts, s.Rate, s.Duration = 0, 200, "100ms" }),
		"adapters":            with(func(s *workload.Spec) { s.LoraModules, s.LoraAssignment = []string{"x", "y"}, "random" }),
		"trace":               {Dataset: "azure", Path: path("azure"), Speed: 2},
		"rows of a file":      {Dataset: "jsonl", Path: path("jsonl"), NumPrompts: 9, Nonce: "n"},
		"prefixes":            {Dataset: "prefix_repetition", NumPrompts: 12, PrefixRepetitionNumPrefixes: 3, PrefixRepetitionPrefixLen: 9, PrefixRepetitionSuffixLen: 4, PrefixRepetitionOutputLen: 3},
		"conversations":       {Dataset: "conversations", NumPrompts: 9, Turns: "1-4", TurnInputLen: "5", TurnOutputLen: "4", ThinkTime: "constant:2ms", Rate: 200},
		"conversations, closed": {Dataset: "conversations", NumPrompts: 9, Turns: "1-3", TurnInputLen: "5", TurnOutputLen: "4",
			MaxConcurrency: 4, History: "answers"},
		"agents":         {Dataset: "agents", Path: path("agents"), NumPrompts: 9, Rate: 200},
		"agents, closed": {Dataset: "agents", Path: path("agents"), NumPrompts: 9, MaxConcurrency: 4},
	}
}

// TestCrewSendsTheSame: a server is asked the same by one to seven agents as by one client, and
// each call is planned the same.
func TestCrewSendsTheSame(t *testing.T) {
	for name, w := range crewWorkloads(t) {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			spec := l.spec(w)
			if w.Dataset == "conversations" {
				spec.Backend = "openai-chat"
			}
			_, calls, asked := sent(t, l, spec, nil)
			for n := 1; n <= 7; n++ {
				out, again, askedAgain := sent(t, l, spec, &localCrew{agents: n})
				if d := gocmp.Diff(calls, again); d != "" {
					t.Errorf("%d agents planned: -one client +agents\n%s", n, d)
				}
				if d := gocmp.Diff(asked, askedAgain); d != "" {
					t.Errorf("%d agents asked: -one client +agents\n%s", n, d)
				}
				checkFleet(t, out, n)
			}
		})
	}
}

// checkFleet checks that each call is of the agent whose shard has it, and what the header says.
func checkFleet(t *testing.T, out *Outcome, n int) {
	t.Helper()
	f := out.Header.Fleet
	if f == nil || len(f.Agents) > n || len(out.Summary.Agents) != len(f.Agents) {
		t.Fatalf("%d agents: fleet %+v, figures %+v", n, f, out.Summary.Agents)
	}
	calls, limits, requests := make([]int, len(f.Agents)), 0, 0
	for _, c := range out.Calls {
		at := c.Index
		if c.Session > 0 {
			at = c.Session - 1
		}
		if want := 1 + at%len(f.Agents); c.Agent != want {
			t.Errorf("call %d of session %d is agent %d's, want %d's", c.Index, c.Session, c.Agent, want)
		}
		calls[c.Agent-1]++
	}
	for i, a := range f.Agents {
		if a.Requests != calls[i] || out.Summary.Agents[i].Calls != calls[i] || a.Shard != i || a.Of != len(f.Agents) || a.Client == nil || a.Client.Partial {
			t.Errorf("agent %d of %d made %d calls: %+v, %+v", i+1, len(f.Agents), calls[i], a, out.Summary.Agents[i])
		}
		limits, requests = limits+a.Limit, requests+a.Requests
	}
	if limits != out.Header.Limit || requests != len(out.Calls) || out.Summary.Partial || out.Header.SelfCheck != nil {
		t.Errorf("%d agents with %d places and %d requests for %d calls under a limit of %d: %s", n, limits, requests, len(out.Calls), out.Header.Limit, out.Summary.Verdict.Text())
	}
	if out.Client.Sockets < 1 || out.Client.Wall <= 0 || out.Client.Procs < 1 {
		t.Errorf("the client as a whole: %+v", out.Client)
	}
}

// TestCrewForTime: a closed loop that time bounds has each request once, all places in use, and ends.
func TestCrewForTime(t *testing.T) {
	for name, w := range map[string]workload.Spec{
		"requests":      {Duration: "150ms", MaxConcurrency: 5, RandomInputLen: 8, RandomOutputLen: 2},
		"conversations": {Dataset: "conversations", Duration: "150ms", MaxConcurrency: 5, Turns: "3", TurnInputLen: "5", TurnOutputLen: "4"},
	} {
		l := listen(t)
		spec := l.spec(w)
		spec.Backend = "openai-chat"
		out, calls, asked := sent(t, l, spec, &localCrew{agents: 3})
		if len(calls) < 5 || len(calls) != len(asked) || out.Summary.Partial || out.Header.Requests != 0 {
			t.Errorf("%s: %d calls, %d requests at the server: %s", name, len(calls), len(asked), out.Summary.Verdict.Text())
		}
		seen, agents := map[int]bool{}, map[int]bool{}
		for _, c := range out.Calls {
			if seen[c.Index] {
				t.Errorf("%s: call %d came twice", name, c.Index)
			}
			seen[c.Index], agents[c.Agent] = true, true
		}
		if len(agents) != 3 || out.Header.Fleet.Limits() != "2 + 2 + 1" {
			t.Errorf("%s: agents %v with %s places", name, agents, out.Header.Fleet.Limits())
		}
		if !slices.ContainsFunc(out.Notes, func(n string) bool {
			return strings.Contains(n, "the 5 places of the closed loop are split into 2 + 2 + 1")
		}) {
			t.Errorf("%s: notes %q", name, out.Notes)
		}
	}
}

// TestCrewDirectory: the header says who sends before anything is sent, and the directory has the
// run as its outcome does.
func TestCrewDirectory(t *testing.T) {
	l := listen(t)
	dir := filepath.Join(t.TempDir(), "r")
	w := workload.Spec{NumPrompts: 20, Rate: 500, MaxConcurrency: 4, RandomInputLen: 8, RandomOutputLen: 2}
	crew := &localCrew{agents: 3, lead: 3 * time.Second}
	crew.ready = func(f *result.Fleet) {
		if prompts, _ := l.take(); len(prompts) != 2 {
			t.Errorf("%d requests before the start, besides the 2 of the warm-up", len(prompts))
		}
		h, err := rundir.ReadHeader(dir)
		if err != nil || h.Fleet == nil || len(h.Fleet.Agents) != 3 || h.Fleet.Agents[1].Name != "local-2" || h.Fleet.Agents[1].Client != nil {
			t.Errorf("%v: the header says %+v", err, h.Fleet)
		}
	}
	spec := l.spec(w)
	spec.Warmups = 2
	progress := &load.Progress{}
	out, err := Runner{Spec: spec, Crew: crew, Dir: dir, Progress: progress, APIKey: "sk-crew-secret", SelfCheck: &result.SelfCheck{}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkFleet(t, out, 3)
	if progress.Sent.Load() != 20 || progress.Done.Load() != 20 || progress.Planned.Load() != 20 || progress.InFlight.Load() != 0 || !progress.Running.Load() {
		t.Errorf("the live view saw %d sent and %d done", progress.Sent.Load(), progress.Done.Load())
	}
	if n, _ := progress.TTFT.Total(); n != 20 {
		t.Errorf("the live view saw %d first tokens", n)
	}
	for _, c := range out.Calls {
		if c.Sent < c.Due || c.Due != 0 && c.Sent == 0 {
			t.Errorf("call %d was due %v and sent %v after the common start", c.Index, c.Due, c.Sent)
		}
	}
	r, err := rundir.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Resummarise()
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(out.Summary, s); d != "" {
		t.Errorf("-made +read\n%s", d)
	}
	if d := gocmp.Diff(out.Header.Fleet, r.Header.Fleet); d != "" {
		t.Errorf("-made +read\n%s", d)
	}
	if !slices.ContainsFunc(out.Notes, func(n string) bool {
		return n == "3 agents sent the load, each every 3rd request: local-1, local-2 and local-3; the limit of 4 in flight is split into 2 + 1 + 1, which is not exactly one limit: an agent may hold a request back while another one has a free place"
	}) {
		t.Errorf("notes %q", out.Notes)
	}
	if crew.jobs[0].APIKey != "sk-crew-secret" {
		t.Error("the agents did not get the key")
	}
	b, err := os.ReadFile(filepath.Join(dir, "header.json"))
	if err != nil || strings.Contains(string(b), "sk-crew-secret") {
		t.Errorf("%v: the key is in the header", err)
	}
}

// TestCrewLost: a run whose agent was lost is partial and has the others' calls; nobody takes over
// what it did not send.
func TestCrewLost(t *testing.T) {
	l := listen(t)
	dir := filepath.Join(t.TempDir(), "r")
	w := workload.Spec{NumPrompts: 60, MaxConcurrency: 6, RandomInputLen: 8, RandomOutputLen: 2}
	out, err := Runner{Spec: l.spec(w), Crew: &localCrew{agents: 3, lose: 2, after: 5}, Dir: dir}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	calls := map[int]int{}
	for _, c := range out.Calls {
		calls[c.Agent]++
	}
	if d := gocmp.Diff(map[int]int{1: 20, 2: 5, 3: 20}, calls); d != "" {
		t.Errorf("calls by agent: %s", d)
	}
	if prompts, _ := l.take(); len(slices.Compact(slices.Sorted(slices.Values(prompts)))) != len(prompts) {
		t.Error("what the lost agent had to send was sent twice")
	}
	if !out.Summary.Partial || !out.Client.Partial || out.Client.StopNote != "agent local-2 was lost: no word from it for 5 s" {
		t.Errorf("partial %v: %q", out.Summary.Partial, out.Client.StopNote)
	}
	var p Point
	p.Judge(out, nil, 0.01)
	if !p.Partial || p.Usable() {
		t.Error("the run enters conclusions")
	}
	if r, err := rundir.OpenRun(dir); err != nil || !r.Partial || len(r.Header.Fleet.Lost()) != 1 {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestCrewInterrupted: an interrupt stops all agents and keeps what was measured.
func TestCrewInterrupted(t *testing.T) {
	l := listen(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("that is enough")
	crew := &localCrew{agents: 2, lead: time.Hour, ready: func(*result.Fleet) { cancel(stop) }}
	out, err := Runner{Spec: l.spec(workload.Spec{NumPrompts: 9, RandomInputLen: 8, RandomOutputLen: 2}), Crew: crew}.Run(ctx)
	if !errors.Is(err, stop) || out == nil || !out.Summary.Partial || out.Client.StopNote != "that is enough" {
		t.Fatalf("%v, %+v", err, out)
	}
	if prompts, _ := l.take(); len(prompts) > 0 {
		t.Errorf("%d requests were sent", len(prompts))
	}
}

// TestCrewHeaderLost: a header that cannot be written at the end costs the directory and not the figures.
func TestCrewHeaderLost(t *testing.T) {
	l := listen(t)
	dir := filepath.Join(t.TempDir(), "r")
	crew := &localCrew{agents: 2, ready: func(*result.Fleet) {
		if err := os.Rename(dir+".tmp", dir+".gone"); err != nil {
			t.Error(err)
		}
	}}
	out, err := Runner{Spec: l.spec(workload.Spec{NumPrompts: 9, RandomInputLen: 8, RandomOutputLen: 2}), Crew: crew, Dir: dir}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the run directory is incomplete") {
		t.Errorf("error %v", err)
	}
	if out == nil || out.Summary.Figures["completed"] != 9 || out.Dir != dir+".tmp" {
		t.Errorf("%+v", out)
	}
}

// failingCrew cannot load.
type failingCrew struct{ fleet *result.Fleet }

func (k failingCrew) Load(_ context.Context, job CrewJob, _ func(result.Call)) (load.Stats, *result.Fleet, error) {
	if k.fleet != nil {
		return load.Stats{}, &result.Fleet{}, nil
	}
	return load.Stats{}, nil, errors.New("agent b has no room: too few open files")
}

func TestCrewFails(t *testing.T) {
	l := listen(t)
	for want, crew := range map[string]Crew{
		"agent b has no room":                failingCrew{},
		"the fleet does not say who sent it": failingCrew{&result.Fleet{}},
	} {
		dir := filepath.Join(t.TempDir(), "r")
		out, err := Runner{Spec: l.spec(workload.Spec{NumPrompts: 1}), Crew: crew, Dir: dir}.Run(t.Context())
		if out != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v", out, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("a run that was not made has a finished directory")
		}
	}
}

// TestCrewTargets: agents do not all begin with the same replica, and calls name the one that had them.
func TestCrewTargets(t *testing.T) {
	a, b := listen(t), listen(t)
	spec := a.spec(workload.Spec{NumPrompts: 6, RandomInputLen: 8, RandomOutputLen: 2})
	spec.Targets = append(spec.Targets, b.url)
	out, err := Runner{Spec: spec, Crew: &localCrew{agents: 6}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, _ := a.take()
	second, _ := b.take()
	if len(first) != 3 || len(second) != 3 {
		t.Errorf("%d and %d of 6 requests for two replicas", len(first), len(second))
	}
	w, err := workload.Open(spec.Workload)
	if err != nil {
		t.Fatal(err)
	}
	var prompts []string
	for r := range w.All() {
		prompts = append(prompts, r.Prompt)
	}
	for _, c := range out.Calls {
		if got := [][]string{first, second}[c.Target]; !slices.Contains(got, prompts[c.Index]) {
			t.Errorf("call %d says target %d, which did not have it", c.Index, c.Target)
		}
	}
}

// TestCrewCountsText: agents count the output of a server that does not, and send no text on that is
// not to be kept; what the server itself has to count waits for the end of the load.
func TestCrewCountsText(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/tokenize":
			fmt.Fprint(w, `{"count":3,"tokens":[1,2,3]}`)
		case "/v1/completions":
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"abc d\"}]}\n\ndata: [DONE]\n\n")
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	rows := write(t, "rows.jsonl", `{"prompt":"how are you?","output_tokens":9}`)
	for _, tt := range []struct {
		tokenizer string
		keep      bool
		want      int
	}{{letters, false, 5}, {letters, true, 5}, {workload.ServerTokenizer, false, 3}, {workload.ServerTokenizer, true, 3}} {
		spec := Spec{Targets: []string{srv.URL}, Backend: "openai", Model: "m", KeepText: tt.keep, Workload: workload.Spec{
			Dataset: "jsonl", Path: rows, NumPrompts: 4, Tokenizer: tt.tokenizer,
		}.Defaults()}
		out, err := Runner{Spec: spec, Crew: &localCrew{agents: 2}}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range out.Calls {
			if n, from := c.Output(); n != tt.want || from != result.FromText || (c.Text != "") != tt.keep || len(out.Calls) != 4 {
				t.Errorf("%s: call %d of %d: %d tokens by %s, text %q", tt.tokenizer, c.Index, len(out.Calls), n, from, c.Text)
			}
		}
	}
}

// TestOpenShardRefuses: what an agent cannot send as it should is refused before anything is sent.
func TestOpenShardRefuses(t *testing.T) {
	spec := Spec{Targets: []string{"http://127.0.0.1:1"}, Backend: "openai", Model: "m", Workload: workload.Spec{NumPrompts: 4, RandomInputLen: 8, RandomOutputLen: 2}.Defaults()}
	with := func(change func(*ShardJob)) ShardJob {
		j := ShardJob{Spec: spec, Of: 2}
		change(&j)
		return j
	}
	for want, j := range map[string]ShardJob{
		"there is no shard 2 of 2":            with(func(j *ShardJob) { j.Index = 2 }),
		"there is no shard 0 of 0":            with(func(j *ShardJob) { j.Of = 0 }),
		"no part for shard 4 of 5":            with(func(j *ShardJob) { j.Index, j.Of = 4, 5 }),
		"no part for shard 0 of 2":            with(func(j *ShardJob) { j.Spec.Workload.MaxConcurrency = 1 }),
		"is missing: the name under":          with(func(j *ShardJob) { j.Spec.Model = "" }),
		"4 requests of 32 input and 8 output": with(func(j *ShardJob) { j.Totals = workload.Totals{Requests: 5} }),
		"nothing is downloaded":               with(func(j *ShardJob) { j.Spec.Workload.Tokenizer = "nowhere.json" }),
		"but the limit is":                    with(func(j *ShardJob) { j.Spec.Workload.NumPrompts = 1 << 23 }),
	} {
		s, err := OpenShard(t.Context(), j)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := OpenShard(t.Context(), with(func(j *ShardJob) { j.Files = map[string]string{workload.FileTokenizer: "x"} })); err != nil {
		t.Errorf("a place for a file that the spec has not: %v", err)
	}
}

// TestCapacityOfShard: an agent needs connections for its part alone.
func TestCapacityOfShard(t *testing.T) {
	for name, tt := range map[string]struct {
		spec workload.Spec
		want [3]int
	}{
		"burst":       {workload.Spec{NumPrompts: 300}, [3]int{100, 100, 100}},
		"limited":     {workload.Spec{NumPrompts: 300, MaxConcurrency: 64}, [3]int{22, 21, 21}},
		"closed loop": {workload.Spec{Duration: "1m", MaxConcurrency: 64}, [3]int{22, 21, 21}},
		"open loop":   {workload.Spec{NumPrompts: 300, Rate: 1000}, [3]int{1, 1, 1}},
	} {
		w, err := workload.Open(tt.spec)
		if err != nil {
			t.Fatal(name, err)
		}
		for i, want := range tt.want {
			if got := (share{w, i, 3}); got.atOnce() != want || got.first() != want {
				t.Errorf("%s: shard %d needs %d at once and %d at first, want %d", name, i, got.atOnce(), got.first(), want)
			}
		}
	}
}

// TestOrdered: calls of agents that come in late are looked at in the order in which they ended.
func TestOrdered(t *testing.T) {
	var got []time.Duration
	o := (Runner{Crew: failingCrew{}}).inOrder(func(c *result.Call) { got = append(got, c.End) })
	for _, ms := range []int{300, 100, 200, 900, 1250, 700, 1150, 2000, 1500, 1400} {
		o.add(&result.Call{End: time.Duration(ms) * time.Millisecond})
	}
	if len(got) != 5 || !slices.IsSorted(got) {
		t.Errorf("given on %v", got)
	}
	if o.finish(); len(got) != 10 || !slices.IsSorted(got) {
		t.Errorf("in the end %v", got)
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 112: "112th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
