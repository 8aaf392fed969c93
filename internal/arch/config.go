package arch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// hfConfig is what perflab reads of a Hugging Face config.json. Families spell
// the same number differently; the methods below settle which one counts.
type hfConfig struct {
	ModelType  string    `json:"model_type"`
	TextConfig *hfConfig `json:"text_config"` // vision-language models nest the language model
	LLMConfig  *hfConfig `json:"llm_config"`

	Layers    int   `json:"num_hidden_layers"`
	Hidden    int   `json:"hidden_size"`
	Heads     int   `json:"num_attention_heads"`
	KVHeads   int   `json:"num_key_value_heads"`
	HeadDim   int   `json:"head_dim"`
	FFN       int   `json:"intermediate_size"`
	DenseFFN  int   `json:"intermediate_size_mlp"` // Llama 4, where intermediate_size is an expert's
	Vocab     int   `json:"vocab_size"`
	MaxLen    int   `json:"max_position_embeddings"`
	Tied      *bool `json:"tie_word_embeddings"`
	GatedQ    bool  `json:"attn_output_gate"`
	NextN     int   `json:"num_nextn_predict_layers"`
	MTPLayers int   `json:"mtp_num_hidden_layers"`

	LayerTypes    []string `json:"layer_types"`
	FullInterval  int      `json:"full_attention_interval"`
	SlidingWindow *int     `json:"sliding_window"`
	UseSliding    *bool    `json:"use_sliding_window"`
	ChunkSize     *int     `json:"attention_chunk_size"`
	WindowEvery1  int      `json:"sliding_window_pattern"` // Gemma: one layer in so many sees everything
	WindowEvery2  int      `json:"_sliding_window_pattern"`
	NoRope        []int    `json:"no_rope_layers"` // Llama 4: 0 for a layer that sees everything

	// Keys of layers whose shape is not known here.
	GlobalHeadDim int               `json:"global_head_dim"`
	WindowKVHeads int               `json:"swa_num_key_value_heads"`
	Compressed    []json.RawMessage `json:"compress_ratios"`
	BlockConfigs  []json.RawMessage `json:"block_configs"`
	MambaPattern  string            `json:"hybrid_override_pattern"`
	MambaHeads    int               `json:"mamba_num_heads"`
	MambaState    int               `json:"mamba_d_state"`

	Experts1     int     `json:"num_experts"`
	Experts2     int     `json:"num_local_experts"`
	Experts3     int     `json:"n_routed_experts"`
	Active       int     `json:"num_experts_per_tok"`
	MoEHidden    int     `json:"moe_intermediate_size"`
	SharedCount  int     `json:"n_shared_experts"`
	SharedHidden int     `json:"shared_expert_intermediate_size"`
	FirstDense   int     `json:"first_k_dense_replace"`
	SparseStep   int     `json:"decoder_sparse_step"`
	MoEStep      int     `json:"interleave_moe_layer_step"`
	MLPOnly      []int   `json:"mlp_only_layers"`
	Quantization *hfQuan `json:"quantization_config"`

	KVRank  int  `json:"kv_lora_rank"`
	QRank   *int `json:"q_lora_rank"`
	RopeDim int  `json:"qk_rope_head_dim"`
	NopeDim int  `json:"qk_nope_head_dim"`
	VDim    int  `json:"v_head_dim"`

	LinKeyHeads   int `json:"linear_num_key_heads"`
	LinValueHeads int `json:"linear_num_value_heads"`
	LinKeyDim     int `json:"linear_key_head_dim"`
	LinValueDim   int `json:"linear_value_head_dim"`
	LinConv       int `json:"linear_conv_kernel_dim"`
}

type hfQuan struct {
	Method    string   `json:"quant_method"`
	Algo      string   `json:"quant_algo"`
	Bits      int      `json:"bits"`
	WeightBit int      `json:"w_bit"`
	Block     []int    `json:"weight_block_size"`
	Ignore    []string `json:"ignore"`
	Groups    map[string]struct {
		Weights struct {
			Bits  int    `json:"num_bits"`
			Type  string `json:"type"`
			Block []int  `json:"block_structure"`
		} `json:"weights"`
	} `json:"config_groups"`
}

