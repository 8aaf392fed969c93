package arch

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustModel(t *testing.T, name string) Model {
	t.Helper()
	m, err := LookupModel(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestShapes compares counts computed from the shapes with the published sizes.
func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		name          string
		total, active float64 // 1e9
		kvKiB         float64 // per token, 2 bytes per element
	}{
		{"Qwen/Qwen3-32B", 32.8, 32.0, 256},
		{"Qwen/Qwen3-VL-32B-Instruct", 32.8, 32.0, 256},
		{"Qwen/Qwen3-235B-A22B", 235.1, 21.6, 188},
		{"Qwen/Qwen3-VL-235B-A22B-Instruct", 235.1, 21.6, 188},
		{"Qwen/Qwen3.5-35B-A3B", 34.7, 2.95, 20},
		{"GPT-OSS-20B", 20.9, 3.6, 48},
		{"GPT-OSS-120B", 116.8, 5.1, 72},
		{"GLM-4.6", 352.8, 32.9, 368},
		{"Llama-4-Scout", 107.8, 16.1, 192},
		{"Llama-3.3-70B", 70.6, 69.5, 320},
		{"Qwen3-14B", 14.8, 14.0, 160},
		{"GLM-4.5-Air", 106.9, 12.8, 184},
		{"Qwen3-30B-A3B", 30.5, 3.04, 96},
		{"Qwen3-8B", 8.19, 7.57, 144},
		{"Llama-3.1-8B", 8.03, 7.50, 128},
		{"Qwen3-0.6B", 0.596, 0.596, 112},
		{"Qwen3.5-9B", 8.95, 7.94, 32},
		{"GLM-4.5", 352.8, 32.9, 368},
		{"DeepSeek-R1-0528", 671, 36.6, 68.625},
		// Totals as the model cards give them; actives without the embedding, which the cards count.
		{"Qwen3-1.7B", 1.72, 1.72, 112},
		{"Qwen3-4B-Instruct-2507", 4.02, 4.02, 144},
		{"Qwen3-VL-8B-Instruct", 8.19, 7.57, 144},
		{"Qwen3-VL-30B-A3B-Instruct", 30.5, 3.04, 96},
		{"Qwen3-Coder-30B-A3B-Instruct", 30.5, 3.04, 96},
		{"Qwen3-Coder-480B-A35B-Instruct", 480, 34.5, 248}, // card: 35 active
		{"Qwen3-Next-80B-A3B-Instruct", 79.7, 3.56, 24},    // card: 80, 3 active without embedding and head
		{"Qwen3.5-27B", 26.9, 25.6, 64},
		{"Qwen3.5-122B-A10B", 122, 9.0, 24},  // card: 10 active
		{"Qwen3.5-397B-A17B", 397, 16.3, 30}, // card: 17 active
		{"Qwen2.5-7B-Instruct", 7.61, 7.07, 56},
		{"Qwen2.5-32B-Instruct", 32.8, 32.0, 256},
		{"Qwen2.5-72B-Instruct", 72.7, 71.5, 320},
		{"Llama-3.2-1B", 1.24, 1.24, 32},
		{"Llama-3.2-3B", 3.21, 3.21, 112},
		{"Llama-3.1-405B", 405, 403.7, 504},
		{"Llama-4-Maverick", 400, 16.15, 192}, // card: 17 active
		{"Mistral-7B-Instruct-v0.3", 7.25, 7.11, 128},
		{"Mistral-Small-24B-Instruct-2501", 23.6, 22.9, 160},
		{"Mixtral-8x7B", 46.7, 12.75, 128}, // card: 12.9 active
		{"gemma-3-12b-it", 11.8, 11.8, 384},
		{"gemma-3-27b-it", 27.0, 27.0, 496},
		{"phi-4", 14.7, 14.15, 200},
		{"Kimi-K2-Instruct", 1026, 31.7, 68.625}, // card: 1 T, 32 active
		{"MiniMax-M2", 229, 10.4, 248},           // card: 230, 10 active
	} {
		m := mustModel(t, tt.name)
		for what, pair := range map[string][2]float64{
			"total":  {float64(m.Params()) / 1e9, tt.total},
			"active": {float64(m.Active()) / 1e9, tt.active},
		} {
			if got, want := pair[0], pair[1]; math.Abs(got/want-1) > 0.01 {
				t.Errorf("%s: %s = %.3f B, want %.3f within 1 %%", tt.name, what, got, want)
			}
		}
		if got := float64(m.KVBytesPerToken(2)) / 1024; got != tt.kvKiB {
			t.Errorf("%s: KV per token = %v KiB, want %v", tt.name, got, tt.kvKiB)
		}
		if m.Source == "" {
			t.Errorf("%s: no source", tt.name)
		}
	}
	if got := mustModel(t, "Qwen3.5-35B-A3B").StateBytesLayer(2); got != (32*128*128*4+8192*3*2)/2 {
		t.Errorf("state of a layer at tp 2 = %d bytes", got)
	}
	if got := mustModel(t, "Qwen3.5-35B-A3B").StateBytes(); got != 30*32*128*128*4 {
		t.Errorf("state = %d bytes", got)
	}
}

