package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/workload"
)

// listener is a server that remembers what it was asked, in order.
type listener struct {
	url    string
	answer http.HandlerFunc

	mu      sync.Mutex
	prompts []string
	tokens  []int
	models  []string
	routes  []string // the header X-Session-ID
}

// listen answers every completion with two tokens.
func listen(t *testing.T) *listener {
	t.Helper()
	l := &listener{}
	mux := http.NewServeMux()
	l.answer = func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model     string `json:"model"`
			Prompt    string `json:"prompt"`
			MaxTokens int    `json:"max_tokens"`
			MaxChat   int    `json:"max_completion_tokens"`
			Messages  []workload.Message
		}
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &body); err != nil {
			t.Error(err)
		}
		for _, m := range body.Messages {
			body.Prompt = m.Content
		}
		l.mu.Lock()
		l.prompts, l.tokens = append(l.prompts, body.Prompt), append(l.tokens, body.MaxTokens+body.MaxChat)
		l.models, l.routes = append(l.models, body.Model), append(l.routes, r.Header.Get("X-Session-ID"))
		l.mu.Unlock()
		for range 2 {
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n")
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
	}
	mux.HandleFunc("POST /v1/completions", l.answer)
	mux.HandleFunc("POST /v1/chat/completions", l.answer)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	l.url = s.URL
	return l
}

func (l *listener) take() (prompts []string, tokens []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	prompts, tokens = l.prompts, l.tokens
	l.prompts, l.tokens = nil, nil
	return prompts, tokens
}

func (l *listener) spec(w workload.Spec) Spec {
	return Spec{Targets: []string{l.url}, Backend: "openai", Model: "m", Workload: w.Defaults()}
}

// files are small ones of the datasets that need one.
var files = map[string]string{
	"sharegpt": `[{"conversations":[{"from":"human","value":"How are you this morning, dear?"},{"from":"gpt","value":"I am well, thank you very much."}]},` +
		`{"conversations":[{"from":"human","value":"What is the capital of France?"},{"from":"gpt","value":"It is Paris, on the Seine."}]}]`,
	"agents": `{"block_size":4,"turns":[{"input_tokens":9,"output_tokens":2,"blocks":[1,2,3]},{"agent":"a","input_tokens":6,"output_tokens":2,"blocks":[1,5],"after":[0],"idle_s":0.002},` +
		`{"agent":"b","input_tokens":7,"output_tokens":2,"blocks":[1,6],"after":[0]},{"agent":"a","input_tokens":8,"output_tokens":2,"blocks":[1,5]},{"input_tokens":14,"output_tokens":2,"blocks":[1,2,3,4],"after":[2,3],"idle_s":0.001}]}` + "\n" +
		`{"block_size":4,"turns":[{"input_tokens":5,"output_tokens":2,"blocks":[8]}]}` + "\n",
	"azure":    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00.0000000,20,3\n2023-11-16 18:00:00.0100000,30,4\n",
	"mooncake": `{"timestamp":0,"input_length":20,"output_length":3,"hash_ids":[1]}` + "\n" + `{"timestamp":5,"input_length":30,"output_length":4,"hash_ids":[2]}` + "\n",
	"jsonl":    `{"prompt":"one two three four","output_tokens":3}` + "\n" + `{"prompt":"five six seven","output_tokens":3}` + "\n",
	"custom":   `{"prompt":"one two three four"}` + "\n" + `{"prompt":"five six seven"}` + "\n",
	"gsm8k":    `{"question":"How many are two and two?","answer":"They are four."}` + "\n" + `{"question":"What comes after nine?","answer":"Ten does."}` + "\n",
	"hf":       `{"question":"How many are two and two?"}` + "\n" + `{"question":"What comes after nine?"}` + "\n",
	"burstgpt": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,20,3,23,Conversation log\n6,GPT-4,30,4,34,Conversation log\n",
}

