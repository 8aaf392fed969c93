package sim_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/engine/meters"
	"perflab/internal/prometheus"
	"perflab/internal/sim"
	"perflab/internal/test/simtest"
	"perflab/internal/token"
)

func config() engine.Config {
	return engine.Config{
		Engine: "vllm", TP: 1, PP: 1, DP: 1, EP: 1, GPUs: 1,
		Model: arch.Model{
			Name: "test/dense", Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, HeadDim: 128,
			FFN: 14336, Vocab: 128256, MaxLen: 32768, Format: arch.BF16,
		},
		GPU: arch.Accelerator{
			Name: "h100-sxm", BF16TFLOPS: 989, FP8TFLOPS: 1979, BandwidthGBs: 3350, MemoryGiB: 79.2, LinkGBs: 450, LinkLatency: 5, SM: 90,
		},
		Seqs: 256, Batched: 8192, MaxLen: 32768, MemoryShare: 0.9, KVBytes: 2, Block: 16,
		Prefix: true, Chunked: true, GraphMax: 512,
	}
}

// apart is a replica of prefill and decode engines that are configured alike.
func apart(cfg engine.Config, prefills, decodes int) engine.Config {
	prefill := cfg
	cfg.Prefills, cfg.Decodes, cfg.Prefill = prefills, decodes, &prefill
	cfg.GPUs *= prefills + decodes
	return cfg
}

var small = simtest.Options{Core: sim.Options{KVTokens: 100_000}}

func post(t *testing.T, e *simtest.Engine, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", e.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := e.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.Header.Get("X-Perflab-Simulated") != "1" {
		t.Errorf("%s: the response does not say that it is simulated", path)
	}
	return resp
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// event is what the tests read of a stream's event.
type event struct {
	at      time.Duration // since the test's zero
	Object  string
	Choices []struct {
		Delta        struct{ Role, Content, Reasoning string }
		Text         string
		FinishReason *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

func readStream(r io.Reader, zero time.Time) (events []event, done bool, err error) {
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		e := event{at: time.Since(zero)}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return nil, false, fmt.Errorf("event %s: %w", data, err)
		}
		events = append(events, e)
	}
	return events, done, sc.Err()
}

func TestChatStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := simtest.Start(t, config(), small)
		resp := post(t, e, "/v1/chat/completions", `{"model":"test/dense","messages":[{"role":"user","content":"What is the answer?"}],
			"max_completion_tokens":7,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`)
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream; charset=utf-8" {
			t.Fatalf("%s, %s", resp.Status, got)
		}
		events, done, err := readStream(resp.Body, time.Now())
		if err != nil || !done {
			t.Fatalf("done %v, %v", done, err)
		}
		if len(events) != 9 { // role, seven tokens, usage
			t.Fatalf("%d events", len(events))
		}
		if d := events[0].Choices[0].Delta; d.Role != "assistant" || d.Content != "" || events[0].Usage.Completion != 0 {
			t.Errorf("first event %+v", events[0])
		}
		var text strings.Builder
		for i, ev := range events[1:8] {
			text.WriteString(ev.Choices[0].Delta.Content)
			if got, last := ev.Choices[0].FinishReason, i == 6; (got != nil) != last || last && *got != "length" {
				t.Errorf("event %d has the wrong finish reason", i+1)
			}
			if ev.Usage.Completion != i+1 {
				t.Errorf("event %d counts %d tokens", i+1, ev.Usage.Completion)
			}
		}
		if n := token.Count(text.String()); n != 7 {
			t.Errorf("%q has %d tokens, want 7", text.String(), n)
		}
		u := events[8].Usage
		if want := token.Count("What is the answer?"); len(events[8].Choices) != 0 || u.Prompt != want || u.Completion != 7 || u.Total != want+7 {
			t.Errorf("usage %+v, want %d + 7", u, want)
		}
	})
}