func TestWeightFormats(t *testing.T) {
	for _, tt := range []struct {
		name   string
		format Format
		block  int
		gb     float64
	}{
		{"Qwen/Qwen3-32B", BF16, 0, 65.5},
		{"Qwen/Qwen3-32B-FP8", FP8, 128, 34.3}, // 31.2 + 2*1.56 for embedding and head in 16 bit
		{"RedHatAI/Qwen3-32B-FP8-dynamic", FP8, 0, 34.3},
		{"QuantTrio/Qwen3-VL-235B-A22B-Instruct-AWQ", INT4, 0, 126.4},
		{"gpt-oss-120b", MXFP4, 0, 65.2}, // published size 65 GB
		{"nvidia/Llama-3.3-70B-Instruct-NVFP4", NVFP4, 0, 42.7},
		{"nvidia/Llama-4-Scout-17B-16E-Instruct-FP4", NVFP4, 0, 67.9}, // attention in bf16
		{"zai-org/GLM-4.6-FP8", FP8, 0, 354.3},
	} {
		m := mustModel(t, tt.name)
		if m.Format != tt.format || m.QuantBlock != tt.block || m.Name != tt.name {
			t.Errorf("%s: %s block %d name %s, want %s block %d", tt.name, m.Format, m.QuantBlock, m.Name, tt.format, tt.block)
		}
		if got := float64(m.WeightBytes()) / 1e9; math.Abs(got/tt.gb-1) > 0.005 {
			t.Errorf("%s: weights = %.2f GB, want %.1f", tt.name, got, tt.gb)
		}
	}
}

// TestWeightsPerGPU checks the split against the whole: ranks times the share
// is the whole but for replicated heads and uneven layers.
func TestWeightsPerGPU(t *testing.T) {
	moe := mustModel(t, "Qwen3-235B-A22B")
	whole := float64(moe.WeightBytes())
	near := func(what string, got int64, want float64) {
		t.Helper()
		if math.Abs(float64(got)/want-1) > 0.01 {
			t.Errorf("%s = %.2f GB, want %.2f", what, float64(got)/1e9, want/1e9)
		}
	}
	near("tp4", moe.WeightBytesPerGPU(4, 1, 1), whole/4)
	near("tp8", moe.WeightBytesPerGPU(8, 1, 1), whole/8) // 4 KV heads on 8 ranks: 0.3 % more
	if moe.WeightBytesPerGPU(8, 1, 1)*8 <= moe.WeightBytesPerGPU(4, 1, 1)*4 {
		t.Error("8 ranks replicate 4 KV heads, so together they must hold more than 4 ranks")
	}
	near("tp8 ep8", moe.WeightBytesPerGPU(8, 1, 8), whole/8)
	near("tp8 ep2", moe.WeightBytesPerGPU(8, 1, 2), whole/8)
	near("tp1 ep8 (dp8)", moe.WeightBytesPerGPU(1, 1, 8), whole-float64(moe.routedParams())*2*7/8)
	near("pp2", moe.WeightBytesPerGPU(1, 2, 1), whole/2)
	if got, want := moe.KVBytesPerTokenRank(2, 8, 1), int64(94*2*128*2); got != want {
		t.Errorf("KV per token at tp8 = %d, want one replicated head: %d", got, want)
	}
	if got, want := moe.KVBytesPerTokenRank(1, 2, 2), int64(47*2*2*128); got != want {
		t.Errorf("KV per token at tp2 pp2 fp8 = %d, want %d", got, want)
	}
}

func TestLookupErrors(t *testing.T) {
	_, err := LookupModel("acme/Qwen3-33B")
	if err == nil || !strings.Contains(err.Error(), "Qwen/Qwen3-32B") || !strings.Contains(err.Error(), "by model_config") {
		t.Errorf("unknown model: %v", err)
	}
	if _, err := LookupModel("gpt-oss-120b-FP8"); err == nil || !strings.Contains(err.Error(), "mxfp4 only") {
		t.Errorf("format that does not exist: %v", err)
	}
	if _, err := LookupAccelerator("h300"); err == nil || !strings.Contains(err.Error(), "h100-sxm") {
		t.Errorf("unknown accelerator: %v", err)
	}
	a, err := LookupAccelerator("H100-SXM")
	if err != nil || a.BandwidthGBs != 3350 {
		t.Errorf("H100-SXM: %+v, %v", a, err)
	}
}

