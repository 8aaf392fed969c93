package sim

import "perflab/internal/engine"

// mixed is the policy of vLLM (0.11 to 0.17, v1 scheduler) and of
// TensorRT-LLM (1.2, PyTorch backend): within a budget of tokens those that run
// come first, then the queue in order of arrival.
type mixed struct{ *scheduler }

func (m *mixed) schedule() {
	m.next, m.blocked = m.next[:0], nil
	budget, preempted := m.scheduleRunning(m.cfg.Batched)
	if preempted {
		return // room must not go to newcomers in the step that took it away
	}
	for len(m.running) < m.cfg.Seqs {
		n, ok := 0, false
		switch {
		case budget < 1:
		case m.came.len() > 0:
			n, ok = m.resume(budget)
		default:
			n, ok = m.admit(budget)
		}
		if !ok {
			m.hold(&m.stats.Waits.Tokens)
			return
		}
		budget -= n
	}
	m.hold(&m.stats.Waits.Seqs)
}

// scheduleRunning gives each running sequence its next tokens in order of
// admission, preempting from the tail when blocks run out.
func (m *mixed) scheduleRunning(budget int) (left int, preempted bool) {
	for i := 0; i < len(m.running) && budget > 0; i++ {
		s := m.running[i]
		n := s.known() - s.computed
		if s.decoding() {
			if s.produced+s.pending >= s.output {
				continue // the step that runs brings its last token
			}
			n += m.cfg.SpecTokens
		}
		if n = m.chunk(n, budget); n == 0 {
			continue
		}
		ok, cut := m.growOrPreempt(s, s.computed+n)
		preempted = preempted || cut
		if !ok {
			break
		}
		m.next = append(m.next, work{s: s, n: n})
		budget -= n
	}
	return budget, preempted
}

// chunk is how many of n tokens a budget leaves. TensorRT-LLM cuts prompts at
// the borders of blocks, but for a whole step's budget that holds no block.
func (m *mixed) chunk(n, budget int) int {
	whole := budget / m.kv.block * m.kv.block
	if n > budget && (m.cfg.Reserve || m.cfg.Engine == "trtllm") && (whole > 0 || budget < m.cfg.Batched) {
		return whole
	}
	return min(n, budget)
}

// growOrPreempt gives s room for tokens, preempting the youngest running
// sequences until there is; ok is false when s itself had to go.
func (m *mixed) growOrPreempt(s *seq, tokens int) (ok, preempted bool) {
	for !m.kv.grow(s, tokens) {
		victim := m.running[len(m.running)-1]
		m.running = m.running[:len(m.running)-1]
		m.preempt(victim)
		m.waiting.pushFront(victim)
		preempted = true
		if victim == s {
			return false, true
		}
	}
	return true, preempted
}

// part is how many of n tokens that are left of a prompt a step computes; false when it
// has to wait for another step.
func (m *mixed) part(n, budget int) (int, bool) {
	switch {
	case n <= budget:
	case m.cfg.Chunked:
		n = m.chunk(n, budget)
		return n, n > 0
	case len(m.next) > 0:
		return 0, false // a whole prompt over the budget has a step of its own
	}
	return n, true
}

// admit schedules the first waiting sequence within a budget of tokens and
// returns how many it took, false when it must wait; none where blocks of it have to be
// fetched first. vLLM asks for room for the
// chunk alone; TensorRT-LLM (GUARANTEED_NO_EVICT) for all that the request can
// ever need, so that it never preempts.
func (m *mixed) admit(budget int) (n int, ok bool) {
	s := m.waiting.next()
	if s == nil {
		return 0, false
	}
	idle := m.kv.lookup(s)
	hits := len(m.kv.hits)
	hit := hits * m.kv.block
	if n, ok = m.part(s.known()-hit, budget); !ok {
		return 0, false
	}
	take := m.kv.blocksFor(hit + n)
	if m.cfg.Reserve {
		take = m.kv.blocksFor(s.prompt + s.output + m.cfg.SpecTokens)
	}
	// Hits that nobody holds leave the free list too.
	if take-hits+m.kv.loads+idle+m.kv.side(s) > m.kv.pool.free {
		m.hold(&m.stats.Waits.KV)
		return 0, false
	}
	if m.kv.loads > 0 && m.kv.tiers.fetch == engine.FetchAside {
		m.fetch(s, hits, take)
		return 0, true
	}
	m.join(s, hits, take, n)
	return n, true
}
