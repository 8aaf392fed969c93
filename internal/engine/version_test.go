package engine

import (
	"slices"
	"strings"
	"testing"
)

func flagOf(t *testing.T, engine, name string) Flag {
	t.Helper()
	f, ok := inCatalogue(sourced{Engine: engine, Flag: name})
	if !ok {
		t.Fatalf("%s has no %s", engine, name)
	}
	return f
}

// TestIn: a version between two known ones is the older one, one outside is the
// nearest.
func TestIn(t *testing.T) {
	for _, tt := range []struct {
		engine, flag string
		in, out      []string
	}{
		{"vllm", "--performance-mode", []string{"", "0.17", "0.17.0", "v0.17.1", "0.17.0rc2", "0.20", "0.33.1", "1.0", "nightly"}, []string{"0.11", "0.11.2", "0.16.9", "0.9"}},
		{"vllm", "--swap-space", []string{"", "0.10", "0.11.0", "0.17.1"}, []string{"0.18", "0.23", "0.23.1", "0.30"}},
		{"vllm", "--max-cudagraph-capture-size", []string{"0.12", "0.12.0", "0.13"}, []string{"0.11", "0.11.2"}},
		{"vllm", "--max-num-seqs", []string{"0.5", "0.11", "0.99"}, nil},
		{"vllm", "--use-gpu-for-pooling-score", []string{"0.17", "0.17.1"}, []string{"0.16", "0.18", "0.24"}},
		{"sglang", "--dcp-size", []string{"0.5.15", "0.5.17", "0.5.19.post1"}, []string{"0.5.9", "0.5.12", "0.5.14"}},
		{"sglang", "--cuda-graph-max-bs", []string{"0.5.5", "0.5.19.post1"}, []string{"0.5.20", "0.5.23", "0.5.24"}},
		{"sglang", "--cuda-graph-max-bs-decode", []string{"0.5.14", "0.5.23"}, []string{"0.5.13"}},
		{"sglang", "--nsa-prefill-backend", []string{"0.5.19"}, []string{"0.5.20"}},
		{"vllm", "--max-num-partial-prefills", []string{"0.11", "0.26.0"}, []string{"0.27", "0.33"}},
		{"vllm", "--calculate-kv-scales", []string{"0.27"}, []string{"0.28", "0.33"}},
		{"vllm", "--max-num-active-seqs", []string{"0.31", "0.33.1"}, []string{"0.30"}},
		{"vllm", "--device-ids", []string{"0.24", "0.33"}, []string{"0.23"}},
		{"sglang", "--load-watch-interval", []string{"0.5.5", "0.5.5.post3", "0.5.6"}, []string{"0.5.7", "0.5.17"}},
		{"trtllm", "--kv_cache_dtype", []string{"1.3", "1.3.0rc4"}, []string{"1.1", "1.2.1"}},
		{"llamacpp", "--mlock", []string{"b9986", "b10000", "0.4.1"}, []string{"0.5", "0.5.0-dev", "0.6.0"}},
		{"llamacpp", "--load-mode", []string{"0.5.0-dev", "1.0"}, []string{"b9986", "0.4"}},
	} {
		f := flagOf(t, tt.engine, tt.flag)
		for _, v := range tt.in {
			if !f.In(v) {
				t.Errorf("%s is not in %s %q", tt.flag, tt.engine, v)
			}
		}
		for _, v := range tt.out {
			if f.In(v) {
				t.Errorf("%s is in %s %q", tt.flag, tt.engine, v)
			}
		}
	}
}

func TestVersions(t *testing.T) {
	for _, e := range All() {
		v := e.Versions()
		if len(v) < 2 {
			t.Errorf("%s: versions %q", e.Name, v)
		}
		if !slices.IsSortedFunc(v, func(a, b string) int {
			x, _ := release(a)
			y, _ := release(b)
			return slices.Compare(x, y)
		}) {
			t.Errorf("%s: versions %q are not in order", e.Name, v)
		}
	}
}

