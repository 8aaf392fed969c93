package engine

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func helpOf(t *testing.T, e *Engine, path string) Help {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := ParseHelp(e, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestParseHelp: every spelling of the layouts, and nothing out of explanations.
func TestParseHelp(t *testing.T) {
	for _, tt := range []struct{ engine, want string }{
		{"vllm", "--additional-help --api-server-count --compilation-config --enable-prefix-caching --gpu-memory-utilization --headless --help --host --kv-cache-dtype --max-model-len " +
			"--max-num-seqs --model --no-enable-prefix-caching --port --quantization --served-model-name --tensor-parallel-size -O -asc -cc -h -q -tp"},
		{"sglang", "--attention-backend --cuda-graph-bs --disable-radix-cache --help --host --kv-cache-dtype --mem-fraction-static --model --model-path --port --tensor-parallel-size --tp-size -h"},
		{"trtllm", "--backend --config --enable_chunked_prefill --extra_llm_api_options --help --host --kv_cache_free_gpu_memory_fraction --max_batch_size --no-telemetry --port --telemetry --tensor_parallel_size --tp_size"},
	} {
		e, err := ByName(tt.engine)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(helpOf(t, e, "testdata/"+tt.engine+".help.txt").Flags, " ")
		if want := strings.Join(slices.Sorted(slices.Values(strings.Fields(tt.want))), " "); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.engine, got, want)
		}
	}
}

// TestRealHelp: what real servers list is what the catalogue has for their versions, to
// the last spelling. llama-server's first text is as it printed it, its second the options of its own page. SGLang's are the lines of
// options that its releases' own parsers print, 0.5.9's under Python 3.12 and 0.5.5's
// under 3.13, without explanations.
func TestRealHelp(t *testing.T) {
	for _, tt := range []struct {
		engine, version, path string
		newer                 []string // that this release lacks and others around it have
	}{
		{"llamacpp", "0.5.0-dev", "testdata/llama-server.help.txt", nil},
		{"llamacpp", "0.7.0", "testdata/help/llama-server-b11521.txt", nil},
		{"sglang", "0.5.5", "testdata/help/sglang-0.5.5.txt", []string{"--enable-hicache"}},
		{"sglang", "0.5.9", "testdata/help/sglang-0.5.9.txt", []string{"--hisparse-config", "--enable-hicache", "--no-enable-fused-qk-norm-rope", "--no-mm-enable-dp-encoder"}},
	} {
		e, err := ByName(tt.engine)
		if err != nil {
			t.Fatal(err)
		}
		h := helpOf(t, e, tt.path)
		have := []string{"-h", "--help"}
		for _, f := range e.list().Flags {
			if f.In(tt.version) {
				have = slices.Concat(have, []string{f.Flag}, f.Aliases, f.Off)
			}
		}
		for _, name := range h.Flags {
			if !slices.Contains(have, name) {
				t.Errorf("%s %s: %s of the help is not in the catalogue", tt.engine, tt.version, name)
			}
		}
		for _, name := range have {
			if could := h.match(e, name); (len(could) > 0) == slices.Contains(tt.newer, name) { // --tp is a beginning
				t.Errorf("%s %s: %s is %q in the help, and in the catalogue", tt.engine, tt.version, name, could)
			}
		}
	}
}

// TestParserHelp: what argparse and click print of all flags of an engine's newest known
// version is read to the last spelling, and nothing besides. testdata/help.py makes the
// texts of flags.json.
func TestParserHelp(t *testing.T) {
	for _, name := range []string{"vllm", "sglang", "trtllm"} {
		e, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{"--help": true}
		if !e.cli.click {
			want["-h"] = true
		}
		for _, f := range e.list().Flags {
			if f.Until != "" {
				continue
			}
			for _, spelling := range slices.Concat([]string{f.Flag}, f.Aliases, f.Off) {
				want[spelling] = true
			}
		}
		have := helpOf(t, e, "testdata/help/"+name+".txt").Flags
		for _, spelling := range have {
			if !want[spelling] {
				t.Errorf("%s: %s is read out of the help, and is no flag", name, spelling)
			}
			delete(want, spelling)
		}
		for spelling := range want {
			t.Errorf("%s: %s is not read out of the help: make it anew by testdata/help.py if the flag is", name, spelling)
		}
	}
}

