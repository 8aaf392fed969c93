package sim

import (
	"cmp"
	"slices"
	"time"
)

// schedule fills c.next with the work of the next step, by the engine's policy.
func (c *Core) schedule() {
	c.next, c.held = c.next[:0], nil
	if c.cfg.PrefillOnly {
		c.scheduleSGLang()
	} else {
		c.scheduleMixed()
	}
}

// scheduleMixed is the policy of vLLM (0.11 to 0.17, v1 scheduler) and of
// TensorRT-LLM (1.2, PyTorch backend): within a budget of tokens those that run
// come first, then the queue in order of arrival.
func (c *Core) scheduleMixed() {
	budget, preempted := c.scheduleRunning(c.cfg.Batched)
	if preempted {
		return // room must not go to newcomers in the step that took it away
	}
	for len(c.running) < c.cfg.Seqs {
		n := 0
		if budget > 0 {
			n = c.admit(budget)
		}
		if n == 0 {
			c.hold(&c.stats.Waits.Tokens)
			return
		}
		budget -= n
	}
	c.hold(&c.stats.Waits.Seqs)
}

// scheduleRunning gives each running sequence its next tokens in order of
// admission, preempting from the tail when blocks run out.
func (c *Core) scheduleRunning(budget int) (left int, preempted bool) {
	for i := 0; i < len(c.running) && budget > 0; i++ {
		s := c.running[i]
		n := s.known() - s.computed
		if s.decoding() {
			if s.produced+s.pending >= s.output {
				continue // the step that runs brings its last token
			}
			n += c.cfg.SpecTokens
		}
		if n = c.chunk(n, budget); n == 0 {
			continue
		}
		ok, cut := c.growOrPreempt(s, s.computed+n)
		preempted = preempted || cut
		if !ok {
			break
		}
		c.next = append(c.next, work{s: s, n: n})
		budget -= n
	}
	return budget, preempted
}

// chunk is how many of n tokens a budget leaves. TensorRT-LLM cuts prompts at
// the borders of blocks, but for a whole step's budget that holds no block.
func (c *Core) chunk(n, budget int) int {
	whole := budget / c.cfg.Block * c.cfg.Block
	if n > budget && (c.cfg.Reserve || c.cfg.Engine == "trtllm") && (whole > 0 || budget < c.cfg.Batched) {
		return whole
	}
	return min(n, budget)
}

// growOrPreempt gives s room for tokens, preempting the youngest running
// sequences until there is; ok is false when s itself had to go.
func (c *Core) growOrPreempt(s *seq, tokens int) (ok, preempted bool) {
	for !c.grow(s, tokens) {
		victim := c.running[len(c.running)-1]
		c.running = c.running[:len(c.running)-1]
		c.preempt(victim)
		c.waiting.pushFront(victim)
		preempted = true
		if victim == s {
			return false, true
		}
	}
	return true, preempted
}

// hold notes what stops the admission of waiting sequences in this step,
// unless something has before.
func (c *Core) hold(wait *time.Duration) {
	if c.nextWaiting() != nil {
		c.held = cmp.Or(c.held, wait)
	}
}

// admit schedules the first waiting sequence within a budget of tokens and
// returns how many it took, 0 when it must wait. vLLM asks for room for the
// chunk alone; TensorRT-LLM (GUARANTEED_NO_EVICT) for all that the request can
// ever need, so that it never preempts.
func (c *Core) admit(budget int) int {
	s := c.nextWaiting()
	if s == nil {
		return 0
	}
	idle := c.lookup(s)
	hits := len(c.hits)
	hit := hits * c.cfg.Block
	n := s.known() - hit
	switch {
	case n <= budget:
	case c.cfg.Chunked:
		if n = c.chunk(n, budget); n == 0 {
			return 0
		}
	case len(c.next) > 0:
		return 0 // a whole prompt over the budget has a step of its own
	}
	take := c.blocksFor(hit + n)
	if c.cfg.Reserve {
		take = c.blocksFor(s.prompt + s.output + c.cfg.SpecTokens)
	}
	// Hits that nobody holds leave the free list too.
	if take-hits+idle+c.side(s) > c.pool.free {
		c.hold(&c.stats.Waits.KV)
		return 0
	}
	c.join(s, hits, take, n)
	return n
}

// side is the blocks of s beside those of its tokens: of windows and states.
func (c *Core) side(s *seq) int { return c.layout.SideBlocks(s.prompt + s.output) }