func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := simtest.Start(t, config(), small)
		for _, tt := range []struct {
			name, path, body string
			status           int
			want             string // regular expression
		}{
			{"health", "/health", "", 200, `^$`},
			{"models", "/v1/models", "", 200, `"id":"test/dense".*"max_model_len":32768.*"owned_by":"perflab-sim"`},
			{"version", "/version", "", 200, `"version":"perflab-sim vllm"`},
			{"tokenize", "/tokenize", `{"model":"test/dense","prompt":"one two three"}`, 200, `"count":3,"max_model_len":32768,"tokens":\[\d+,\d+,\d+\]`},
			{"ids that fit into 31 bits", "/tokenize", `{"prompt":"a"}`, 200, `"count":1,"max_model_len":32768,"tokens":\[1678518572\]`}, // FNV-1a gives 2^31 more
			{"chat", "/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"one two"}]}],"max_tokens":3}`, 200,
				`"finish_reason":"length".*"message":\{"content":"\w+ \w+ \w+","role":"assistant"\}.*"usage":\{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3\}`},
			{"text", "/v1/completions", `{"prompt":[1,2,3],"max_tokens":2}`, 200, `"object":"text_completion".*"prompt_tokens":3`},
			{"default length", "/v1/completions", `{"prompt":["one two"]}`, 200, `"finish_reason":"length".*"completion_tokens":16`},
			{"own end", "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}]}`, 200, `"finish_reason":"stop"`},
			{"wrong model", "/v1/completions", `{"model":"other","prompt":"x"}`, 404, "\"code\":404,\"message\":\"The model `other` does not exist.\",\"param\":null,\"type\":\"NotFoundError\""},
			{"bad JSON", "/v1/completions", `{"prompt":`, 400, `"type":"BadRequestError"`},
			{"bad prompt", "/v1/completions", `{"prompt":{"a":1}}`, 400, `list of token ids`},
			{"ids in a list", "/v1/completions", `{"prompt":[[1,2]],"max_tokens":2}`, 200, `"prompt_tokens":2`},
			{"wrong type", "/v1/completions", `{"prompt":"x","max_tokens":"many"}`, 400, `max_tokens must not be a JSON string`},
			{"least length", "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"min_tokens":900}`, 200, `"completion_tokens":900\b`},
			{"two texts", "/v1/completions", `{"prompt":["a","b"]}`, 400, `2 texts`},
			{"no messages", "/v1/chat/completions", `{}`, 400, `at least one message`},
			{"n", "/v1/completions", `{"prompt":"x","n":2}`, 400, `n must be 1`},
			{"too long", "/v1/completions", `{"prompt":"x","max_tokens":40000}`, 400, `'max_tokens' or 'max_completion_tokens' is too large: 40000`},
			{"nothing to do", "/v1/completions", `{"prompt":"x","max_tokens":0}`, 400, `max_tokens must be at least 1`},
			{"no such path", "/v2/x", "", 404, `not found`},
		} {
			var resp *http.Response
			if tt.body == "" {
				var err error
				if resp, err = e.Client.Get(e.URL + tt.path); err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if resp.Header.Get("X-Perflab-Simulated") != "1" {
					t.Errorf("%s: does not say that it is simulated", tt.name)
				}
			} else {
				resp = post(t, e, tt.path, tt.body)
			}
			if got := body(t, resp); resp.StatusCode != tt.status || !regexp.MustCompile(tt.want).MatchString(got) {
				t.Errorf("%s: %s %s\nwant %d %s", tt.name, resp.Status, got, tt.status, tt.want)
			}
		}
	})
}

func TestAliases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.ServedName, cfg.Aliases = "big", []string{"large"}
		e := simtest.Start(t, cfg, small)
		for name, want := range map[string]int{"big": 200, "large": 200, "test/dense": 404} {
			if resp := post(t, e, "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"x","max_tokens":1}`, name)); resp.StatusCode != want {
				t.Errorf("%s: %s, want %d", name, resp.Status, want)
			}
		}
		resp, err := e.Client.Get(e.URL + "/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := body(t, resp); !regexp.MustCompile(`"id":"big".*"id":"large"`).MatchString(got) {
			t.Errorf("models: %s", got)
		}
	})
}