// TestNoHelp: the groups of vLLM's plain --help, another program's help and an error are
// no list of flags.
func TestNoHelp(t *testing.T) {
	e, _ := ByName("vllm")
	for _, text := range []string{"", "bash: vllm: command not found\n", "usage: vllm serve [model_tag] [options]\n\noptions:\n  -h, --help   show this\n\nConfig Groups:\n  ModelConfig   Configuration for the model.\n"} {
		if h, err := ParseHelp(e, text); err == nil || !strings.Contains(err.Error(), "vllm serve --help=all") {
			t.Errorf("%q: %v %v", text, h, err)
		}
	}
}

// TestLongHelp: the time to read a line goes with its length.
func TestLongHelp(t *testing.T) {
	e, _ := ByName("vllm")
	h, err := ParseHelp(e, "  --port PORT\n  "+strings.Repeat("-a, ", 100000)+"-b\n  "+strings.Repeat("-c [x, y] z", 20000)+"\n")
	if err != nil || strings.Join(h.Flags, " ") != "--port -a -b -c" {
		t.Errorf("%q %v", h.Flags, err)
	}
}

// TestMisses: flags of a command, as it was typed, that the installed engine lacks, by the
// rules of its option parser: argparse takes a beginning that is of one flag alone.
func TestMisses(t *testing.T) {
	const sg = "python3 -m sglang.launch_server --model-path M "
	const graphs = "--cuda-graph-max-bs-decode --cuda-graph-max-bs-prefill"
	for _, tt := range []struct{ version, flags, command, want, log string }{
		{"0.13.0", "", "vllm serve M -tp 4 --max_num_seqs 64 --gpu-memory-utilization=0.9 -O3 --compilation-config.level 3 --no-enable-prefix-caching", "", ""},
		{"0.13.0", "", "vllm serve M --performance-mode throughput", "--performance-mode (performance_mode) is not in this vLLM (0.13.0 by its own account): it came with 0.17", "unrecognized arguments: --performance-mode"},
		{"", "", "vllm serve M --max-num-batched-tokens 2048", "--max-num-batched-tokens (max_num_batched_tokens) is not in this vLLM", ""},
		{"", "--no-enable-prefix-cache", "vllm serve M --no-enable_prefix-caching", "--no-enable_prefix-caching (prefix_caching) is not in this vLLM", ""},
		{"", "--no-enable-prefix-caching", "vllm serve M --no-enable_prefix_caching", "", ""},
		{"0.5.9", "", sg + "--tp 2 --kv-cache-dtype auto", "", ""},
		{"0.5.9", "", sg + "--schedule-policy lpm", "--schedule-policy is not in this SGLang (0.5.9 by its own account)", ""},
		{"0.5.23", "--tp-size " + graphs, sg + "--tp 2 --cuda-graph-max-bs-decode 512", "", ""},
		{"0.5.23", graphs, sg + "--cuda-graph-max-bs=512",
			"--cuda-graph-max-bs (max_cudagraph_capture_size) is not in this SGLang (0.5.23 by its own account): write --cuda-graph-max-bs-decode",
			"ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill"},
		{"", "--cuda-graph-max-bs", sg + "--cuda-graph-max-bs-decode 512", "--cuda-graph-max-bs-decode (max_cudagraph_capture_size) is not in this SGLang: write --cuda-graph-max-bs", "unrecognized arguments"},
		{"", "--pp-size --pp-max-micro-batch-size", sg + "--pp 2", "--pp (pp) is not in this SGLang: write --pp-size", "ambiguous option: --pp could match --pp-max-micro-batch-size, --pp-size"},
		{"", "--enable-hierarchical-cache --hicache-size-a --hicache-size-b", sg + "--enable-hierarchical-cache --hicache-size 2", "--hicache-size (host_cache) is not in this SGLang: it could mean --hicache-size-a or --hicache-size-b", ""},
		{"", "--disable-radix-cache", sg + "--disable-radix-cache", "", ""},
		{"", "", "trtllm-serve M --max_batch_size 8 --free_gpu_memory_fraction 0.8", "--free_gpu_memory_fraction (gpu_memory_utilization) is not in this TensorRT-LLM: write --kv_cache_free_gpu_memory_fraction", "No such option"},
		{"", "", "trtllm-serve M --max_batch_size 8 --kv_cache_free_gpu_memory_fraction 0.8", "", ""},
		{"", "", "trtllm-serve M --ep_size 8", "--ep_size (expert_parallel) is not in this TensorRT-LLM", ""},
		{"", "--tp_size_of_ranks", "trtllm-serve M --tp_size 8", "--tp_size (tp) is not in this TensorRT-LLM", ""}, // click takes no beginnings
		{"", "--parallel --flash-attn-kind", "llama-server -m m.gguf -np 4", "-np (max_num_seqs) is not in this llama.cpp: write --parallel", ""},
		{"", "--flash-attn-kind", "llama-server -m m.gguf --flash-attn on", "--flash-attn (flash_attention) is not in this llama.cpp", ""},
		{"", "--flash-attn", "llama-server -m m.gguf --flash_attn on", "", ""},
	} {
		words := strings.Fields(tt.command)
		c, err := Parse(words)
		if err != nil {
			t.Fatal(err)
		}
		e, _ := ByName(c.Engine)
		c.Help = &Help{Engine: e.Name, Flags: append(strings.Fields(tt.flags), e.portFlag, "-m", "--model-path")}
		if tt.flags == "" {
			*c.Help = helpOf(t, e, "testdata/"+e.Name+".help.txt")
		}
		slices.Sort(c.Help.Flags)
		c.Help.Version = tt.version
		rej := c.Fit(words...)
		switch {
		case rej == nil && tt.want != "":
			t.Errorf("%q passes, want %q", tt.command, tt.want)
		case rej != nil && (tt.want == "" || rej.Reason != tt.want || !strings.Contains(rej.Log, tt.log)):
			t.Errorf("%q: %q, want %q; log %q, want %q", tt.command, rej.Reason, tt.want, rej.Log, tt.log)
		}
		if rej == nil {
			continue
		}
		if reason, ok := RefusalOf(e.Name, "INFO x\n"+rej.Log+"\n"); !ok || reason != rej.Log {
			t.Errorf("%q is not found to be a refusal: %q", rej.Log, reason)
		}
	}
}