// TestWarmUpApart: no measured prompt is in the warm-up, nor begins like one of
// it, whatever the dataset and under each of several seeds.
func TestWarmUpApart(t *testing.T) {
	for _, name := range workload.Datasets() {
		w := workload.Spec{Dataset: name}
		if text, ok := files[name]; ok {
			w.Path = filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(w.Path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if name == "hf" {
			w.HFName = "openai/gsm8k"
		}
		w = w.Defaults()
		switch name {
		case "prefix_repetition": // a multiple of its prefixes
			w.PrefixRepetitionNumPrefixes, w.NumPrompts = 2, 2
		case "shared-prefix": // its groups times their prompts
			w.GSPNumGroups, w.GSPPromptsPerGroup, w.NumPrompts = 1, 2, 2
		case "conversations":
			w.NumPrompts, w.Turns = 2, "1"
		default:
			w.NumPrompts = 2
		}
		for seed := range uint64(5) {
			l := listen(t)
			w.Seed = seed * warmupSeed // 0 and the one that the warm-up's is derived by among them
			spec := l.spec(w)
			spec.Warmups = 3
			if name == "conversations" {
				spec.Backend = "openai-chat"
			}
			out, err := Runner{Spec: spec}.Run(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			prompts, _ := l.take()
			if len(prompts) != 3+out.Totals.Requests {
				t.Fatalf("%s: %d prompts for %d requests", name, len(prompts), out.Totals.Requests)
			}
			for _, measured := range prompts[3:] {
				for _, warm := range prompts[:3] {
					if head(measured) == head(warm) {
						t.Errorf("%s, seed %d: %q is in the warm-up", name, w.Seed, measured)
					}
				}
			}
		}
	}
}

// head is less than a block of any prefix cache.
func head(s string) string { return strings.Join(strings.Fields(s)[:3], " ") }

// TestDressed: warm-up requests carry what the API of the measured ones needs.
func TestDressed(t *testing.T) {
	warm := slices.Values([]workload.Request{{Prompt: "a"}, {Prompt: "b"}, {Prompt: "c"}})
	w, err := workload.Open(workload.Spec{NumPrompts: 2})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for r := range withMeasuredAttributes(warm, w) {
		n++
		if len(r.Prompt) != 1 {
			t.Errorf("%q is no warm-up prompt", r.Prompt)
		}
	}
	if n != 3 {
		t.Errorf("%d of 3 warm-up requests are left when the measured ones are fewer", n)
	}
}

// TestWarmUpReachesAdapters: also where chance gives the measured requests few
// of them.
func TestWarmUpReachesAdapters(t *testing.T) {
	l := listen(t)
	spec := l.spec(workload.Spec{NumPrompts: 1, RandomInputLen: 8, RandomOutputLen: 2, LoraModules: []string{"x", "y", "z"}})
	spec.Warmups = 3
	if _, err := (Runner{Spec: spec}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := cmp.Diff([]string{"x", "y", "z"}, slices.Sorted(slices.Values(l.models[:3]))); d != "" {
		t.Error(d)
	}
}

// TestFreshen: a run draws what it needs to meet no prompt of another run, and
// nothing that was given.
func TestFreshen(t *testing.T) {
	file := workload.Spec{Dataset: "jsonl", Path: "x"}
	for name, tt := range map[string]struct {
		spec        Spec
		seeded      bool
		seed, nonce bool // drawn
	}{
		"random":             {Spec{}, false, true, false},
		"random, seed given": {Spec{}, true, false, false},
		"trace":              {Spec{Workload: workload.Spec{Dataset: "mooncake", Path: "x"}}, false, true, false},
		"file":               {Spec{Workload: file}, false, false, true},
		"file, seed given":   {Spec{Workload: file}, true, false, true},
		"nonce given":        {Spec{Workload: workload.Spec{Dataset: "jsonl", Path: "x", Nonce: "n"}}, false, false, false},
		"unique":             {Spec{Cache: CacheUnique}, false, true, false},
		"reset":              {Spec{Cache: CacheReset}, false, false, false},
		"warm":               {Spec{Cache: CacheWarm, Workload: file}, false, false, false},
		"shared":             {Spec{Cache: CacheShared}, false, false, false},
	} {
		seeds, nonces := map[uint64]bool{}, map[string]bool{}
		for range 3 {
			s := tt.spec.Freshen(tt.seeded)
			seeds[s.Workload.Seed], nonces[s.Workload.Nonce] = true, true
		}
		if (len(seeds) == 3) != tt.seed || (len(nonces) == 3) != tt.nonce {
			t.Errorf("%s: seeds %v, nonces %v", name, seeds, nonces)
		}
	}
}

// TestCacheWarm: every prompt is sent once, for one token, before it is
// measured.
func TestCacheWarm(t *testing.T) {
	l := listen(t)
	spec := l.spec(workload.Spec{NumPrompts: 5, RandomInputLen: 8, RandomOutputLen: 3})
	spec.Cache = CacheWarm
	out, err := Runner{Spec: spec}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	prompts, tokens := l.take()
	if len(prompts) != 10 {
		t.Fatalf("%d prompts", len(prompts))
	}
	slices.Sort(prompts[:5])
	slices.Sort(prompts[5:])
	if d := cmp.Diff(prompts[:5], prompts[5:]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{1, 1, 1, 1, 1, 3, 3, 3, 3, 3}, tokens); d != "" {
		t.Error(d)
	}
	if len(out.Calls) != 5 || out.Header.Cache != CacheWarm {
		t.Errorf("%d calls, cache %q", len(out.Calls), out.Header.Cache)
	}
}

// TestCacheWarmConversations: all turns are sent before they are measured, which
// takes prompts that are known.
func TestCacheWarmConversations(t *testing.T) {
	l := listen(t)
	spec := l.spec(workload.Spec{Dataset: "conversations", NumPrompts: 2, Turns: "3", TurnInputLen: "4", TurnOutputLen: "4", History: "answers"})
	spec.Backend, spec.Cache = "openai-chat", CacheWarm
	if _, err := (Runner{Spec: spec}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	prompts, tokens := l.take()
	if d := cmp.Diff([]int{1, 1, 1, 1, 1, 1, 4, 4, 4, 4, 4, 4}, tokens); d != "" {
		t.Fatal(d)
	}
	slices.Sort(prompts[:6])
	slices.Sort(prompts[6:])
	if d := cmp.Diff(prompts[:6], prompts[6:]); d != "" {
		t.Error(d)
	}
	spec.Workload.History = "generated"
	if err := spec.Validate(); err == nil || !strings.Contains(err.Error(), "cache: warm needs to know the prompts beforehand") {
		t.Error(err)
	}
}

// TestFingerprint: the header has it, and it is the workload's.
func TestFingerprint(t *testing.T) {
	l := listen(t)
	spec := l.spec(workload.Spec{NumPrompts: 3, RandomInputLen: 8, RandomOutputLen: 2, Seed: 4})
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := (Runner{Spec: spec, Dir: dir}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := rundir.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := workload.Open(spec.Workload)
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Fingerprint != w.Fingerprint() || r.Header.Fingerprint == "" {
		t.Errorf("%q in the header, the workload's is %q", r.Header.Fingerprint, w.Fingerprint())
	}
	if r.Header.Cache != CacheUnique {
		t.Errorf("cache %q", r.Header.Cache)
	}
}

// counted is a client of a server with counters.
type counted struct {
	queries, hits float64
	err           error
	resets        int
}

func (c *counted) CacheCounters(context.Context) (float64, float64, string, error) {
	return c.queries, c.hits, "prefix_cache_queries", c.err
}

func (c *counted) ResetCache(context.Context) error { c.resets++; return c.err }

func TestCacheUse(t *testing.T) {
	a, b := &counted{queries: 100, hits: 10}, &counted{queries: 5, hits: 5}
	w := &cacheMonitor{counters: []cacheCounter{a, b}}
	var err error
	if w.queries, w.hits, w.from, err = w.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.queries, b.hits, b.queries = 150, 12, 20
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if d := cmp.Diff(&result.CacheUse{Queries: 65, Hits: 7, From: "prefix_cache_queries"}, w.usage(interrupted)); d != "" {
		t.Error(d)
	}
	a.queries = 3 // it was started again
	if u := w.usage(t.Context()); u != nil {
		t.Errorf("counters that fell are no use: %+v", u)
	}
	if u := (&cacheMonitor{}).usage(t.Context()); u != nil {
		t.Errorf("a server that tells nothing used %+v", u)
	}
	if d := cmp.Diff(&result.CacheUse{Reset: true}, (&cacheMonitor{reset: true}).usage(t.Context())); d != "" {
		t.Error(d)
	}
}

// TestCacheReset: every server's cache is emptied, or the run does not begin.
func TestCacheReset(t *testing.T) {
	a, b := &counted{}, &counted{}
	if err := resetCaches(t.Context(), []*counted{a, b}); err != nil || a.resets != 1 || b.resets != 1 {
		t.Errorf("%v, %d and %d resets", err, a.resets, b.resets)
	}
	a.err = errors.New("404 not found")
	if err := resetCaches(t.Context(), []*counted{a, b}); !errors.Is(err, a.err) || b.resets != 1 {
		t.Errorf("%v", err)
	}
}

// TestStudyNonce: the same in each trial of a pass, another in the next pass
// and for another workload, and none where the seed does as well.
func TestStudyNonce(t *testing.T) {
	file := workload.Spec{Dataset: "jsonl", Path: "x", Seed: 7}
	a := FixedNonce("chat", file)
	next := file
	next.Seed += 1000
	if a == "" || a != FixedNonce("chat", file) || a == FixedNonce("chat", next) || a == FixedNonce("batch", file) {
		t.Errorf("%q, %q, %q", a, FixedNonce("chat", next), FixedNonce("batch", file))
	}
	if n := FixedNonce("chat", workload.Spec{Seed: 7}); n != "" {
		t.Errorf("random words have the nonce %q", n)
	}
	file.Nonce = "mine"
	if n := FixedNonce("chat", file); n != "mine" {
		t.Errorf("%q", n)
	}
}

// TestAchieved: draining and the chance in arrivals are no lack of rate.
func TestAchieved(t *testing.T) {
	run := func(took func(at float64) float64) *Outcome {
		o := &Outcome{}
		for i := range 100 {
			at := math.Sqrt(float64(i)) // uneven arrivals
			o.Calls = append(o.Calls, result.Call{Due: seconds(at), End: seconds(at + took(at))})
		}
		o.Pace = result.NewCallSet(o.Calls).Pace()
		o.Summary.Figures = map[string]float64{"success_rate": 1, "request_throughput": 3, "completed": 100}
		return o
	}
	if got := achieved(10, run(func(float64) float64 { return 60 })); math.Abs(got-10) > 1e-6 {
		t.Errorf("a server that keeps up achieves %g of 10", got)
	}
	if got := achieved(10, run(func(at float64) float64 { return at })); math.Abs(got-5) > 1e-6 {
		t.Errorf("a server that takes twice as long achieves %g of 10", got)
	}
	few := run(func(float64) float64 { return 1 })
	few.Summary.Figures["completed"] = 5
	if got := achieved(10, few); got != 3 {
		t.Errorf("five calls achieve %g", got)
	}
	// Calls that nothing spaced end together: those of a closed loop in waves.
	wave := run(func(at float64) float64 { return 60 - at })
	if got := achieved(0, wave); got != 3 {
		t.Errorf("a burst whose calls end together achieves %g of the run's 3 req/s", got)
	}
	wave.Header.Limit = 8
	if got := achieved(10, wave); got != 3 {
		t.Errorf("a closed loop achieves %g of the run's 3 req/s", got)
	}
}