// An engine with a key asks for it where the real one does.
func TestAPIKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for engine, want := range map[string]map[string]int{
			"vllm":   {"/health": 200, "/metrics": 200, "/version": 200, "/v1/models": 401},
			"sglang": {"/health": 200, "/metrics": 200, "/version": 401, "/v1/models": 401},
		} {
			cfg := config()
			cfg.Engine = engine
			e := simtest.Start(t, cfg, simtest.Options{Core: small.Core, Server: sim.ServerOptions{APIKey: "k"}})
			for path, status := range want {
				for _, key := range []string{"", "Bearer other", "Bearer k"} {
					req, err := http.NewRequestWithContext(t.Context(), "GET", e.URL+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Authorization", key)
					resp, err := e.Client.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					if want := status; key != "Bearer k" && resp.StatusCode != want || key == "Bearer k" && resp.StatusCode != 200 {
						t.Errorf("%s %s with %q: %s", engine, path, key, resp.Status)
					}
				}
			}
		}
	})
}

func TestReasoning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.Spec, cfg.SpecTokens = "mtp", 3 // chunks that hold both
		o := small
		o.Server.ReasoningParser = "qwen3"
		e := simtest.Start(t, cfg, o)
		ask := `{"messages":[{"role":"user","content":"Why?"}],"max_tokens":30`
		events, _, err := readStream(post(t, e, "/v1/chat/completions", ask+`,"stream":true}`).Body, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if len(events) >= 31 {
			t.Errorf("%d events: speculation puts no two tokens in one", len(events))
		}
		var reasoning, content string
		for _, ev := range events {
			reasoning += ev.Choices[0].Delta.Reasoning
			content += ev.Choices[0].Delta.Content
		}
		if r, c := token.Count(reasoning), token.Count(content); r != 10 || c != 20 {
			t.Errorf("%d tokens of reasoning and %d of content, want 10 and 20", r, c)
		}
		var whole struct {
			Choices []struct {
				Message struct{ Reasoning, Content string }
			}
		}
		if err := json.Unmarshal([]byte(body(t, post(t, e, "/v1/chat/completions", ask+"}"))), &whole); err != nil {
			t.Fatal(err)
		}
		if m := whole.Choices[0].Message; m.Reasoning != reasoning || m.Content != content {
			t.Error("the answer differs between the stream and the whole")
		}
	})
}

// served is what a client or a replay sees of an answer.
type served struct {
	Tokens []sim.Emit
	Cached int
}

// serve sends jobs with the prompts' texts through HTTP in real time (the
// bubble's), each when it arrives.
func serve(t *testing.T, cfg engine.Config, o sim.Options, jobs []sim.Job, texts []string) map[int]served {
	got := map[int]served{}
	synctest.Test(t, func(t *testing.T) {
		e := simtest.Start(t, cfg, simtest.Options{Core: o})
		zero := time.Now()
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, j := range jobs {
			time.Sleep(time.Until(zero.Add(j.Arrive)))
			wg.Go(func() {
				b, _ := json.Marshal(map[string]any{"prompt": texts[j.Index], "max_tokens": j.Output, "stream": true, "stream_options": map[string]bool{"include_usage": true}})
				events, done, err := readStream(post(t, e, "/v1/completions", string(b)).Body, zero)
				if err != nil || !done || len(events) < 2 {
					t.Errorf("job %d: %d events, done %v, %v", j.Index, len(events), done, err)
					return
				}
				var a served
				n := len(events) - 1
				for _, ev := range events[:n] {
					a.Tokens = append(a.Tokens, sim.Emit{At: ev.at, N: token.Count(ev.Choices[0].Text)})
				}
				a.Cached = events[n].Usage.Details.Cached
				mu.Lock()
				defer mu.Unlock()
				got[j.Index] = a
			})
		}
		wg.Wait()
		if behind := metric(t, e, "perflab_sim_behind_max_seconds"); behind != "0" {
			t.Errorf("the server was behind by %s s", behind)
		}
	})
	return got
}