// ParseConfig reads the shape of a model from its Hugging Face config.json:
// dense and mixture-of-experts models with grouped-query or latent (MLA)
// attention, sliding windows, and hybrids with linear-attention layers. Others,
// such as state-space layers, are refused by name, as their numbers would be guesses.
// Where the file tells no quantisation, the ending of name does: some keep it in a file
// of its own.
func ParseConfig(name string, r io.Reader) (Model, error) {
	var c hfConfig
	err := json.NewDecoder(r).Decode(&c)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return Model{}, fmt.Errorf("read config.json of %s: %s must not be a JSON %s", name, cmp.Or(wrong.Field, "the whole"), wrong.Value)
	}
	if err != nil {
		return Model{}, fmt.Errorf("read config.json of %s: %w", name, err)
	}
	c = c.text()
	c.defaults()
	if err := c.unknown(); err != nil {
		return Model{}, fmt.Errorf("config.json of %s: %w", name, err)
	}
	m := Model{
		Name: name, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads,
		KVHeads: cmp.Or(c.KVHeads, c.Heads), HeadDim: c.HeadDim, GatedQ: c.GatedQ, Sinks: c.ModelType == "gpt_oss",
		Vocab: c.Vocab, MaxLen: c.MaxLen, TiedHead: c.Tied != nil && *c.Tied,
		HasMTP: c.NextN > 0 || c.MTPLayers > 0, Source: "config.json of " + name,
	}
	if missing := c.missing(); len(missing) > 0 {
		return Model{}, fmt.Errorf("config.json of %s lacks %s: give the config.json of a decoder language model", name, strings.Join(missing, ", "))
	}
	m.HeadDim = cmp.Or(m.HeadDim, m.Hidden/m.Heads)
	if m.KVHeads < 0 || m.HeadDim <= 0 || len(c.LayerTypes) > c.Layers {
		return Model{}, fmt.Errorf("config.json of %s: %d KV heads of dimension %d and %d layer types for %d layers cannot be", name, m.KVHeads, m.HeadDim, len(c.LayerTypes), c.Layers)
	}
	for _, step := range []func(*Model) error{c.attention, c.feedForward, c.format} {
		if err := step(&m); err != nil {
			return Model{}, fmt.Errorf("config.json of %s: %w", name, err)
		}
	}
	return m, nil
}

// text is the language model's part. A nested part inherits what vision-language
// models keep at the top: quantisation and head tying.
func (c hfConfig) text() hfConfig {
	inner := cmp.Or(c.TextConfig, c.LLMConfig)
	if inner == nil || inner.Layers == 0 {
		return c
	}
	t := *inner
	t.Quantization = cmp.Or(t.Quantization, c.Quantization)
	t.Tied = cmp.Or(t.Tied, c.Tied)
	return t
}

// defaults fills in what a family's files leave to its code.
func (c *hfConfig) defaults() {
	switch {
	case strings.HasPrefix(c.ModelType, "gemma3"):
		c.Heads, c.KVHeads, c.HeadDim = cmp.Or(c.Heads, 8), cmp.Or(c.KVHeads, 4), cmp.Or(c.HeadDim, 256)
		c.Vocab, c.MaxLen = cmp.Or(c.Vocab, 262208), cmp.Or(c.MaxLen, 131072)
		c.Tied = cmp.Or(c.Tied, new(true))
		c.WindowEvery1 = cmp.Or(c.WindowEvery1, c.WindowEvery2, 6)
	case c.ModelType == "qwen3_next":
		c.GatedQ, c.NextN, c.FullInterval = true, 1, cmp.Or(c.FullInterval, 4)
	}
}