// TestTables checks that every embedded row is complete and found by its own name.
func TestTables(t *testing.T) {
	for _, m := range Models() {
		got := mustModel(t, strings.ToUpper(m.Name))
		got.Name = m.Name
		if d := cmp.Diff(m, got); d != "" {
			t.Errorf("%s found by its name differs:\n%s", m.Name, d)
		}
		if m.Heads%m.KVHeads != 0 || m.MaxLen == 0 || m.Source == "" {
			t.Errorf("%s: %+v", m.Name, m)
		}
	}
	for _, a := range Accelerators() {
		if a.BF16TFLOPS <= 0 || a.BandwidthGBs <= 0 || a.MemoryGiB <= 0 || a.LinkGBs <= 0 || a.LinkLatency <= 0 || a.PowerW <= 0 || a.Source == "" {
			t.Errorf("%s: incomplete: %+v", a.Name, a)
		}
		if _, err := LookupLink(a.Network); err != nil || (a.Link == "") != (a.LinkDevices == 1) {
			t.Errorf("%s: link %q of %d devices, network %q: %v", a.Name, a.Link, a.LinkDevices, a.Network, err)
		}
		if (a.SM > 0) != (a.Platform == CUDA) {
			t.Errorf("%s: sm%d on %s", a.Name, a.SM, a.Platform)
		}
		if a.Platform == CUDA && ((a.FP8TFLOPS > 0) != (a.SM >= 89) || (a.FP4TFLOPS > 0) != (a.SM >= 100)) {
			t.Errorf("%s: units do not agree with sm%d", a.Name, a.SM)
		}
		if a.FP8TFLOPS > 0 && math.Abs(a.FP8TFLOPS/a.BF16TFLOPS-2) > 0.03 {
			t.Errorf("%s: %v FP8 and %v BF16 TFLOP/s: one of them is sparse", a.Name, a.FP8TFLOPS, a.BF16TFLOPS)
		}
	}
	for _, l := range links() {
		if l.GBs <= 0 || l.Latency <= 0 || l.Title == "" || l.Source == "" {
			t.Errorf("%s: incomplete: %+v", l.Name, l)
		}
	}
}

// TestCoupling: a link serves the devices it couples, the network any more.
func TestCoupling(t *testing.T) {
	for _, tt := range []struct {
		device       string
		n            int
		link         string
		gbs, latency float64
	}{
		{"h100-sxm", 8, "nvlink-4", 450, 5},
		{"h100-sxm", 16, "infiniband-ndr", 50, 30},
		{"h200", 8, "nvlink-4", 450, 7}, // measured on the H200 itself
		{"h200", 9, "infiniband-ndr", 50, 30},
		{"h100-nvl", 2, "nvlink-bridge", 300, 6},
		{"h100-nvl", 4, "pcie-5", 64, 24}, // of eight
		{"b200", 8, "nvlink-5", 900, 7},
		{"gb10", 4, "connectx-7-spark", 25, 50},
		{"mi300x", 8, "infinity-fabric-mi300x", 448, 10},
	} {
		a, err := LookupAccelerator(tt.device)
		if err != nil {
			t.Fatal(err)
		}
		if l := a.Coupling(tt.n); l.Name != tt.link || l.GBs != tt.gbs || l.Latency != tt.latency {
			t.Errorf("%d x %s: %+v, want %s with %v GB/s and %v us", tt.n, tt.device, l, tt.link, tt.gbs, tt.latency)
		}
	}
	for device, want := range map[string]float64{"a100-sxm-80": 32, "h100-sxm": 64, "gh200": 450, "gb10": 0, "xeon-8480": 0} {
		if a, err := LookupAccelerator(device); err != nil || a.HostCoupling().GBs != want {
			t.Errorf("%s is coupled with its host's memory by %+v, want %v GB/s: %v", device, a.HostCoupling(), want, err)
		}
	}
	if a, _ := LookupAccelerator("gb10"); a.LinkGBs != 25 || a.LinkLatency != 50 {
		t.Errorf("the peers of a device that is alone are over the network: %v GB/s, %v us", a.LinkGBs, a.LinkLatency)
	}
	if l := (Accelerator{}).Coupling(8); l != (Link{}) {
		t.Errorf("a device without links has %+v", l)
	}
	if _, err := LookupLink("token-ring"); err == nil || !strings.Contains(err.Error(), "nvlink-4") {
		t.Errorf("unknown link: %v", err)
	}
}

// TestBusLatency: on a bus an all-reduce takes a step for each further device, as
// measured over 2, 4 and 8 of them.
func TestBusLatency(t *testing.T) {
	for _, tt := range []struct {
		device   string
		measured [3]float64
	}{{"l40s", [3]float64{5.3, 13.4, 25.3}}, {"rtx-pro-6000", [3]float64{4.2, 12.7, 24.2}}} {
		a, err := LookupAccelerator(tt.device)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range []int{2, 4, 8} {
			if got := a.Coupling(n).AllReduceLatency(n); math.Abs(got-tt.measured[i]) > 3 {
				t.Errorf("%d x %s: %.1f us, measured %.1f", n, tt.device, got, tt.measured[i])
			}
		}
	}
}

// TestLookupIsCopy guards the embedded tables against their readers.
func TestLookupIsCopy(t *testing.T) {
	m := mustModel(t, "Qwen3-235B-A22B")
	m.MoE.Experts = 1
	if mustModel(t, "Qwen3-235B-A22B").MoE.Experts != 128 {
		t.Error("changing a looked-up model changes the table")
	}
}
