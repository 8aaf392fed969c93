package sim

import (
	"cmp"
	"slices"
	"time"

	"perflab/internal/engine"
)

// scheduler is the part that all engines' scheduling shares: who waits and who
// runs, in which memory, and what they do in the next step.
type scheduler struct {
	cfg       engine.Config
	kv        kvCache
	waiting   waitQueue
	running   []*seq
	next      []work         // scheduled, not yet begun
	blocked   *time.Duration // counter of what first stopped a waiting request when next was scheduled; nil: nothing did
	shrunk    bool           // a running request has gone since a policy last looked
	preempted []int          // Job.Index, in this step
	stats     *Stats

	// Of an engine of a group; empty in others.
	away      int         // sequences that hold blocks and are in transfer
	came      queue[*seq] // whose KV cache has come
	retracted queue[*seq] // whose KV cache is in the memory of the host (SGLang)
	taken     []*seq      // that have got room for their KV cache since the group last looked
	joined    []*seq      // whose first token, made elsewhere, has gone out since then (SGLang)
}

// policy is how an engine fills the next step.
type policy interface{ schedule() }

// waitQueue is the requests that wait to be admitted; cancelled ones stay until
// their turn.
type waitQueue struct{ queue[*seq] }

// next is the sequence at the head of the queue; nil when none waits.
func (q *waitQueue) next() *seq {
	for q.len() > 0 {
		if s := q.front(); !s.gone {
			return s
		}
		q.popFront()
	}
	return nil
}

// idle says that nothing worth running has been scheduled.
func (sc *scheduler) idle() bool {
	return !slices.ContainsFunc(sc.next, func(w work) bool { return !w.s.gone })
}

// remove takes a sequence that has ended out of those that run.
func (sc *scheduler) remove(s *seq) {
	sc.kv.free(s)
	sc.running = slices.DeleteFunc(sc.running, func(r *seq) bool { return r == s })
	sc.shrunk = true
}

// hold notes what stops the admission of waiting sequences in this step,
// unless something has before.
func (sc *scheduler) hold(wait *time.Duration) {
	if sc.waiting.next() != nil {
		sc.blocked = cmp.Or(sc.blocked, wait)
	}
}

// join moves the head of the queue, which must fit, to the running: it shares
// hits cached blocks, holds take in all and computes n tokens in this step.
func (sc *scheduler) join(s *seq, hits, take, n int) {
	sc.waiting.popFront()
	sc.take(s, hits, take)
	hit := hits * sc.kv.block
	s.computed, s.phase = hit, inRunning
	sc.running = append(sc.running, s)
	sc.found(s, hits)
	if sc.kv.loads > 0 {
		sc.kv.tiers.inStep(sc.kv.fetched(s, hits))
	}
	sc.kv.settle(s, hit+n)
	sc.next = append(sc.next, work{s: s, n: n})
}

// found counts a prompt that is admitted for the first time, and the hits of it.
func (sc *scheduler) found(s *seq, hits int) {
	if !s.first {
		return
	}
	s.first, s.cached = false, hits*sc.kv.block
	sc.stats.PromptTokens += s.prompt
	if !sc.cfg.Prefix {
		return
	}
	sc.stats.PrefixQueries += s.prompt
	sc.stats.PrefixHits += (hits - sc.kv.loads) * sc.kv.block
	if sc.kv.tiers != nil {
		sc.kv.tiers.count(s.prompt, sc.kv.block)
	}
}

// take gives a sequence the hits that lookup found and further blocks, take in all.
func (sc *scheduler) take(s *seq, hits, take int) {
	for _, id := range sc.kv.hits[:hits] {
		if id != 0 {
			sc.kv.pool.hold(id)
		}
	}
	s.blocks = append(slices.Grow(s.blocks, max(take, sc.kv.blocksFor(s.prompt+s.output))), sc.kv.hits[:hits]...)
	s.registered = hits
	if sc.kv.loads > 0 {
		s.registered = slices.Index(s.blocks, 0)
		for i := s.registered; i < hits; i++ {
			if s.blocks[i] == 0 {
				s.blocks[i] = sc.kv.pool.alloc()
			}
		}
	}
	for range sc.kv.side(s) {
		s.state = append(s.state, sc.kv.pool.alloc())
	}
	sc.kv.extend(s, take)
}

// preempt takes a sequence's blocks away. They stay findable: what is not
// evicted meanwhile need not be computed again.
func (sc *scheduler) preempt(s *seq) {
	sc.kv.free(s)
	s.computed, s.phase, s.pulled = 0, inWaiting, false
	sc.blocked = cmp.Or(sc.blocked, &sc.stats.Waits.KV)
	sc.stats.Preemptions++
	sc.preempted = append(sc.preempted, s.job.Index)
}
