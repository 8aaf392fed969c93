package sim

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// SGLang (0.5.5 to 0.5.9) keeps a share of the running requests' remaining
// output free when it admits others. The share begins at sglangReserve, falls to
// sglangFloor of that over sglangDecay decode steps, and is estimated anew from
// what the others have produced when requests had to be retracted.
const (
	sglangReserve = 0.7
	sglangFloor   = 0.14
	sglangDecay   = 600
	sglangClip    = 4096 // of a request's remaining output, at most this counts
	sglangAhead   = 20   // steps that the estimate after a retraction looks ahead
)

// sglang is SGLang's policy: a batch of prompts while any can be admitted,
// otherwise a decode step of everything that runs. A queue that never runs dry
// so keeps the running requests from decoding.
type sglang struct {
	*scheduler
	first   float64        // reserve at rest
	reserve float64        // share of the running requests' remaining output kept free
	full    *time.Duration // counter of what ended admission until a running request has gone; nil: nothing
}

// newSGLang is the policy of an idle engine, with its --schedule-conservativeness.
func newSGLang(sc *scheduler) *sglang {
	first := min(1, sglangReserve*cmp.Or(sc.cfg.Conserve, 1))
	return &sglang{scheduler: sc, first: first, reserve: first}
}

func (g *sglang) schedule() {
	g.next, g.blocked = g.next[:0], nil
	if len(g.running) == 0 {
		g.reserve, g.full = g.first, nil
	}
	if g.schedulePrompts(); len(g.next) == 0 {
		g.scheduleDecodes()
	}
}

// adder is what a batch of prompts may still take.
type adder struct {
	chunk    int     // tokens, --chunked-prefill-size
	input    int     // tokens, --max-prefill-tokens; a first prompt may be longer
	promised float64 // tokens of the cache kept for output
}

func (g *sglang) newAdder() adder {
	a := adder{chunk: g.cfg.Batched, input: max(g.cfg.Batched, g.cfg.PrefillTokens)}
	if !g.cfg.Chunked {
		a.chunk = math.MaxInt
	}
	for _, s := range g.running {
		if s.decoding() { // a prompt half done is promised nothing
			a.promised += g.reserve * float64(min(s.output-s.produced, sglangClip))
		}
	}
	return a
}

// left is the room in tokens that neither blocks nor promises take. What the
// batch has admitted holds its blocks already.
func (g *sglang) left(a *adder) float64 { return float64(g.kv.pool.free*g.kv.block) - a.promised }

// took counts n tokens of a prompt in; whole says that its output comes next.
// Requests of the batch are promised all they asked for, not a share.
func (a *adder) took(s *seq, n int, whole bool) {
	a.chunk -= n
	a.input -= n
	if whole {
		a.promised += float64(min(s.output, sglangClip))
	}
}

// schedulePrompts fills a batch: the prompt that the last one left half done, then
// the queue in order. Once a prompt finds no room nobody is tried until a running
// request has gone.
func (g *sglang) schedulePrompts() {
	half := g.half()
	if half != nil {
		g.full = nil
	}
	if half == nil && (g.full != nil || g.waiting.next() == nil) {
		g.hold(g.full)
		return
	}
	a := g.newAdder()
	if half != nil && !g.continuePrompt(half, &a) {
		return
	}
	for a.chunk > 0 && a.input > 0 && g.waiting.next() != nil {
		if len(g.running) >= g.cfg.Seqs || len(g.next) > 0 && g.left(&a) <= 0 {
			g.fill()
			return
		}
		if !g.addPrompt(g.waiting.next(), &a) {
			break
		}
	}
	g.hold(&g.stats.Waits.Tokens)
}

// fill ends admission until a running request has gone.
func (g *sglang) fill() {
	g.full = &g.stats.Waits.KV
	if len(g.running) >= g.cfg.Seqs {
		g.full = &g.stats.Waits.Seqs
	}
	g.hold(g.full)
}

// half is the running sequence whose prompt is half done, nil for none. It was
// admitted last: a prompt is cut only to fill a batch.
func (g *sglang) half() *seq {
	if n := len(g.running); n > 0 && !g.running[n-1].decoding() {
		return g.running[n-1]
	}
	return nil
}

