package engine

import (
	"perflab/internal/arch"
)

const (
	gibibyte = 1 << 30
)

func gib(bytes int64) float64 { return float64(bytes) / gibibyte }

func (c Config) deviceBytes() int64 { return int64(c.GPU.MemoryGiB * gibibyte) }

// weightBytes is what the engine holds of the weights: the checkpoint's bytes,
// and the padding of its kernels.
func (c Config) weightBytes() int64 {
	n := c.Model.WeightBytesPerGPU(c.TP, c.PP, c.EP)
	return n + int64(c.expertPadding()*float64(c.Model.ExpertBytesPerGPU(c.TP, c.PP, c.EP)))
}

// expertPadding is by how much of themselves MXFP4 experts grow in vLLM: its kernels
// want the hidden size in multiples of 256 and, but for Hopper's, a rank's share of an
// expert's width in multiples of 128 (256 on data-centre Blackwell). gpt-oss-120b, of
// 60.7 GiB, takes 65.97 GiB with the Marlin and 64.38 GiB with the Triton kernels by
// vLLM's own logs.
func (c Config) expertPadding() float64 {
	m := c.Model
	if c.Engine != "vllm" || m.MoE == nil || m.ExpertFormat() != arch.MXFP4 {
		return 0
	}
	width := m.MoE.Hidden / max(1, c.TP/max(c.EP, 1))
	multiple := 128
	switch {
	case c.GPU.SM >= 90 && c.GPU.SM < 100:
		multiple = 1
	case c.GPU.SM == 100 || c.GPU.SM == 103:
		multiple = 256
	}
	return float64(roundUp(m.Hidden, 256)*roundUp(width, multiple))/float64(m.Hidden*width) - 1
}

// activationBytes is the peak of the largest step, an estimate within some
// hundred MB: T tokens hold about four vectors of the hidden size d and the widest
// feed-forward's gate, up and product, in 16 bit; then S sampled rows hold
// logits over the vocabulary V in 16 and twice in 32 bit.
//
//	max( 2*T*(4*d + w), 10*S*V ),  w = 3*ffn/tp + k*(3*h/tp + d)
//
// With expert parallelism the routed experts' width h is divided by tp/ep only. On an
// 80 GB H100, Qwen3-32B in 16 bit is left with 34.7 thousand tokens of cache;
// published runs there held between 33.6 and 35.7 thousand.
func (c Config) activationBytes() int64 {
	m, tp := c.Model, float64(max(c.TP, 1))
	width := 4*float64(m.Hidden) + 3*float64(m.FFN)/tp
	if m.MoE != nil {
		inner := 3 * float64(m.MoE.Hidden) / float64(max(1, c.TP/max(c.EP, 1)))
		routed := float64(m.MoE.Active)*(inner+float64(m.Hidden)) + 3*float64(m.MoE.SharedDim)/tp
		width = 4*float64(m.Hidden) + max(routed, 3*float64(m.FFN)/tp)
	}
	step := 2 * float64(c.Batched) * width
	sample := 10 * float64(min(c.Seqs, c.Batched)) * float64(m.Vocab)
	return int64(max(step, sample))
}

// libraryBytes is what CUDA's context and communication buffers take.
func (c Config) libraryBytes() int64 {
	if c.TP*c.PP > 1 {
		return 8 * gibibyte / 10
	}
	return 3 * gibibyte / 10
}

// graphBytes is the memory of captured graphs, about 1 GiB for batches up to 512.
func (c Config) graphBytes() int64 {
	if c.GraphMax == 0 {
		return 0
	}
	return int64((0.3 + 0.7*float64(c.GraphMax)/512) * gibibyte)
}

// Replicas is how many copies of the configuration total devices run.
func (c Config) Replicas(total int) int { return total / max(c.GPUs, 1) }

// Beside is what the share of memory leaves of a device and what must have room there: graphs,
// and in SGLang the largest step; known is false where no share is given.
func (c Config) Beside() (room, need int64, known bool) {
	room, need = c.deviceBytes(), c.graphBytes()
	switch {
	case c.KVSpace > 0 || c.GPU.SM == 0 || c.Engine != "vllm" && c.Engine != "sglang":
		return 0, 0, false
	case c.Engine == "sglang":
		room, need = room-c.libraryBytes(), need+c.activationBytes()
	}
	return room - int64(c.MemoryShare*float64(room)), need, true
}