// unknown is an error for a model whose numbers the keys read here do not tell.
func (c hfConfig) unknown() error {
	two := []string{"gpt_neox", "falcon", "bloom", "starcoder2", "phi", "nemotron", "mpt", "opt", "gpt2"}
	switch {
	case c.MambaPattern != "" || c.MambaHeads > 0 || c.MambaState > 0:
		return errors.New("has state-space (Mamba) layers, which are not known: attention and linear attention are")
	case len(c.BlockConfigs) > 0:
		return errors.New("has layers of different shapes (block_configs), which are not known")
	case len(c.Compressed) > 0:
		return errors.New("has compressed attention (compress_ratios), which is not known: full, sliding, chunked and linear attention are")
	case c.GlobalHeadDim > 0 && c.GlobalHeadDim != c.HeadDim, c.WindowKVHeads > 0 && c.WindowKVHeads != c.KVHeads:
		return errors.New("has window layers of another shape than its full-attention layers, which is not known")
	case slices.Contains(two, c.ModelType):
		return fmt.Errorf("model_type %q has feed-forwards of two matrices, which are not known: gated ones of three are", c.ModelType)
	}
	return nil
}

func (c hfConfig) missing() []string {
	var keys []string
	for _, f := range []struct {
		key   string
		value int
	}{
		{"num_hidden_layers", c.Layers}, {"hidden_size", c.Hidden}, {"num_attention_heads", c.Heads},
		{"vocab_size", c.Vocab}, {"max_position_embeddings", c.MaxLen}, {"intermediate_size", cmp.Or(c.FFN, c.MoEHidden)},
	} {
		if f.value <= 0 {
			keys = append(keys, f.key)
		}
	}
	return keys
}

func (c hfConfig) attention(m *Model) error {
	if c.KVRank > 0 {
		m.MLA = &MLA{KVRank: c.KVRank, RopeDim: c.RopeDim, NopeDim: c.NopeDim, VDim: c.VDim}
		if c.QRank != nil {
			m.MLA.QRank = *c.QRank
		}
	}
	linear, window, chunked, err := c.countLayers()
	if err != nil {
		return err
	}
	if window > 0 && c.SlidingWindow != nil {
		m.WindowLayers, m.Window = window, *c.SlidingWindow
	}
	if chunked > 0 && c.ChunkSize != nil {
		m.WindowLayers, m.Window, m.Chunked = chunked, *c.ChunkSize, true
	}
	if linear == 0 {
		return nil
	}
	if c.LinKeyHeads <= 0 || c.LinValueHeads <= 0 || c.LinValueDim <= 0 {
		return fmt.Errorf("has %d linear-attention layers but lacks linear_num_key_heads, linear_num_value_heads or linear_value_head_dim", linear)
	}
	// The state is one key-by-value matrix a head, in fp32.
	state := int64(linear) * int64(c.LinValueHeads) * int64(cmp.Or(c.LinKeyDim, c.LinValueDim)) * int64(c.LinValueDim) * 4
	m.Linear = &Linear{Layers: linear, KeyHeads: c.LinKeyHeads, ValueHeads: c.LinValueHeads, HeadDim: c.LinValueDim, StateBytes: state, Conv: c.LinConv}
	return nil
}

// countLayers counts the layers that are not full attention.
func (c hfConfig) countLayers() (linear, window, chunked int, err error) {
	for _, t := range c.LayerTypes {
		switch t {
		case "full_attention", "attention", "deepseek_sparse_attention":
		case "linear_attention":
			linear++
		case "sliding_attention":
			window++
		case "chunked_attention":
			chunked++
		default:
			return 0, 0, 0, fmt.Errorf("layer type %q is not known: full, sliding, chunked and linear attention are", t)
		}
	}
	switch {
	case len(c.LayerTypes) > 0:
	case c.FullInterval > 1 && c.LinValueHeads > 0:
		linear = c.Layers - c.Layers/c.FullInterval
	case c.WindowEvery1 > 1:
		window = c.Layers - c.Layers/c.WindowEvery1
	case c.SlidingWindow != nil && (c.UseSliding == nil || *c.UseSliding):
		window = c.Layers
	case c.ChunkSize != nil && strings.HasPrefix(c.ModelType, "llama4"):
		chunked = c.Layers - c.Layers/4 // every fourth layer has no positions and sees everything
		if len(c.NoRope) > 0 {
			chunked = c.Layers - len(slices.DeleteFunc(slices.Clone(c.NoRope), func(rope int) bool { return rope != 0 }))
		}
	}
	if c.UseSliding != nil && !*c.UseSliding {
		window = 0
	}
	return linear, window, chunked, nil
}

