package reuse

import "time"

// pool is a paged cache: blocks that requests hold, and those that nobody holds in the order in which they make
// room. Block 0 is the list's sentinel.
type pool struct {
	total  int
	free   int
	blocks []paged
	found  map[uint64]int32 // key -> the block that is found, of those with the key
}

// paged is one block.
type paged struct {
	prev, next int32 // in the list
	refs       int32
	twin       int32  // the next block with the same key
	key        uint64 // 0: its content cannot be found
}

func newPool(total int) *pool {
	return &pool{total: total, free: total, blocks: make([]paged, 1), found: map[uint64]int32{}}
}

// alloc takes a block, the one that was given back longest ago where none is fresh. The caller has
// looked whether there is one.
func (p *pool) alloc() int32 {
	p.free--
	if len(p.blocks) <= p.total {
		p.blocks = append(p.blocks, paged{refs: 1})
		return int32(len(p.blocks) - 1)
	}
	id := p.blocks[0].next
	p.unlink(id)
	b := &p.blocks[id]
	if b.key != 0 {
		p.forget(id)
	}
	b.key, b.refs = 0, 1
	return id
}

// forget takes a block from what is found under its key.
func (p *pool) forget(id int32) {
	b := &p.blocks[id]
	if first := p.found[b.key]; first != id {
		for k := first; k != 0; k = p.blocks[k].twin {
			if p.blocks[k].twin == id {
				p.blocks[k].twin = b.twin
			}
		}
	} else if b.twin != 0 {
		p.found[b.key] = b.twin
	} else {
		delete(p.found, b.key)
	}
	b.twin = 0
}

// hold takes a block for one more request.
func (p *pool) hold(id int32) {
	if p.blocks[id].refs == 0 {
		p.unlink(id)
		p.free--
	}
	p.blocks[id].refs++
}

// publish makes a block findable.
func (p *pool) publish(id int32, key uint64) {
	p.blocks[id].key = key
	first, ok := p.found[key]
	if !ok {
		p.found[key] = id
		return
	}
	p.blocks[id].twin = p.blocks[first].twin
	p.blocks[first].twin = id
}

// release gives blocks back, the last first. Those whose content cannot be found make room before all others.
func (p *pool) release(ids []int32) {
	for i := len(ids) - 1; i >= 0; i-- {
		b := &p.blocks[ids[i]]
		if b.refs--; b.refs > 0 {
			continue
		}
		p.free++
		after := p.blocks[0].prev // the end of the list
		if b.key == 0 {
			after = 0
		}
		b.prev, b.next = after, p.blocks[after].next
		p.blocks[b.next].prev, p.blocks[after].next = ids[i], ids[i]
	}
}

func (p *pool) unlink(id int32) {
	b := p.blocks[id]
	p.blocks[b.prev].next = b.next
	p.blocks[b.next].prev = b.prev
}

// cache is a replica's cache under the requests that went there.
type cache struct {
	*pool
	s       *scene
	block   int
	waiting []int           // requests for whose prompt there was no room, in order
	running map[int]*holder // by request
	order   []int           // those running, in the order in which they were let in
	hits    int
}

// holder is a request that holds blocks.
type holder struct {
	ids       []int32
	keys      []uint64 // of all blocks that it will fill
	published int
}

// fitting is how many prompt tokens the cache of a target has, with a room.
func (s *scene) fitting(target int, room Room) int {
	block := max(room.Block, usualBlock)
	total := max(1, room.Tokens/block-1) // vLLM keeps one of the blocks that it tells, for what has no content
	c := &cache{pool: newPool(total), s: s, block: block, running: map[int]*holder{}}
	for i, p := range s.lines {
		if p.Fill && p.Target == target {
			c.fill(i)
		}
	}
	for _, e := range s.events(func(r Request) bool { return r.Target == target }) {
		c.grow(e.at)
		if e.sent {
			c.waiting = append(c.waiting, e.k)
		} else {
			c.end(e.k)
		}
		for len(c.waiting) > 0 && c.admit(c.waiting[0], c.s.line[c.waiting[0]], c.s.requests[c.waiting[0]].Prompt) {
			c.waiting = c.waiting[1:]
		}
	}
	return c.hits
}

// fill runs a prompt before the run, for one token.
func (c *cache) fill(line int) {
	before, key := c.hits, -1-line
	if c.admit(key, line, c.s.lines[line].Tokens) {
		c.leave(key)
	}
	c.hits = before
}

// admit lets a request in that is next; false where there is no room for its prompt.
func (c *cache) admit(k, line, prompt int) bool {
	tokens := prompt
	if k >= 0 {
		tokens = c.s.requests[k].computed()
	}
	h := &holder{keys: c.s.keys(nil, line, tokens, c.block)}
	idle := 0
	for _, key := range h.keys[:min(len(h.keys), (prompt-1)/c.block)] {
		id, ok := c.found[key]
		if !ok {
			break
		}
		if c.blocks[id].refs == 0 {
			idle++
		}
		h.ids = append(h.ids, id)
	}
	if need := c.blocksFor(prompt) - len(h.ids) + idle; need > c.free {
		return false
	}
	c.hits += c.block * len(h.ids)
	for _, id := range h.ids {
		c.hold(id)
	}
	h.published = len(h.ids)
	c.running[k] = h
	c.order = append(c.order, k)
	c.extend(h, prompt)
	return true
}

func (c *cache) blocksFor(tokens int) int { return (tokens + c.block - 1) / c.block }

// extend gives a request blocks for so many tokens, as far as there are any, and publishes those that are full.
func (c *cache) extend(h *holder, tokens int) {
	for len(h.ids) < c.blocksFor(tokens) && c.free > 0 {
		h.ids = append(h.ids, c.alloc())
	}
	for ; h.published < min(len(h.ids), tokens/c.block); h.published++ {
		c.publish(h.ids[h.published], h.keys[h.published])
	}
}

// grow gives requests that are answered the blocks that they have filled until an instant.
func (c *cache) grow(at time.Duration) {
	for _, k := range c.order {
		r := c.s.requests[k]
		if at <= r.First || r.Last <= r.First || r.Output < 2 {
			continue
		}
		share := min(1, float64(at-r.First)/float64(r.Last-r.First))
		c.extend(c.running[k], r.Prompt+int(share*float64(r.Output-1)))
	}
}

// end is the last token of a request. One that was never let in was let in earlier than is known here: it
// finds what is there.
func (c *cache) end(k int) {
	if c.running[k] != nil {
		c.extend(c.running[k], c.s.requests[k].computed())
		c.leave(k)
		return
	}
	for i, w := range c.waiting {
		if w == k {
			c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
			break
		}
	}
	r := c.s.requests[k]
	for _, key := range c.s.keys(nil, c.s.line[k], r.Prompt, c.block)[:(r.Prompt-1)/c.block] {
		if _, ok := c.found[key]; !ok {
			break
		}
		c.hits += c.block
	}
}

// leave gives back what a request holds.
func (c *cache) leave(k int) {
	c.release(c.running[k].ids)
	delete(c.running, k)
	for i, o := range c.order {
		if o == k {
			c.order = append(c.order[:i], c.order[i+1:]...)
			break
		}
	}
}
