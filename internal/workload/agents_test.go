package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/token"
)

// agentLines has two sessions with the same ids of blocks, one of them with an agent that it
// started, and one session that sends nothing.
func agentLines(scope string) string {
	return strings.ReplaceAll(`{"id":"one","block_size":4,"hash_id_scope":"SCOPE","requests":[
  {"t":0,"type":"n","in":10,"out":3,"hash_ids":[1,2,3],"api_time":1},
  {"t":2,"type":"subagent","agent_id":"x","requests":[{"t":0.5,"type":"s","in":9,"out":2,"hash_ids":[1,7],"api_time":1}]},
  {"t":9,"type":"n","in":16,"out":4,"hash_ids":[1,2,3,4],"api_time":1}]}
{"id":"two","block_size":4,"scope":"SCOPE","turns":[{"input_tokens":6,"output_tokens":1,"blocks":[1,2]},{"input_tokens":13,"output_tokens":5,"blocks":[1,2,5],"idle_s":1}]}
{"id":"none","block_size":4,"hash_id_scope":"SCOPE","requests":[{"t":0,"type":"n","in":0,"out":3}]}
`, "SCOPE", scope)
}

func agentFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// everyTurn are all requests of a workload, in the order of the recordings.
func everyTurn(w *Workload) (out []Request) {
	for r := range w.All() {
		for more := true; more; r, _, more = w.Next(r, "") {
			out = append(out, r)
		}
	}
	return out
}

// TestAgentBlocks: prompts have their exact length, and begin alike exactly as far as
// their blocks are the same: within a session, between sessions where ids mean
// the same everywhere, and never between rounds.
func TestAgentBlocks(t *testing.T) {
	type prompt struct {
		input  int
		blocks []int64
	}
	recorded := []prompt{{10, []int64{1, 2, 3}}, {9, []int64{1, 7}}, {16, []int64{1, 2, 3, 4}}, {6, []int64{1, 2}}, {13, []int64{1, 2, 5}}}
	session := []int{1, 1, 1, 2, 2, 3, 3, 3, 4, 4} // the second round begins with the third
	for _, scope := range []string{"local", "global"} {
		w := mustOpen(t, Spec{Dataset: "agents", Path: agentFile(t, agentLines(scope)), NumPrompts: 4, DisableShuffle: true, Seed: 9})
		got := everyTurn(w)
		if len(got) != len(session) {
			t.Fatalf("%d requests, want %d", len(got), len(session))
		}
		for i, a := range got {
			p := recorded[i%5]
			if a.Session != session[i] || a.Index != i || a.Input != p.input || len(tokens(a.Prompt)) != p.input || a.System != "" || a.History != nil {
				t.Errorf("%s: request %d: %+v", scope, i, a)
			}
			for j, b := range got[:i] {
				q, want := recorded[j%5], 0
				if a.Session == b.Session || scope == "global" && i/5 == j/5 {
					for want < min(p.input, q.input) && want/4 < min(len(p.blocks), len(q.blocks)) && p.blocks[want/4] == q.blocks[want/4] {
						want++
					}
				}
				if n := alike(a.Prompt, b.Prompt); n != want {
					t.Errorf("%s: requests %d and %d begin with %d tokens alike, want %d", scope, i, j, n, want)
				}
			}
		}
		if drops, read := w.Dropped(); read != 3 || len(drops) != 1 || drops[0].Rows != 1 || w.Cuts() != (Cuts{Empty: 1}) {
			t.Errorf("%v of %d, %+v", drops, read, w.Cuts())
		}
	}
}

// TestAgentBegin: a session's requests come as the recording has them, each with the
// prompt that it has in every run of the seed.
func TestAgentBegin(t *testing.T) {
	spec := Spec{Dataset: "agents", Path: agentFile(t, agentLines("local")), DisableShuffle: true, MaxIdle: "700ms"}
	w := mustOpen(t, spec)
	all := everyTurn(mustOpen(t, spec))
	way, more := w.Begin(w.request(0), time.Second)
	if len(more) != 0 {
		t.Error(more)
	}
	steps, lost := way.Ended(0, 2*time.Second, true)
	if len(steps) != 1 || lost != 0 || steps[0].Due != 2700*time.Millisecond {
		t.Fatal(steps, lost)
	}
	if next := way.Next(0); !slices.Equal(next, []int{1}) {
		t.Error(next)
	}
	r := way.Request(steps[0].Turn)
	if r.Turn != 1 || r.Index != 1 || r.Prompt != all[1].Prompt {
		t.Errorf("%+v", r)
	}
}

