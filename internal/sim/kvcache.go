package sim

import (
	"slices"

	"perflab/internal/engine"
)

// kvCache is the paged memory of an engine as its sequences see it: blocks of
// tokens, found again by the prefix that they end.
type kvCache struct {
	pool   *blockPool
	block  int // tokens of a block
	prefix bool
	late   bool // blocks are published when they are computed, not when they are scheduled: SGLang
	layout engine.Layout
	hits   []int32 // blocks that lookup found; 0 for one that has to be fetched from a tier
	loads  int     // of them, those that have to be fetched
	tiers  *tiers  // what keeps blocks that the devices give up; nil: nothing does
}

// side is the blocks of s beside those of its tokens: of windows and states.
func (kv *kvCache) side(s *seq) int { return kv.layout.SideBlocks(s.prompt + s.output) }

// lookup fills kv.hits with the leading blocks of s that are in the cache, and
// counts those that nobody holds. The block with the last token is always
// computed anew.
func (kv *kvCache) lookup(s *seq) (idle int) {
	kv.hits, kv.loads = kv.hits[:0], 0
	if !kv.prefix {
		return 0
	}
	for i := range (s.known() - 1) / kv.block {
		id := kv.find(s, i)
		if id == 0 {
			break
		}
		if kv.pool.blocks[id].refs == 0 {
			idle++
		}
		kv.hits = append(kv.hits, id)
	}
	if kv.tiers != nil {
		idle += kv.lookBelow(s)
	}
	return idle
}

// find is the block that holds what block i of s does; 0 when none does. Blocks
// of prompt tokens are found by their hash, those with tokens of its own only s
// can find.
func (kv *kvCache) find(s *seq, i int) int32 {
	if k := i - s.shared; k < 0 {
		return kv.pool.find(kv.hash(s, i))
	} else if k < len(s.own) && kv.pool.blocks[s.own[k]].hash == s.stamp(i) {
		return s.own[k]
	}
	return 0
}

// hash is the hash of the prefix of s up to the end of block i, one of those
// that others can share.
func (kv *kvCache) hash(s *seq, i int) uint64 {
	if len(s.hashes) == 0 {
		s.hashes = slices.Grow(s.hashes, s.shared)
	}
	for k := len(s.hashes); k <= i; k++ {
		parent := uint64(0)
		if k > 0 {
			parent = s.hashes[k-1]
		}
		if s.job.Pieces != nil {
			s.hashes = append(s.hashes, s.place.chain(parent, s.job.Pieces, kv.block))
			continue
		}
		s.hashes = append(s.hashes, chain(parent, s.job.Prompt[k*kv.block:(k+1)*kv.block]))
	}
	return s.hashes[i]
}

// grow gives s room for tokens; false when the pool has too few blocks.
func (kv *kvCache) grow(s *seq, tokens int) bool {
	if tokens > len(s.blocks)*kv.block {
		need := kv.blocksFor(tokens)
		if need-len(s.blocks) > kv.pool.free {
			return false
		}
		kv.extend(s, need)
	}
	kv.settle(s, min(tokens, s.known()))
	return true
}

// extend gives s blocks up to a number.
func (kv *kvCache) extend(s *seq, blocks int) {
	for len(s.blocks) < blocks {
		s.blocks = append(s.blocks, kv.pool.alloc())
	}
}

// settle makes what is scheduled findable at once, as vLLM does: later requests
// of the same step may share it. SGLang's tree gets it later.
func (kv *kvCache) settle(s *seq, tokens int) {
	if !kv.late {
		kv.publish(s, tokens)
	}
}

// publish makes the full blocks among the first tokens findable.
func (kv *kvCache) publish(s *seq, tokens int) {
	if !kv.prefix {
		return
	}
	for ; (s.registered+1)*kv.block <= tokens; s.registered++ {
		i := s.registered
		k := i - s.shared
		switch id := s.blocks[i]; {
		case k < 0:
			kv.pool.publish(id, kv.hash(s, i))
		case k == len(s.own):
			s.own = append(s.own, id)
			kv.pool.blocks[id].hash = s.stamp(i)
		case kv.find(s, i) == 0:
			s.own[k] = id
			kv.pool.blocks[id].hash = s.stamp(i)
		}
		if kv.tiers != nil {
			kv.tiers.written(kv.name(s, i))
		}
	}
}

// free gives back all that s holds.
func (kv *kvCache) free(s *seq) {
	if kv.tiers != nil {
		kv.settleTiers(s)
	}
	kv.pool.release(s.state)
	kv.pool.release(s.blocks)
	s.state, s.blocks, s.registered = s.state[:0], s.blocks[:0], 0
}

// blocksFor is how many blocks hold tokens.
func (kv *kvCache) blocksFor(tokens int) int { return (tokens + kv.block - 1) / kv.block }
