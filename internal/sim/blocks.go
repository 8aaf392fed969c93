package sim

import "slices"

// blockPool is the paged KV cache: blocks with reference counts, the hash of
// their content's whole prefix, and an LRU list of those that nobody holds but
// whose content may still be found. All operations are O(1). Block 0 is the
// list's sentinel; ids run from 1.
type blockPool struct {
	total  int
	free   int     // never handed out, or in the list
	blocks []block // those handed out at least once, by id

	// The blocks whose hash is odd, found by it: a hash's block is in the slot that the
	// hash names or after it, before the next empty one. Half of the slots are empty,
	// at least. Go's maps take three times as long, which counts where a block is a token.
	slots   []int32
	indexed int

	below *tier // is told of content that makes room; nil: nobody is
}

// block is one block of the cache.
type block struct {
	prev, next int32 // in the list
	refs       int32
	hash       uint64 // odd: in slots; even: a sequence's stamp; 0: not findable
}

func newBlockPool(total int) *blockPool {
	return &blockPool{total: total, free: total, blocks: make([]block, 1), slots: make([]int32, 1<<10)}
}

// held is how many blocks sequences hold.
func (p *blockPool) held() int { return p.total - p.free }

// alloc takes a block: a fresh one, or the least recently freed. The caller
// has checked that one is free.
func (p *blockPool) alloc() int32 {
	p.free--
	if len(p.blocks) <= p.total {
		if len(p.blocks) == cap(p.blocks) { // append alone would copy a large pool four times as often
			p.blocks = slices.Grow(p.blocks, min(len(p.blocks), p.total+1-len(p.blocks)))
		}
		p.blocks = append(p.blocks, block{refs: 1})
		return int32(len(p.blocks) - 1)
	}
	id := p.blocks[0].next
	if id == 0 {
		panic("sim: no free KV block")
	}
	b := p.unlink(id)
	if p.below != nil && b.hash != 0 {
		p.below.spill(b.hash)
	}
	if b.hash&1 != 0 {
		p.forget(b.hash)
	}
	b.hash, b.refs = 0, 1
	return id
}

// hold takes a block for one more sequence.
func (p *blockPool) hold(id int32) {
	if p.blocks[id].refs == 0 {
		p.unlink(id)
		p.free--
	}
	p.blocks[id].refs++
}

// publish makes a block findable under h. The first block with some content
// stays the one that is found.
func (p *blockPool) publish(id int32, h uint64) {
	i := p.slot(h)
	if p.slots[i] != 0 {
		return
	}
	p.slots[i], p.blocks[id].hash = id, h
	if p.indexed++; 2*p.indexed > len(p.slots) {
		old := p.slots
		p.slots = make([]int32, 2*len(old))
		for _, id := range old {
			if id != 0 {
				p.slots[p.slot(p.blocks[id].hash)] = id
			}
		}
	}
}

// find is the block published under h, 0 for none.
func (p *blockPool) find(h uint64) int32 { return p.slots[p.slot(h)] }

// slot is the place of h in slots, which is empty if no block is published under it.
func (p *blockPool) slot(h uint64) int {
	mask := len(p.slots) - 1
	i := int(h>>1) & mask
	for p.slots[i] != 0 && p.blocks[p.slots[i]].hash != h {
		i = (i + 1) & mask
	}
	return i
}

// forget takes the block published under h out of slots, and moves those after it
// up that would no longer be reached from where their hashes point.
func (p *blockPool) forget(h uint64) {
	mask := len(p.slots) - 1
	i := p.slot(h)
	for j := (i + 1) & mask; p.slots[j] != 0; j = (j + 1) & mask {
		home := int(p.blocks[p.slots[j]].hash>>1) & mask
		if (j-home)&mask >= (j-i)&mask {
			p.slots[i], i = p.slots[j], j
		}
	}
	p.slots[i] = 0
	p.indexed--
}

// drop empties the block published under h, which nobody holds: it is the next to be taken.
func (p *blockPool) drop(h uint64) {
	id := p.find(h)
	if id == 0 {
		return
	}
	b := p.unlink(id)
	p.forget(h)
	first := &p.blocks[0]
	b.hash, b.prev, b.next = 0, 0, first.next
	p.blocks[first.next].prev, first.next = id, id
}

// release gives blocks back, the last first, so that the end of a prefix is
// evicted before its beginning.
func (p *blockPool) release(ids []int32) {
	for _, id := range slices.Backward(ids) {
		b := &p.blocks[id]
		if b.refs--; b.refs == 0 {
			end := &p.blocks[0]
			b.prev, b.next = end.prev, 0
			p.blocks[end.prev].next, end.prev = id, id
			p.free++
		}
	}
}

func (p *blockPool) unlink(id int32) *block {
	b := &p.blocks[id]
	p.blocks[b.prev].next = b.next
	p.blocks[b.next].prev = b.prev
	return b
}

// chain is the hash of a block of tokens after the prefix hashed parent. It is
// odd.
func chain(parent uint64, tokens []uint32) uint64 {
	h := parent ^ 0x9e3779b97f4a7c15
	for len(tokens) > 1 { // two at a time
		h = mix(h ^ uint64(tokens[0]) ^ uint64(tokens[1])<<32)
		tokens = tokens[2:]
	}
	for _, t := range tokens {
		h = mix(h ^ uint64(t))
	}
	return h | 1
}

// mix is the finaliser of splitmix64, a bijection that spreads every bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
