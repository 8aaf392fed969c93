package engine

import "perflab/internal/arch"

// Layout is how an engine lays a sequence out in its KV cache. Layers that keep
// as much of a sequence form groups of one size, and every group takes blocks of its
// own from the one pool: a block of a group is the memory of all its layers.
//
//	full attention    ceil(n/B) blocks for n tokens
//	sliding window    those that the last W tokens touch
//	linear attention  one for the state, and what speculation and prefix caching add
type Layout struct {
	Block  int   // B, tokens per block
	Page   int64 // bytes of a block
	Full   int   // groups of full-attention layers
	Window int   // groups of window layers
	State  int   // groups of linear-attention layers
	Span   int   // W, tokens that a window layer sees
	States int   // blocks of a sequence in each group of linear-attention layers
}

// Groups is the number of groups.
func (l Layout) Groups() int { return max(1, l.Full+l.Window+l.State) }

// SeqBlocks is how many blocks a sequence of n tokens holds between steps.
func (l Layout) SeqBlocks(n int) int { return l.blocks(n, 1) }

// SideBlocks is how many of them are not of the first group, whose blocks hold the
// sequence token by token.
func (l Layout) SideBlocks(n int) int { return max(0, l.SeqBlocks(n)-ceil(n, l.Block)) }

// blocks is how many a sequence of n tokens holds while a step of so many is computed.
func (l Layout) blocks(n, step int) int {
	all := ceil(n, l.Block)
	window := 0
	if l.Window > 0 {
		window = min(all, ceil(min(l.Span-1+step, n), l.Block)+1)
	}
	return l.Full*all + l.Window*window + l.State*l.States
}

// Layout is the layout of the KV cache on the fullest rank.
func (c Config) Layout() Layout {
	m, pp := c.Model, max(c.PP, 1)
	per := m.KVBytesPerTokenLayer(max(c.KVBytes, 1), c.TP) * int64(max(c.Block, 1))
	window, full := ceil(m.WindowLayers, pp), ceil(m.KVLayers()-m.WindowLayers, pp)
	l := Layout{Block: max(c.Block, 1), Full: 1, Page: per * int64(ceil(m.KVLayers(), pp))}
	switch {
	case c.Engine == "vllm":
		return c.vllmLayout(l, per, full, window)
	case c.Engine == "sglang" && full > 0: // a pool of their own for windows, of 0.8 times the tokens; another for states
		l.Page = per*int64(full) + per*int64(window)*4/5
	case m.Linear != nil && per > 0: // TensorRT-LLM: as many blocks as are worth the state
		l.State, l.States = 1, int((m.StateBytesRank(c.TP, c.PP)+l.Page-1)/l.Page)
	}
	return l
}

// vllmLayout is vLLM's. The layers of a group are as many as the smaller kind has, or
// the larger where they are nearly as many. Chunked layers count as full ones where
// the manager of several kinds is off for them, otherwise as windows as long as a
// chunk, which is the most they hold; a layer that drafts tokens is one more of full
// attention.
func (c Config) vllmLayout(l Layout, per int64, full, window int) Layout {
	m := c.Model
	if m.Chunked && !c.Chunks {
		full, window = full+window, 0
	}
	if MTP(c.Spec) {
		full++
	}
	state := 0
	if m.Linear != nil {
		state = ceil(m.Linear.Layers, max(c.PP, 1))
	}
	small, large := min(full, window+state), max(full, window+state)
	size := small
	if small == 0 || 2*large < 3*small {
		size = large
	}
	l.Page, l.Span = per*int64(size), m.Window
	l.Full, l.Window, l.State = ceil(full, size), ceil(window, size), ceil(state, size)
	l.States = 1 + c.SpecTokens
	if c.Prefix {
		l.States++ // the state at the last block's end is kept for others
	}
	return l
}

// align enlarges the blocks of vLLM's full-attention layers until one is worth the
// state of a linear-attention layer, in multiples of 16 tokens.
func (c *Config) align() {
	per := c.Model.KVBytesPerTokenLayer(max(c.KVBytes, 1), c.TP)
	if c.Engine != "vllm" || c.Model.Linear == nil || per <= 0 {
		return
	}
	state := c.Model.StateBytesLayer(c.TP)
	c.Block = max(c.Block, roundUp(int((state+per-1)/per), 16))
}

func ceil(a, b int) int { return (a + max(b, 1) - 1) / max(b, 1) }

// widened reports whether weights of a format are widened to 16 bit before they
// are multiplied, for lack of units: FP8 and NVFP4 where the device has none; MXFP4 but
// on data-centre Blackwell; 4-bit integers everywhere.
func widened(f arch.Format, g arch.Accelerator) bool {
	switch f {
	case arch.FP8:
		return g.FP8TFLOPS == 0
	case arch.NVFP4:
		return g.FP4TFLOPS == 0
	case arch.MXFP4:
		return g.SM != 100 && g.SM != 103
	case arch.INT4:
		return true
	}
	return false
}

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }
