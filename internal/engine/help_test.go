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
// the last spelling. llama-server's text is as it printed it. SGLang's are the lines of
// options that its releases' own parsers print, 0.5.9's under Python 3.12 and 0.5.5's
// under 3.13, without explanations.
func TestRealHelp(t *testing.T) {
	for _, tt := range []struct {
		engine, version, path string
		newer                 []string // came between the release and the source that was read for it
	}{
		{"llamacpp", "0.5.0-dev", "testdata/llama-server.help.txt", nil},
		{"sglang", "0.5.5", "testdata/help/sglang-0.5.5.txt", nil},
		{"sglang", "0.5.9", "testdata/help/sglang-0.5.9.txt", []string{"--hisparse-config"}},
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
			if h.has(e, name) == slices.Contains(tt.newer, name) {
				t.Errorf("%s %s: %s is in the help: %v, and in the catalogue", tt.engine, tt.version, name, h.has(e, name))
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

// TestUnknown: flags of a command that the installed engine lacks.
func TestUnknown(t *testing.T) {
	for _, tt := range []struct{ version, command, want string }{
		{"0.13.0", "vllm serve M -tp 4 --max_num_seqs 64 --gpu-memory-utilization=0.9 -O3 --compilation-config.level 3 --no-enable-prefix-caching", ""},
		{"0.13.0", "vllm serve M --performance-mode throughput", "this vLLM (0.13.0 by its own account) has no flag --performance-mode: it came with 0.17"},
		{"", "vllm serve M --max-num-batched-tokens 2048", "this vLLM has no flag --max-num-batched-tokens"},
		{"0.5.9", "python3 -m sglang.launch_server --model-path M --tp 2 --kv-cache-dtype auto", ""},
		{"0.5.9", "python3 -m sglang.launch_server --model-path M --schedule-policy lpm", "this SGLang (0.5.9 by its own account) has no flag --schedule-policy"},
		{"", "trtllm-serve M --max_batch_size 8 --free_gpu_memory_fraction 0.8", ""},
		{"", "trtllm-serve M --ep_size 8", "this TensorRT-LLM has no flag --ep_size"},
	} {
		c, err := Parse(strings.Fields(tt.command))
		if err != nil {
			t.Fatal(err)
		}
		e, _ := ByName(c.Engine)
		h := helpOf(t, e, "testdata/"+e.Name+".help.txt")
		h.Version = tt.version
		rej := h.Unknown(c)
		switch {
		case rej == nil && tt.want != "":
			t.Errorf("%q passes, want %q", tt.command, tt.want)
		case rej != nil && (tt.want == "" || rej.Reason != tt.want):
			t.Errorf("%q: %q, want %q", tt.command, rej.Reason, tt.want)
		}
	}
	e, _ := ByName("trtllm")
	c, err := Parse(strings.Fields("trtllm-serve M --tensor_parallel_size 2"))
	if err != nil {
		t.Fatal(err)
	}
	old := Help{Engine: e.Name, Flags: []string{"--port", "--tp_size"}}
	c.Params, c.Extra = nil, []string{"--tensor_parallel_size", "2"}
	if rej := old.Unknown(c); rej == nil || rej.Reason != "this TensorRT-LLM has no flag --tensor_parallel_size: write --tp_size" {
		t.Errorf("another spelling: %v", rej)
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
