// Package arch knows the architecture numbers of models and accelerators and
// the memory arithmetic over them. It is pure: no file, no socket, no clock.
//
//	m, err := arch.LookupModel("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8")
//	m.WeightBytesPerGPU(4, 1, 1)   // 59.1e9
//	m.KVBytesPerTokenRank(2, 4, 1) // 48128
//
// Counts are computed from shapes and agree with published sizes within 1 %. Vision
// towers, MTP layers, biases and convolutions are deliberately left out.
package arch

// Format is how a checkpoint stores its weights.
type Format string

// Weight formats. MXFP4 and the 4-bit formats quantise some matrices only;
// Model.WeightBytes knows which.
const (
	BF16  Format = "bf16"
	FP8   Format = "fp8" // per-tensor or 128x128 blocks, see Model.QuantBlock
	NVFP4 Format = "nvfp4"
	MXFP4 Format = "mxfp4"
	INT4  Format = "int4" // AWQ or GPTQ, group 128

	// FP8Block is no format of a model, but what Kernels calls FP8 in blocks.
	FP8Block Format = "fp8-block"
)

// MoE describes the routed feed-forward layers of a mixture of experts.
type MoE struct {
	Experts     int `json:"experts"`
	Active      int `json:"active"`       // routed experts per token
	Hidden      int `json:"hidden"`       // moe_intermediate_size
	SharedDim   int `json:"shared_dim"`   // total width of the shared experts, 0 for none
	DenseLayers int `json:"dense_layers"` // layers with an ordinary FFN
}

// Linear describes linear-attention layers (gated delta net and the like):
// a state of constant size per sequence instead of a KV cache.
type Linear struct {
	Layers     int   `json:"layers"`
	KeyHeads   int   `json:"key_heads"`
	ValueHeads int   `json:"value_heads"`
	HeadDim    int   `json:"head_dim"`
	StateBytes int64 `json:"state_bytes"`    // per sequence, all layers
	Conv       int   `json:"conv,omitempty"` // tokens that the short convolution before the state sees
}

// MLA describes multi-head latent attention: one compressed vector per token
// and layer, the same on every rank.
type MLA struct {
	KVRank  int `json:"kv_rank"`
	RopeDim int `json:"rope_dim"`
	QRank   int `json:"q_rank"`
	NopeDim int `json:"nope_dim"`
	VDim    int `json:"v_dim"`
}

// Model is the shape of a language model and the format of one checkpoint.
type Model struct {
	Name         string  `json:"name"` // Hugging Face repository id
	Layers       int     `json:"layers"`
	Hidden       int     `json:"hidden"`
	Heads        int     `json:"heads"`
	KVHeads      int     `json:"kv_heads"`
	HeadDim      int     `json:"head_dim"`
	GatedQ       bool    `json:"gated_q,omitempty"` // the query projection also yields an output gate
	FFN          int     `json:"ffn"`               // dense intermediate size, 0 when every layer is MoE
	Vocab        int     `json:"vocab"`
	TiedHead     bool    `json:"tied_head,omitempty"`
	MaxLen       int     `json:"max_len"` // max_position_embeddings
	WindowLayers int     `json:"window_layers,omitempty"`
	Window       int     `json:"window,omitempty"`  // tokens a window layer sees
	Chunked      bool    `json:"chunked,omitempty"` // windows are chunks of the text (Llama 4), not the tokens before
	Sinks        bool    `json:"sinks,omitempty"`   // attention has a learned sink in each head (gpt-oss)
	MoE          *MoE    `json:"moe,omitempty"`
	Linear       *Linear `json:"linear,omitempty"`
	MLA          *MLA    `json:"mla,omitempty"`
	Format       Format  `json:"format"`
	QuantBlock   int     `json:"quant_block,omitempty"` // 128 for block FP8, 0 for none
	// AttentionFormat is the format of the attention matrices where it differs
	// from Format, "" where it does not.
	AttentionFormat Format `json:"attention_format,omitempty"`
	HasMTP          bool   `json:"has_mtp,omitempty"` // ships multi-token-prediction layers
	Source          string `json:"source"`            // where the numbers come from
}

// Platform is the software stack that drives a device.
type Platform string

// Platforms.
const (
	CUDA Platform = "cuda"
	ROCm Platform = "rocm"
	NPU  Platform = "npu" // Ascend
	CPU  Platform = "cpu"
)

// Visible is the environment variable that shows a process some of a machine's devices
// alone, "" where there are none to deal out.
func (p Platform) Visible() string {
	switch p {
	case CUDA:
		return "CUDA_VISIBLE_DEVICES"
	case ROCm:
		return "HIP_VISIBLE_DEVICES"
	case NPU:
		return "ASCEND_RT_VISIBLE_DEVICES"
	}
	return ""
}

// VisibleVariables are all environment variables of which a process inherits the devices
// that it may use, Visible first.
func (p Platform) VisibleVariables() []string {
	switch {
	case p == ROCm: // whose runtime reads CUDA's for what was written for CUDA
		return []string{p.Visible(), CUDA.Visible(), "ROCR_VISIBLE_DEVICES"}
	case p.Visible() == "":
		return nil
	}
	return []string{p.Visible()}
}

// Accelerator is one device and its links.
type Accelerator struct {
	Name         string   `json:"name"`  // "h100-sxm"
	Title        string   `json:"title"` // "NVIDIA H100 SXM"
	Platform     Platform `json:"platform"`
	BF16TFLOPS   float64  `json:"bf16_tflops"`
	FP8TFLOPS    float64  `json:"fp8_tflops,omitzero"` // 0: no FP8 units
	FP4TFLOPS    float64  `json:"fp4_tflops,omitzero"` // 0: no FP4 units
	BandwidthGBs float64  `json:"bandwidth_gbs"`       // memory, 1e9 bytes/s
	MemoryGiB    float64  `json:"memory_gib"`          // as the engine sees it
	SM           int      `json:"sm,omitzero"`         // compute capability, 90 for Hopper; 0 when not NVIDIA
	PowerW       float64  `json:"power_w"`
	Link         string   `json:"link,omitzero"` // what couples up to LinkDevices of them, "" when they are alone
	LinkDevices  int      `json:"link_devices"`
	Network      string   `json:"network"`            // what couples more
	HostLink     string   `json:"host_link,omitzero"` // what couples it with the memory of its host, "" where they share one or that is not known
	// LinkGBs and LinkLatency are those of the device's nearest peers: the link's,
	// or the network's where a device is alone. A row overrides what was measured on
	// that device.
	LinkGBs     float64 `json:"link_gbs,omitzero"`
	LinkLatency float64 `json:"link_latency_us,omitzero"`
	Source      string  `json:"source"`
	// HostGiB is the memory of all hosts that the devices of a study are in, where that was
	// said; no row of a list has it.
	HostGiB float64 `json:"-"`
}

// Link is what devices exchange data over.
type Link struct {
	Name    string  `json:"name"`
	Title   string  `json:"title"`
	GBs     float64 `json:"bandwidth_gbs"` // one way, per device, 1e9 bytes/s
	Latency float64 `json:"latency_us"`    // of an all-reduce of a few bytes
	Source  string  `json:"source"`
	// Nodes is how many nodes of a network, or devices on a bus, Latency was measured
	// over: a further one adds a step. 0: the same for any number.
	Nodes int `json:"nodes,omitzero"`
}

// AllReduceLatency is the latency of a small all-reduce among n devices, in us.
func (l Link) AllReduceLatency(n int) float64 {
	if l.Nodes < 2 {
		return l.Latency
	}
	return l.Latency * float64(n-1) / float64(l.Nodes-1)
}
