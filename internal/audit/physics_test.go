package audit

import (
	"math"
	"slices"
	"strings"
	"testing"

	"perflab/internal/arch"
	"perflab/internal/interop"
	"perflab/internal/result"
)

func mustMachine(t *testing.T, model, device string, gpus int) machine {
	t.Helper()
	m, err := arch.LookupModel(model)
	if err != nil {
		t.Fatal(err)
	}
	a, err := arch.LookupAccelerator(device)
	if err != nil {
		t.Fatal(err)
	}
	return machine{model: m, acc: a, gpus: gpus, spec: 1, kv: 2}
}

// Floors of a prompt of 1024 tokens in ms, computed by hand from the shapes: all
// touched experts and the other weights once at 273 GB/s a node, the products at
// 250 TFLOP/s (Scout's 16-bit attention at 125), sums over the nodes at 25 GB/s.
func TestPrefillFloors(t *testing.T) {
	for _, tt := range []struct {
		model                      string
		nodes                      int
		memory, compute, allReduce float64
		fp4                        bool // at 500 TFLOP/s the products take less
	}{
		{"Qwen/Qwen3-VL-32B-Instruct-FP8", 4, 30, 64, 81, false},
		{"Qwen/Qwen3-VL-235B-A22B-Instruct-FP8", 4, 215, 43, 95, false},
		{"QuantTrio/Qwen3-VL-235B-A22B-Instruct-AWQ", 4, 115, 43, 95, false},
		{"GPT-OSS-20B", 4, 12, 6, 17, true},
		{"GPT-OSS-120B", 8, 29, 5, 30, true},
		{"GPT-OSS-120B", 4, 59, 9, 25, true},
		{"zai-org/GLM-4.6-FP8", 4, 323, 66, 116, false},
		{"nvidia/Llama-4-Scout-17B-16E-Instruct-NVFP4", 4, 60, 44, 60, true},
		{"nvidia/Llama-3.3-70B-Instruct-NVFP4", 4, 37, 140, 161, true},
	} {
		m := mustMachine(t, tt.model, "gb10", tt.nodes)
		for what, pair := range map[string][2]float64{
			"memory":     {1000 * m.readPrompt(1024), tt.memory},
			"compute":    {1000 * m.multiply(1024), tt.compute},
			"all-reduce": {1000 * m.allReduce(1024), tt.allReduce},
		} {
			got, want := pair[0], pair[1]
			if what == "compute" && tt.fp4 {
				if got > 1.1*want {
					t.Errorf("%s on %d: %s %.1f ms, want at most %.1f", tt.model, tt.nodes, what, got, want)
				}
				continue
			}
			if math.Abs(got/want-1) > 0.1 {
				t.Errorf("%s on %d: %s %.1f ms, want %.1f within 10 %%", tt.model, tt.nodes, what, got, want)
			}
		}
	}
}

// 246 requests in flight on one H200 cannot get more than some 11,900 tokens a
// second of a model that reads 70 GB and 126 MB of state a sequence each step.
func TestRateBound(t *testing.T) {
	m := mustMachine(t, "Qwen/Qwen3.5-35B-A3B", "h200", 1)
	if got := m.rate(246); math.Abs(got/11900-1) > 0.05 {
		t.Errorf("%.0f tok/s, want 11,900 within 5 %%", got)
	}
	if one := 1000 * m.step(1); one < 1 || one > 1.4 {
		t.Errorf("a step of one sequence takes %.2f ms, want about 1.2", one)
	}
	for n := 1.0; n < 4096; n *= 2 {
		if m.rate(2*n) < m.rate(n) || m.step(2*n) < m.step(n) {
			t.Errorf("more in flight than %.0f give less", n)
		}
	}
}

