package arch

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	qwen32 = `{"model_type":"qwen3","num_hidden_layers":64,"hidden_size":5120,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":128,
"intermediate_size":25600,"vocab_size":151936,"max_position_embeddings":40960,"tie_word_embeddings":false,"use_sliding_window":false,"sliding_window":null,"max_window_layers":64%s}`
	fp8Block = `,"quantization_config":{"quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,128]}`
	qwen235  = `{"model_type":"qwen3_moe","num_hidden_layers":94,"hidden_size":4096,"num_attention_heads":64,"num_key_value_heads":4,"head_dim":128,
"intermediate_size":12288,"moe_intermediate_size":1536,"num_experts":128,"num_experts_per_tok":8,"decoder_sparse_step":1,"mlp_only_layers":[],
"vocab_size":151936,"max_position_embeddings":262144,"tie_word_embeddings":false}`
	qwen35 = `{"model_type":"qwen3_5_moe","text_config":{"num_hidden_layers":40,"hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":2,"head_dim":256,
"attn_output_gate":true,"moe_intermediate_size":512,"shared_expert_intermediate_size":512,"num_experts":256,"num_experts_per_tok":8,"vocab_size":248320,
"max_position_embeddings":262144,"linear_num_key_heads":16,"linear_num_value_heads":32,"linear_key_head_dim":128,"linear_value_head_dim":128,"linear_conv_kernel_dim":4,
"full_attention_interval":4,"mtp_num_hidden_layers":1},"tie_word_embeddings":false}`
	gptOSS = `{"model_type":"gpt_oss","num_hidden_layers":4,"hidden_size":2880,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,
"layer_types":["sliding_attention","full_attention","sliding_attention","full_attention"],"sliding_window":128,"num_local_experts":32,"num_experts_per_tok":4,
"vocab_size":201088,"max_position_embeddings":131072,"quantization_config":{"quant_method":"mxfp4"}}`
	deepseek = `{"model_type":"deepseek_v3","num_hidden_layers":61,"hidden_size":7168,"num_attention_heads":128,"num_key_value_heads":128,"intermediate_size":18432,
"moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,"num_experts_per_tok":8,"first_k_dense_replace":3,"kv_lora_rank":512,"q_lora_rank":1536,
"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,"num_nextn_predict_layers":1,"vocab_size":129280,"max_position_embeddings":163840` + fp8Block + `}`
	// Gemma 3 files leave out what is the code's default; the 27B one tells these.
	gemma27 = `{"architectures":["Gemma3ForConditionalGeneration"],"model_type":"gemma3","text_config":{"head_dim":128,"hidden_size":5376,"intermediate_size":21504,
"model_type":"gemma3_text","num_attention_heads":32,"num_hidden_layers":62,"num_key_value_heads":16,"sliding_window":1024},
"vision_config":{"hidden_size":1152,"num_hidden_layers":27,"num_attention_heads":16}}`
	gemma4B = `{"model_type":"gemma3","text_config":{"hidden_size":2560,"intermediate_size":10240,"model_type":"gemma3_text","num_hidden_layers":34,"sliding_window":1024}}`
	// Llama 4 files name no layer types: every fourth layer has no positions.
	scout = `{"model_type":"llama4","text_config":{"attention_chunk_size":8192,"head_dim":128,"hidden_size":5120,"interleave_moe_layer_step":1,"intermediate_size":8192,
"intermediate_size_mlp":16384,"max_position_embeddings":10485760,"model_type":"llama4_text","num_attention_heads":40,"num_experts_per_tok":1,"num_hidden_layers":48,
"num_key_value_heads":8,"num_local_experts":16,"vocab_size":202048}}`
	maverick = `{"model_type":"llama4","text_config":{"attention_chunk_size":8192,"head_dim":128,"hidden_size":5120,"interleave_moe_layer_step":2,"intermediate_size":8192,
"intermediate_size_mlp":16384,"max_position_embeddings":1048576,"model_type":"llama4_text","num_attention_heads":40,"num_experts_per_tok":1,"num_hidden_layers":48,
"num_key_value_heads":8,"num_local_experts":128,"vocab_size":202048,"no_rope_layers":[1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0]}}`
	qwenNext = `{"model_type":"qwen3_next","num_hidden_layers":48,"hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":2,"head_dim":256,"intermediate_size":5120,
"moe_intermediate_size":512,"shared_expert_intermediate_size":512,"num_experts":512,"num_experts_per_tok":10,"decoder_sparse_step":1,"mlp_only_layers":[],
"linear_num_key_heads":16,"linear_num_value_heads":32,"linear_key_head_dim":128,"linear_value_head_dim":128,"linear_conv_kernel_dim":4,"full_attention_interval":4,
"vocab_size":151936,"max_position_embeddings":262144,"tie_word_embeddings":false}`
)

