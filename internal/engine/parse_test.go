package engine

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type params = map[string]string

// published are serving commands of public benchmark pages.
var published = []struct {
	line string
	want Command
}{
	{"vllm serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 -tp 8 --enable-expert-parallel",
		Command{Engine: "vllm", Model: "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", Params: params{TP: "8", ExpertParallel: "true"}}},
	{"vllm serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 -tp 4 --max-num-batched-tokens 4096",
		Command{Engine: "vllm", Model: "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", Params: params{TP: "4", MaxBatched: "4096"}}},
	{"vllm serve Qwen/Qwen3-32B", Command{Engine: "vllm", Model: "Qwen/Qwen3-32B"}},
	{"python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp-size 8",
		Command{Engine: "sglang", Model: "Qwen/Qwen3-32B", Params: params{TP: "8"}}},
	{"trtllm-serve Qwen/Qwen3-32B-FP8 --max_seq_len=40960 --enable_chunked_prefill",
		Command{Engine: "trtllm", Model: "Qwen/Qwen3-32B-FP8", Params: params{MaxModelLen: "40960", ChunkedPrefill: "true"}}},
	{`vllm serve M --reasoning-parser=qwen3 --speculative-config={"method":"mtp","num_speculative_tokens":1} --max-model-len=32768 --performance-mode=interactivity`,
		Command{Engine: "vllm", Model: "M", Params: params{Speculative: "mtp:1", MaxModelLen: "32768", PerfMode: "interactivity"}, Extra: []string{"--reasoning-parser=qwen3"}}},
	{"vllm serve M --max-num-batched-tokens=16384 --max-cudagraph-capture-size=256 --enable-prefix-caching",
		Command{Engine: "vllm", Model: "M", Params: params{MaxBatched: "16384", GraphMax: "256", PrefixCaching: "true"}}},
	{"vllm serve M --host 0.0.0.0 --trust_remote_code --gpu-memory-utilization 0.8 -pp 1 -tp 4 --distributed-executor-backend ray --load-format fastsafetensors --kv-cache-dtype fp8",
		Command{Engine: "vllm", Model: "M", Host: "0.0.0.0", Params: params{MemoryShare: "0.8", PP: "1", TP: "4", KVDtype: "fp8"},
			Extra: []string{"--trust_remote_code", "--distributed-executor-backend", "ray", "--load-format", "fastsafetensors"}}},
}

