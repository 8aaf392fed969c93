package arch

import (
	"fmt"
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
"max_position_embeddings":262144,"linear_num_key_heads":16,"linear_num_value_heads":32,"linear_key_head_dim":128,"linear_value_head_dim":128,
"full_attention_interval":4,"mtp_num_hidden_layers":1},"tie_word_embeddings":false}`
	gptOSS = `{"model_type":"gpt_oss","num_hidden_layers":4,"hidden_size":2880,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,
"layer_types":["sliding_attention","full_attention","sliding_attention","full_attention"],"sliding_window":128,"num_local_experts":32,"num_experts_per_tok":4,
"vocab_size":201088,"max_position_embeddings":131072,"quantization_config":{"quant_method":"mxfp4"}}`
	deepseek = `{"model_type":"deepseek_v3","num_hidden_layers":61,"hidden_size":7168,"num_attention_heads":128,"num_key_value_heads":128,"intermediate_size":18432,
"moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,"num_experts_per_tok":8,"first_k_dense_replace":3,"kv_lora_rank":512,"q_lora_rank":1536,
"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,"num_nextn_predict_layers":1,"vocab_size":129280,"max_position_embeddings":163840` + fp8Block + `}`
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
		"Qwen/Qwen3-32B":                     fmt.Sprintf(qwen32, ""),
		"Qwen/Qwen3-32B-FP8":                 fmt.Sprintf(qwen32, fp8Block),
		"Qwen/Qwen3-235B-A22B-Instruct-2507": qwen235,
		"Qwen/Qwen3.5-35B-A3B":               qwen35,
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
	if oss.WindowLayers != 2 || oss.Window != 128 || oss.Format != MXFP4 || oss.MoE.Hidden != 2880 || oss.FFN != 0 {
		t.Errorf("gpt-oss: %+v", oss)
	}
	ds := parse(t, deepseek)
	if b := float64(ds.Params()) / 1e9; b < 667 || b > 675 { // published: 671 B
		t.Errorf("DeepSeek-V3 has %.1f B, want 671", b)
	}
	if b := float64(ds.Active()) / 1e9; b < 35.5 || b > 37.5 { // published: 37 B with the embedding
		t.Errorf("DeepSeek-V3 has %.1f B active, want 37", b)
	}
	if got := ds.KVBytesPerToken(2); got != 61*576*2 || got != ds.KVBytesPerTokenRank(2, 8, 1) {
		t.Errorf("MLA cache = %d, at tp8 %d: latent vectors are not split", got, ds.KVBytesPerTokenRank(2, 8, 1))
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
}

func TestParseConfigErrors(t *testing.T) {
	for config, want := range map[string]string{
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
	for _, c := range []string{fmt.Sprintf(qwen32, fp8Block), qwen235, qwen35, gptOSS, deepseek} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, config string) {
		m, err := ParseConfig("x", strings.NewReader(config))
		if err == nil && (m.Layers <= 0 || m.HeadDim < 0 || m.Format == "") {
			t.Errorf("accepted %+v", m)
		}
	})
}