// TestAgentFingerprint: two files that send other requests, or at other times, have other
// fingerprints.
func TestAgentFingerprint(t *testing.T) {
	seen := map[string]string{}
	text := agentLines("local")
	for name, change := range map[string][2]string{
		"as it is": {"", ""}, "a block": {"[1,2,5]", "[1,2,6]"}, "a later length": {`"in":16`, `"in":15`}, "an answer": {`"out":4`, `"out":3`},
		"idle": {`"idle_s":1`, `"idle_s":2`}, "order": {`"t":9`, `"t":3.2`}, "scope": {"local", "global"}, "blocks": {`"block_size":4`, `"block_size":5`},
	} {
		f := mustOpen(t, Spec{Dataset: "agents", Path: agentFile(t, replaced(text, change)), DisableShuffle: true}).Fingerprint()
		if seen[f] != "" {
			t.Errorf("%s and %s have the same fingerprint", name, seen[f])
		}
		seen[f] = name
	}
}

// TestAgentFiles: a directory is read file by file in the order of their names, whatever
// is a line, and travels as its files.
func TestAgentFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.json":     `{"id":"b","block_size":16,` + "\n" + `"requests":[{"t":0,"type":"n","in":2,"out":1}]}`,
		"a.jsonl":    `{"turns":[{"input_tokens":1,"output_tokens":1}]}` + `{"turns":[{"input_tokens":3,"output_tokens":1}]}`,
		"note":       "no session",
		"c.jsonl.gz": `{"turns":[{"input_tokens":4,"output_tokens":1}]}`,
		"note.gz":    "no session",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec := Spec{Dataset: "agents", Path: dir, DisableShuffle: true}
	var lengths []int
	for _, r := range everyTurn(mustOpen(t, spec)) {
		lengths = append(lengths, r.Input)
	}
	if !slices.Equal(lengths, []int{1, 3, 2, 4}) {
		t.Error(lengths)
	}
	files, err := spec.Files()
	if err != nil || len(files) != 3 || files[0].Name != "a.jsonl" || files[1].Name != "b.json" {
		t.Error(files, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "c.json"), []byte(`{"turns":[]} {"turn":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(spec)
	if want := "read agents dataset " + dir + ": c.json: session 2: is no session of agents: it has neither turns (perflab's own form) nor requests (WEKA's), nor is it a request of one (session_id and input_tokens_total, TraceLab's)"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAgentFaults(t *testing.T) {
	path := agentFile(t, agentLines("local"))
	for _, x := range []struct {
		spec Spec
		want string
	}{
		{Spec{Dataset: "agents"}, "dataset_name: agents needs dataset_path: a file with a JSON object for each session"},
		{Spec{Dataset: "agents", Path: path, MaxIdle: "soon"}, `max_idle: "soon" is not a time above 0: write 90s, 2m or 90`},
		{Spec{Dataset: "agents", Path: path, OverContext: "drop"}, "over_context: applies with max_context only"},
		{Spec{Dataset: "agents", Path: path, MaxContext: 9, OverContext: "cut"}, `over_context: "cut" is unknown`},
		{Spec{Dataset: "agents", Path: path, MaxConcurrency: 1, StartRatio: "0.75..0.25"}, `start_ratio: "0.75..0.25" is no share of a session: write 0.5, or 0.25..0.75, below 1`},
		{Spec{Dataset: "agents", Path: path, MaxConcurrency: 1, StartRatio: "1"}, `start_ratio: "1" is no share`},
		{Spec{Dataset: "agents", Path: path, MaxConcurrency: 1, StartRatio: "0.5", Rate: 3}, "start_ratio: needs a closed loop: give max_concurrency, and no rate"},
		{Spec{Dataset: "agents", Path: path, SessionHeader: "X Session"}, `session_header: "X Session" is no name of a header`},
		{Spec{Dataset: "agents", Path: path, SessionHeader: "host"}, "session_header: host means something else to a server"},
		{Spec{Dataset: "agents", Path: path, MaxContext: 1}, "max_context: is 1, which has no room for a prompt and an answer"},
		{Spec{Dataset: "agents", Path: path, ThinkTime: "1s"}, "think_time: applies to dataset_name conversations, not agents"},
		{Spec{Dataset: "agents", Path: t.TempDir()}, "has no file that ends in .json or .jsonl"},
		{Spec{Dataset: "agents", Path: path, MaxContext: 5}, "has no usable row: 3 read, 2 of which the context has no room for any request, 1 without a request that can be sent"},
	} {
		_, err := Open(x.spec)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}

// TestAgentContext: what a model has no room for is left out or cut, and counted.
func TestAgentContext(t *testing.T) {
	path := agentFile(t, agentLines("local"))
	for over, want := range map[string]Cuts{"": {Empty: 1, Dropped: 2}, "truncate": {Empty: 1, Cut: 2}} {
		w := mustOpen(t, Spec{Dataset: "agents", Path: path, DisableShuffle: true, MaxContext: 15, OverContext: over})
		if w.Cuts() != want {
			t.Errorf("%s: %+v", over, w.Cuts())
		}
		for _, r := range everyTurn(w) {
			if r.Input+r.Output > 15 || len(tokens(r.Prompt)) != r.Input {
				t.Errorf("%s: %+v", over, r)
			}
		}
		if whole, _, exact := w.Longest(); whole.total() > 15 || !exact {
			t.Errorf("%s: %+v", over, whole)
		}
	}
}

// TestAgentStart: the sessions that are there at first begin in the middle, the same at every
// opening, with their indexes one after the other; later ones and those of a later round begin with
// their first turn.
func TestAgentStart(t *testing.T) {
	var b strings.Builder
	for n := range 6 {
		fmt.Fprintf(&b, `{"block_size":4,"id":"%d","turns":[`, n)
		for i := range 8 {
			fmt.Fprintf(&b, `%s{"input_tokens":%d,"output_tokens":2,"blocks":[%s]}`, map[bool]string{i > 0: ","}[true], 4*(i+1), strings.TrimSuffix(strings.Repeat("7,", i+1), ","))
		}
		b.WriteString("]}")
	}
	spec := Spec{Dataset: "agents", Path: agentFile(t, b.String()), MaxConcurrency: 4, StartRatio: "0.25..0.75", Seed: 3}
	w := mustOpen(t, spec)
	begins := map[int]bool{}
	index := 0
	for r := range w.All() {
		if r.Index != index {
			t.Errorf("session %d begins with index %d, want %d", r.Session, r.Index, index)
		}
		if first := r.Session <= 4; first != (r.Turn >= 2 && r.Turn <= 6) || !first && r.Turn != 0 {
			t.Errorf("session %d begins with turn %d", r.Session, r.Turn)
		}
		begins[r.Turn] = true
		for more := true; more; r, _, more = w.Next(r, "") {
			index++
		}
	}
	if index != w.Len() || index >= 48 || len(begins) < 3 {
		t.Errorf("%d requests, said to be %d, from turns %v", index, w.Len(), begins)
	}
	spec.Duration = "1s"
	endless := mustOpen(t, spec)
	indexes := map[int]bool{}
	for k := range 1 << 15 {
		r := endless.request(k)
		if k < 4 && r.Turn != w.request(k).Turn || k >= 4 && r.Turn != 0 {
			t.Fatalf("session %d begins with turn %d", k+1, r.Turn)
		}
		for i := range 8 - r.Turn {
			if indexes[r.Index+i] {
				t.Fatalf("session %d has index %d, which another one has", k+1, r.Index+i)
			}
			indexes[r.Index+i] = true
		}
	}
}

// TestAgentFills: what fills a cache for a session in its middle is the longest of the prompts
// before, each for one token.
func TestAgentFills(t *testing.T) {
	spec := Spec{Dataset: "agents", Path: agentFile(t, agentLines("local")), DisableShuffle: true, MaxConcurrency: 2, StartRatio: "0.7", Seed: 3}
	w := mustOpen(t, spec)
	spec.StartRatio = ""
	all := everyTurn(mustOpen(t, spec))
	var got []Request
	for r := range w.Fills() {
		for more := true; more; r, _, more = w.NextFill(r, "") {
			got = append(got, r)
		}
	}
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, of := range []int{0, 1, 3} { // both of the first session, whose prompts part, and one of the second
		if got[i].Prompt != all[of].Prompt || got[i].Output != 1 || got[i].Session != all[of].Session {
			t.Errorf("request %d: %+v", i, got[i])
		}
	}
}

func replaced(text string, change [2]string) string {
	if change[0] == "" {
		return text
	}
	return strings.ReplaceAll(text, change[0], change[1])
}

// tokens are those of a text by package token.
func tokens(text string) []uint32 { return token.Append(nil, text) }

// alike is how many tokens two texts begin with alike.
func alike(a, b string) int {
	x, y := tokens(a), tokens(b)
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}
