package engine

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/arch"
)

// recorded is a text of a real llama-server, of the build that version.txt names.
func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "llamacpp", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func llamaEngine(t *testing.T) *Engine {
	t.Helper()
	e, err := ByName("llamacpp")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func llamaCommand(t *testing.T, line string) Command {
	t.Helper()
	c, err := Parse(strings.Fields(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return c
}

// The parser's words are the real one's.
func TestLlamacppUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-m m.gguf --max-num-seqs 4":               "refused-flag.log",
		"-m m.gguf -np four":                       "refused-value.log",
		"-m m.gguf -ctk q3":                        "refused-cache-type.log",
		"-m m.gguf -fa maybe":                      "refused-flash.log",
		"-m m.gguf -np 0":                          "refused-slots-0.log",
		"-m m.gguf -c":                             "refused-no-value.log",
		"-m m.gguf --ctx-size=4096":                "error: invalid argument: --ctx-size=4096",
		"-m m.gguf stray":                          "error: invalid argument: stray",
		"-m m.gguf -t4":                            "error: invalid argument: -t4",
		"-m m.gguf -c -np":                         `error while handling argument "-c": stoi`,
		"-m m.gguf -c 99999999999":                 `error while handling argument "-c": stoi`,
		"-m m.gguf --split_mode sideways":          `error while handling argument "--split-mode": invalid value`,
		"-m m.gguf --rope-scale wide":              `error while handling argument "--rope-scale": stof`,
		"-m m.gguf --control-vector-layer-range 1": `error while handling argument "--control-vector-layer-range": expected value for argument`,
	} {
		if strings.HasSuffix(want, ".log") {
			want, _, _ = strings.Cut(recorded(t, want), "\n")
		}
		_, err := Parse(append([]string{"llama-server"}, strings.Fields(args)...))
		u, ok := errors.AsType[*UsageError](err)
		if !ok || u.Exit != 1 || u.Text != want || u.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	for args, want := range map[string]string{
		"":                         "names no model",
		"-m m.gguf -c 32k":         "llama-server reads 32, without the rest",
		"-hf user/m.gguf":          "is taken for a file",
		"-m m.gguf --port 99999":   "99999 is not a port",
		"-c 4096 --models-dir dir": "names no model",
	} {
		if _, err := Parse(append([]string{"llama-server"}, strings.Fields(args)...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	_, err := Parse([]string{"./build/bin/llama-server", "-h"})
	if u, ok := errors.AsType[*UsageError](err); !ok || u.Exit != 0 || !strings.Contains(u.Text, "\n  --ctx-size") {
		t.Errorf("help: %v", err)
	}
}

var llamaLines = []struct {
	line string
	want Command
}{
	{"llama-server -m models/m.gguf -np 8 -b 1024 -ub 256 -t 2 -tb 4 -c 8192 -fa on -ngl 0 --no-cache-prompt",
		Command{Engine: "llamacpp", Model: "models/m.gguf", Params: params{MaxNumSeqs: "8", MaxBatched: "1024", MicroBatch: "256", Threads: "2", ThreadsBatch: "4",
			ContextSize: "8192", FlashAttention: "on", GPULayers: "0", PrefixCaching: "false"}}},
	{"/opt/bin/llama-server --model m.gguf --parallel -1 --ubatch_size +64 --flash-attn 1 --host 0.0.0.0 --port 9 --metrics",
		Command{Engine: "llamacpp", Model: "m.gguf", Host: "0.0.0.0", Port: 9, Params: params{MaxNumSeqs: "-1", MicroBatch: "64", FlashAttention: "on"}, Extra: []string{"--metrics"}}},
	{"LLAMA_ARG_NUMA=isolate llama-server -hf user/repo:Q4_K_M -ctk q8_0 -ctv q8_0 -hff file",
		Command{Engine: "llamacpp", Model: "user/repo:Q4_K_M", Env: []string{"LLAMA_ARG_NUMA=isolate"}, Params: params{KVDtype: "q8_0"}, Extra: []string{"-hff", "file"}}},
	{"llama-server -m plain -ctk q8_0 -ctv f16 --no-warmup --keep -1 --override-kv a=int:1 --control-vector-layer-range 1 4",
		Command{Engine: "llamacpp", Model: "./plain", Extra: []string{"--no-warmup", "--keep", "-1", "--override-kv", "a=int:1", "--control-vector-layer-range", "1", "4",
			"--cache-type-k", "q8_0", "--cache-type-v", "f16"}}},
	{"llama-server -m m.gguf --spec-type draft-simple -md d.gguf --spec-draft-n-max 4",
		Command{Engine: "llamacpp", Model: "m.gguf", Params: params{Speculative: "draft_model:4:d.gguf"}}},
	{"llama-server -m m.gguf --spec-type draft-eagle3 -hfd user/draft",
		Command{Engine: "llamacpp", Model: "m.gguf", Params: params{Speculative: "eagle3:auto:user/draft"}}},
	{"llama-server -m m.gguf --spec-type ngram-simple --spec-ngram-simple-size-m 16",
		Command{Engine: "llamacpp", Model: "m.gguf", Params: params{Speculative: "ngram:16"}}},
	{"llama-server -m m.gguf --spec-type ngram-simple --spec-type ngram-cache",
		Command{Engine: "llamacpp", Model: "m.gguf", Extra: []string{"--spec-type", "ngram-simple,ngram-cache"}}},
	{"llama-server -m m.gguf --spec-type draft-mtp --spec-draft-n-max 0 -md d",
		Command{Engine: "llamacpp", Model: "m.gguf", Extra: []string{"--spec-type", "draft-mtp", "--model-draft", "d", "--spec-draft-n-max", "0"}}},
}

func TestLlamacppParse(t *testing.T) {
	for _, tt := range llamaLines {
		c := llamaCommand(t, tt.line)
		if d := cmp.Diff(tt.want, c); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, d)
		}
		again, err := Parse(append(append([]string{}, c.Env...), c.Argv()...))
		again.Host, again.Port = c.Host, c.Port
		if d := cmp.Diff(c, again); err != nil || d != "" {
			t.Errorf("%s -> %q: %v\n%s", tt.line, c.Argv(), err, d)
		}
	}
}

func TestLlamacppNew(t *testing.T) {
	for _, tt := range []struct {
		params params
		extra  []string
		want   string
	}{
		{nil, nil, "llama-server -m m.gguf --metrics"},
		{nil, []string{"--metrics", "-lv", "4"}, "llama-server -m m.gguf --metrics -lv 4"},
		{params{TP: "1", MaxNumSeqs: "4", MaxBatched: "2048", MicroBatch: "512", FlashAttention: "auto", KVDtype: "f16", PrefixCaching: "true"}, nil, "llama-server -m m.gguf -np 4 --metrics"},
		{params{KVDtype: "q8_0", Threads: "2", ThreadsBatch: "2", GPULayers: "all"}, nil, "llama-server -m m.gguf -t 2 -tb 2 -ctk q8_0 -ctv q8_0 -ngl all --metrics"},
		{params{KVDtype: "auto"}, nil, "llama-server -m m.gguf -ctk f16 -ctv f16 --metrics"},
		{params{MaxModelLen: "1024", MaxNumSeqs: "8"}, nil, "llama-server -m m.gguf -np 8 -c 8192 --metrics"},
		{params{MaxModelLen: "1024"}, nil, "llama-server -m m.gguf -c 4096 --metrics"},
		{params{ContextSize: "8192", PrefixCaching: "false"}, []string{"--threads", "3"}, "llama-server -m m.gguf -c 8192 -t 3 --no-cache-prompt --metrics"},
		{params{Speculative: "draft_model:4:d.gguf"}, nil, "llama-server -m m.gguf --spec-type draft-simple -md d.gguf --spec-draft-n-max 4 --metrics"},
		{params{Speculative: "mtp:2"}, nil, "llama-server -m m.gguf --spec-type draft-mtp --spec-draft-n-max 2 --metrics"},
	} {
		c, err := New("llamacpp", "m.gguf", tt.params, tt.extra)
		if err != nil || c.String() != tt.want {
			t.Errorf("%v:\n got %s, %v\nwant %s", tt.params, c, err, tt.want)
		}
	}
	if c, err := New("llamacpp", "user/repo", nil, nil); err != nil || c.String() != "llama-server -hf user/repo --metrics" {
		t.Errorf("%s, %v", c, err)
	}
	for _, tt := range []struct {
		engine string
		params params
		want   string
	}{
		{"llamacpp", params{TP: "2"}, "llama.cpp has no setting for tp=2: leave it out"},
		{"llamacpp", params{BlockSize: "16"}, "llama.cpp has no setting for block_size=16: leave it out"},
		{"llamacpp", params{MaxModelLen: "1024", ContextSize: "4096"}, "max_model_len=1024 and context_size=4096 both set"},
		{"llamacpp", params{Speculative: "medusa:2"}, "llama.cpp has no speculation medusa:2"},
		{"vllm", params{Threads: "2"}, "vLLM has no setting for threads=2: leave it out"},
		{"sglang", params{MicroBatch: "128"}, "SGLang has no setting for micro_batch=128: leave it out"},
	} {
		_, err := New(tt.engine, "m.gguf", tt.params, nil)
		r, ok := errors.AsType[*Rejection](err)
		if !ok || !strings.HasPrefix(r.Reason, tt.want) {
			t.Errorf("%s %v: %v, want a rejection: %s", tt.engine, tt.params, err, tt.want)
		}
	}
}

// Every option of the real server's help is in the catalogue, and takes a value there
// if and only if it does here.
func TestLlamacppFlags(t *testing.T) {
	table, seen := flagTables()["llamacpp"], 0
	name := regexp.MustCompile(`^-\S+?(?:,|$)`)
	for line := range strings.Lines(recorded(t, "help.txt")) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "-----") {
			continue
		}
		value := false
		var names []string
		for i, w := range words {
			if i > 0 && !strings.HasSuffix(words[i-1], ",") { // the name of the value
				value = true
				break
			}
			if !name.MatchString(w) {
				t.Fatalf("line %q", line)
			}
			names = append(names, strings.TrimSuffix(w, ","))
		}
		for _, n := range names {
			ref, ok := table[n]
			if !ok || (ref.def.Kind != Bool) != value || ref.def != table[names[0]].def {
				t.Errorf("%s: known %v, with a value %v in the help", n, ok, value)
			}
			if off := strings.HasPrefix(n, "--no-") && n != "--no-host"; ok && ref.off != off && strings.HasPrefix(n, "--") {
				t.Errorf("%s: says false %v", n, ref.off)
			}
			seen++
		}
	}
	if seen < 400 {
		t.Errorf("%d spellings in the help", seen)
	}
}

func TestLlamacppCheck(t *testing.T) {
	for line, want := range map[string]struct{ rule, reason string }{
		"-np 300":                              {"slots", "max_num_seqs 300 is more than the 256 slots"},
		"-b 0":                                 {"value", "max_num_batched_tokens=0: use a value of at least 1"},
		"-ub -1":                               {"value", "micro_batch=-1: use a value of at least 1"},
		"-c -5":                                {"value", "context_size=-5: use a value of at least 0"},
		"-ctk q8_0 -ctv q8_0 -fa off":          {"kv-dtype", "a cache of values in q8_0 needs flash attention"},
		"-ctv iq4_nl -fa 0":                    {"kv-dtype", "a cache of values in iq4_nl"},
		"--spec-type draft-simple":             {"draft", "speculative draft_model:auto needs a draft model"},
		"-ctk q8_0 -fa off":                    {},
		"-ctk q8_0 -ctv q8_0":                  {},
		"-ctk bf16 -ctv bf16 -fa off":          {},
		"-b 64 -ub 512 -t 500 -np 256":         {},
		"--spec-type draft-mtp":                {},
		"--spec-type draft-simple -md d.gguf ": {},
	} {
		c := llamaCommand(t, "llama-server -m m.gguf "+line)
		r := c.Check()
		if want.rule == "" {
			if r != nil {
				t.Errorf("%s: %v", line, r)
			}
			continue
		}
		if r == nil || r.Rule != want.rule || !strings.Contains(r.Reason, want.reason) {
			t.Errorf("%s: %+v, want %+v", line, r, want)
			continue
		}
		if !wayOut.MatchString(r.Reason) {
			t.Errorf("%s: %q does not say what to do", line, r.Reason)
		}
		if got, ok := RefusalOf(llamaEngine(t).Name, "0.00.000.001 E "+r.Log+"\n"); !ok || got != r.Log {
			t.Errorf("%s: its log %q is not found", line, r.Log)
		}
		if _, err := c.Outline(arch.Model{}, arch.Accelerator{}, 1); !errors.Is(err, error(r)) {
			if o, ok := errors.AsType[*Rejection](err); !ok || *o != *r {
				t.Errorf("%s: outlined: %v", line, err)
			}
		}
	}
}

// The context of a slot, as real servers printed it.
func TestSlotContext(t *testing.T) {
	if !strings.Contains(recorded(t, "start.log"), "n_slots = 4, n_ctx_slot = 1024, kv_unified = 'false'") {
		t.Fatal("start.log is of another command")
	}
	for line, want := range map[string]int{
		"-np 4 -c 4096":                      1024, // start.log
		"-np 4 -c 512":                       256,
		"-np 1 -c 32":                        256,
		"-np 3 -c 4096":                      1536,
		"-c 1000":                            1024, // shared by all slots
		"-np 4 -c 4096 -kvu":                 4096,
		"-np 4 -c 4096 -no-kvu":              1024,
		"-c 4096 --kv-unified-per-slot 1000": 1000,
		"-np 4":                              0,
		"-c 0":                               0,
	} {
		if got := llamaCommand(t, "llama-server -m m.gguf "+line).SlotContext(); got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
	}
	if n := llamaCommand(t, "vllm serve M --max-model-len 4096").SlotContext(); n != 0 {
		t.Errorf("vLLM: %d", n)
	}
}

func TestOutline(t *testing.T) {
	gpu, err := arch.LookupAccelerator("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	got, err := llamaCommand(t, "llama-server -m m.gguf -np 8 -c 8192 -b 512 --port 81 --no-cache-prompt -a zeta,alpha").Outline(arch.Model{}, gpu, 4)
	want := Config{Engine: "llamacpp", GPU: gpu, TP: 1, PP: 1, DP: 1, EP: 1, GPUs: 4, Seqs: 8, Batched: 512, MaxLen: 1024, Chunked: true,
		ServedName: "alpha", Aliases: []string{"zeta"}, Host: "127.0.0.1", Port: 81}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if got.Replicas(4) != 1 {
		t.Errorf("%d replicas", got.Replicas(4))
	}
	one, err := llamaCommand(t, "llama-server -m dir/m.gguf --split-mode none").Outline(arch.Model{}, gpu, 4)
	if err != nil || one.GPUs != 1 || one.Replicas(4) != 4 || one.Seqs != 4 || one.ServedName != "dir/m.gguf" || one.Port != 9931 {
		t.Errorf("%+v %v", one, err)
	}
}

// There is no model of llama.cpp, and no figure of an unnamed host.
func TestMeasuredOnly(t *testing.T) {
	host, err := arch.LookupAccelerator("CPU")
	if err != nil || host.Known() {
		t.Fatal(host, err)
	}
	if _, err := llamaCommand(t, "llama-server -m m.gguf").Resolve(arch.Model{}, host, 1); !errors.Is(err, ErrMeasuredOnly) {
		t.Errorf("resolved: %v", err)
	}
	m, err := arch.LookupModel("Qwen/Qwen3-8B")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := llamaCommand(t, "vllm serve Qwen/Qwen3-8B").Resolve(m, host, 1); err == nil || !strings.Contains(err.Error(), "nothing is known of CPU of the host") {
		t.Errorf("resolved: %v", err)
	}
}

func TestLlamacppRemarks(t *testing.T) {
	for line, want := range map[string][]string{
		"llama-server -m m.gguf -np 4 -c 4096 -t 2 -ub 512": nil,
		"llama-server -m m.gguf -b 100 -ub 1000":            {"micro_batch 1000 is more than max_num_batched_tokens 100: llama-server computes 100 tokens at once."},
		"llama-server -m m.gguf -ub 4096":                   {"micro_batch 4096 is more than max_num_batched_tokens 2048: llama-server computes 2048 tokens at once."},
		"llama-server -m m.gguf -t 2 -tb 4":                 {"threads_batch 4 is more than the 2 cores of this host: threads wait for one another."},
		"llama-server -m m.gguf -np 4 -c 1000":              {"context_size 1000 over 4 slots is rounded up to 256 tokens each."},
		"vllm serve M":                                      nil,
	} {
		if d := cmp.Diff(want, llamaCommand(t, line).Remarks(2)); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
	if got := llamaCommand(t, "llama-server -m m.gguf -t 64").Remarks(0); got != nil {
		t.Errorf("without a number of cores: %v", got)
	}
}

// The common names are on the real server's page, which only --metrics opens.
func TestLlamacppMetrics(t *testing.T) {
	for _, page := range []string{"metrics.txt", "metrics-busy.txt"} {
		text := recorded(t, page)
		for _, common := range []string{"running", "waiting", "prompt_tokens", "generation_tokens", "prefix_hits"} {
			names := llamaEngine(t).Metrics[common]
			if !slices.ContainsFunc(names, func(name string) bool { return regexp.MustCompile(`(?m)^` + name + ` \d`).MatchString(text) }) {
				t.Errorf("%s: none of %v (%s)", page, names, common)
			}
		}
	}
	if !strings.Contains(recorded(t, "metrics-busy.txt"), "llamacpp:requests_processing 4\n") {
		t.Error("the busy page is not of four busy slots")
	}
}