func (c hfConfig) feedForward(m *Model) error {
	experts := max(c.Experts1, c.Experts2, c.Experts3)
	if experts <= 1 {
		m.FFN = c.FFN
		return nil
	}
	if c.Active <= 0 {
		return fmt.Errorf("has %d experts but lacks num_experts_per_tok", experts)
	}
	moe := &MoE{Experts: experts, Active: c.Active, Hidden: cmp.Or(c.MoEHidden, c.FFN)}
	moe.SharedDim = cmp.Or(c.SharedHidden, c.SharedCount*moe.Hidden)
	if strings.HasPrefix(c.ModelType, "llama4") { // one shared expert as wide as a routed one
		moe.SharedDim = moe.Hidden
	}
	moe.DenseLayers = max(c.FirstDense, len(c.MLPOnly))
	if step := cmp.Or(c.SparseStep, c.MoEStep); step > 1 {
		moe.DenseLayers = max(moe.DenseLayers, c.Layers-c.Layers/step)
	}
	if moe.Hidden < 0 || moe.SharedDim < 0 || moe.Active > experts || moe.DenseLayers > c.Layers {
		return fmt.Errorf("%d of %d experts of width %d (shared %d) beside %d dense layers of %d cannot be", moe.Active, experts, moe.Hidden, moe.SharedDim, moe.DenseLayers, c.Layers)
	}
	if moe.DenseLayers > 0 {
		m.FFN = cmp.Or(c.DenseFFN, c.FFN)
	}
	m.MoE = moe
	return nil
}

// format settles how the weights are stored. 16-bit and unquantised 32-bit
// weights both count as BF16, as engines load them so.
func (c hfConfig) format(m *Model) error {
	q := c.Quantization
	if q == nil {
		_, told, block := splitFormat(m.Name)
		m.Format = cmp.Or(told, BF16)
		if m.Format == FP8 {
			m.QuantBlock = max(block, 0)
		}
		return nil
	}
	method, algo := strings.ToLower(q.Method), strings.ToLower(q.Algo)
	bits := cmp.Or(q.Bits, q.WeightBit, 4)
	switch {
	case method == "fp8" || method == "fbgemm_fp8" || algo == "fp8":
		m.Format, m.QuantBlock = FP8, slices.Max(append(q.Block, 0))
	case method == "mxfp4":
		m.Format = MXFP4
	case algo == "nvfp4":
		m.Format = NVFP4
	case (method == "awq" || strings.HasPrefix(method, "gptq") || method == "auto-round") && bits == 4:
		m.Format = INT4
	case method == "compressed-tensors":
		return q.compressed(m)
	default:
		return fmt.Errorf("quantization_config %q %s (%d bits) is not known: fp8, awq, gptq, mxfp4, modelopt and compressed-tensors are", cmp.Or(method, algo), algo, bits)
	}
	return nil
}

func (q *hfQuan) compressed(m *Model) error {
	for _, g := range q.Groups {
		w := g.Weights
		switch {
		case w.Bits == 8 && w.Type == "float":
			m.Format, m.QuantBlock = FP8, slices.Max(append(w.Block, 0))
		case w.Bits == 4 && w.Type == "float":
			m.Format = NVFP4
		case w.Bits == 4 && w.Type == "int":
			m.Format = INT4
		default:
			return fmt.Errorf("compressed-tensors with %d-bit %s weights is not known: 8-bit float and 4-bit int or float are", w.Bits, w.Type)
		}
		if slices.ContainsFunc(q.Ignore, func(s string) bool { return strings.HasPrefix(s, "re:") && strings.Contains(s, "self_attn") }) {
			m.AttentionFormat = BF16
		}
		return nil
	}
	return fmt.Errorf("compressed-tensors quantization_config has no config_groups")
}
