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

// radix is what SGLang's scheduler remembers from step to step.
type radix struct {
	first   float64        // reserve at rest
	reserve float64        // share of the running requests' remaining output kept free
	full    *time.Duration // counter of what ended admission until a running request has gone; nil: nothing
	shrunk  bool           // one has gone since the last decode step was scheduled
}

// newRadix is that of an idle engine with so much --schedule-conservativeness.
func newRadix(conserve float64) radix {
	first := min(1, sglangReserve*cmp.Or(conserve, 1))
	return radix{first: first, reserve: first}
}

// scheduleSGLang is SGLang's policy: a batch of prompts while any can be
// admitted, otherwise a decode step of everything that runs. A queue that never
// runs dry so keeps the running requests from decoding.
func (c *Core) scheduleSGLang() {
	if len(c.running) == 0 {
		c.radix.reserve, c.radix.full = c.radix.first, nil
	}
	if c.schedulePrompts(); len(c.next) == 0 {
		c.scheduleDecodes()
	}
}

// adder is what a batch of prompts may still take.
type adder struct {
	chunk    int     // tokens, --chunked-prefill-size
	input    int     // tokens, --max-prefill-tokens; a first prompt may be longer
	promised float64 // tokens of the cache kept for output
}

func (c *Core) newAdder() adder {
	a := adder{chunk: c.cfg.Batched, input: max(c.cfg.Batched, c.cfg.Prefill)}
	if !c.cfg.Chunked {
		a.chunk = math.MaxInt
	}
	for _, s := range c.running {
		if s.decoding() { // a prompt half done is promised nothing
			a.promised += c.radix.reserve * float64(min(s.output-s.produced, sglangClip))
		}
	}
	return a
}

// left is the room in tokens that neither blocks nor promises take. What the
// batch has admitted holds its blocks already.
func (c *Core) left(a *adder) float64 { return float64(c.pool.free*c.cfg.Block) - a.promised }

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
func (c *Core) schedulePrompts() {
	half := c.half()
	if half != nil {
		c.radix.full = nil
	}
	if half == nil && (c.radix.full != nil || c.nextWaiting() == nil) {
		c.hold(c.radix.full)
		return
	}
	a := c.newAdder()
	if half != nil && !c.continuePrompt(half, &a) {
		return
	}
	for a.chunk > 0 && a.input > 0 && c.nextWaiting() != nil {
		if len(c.running) >= c.cfg.Seqs || len(c.next) > 0 && c.left(&a) <= 0 {
			c.fill()
			return
		}
		if !c.addPrompt(c.nextWaiting(), &a) {
			break
		}
	}
	c.hold(&c.stats.Waits.Tokens)
}

// fill ends admission until a running request has gone.
func (c *Core) fill() {
	c.radix.full = &c.stats.Waits.KV
	if len(c.running) >= c.cfg.Seqs {
		c.radix.full = &c.stats.Waits.Seqs
	}
	c.hold(c.radix.full)
}

// half is the running sequence whose prompt is half done, nil for none. It was
// admitted last: a prompt is cut only to fill a batch.
func (c *Core) half() *seq {
	if n := len(c.running); n > 0 && !c.running[n-1].decoding() {
		return c.running[n-1]
	}
	return nil
}

// continuePrompt schedules the next chunk of a prompt, unless there is no room.
func (c *Core) continuePrompt(s *seq, a *adder) bool {
	c.publish(s, s.computed)
	left := s.known() - s.computed
	n := min(left, a.chunk)
	if room := int(c.left(a)); room > 0 {
		n = min(n, room)
	}
	if !c.grow(s, s.computed+n) {
		return false
	}
	c.next = append(c.next, work{s: s, n: n})
	a.took(s, n, n == left)
	return true
}

// addPrompt admits the head of the queue; false ends the batch.
func (c *Core) addPrompt(s *seq, a *adder) bool {
	idle := c.lookup(s)
	hits := len(c.hits)
	hit := hits * c.cfg.Block
	n := s.known() - hit
	future := min(s.output-s.produced, sglangClip)
	room := c.left(a) - float64(idle*c.cfg.Block) // hits that nobody holds leave the free list too
	// Alone a request fits: the engine cuts what it asked for to the pool.
	if len(c.running) > 0 && float64(n+future) >= room {
		c.fill()
		return false
	}
	if n >= a.input && len(c.next) > 0 {
		return false
	}
	whole := n <= a.chunk
	if !whole {
		if n = a.chunk / c.cfg.Block * c.cfg.Block; n == 0 {
			return false
		}
	}
	c.join(s, hits, c.blocksFor(hit+n), n)
	a.took(s, c.blocksFor(n)*c.cfg.Block, whole)
	return true
}

// scheduleDecodes schedules a token for everything that runs, retracting
// requests while the cache has no room for that.
func (c *Core) scheduleDecodes() {
	r := &c.radix
	if r.shrunk {
		r.full, r.shrunk = nil, false
	}
	if !c.decodesFit() {
		c.retract()
	} else {
		r.reserve = max(r.first*sglangFloor, r.reserve-r.first*(1-sglangFloor)/sglangDecay)
	}
	for _, s := range c.running {
		if s.decoding() {
			c.grow(s, s.known()+c.cfg.SpecTokens)
			c.next = append(c.next, work{s: s, n: 1 + c.cfg.SpecTokens})
		}
	}
}

func (c *Core) decodesFit() bool {
	need := 0
	for _, s := range c.running {
		if s.decoding() {
			need += c.blocksFor(s.known()+c.cfg.SpecTokens) - len(s.blocks)
		}
	}
	return need <= c.pool.free
}

// retract sends running requests to the end of the queue until the others can
// decode: first those with the fewest tokens produced, of these the longest
// prompt; with speculation the youngest. Their prompts stay in the tree until
// evicted, their output has to be computed again.
func (c *Core) retract() {
	half := c.half()
	victims := slices.DeleteFunc(slices.Clone(c.running), func(s *seq) bool { return s == half })
	if c.cfg.SpecTokens > 0 {
		slices.Reverse(victims)
	} else {
		slices.SortStableFunc(victims, func(s, t *seq) int {
			return cmp.Or(cmp.Compare(s.produced, t.produced), cmp.Compare(t.prompt, s.prompt))
		})
	}
	if len(victims) > 0 {
		victims = victims[:len(victims)-1] // one is always kept
	}
	if half != nil {
		victims = append(victims, half)
	}
	for i, s := range victims {
		if i > 0 && c.decodesFit() {
			break
		}
		c.running = slices.DeleteFunc(c.running, func(r *seq) bool { return r == s })
		c.preempt(s)
		s.pending = 0
		c.waiting.pushBack(s)
	}
	have, want := 0, 1
	for _, s := range c.running {
		have += s.produced + sglangAhead
		want += s.output
	}
	c.radix.reserve = min(1, float64(have)/float64(want))
	c.radix.full = nil
}
