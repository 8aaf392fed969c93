package sim

// schedule fills c.next with the work of the next step, by the engine's policy.
func (c *Core) schedule() {
	c.next = c.next[:0]
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
	for budget > 0 && len(c.running) < c.cfg.Seqs {
		n := c.admit(budget)
		if n == 0 {
			return
		}
		budget -= n
	}
}

// scheduleRunning gives each running sequence its next tokens in order of
// admission, preempting from the tail when blocks run out.
func (c *Core) scheduleRunning(budget int) (left int, preempted bool) {
	for i := 0; i < len(c.running) && budget > 0; i++ {
		s := c.running[i]
		n := s.known() - s.computed
		if s.decoding() {
			if s.produced+s.pending >= s.job.Output {
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
// the borders of blocks.
func (c *Core) chunk(n, budget int) int {
	if n > budget && c.cfg.Reserve {
		return budget / c.cfg.Block * c.cfg.Block
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

// admit schedules the first waiting sequence within a budget of tokens and
// returns how many it took, 0 when it must wait. vLLM asks for room for the
// chunk alone; TensorRT-LLM (GUARANTEED_NO_EVICT) for all that the request can
// ever need, so that it never preempts.
func (c *Core) admit(budget int) int {
	s := c.head()
	if s == nil {
		return 0
	}
	hits, idle := c.lookup(s)
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
		take = c.blocksFor(len(s.job.Prompt) + s.job.Output + c.cfg.SpecTokens)
	}
	// Hits that nobody holds leave the free list too.
	if take-hits+idle+c.state > c.pool.free {
		return 0
	}
	c.join(s, hits, take, n)
	return n
}

// head is the first of the queue that is still wanted, nil for none.
func (c *Core) head() *seq {
	for c.waiting.len() > 0 && c.waiting.front().gone {
		c.waiting.popFront()
	}
	if c.waiting.len() == 0 {
		return nil
	}
	return c.waiting.front()
}

// join moves the head of the queue, which must fit, to the running: it shares
// hits cached blocks, holds take in all and computes n tokens in this step.
func (c *Core) join(s *seq, hits, take, n int) {
	c.waiting.popFront()
	for _, h := range s.hashes[:hits] {
		id, ok := c.pool.share(h)
		if !ok {
			panic("sim: a cached block is gone")
		}
		s.blocks = append(s.blocks, id)
	}
	hit := hits * c.cfg.Block
	s.registered, s.computed, s.phase = hits, hit, inRunning
	for range c.state {
		s.state = append(s.state, c.pool.alloc())
	}
	c.running = append(c.running, s)
	if s.first {
		s.first, s.cached = false, hit
		c.stats.PromptTokens += len(s.job.Prompt)
		if c.cfg.Prefix {
			c.stats.PrefixQueries += len(s.job.Prompt)
			c.stats.PrefixHits += hit
		}
	}
	c.extend(s, take)
	c.settle(s, hit+n)
	c.next = append(c.next, work{s: s, n: n})
}

// lookup counts the leading blocks of s that are in the cache, and how many of
// them nobody holds. The block with the last token is always computed anew.
func (c *Core) lookup(s *seq) (hits, idle int) {
	if !c.cfg.Prefix {
		return 0, 0
	}
	for most := (s.known() - 1) / c.cfg.Block; hits < most; hits++ {
		id, ok := c.pool.found[c.hash(s, hits)]
		if !ok {
			break
		}
		if c.pool.refs[id] == 0 {
			idle++
		}
	}
	return hits, idle
}

// hash is the hash of the prefix of s up to the end of block i, which must be
// full and whose predecessors have been hashed.
func (c *Core) hash(s *seq, i int) uint64 {
	if i < len(s.hashes) {
		return s.hashes[i]
	}
	parent := uint64(0)
	if i > 0 {
		parent = c.hash(s, i-1)
	}
	lo, hi := i*c.cfg.Block, (i+1)*c.cfg.Block
	var h uint64
	if hi <= len(s.job.Prompt) {
		h = chain(parent, s.job.Prompt[lo:hi])
	} else { // generated tokens are this sequence's own
		h = chain(parent, []uint32{uint32(s.order), uint32(s.order >> 32), uint32(i)})
		if lo < len(s.job.Prompt) {
			h = chain(h, s.job.Prompt[lo:])
		}
	}
	s.hashes = append(s.hashes, h)
	return h
}

// grow gives s room for tokens; false when the pool has too few blocks.
func (c *Core) grow(s *seq, tokens int) bool {
	need := c.blocksFor(tokens)
	if need-len(s.blocks) > c.pool.free {
		return false
	}
	c.extend(s, need)
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
	for ; s.registered < tokens/c.cfg.Block; s.registered++ {
		c.pool.publish(s.blocks[s.registered], c.hash(s, s.registered))
	}
}

// preempt takes a sequence's blocks away. They stay findable: what is not
// evicted meanwhile need not be computed again.
func (c *Core) preempt(s *seq) {
	c.free(s)
	s.computed, s.phase = 0, inWaiting
	c.stats.Preemptions++
	c.result.Preempted = append(c.result.Preempted, s.job.Index)
}

func (c *Core) free(s *seq) {
	c.pool.release(s.state)
	c.pool.release(s.blocks)
	s.state, s.blocks, s.registered = s.state[:0], s.blocks[:0], 0
}

func (c *Core) blocksFor(tokens int) int { return (tokens + c.cfg.Block - 1) / c.cfg.Block }