// spellings are further ways to write a command that must come out the same.
var spellings = []struct {
	line string
	want Command
}{
	{"VLLM_USE_V1=1 vllm serve M --max_num_seqs=64 --tensor-parallel-size 2",
		Command{Engine: "vllm", Model: "M", Env: []string{"VLLM_USE_V1=1"}, Params: params{MaxNumSeqs: "64", TP: "2"}}},
	{"vllm serve --model M --port 8001 --max-model-len 32k --max-num-batched-tokens 8K",
		Command{Engine: "vllm", Model: "M", Port: 8001, Params: params{MaxModelLen: "32000", MaxBatched: "8192"}}},
	{"vllm serve M --max-model-len -1 --no-enable-prefix-caching --no-enable-chunked-prefill",
		Command{Engine: "vllm", Model: "M", Params: params{MaxModelLen: "auto", PrefixCaching: "false", ChunkedPrefill: "false"}}},
	{"/usr/bin/vllm serve M -O3 --served-model-name a b -tp=2 --compilation-config.mode 3",
		Command{Engine: "vllm", Model: "M", Params: params{TP: "2"}, Extra: []string{"-O3", "--served-model-name", "a", "b", "--compilation-config.mode", "3"}}},
	{"python -m vllm.entrypoints.openai.api_server --model M", Command{Engine: "vllm", Model: "M"}},
	{"vllm serve", Command{Engine: "vllm", Model: "Qwen/Qwen3-0.6B"}},
	{`vllm serve M --speculative-config {"method":"eagle3","model":"D/raft","num_speculative_tokens":3}`,
		Command{Engine: "vllm", Model: "M", Params: params{Speculative: "eagle3:3:D/raft"}}},
	{`vllm serve M -sc {"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4}`,
		Command{Engine: "vllm", Model: "M", Params: params{Speculative: `{"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4}`}}},
	{"sglang serve --model-path M --tp 4 --ep 4 --disable-radix-cache --disable-cuda-graph --kv-cache-dtype fp8_e4m3",
		Command{Engine: "sglang", Model: "M", Params: params{TP: "4", ExpertParallel: "true", PrefixCaching: "false", Eager: "true", KVDtype: "fp8"}}},
	{"python3 -m sglang.launch_server --model M --ep-size 2 --tp-size 4 --chunked-prefill-size -1",
		Command{Engine: "sglang", Model: "M", Params: params{TP: "4", ExpertParallel: "2", ChunkedPrefill: "false"}}},
	{"python3 -m sglang.launch_server --model M --speculative-algorithm NEXTN --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2",
		Command{Engine: "sglang", Model: "M", Params: params{Speculative: "mtp:1"}}},
	{"python3 -m sglang.launch_server --model M --speculative-algorithm EAGLE3 --speculative-draft-model-path D --speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
		Command{Engine: "sglang", Model: "M", Params: params{Speculative: "eagle3:5/4/8:D"}}},
	{"python3 -m sglang.launch_server --model M --speculative-algorithm EAGLE",
		Command{Engine: "sglang", Model: "M", Params: params{Speculative: "eagle:auto"}}},
	{"sglang serve --model-path M --dp 2 --tp 2 --enable-dp-attention --disable-overlap-schedule --moe-runner-backend triton --stream-interval 4",
		Command{Engine: "sglang", Model: "M", Params: params{TP: "2", DP: "2", AttentionDP: "true", Overlap: "false", MoEBackend: "triton", StreamInterval: "4"}}},
	{"vllm serve M --no-async-scheduling --moe-backend triton",
		Command{Engine: "vllm", Model: "M", Params: params{Overlap: "false", MoEBackend: "triton"}}},
	{"trtllm-serve M --config=-odd.yaml --tp_size 2",
		Command{Engine: "trtllm", Model: "M", Params: params{TP: "2"}, FilePath: "-odd.yaml"}},
	{"trtllm-serve serve M --tp_size 4 --ep_size 4 --port 9 --free_gpu_memory_fraction 0.95",
		Command{Engine: "trtllm", Model: "M", Port: 9, Params: params{TP: "4", ExpertParallel: "true", MemoryShare: "0.95"}}},
}

func TestParse(t *testing.T) {
	for _, tt := range append(published, spellings...) {
		got, err := Parse(strings.Fields(tt.line))
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, d)
		}
	}
}

