package engine

import (
	"strings"

	"perflab/internal/arch"
)

// resolveVLLM fills in the defaults of the API server.
func resolveVLLM(r *resolver) {
	c := r.cfg
	seqs, batched := r.vllmLimits()
	if r.text(PerfMode) == "throughput" {
		seqs, batched = 2*seqs, 2*batched
	}
	share, block := 0.90, 16
	if r.cmd.AtLeast("0.20") {
		share = 0.92
	}
	if c.GPU.Platform == arch.CPU || c.GPU.Platform == arch.NPU {
		block = 128
	}
	c.MemoryShare = r.float(MemoryShare, share)
	c.Block = r.int(BlockSize, block)
	c.Prefix = r.bool(PrefixCaching, c.Model.Linear == nil || r.cmd.AtLeast("0.26"))
	c.Chunked = r.bool(ChunkedPrefill, true)
	if !c.Chunked {
		batched = max(batched, c.MaxLen)
	}
	c.Batched = r.int(MaxBatched, batched)
	c.Seqs = r.int(MaxNumSeqs, min(seqs, c.Batched))
	if r.bool(ExpertParallel, false) {
		c.EP = c.TP * c.DP
	}
	// The default since 0.14, but for pipelines. Speculation is taken to wait for what was accepted.
	async := r.bool(Overlap, r.cmd.AtLeast("0.14"))
	c.Overlap = async && c.PP == 1 && c.Spec == "" && c.GPU.Platform != arch.CPU
	// A second model runner prepares a step's inputs on the device. It is the default of Qwen3
	// since 0.22, of all dense models since 0.25 and of every model since 0.29.
	if second := "0.22"; r.cmd.AtLeast(second) {
		c.Generation = second
	}
	c.Chunks = r.cmd.AtLeast("0.14") && !strings.HasPrefix(c.Spec, "eagle")
	graph := min(2*c.Seqs*(1+c.SpecTokens), 512, c.Batched)
	if c.Model.Sinks { // of gpt-oss it captures more
		graph = min(1024, c.Batched)
	}
	if c.GPU.Platform != arch.CPU {
		c.GraphMax = r.int(GraphMax, graph)
	}
	c.PromptGraphs = c.GraphMax
}

// vllmLimits are the API server's default limits of sequences and tokens in a step.
// Three devices do not get what their memory would give them: the A100, by name; a
// GB10, whose memory NVML does not tell (vllm-project/vllm pull request 57378
// measures it), and since 0.33 by name; an NPU, whose platform does not tell it.
func (r *resolver) vllmLimits() (seqs, batched int) {
	g := r.cfg.GPU
	switch {
	case g.Platform == arch.CPU:
		return 128 * r.cfg.TP * r.cfg.PP, 2048 * r.cfg.TP * r.cfg.PP
	case g.Platform == arch.NPU || g.MemoryGiB < 70 || g.Name == "gb10" || strings.HasPrefix(g.Name, "a100"):
		return 256, 2048
	case g.MemoryGiB >= 160 && r.cmd.AtLeast("0.28"):
		return 1024, 16384
	}
	return 1024, 8192
}
