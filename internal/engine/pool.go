package engine

import "fmt"

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

// KVPoolBytes is the memory for the KV cache on each rank; not positive when
// there is none.
func (c Config) KVPoolBytes() int64 {
	if c.KVSpace > 0 {
		return c.KVSpace
	}
	switch c.Engine {
	case "vllm":
		return poolVLLM(&c)
	case "sglang":
		return poolSGLang(&c)
	case "trtllm":
		return poolTRTLLM(&c)
	}
	return 0
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

// needBytes is the KV cache that the engine wants to see free for one sequence of
// n tokens. In a window layer a step's tokens come beside the window. vLLM asks for no
// more than a chunk in chunked layers even where it then stores them as full ones, so
// that a Llama 4 of ten million tokens starts with a cache for a third of them.
func (c Config) needBytes(n int) int64 {
	c.Chunks = true
	l := c.Layout()
	return int64(l.blocks(n, c.Batched)) * l.Page
}

// Concurrency is how many sequences of the longest length the cache holds.
func (c Config) Concurrency() float64 {
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

// noMemory is the refusal when weights and working memory leave no cache.
func noMemory(c *Config) *Rejection {
	log := map[string]string{
		"vllm":   "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
		"sglang": fmt.Sprintf("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=%v", c.MemoryShare),
		"trtllm": "[TensorRT-LLM][ERROR] CUDA runtime error in cudaMalloc: out of memory",
	}[c.Engine]
	return &Rejection{Rule: "memory", Log: log,
		Reason: fmt.Sprintf("weights of %.1f GiB per GPU leave no KV cache in %v of %.1f GiB: raise gpu_memory_utilization, or use more GPUs or a smaller format", gib(c.weightBytes()), c.MemoryShare, c.GPU.MemoryGiB)}
}

// sglangStateShare is state memory by KV memory, --mamba-full-memory-ratio.
const sglangStateShare = 0.9

// sglangStatic is the memory for KV pool and states, in bytes.
func sglangStatic(c *Config) float64 {
	return c.MemoryShare*float64(c.deviceBytes()-c.libraryBytes()) - float64(c.weightBytes())
}

func poolSGLang(c *Config) int64 {
	static := sglangStatic(c)
	if c.Model.Linear != nil {
		static /= 1 + sglangStateShare
	}
	return int64(static)
}

// poolTRTLLM is the share of what weights, libraries and the peak of a profiled
// forward leave free.
func poolTRTLLM(c *Config) int64 {
	free := c.deviceBytes() - c.weightBytes() - c.activationBytes() - c.libraryBytes() - c.graphBytes()
	return int64(c.MemoryShare * float64(free))
}

// poolVLLM is what the share of the device leaves after weights, the peak of a
// profiled step, and what libraries hold outside PyTorch. CUDA graphs are not
// in the share: they come from the rest.
func poolVLLM(c *Config) int64 {
	return int64(c.MemoryShare*float64(c.deviceBytes())) - c.weightBytes() - c.activationBytes() - c.libraryBytes()
}
