package sim

// SGLang keeps a share of the running requests' remaining output free when it
// admits another; the share begins at sglangReserve, falls to sglangFloor over
// sglangDecay decode steps and rises again when requests had to be retracted
// (schedule_conservativeness 1).
const (
	sglangReserve = 0.7
	sglangFloor   = 0.7 * 0.14
	sglangDecay   = 600
	sglangClip    = 4096 // of a request's remaining output, at most this counts
)

// schedule fills c.work for the next step by the engine's policy.
func (c *Core) schedule() {
	c.work = c.work[:0]
	if c.cfg.PrefillOnly {
		c.schedulePrefillFirst()
		return
	}
	budget, preempted := c.scheduleRunning(c.cfg.Batched)
	if preempted {
		return // room must not go to newcomers in the step that took it away
	}
	for budget > 0 && len(c.running) < c.cfg.Seqs {
		n := c.admit(budget, c.mixedNeed)
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
			n += c.cfg.SpecTokens
		}
		n = min(n, budget)
		ok, cut := c.growOrPreempt(s, s.computed+n)
		preempted = preempted || cut
		if !ok {
			break
		}
		c.work = append(c.work, work{s, n})
		budget -= n
	}
	return budget, preempted
}

// growOrPreempt gives s room for tokens, preempting the youngest running
// sequences until there is; ok is false when s itself had to go.
func (c *Core) growOrPreempt(s *seq, tokens int) (ok, preempted bool) {
	for !c.grow(s, tokens) {
		victim := c.running[len(c.running)-1]
		c.preempt(victim)
		preempted = true
		if victim == s {
			return false, true
		}
	}
	return true, preempted
}

// schedulePrefillFirst is SGLang's policy: a batch of prompts while any can be
// admitted, otherwise a decode step of everything that runs.
func (c *Core) schedulePrefillFirst() {
	if c.schedulePrompts(); len(c.work) > 0 {
		return
	}
	if len(c.running) == 0 {
		c.reserve = sglangReserve
	}
	retracted := 0
	for i := 0; i < len(c.running); i++ {
		s := c.running[i]
		before := len(c.running)
		ok, _ := c.growOrPreempt(s, s.known()+c.cfg.SpecTokens)
		retracted += before - len(c.running)
		if !ok {
			break
		}
		c.work = append(c.work, work{s, 1 + c.cfg.SpecTokens})
	}
	if retracted > 0 {
		c.reserve = c.retractedReserve()
	} else {
		c.reserve = max(sglangFloor, c.reserve-(sglangReserve-sglangFloor)/sglangDecay)
	}
}

func (c *Core) schedulePrompts() {
	budget := c.cfg.Batched
	for _, s := range c.running {
		if n := s.known() - s.computed; !s.decoding() && budget > 0 {
			n = min(n, budget) // its blocks were taken at admission
			c.publish(s, s.computed+n)
			c.work = append(c.work, work{s, n})
			budget -= n
		}
	}
	for budget > 0 && len(c.running) < c.cfg.Seqs {
		n := c.admit(budget, c.reservedNeed)
		if n == 0 {
			return
		}
		budget -= n
	}
}

// retractedReserve is the share after a retraction: what the running requests
// have produced, and 20 steps more, of what they asked for.
func (c *Core) retractedReserve() float64 {
	have, want := 0, 0
	for _, s := range c.running {
		have += s.produced + 20
		want += s.job.Output
	}
	return min(1, float64(have)/float64(max(1, want)))
}

// mixedNeed is the room in blocks that an admission takes, and keeps free
// besides: vLLM asks for the chunk alone, TensorRT-LLM for all that the
// request can ever need.
func (c *Core) mixedNeed(s *seq, tokens int) (take, keep int) {
	if c.cfg.Reserve {
		return c.blocksFor(len(s.job.Prompt) + s.job.Output + c.cfg.SpecTokens), 0
	}
	return c.blocksFor(tokens), 0
}

// reservedNeed is SGLang's: the whole prompt, and an estimate of the output
// still to come of everyone.
func (c *Core) reservedNeed(s *seq, _ int) (take, keep int) {
	take = c.blocksFor(s.known())
	if len(c.running) == 0 {
		return take, 0
	}
	future := float64(min(s.job.Output-s.produced, sglangClip))
	for _, r := range c.running {
		future += c.reserve * float64(min(r.job.Output-r.produced, sglangClip))
	}
	return take, int(future) / c.cfg.Block
}

// admit schedules the first waiting sequence within a budget of tokens and
// returns how many it took, 0 when it must wait.
func (c *Core) admit(budget int, need func(*seq, int) (take, keep int)) int {
	for c.waiting.len() > 0 && c.waiting.front().gone {
		c.waiting.popFront()
	}
	if c.waiting.len() == 0 {
		return 0
	}
	s := c.waiting.front()
	hits, idle := c.lookup(s)
	hit := hits * c.cfg.Block
	n := s.known() - hit
	switch {
	case n <= budget:
	case c.cfg.Chunked:
		n = budget
	case len(c.work) > 0:
		return 0 // a whole prompt over the budget has a step of its own
	}
	take, keep := need(s, hit+n)
	// Hits that nobody holds leave the free list too.
	side := c.layout.SideBlocks(len(s.job.Prompt) + s.job.Output)
	if take-hits+idle+side+keep > c.pool.free {
		return 0
	}
	c.waiting.popFront()
	for _, h := range s.hashes[:hits] {
		id, ok := c.pool.share(h)
		if !ok {
			panic("sim: a cached block is gone")
		}
		s.blocks = append(s.blocks, id)
	}
	s.registered, s.computed, s.phase = hits, hit, inRunning
	for range side {
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
	c.publish(s, hit+n)
	c.work = append(c.work, work{s, n})
	return n
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
	c.publish(s, min(tokens, s.known()))
	return true
}

func (c *Core) extend(s *seq, blocks int) {
	for len(s.blocks) < blocks {
		s.blocks = append(s.blocks, c.pool.alloc())
	}
}

// publish makes the full blocks among the first tokens findable, as soon as
// they are scheduled: later requests of the same step may share them.
func (c *Core) publish(s *seq, tokens int) {
	if !c.cfg.Prefix {
		return
	}
	for ; s.registered < tokens/c.cfg.Block; s.registered++ {
		c.pool.publish(s.blocks[s.registered], c.hash(s, s.registered))
	}
}

// preempt puts the last running sequence back at the head of the queue. Its
// blocks are freed but stay findable: what is not evicted meanwhile need not
// be computed again.
func (c *Core) preempt(s *seq) {
	c.running = c.running[:len(c.running)-1]
	c.free(s)
	s.computed, s.phase = 0, inWaiting
	c.waiting.pushFront(s)
	c.stats.Preemptions++
	c.result.Preempted = append(c.result.Preempted, s.job.Index)
}

func (c *Core) free(s *seq) {
	c.pool.release(s.state)
	c.pool.release(s.blocks)
	s.state, s.blocks, s.registered = s.state[:0], s.blocks[:0], 0
}

func (c *Core) blocksFor(tokens int) int { return (tokens + c.cfg.Block - 1) / c.cfg.Block }