// TestServerAgreesWithReplay: the same jobs through HTTP in real time and
// through the replay give the same events at the same nanoseconds, by every
// engine's policy, at once and over time, with prefixes shared and requests
// preempted. At once is a nanosecond apart: the order must be known.
func TestServerAgreesWithReplay(t *testing.T) {
	sglang, trtllm, mtp, narrow := config(), config(), config(), config()
	sglang.Engine, sglang.PrefillOnly, sglang.Block = "sglang", true, 1
	trtllm.Engine, trtllm.Reserve, trtllm.Block = "trtllm", true, 32
	mtp.Spec, mtp.SpecTokens = "mtp", 2
	narrow.Seqs, narrow.Batched, narrow.Prefix = 6, 256, false
	preemptions, cached := 0, 0
	for name, cfg := range map[string]engine.Config{
		"vllm": config(), "sglang": sglang, "trtllm": trtllm, "mtp": mtp, "narrow": narrow,
		"vllm 2:2": apart(config(), 2, 2), "sglang 1:2": apart(sglang, 1, 2), "narrow 2:1": apart(narrow, 2, 1),
	} {
		for _, gap := range []time.Duration{1, 7 * time.Millisecond, 60 * time.Millisecond} {
			texts, jobs := make([]string, 40), make([]sim.Job, 40)
			for i := range texts {
				texts[i] = strings.Repeat(token.Word(i%5), 150) + strings.Repeat(token.Word(i)+token.Word(i/2), 20+37*i%300)
				jobs[i] = sim.Job{Index: i, Arrive: time.Duration(i) * gap, Prompt: token.Append(nil, texts[i]), Output: 5 + 13*i%90}
			}
			o := sim.ReplayOptions{KVTokens: 4000, Seed: 3, Stats: func(_ int, s sim.Stats) { preemptions += s.Preemptions }}
			out, err := sim.Replay(cfg, 1, slices.Values(jobs), o)
			if err != nil {
				t.Fatal(err)
			}
			want := map[int]served{}
			for o := range out {
				want[o.Index] = served{o.Tokens, o.Cached}
				cached += o.Cached
			}
			got := serve(t, cfg, sim.Options{KVTokens: o.KVTokens, Seed: o.Seed}, jobs, texts)
			if !reflect.DeepEqual(want, got) {
				t.Errorf("%s, %v apart: replay (-) and server (+) differ:\n%s", name, gap, cmp.Diff(want, got))
			}
		}
	}
	if preemptions == 0 || cached == 0 {
		t.Errorf("%d preemptions, %d cached tokens", preemptions, cached)
	}
}

func TestStartUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := small
		o.Server.StartupDelay, o.Server.Log = time.Minute, &log
		e := simtest.Start(t, config(), o)
		status := func(path string) int {
			resp, err := e.Client.Get(e.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return resp.StatusCode
		}
		time.Sleep(time.Minute - time.Nanosecond)
		if h, m := status("/health"), status("/v1/models"); h != 503 || m != 503 {
			t.Errorf("while loading: /health %d, /v1/models %d", h, m)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := status("/health"); got != 200 {
			t.Errorf("after loading: /health %d", got)
		}
		if first, _, _ := strings.Cut(log.String(), "\n"); first != "SIMULATED engine, no GPU is used" {
			t.Errorf("the log begins with %q", first)
		}
	})
}

func TestDisconnectCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := simtest.Start(t, config(), small)
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "POST", e.URL+"/v1/completions", strings.NewReader(`{"prompt":"x","max_tokens":10000,"stream":true}`))
		resp, err := e.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		time.Sleep(time.Second)
		if got := metric(t, e, "vllm:num_requests_running"); got != "1" {
			t.Errorf("%s running before", got)
		}
		cancel()
		synctest.Wait()
		if got := metric(t, e, "vllm:num_requests_running"); got != "0" {
			t.Errorf("%s running after", got)
		}
		if got := metric(t, e, "vllm:kv_cache_usage_perc"); got != "0" {
			t.Errorf("%s of the cache held after", got)
		}
	})
}

func TestEngineDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := simtest.Start(t, config(), small)
		resp := post(t, e, "/v1/completions", `{"prompt":"x","max_tokens":10000,"stream":true}`)
		time.Sleep(time.Second)
		e.Kill()
		if _, done, err := readStream(resp.Body, time.Now()); err == nil || done {
			t.Errorf("the stream of a dead engine ends with done %v, error %v", done, err)
		}
	})
}