// TestRoundTrip: the printed command parses back to the same command, as arguments
// and through a shell.
func TestRoundTrip(t *testing.T) {
	bash, noBash := exec.LookPath("bash")
	for _, tt := range append(published, spellings...) {
		c, err := Parse(strings.Fields(tt.line))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(append(append([]string{}, c.Env...), c.Argv()...))
		if err != nil {
			t.Errorf("%s -> %q: %v", tt.line, c.Argv(), err)
			continue
		}
		again.Host, again.Port = c.Host, c.Port // Argv leaves them out
		if d := cmp.Diff(c, again); d != "" {
			t.Errorf("%s by Argv (-first +again):\n%s", tt.line, d)
		}
		if noBash != nil {
			continue
		}
		out, err := exec.CommandContext(t.Context(), bash, "-c", `printf '%s\n' `+c.String()).Output()
		if err != nil {
			t.Fatalf("bash: %v", err)
		}
		again, err = Parse(strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"))
		if d := cmp.Diff(c, again); err != nil || d != "" {
			t.Errorf("%s by bash: %v\n%s", c, err, d)
		}
	}
}

func TestArgvPort(t *testing.T) {
	c, err := New("vllm", "M", params{TP: "2", Speculative: "mtp:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"vllm", "serve", "M", "-tp", "2", "--speculative-config", `{"method":"mtp","num_speculative_tokens":1}`, "--host", "127.0.0.1", "--port", "{port}"}
	if d := cmp.Diff(want, c.ArgvPort("127.0.0.1", "{port}")); d != "" {
		t.Error(d)
	}
	if got, want := c.String(), `vllm serve M -tp 2 --speculative-config '{"method":"mtp","num_speculative_tokens":1}'`; got != want {
		t.Errorf("String:\n%s\n%s", got, want)
	}
}

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		engine string
		params params
		extra  []string
		want   string
	}{
		{"vllm", params{TP: "4", PP: "1", MaxBatched: "4096", KVDtype: "auto"}, nil, "vllm serve M -tp 4 --max-num-batched-tokens 4096"},
		{"vllm", params{TP: "", ExpertParallel: "true", PrefixCaching: "false"}, []string{"--reasoning-parser", "qwen3"},
			"vllm serve M --enable-expert-parallel --no-enable-prefix-caching --reasoning-parser qwen3"},
		{"vllm", nil, []string{"--max-num-seqs=64", "--async-scheduling"}, "vllm serve M --max-num-seqs 64 --async-scheduling"},
		{"vllm", params{Speculative: "eagle3:3:D"}, nil, `vllm serve M --speculative-config '{"method":"eagle3","num_speculative_tokens":3,"model":"D"}'`},
		{"sglang", params{TP: "8", ExpertParallel: "true", KVDtype: "fp8", PrefixCaching: "false", ChunkedPrefill: "false"}, nil,
			"python3 -m sglang.launch_server --model-path M --tp-size 8 --ep-size 8 --kv-cache-dtype fp8_e4m3 --disable-radix-cache --chunked-prefill-size -1 --enable-metrics"},
		{"sglang", params{Speculative: "mtp:3"}, nil,
			"python3 -m sglang.launch_server --model-path M --speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --enable-metrics"},
		{"sglang", params{PrefixCaching: "true", Eager: "true"}, nil, "python3 -m sglang.launch_server --model-path M --disable-decode-cuda-graph --disable-prefill-cuda-graph --enable-metrics"},
		{"trtllm", params{TP: "4", ExpertParallel: "true", ChunkedPrefill: "true", MaxModelLen: "40960", PrefixCaching: "true", MaxNumSeqs: "2048"}, nil,
			"trtllm-serve M --tp_size 4 --ep_size 4 --max_seq_len 40960 --enable_chunked_prefill"},
	} {
		c, err := New(tt.engine, "M", tt.params, tt.extra)
		if err != nil || c.String() != tt.want {
			t.Errorf("%s %v:\n got %s, %v\nwant %s", tt.engine, tt.params, c, err, tt.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		engine string
		params params
		want   string
	}{
		{"trtllm", params{Speculative: "medusa:2"}, "TensorRT-LLM has no speculation medusa:2"},
		{"trtllm", params{PerfMode: "throughput"}, "TensorRT-LLM has no setting for performance_mode=throughput: leave it out"},
		{"trtllm", params{MoEBackend: "quick"}, "TensorRT-LLM refuses moe_config.backend of its configuration file: Input should be 'AUTO'"},
		{"sglang", params{PerfMode: "throughput"}, "SGLang has no setting for performance_mode=throughput: leave it out"},
		{"sglang", params{Speculative: "medusa:2"}, "SGLang has no speculation method medusa"},
		{"vllm", params{Speculative: "mtp:5/4/8"}, "vLLM needs a number of tokens"},
	} {
		_, err := New(tt.engine, "M", tt.params, nil)
		r, ok := errors.AsType[*Rejection](err)
		if !ok || !strings.HasPrefix(r.Reason, tt.want) || r.Rule == "" || r.Log == "" {
			t.Errorf("%s %v: %v, want a rejection: %s", tt.engine, tt.params, err, tt.want)
		}
	}
	for want, f := range map[string]func() (Command, error){
		`unknown parameter "tensor"`:   func() (Command, error) { return New("vllm", "M", params{"tensor": "4"}, nil) },
		`unknown engine "tgi"`:         func() (Command, error) { return New("tgi", "M", nil, nil) },
		`parameter tp="four"`:          func() (Command, error) { return New("vllm", "M", params{TP: "four"}, nil) },
		`enforce_eager="yes"`:          func() (Command, error) { return New("vllm", "M", params{Eager: "yes"}, nil) },
		`speculative "mtp"`:            func() (Command, error) { return New("vllm", "M", params{Speculative: "mtp"}, nil) },
		`model ""`:                     func() (Command, error) { return New("vllm", "", nil, nil) },
		`unrecognized arguments: --xy`: func() (Command, error) { return New("vllm", "M", nil, []string{"--xy"}) },
		`invalid choice: 'fp7'`:        func() (Command, error) { return New("vllm", "M", params{KVDtype: "fp7"}, nil) },
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for line, want := range map[string]string{
		"vllm serve M --foo 1":                                       "vllm serve: error: unrecognized arguments: --foo",
		"vllm serve M --foo=1":                                       "vllm serve: error: unrecognized arguments: --foo=1",
		"vllm serve M N":                                             "vllm serve: error: unrecognized arguments: N",
		"vllm serve M --max-num-seqs many":                           "error: argument --max-num-seqs: invalid int value: 'many'",
		"vllm serve M -tp":                                           "error: argument --tensor-parallel-size/-tp: expected one argument",
		"vllm serve M -tp --enforce-eager":                           "error: argument --tensor-parallel-size/-tp: expected one argument",
		"vllm serve M --performance-mode fast":                       "invalid choice: 'fast' (choose from 'balanced', 'interactivity', 'throughput')",
		"vllm serve M --speculative-config mtp":                      "Value mtp cannot be converted",
		"vllm serve M --speculative-config 3":                        "not a JSON object",
		"vllm serve M --enforce-eager=true":                          "ignored explicit argument 'true'",
		"vllm serve M --port 99999":                                  "99999 is not a port",
		"python3 -m sglang.launch_server --tp-size 2":                "launch_server.py: error: the following arguments are required: --model-path",
		"python3 -m sglang.launch_server --model M --max-num-seqs 3": "error: unrecognized arguments: --max-num-seqs",
		"python3 -m sglang.launch_server --model M --tp-size 2k":     "invalid int value: '2k'",
		"sglang serve --model M --speculative-num-steps 3":           "without --speculative-algorithm",
		"trtllm-serve M --foo":                                       "Error: No such option: --foo",
		"trtllm-serve M --max-batch-size 3":                          "Error: No such option: --max-batch-size",
		"trtllm-serve M --max_batch_size x":                          "Error: Invalid value for '--max_batch_size': 'x' is not a valid integer.",
		"trtllm-serve M --max_batch_size":                            "Error: Option '--max_batch_size' requires an argument.",
		"trtllm-serve M --kv_cache_dtype bf8":                        "Error: Invalid value for '--kv_cache_dtype': 'bf8' is not one of 'auto', 'fp8', 'nvfp4'.",
		"trtllm-serve":                                               "Error: Missing argument 'MODEL'.",
		"trtllm-serve M --enable_chunked_prefill=1":                  "does not take a value",
		"sglang serve --model M --speculative-algorithm EAGLE --speculative-num-steps 3": "set all of",
	} {
		_, err := Parse(strings.Fields(line))
		u, ok := errors.AsType[*UsageError](err)
		if !ok || u.Exit != 2 || !strings.Contains(u.Text, want) || !strings.Contains(strings.ToLower(u.Text), "usage:") {
			t.Errorf("%s: %v, want %q", line, err, want)
			continue
		}
		if strings.Contains(u.Error(), "\n") || !strings.Contains(u.Error(), want) {
			t.Errorf("%s: Error() = %q is not the last line", line, u.Error())
		}
	}
	for _, line := range []string{"", "vllm", "vllm bench serve", "python3 serve.py", "ls -l", "FOO=1"} {
		_, err := Parse(strings.Fields(line))
		if err == nil || !strings.Contains(err.Error(), "is not a serving command") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestUnmodelled(t *testing.T) {
	c, err := Parse(strings.Fields("vllm serve M --attention-backend FLASHINFER --trust-remote-code -O3 --served-model-name x --compilation-config.mode 3 --async-scheduling"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--attention-backend", "--optimization-level", "--compilation-config.mode"}
	if d := cmp.Diff(want, c.Unmodelled()); d != "" {
		t.Error(d)
	}
	for line, want := range map[string][]string{
		"vllm serve M --stream-interval 10 --performance-mode interactivity -O.mode=3": {"--compilation-config.mode", "--stream-interval", "--performance-mode=interactivity"},
		"vllm serve M --performance-mode throughput --kv-cache-dtype fp8":              nil,
		"sglang serve --model M --stream-interval 4":                                   {"--stream-interval"},
		"trtllm-serve M --config f.yaml":                                               {"--extra_llm_api_options"},
	} {
		c, err := Parse(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, c.Unmodelled()); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
}

// The value of a flag that is kept verbatim, however it is written.
func TestFlag(t *testing.T) {
	for line, want := range map[string]string{
		"vllm serve M --reasoning-parser=qwen3":        "qwen3",
		"vllm serve M --reasoning_parser qwen3 -tp 2":  "qwen3",
		"vllm serve M --enable-log-requests":           "",
		"sglang serve --model M --reasoning-parser kk": "kk",
	} {
		c, err := Parse(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Flag("--reasoning-parser"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// A switch is found by its flag also where it is a parameter.
func TestSwitch(t *testing.T) {
	for line, want := range map[string]map[string]string{
		"sglang serve --model M --enable-dp-attention --disable-overlap-schedule": {"--enable-dp-attention": "true", "--disable-overlap-schedule": "true"},
		"sglang serve --model M":                  {"--enable-dp-attention": "", "--disable-overlap-schedule": ""},
		"vllm serve M --no-async-scheduling":      {"--async-scheduling": "false", "--no-async-scheduling": "true"},
		"vllm serve M --async-scheduling -tp 2":   {"--async-scheduling": "true", "--no-async-scheduling": "", "-tp": ""},
		"trtllm-serve M --enable_chunked_prefill": {"--enable_chunked_prefill": "true"},
	} {
		c, err := Parse(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		for flag, value := range want {
			if got := c.Flag(flag); got != value {
				t.Errorf("%s: %s is %q, want %q", line, flag, got, value)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	for _, line := range []string{"vllm serve --help", "vllm serve M -h", "sglang serve -h", "trtllm-serve --help"} {
		_, err := Parse(strings.Fields(line))
		u, ok := errors.AsType[*UsageError](err)
		if !ok || u.Exit != 0 || !strings.Contains(u.Text, "\n  --") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A model that stands in a file must not become the engine's default one.
func TestModelInFile(t *testing.T) {
	if c, err := Parse(strings.Fields("vllm serve --config f.yaml")); err == nil || !strings.Contains(err.Error(), "f.yaml") {
		t.Errorf("serves %s, error %v", c.Model, err)
	}
	if _, err := Parse(strings.Fields("vllm serve M --config f.yaml")); err != nil {
		t.Error(err)
	}
}

// FuzzParse: what parses prints to something that parses to the same.
func TestWorld(t *testing.T) {
	for line, want := range map[string]int{
		"vllm serve m":                                                         1,
		"vllm serve m -tp 4 -pp 2 -dp 3":                                       24,
		"vllm serve m -tp 4 -pcp 2":                                            8,
		"trtllm-serve m --tp_size 4 --cp_size 2":                               8,
		"sglang serve --model-path m --tp 8 --dp-size 2":                       16,
		"sglang serve --model-path m --tp 8 --dp-size 8 --enable-dp-attention": 8,
	} {
		c, err := Parse(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.World(); got != want {
			t.Errorf("%s: %d devices, want %d", line, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range append(published, spellings...) {
		f.Add(strings.Join(strings.Fields(tt.line), "\n"))
	}
	for _, tt := range llamaLines {
		f.Add(strings.Join(strings.Fields(tt.line), "\n"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := Parse(strings.Split(line, "\n"))
		if err != nil {
			return
		}
		c.Host, c.Port, c.Env = "", 0, nil
		again, err := Parse(c.Argv())
		if err != nil {
			t.Fatalf("%q -> %q: %v", line, c.Argv(), err)
		}
		if d := cmp.Diff(c.Argv(), again.Argv()); d != "" {
			t.Errorf("%q:\n%s", line, d)
		}
		c.Unmodelled()
	})
}
