package engine

import (
	"fmt"
	"strconv"
)

const (
	gibibyte = 1 << 30
	// loadBytesPerSecond is how fast a rank reads weights, for start-up messages only.
	loadBytesPerSecond = 2e9
)

func gib(bytes int64) float64 { return float64(bytes) / gibibyte }

func (c Config) deviceBytes() int64 { return int64(c.GPU.MemoryGiB * gibibyte) }

func (c Config) weightBytes() int64 { return c.Model.WeightBytesPerGPU(c.TP, c.PP, c.EP) }

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
	e, err := ByName(c.Engine)
	if err != nil {
		return 0
	}
	return e.behaviour().pool(&c)
}

// KVTokens is the size of the KV cache of one data-parallel copy in tokens, as the
// engine reports it:
//
//	pool / (KV bytes per token and rank), in whole blocks
//
// Window layers count in full, as in the engine's own figure.
func (c Config) KVTokens() (int, error) {
	blocks, err := c.KVBlocks()
	return blocks * c.Block, err
}

// KVBlocks is the size of the KV cache in blocks of c.Block tokens.
func (c Config) KVBlocks() (int, error) {
	pool := c.KVPoolBytes()
	perBlock := c.Model.KVBytesPerTokenRank(c.KVBytes, c.TP, c.PP) * int64(max(c.Block, 1))
	if perBlock <= 0 {
		return 0, fmt.Errorf("model %s keeps no KV cache by its shape", c.Model.Name)
	}
	if pool < perBlock {
		return 0, noMemory(&c)
	}
	return int(pool / perBlock), nil
}

// StateTokens is the room in the KV cache, in tokens, that the recurrent state of
// one sequence takes: 0 without linear-attention layers, and for SGLang, which
// keeps states in a pool of their own.
func (c Config) StateTokens() int {
	if c.Engine == "sglang" {
		return 0
	}
	perToken := c.Model.KVBytesPerTokenRank(c.KVBytes, c.TP, c.PP)
	if perToken <= 0 {
		return 0
	}
	return int((c.Model.StateBytesRank(c.TP, c.PP) + perToken - 1) / perToken)
}

// Replicas is how many copies of the configuration total devices run.
func (c Config) Replicas(total int) int { return total / max(c.GPUs, 1) }

// concurrency is how many sequences of the longest length the cache holds.
func (c Config) concurrency() float64 {
	return float64(c.KVPoolBytes()) / float64(c.Model.KVBytesRank(int64(c.MaxLen), c.KVBytes, c.TP, c.PP))
}

// fitLen is the longest sequence that the cache holds, at most limit.
func (c Config) fitLen(limit int) int {
	pool := c.KVPoolBytes()
	low, high := 0, limit
	for low < high {
		mid := low + (high-low+1)/2
		if c.Model.KVBytesRank(int64(mid), c.KVBytes, c.TP, c.PP) <= pool {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// thousands prints n with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
