package truth_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"perflab/internal/interop"
	"perflab/internal/result"
	"perflab/internal/stat"
	"perflab/internal/truth"
)

// peersDir is the environment variable that names the directory which
// scripts/peers.sh made: an environment of its own for each client, and a
// tokenizer for all.
const peersDir = "PERFLAB_PEERS"

// peerCalls are the requests of a load on a peer.
const peerCalls = 1000

// peer is a load generator as its users start it.
type peer struct {
	name   string
	result string   // the file that it writes, in its working directory
	env    []string // beyond this process's
	args   func(p place) []string
}

// place is what a peer is told.
type place struct {
	root, url, tokens string
	burst             bool // all requests at once; else 1,000/s, Poisson
}

// rate is the way of vLLM, SGLang and perflab to say when requests are sent.
func (p place) rate() string {
	if p.burst {
		return "inf"
	}
	return strconv.Itoa(peerCalls)
}

// vllm are the flags of vllm bench serve, which perflab has too.
func (p place) vllm(bin ...string) []string {
	return append(bin, "bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--base-url", p.url, "--model", truth.Model,
		"--tokenizer", p.tokenizer(), "--dataset-name", "random", "--random-input-len", "32", "--random-output-len", p.tokens,
		"--num-prompts", strconv.Itoa(peerCalls), "--request-rate", p.rate(), "--percentile-metrics", "ttft,tpot,itl,e2el",
		"--save-result", "--result-dir", ".", "--result-filename", "vllm.json", "--disable-tqdm")
}

func (p place) sglang(module string) []string {
	return []string{filepath.Join(p.root, "sglang/bin/python"), "-m", module, "--backend", "vllm-chat", "--base-url", p.url, "--model", truth.Model,
		"--tokenizer", p.tokenizer(), "--dataset-name", "random-ids", "--random-input-len", "32", "--random-output-len", p.tokens,
		"--random-range-ratio", "1", "--num-prompts", strconv.Itoa(peerCalls), "--request-rate", p.rate(), "--warmup-requests", "0",
		"--output-file", "sglang.jsonl", "--disable-tqdm"}
}

func (p place) tokenizer() string { return filepath.Join(p.root, "tokenizer") }

// peers are the clients. None warms up: the server would count it.
var peers = []peer{
	{"perflab", "run/summary.json", nil, func(p place) []string {
		return []string{filepath.Join(p.root, "perflab"), "bench", "--base-url", p.url, "--model", truth.Model, "--random-input-len", "32",
			"--random-output-len", p.tokens, "--num-prompts", strconv.Itoa(peerCalls), "--num-warmups", "0", "--request-rate", p.rate(), "--out", "run"}
	}},
	{"vllm-rust", "vllm.json", nil, func(p place) []string {
		bin, _ := filepath.Glob(filepath.Join(p.root, "vllm/lib/python3*/site-packages/vllm/vllm-rs")) // a pattern without fault
		return p.vllm(bin...)
	}},
	{"vllm-python", "vllm.json", []string{"HF_HUB_OFFLINE=1"}, func(p place) []string {
		return p.vllm(filepath.Join(p.root, "vllm/bin/vllm"))
	}},
	{"sglang-rust", "sglang.jsonl", nil, func(p place) []string { return p.sglang("sglang.benchmark.rust_client") }},
	{"sglang-python", "sglang.jsonl", []string{"HF_HUB_OFFLINE=1"}, func(p place) []string { return p.sglang("sglang.bench_serving") }},
	{"guidellm", "guidellm.json", []string{"HF_HUB_OFFLINE=1", "GUIDELLM__MAX_WORKER_PROCESSES=1"}, func(p place) []string {
		profile := "kind=poisson,rate=" + strconv.Itoa(peerCalls)
		if p.burst {
			profile = "kind=throughput,max_concurrency=" + strconv.Itoa(peerCalls)
		}
		return []string{filepath.Join(p.root, "guidellm/bin/guidellm"), "run", "--disable-console",
			"--backend", "kind=openai_http,target=" + p.url + ",request_format=/v1/chat/completions,model=" + truth.Model,
			"--profile", profile, "--constraint", "kind=max_requests,count=" + strconv.Itoa(peerCalls),
			"--tokenizer", "kind=hf_auto,model=" + p.tokenizer(), "--data", "kind=synthetic_text,prompt_tokens=32,output_tokens=" + p.tokens,
			"--output", "kind=json,path=guidellm.json"}
	}},
	{"aiperf", "out/profile_export_aiperf.json", nil, func(p place) []string {
		load := []string{"--request-rate", strconv.Itoa(peerCalls), "--arrival-pattern", "poisson"}
		if p.burst {
			load = []string{"--concurrency", strconv.Itoa(peerCalls)}
		}
		return append([]string{filepath.Join(p.root, "aiperf/bin/aiperf"), "profile", "-m", truth.Model, "-u", p.url, "--endpoint-type", "chat",
			"--streaming", "--tokenizer", p.tokenizer(), "--use-server-token-count", "--request-count", strconv.Itoa(peerCalls), "--isl", "32",
			"--osl", p.tokens, "--artifact-dir", "out", "--ui", "none", "--no-gpu-telemetry", "--no-server-metrics", "--export-level", "summary"}, load...)
	}},
}