func TestRecognise(t *testing.T) {
	for _, tt := range []struct {
		name, model, hardware, command string
		section                        []string
		labels                         result.Labels
		want                           string
		gpus                           int
		format                         arch.Format
	}{
		{"full command", "Qwen/Qwen3-32B", "NVIDIA H100 GPUs", "vllm serve Qwen/Qwen3-32B", nil, nil, "h100-sxm", 1, arch.BF16},
		{"PCIe", "Qwen/Qwen3-32B", "4 x NVIDIA H100 PCIe", "vllm serve Qwen/Qwen3-32B -tp 2", nil, nil, "h100-pcie", 2, arch.BF16},
		{"quantised at load", "Qwen/Qwen3-32B", "NVIDIA H200", "vllm serve Qwen/Qwen3-32B --quantization fp8 --tensor-parallel-size=2 -pp 2", nil, nil, "h200", 4, arch.FP8},
		{"copies share ranks", "Qwen/Qwen3-32B-FP8", "8 × NVIDIA A100 SXM 80GB GPUs on a single node.", "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B-FP8 --tp-size 8 --dp-size 8 --enable-dp-attention", nil, nil, "a100-sxm-80", 8, arch.FP8},
		{"nodes in the title", "GPT-OSS-120B", "", "", []string{"6x Spark setup", "GPT-OSS-120B", "4 node (tp)"}, nil, "gb10", 4, arch.MXFP4},
		{"count behind the name", "zai-org/GLM-4.6-FP8", "NVIDIA H200x8", "", nil, nil, "h200", 8, arch.FP8},
		{"a single", "Qwen/Qwen3-8B", "A single NVIDIA L40S GPU.", "", nil, nil, "l40s", 1, arch.BF16},
		{"too large for one: as many as there are", "Qwen/Qwen3-235B-A22B", "8 x NVIDIA H100", "--max-model-len=32768", nil, nil, "h100-sxm", 8, arch.BF16},
		{"several in one text", "Qwen/Qwen3-32B", "Tested on one H100, 1 x H200 and 1 x MI300X", "vllm serve Qwen/Qwen3-32B", nil, nil, "", 0, ""},
		{"a section of another device", "Qwen/Qwen3-32B", "NVIDIA H200", "vllm serve Qwen/Qwen3-32B", []string{"Results", "On H100"}, nil, "h100-sxm", 1, arch.BF16},
		{"a section of a device that is not known", "Qwen/Qwen3-32B", "NVIDIA H200", "vllm serve Qwen/Qwen3-32B", []string{"Results", "On MI300X"}, nil, "", 0, ""},
		{"no count", "Qwen/Qwen3-32B", "NVIDIA H100 GPUs", "", nil, nil, "", 0, ""},
		{"unknown model", "acme/Other-7B", "NVIDIA H100", "", nil, nil, "", 0, ""},
		{"unknown hardware", "Qwen/Qwen3-32B", "A single X900 NPU", "", nil, nil, "", 0, ""},
	} {
		labels := result.Labels{result.LabelHardware: tt.hardware}
		r := &interop.Run{Place: interop.Place{Section: tt.section}}
		r.Header.Model, r.Header.Command, r.Header.Imported = tt.model, tt.command, &result.Imported{Labels: labels}
		m, missing := recognise(&interop.File{}, r, Options{})
		if (missing != "") != (tt.want == "") {
			t.Errorf("%s: missing %q", tt.name, missing)
			continue
		}
		if tt.want != "" && (m.acc.Name != tt.want || m.gpus != tt.gpus || m.model.Format != tt.format) {
			t.Errorf("%s: %s x%d %s, want %s x%d %s", tt.name, m.acc.Name, m.gpus, m.model.Format, tt.want, tt.gpus, tt.format)
		}
	}
}

func TestSpeculation(t *testing.T) {
	for command, want := range map[string]float64{
		"vllm serve m": 1,
		`vllm serve m --speculative-config={"method":"mtp","num_speculative_tokens":1}`:         2,
		`vllm serve m --speculative-config '{"method": "eagle3", "num_speculative_tokens": 4}'`: 5,
		"sglang serve m --speculative-algorithm EAGLE":                                          8,
	} {
		if got := speculation(strings.Fields(command)); got != want {
			t.Errorf("%s: %v tokens a step, want %v", command, got, want)
		}
	}
}

// Physics speaks where a document names model and hardware.
func TestPhysicsOfDocument(t *testing.T) {
	head := "# Runs\n\n## Model\n\nQwen/Qwen3-32B\n\n## Hardware\n\nA single NVIDIA H100 SXM GPU.\n\n## Result\n\n```bash\nvllm serve Qwen/Qwen3-32B\n```\n\n"
	for _, tt := range []struct {
		name, block string
		changes     []string
		want        []string
	}{
		{"a fresh prompt", singleBlock, nil, nil},
		{"a cached one", singleBlock, []string{"Mean TTFT (ms): 18.00", "Median TTFT (ms): 18.00", "P99 TTFT (ms): 18.00"}, []string{"warning prefix-cache-suspected"}},
		{"tokens without weights", singleBlock, []string{"Mean TPOT (ms): 15.00", "Median TPOT (ms): 15.00", "P99 TPOT (ms): 15.00"}, []string{"warning decode-beyond-hardware"}},
		{"more than steps give", vllmBlock, []string{"Peak output token throughput (tok/s): 2600.00"}, []string{"warning peak-beyond-hardware"}},
		{"prompts without arithmetic", vllmBlock, []string{"Total input tokens: 800000", "Total token throughput (tok/s): 16400"}, []string{"warning prefill-beyond-hardware"}},
	} {
		got := types(audited(t, head+"```\n"+with(t, tt.block, tt.changes...)+"```\n"))
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	fp8 := strings.Replace(head, "```bash\nvllm serve Qwen/Qwen3-32B\n```\n\n", "Weights were FP8 in part.\n\n", 1)
	for text, want := range map[string]bool{head: false, fp8: true} {
		found := audited(t, text+"```\n"+with(t, vllmBlock, "Peak output token throughput (tok/s): 99999.00")+"```\n")
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Type == "peak-beyond-hardware" })
		if i < 0 || strings.Contains(found[i].Text, "(FP8 weights, which its command does not name; with BF16 ") != want {
			t.Errorf("the weights of\n%s: %+v", text, found)
		}
	}
	unknown := strings.ReplaceAll(head, "Qwen3-32B", "Other-32B")
	if got := types(audited(t, unknown+"```\n"+vllmBlock+"```\n")); !slices.Equal(got, []string{"note physics-skipped"}) {
		t.Errorf("unknown model: %q", got)
	}
}
