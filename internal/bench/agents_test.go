package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// agentForm is a form of recordings: two sessions, of which the first one starts two agents and waits
// for both. idle are the idle times of its requests, whose prompts begin alike by so many tokens, the
// second and the fourth, and the first and the last.
type agentForm struct {
	text        string
	idle        []time.Duration
	agent, main int
}

// agentAfter is what the requests of the first session wait for.
var agentAfter = [][]int{nil, {0}, {0}, {1}, {2, 3}}

var agentForms = map[string]agentForm{
	"perflab":  {files["agents"], []time.Duration{0, 2 * time.Millisecond, 0, 0, time.Millisecond}, 6, 9},
	"TraceLab": {tracelabFile, []time.Duration{0, 0, 2 * time.Millisecond, 0, time.Millisecond}, 128, 64},
}

const tracelabFile = `{"session_id":"a","input_tokens_total":160,"prefix_tokens":90,"output_tokens":2,"timing_events":[{"event_type":"user_message","timestamp":"2026-06-01T05:00:00Z"},{"event_type":"text","timestamp":"2026-06-01T05:00:11Z"}],
 "tools":[{"tool_name":"Agent","emitted_at":"2026-06-01T05:00:10Z","result_at":"2026-06-01T05:00:31Z","tool_wall_latency_ms":21000}]}
{"session_id":"a","input_tokens_total":200,"prefix_tokens":100,"output_tokens":2,"timing_events":[{"event_type":"tool_result","timestamp":"2026-06-01T05:00:30.001Z"},{"event_type":"text","timestamp":"2026-06-01T05:00:32Z"}]}
{"session_id":"x","input_tokens_total":150,"prefix_tokens":64,"output_tokens":2,"timing_events":[{"event_type":"user_message","timestamp":"2026-06-01T05:00:11Z"},{"event_type":"text","timestamp":"2026-06-01T05:00:15Z"}]}
{"session_id":"x","input_tokens_total":170,"prefix_tokens":149,"output_tokens":2,"timing_events":[{"event_type":"tool_result","timestamp":"2026-06-01T05:00:15Z"},{"event_type":"text","timestamp":"2026-06-01T05:00:20Z"}]}
{"session_id":"y","input_tokens_total":90,"prefix_tokens":64,"output_tokens":2,"timing_events":[{"event_type":"user_message","timestamp":"2026-06-01T05:00:11.002Z"},{"event_type":"text","timestamp":"2026-06-01T05:00:30Z"}]}
{"session_id":"b","input_tokens_total":70,"prefix_tokens":0,"output_tokens":2,"timing_events":[{"event_type":"user_message","timestamp":"2026-06-01T06:00:00Z"},{"event_type":"text","timestamp":"2026-06-01T06:00:01Z"}]}
`

// eachForm runs a test for each form, with its file.
func eachForm(t *testing.T, test func(*testing.T, agentForm, string)) {
	for name, form := range agentForms {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "agents")
			if err := os.WriteFile(path, []byte(form.text), 0o600); err != nil {
				t.Fatal(err)
			}
			test(t, form, path)
		})
	}
}

func TestAgents(t *testing.T)              { eachForm(t, testAgents) }
func TestAgentsFromTheMiddle(t *testing.T) { eachForm(t, testAgentsFromTheMiddle) }