// BenchmarkPeers holds the figures that load generators print against what the
// server knows, each on the client's CPU alone: 1,000 streams of 50 tok/s,
// started over a second (even) or at once (burst). Errors are the client's
// figure less the truth; start-s is the time to its first request. From at most
// half a second before that to the end, summary included, are the CPU time of
// all its processes (us/event) and what others took (foreign-%, stolen-%). With
// -benchtime 1x and -count each run is a line, with what disturbed it.
func BenchmarkPeers(b *testing.B) {
	root, err := filepath.Abs(os.Getenv(peersDir))
	if os.Getenv(peersDir) == "" || err != nil {
		b.Skip("the other clients are not here: scripts/peers.sh DIR installs them, and " + peersDir + "=DIR names them")
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(root, "perflab"), "perflab/cmd/perflab").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	params := truth.Params{TTFT: 50 * time.Millisecond, ITL: 20 * time.Millisecond, Tokens: 150, NoRole: true}
	for _, p := range peers {
		for _, load := range []string{"even", "burst"} {
			b.Run(p.name+"/"+load, func(b *testing.B) {
				h := newBench(b)
				m := medians{}
				for b.Loop() {
					h.peer(b, m, p, params, place{root, h.server.URL, strconv.Itoa(params.Tokens), load == "burst"})
				}
				m.report(b)
			})
		}
	}
}

