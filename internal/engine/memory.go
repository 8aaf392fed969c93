package engine

import (
	"fmt"
	"strconv"

	"perflab/internal/arch"
)

// Memory is what the memory of one device goes to, in bytes.
type Memory struct {
	Device     int64 `json:"device"`
	Weights    int64 `json:"weights"`
	Activation int64 `json:"activation"` // of the largest step
	Library    int64 `json:"library"`    // context and communication buffers
	Graphs     int64 `json:"graphs"`     // captured; inside or beside the share, by engine
	KV         int64 `json:"kv"`         // pool
}

// Memory is the arithmetic that the KV cache's size follows from.
func (c Config) Memory() Memory {
	return Memory{
		Device: c.deviceBytes(), Weights: c.weightBytes(), Activation: c.activationBytes(),
		Library: c.libraryBytes(), Graphs: c.graphBytes(), KV: max(0, c.KVPoolBytes()),
	}
}

const (
	gibibyte = 1 << 30
	// loadBytesPerSecond is how fast a rank reads weights, for start-up messages only.
	loadBytesPerSecond = 2e9
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

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

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

// KVPoolBytes is the memory for the KV cache on each rank; not positive when
// there is none.
func (c Config) KVPoolBytes() int64 {
	if c.KVSpace > 0 {
		return c.KVSpace
	}
	e, err := ByName(c.Engine)
	if err != nil {
		return 0
	}
	return e.behaviour().pool(&c)
}

// KVTokens is the size of the KV cache of one data-parallel copy in tokens, as the
// engine reports it: its blocks, shared out evenly among the groups of layers.
func (c Config) KVTokens() (int, error) {
	blocks, err := c.KVBlocks()
	return blocks / c.Layout().Groups() * c.Block, err
}

// KVBlocks is the number of blocks in the KV cache of one data-parallel copy, which
// all groups of layers draw on.
func (c Config) KVBlocks() (int, error) {
	pool, page := c.KVPoolBytes(), c.Layout().Page
	if page <= 0 {
		return 0, fmt.Errorf("model %s keeps no KV cache by its shape", c.Model.Name)
	}
	if pool < page {
		return 0, noMemory(&c)
	}
	return int(pool / page), nil
}

// Replicas is how many copies of the configuration total devices run.
func (c Config) Replicas(total int) int { return total / max(c.GPUs, 1) }

// needBytes is the KV cache that the engine wants to see free for one sequence of
// n tokens. In a window layer a step's tokens come beside the window. vLLM asks for no
// more than a chunk in chunked layers even where it then stores them as full ones, so
// that a Llama 4 of ten million tokens starts with a cache for a third of them.
func (c Config) needBytes(n int) int64 {
	c.Chunks = true
	l := c.Layout()
	return int64(l.blocks(n, c.Batched)) * l.Page
}

// concurrency is how many sequences of the longest length the cache holds.
func (c Config) concurrency() float64 {
	blocks, _ := c.KVBlocks()
	return float64(blocks) / float64(max(1, c.Layout().blocks(c.MaxLen, c.Batched)))
}

// fitLen is the longest sequence in whole blocks that the cache holds, at most limit.
func (c Config) fitLen(limit int) int {
	pool := c.KVPoolBytes()
	if c.needBytes(limit) <= pool {
		return limit
	}
	low, high := 0, limit/c.Block
	for low < high {
		mid := low + (high-low+1)/2
		if c.needBytes(mid*c.Block) <= pool {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low * c.Block
}

// thousands prints n with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// StartupLog is the lines that the engine prints while it starts, without
// timestamps, in its own words and with the configuration's numbers.
func (c Config) StartupLog() []string {
	e, err := ByName(c.Engine)
	if err != nil {
		return nil
	}
	return e.behaviour().startup(&c)
}