func parse(t *testing.T, config string) Model {
	t.Helper()
	m, err := ParseConfig("x", strings.NewReader(config))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestParseConfigAgrees holds parsed files against the embedded table.
func TestParseConfigAgrees(t *testing.T) {
	for known, config := range map[string]string{
		"Qwen/Qwen3-32B":                                fmt.Sprintf(qwen32, ""),
		"Qwen/Qwen3-32B-FP8":                            fmt.Sprintf(qwen32, fp8Block),
		"Qwen/Qwen3-235B-A22B-Instruct-2507":            qwen235,
		"Qwen/Qwen3.5-35B-A3B":                          qwen35,
		"google/gemma-3-27b-it":                         gemma27,
		"meta-llama/Llama-4-Scout-17B-16E-Instruct":     scout,
		"meta-llama/Llama-4-Maverick-17B-128E-Instruct": maverick,
		"Qwen/Qwen3-Next-80B-A3B-Instruct":              qwenNext,
		"deepseek-ai/DeepSeek-V3":                       deepseek,
	} {
		want, got := mustModel(t, known), parse(t, config)
		want.Name, want.Source = got.Name, got.Source
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-table +parsed):\n%s", known, d)
		}
	}
}

func TestParseConfigFamilies(t *testing.T) {
	oss := parse(t, gptOSS)
	if oss.WindowLayers != 2 || oss.Window != 128 || oss.Format != MXFP4 || oss.MoE.Hidden != 2880 || oss.FFN != 0 || !oss.Sinks {
		t.Errorf("gpt-oss: %+v", oss)
	}
	ds := parse(t, deepseek)
	if ds.Sinks {
		t.Error("DeepSeek-V3 has attention sinks")
	}
	if b := float64(ds.Params()) / 1e9; b < 667 || b > 675 { // published: 671 B
		t.Errorf("DeepSeek-V3 has %.1f B, want 671", b)
	}
	if b := float64(ds.Active()) / 1e9; b < 35.5 || b > 37.5 { // published: 37 B with the embedding
		t.Errorf("DeepSeek-V3 has %.1f B active, want 37", b)
	}
	if got := ds.KVBytesPerToken(2); got != 61*576*2 || got != ds.KVBytesPerTokenRank(2, 8, 1) {
		t.Errorf("MLA cache = %d, at tp8 %d: latent vectors are not split", got, ds.KVBytesPerTokenRank(2, 8, 1))
	}
	if g := parse(t, gemma4B); g.Heads != 8 || g.KVHeads != 4 || g.HeadDim != 256 || g.WindowLayers != 29 || !g.TiedHead || g.Vocab != 262208 || math.Abs(float64(g.Params())/3.88e9-1) > 0.01 {
		t.Errorf("Gemma 3 4B, whose file leaves most to the code: %+v, %d parameters", g, g.Params()) // 4.3 B with 0.42 B of vision tower
	}
	if m := parse(t, fmt.Sprintf(strings.Replace(qwen32, `"use_sliding_window":false,"sliding_window":null`, `"sliding_window":4096`, 1), "")); m.WindowLayers != 64 || m.Window != 4096 {
		t.Errorf("a window without layer types is every layer's, as in Mistral 7B v0.1: %d of %d", m.WindowLayers, m.Window)
	}
	if !ds.HasMTP || ds.QuantBlock != 128 || ds.MoE.SharedDim != 2048 || ds.MoE.DenseLayers != 3 {
		t.Errorf("DeepSeek-V3: %+v", ds)
	}
}