// testAgents: two servers get exactly the prompts of the recording, each session at one of them; each
// request is due when all that it waits for has ended and its idle time has passed; no more sessions
// are under way than the limit says, to the end of their last agent.
func testAgents(t *testing.T, form agentForm, path string) {
	l, other := listen(t), listen(t)
	spec := l.spec(workload.Spec{Dataset: "agents", Path: path, NumPrompts: 12, MaxConcurrency: 3, Seed: 5, DisableShuffle: true})
	spec.Targets = append(spec.Targets, other.url)
	out, err := Runner{Spec: spec}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := workload.Open(spec.Workload)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[int]result.Call{}
	for _, c := range out.Calls {
		calls[c.Index] = c
	}
	want := make([][]string, 2)
	prompts := map[int]string{} // of the first session
	for r := range w.All() {
		for more := true; more; r, _, more = w.Next(r, "") {
			c := calls[r.Index]
			want[c.Target] = append(want[c.Target], r.Prompt)
			if r.Session == 1 {
				prompts[r.Turn] = r.Prompt
			}
			if c.Session != r.Session || c.Turn != r.Turn || c.Target != calls[r.Index-r.Turn].Target {
				t.Errorf("request %d of session %d: %+v", r.Index, r.Session, c)
			}
			checkDue(t, form, calls, r.Index-r.Turn, c)
		}
	}
	if agent, main := alike(prompts[1], prompts[3]), alike(prompts[0], prompts[4]); agent != form.agent || main != form.main {
		t.Errorf("prompts begin with %d and %d tokens alike, want %d and %d", agent, main, form.agent, form.main)
	}
	for i, at := range []*listener{l, other} {
		got, _ := at.take()
		slices.Sort(got)
		slices.Sort(want[i])
		if d := gocmp.Diff(want[i], got); d != "" || len(got) == 0 {
			t.Errorf("server %d (-want +got):\n%s", i, d)
		}
	}
	if n := mostSessions(out.Calls); n != 3 {
		t.Errorf("%d sessions under way at once under a limit of 3", n)
	}
	if text := strings.Join(out.Notes, "\n"); !strings.Contains(text, "are of sessions, which hold their place until all of their agents are done") {
		t.Error(text)
	}
}

