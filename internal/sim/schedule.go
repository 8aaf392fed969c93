package sim

import "time"

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
	c.work, c.held = c.work[:0], nil
	if c.cfg.PrefillOnly {
		c.schedulePrefillFirst()
		return
	}
	budget, preempted := c.scheduleRunning(c.cfg.Batched)
	if preempted {
		return // room must not go to newcomers in the step that took it away
	}
	c.admitAll(budget, c.mixedNeed)
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
	c.admitAll(budget, c.reservedNeed)
}

// retractedReserve is the share after a retraction: what the running requests
// have produced, and 20 steps more, of what they asked for.
func (c *Core) retractedReserve() float64 {
	have, want := 0, 0
	for _, s := range c.running {
		have += s.produced + 20
		want += s.output
	}
	return min(1, float64(have)/float64(max(1, want)))
}

// mixedNeed is the room in blocks that an admission takes, and keeps free
// besides: vLLM asks for the chunk alone, TensorRT-LLM for all that the
// request can ever need.
func (c *Core) mixedNeed(s *seq, tokens int) (take, keep int) {
	if c.cfg.Reserve {
		return c.blocksFor(s.prompt + s.output + c.cfg.SpecTokens), 0
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
	future := float64(min(s.output-s.produced, sglangClip))
	for _, r := range c.running {
		future += c.reserve * float64(min(r.output-r.produced, sglangClip))
	}
	return take, int(future) / c.cfg.Block
}

// admitAll schedules waiting sequences as long as they fit.
func (c *Core) admitAll(budget int, need func(*seq, int) (take, keep int)) {
	for len(c.running) < c.cfg.Seqs {
		n := 0
		if budget > 0 {
			n = c.admit(budget, need)
		}
		if n == 0 {
			c.hold(&c.stats.Waits.Tokens)
			return
		}
		budget -= n
	}
	c.hold(&c.stats.Waits.Seqs)
}

// hold notes what stops the admission of waiting sequences in this step,
// unless something has before.
func (c *Core) hold(wait *time.Duration) {
	if c.held == nil {
		c.held = wait
	}
}

// admit schedules the first waiting sequence within a budget of tokens and
// returns how many it took, 0 when it must wait.
func (c *Core) admit(budget int, need func(*seq, int) (take, keep int)) int {
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
		n = budget
	case len(c.work) > 0:
		return 0 // a whole prompt over the budget has a step of its own
	}
	take, keep := need(s, hit+n)
	// Hits that nobody holds leave the free list too.
	side := c.layout.SideBlocks(s.prompt + s.job.Output)
	if take-hits+idle+side+keep > c.pool.free {
		c.hold(&c.stats.Waits.KV)
		return 0
	}
	c.waiting.popFront()
	for _, id := range c.hits {
		c.pool.hold(id)
	}
	s.blocks = append(s.blocks, c.hits...)
	s.registered, s.computed, s.phase = hits, hit, inRunning
	for range side {
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
	c.publish(s, hit+n)
	c.work = append(c.work, work{s, n})
	return n
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
		return c.pool.found[c.hash(s, i)]
	} else if k < len(s.own) && c.pool.blocks[s.own[k]].hash == s.stamp(i) {
		return s.own[k]
	}
	return 0
}

// hash is the hash of the prefix of s up to the end of block i, one of those
// that others can share.
func (c *Core) hash(s *seq, i int) uint64 {
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

// preempt puts the last running sequence back at the head of the queue. Its
// blocks are freed but stay findable: what is not evicted meanwhile need not
// be computed again.
func (c *Core) preempt(s *seq) {
	c.running = c.running[:len(c.running)-1]
	c.free(s)
	s.computed, s.phase = 0, inWaiting
	c.waiting.pushFront(s)
	c.hold(&c.stats.Waits.KV)
	c.stats.Preemptions++
	c.result.Preempted = append(c.result.Preempted, s.job.Index)
}

func (c *Core) free(s *seq) {
	c.pool.release(s.state)
	c.pool.release(s.blocks)
	s.state, s.blocks, s.registered = s.state[:0], s.blocks[:0], 0
}

func (c *Core) blocksFor(tokens int) int { return (tokens + c.cfg.Block - 1) / c.cfg.Block }
