package outline

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/sim"
	"perflab/internal/test/simtest"
	"perflab/internal/workload"
)

// seen is what was seen of a request, by a client or in virtual time.
type seen struct {
	Index, Session, Turn, Replica int
	Due, Sent, First, End         time.Duration
	Input, Output, Cached         int
	Failed                        bool
}

// client sends requests to a simulated engine, over connections in memory.
type client struct{ *simtest.Engine }

func (c client) Send(_ context.Context, start time.Time, r workload.Request) (call result.Call) {
	call.Sent, call.Usage = time.Since(start), &result.Usage{}
	var messages []map[string]string
	add := func(role, text string) {
		if text != "" {
			messages = append(messages, map[string]string{"role": role, "content": text})
		}
	}
	add("system", r.System)
	for _, m := range r.History {
		add(m.Role, m.Content)
	}
	add("user", r.Prompt)
	body, _ := json.Marshal(map[string]any{"messages": messages, "max_tokens": r.Output, "stream": true, "stream_options": map[string]bool{"include_usage": true}})
	resp, err := c.Client.Post(c.URL+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		call.Class, call.Error = result.Cancelled, err.Error()
		return call
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		io.Copy(io.Discard, resp.Body)
		call.Class, call.Error, call.End = result.HTTPStatus, resp.Status, time.Since(start)
		return call
	}
	c.read(resp.Body, start, &call)
	return call
}

// read reads the events of an answer.
func (client) read(body io.Reader, start time.Time, call *result.Call) {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		var event struct {
			Choices []struct {
				Delta struct{ Content string }
			}
			Usage *struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
				Details    struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if json.Unmarshal(bytes.TrimPrefix(lines.Bytes(), []byte("data: ")), &event) != nil {
			continue
		}
		if len(event.Choices) > 0 && event.Choices[0].Delta.Content != "" {
			call.Text += event.Choices[0].Delta.Content
			call.End = time.Since(start)
			call.Chunks = append(call.Chunks, result.Chunk{At: call.End})
		}
		if u := event.Usage; u != nil {
			*call.Usage = result.Usage{Prompt: u.Prompt, Completion: u.Completion, Cached: u.Details.Cached}
		}
	}
}

