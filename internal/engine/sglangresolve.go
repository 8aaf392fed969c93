package engine

import (
	"slices"

	"perflab/internal/arch"
)

// resolveSGLang fills in the defaults by device memory, and the share of static
// memory that is left when activations and graphs have their reserve:
//
//	share = (M - reserve)/M,  reserve = 512 + 1.5*max(chunk, 2048) + 2*graphs + 1024*tp*pp/8 MiB
//
// with at least 10240 MiB of reserve above 60 GiB. Of a device without figures, such as a
// CPU, what follows from memory is left at 0.
func resolveSGLang(r *resolver) {
	c := r.cfg
	c.PrefillOnly = true
	chunk, graph := r.sglangBySize()
	page := 1
	if c.GPU.Platform == arch.NPU {
		chunk, graph = r.sglangNPU()
		page = 128
	}
	c.Prefix = r.bool(PrefixCaching, true)
	c.Chunked = r.bool(ChunkedPrefill, true)
	c.Batched = r.int(MaxBatched, chunk)
	c.PrefillTokens = r.extraInt("--max-prefill-tokens", 16384)
	if !c.Chunked {
		c.Batched = c.PrefillTokens
	}
	c.Conserve = r.extraFloat("--schedule-conservativeness", 1)
	linear := c.Model.Linear != nil
	if linear && c.Spec != "" {
		c.Prefix = false // states of guessed tokens cannot be shared
	}
	// Classic speculation verifies before it schedules, pipelines and shared states of linear attention wait for a step's end.
	c.Overlap = !r.flag("--disable-overlap-schedule") && c.Spec == "" && c.PP == 1 && !(linear && c.Prefix)
	c.Block = r.page(r.int(BlockSize, page))
	c.GraphMax = r.int(GraphMax, graph)
	if prefill, _ := r.cmd.extra("--cuda-graph-backend-prefill"); r.flag("--enable-piecewise-cuda-graph") || r.cmd.AtLeast("0.5.10") && !r.flag("--disable-piecewise-cuda-graph") && prefill != "disabled" {
		c.PromptGraphs = c.Batched
	}
	c.EP = r.ranks(ExpertParallel)
	if slices.Contains(wholeExperts, c.AllToAll) {
		c.EP = c.TP
	}
	dpAttention := r.flag("--enable-dp-attention")
	share := 0.0
	if c.GPU.Known() {
		share = sglangShare(c, dpAttention)
	}
	c.MemoryShare = r.float(MemoryShare, share)
	if dpAttention { // data-parallel attention lives inside the tensor-parallel ranks
		c.DP = 1
		c.Conserve *= 0.3
	}
	running := 0
	switch {
	case c.Spec != "":
		running = 48
	case c.GPU.Known():
		running = sglangRunning(c)
	}
	c.Seqs = r.int(MaxNumSeqs, running)
}

// sglangShare is the default share of static memory.
func sglangShare(c *Config, dpAttention bool) float64 {
	mib := c.GPU.MemoryGiB * 1024
	reserve := 512 + 1.5*float64(max(c.Batched, 2048)) + 2*float64(c.GraphMax) + 1024*float64(c.TP*c.PP)/8
	if dpAttention {
		reserve += 3 * float64(c.GraphMax*c.DP)
		if c.GraphMax > 300 {
			reserve += 1.5 * float64(c.GraphMax*c.DP)
		}
	}
	if mib > 60*1024 {
		reserve = max(reserve, 10240)
	}
	if c.Spec != "" && c.Spec != "ngram" {
		reserve += 2048
	}
	return float64(int((mib-reserve)/mib*1000+0.5)) / 1000
}

// sglangBySize is the default chunk and largest graph by device memory; 0 where that is
// not known. 0.5.20 raised both of devices between 20 and 35 GiB.
func (r *resolver) sglangBySize() (chunk, graph int) {
	mib, tp := r.cfg.GPU.MemoryGiB*1024, r.cfg.TP
	pick := func(small, large int) int {
		if tp < 4 {
			return small
		}
		return large
	}
	switch {
	case mib == 0:
		return 0, 0
	case mib < 20480:
		return 2048, 8
	case mib < 35840 && r.cmd.AtLeast("0.5.20"):
		return 4096, pick(48, 160)
	case mib < 35840:
		return 2048, pick(24, 80)
	case mib < 61440:
		return 4096, pick(32, 160)
	case mib < 163840:
		return 8192, pick(256, 512)
	}
	return 16384, 512
}

// sglangNPU is the default chunk and largest graph on an Ascend of 64 GB, which 0.5.7
// changed.
func (r *resolver) sglangNPU() (chunk, graph int) {
	split := r.cfg.TP >= 4
	switch {
	case r.cmd.AtLeast("0.5.7") && split:
		return 8192, 256
	case r.cmd.AtLeast("0.5.7"):
		return 8192, 64
	case split:
		return 32768, 128
	}
	return 32768, 64
}

// sglangRunning is the default limit of running requests: 512 whole contexts'
// worth of the pool, between 2048 and 4096; models with linear attention
// also need a third of a state pool of their own for each.
func sglangRunning(c *Config) int {
	tokens, err := c.KVTokens()
	if err != nil {
		return 2048
	}
	n := min(max(int(float64(tokens)/float64(max(c.MaxLen, 1))*512), 2048), 4096)
	if state := c.Model.StateBytesRank(c.TP, c.PP); state > 0 {
		slots := sglangStatic(c) * sglangStateShare / (1 + sglangStateShare) / float64(state)
		if c.Prefix {
			slots /= 3
		}
		n = max(1, min(n, int(slots)))
	}
	return n
}
