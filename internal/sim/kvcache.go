package sim

// blockPool is the paged KV cache: blocks with reference counts, the hash of
// their content's whole prefix, and an LRU list of those that nobody holds but
// whose content may still be found. All operations are O(1). Block 0 is the
// list's sentinel; ids run from 1.
type blockPool struct {
	total int
	used  int // ids handed out at least once; the arrays grow with it
	free  int // never used, or in the list
	prev  []int32
	next  []int32
	refs  []int32
	hash  []uint64 // odd: in found; even: a sequence's stamp; 0: not findable
	found map[uint64]int32
}

func newBlockPool(total int) *blockPool {
	return &blockPool{
		total: total, free: total,
		prev: make([]int32, 1), next: make([]int32, 1), refs: make([]int32, 1), hash: make([]uint64, 1),
		found: map[uint64]int32{},
	}
}

// alloc takes a block: a fresh one, or the least recently freed. The caller
// has checked that one is free.
func (p *blockPool) alloc() int32 {
	var id int32
	if p.used < p.total {
		p.used++
		id = int32(p.used)
		p.prev, p.next = append(p.prev, 0), append(p.next, 0)
		p.refs, p.hash = append(p.refs, 0), append(p.hash, 0)
	} else {
		id = p.next[0]
		if id == 0 {
			panic("sim: no free KV block")
		}
		p.unlink(id)
		if h := p.hash[id]; h&1 != 0 {
			delete(p.found, h)
		}
		p.hash[id] = 0
	}
	p.free--
	p.refs[id] = 1
	return id
}

// hold takes a block for one more sequence.
func (p *blockPool) hold(id int32) {
	if p.refs[id] == 0 {
		p.unlink(id)
		p.free--
	}
	p.refs[id]++
}

// publish makes a block findable under h. The first block with some content
// stays the one that is found.
func (p *blockPool) publish(id int32, h uint64) {
	if _, ok := p.found[h]; !ok {
		p.found[h] = id
		p.hash[id] = h
	}
}

// release gives blocks back, the last first, so that the end of a prefix is
// evicted before its beginning.
func (p *blockPool) release(ids []int32) {
	for i := len(ids) - 1; i >= 0; i-- {
		id := ids[i]
		p.refs[id]--
		if p.refs[id] == 0 {
			last := p.prev[0]
			p.next[last], p.prev[id] = id, last
			p.next[id], p.prev[0] = 0, id
			p.free++
		}
	}
}

func (p *blockPool) unlink(id int32) {
	p.next[p.prev[id]] = p.next[id]
	p.prev[p.next[id]] = p.prev[id]
}

// chain is the hash of a block of tokens after the prefix hashed parent. It is
// odd.
func chain(parent uint64, tokens []uint32) uint64 {
	h := parent ^ 0x9e3779b97f4a7c15
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