// served is a workload sent to simulated engines as package bench sends it, inside of a bubble.
func served(t *testing.T, cfg engine.Config, replicas int, w *workload.Workload, kv int) (all []seen) {
	var senders []load.Sender
	for i := range replicas {
		senders = append(senders, client{simtest.Start(t, cfg, simtest.Options{Core: sim.Options{KVTokens: kv, Seed: uint64(i)}})})
	}
	if w.Spec().StartRatio != "" {
		for i, s := range senders {
			fills := func(yield func(workload.Request) bool) {
				for r := range w.Fills() {
					if (r.Session-1)%replicas == i && !yield(r) {
						return
					}
				}
			}
			if _, err := load.Run(t.Context(), fills, []load.Sender{s}, load.Options{Next: w.NextFill}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := w.Spec()
	o := load.Options{MaxConcurrency: s.MaxConcurrency, Until: w.Until(), Closed: w.Closed(), Affinity: !s.NoSessionAffinity}
	switch {
	case w.Trees():
		o.Begin = func(first workload.Request, at time.Duration) (load.Session, []workload.Step) {
			return w.Begin(first, at)
		}
		if s.StartRatio != "" {
			o.Home = func(first workload.Request) int {
				if first.Session > s.MaxConcurrency {
					return -1
				}
				return (first.Session - 1) % replicas
			}
		}
	case w.Conversations():
		o.Next = w.Next
	}
	_, err := load.Run(t.Context(), w.All(), senders, o, func(c result.Call) {
		x := seen{c.Index, c.Session, c.Turn, c.Target, c.Due, c.Sent, 0, c.End, c.Usage.Prompt, c.Usage.Completion, c.Usage.Cached, !c.OK()}
		if len(c.Chunks) > 0 {
			x.First = c.Chunks[0].At
		}
		all = append(all, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	return sorted(all)
}

// foreseen is the same in virtual time.
func foreseen(t *testing.T, cfg engine.Config, replicas int, w *workload.Workload, kv int) (all []seen) {
	t.Helper()
	p := New(w, nil)
	out, err := sim.Replay(cfg, replicas, p.Jobs(), p.Options(sim.ReplayOptions{KVTokens: kv}, replicas))
	if err != nil {
		t.Fatal(err)
	}
	for o := range out {
		x := seen{o.Index, o.Session, o.Turn, o.Replica, o.Due, o.Sent, 0, o.Sent, o.Prompt, o.Output, o.Cached, o.Err != ""}
		if n := len(o.Tokens); n > 0 {
			x.First, x.End = o.Tokens[0].At, o.Tokens[n-1].At
		} else {
			x.Input, x.Output = 0, 0
		}
		all = append(all, x)
	}
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	return sorted(all)
}

func sorted(all []seen) []seen {
	slices.SortFunc(all, func(a, b seen) int { return a.Index - b.Index })
	return all
}

// resolved is the configuration of a command on an H100.
func resolved(t testing.TB, command string) engine.Config {
	t.Helper()
	cmd, err := engine.ParseText(command)
	if err != nil {
		t.Fatal(err)
	}
	model, err := arch.LookupModel(cmd.Model)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := arch.LookupAccelerator("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := cmd.Resolve(model, gpu, 1)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// recorded writes sessions of agents with subagents, whose idle times let no two requests be due at once, and some
// requests that are longer than any context.
func recorded(t testing.TB, scope string, sessions, turns, blocks int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for s := range sessions {
		next := 1000 * (s + 1)
		ids := []int{1, 2, 3}
		last, helper := -1, -1
		var list []string
		for turn := range turns {
			for range 1 + r.IntN(blocks) {
				next++
				ids = append(ids, next)
			}
			text, _ := json.Marshal(ids)
			after := ""
			if last >= 0 {
				after = fmt.Sprintf(`,"after":[%d]`, last)
			}
			if helper >= 0 {
				after = fmt.Sprintf(`,"after":[%d,%d]`, last, helper)
			}
			last, helper = len(list), -1
			list = append(list, fmt.Sprintf(`{"input_tokens":%d,"output_tokens":%d,"blocks":%s,"idle_s":%.9f%s}`, 64*len(ids)-r.IntN(70), 5+r.IntN(40), text, r.ExpFloat64(), after))
			if turn%3 == 1 {
				list = append(list, fmt.Sprintf(`{"agent":"a%d","input_tokens":%d,"output_tokens":7,"blocks":[1,2,%d],"idle_s":%.9f,"after":[%d]}`, turn, 200+r.IntN(9), next+500, r.Float64(), last))
				helper = len(list) - 1
			}
			if turn == turns-2 && s == 1 {
				list = append(list, fmt.Sprintf(`{"agent":"too long","input_tokens":50000,"output_tokens":7,"idle_s":%.9f,"after":[%d]}`, r.Float64(), last))
			}
		}
		fmt.Fprintf(&b, `{"id":"s%d","scope":%q,"turns":[%s]}`+"\n", s, scope, strings.Join(list, ","))
	}
	path := filepath.Join(t.TempDir(), scope+".jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, s workload.Spec) *workload.Workload {
	t.Helper()
	w, err := workload.Open(s.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestForeseenIsServed: what is foreseen of a workload is what a client sees of simulated engines, to the nanosecond and to
// the token of the prefix cache: order, times, replicas, what is found in a cache that evicts, and what fails. No two requests
// come at one instant, and none where a step begins that would be the last before it: of either a server could take the other first.
func TestForeseenIsServed(t *testing.T) {
	global := recorded(t, "global", 7, 8, 4)
	for name, tt := range map[string]struct {
		command  string
		replicas int
		kv       int
		spec     workload.Spec
		turns    int // calls that there are at least
		evicts   bool
	}{
		"agents": {"vllm serve Qwen/Qwen3-8B", 2, 0,
			workload.Spec{Dataset: "agents", Path: global, NumPrompts: 9, Rate: 0.4, MaxConcurrency: 4, Seed: 5}, 90, false},
		"agents in a small cache": {"vllm serve Qwen/Qwen3-8B --max-model-len 2500", 1, 3200,
			workload.Spec{Dataset: "agents", Path: global, NumPrompts: 9, Rate: 0.7, Seed: 3}, 90, true},
		"agents on SGLang, anywhere": {"python -m sglang.launch_server --model-path Qwen/Qwen3-8B", 2, 30_000,
			workload.Spec{Dataset: "agents", Path: global, Rate: 0.4, Duration: "20s", NoSessionAffinity: true, Seed: 3}, 40, false},
		"conversations": {"vllm serve Qwen/Qwen3-8B", 2, 0,
			workload.Spec{Dataset: "conversations", NumPrompts: 12, Turns: "2-5", SystemLen: 70, TurnInputLen: "20-90", TurnOutputLen: "10-60", ThinkTime: "1s", Rate: 2, MaxConcurrency: 5, Seed: 5}, 30, false},
		"a closed loop for a time": {"vllm serve Qwen/Qwen3-8B", 1, 0,
			workload.Spec{Dataset: "random", Duration: "3s", MaxConcurrency: 1, RandomInputLen: 300, RandomOutputLen: 20, RandomRangeRatio: 0.5, Seed: 3}, 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, w := resolved(t, tt.command), open(t, tt.spec)
			want := foreseen(t, cfg, tt.replicas, w, tt.kv)
			var got []seen
			synctest.Test(t, func(t *testing.T) { got = served(t, cfg, tt.replicas, w, tt.kv) })
			if d := cmp.Diff(want, got); d != "" || len(got) < tt.turns {
				t.Errorf("%d calls (-foreseen +served):\n%s", len(got), d)
			}
			if all := foreseen(t, cfg, tt.replicas, w, 0); tt.evicts != (cached(all) > cached(want)) {
				t.Errorf("%d tokens come from the cache, from a large one %d", cached(want), cached(all))
			}
		})
	}
}

func cached(all []seen) (n int) {
	for _, x := range all {
		n += x.Cached
	}
	return n
}

// TestForeseenFromTheMiddle: of sessions that begin in the middle each replica's cache holds what they left there.
func TestForeseenFromTheMiddle(t *testing.T) {
	w := open(t, workload.Spec{Dataset: "agents", Path: recorded(t, "local", 5, 8, 4), NumPrompts: 8, MaxConcurrency: 5, StartRatio: "0.3..0.8", Seed: 3})
	cfg := resolved(t, "vllm serve Qwen/Qwen3-8B")
	want := foreseen(t, cfg, 3, w, 0)
	var got []seen
	synctest.Test(t, func(t *testing.T) { got = served(t, cfg, 3, w, 0) })
	found := func(all []seen) (out []seen) {
		for _, x := range all {
			if x.Session > 5 {
				x.Replica = 0 // whose turn it is depends on which of two ended first
			}
			out = append(out, seen{Index: x.Index, Session: x.Session, Turn: x.Turn, Replica: x.Replica, Input: x.Input, Output: x.Output, Cached: x.Cached, Failed: x.Failed})
		}
		return out
	}
	if d := cmp.Diff(found(want), found(got)); d != "" {
		t.Errorf("-foreseen +served:\n%s", d)
	}
	if i := slices.IndexFunc(want, func(x seen) bool { return x.Session == 1 }); want[i].Turn == 0 || want[i].Cached == 0 {
		t.Errorf("the first session begins with %+v", want[i])
	}
}