// TestSpelling: a parameter is printed in the spelling that the engine's own help lists,
// else in that of its version, else in the newest one; each of them is read.
func TestSpelling(t *testing.T) {
	for _, tt := range []struct{ engine, param, value, version, help, want string }{
		{"sglang", GraphMax, "512", "", "", "--cuda-graph-max-bs-decode 512"},
		{"sglang", GraphMax, "512", "0.5.5", "", "--cuda-graph-max-bs 512"},
		{"sglang", GraphMax, "512", "0.5.12", "", "--cuda-graph-max-bs 512"},
		{"sglang", GraphMax, "512", "0.5.23", "", "--cuda-graph-max-bs-decode 512"},
		{"sglang", GraphMax, "512", "nightly", "", "--cuda-graph-max-bs-decode 512"},
		{"sglang", GraphMax, "512", "0.5.23", "--cuda-graph-max-bs", "--cuda-graph-max-bs 512"}, // what is there outranks its number
		{"sglang", GraphMax, "512", "0.5.5", "--cuda-graph-max-bs-decode --cuda-graph-max-bs", "--cuda-graph-max-bs-decode 512"},
		{"sglang", GraphMax, "512", "0.5.5", "--other", "--cuda-graph-max-bs 512"},
		{"sglang", Eager, "true", "0.5.13", "", "--disable-cuda-graph"},
		{"sglang", Eager, "true", "0.5.14", "", "--disable-decode-cuda-graph --disable-prefill-cuda-graph"},
		{"sglang", Eager, "true", "0.5.23", "--disable-cuda-graph", "--disable-cuda-graph"},
		{"sglang", Eager, "true", "", "--disable-decode-cuda-graph --disable-prefill-cuda-graph", "--disable-decode-cuda-graph --disable-prefill-cuda-graph"},
		{"sglang", AttentionDP, "true", "0.5.23", "", "--enable-dp-attention"}, // without groups
		{"sglang", PP, "2", "0.5.23", "--pipeline-parallel-size", "--pipeline-parallel-size 2"},
		{"vllm", TP, "2", "", "--tensor-parallel-size", "--tensor-parallel-size 2"},
		{"vllm", ExpertParallel, "true", "", "-ep", "-ep"},
		{"vllm", PrefixCaching, "false", "", "--no-enable-prefix-caching", "--no-enable-prefix-caching"},
		{"trtllm", TP, "2", "", "--tensor_parallel_size", "--tensor_parallel_size 2"},
		{"llamacpp", MaxNumSeqs, "4", "", "--parallel", "--parallel 4"},
	} {
		c, err := New(tt.engine, "m.gguf", map[string]string{tt.param: tt.value}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Version = tt.version
		if tt.help != "" {
			c.Help = &Help{Engine: tt.engine, Flags: slices.Sorted(slices.Values(strings.Fields(tt.help)))}
		}
		have := strings.Join(c.Argv(), " ")
		if !strings.Contains(have+" ", " "+tt.want+" ") {
			t.Errorf("%s %s %q: %q, want %q", tt.engine, tt.version, tt.help, have, tt.want)
		}
		back, err := Parse(strings.Fields(have))
		if err != nil || back.Params[tt.param] != c.Params[tt.param] {
			t.Errorf("%q is read as %q %v", have, back.Params, err)
		}
	}
}

func TestParseVersion(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"0.11.0\n", "0.11.0"},
		{"INFO 11-22 10:00:00 [__init__.py:216] Automatically detected platform cuda.\n0.17.1rc2.dev5+g12ab34c\n", "0.17.1rc2.dev5+g12ab34c"},
		{"0.5.9.post1\n", "0.5.9.post1"},
		{"[TensorRT-LLM] TensorRT LLM version: 1.2.0\n1.2.0\n", "1.2.0"},
		{"version: 0.5.0-dev (build 1, commit 0c1e570)\nbuilt with GNU 12.2.0 for Linux x86_64\n", "0.5.0-dev"},
		{"ggml_cuda_init: found 1 CUDA devices:\nversion: 9986 (4d3a8f1)\nbuilt with cc (Debian 12.2.0) 12.2.0 for x86_64-linux-gnu\n", "b9986"},
		{"bash: vllm: command not found\n", ""},
		{"", ""},
	} {
		if got, ok := All()[0].ParseVersion(tt.text); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%q: %q %v, want %q", tt.text, got, ok, tt.want)
		}
	}
}

func TestHelpArgv(t *testing.T) {
	for _, tt := range []struct{ engine, help, version string }{
		{"vllm", "vllm serve --help=all", "vllm --version"},
		{"sglang", "python3 -m sglang.launch_server --help", "python3 -c import importlib.metadata as m; print(m.version('sglang'))"},
		{"trtllm", "trtllm-serve serve --help", "python3 -c import importlib.metadata as m; print(m.version('tensorrt_llm'))"},
		{"llamacpp", "llama-server --help", "sh -c exec llama-server --version 2>&1"},
	} {
		e, _ := ByName(tt.engine)
		if got := strings.Join(e.HelpArgv(), " "); got != tt.help {
			t.Errorf("%s: %q", tt.engine, got)
		}
		if got := strings.Join(e.VersionArgv(), " "); got != tt.version {
			t.Errorf("%s: %q", tt.engine, got)
		}
	}
}