// continuePrompt schedules the next chunk of a prompt, unless there is no room.
func (g *sglang) continuePrompt(s *seq, a *adder) bool {
	g.kv.publish(s, s.computed)
	left := s.known() - s.computed
	n := min(left, a.chunk)
	if room := int(g.left(a)); room > 0 {
		n = min(n, room)
	}
	if !g.kv.grow(s, s.computed+n) {
		return false
	}
	g.next = append(g.next, work{s: s, n: n})
	a.took(s, n, n == left)
	return true
}

// addPrompt admits the head of the queue; false ends the batch.
func (g *sglang) addPrompt(s *seq, a *adder) bool {
	idle := g.kv.lookup(s)
	hits := len(g.kv.hits)
	hit := hits * g.kv.block
	n := s.known() - hit
	future := min(s.output-s.produced, sglangClip)
	room := g.left(a) - float64((idle+g.kv.loads)*g.kv.block) // hits that nobody holds leave the free list too, and what is fetched takes room
	// Alone a request fits: the engine cuts what it asked for to the pool.
	if len(g.running)+g.away > 0 && float64(n+future) >= room {
		g.fill()
		return false
	}
	if n >= a.input && len(g.next) > 0 {
		return false
	}
	whole := n <= a.chunk
	if !whole {
		if n = a.chunk / g.kv.block * g.kv.block; n == 0 {
			return false
		}
	}
	g.join(s, hits, g.kv.blocksFor(hit+n), n)
	a.took(s, g.kv.blocksFor(n)*g.kv.block, whole)
	return true
}

// scheduleDecodes schedules a token for everything that runs, retracting
// requests while the cache has no room for that.
func (g *sglang) scheduleDecodes() {
	if g.shrunk {
		g.full, g.shrunk = nil, false
	}
	if !g.decodesFit() {
		g.retract()
	} else {
		g.reserve = max(g.first*sglangFloor, g.reserve-g.first*(1-sglangFloor)/sglangDecay)
	}
	for _, s := range g.running {
		if s.decoding() {
			g.kv.grow(s, s.known()+g.cfg.SpecTokens)
			g.next = append(g.next, work{s: s, n: 1 + g.cfg.SpecTokens})
		}
	}
}

func (g *sglang) decodesFit() bool {
	need := 0
	for _, s := range g.running {
		if s.decoding() {
			need += g.kv.blocksFor(s.known()+g.cfg.SpecTokens) - len(s.blocks)
		}
	}
	return need <= g.kv.pool.free
}

// inOrder are the running requests in the order in which they are retracted: those with
// the fewest tokens produced, of these the longest prompt; with speculation the youngest.
func (g *sglang) inOrder() []*seq {
	all := slices.Clone(g.running)
	if g.cfg.SpecTokens > 0 {
		slices.Reverse(all)
		return all
	}
	slices.SortStableFunc(all, func(s, t *seq) int {
		return cmp.Or(cmp.Compare(s.produced, t.produced), cmp.Compare(t.prompt, s.prompt))
	})
	return all
}

// retract sends running requests to the end of the queue until the others can
// decode. Their prompts stay in the tree until evicted, their output has to be
// computed again.
func (g *sglang) retract() {
	half := g.half()
	victims := slices.DeleteFunc(g.inOrder(), func(s *seq) bool { return s == half })
	if len(victims) > 0 {
		victims = victims[:len(victims)-1] // one is always kept
	}
	if half != nil {
		victims = append(victims, half)
	}
	for i, s := range victims {
		if i > 0 && g.decodesFit() {
			break
		}
		g.running = slices.DeleteFunc(g.running, func(r *seq) bool { return r == s })
		g.preempt(s)
		s.pending = 0
		g.waiting.pushBack(s)
	}
	have, want := 0, 1
	for _, s := range g.running {
		have += s.produced + sglangAhead
		want += s.output
	}
	g.reserve = min(1, float64(have)/float64(want))
	g.full = nil
}
