package engine

import (
	"fmt"
	"math"
	"slices"

	"perflab/internal/engine/nested"
)

func resolveTRTLLM(r *resolver) {
	c := r.cfg
	c.ShareOfFree, c.Serial = true, true
	c.Reserve = r.text(CapacityPolicy) != "max_utilization"
	c.Prefix = r.bool(PrefixCaching, true)
	c.Overlap = c.Spec == "" && r.bool(Overlap, true)
	c.MemoryShare = r.float(MemoryShare, 0.9)
	c.Seqs = r.int(MaxNumSeqs, 2048)
	c.Batched = r.int(MaxBatched, 8192)
	c.Chunked = r.bool(ChunkedPrefill, false)
	c.Block = r.int(BlockSize, 32)
	r.atLeastOne(BlockSize, c.Block)
	r.graphs()
	c.EP = r.ranks(ExpertParallel)
	if r.err == nil {
		r.capKV()
	}
}

// graphs resolves the sizes that CUDA graphs are captured for. With padding a batch
// runs as the next size: 1, 2, 4, multiples of 8 up to 128, then of 64, and the largest.
func (r *resolver) graphs() {
	c := r.cfg
	if r.bool(Eager, false) {
		return
	}
	c.GraphMax = r.int(GraphMax, 128)
	var sizes []int
	if v, ok := nested.At(r.cmd.File, graphSizes); ok && v != nil {
		for _, x := range v.([]any) {
			n, ok := nested.Number(x)
			if !ok || n < 1 {
				r.outside(graphSizes, "of at least 1", nested.Flow(x))
				return
			}
			sizes = append(sizes, int(n))
		}
	}
	if len(sizes) > 0 {
		slices.Sort(sizes)
		largest := sizes[len(sizes)-1]
		if r.text(GraphMax) != "" && c.GraphMax != largest {
			r.fail(keyRejection(r.engine, graphSection, fmt.Sprintf("Value error, max_batch_size %d is not the largest of batch_sizes, %d", c.GraphMax, largest)))
			return
		}
		c.GraphMax = largest
	}
	padding, said := nested.At(r.cmd.File, graphPadding)
	pads, _ := nested.Truth(padding)
	if !pads && (said || r.text(GraphMax) == "") {
		return
	}
	if c.Graphs = sizes; len(sizes) == 0 {
		c.Graphs = paddedSizes(c.GraphMax)
	}
}

// paddedSizes are the sizes captured with padding up to a largest one.
func paddedSizes(largest int) []int {
	var sizes []int
	for n := 1; n < largest; {
		sizes = append(sizes, n)
		switch {
		case n < 4:
			n *= 2
		case n < 128:
			n = n/8*8 + 8
		default:
			n += 64
		}
	}
	return append(sizes, largest)
}

// capKV lowers the KV cache to what the configuration file allows in tokens or bytes.
func (r *resolver) capKV() {
	c := r.cfg
	pool := float64(poolTRTLLM(c))
	limit := pool
	if n := r.fileNumber(kvMaxTokens); n > 0 {
		l := c.Layout()
		limit = min(limit, float64(l.Page)*float64(l.Groups())*math.Ceil(n/float64(l.Block)))
	}
	if n := r.fileNumber(kvMaxBytes); n > 0 {
		limit = min(limit, n)
	}
	if limit < pool {
		c.KVSpace = int64(limit)
	}
}
