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
	found  map[uint64]int32
}

// block is one block of the cache.
type block struct {
	prev, next int32 // in the list
	refs       int32
	hash       uint64 // odd: in found; even: a sequence's stamp; 0: not findable
}

func newBlockPool(total int) *blockPool {
	return &blockPool{total: total, free: total, blocks: make([]block, 1), found: map[uint64]int32{}}
}

// alloc takes a block: a fresh one, or the least recently freed. The caller
// has checked that one is free.
func (p *blockPool) alloc() int32 {
	p.free--
	if len(p.blocks) <= p.total {
		p.blocks = append(p.blocks, block{refs: 1})
		return int32(len(p.blocks) - 1)
	}
	id := p.blocks[0].next
	if id == 0 {
		panic("sim: no free KV block")
	}
	b := p.unlink(id)
	if b.hash&1 != 0 {
		delete(p.found, b.hash)
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
	if _, ok := p.found[h]; !ok {
		p.found[h] = id
		p.blocks[id].hash = h
	}
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