func TestParseConfigQuantisation(t *testing.T) {
	for quant, want := range map[string]Format{
		`{"quant_method":"awq","bits":4}`:                  INT4,
		`{"quant_method":"gptq","bits":4}`:                 INT4,
		`{"quant_method":"modelopt","quant_algo":"NVFP4"}`: NVFP4,
		`{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float"}}}}`: FP8,
		`{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int"}}}}`:   INT4,
	} {
		if got := parse(t, fmt.Sprintf(qwen32, `,"quantization_config":`+quant)).Format; got != want {
			t.Errorf("%s: %s, want %s", quant, got, want)
		}
	}
	mxfp4 := strings.Replace(gptOSS, `"quant_method":"mxfp4"`, `"quant_method":"mxfp4","modules_to_not_convert":["model.layers.*.self_attn","model.layers.*.mlp.router","model.embed_tokens","lm_head"]`, 1)
	if m := parse(t, mxfp4); m.ExpertFormat() != MXFP4 || m.LinearFormat() != BF16 {
		t.Errorf("MXFP4 with exceptions: experts %s, attention %s", m.ExpertFormat(), m.LinearFormat())
	}
	experts := `,"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int"}}},"ignore":["lm_head","re:.*self_attn.*"]}`
	if m := parse(t, fmt.Sprintf(qwen32, experts)); m.Format != INT4 || m.LinearFormat() != BF16 {
		t.Errorf("attention left out of the quantisation: %s, attention %s", m.Format, m.LinearFormat())
	}
	// Checkpoints of NVIDIA's optimiser may tell their format beside config.json only.
	if m, err := ParseConfig("nvidia/Qwen3-32B-NVFP4", strings.NewReader(fmt.Sprintf(qwen32, ""))); err != nil || m.Format != NVFP4 {
		t.Errorf("format told by the name: %s, %v", m.Format, err)
	}
}

func TestParseConfigErrors(t *testing.T) {
	for config, want := range map[string]string{
		fmt.Sprintf(qwen32, `,"hybrid_override_pattern":"MEM*EM"`):           "state-space (Mamba) layers",
		fmt.Sprintf(qwen32, `,"block_configs":[{}]`):                         "block_configs",
		fmt.Sprintf(qwen32, `,"compress_ratios":[4,128]`):                    "compressed attention",
		fmt.Sprintf(qwen32, `,"global_head_dim":512`):                        "window layers of another shape",
		fmt.Sprintf(qwen32, `,"swa_num_key_value_heads":4`):                  "window layers of another shape",
		strings.Replace(fmt.Sprintf(qwen32, ""), `"qwen3"`, `"gpt_neox"`, 1): "feed-forwards of two matrices",
		`{`:                 "unexpected EOF",
		`{"num_layers": 3}`: "lacks num_hidden_layers, hidden_size",
		fmt.Sprintf(qwen32, `,"layer_types":["mamba"]`):                                                    `layer type "mamba"`,
		fmt.Sprintf(qwen32, `,"quantization_config":{"quant_method":"bitnet"}`):                            `quantization_config "bitnet"`,
		fmt.Sprintf(qwen32, `,"num_experts":8`):                                                            "num_experts_per_tok",
		fmt.Sprintf(qwen32, `,"num_experts":8,"num_experts_per_tok":2,"first_k_dense_replace":999`):        "999 dense layers of 64",
		fmt.Sprintf(qwen32, `,"num_experts":8,"num_experts_per_tok":9`):                                    "9 of 8 experts",
		fmt.Sprintf(qwen32, `,"layer_types":["linear_attention"]`):                                         "linear_num_key_heads",
		fmt.Sprintf(qwen32, `,"quantization_config":{"quant_method":"gptq","bits":8}`):                     "8 bits",
		strings.Replace(fmt.Sprintf(qwen32, ""), `"num_key_value_heads":8`, `"num_key_value_heads":-8`, 1): "-8 KV heads",
	} {
		if _, err := ParseConfig("x", strings.NewReader(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: error %v, want %q", config, err, want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, c := range []string{fmt.Sprintf(qwen32, fp8Block), qwen235, qwen35, gptOSS, deepseek, gemma27, gemma4B, scout, maverick, qwenNext} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, config string) {
		m, err := ParseConfig("x", strings.NewReader(config))
		if err == nil && (m.Layers <= 0 || m.HeadDim < 0 || m.Format == "") {
			t.Errorf("accepted %+v", m)
		}
	})
}