func metric(t *testing.T, e *simtest.Engine, name string) string {
	t.Helper()
	resp, err := e.Client.Get(e.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for line := range strings.Lines(body(t, resp)) {
		if rest, ok := strings.CutPrefix(line, name+"{"); ok {
			return strings.TrimSpace(rest[strings.LastIndex(rest, "}")+1:])
		}
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "absent"
}

func TestMetrics(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"vllm": {"vllm:prompt_tokens_total": "2", "vllm:generation_tokens_total": "5", "vllm:request_success_total": "1", "vllm:num_requests_running": "0",
			"vllm:time_to_first_token_seconds_count": "1", "vllm:inter_token_latency_seconds_count": "4", "vllm:e2e_request_latency_seconds_count": "1",
			"vllm:cache_config_info": "1", "perflab_sim_behind_seconds": "0", "vllm:spec_decode_num_drafts_total": "absent"},
		"sglang": {"sglang:generation_tokens_total": "5", "sglang:num_queue_reqs": "0", "sglang:token_usage": "0", "vllm:num_requests_running": "absent"},
		"trtllm": {"trtllm_request_success_total": "1", "trtllm_kv_cache_utilization": "0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config()
			cfg.Engine = name
			e := simtest.Start(t, cfg, small)
			body(t, post(t, e, "/v1/completions", `{"prompt":"one two","max_tokens":5}`))
			for _, key := range slices.Sorted(maps.Keys(want)) {
				if got := metric(t, e, key); got != want[key] {
					t.Errorf("%s: %s is %s, want %s", name, key, got, want[key])
				}
			}
		})
	}
}

// TestTierMetrics: what the host had is counted under each engine's own names, and read from there, also
// where nothing but a fetch was under way.
func TestTierMetrics(t *testing.T) {
	for name, fetch := range map[string]engine.Fetch{"vllm": engine.FetchAside, "sglang": engine.FetchLayers, "trtllm": engine.FetchBefore} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config()
			cfg.Engine, cfg.PrefillOnly, cfg.PrefillTokens = name, name == "sglang", 16384
			cfg.Tiers = []engine.Tier{{Name: engine.HostTier, Bytes: 1 << 30, GBs: 64, Fetch: fetch, WriteBack: name == "trtllm", Moves: name == "trtllm"}}
			e := simtest.Start(t, cfg, simtest.Options{Core: sim.Options{KVTokens: 400}})
			for _, word := range []string{"one ", "two ", "one "} {
				resp := post(t, e, "/v1/completions", `{"prompt":"`+strings.Repeat(word, 320)+`","max_tokens":2}`)
				if text := body(t, resp); !strings.Contains(text, `"completion_tokens":2`) {
					t.Fatal(text)
				}
			}
			resp, err := e.Client.Get(e.URL + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			eng, err := engine.ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			common := meters.Common(eng, prometheus.Parse(body(t, resp), nil))
			want := map[string]float64{
				"vllm": common["host_hits"], "sglang": common["host_hits"], "trtllm": common["prefix_share"],
			}[name]
			if least := map[bool]float64{true: 0.2, false: 200}[name == "trtllm"]; want < least || name == "vllm" && (common["prefix_hits"] >= 200 || common["host_queries"] < 700) ||
				name == "sglang" && common["prefix_hits"] < common["host_hits"] {
				t.Errorf("%s: %v", name, common)
			}
		})
	}
}

// The catalogue knows the page for its engine's, and finds in it what every engine
// publishes.
func TestMetricsOfTheCatalogue(t *testing.T) {
	for _, eng := range engine.All() {
		if eng.MeasuredOnly {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			cfg := config()
			cfg.Engine = eng.Name
			e := simtest.Start(t, cfg, small)
			resp, err := e.Client.Get(e.URL + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			samples := prometheus.Parse(body(t, resp), nil)
			if of, ok := meters.EngineOf(samples); !ok || of != eng {
				t.Errorf("the page of %s is taken for another's", eng.Name)
			}
			common := meters.Common(eng, samples)
			for _, name := range []string{"running", "waiting", "kv_usage", "finished"} {
				if v, ok := common[name]; !ok || v != 0 {
					t.Errorf("%s: %s is %v, %v at the start", eng.Name, name, v, ok)
				}
			}
		})
	}
}