// alike is how many words two texts have in common from their start.
func alike(a, b string) (n int) {
	x, y := strings.Fields(a), strings.Fields(b)
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

// checkDue holds the due time of a call against the ends of those that it waited for; first is the
// index of its session's first.
func checkDue(t *testing.T, form agentForm, calls map[int]result.Call, first int, c result.Call) {
	t.Helper()
	if c.Turn == 0 {
		return
	}
	ready := time.Duration(0)
	for _, k := range agentAfter[c.Turn] {
		ready = max(ready, calls[first+k].End)
	}
	if want := ready + form.idle[c.Turn]; c.Due != want || c.Sent < want {
		t.Errorf("call %d was due at %v and sent at %v, want %v", c.Index, c.Due, c.Sent, want)
	}
}

// mostSessions is how many sessions were between their first request and their last end at once.
func mostSessions(calls []result.Call) (most int) {
	begin, end := map[int]time.Duration{}, map[int]time.Duration{}
	for _, c := range calls {
		if at, ok := begin[c.Session]; !ok || c.Sent < at {
			begin[c.Session] = c.Sent
		}
		end[c.Session] = max(end[c.Session], c.End)
	}
	for _, at := range begin {
		n := 0
		for s := range begin {
			if begin[s] <= at && at < end[s] {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// testAgentsFromTheMiddle: each server first gets what the sessions that begin with it would have sent
// before, and then these sessions from there on; so do the servers of one to three agents of a fleet.
func testAgentsFromTheMiddle(t *testing.T, _ agentForm, path string) {
	for agents := range 4 {
		servers := []*listener{listen(t), listen(t), listen(t)}
		spec := servers[0].spec(workload.Spec{Dataset: "agents", Path: path, NumPrompts: 9, MaxConcurrency: 5, StartRatio: "0.6", Seed: 5, DisableShuffle: true})
		spec.Targets = nil
		for _, l := range servers {
			spec.Targets = append(spec.Targets, l.url)
		}
		var crew Crew
		if agents > 0 {
			crew = &localCrew{agents: agents}
		}
		out, err := Runner{Spec: spec, Crew: crew}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w, err := workload.Open(spec.Workload)
		if err != nil {
			t.Fatal(err)
		}
		want := make([][]string, len(servers)) // of each server, what fills its cache first
		fills := 0
		for r := range w.Fills() {
			for more := true; more; r, _, more = w.NextFill(r, "") {
				want[(r.Session-1)%len(servers)] = append(want[(r.Session-1)%len(servers)], r.Prompt)
				fills++
			}
		}
		for i, l := range servers {
			got, tokens := l.take()
			n := len(want[i])
			if n == 0 || len(got) < n {
				t.Fatalf("%d agents: server %d was asked %d times, %d of them to fill its cache", agents, i, len(got), n)
			}
			slices.Sort(got[:n])
			slices.Sort(want[i])
			if d := gocmp.Diff(want[i], got[:n]); d != "" || slices.Max(tokens[:n]) != 1 || n < len(got) && slices.Min(tokens[n:]) != 2 {
				t.Errorf("%d agents: server %d (-want +got):\n%s", agents, i, d)
			}
		}
		for _, c := range out.Calls {
			middle := c.Session <= 5 && c.Session%2 == 1 // of two sessions in turn, the one with five requests
			if middle && c.Turn < 3 || c.Session <= 5 && c.Target != (c.Session-1)%len(servers) || !c.OK() {
				t.Errorf("%d agents: %+v", agents, c)
			}
		}
		if len(out.Calls) != w.Len() || fills != 9 || out.Summary.Partial {
			t.Errorf("%d agents: %d calls of %d, %d fill caches", agents, len(out.Calls), w.Len(), fills)
		}
		if text := strings.Join(out.Notes, "\n"); !strings.Contains(text, "before the run 9 requests filled the prefix cache for 3 sessions that begin in the middle") {
			t.Error(text)
		}
	}
}

// TestAgentsForTime: sessions come as long as there is time, those of a later round with prompts of
// their own.
func TestAgentsForTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agents")
	if err := os.WriteFile(path, []byte(files["agents"]), 0o600); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	spec := l.spec(workload.Spec{Dataset: "agents", Path: path, Duration: "200ms", MaxConcurrency: 3, Seed: 5})
	out, err := Runner{Spec: spec}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	prompts, _ := l.take()
	slices.Sort(prompts)
	if n := len(prompts); n < 10 || len(slices.Compact(prompts)) != n || n != len(out.Calls) || out.Summary.Partial {
		t.Errorf("%d requests, %d calls, %s", n, len(out.Calls), out.Summary.Verdict.Text())
	}
}

// TestSessionHeader: all requests of a session have the same value, which no other session has, those
// that fill its cache too, and warm-ups none.
func TestSessionHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agents")
	if err := os.WriteFile(path, []byte(files["agents"]), 0o600); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	spec := l.spec(workload.Spec{Dataset: "agents", Path: path, NumPrompts: 4, MaxConcurrency: 2, StartRatio: "0.6", Seed: 5, SessionHeader: "X-Session-ID"})
	spec.Warmups = 1
	if _, err := (Runner{Spec: spec}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := workload.Open(spec.Workload)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{} // by prompt
	keep := func(r workload.Request) { want[r.Prompt] = fmt.Sprint("perflab-5-", r.Session) }
	for r := range w.All() {
		for more := true; more; r, _, more = w.Next(r, "") {
			keep(r)
		}
	}
	for r := range w.Fills() {
		for more := true; more; r, _, more = w.NextFill(r, "") {
			keep(r)
		}
	}
	for i, p := range l.prompts {
		if l.routes[i] != want[p] {
			t.Errorf("request %d has %q, want %q", i, l.routes[i], want[p])
		}
	}
	if n := len(l.prompts); n != len(want)+1 {
		t.Errorf("%d requests for %d prompts", n, len(want))
	}
	spec.Headers = map[string]string{"x-session-id": "1"}
	if err := spec.Validate(); err == nil || !strings.Contains(err.Error(), "session_header: X-Session-ID is also a header of every request") {
		t.Error(err)
	}
}