// peer runs one and adds its figures.
func (h *bench) peer(b *testing.B, m medians, p peer, params truth.Params, at place) {
	b.Helper()
	if err := h.server.Set(b.Context(), params); err != nil {
		b.Fatal(err)
	}
	args := p.args(at)
	if _, err := os.Stat(args[0]); err != nil {
		b.Skipf("%s is not here: %v", p.name, err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = b.TempDir(), append(os.Environ(), p.env...)
	begun := time.Now()
	out := h.run(b, cmd)
	t, err := h.server.Truth(b.Context(), true)
	if err != nil {
		b.Fatal(err)
	}
	s, err := peerFigures(filepath.Join(cmd.Dir, p.result))
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	if n, _ := s.Get("completed"); n != peerCalls || len(t.Requests) != peerCalls {
		b.Fatalf("%v of %d calls succeeded, and the server had %d: %s", n, peerCalls, len(t.Requests), out)
	}
	errorsOf(m, s, t)
	first := time.Unix(0, t.Requests[0].Received)
	cpu, foreign, stolen := h.used(first)
	m.add("us/event", perEvent(cpu, peerCalls*params.Tokens))
	m.add("MB-peak", float64(h.peak)/(1<<20))
	m.add("start-s", first.Sub(begun).Seconds())
	m.add("server-late-p99-ms", t.LateP99.Seconds()*1e3)
	m.add("foreign-%", 100*foreign)
	m.add("stolen-%", 100*stolen)
}

// peerFigures reads the file of any client.
func peerFigures(path string) (s result.Summary, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if filepath.Base(path) == "summary.json" {
		return s, json.Unmarshal(data, &s)
	}
	f := interop.Read(path, data)
	if len(f.Runs) != 1 {
		return s, fmt.Errorf("%s holds %d results, not one: %v", path, len(f.Runs), f.Faults)
	}
	return f.Runs[0].Summary()
}

// errorsOf adds what a client's figures are off. A P99 over one mean gap a call
// hides every stall, and has a name of its own.
func errorsOf(m medians, s result.Summary, t truth.Truth) {
	var ttft, e2e, gaps []float64
	first, last, tokens := t.Requests[0].Received, int64(0), 0
	for _, q := range t.Requests {
		ttft = append(ttft, float64(q.First-q.Received)/1e6)
		e2e = append(e2e, float64(q.Last-q.Received)/1e6)
		for k := 1; k < len(q.Sends); k++ {
			gaps = append(gaps, float64(q.Sends[k]-q.Sends[k-1])/1e6)
		}
		first, last, tokens = min(first, q.Received), max(last, q.Last), tokens+q.Events
	}
	slices.Sort(gaps)
	itl := "itl-p99-error-ms"
	if d := s.Definition("itl"); d == result.DecodePerToken || d == result.DecodePerTokenWeighted {
		itl = "itl-of-calls-p99-error-ms"
	}
	throughput := float64(tokens) / (float64(last-first) / 1e9)
	for _, f := range []struct {
		name, as    string
		truth, unit float64
	}{
		{"mean_ttft_ms", "ttft-error-ms", stat.Mean(ttft), 1},
		{"mean_ttft_due_ms", "ttft-due-error-ms", stat.Mean(ttft), 1},
		{"p99_itl_ms", itl, stat.Quantile(gaps, 0.99), 1},
		{"mean_e2el_ms", "e2e-error-ms", stat.Mean(e2e), 1},
		{"output_throughput", "tok/s-error-%", throughput, throughput / 100},
	} {
		if v, ok := s.Get(f.name); ok {
			m.add(f.as, (v-f.truth)/f.unit)
		}
	}
}

// TestPeerErrors: the file of a client is held against the truth, in the units
// of the table, and a figure that hides stalls is under a name of its own.
func TestPeerErrors(t *testing.T) {
	const ms = int64(time.Millisecond)
	known := truth.Truth{Requests: []truth.Request{ // TTFT 50 and 70 ms, E2E 90 and 110, gaps of 20
		{Received: 1000 * ms, First: 1050 * ms, Last: 1090 * ms, Events: 3, Sends: []int64{1050 * ms, 1070 * ms, 1090 * ms}},
		{Received: 1090 * ms, First: 1160 * ms, Last: 1200 * ms, Events: 3, Sends: []int64{1160 * ms, 1180 * ms, 1200 * ms}},
	}}
	for _, tt := range []struct {
		file, text string
		want       map[string]float64
	}{
		{"vllm.json", `{"date":"20261123-034602","backend":"openai-chat","model_id":"m","tokenizer_id":"t","num_prompts":2,"request_rate":"inf",
			"duration":0.2,"completed":2,"total_input_tokens":64,"total_output_tokens":6,"request_throughput":10.0,"output_throughput":33.0,
			"total_token_throughput":350.0,"mean_ttft_ms":61.5,"p99_itl_ms":22.25,"mean_e2el_ms":99.0}`,
			map[string]float64{"ttft-error-ms": 1.5, "itl-p99-error-ms": 2.25, "e2e-error-ms": -1, "tok/s-error-%": 10}},
		{"profile_export_aiperf.json", `{"schema_version":"1.4","aiperf_version":"0.13.0","input_config":{},"request_count":{"unit":"requests","avg":2},
			"time_to_first_token":{"unit":"ms","avg":61.5},"inter_token_latency":{"unit":"ms","avg":20.0,"p99":20.5},
			"request_latency":{"unit":"ms","avg":99.0},"output_token_throughput":{"unit":"tokens/sec","avg":27.0}}`,
			map[string]float64{"ttft-error-ms": 1.5, "itl-of-calls-p99-error-ms": 0.5, "e2e-error-ms": -1, "tok/s-error-%": -10}},
		{"summary.json", `{"mean_ttft_ms":60.5,"mean_ttft_due_ms":62,"p99_itl_ms":20,"mean_e2el_ms":100,"output_throughput":30}`,
			map[string]float64{"ttft-error-ms": 0.5, "ttft-due-error-ms": 2, "itl-p99-error-ms": 0, "e2e-error-ms": 0, "tok/s-error-%": 0}},
	} {
		path := filepath.Join(t.TempDir(), tt.file)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := peerFigures(path)
		if err != nil {
			t.Fatal(err)
		}
		got := medians{}
		errorsOf(got, s, known)
		for name, want := range tt.want {
			if v := got[name]; len(v) != 1 || math.Abs(v[0]-want) > 1e-9 {
				t.Errorf("%s: %s = %v, want %v", tt.file, name, v, want)
			}
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", tt.file, got, tt.want)
		}
	}
	path := filepath.Join(t.TempDir(), "vllm.json")
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := peerFigures(path); err == nil {
		t.Errorf("a file without a result gives %v", s.Figures)
	}
}