// A thousand streams at once: every one whole, the metrics in order, and the
// status line printed.
func TestThousandStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		slow, err := sim.Priors().With(sim.Set{Values: map[string]float64{"f_req": 12}}) // longer than a status line is apart
		if err != nil {
			t.Fatal(err)
		}
		o := simtest.Options{Core: sim.Options{KVTokens: 1_000_000, Constants: slow}, Server: sim.ServerOptions{Log: &log}}
		cfg := config()
		cfg.Seqs = 1024
		e := simtest.Start(t, cfg, o)
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				resp := post(t, e, "/v1/completions", fmt.Sprintf(`{"prompt":"%d","max_tokens":4,"stream":true}`, i))
				events, done, err := readStream(resp.Body, time.Now())
				if err != nil || !done || len(events) != 4 {
					t.Errorf("stream %d: %d events, done %v, %v", i, len(events), done, err)
				}
			})
		}
		wg.Wait()
		if got := metric(t, e, "perflab_sim_behind_max_seconds"); got != "0" {
			t.Errorf("behind by %s s in a bubble", got)
		}
		if !strings.Contains(log.String(), "Avg generation throughput") {
			t.Errorf("no status line in the log:\n%s", log.String())
		}
	})
}

// TestGroupServes: a group answers at one address, counts each request once, and gives
// room back in both pools when a client goes.
func TestGroupServes(t *testing.T) {
	for _, name := range []string{"vllm", "sglang"} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config()
			if cfg.Engine = name; name == "sglang" {
				cfg.PrefillOnly, cfg.Block = true, 1
			}
			var log bytes.Buffer
			o := small
			o.Server.Log = &log
			e := simtest.Start(t, apart(cfg, 2, 1), o)
			body(t, post(t, e, "/v1/completions", `{"prompt":"one two","max_tokens":5}`))
			ctx, cancel := context.WithCancel(t.Context())
			for range 3 {
				req, _ := http.NewRequestWithContext(ctx, "POST", e.URL+"/v1/completions", strings.NewReader(`{"prompt":"x y z","max_tokens":10000,"stream":true}`))
				resp, err := e.Client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
			}
			time.Sleep(time.Second)
			want := map[string]string{
				"vllm:num_requests_running": "3", "vllm:num_requests_waiting": "0", "vllm:prompt_tokens_total": "11", "vllm:request_success_total": "1",
				`perflab_sim_pool_running{pool="prefill"}`: "0", `perflab_sim_pool_running{pool="decode"}`: "3", "perflab_sim_kv_transfer_total": "4",
			}
			if name == "sglang" {
				want = map[string]string{"sglang:num_running_reqs": "3", "sglang:num_queue_reqs": "0", "sglang:prompt_tokens_total": "11", "perflab_sim_kv_transfer_total": "4"}
			}
			page := func() string { return body(t, get(t, e, "/metrics")) }
			before := page()
			for metric, value := range want {
				if !regexp.MustCompile(regexp.QuoteMeta(metric) + `(\{[^}]*\})? ` + value + "\n").MatchString(before) {
					t.Errorf("%s: no %s of %s in\n%s", name, metric, value, before)
				}
			}
			cancel()
			synctest.Wait()
			time.Sleep(time.Second)
			for _, pool := range []string{"prefill", "decode"} {
				for _, gauge := range []string{"running", "waiting", "kv_usage"} {
					if line := fmt.Sprintf("perflab_sim_pool_%s{pool=%q} 0\n", gauge, pool); !strings.Contains(page(), line) {
						t.Errorf("%s: no %s after all clients have gone", name, line)
					}
				}
			}
			if n := strings.Count(log.String(), "Application startup complete"); n != 2 {
				t.Errorf("%s: %d engines start in the log:\n%s", name, n, log.String())
			}
		})
	}
}

func get(t *testing.T, e *simtest.Engine, path string) *http.Response {
	t.Helper()
	resp, err := e.Client.Get(e.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}
