package fleet_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/fleet"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
	"perflab/internal/fleet/ship"
	"perflab/internal/generator"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/workload"
)

// These tests are not parallel: those that are measure instants, and a hub that starts keeps the disk busy.

// epoch is the load of these tests: calls 0, 2, 4 ... are of agent 1, the others of agent 2.
const epoch = 7

// sent is a call of the load.
func sent(index int) result.Call {
	at := time.Duration(index) * 10 * time.Millisecond
	return result.Call{
		Index: index, Agent: index%2 + 1, Due: at, Ready: at, Sent: at, Wrote: at, Status: 200, Want: 1, WantIn: 8, Finish: "length",
		Headers: at + 1e6, First: at + 1e6, Chunks: []result.Chunk{{At: at + 1e6, Tokens: 1}}, Reads: 1, End: at + 2e6, Done: at + 2e6, UsageAt: at + 2e6,
		Usage: &result.Usage{Prompt: 8, Completion: 1},
	}
}

// refusing is a leader that takes some batches, and is then gone.
type refusing struct{ takes uint64 }

func (l refusing) Send(_ context.Context, seq uint64, _ []byte) error {
	if seq <= l.takes {
		return nil
	}
	return errors.New("nobody is there")
}

// keptLoad leaves in an agent's directory what it keeps of a load: calls in batches of ten, of which the leader had so many.
func keptLoad(t *testing.T, dir string, me generator.Agent, header result.Header, calls []result.Call, taken uint64) {
	t.Helper()
	load := filepath.Join(dir, "loads", strconv.Itoa(epoch))
	s, err := ship.New(refusing{taken}, ship.Options{Dir: filepath.Join(load, "calls"), Calls: 10, Every: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		s.Add(&calls[i])
	}
	ctx, cancel := context.WithCancel(t.Context())
	for int(taken) > 0 && s.Sent().Calls < 10*int(taken) { // its goroutines go on by themselves
	}
	cancel()
	if _, err := s.Close(ctx); err == nil {
		t.Fatal("the leader took all")
	}
	done := order.Done{Sent: len(calls), Batches: uint64(len(calls)+9) / 10, Client: generator.Client{Partial: true, StopNote: "its leader was not heard of for the time of the lease"}}
	b, err := json.Marshal(map[string]any{
		"epoch": epoch, "who": "ada", "load": "40 requests", "agent": me, "header": header, "ended": time.Now().UTC(), "done": done,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(load, "load.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// free takes the first batch out of a spool's file.
func free(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "loads", strconv.Itoa(epoch), "calls", "batches-00000001")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const header, packed = 28, 20 // bytes, and where their number is
	if err := os.WriteFile(path, b[header+binary.LittleEndian.Uint32(b[packed:]):], 0o600); err != nil {
		t.Fatal(err)
	}
}

// left is a site whose two agents keep calls of a load of 80, of which the leader had the first ten of each.
type left struct {
	*site
	ids  []string
	dirs []string
	h    result.Header
}

func leaveLoad(t *testing.T, agents int, freed bool) *left {
	t.Helper()
	x := &left{site: startSite(t, 0, nil)}
	var all []generator.Agent
	var mine []bus.Identity
	for i := range 2 {
		dir := t.TempDir()
		me := x.join(t, dir, fmt.Sprintf("a%d", i+1))
		all = append(all, generator.Agent{ID: me.ID, Name: fmt.Sprintf("a%d", i+1), Shard: i, Of: 2, Requests: 40, Clock: result.ClockKernel})
		x.ids, x.dirs, mine = append(x.ids, me.ID), append(x.dirs, dir), append(mine, me)
	}
	spec, err := json.Marshal(bench.Spec{Targets: []string{"http://127.0.0.1:1"}, Model: "m", Workload: workload.Spec{NumPrompts: 80}})
	if err != nil {
		t.Fatal(err)
	}
	x.h = result.Header{Schema: rundir.Schema, Model: "m", Simulated: true, Requests: 80, Started: time.Now(), Spec: spec, Clock: result.ClockKernel, Lengths: result.LengthsExact}
	bare := slices.Clone(all)
	for i := range bare {
		bare[i].Clock = ""
	}
	header := x.h
	header.Fleet = &result.Fleet{Epoch: epoch, Agents: bare}
	for i := range 2 {
		var calls []result.Call
		for k := range 40 {
			calls = append(calls, sent(2*k+i))
		}
		keptLoad(t, x.dirs[i], all[i], header, calls, 1)
		if freed {
			free(t, x.dirs[i])
		}
		if i < agents {
			x.ends = append(x.ends, x.run(t, mine[i], x.dirs[i], all[i].Name, 0))
		}
	}
	x.h.Fleet = &result.Fleet{Epoch: epoch, Agents: all}
	x.leader.Gather(t.Context(), func(now []fleet.Agent) bool {
		return len(fleet.KeptBy(now)) == 1 && len(fleet.KeptBy(now)[0].Parts) == agents
	})
	return x
}

// begin leaves a run directory as a leader that was killed does: with these calls, the last of them cut.
func (x *left) begin(t *testing.T, dir string, cut bool, calls ...int) {
	t.Helper()
	w, err := rundir.Create(dir, x.h)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range calls {
		c := sent(i)
		w.Add(&c)
	}
	w.Abandon()
	if !cut {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir+".tmp", rundir.CallsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"i":5,"due`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// first are the calls that the leader had acknowledged: ten of each agent.
func first() []int {
	var out []int
	for i := range 20 {
		out = append(out, i)
	}
	return out
}

// indexes are the calls of a directory, in order.
func indexes(t *testing.T, dir string) []int {
	t.Helper()
	var out []int
	for c, err := range rundir.Calls(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Agent != c.Index%2+1 {
			t.Errorf("call %d is of agent %d", c.Index, c.Agent)
		}
		out = append(out, c.Index)
	}
	slices.Sort(out)
	return out
}

func upTo(n, from, step int) (out []int) {
	for i := from; i < n; i += step {
		out = append(out, i)
	}
	return out
}

// TestFetch: what agents keep comes into the leader's directory or a new one, each call once, and the header says of each
// agent what is not there.
func TestFetch(t *testing.T) {
	for name, tt := range map[string]struct {
		agents int // that are there; 3: both, and their disks gave back the room of what the leader had
		begin  func(t *testing.T, x *left, dir string) (with string)
		want   []int
		lacks  []string // of each agent, "" for nothing
	}{
		"completed": {2, func(t *testing.T, x *left, dir string) string { x.begin(t, dir, true, first()...); return "" }, upTo(80, 0, 1), []string{"", ""}},
		"some of it twice": {2, func(t *testing.T, x *left, dir string) string {
			x.begin(t, dir, false, append(first(), 20, 21, 22)...)
			return ""
		}, upTo(80, 0, 1), []string{"", ""}},
		"one away": {1, func(t *testing.T, x *left, dir string) string { x.begin(t, dir, false, first()...); return "" },
			append(upTo(20, 0, 1), upTo(80, 20, 2)...), []string{"", "its calls were not fetched: it was not there, or kept none"}},
		"new":                              {2, func(*testing.T, *left, string) string { return "" }, upTo(80, 0, 1), []string{"", ""}},
		"new, and some is with the leader": {3, func(*testing.T, *left, string) string { return "" }, upTo(80, 20, 1), []string{"1 batches of its calls are with the leader", "1 batches of its calls are with the leader"}},
		"with another": {2, func(t *testing.T, x *left, dir string) string {
			x.begin(t, dir+"-old", false, first()...)
			return dir + "-old"
		}, upTo(80, 0, 1), []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			x := leaveLoad(t, min(tt.agents, 2), tt.agents > 2)
			dir := filepath.Join(t.TempDir(), "run")
			with := tt.begin(t, x, dir)
			f, err := x.leader.Fetch(t.Context(), fleet.Fetch{Epoch: epoch, Dir: dir, With: with})
			if err != nil {
				t.Fatal(err)
			}
			got := indexes(t, dir)
			if tt.want != nil && !slices.Equal(got, tt.want) {
				t.Errorf("calls %v, want %v", got, tt.want)
			}
			if !slices.Equal(slices.Compact(slices.Clone(got)), got) || len(got) != f.Had+f.Came || f.Came == 0 || len(f.Still) > 0 {
				t.Errorf("%d calls: %+v", len(got), f)
			}
			h, err := rundir.ReadHeader(dir)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tt.lacks {
				if a := h.Fleet.Agents[i]; !strings.HasPrefix(a.Lost, want) || (want == "") != (a.Lost == "") {
					t.Errorf("agent %d: %q, want %q", i+1, a.Lost, want)
				}
			}
			r, err := rundir.OpenRun(dir)
			if err != nil {
				t.Fatal(err)
			}
			if r.Client == nil || !r.Client.Partial || !r.Header.Simulated || len(f.Out.Summary.Verdict.Checks) == 0 || f.Out.Summary.Figures["completed"] != float64(len(got)) {
				t.Errorf("client %+v, figures %v", r.Client, f.Out.Summary.Figures["completed"])
			}
			for i := range min(tt.agents, 2) {
				if _, err := os.Stat(filepath.Join(x.dirs[i], "loads", strconv.Itoa(epoch))); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("agent %d still keeps the load: %v", i+1, err)
				}
			}
		})
	}
}

// TestFetchRefused: what is not that load's is not touched, and the agents keep what they have.
func TestFetchRefused(t *testing.T) {
	x := leaveLoad(t, 2, false)
	dir := t.TempDir()
	other, done := filepath.Join(dir, "other"), filepath.Join(dir, "done")
	h := x.h
	x.h.Fleet = &result.Fleet{Epoch: 6, Agents: h.Fleet.Agents}
	x.begin(t, other, false, 1)
	x.h = h
	x.begin(t, done, false, 1)
	if err := os.Rename(done+".tmp", done); err != nil {
		t.Fatal(err)
	}
	underway := filepath.Join(dir, "underway")
	w, err := rundir.Create(underway, x.h)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abandon()
	for _, tt := range []struct {
		f    fleet.Fetch
		want string
	}{
		{fleet.Fetch{Epoch: 5}, "no agent that is there keeps calls of load 5"},
		{fleet.Fetch{Epoch: epoch, Dir: other}, "is the run of load 6, and not of load 7"},
		{fleet.Fetch{Epoch: epoch, Dir: done}, "is finished"},
		{fleet.Fetch{Epoch: epoch, Dir: underway}, "under way"},
		{fleet.Fetch{Epoch: epoch, Dir: filepath.Join(dir, "new"), With: other}, "is the run of load 6"},
		{fleet.Fetch{Epoch: epoch, Dir: filepath.Join(dir, "new"), With: filepath.Join(dir, "nothing")}, "is no run directory"},
	} {
		if _, err := x.leader.Fetch(t.Context(), tt.f); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.f, err, tt.want)
		}
	}
	kept := fleet.KeptBy(x.leader.Gather(t.Context(), nil))
	if len(kept) != 1 || len(kept[0].Parts) != 2 || kept[0].Who != "ada" || !kept[0].Simulated || kept[0].Parts[0].Calls != 30 {
		t.Errorf("kept: %+v", kept)
	}
	d, err := x.leader.Drop(t.Context(), epoch)
	if err != nil || d.Calls != 60 || !slices.Equal(d.Agents, []string{"a1", "a2"}) {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := x.leader.Drop(t.Context(), epoch); err == nil {
		t.Error("what was dropped is dropped again")
	}
}

// TestKeptIsForLeaders: an agent can order no other to give or remove what it keeps.
func TestKeptIsForLeaders(t *testing.T) {
	x := leaveLoad(t, 1, false)
	dir := t.TempDir()
	me := x.join(t, dir, "thief")
	conn, err := bus.Dial(t.Context(), me, bus.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, word := range []string{order.Kept, order.KeptBatch, order.Forget} {
		if raw, err := conn.Request(t.Context(), bus.Do(x.ids[0], word), order.Encode(order.BatchOf{Load: order.Load{Epoch: epoch}, Seq: 2})); err == nil {
			t.Errorf("an agent is answered to %s: %s", word, raw)
		}
	}
	if kept := fleet.KeptBy(x.leader.Gather(t.Context(), nil)); len(kept) != 1 {
		t.Errorf("kept: %+v", kept)
	}
}
