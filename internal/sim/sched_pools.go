package sim

import "slices"

// resumes says that sequences which have run, here or in another engine, are to be run.
func (sc *scheduler) resumes() bool { return sc.came.len()+sc.retracted.len() > 0 }

// await takes the head of the queue, for which there is room, out of it and gives it
// blocks: its KV cache may be fetched.
func (sc *scheduler) await(s *seq, hits, take int) {
	sc.waiting.popFront()
	sc.take(s, hits, take)
	s.phase, s.remote, s.first = inTransfer, false, false
	sc.away++
	sc.taken = append(sc.taken, s)
}

// pulling is the policy of a decode engine of vLLM (0.32, NixlConnector): a request gets
// the blocks of its prompt when its turn has come, those apart that the prefix cache has,
// and does not count as running until their content has come. Then the last token of the
// prompt is computed again, which gives the first one. Who is preempted computes its
// prompt here.
type pulling struct{ *mixed }

func (p *pulling) schedule() {
	p.next, p.blocked = p.next[:0], nil
	budget, preempted := p.scheduleRunning(p.cfg.Batched)
	if preempted {
		return
	}
	for budget > 0 && len(p.running) < p.cfg.Seqs {
		n := 0
		switch s := p.waiting.next(); {
		case p.came.len() > 0:
			n = p.resume(p.came.popFront())
		case s == nil:
			return
		case s.remote:
			if !p.pull(s) {
				p.hold(&p.stats.Waits.KV)
				return
			}
		default:
			var ok bool
			if n, ok = p.admit(budget); !ok {
				p.hold(&p.stats.Waits.Tokens)
				return
			}
		}
		budget -= n
	}
	if budget > 0 {
		p.hold(&p.stats.Waits.Seqs)
	}
	p.hold(&p.stats.Waits.Tokens)
}

// pull makes room for the KV cache of a prompt that another engine has computed; false
// when there is none.
func (p *pulling) pull(s *seq) bool {
	idle := p.kv.lookup(s)
	hits, take := len(p.kv.hits), p.kv.blocksFor(s.prompt)
	if take-hits+idle+p.kv.side(s) > p.kv.pool.free {
		return false
	}
	if p.cfg.Prefix {
		p.stats.PrefixQueries += s.prompt
		p.stats.PrefixHits += hits * p.kv.block
	}
	p.await(s, hits, take)
	return true
}

// resume runs a sequence whose KV cache has come, and returns how many tokens it computes.
func (p *pulling) resume(s *seq) int {
	if s.gone {
		return 0
	}
	s.phase, s.pulled, s.computed = inRunning, true, s.prompt-1
	p.kv.publish(s, s.prompt)
	p.running = append(p.running, s)
	p.next = append(p.next, work{s: s, n: 1})
	return 1
}

// sglangPrefill is SGLang's policy where an engine computes prompts alone: nothing stays
// to be decoded.
type sglangPrefill struct{ *sglang }

func (g sglangPrefill) schedule() {
	g.next, g.blocked = g.next[:0], nil
	g.reserve, g.full = g.first, nil
	g.schedulePrompts()
}

// A decode engine of SGLang keeps so many tokens free for each request that it has taken
// in (--num-reserved-decode-tokens), and has places for so many times the requests that
// may run, where those are few.
const (
	sglangKept      = 512
	sglangFewSeqs   = 32
	sglangFewPlaces = 3
)

// sglangDecode is the policy of a decode engine of SGLang (0.5.23): room for the whole
// prompt is taken before another engine computes it; the first token comes with the KV
// cache and goes out when the request joins those that run. Its prefix cache is off.
// Whoever is retracted keeps its KV cache in the memory of the host, at no cost here.
type sglangDecode struct {
	*sglang
	places int // requests that hold blocks, at most
}

func newSGLangDecode(sc *scheduler) *sglangDecode {
	places := sc.cfg.Seqs
	if each := sc.cfg.Seqs / sc.cfg.DP; each <= sglangFewSeqs {
		places *= sglangFewPlaces
	}
	return &sglangDecode{newSGLang(sc), places}
}

func (g *sglangDecode) schedule() {
	g.next, g.blocked, g.shrunk = g.next[:0], nil, false
	g.restore()
	if g.retracted.len() == 0 {
		g.allocate()
	}
	for g.came.len() > 0 && len(g.running) < g.cfg.Seqs {
		g.merge(g.came.popFront())
	}
	if !g.decodesFit() {
		g.retract()
	}
	for _, s := range g.running {
		g.kv.grow(s, s.known()+g.cfg.SpecTokens)
		g.next = append(g.next, work{s: s, n: 1 + g.cfg.SpecTokens})
	}
}

// active is how many requests hold blocks.
func (g *sglangDecode) active() int { return len(g.running) + g.away + g.came.len() }

// room is how many tokens may be taken beside what those that hold blocks may still
// write; one is what a single running request needs at most, should all others go.
func (g *sglangDecode) room(one int) int {
	return g.kv.pool.free*g.kv.block - max(sglangKept*g.active(), one)
}

// allocate takes room for requests whose prompts may then be computed, in order.
func (g *sglangDecode) allocate() {
	written, one := 0, 0
	for _, s := range g.running {
		written += s.prompt + s.produced
		one = max(one, s.prompt+min(s.output, sglangClip))
	}
	one -= written
	for s := g.waiting.next(); s != nil; s = g.waiting.next() {
		if g.active() >= g.places {
			g.hold(&g.stats.Waits.Seqs)
			return
		}
		if sglangNeed(s.prompt, s.output, written) > g.room(one) {
			g.hold(&g.stats.Waits.KV)
			return
		}
		g.await(s, 0, g.kv.blocksFor(s.prompt))
	}
}

// sglangNeed is how many tokens must be free for a request, where running ones, which
// could be retracted, have written so many.
func sglangNeed(prompt, output, written int) int {
	return max(prompt+sglangKept, prompt+min(output, sglangClip)-written)
}

// restore takes room for requests that have been retracted.
func (g *sglangDecode) restore() {
	for g.retracted.len() > 0 && g.active() < g.places {
		s := g.retracted.front()
		blocks := g.kv.blocksFor(s.prompt + s.produced)
		fits := s.prompt+s.produced+sglangKept <= g.room(0) || g.active() == 0 && blocks <= g.kv.pool.free
		switch {
		case s.gone:
		case !fits:
			return
		default:
			g.take(s, 0, blocks)
			s.phase = hasCome
			g.came.pushBack(s)
		}
		g.retracted.popFront()
	}
}

// merge adds a request whose KV cache is there to those that run. One that wants a single
// token has it.
func (g *sglangDecode) merge(s *seq) {
	if s.gone {
		return
	}
	if s.produced == 0 {
		s.produced = 1
		g.stats.GenerationTokens++
		g.joined = append(g.joined, s)
	}
	if s.phase, s.computed = inRunning, s.prompt+s.produced-1; s.produced == s.output {
		g.kv.free(s)
		g.stats.Finished++
		s.gone = true
		return
	}
	g.running = append(g.running, s)
}

// retract sends running requests away until the others can decode, the last one only
// while others that do not run hold blocks.
func (g *sglangDecode) retract() {
	for _, s := range g.inOrder() {
		if g.decodesFit() || len(g.running) == 1 && g.away+g.came.len() == 0 {
			return
		}
		g.running = slices.DeleteFunc(g.running, func(r *seq) bool { return r == s })
		g.preempt(s)
		s.pending = 0
		g.retracted.pushBack(s)
	}
}