// join moves the head of the queue, which must fit, to the running: it shares
// hits cached blocks, holds take in all and computes n tokens in this step.
func (c *Core) join(s *seq, hits, take, n int) {
	c.waiting.popFront()
	for _, id := range c.hits {
		c.pool.hold(id)
	}
	s.blocks = append(slices.Grow(s.blocks, max(take, c.blocksFor(s.prompt+s.output))), c.hits...)
	hit := hits * c.cfg.Block
	s.registered, s.computed, s.phase = hits, hit, inRunning
	for range c.side(s) {
		s.state = append(s.state, c.pool.alloc())
	}
	c.running = append(c.running, s)
	if s.first {
		s.first, s.cached = false, hit
		c.stats.PromptTokens += s.prompt
		if c.cfg.Prefix {
			c.stats.PrefixQueries += s.prompt
			c.stats.PrefixHits += hit
		}
	}
	c.extend(s, take)
	c.settle(s, hit+n)
	c.next = append(c.next, work{s: s, n: n})
}

// lookup fills c.hits with the leading blocks of s that are in the cache, and
// counts those that nobody holds. The block with the last token is always
// computed anew.
func (c *Core) lookup(s *seq) (idle int) {
	c.hits = c.hits[:0]
	if !c.cfg.Prefix {
		return 0
	}
	for i := range (s.known() - 1) / c.cfg.Block {
		id := c.find(s, i)
		if id == 0 {
			break
		}
		if c.pool.blocks[id].refs == 0 {
			idle++
		}
		c.hits = append(c.hits, id)
	}
	return idle
}

// find is the block that holds what block i of s does; 0 when none does. Blocks
// of prompt tokens are found by their hash, those with tokens of its own only s
// can find.
func (c *Core) find(s *seq, i int) int32 {
	if k := i - s.shared; k < 0 {
		return c.pool.find(c.hash(s, i))
	} else if k < len(s.own) && c.pool.blocks[s.own[k]].hash == s.stamp(i) {
		return s.own[k]
	}
	return 0
}

// hash is the hash of the prefix of s up to the end of block i, one of those
// that others can share.
func (c *Core) hash(s *seq, i int) uint64 {
	if len(s.hashes) == 0 {
		s.hashes = slices.Grow(s.hashes, s.shared)
	}
	for k := len(s.hashes); k <= i; k++ {
		parent := uint64(0)
		if k > 0 {
			parent = s.hashes[k-1]
		}
		s.hashes = append(s.hashes, chain(parent, s.job.Prompt[k*c.cfg.Block:(k+1)*c.cfg.Block]))
	}
	return s.hashes[i]
}

// grow gives s room for tokens; false when the pool has too few blocks.
func (c *Core) grow(s *seq, tokens int) bool {
	if tokens > len(s.blocks)*c.cfg.Block {
		need := c.blocksFor(tokens)
		if need-len(s.blocks) > c.pool.free {
			return false
		}
		c.extend(s, need)
	}
	c.settle(s, min(tokens, s.known()))
	return true
}

func (c *Core) extend(s *seq, blocks int) {
	for len(s.blocks) < blocks {
		s.blocks = append(s.blocks, c.pool.alloc())
	}
}

// settle makes what is scheduled findable at once, as vLLM does: later requests
// of the same step may share it. SGLang's tree gets it later.
func (c *Core) settle(s *seq, tokens int) {
	if !c.cfg.PrefillOnly {
		c.publish(s, tokens)
	}
}

// publish makes the full blocks among the first tokens findable.
func (c *Core) publish(s *seq, tokens int) {
	if !c.cfg.Prefix {
		return
	}
	for ; (s.registered+1)*c.cfg.Block <= tokens; s.registered++ {
		i := s.registered
		k := i - s.shared
		switch id := s.blocks[i]; {
		case k < 0:
			c.pool.publish(id, c.hash(s, i))
		case k == len(s.own):
			s.own = append(s.own, id)
			c.pool.blocks[id].hash = s.stamp(i)
		case c.find(s, i) == 0:
			s.own[k] = id
			c.pool.blocks[id].hash = s.stamp(i)
		}
	}
}

// preempt takes a sequence's blocks away. They stay findable: what is not
// evicted meanwhile need not be computed again.
func (c *Core) preempt(s *seq) {
	c.free(s)
	s.computed, s.phase = 0, inWaiting
	c.held = cmp.Or(c.held, &c.stats.Waits.KV)
	c.stats.Preemptions++
	c.result.Preempted = append(c.result.Preempted, s.job.Index)
}

func (c *Core) free(s *seq) {
	c.pool.release(s.state)
	c.pool.release(s.blocks)
	s.state, s.blocks, s.registered = s.state[:0], s.blocks[:0], 0
}

func (c *Core) blocksFor(tokens int) int { return (tokens + c.cfg.Block - 1) / c.cfg.Block }
