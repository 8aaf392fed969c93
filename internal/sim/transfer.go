package sim

import (
	"fmt"
	"slices"
	"time"

	"perflab/internal/engine"
)

// link is what KV caches move over between the engines of a group. A transfer takes
//
//	setup + blocks page max(1, ranks that receive/ranks that send)/(link x_l)
//
// where page is what a block takes on a rank that receives: every such rank takes its part
// from a rank of the other engine, at the link's speed for each device.
type link struct {
	setup time.Duration // before the first byte; others may move meanwhile
	block float64       // s that a block takes the links
	bytes int64         // of a block, on all ranks
}

func newLink(cfg, prefill, decode engine.Config, k constants) (link, error) {
	l := cfg.GPU.Coupling(cfg.GPUs)
	page := decode.Layout().Page
	if l.GBs <= 0 || page <= 0 {
		return link{}, fmt.Errorf("simulate %s: nothing is known of what couples %d x %s: KV caches cannot be moved", cfg.Engine, cfg.GPUs, cfg.GPU.Title)
	}
	from, to := prefill.TP*prefill.PP, decode.TP*decode.PP
	narrow := max(1, float64(to)/float64(from))
	return link{
		setup: seconds(k.get("kv_setup") * 1e-3),
		block: float64(page) * narrow / (l.GBs * 1e9 * k.get("kv_link")),
		bytes: page * int64(to),
	}, nil
}

// port is when each link of an engine is free: a data-parallel copy has one of its own.
type port []time.Duration

// next is the link that is free first.
func (p port) next() *time.Duration {
	best := 0
	for i := range p {
		if p[i] < p[best] {
			best = i
		}
	}
	return &p[best]
}

// move is a transfer of the last of a request's KV cache.
type move struct {
	at time.Duration // when it ends
	r  *relay
}

// blocks are how many blocks the KV cache of a request's prompt fills.
func (r *relay) blocks() int {
	kv := &r.to.core.sched.kv
	n := r.job.promptLen()
	return kv.blocksFor(n) + kv.layout.SideBlocks(n)
}

// send sends blocks of a request's KV cache, the last of it or not, when the links of both
// engines are free: those that asked before go first.
func (g *Group) send(r *relay, blocks int, last bool) {
	asked := g.now + g.link.setup
	took := seconds(float64(blocks) * g.link.block)
	out, in := r.from.port.next(), r.to.port.next()
	begin := max(asked, *out, *in)
	*out, *in = begin+took, begin+took
	r.arrives = max(r.arrives, begin+took)
	g.pools.Moved += int64(blocks) * g.link.bytes
	g.pools.Moving += took
	g.pools.LinkWait += begin - asked
	if !last {
		return
	}
	g.pools.Transfers++
	r.stage = moving
	at, _ := slices.BinarySearchFunc(g.moves, r.arrives, func(m move, t time.Duration) int {
		if m.at > t {
			return -1
		}
		return 1 // of equals the one that asked first is next to end
	})
	g.moves = slices.Insert(g.moves, at, move{r.arrives, r})
}