// TestUntried: a version is newer than what was read by the numbers that both have.
func TestUntried(t *testing.T) {
	e, _ := ByName("llamacpp")
	newest := e.Versions()[len(e.Versions())-1]
	for version, want := range map[string]string{
		"": "", "nightly": "", "b9986": "", "b99999": "", "0.1": "", newest: "", "v" + newest + ".9": "", newest + ".0-dev": "", newest + "9": newest, "v99.0": newest,
	} {
		if got := e.Untried(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

// TestFit: a flag that the version is known to lack is refused by a sentence; one that it
// may have is not.
func TestFit(t *testing.T) {
	for _, tt := range []struct{ version, command, want string }{
		{"0.11", "vllm serve M --performance-mode throughput", "--performance-mode (performance_mode) is not in vLLM 0.11: it came with 0.17"},
		{"0.16.0", "vllm serve M --performance-mode throughput", "--performance-mode (performance_mode) is not in vLLM 0.16.0: it came with 0.17"},
		{"0.11.2", "vllm serve M --moe-backend triton", "--moe-backend (moe_backend) is not in vLLM 0.11.2: it came with 0.17"},
		{"0.14", "vllm serve M --moe-backend triton", "is not in vLLM 0.14: it came with 0.17"},
		{"0.21", "vllm serve M --linear-backend triton", ""},
		{"0.20", "vllm serve M --linear-backend triton", "is not in vLLM 0.20: it is known from 0.22 on"},
		{"v0.30.1", "vllm serve M --swap-space 4", "--swap-space is not in vLLM 0.30.1: it is known up to 0.17"},
		{"0.20", "vllm serve M --swap-space 4", "it is known up to 0.17"},
		{"0.33", "vllm serve M --max-num-partial-prefills 2", "is not in vLLM 0.33: it is known up to 0.26"},
		{"0.5.23", "sglang serve --model-path M --cuda-graph-max-bs 256", "--cuda-graph-max-bs (max_cudagraph_capture_size) is not in SGLang 0.5.23: write --cuda-graph-max-bs-decode"},
		{"0.24", "vllm serve M --use_gpu-for-pooling-score", "is not in vLLM 0.24: it is known from 0.17 to 0.17"},
		{"0.11", "vllm serve M --max-cudagraph-capture-size 512", "--max-cudagraph-capture-size (max_cudagraph_capture_size) is not in vLLM 0.11: it came with 0.12"},
		{"0.12", "vllm serve M --max-cudagraph-capture-size 512", ""},
		{"0.11", "vllm serve M --attention-config.backend X", "--attention-config is not in vLLM 0.11"},
		{"0.11", "vllm serve M --optimization-level 3", "--optimization-level is not in vLLM 0.11"},
		{"0.11", "vllm serve M -tp 2 -O3 --compilation-config.level 3", ""},
		{"", "vllm serve M --performance-mode throughput --swap-space 4", ""},
		{"nightly", "vllm serve M --performance-mode throughput", ""},
		{"0.5.9", "sglang serve --model-path M --cuda-graph-max-bs-decode 64", "--cuda-graph-max-bs-decode (max_cudagraph_capture_size) is not in SGLang 0.5.9: write --cuda-graph-max-bs"},
		{"0.5.5", "sglang serve --model-path M --chunked-prefill-size -1 --fp8-gemm-backend triton", "--fp8-gemm-backend is not in SGLang 0.5.5: it came with 0.5.6"},
		{"1.1", "trtllm-serve M --chat_template x", "--chat_template is not in TensorRT-LLM 1.1: it is known from 1.2 on"},
	} {
		words := strings.Fields(tt.command)
		c, err := Parse(words)
		if err != nil {
			t.Fatal(err)
		}
		c.Version = tt.version
		rej := c.Fit(words...)
		switch {
		case rej == nil && tt.want != "":
			t.Errorf("%q of %s passes, want %q", tt.command, tt.version, tt.want)
		case rej != nil && (tt.want == "" || !strings.Contains(rej.Reason, tt.want)):
			t.Errorf("%q of %s: %q, want %q", tt.command, tt.version, rej.Reason, tt.want)
		}
		if rej == nil {
			continue
		}
		e, _ := ByName(c.Engine)
		if reason, ok := RefusalOf(e.Name, "INFO x\n"+rej.Log+"\n"); !ok || reason != rej.Log {
			t.Errorf("%q is not found to be a refusal: %q", rej.Log, reason)
		}
	}
}
