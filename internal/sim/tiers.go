package sim

import (
	"fmt"
	"slices"
	"time"

	"perflab/internal/engine"
)

// tiers are the memories below the KV cache of an engine's devices, the nearest first. A
// fetch of n blocks from one of them takes
//
//	setup + n block/(link x_h)        of a host, over the link of every device
//	setup + n block ranks/x_d         of a disk, which all ranks share
//
// where block is what a block takes on a rank. Fetches of one engine come one after another.
type tiers struct {
	list   []*tier
	fetch  engine.Fetch
	setup  time.Duration
	from   []int8 // of each block that a lookup found: the tier that has it, -1 the device
	now    time.Duration
	port   port
	moves  []loading // on their way, the next to end first
	before float64   // s of copies that the step which is scheduled waits for
	beside float64   // s of those that it computes beside
	queue  int       // fetches in it
}

// tier is one of them. None of its blocks is held: it is findable, or empty.
type tier struct {
	name   string
	pool   *blockPool
	chunk  int  // tokens that are kept together
	back   bool // blocks are written when the memory above gives them up, otherwise when they are computed
	moves  bool // a block that is fetched is no longer here
	cost   float64
	tokens int   // of a block
	bytes  int64 // of a block, on all ranks
	owner  *tiers
	stats  TierStats
}

// TierStats are counters of a memory below the devices' KV cache.
type TierStats struct {
	Name        string // "host", "disk"
	Room, Used  int    // tokens
	Queries     int    // prompt tokens looked up, those that a nearer memory had left out
	Hits        int    // those found
	Loaded      int    // tokens fetched: hits, and what requests that had lost their room got back
	Stored      int    // tokens written
	LoadedBytes int64
	StoredBytes int64
	Loading     time.Duration // that fetches took the link
	Storing     time.Duration // and what was written
}

// loading is the fetch of a sequence's blocks.
type loading struct {
	at time.Duration
	s  *seq
}

// newTiers are those of a configuration; nil where it has none.
func newTiers(cfg engine.Config, k constants) (*tiers, error) {
	if len(cfg.Tiers) == 0 {
		return nil, nil
	}
	t := &tiers{setup: seconds(k.get("host_setup") * 1e-3), port: make(port, cfg.DP)}
	ranks := float64(max(1, cfg.TP*cfg.PP))
	page := float64(cfg.BlockBytes())
	for _, c := range cfg.Tiers {
		rate := k.get("disk_rate") * 1e9 / ranks
		if c.Name == engine.HostTier {
			rate = c.GBs * 1e9 * k.get("host_link")
		}
		if rate <= 0 {
			return nil, fmt.Errorf("simulate %s: nothing is known of what couples %s with the memory of its host: leave host_cache out", cfg.Engine, cfg.GPU.Title)
		}
		blocks := cfg.TierBlocks(c) * cfg.DP
		if blocks < 1 {
			continue
		}
		t.fetch = c.Fetch
		t.list = append(t.list, &tier{
			name: c.Name, pool: newBlockPool(blocks), chunk: max(1, c.Chunk), back: c.WriteBack, moves: c.Moves,
			cost: page / rate, tokens: cfg.Block, bytes: cfg.BlockBytes() * int64(ranks), owner: t,
		})
	}
	if len(t.list) == 0 {
		return nil, nil
	}
	for i, x := range t.list[1:] {
		t.list[i].pool.below = x
	}
	return t, nil
}

// tierKey is the name of a block in tiers, by its name in the devices' cache.
func tierKey(hash uint64) uint64 {
	if hash&1 != 0 {
		return hash
	}
	return mix(hash) | 1
}

// put keeps a block, as the one used last.
func (t *tier) put(key uint64) {
	if t.touch(key) {
		return
	}
	id := t.pool.alloc()
	t.pool.publish(id, key)
	t.pool.release([]int32{id})
	t.stats.Stored += t.tokens
	t.stats.StoredBytes += t.bytes
	t.stats.Storing += seconds(t.cost)
}

// touch makes a block the one used last; false where it is not here.
func (t *tier) touch(key uint64) bool {
	id := t.pool.find(key)
	if id == 0 {
		return false
	}
	t.pool.hold(id)
	t.pool.release([]int32{id})
	return true
}

// spill is told that the memory above gives a block up. The next step waits for it to be
// written, for the room that it leaves is needed at once.
func (t *tier) spill(hash uint64) {
	if key := tierKey(hash); t.back && !t.touch(key) {
		t.put(key)
		t.owner.before += t.cost / float64(len(t.owner.port))
	}
}

// written is told of a block that the devices have computed, or fetched.
func (t *tiers) written(hash uint64) {
	for _, x := range t.list {
		if !x.back {
			x.put(tierKey(hash))
		}
	}
}

// holding is the nearest tier that has a block, -1 for none.
func (t *tiers) holding(key uint64) int8 {
	for i, x := range t.list {
		if x.pool.find(key) != 0 {
			return int8(i)
		}
	}
	return -1
}

// name is the hash that block i of s has, or would have.
func (kv *kvCache) name(s *seq, i int) uint64 {
	if i < s.shared {
		return kv.hash(s, i)
	}
	return s.stamp(i)
}

// sglangLeast is how many tokens SGLang fetches from the host at least: fewer are computed.
const sglangLeast = 10

// lookBelow adds to kv.hits, which are the first blocks of s that the devices have, those
// that come after them in a tier or again in the devices' cache. A block that has to be fetched is 0 there.
func (kv *kvCache) lookBelow(s *seq) (idle int) {
	t, first := kv.tiers, len(kv.hits)
	t.from = t.from[:0]
	for range first {
		t.from = append(t.from, -1)
	}
	chunk := 1
	for i := first; i < (s.known()-1)/kv.block; i++ {
		at := int8(-1)
		id := kv.find(s, i)
		if id == 0 {
			if at = t.holding(tierKey(kv.name(s, i))); at < 0 {
				break
			}
			chunk = max(chunk, t.list[at].chunk)
		}
		kv.hits, t.from = append(kv.hits, id), append(t.from, at)
	}
	whole := max(first, len(kv.hits)*kv.block/chunk*chunk/kv.block)
	if t.fetch == engine.FetchLayers && (whole-first)*kv.block < sglangLeast {
		whole = first
	}
	kv.hits, t.from = kv.hits[:whole], t.from[:whole]
	for _, id := range kv.hits[first:] {
		switch {
		case id == 0:
			kv.loads++
		case kv.pool.blocks[id].refs == 0:
			idle++
		}
	}
	return idle
}

// fetched counts the first hits of s that come from tiers, takes them out of those that
// keep nothing twice, and returns how long the link is taken.
func (kv *kvCache) fetched(s *seq, hits int) (took float64) {
	t := kv.tiers
	for i, at := range t.from[:hits] {
		if at < 0 {
			continue
		}
		x := t.list[at]
		took += x.cost
		x.stats.Loaded += kv.block
		x.stats.LoadedBytes += x.bytes
		x.stats.Loading += seconds(x.cost)
		if x.moves {
			x.pool.drop(tierKey(kv.name(s, i)))
		}
	}
	return took
}

// count adds a prompt and what was found of it to the counters of the tiers: each is asked for what
// nearer memories do not have.
func (t *tiers) count(prompt, block int) {
	left := prompt
	for _, at := range t.from {
		if at < 0 {
			left -= block
		}
	}
	for i, x := range t.list {
		x.stats.Queries += left
		for _, at := range t.from {
			if at == int8(i) {
				x.stats.Hits += block
				left -= block
			}
		}
	}
}

// settleTiers makes the blocks that s gives back those used last, its first block the very last.
func (kv *kvCache) settleTiers(s *seq) {
	for i := s.registered - 1; i >= 0; i-- {
		key := tierKey(kv.name(s, i))
		for _, x := range kv.tiers.list {
			x.touch(key)
		}
	}
}

// load begins a fetch for a sequence while other requests' steps go on.
func (t *tiers) load(s *seq, took float64) {
	free := t.port.next()
	at := max(t.now+t.setup, *free) + seconds(took)
	*free = at
	i, _ := slices.BinarySearchFunc(t.moves, at, func(m loading, at time.Duration) int {
		if m.at > at {
			return 1
		}
		return -1
	})
	t.moves = slices.Insert(t.moves, i, loading{at, s})
}

// inStep has the step that is scheduled fetch blocks.
func (t *tiers) inStep(took float64) {
	took /= float64(len(t.port))
	if t.queue++; t.fetch == engine.FetchLayers {
		t.beside += took
	} else {
		t.before += took
	}
}

// stretch is how much longer than computed a step takes for the copies that were scheduled
// with it.
func (t *tiers) stretch(computed time.Duration) time.Duration {
	before, beside := seconds(t.before), seconds(t.beside)
	if t.queue > 0 {
		before += t.setup
	}
	t.before, t.beside, t.queue = 0, 0, 0
	return before + max(0, beside-computed)
}

// read are the counters and gauges of all tiers.
func (t *tiers) read(block int) []TierStats {
	if t == nil {
		return nil
	}
	var out []TierStats
	for _, x := range t.list {
		s := x.stats
		s.Name, s.Room, s.Used = x.name, x.pool.total*block, x.pool.indexed*block
		out = append(out, s)
	}
	return out
}

// reset turns the time back, when nothing is fetched.
func (t *tiers) reset() {
	t.now = 0
	clear(t.port)
	for _, x := range t.list {
		x.stats = TierStats{}
	}
}

// withTiers adds the counters of another engine's tiers of the same kinds.
func withTiers(a, b []TierStats) []TierStats {
	if len(a) == 0 {
		return b
	}
	out := slices.Clone(a)
	for i := range min(len(a), len(b)) {
		s, o := &out[i], b[i]
		s.Room, s.Used = s.Room+o.Room, s.Used+o.Used
		s.Queries, s.Hits, s.Loaded, s.Stored = s.Queries+o.Queries, s.Hits+o.Hits, s.Loaded+o.Loaded, s.Stored+o.Stored
		s.LoadedBytes, s.StoredBytes = s.LoadedBytes+o.LoadedBytes, s.StoredBytes+o.StoredBytes
		s.Loading, s.Storing = s.Loading+o.Loading, s.Storing+o.Storing
	}
	return out
}

// HostHits are the prompt tokens that memories below the devices' cache had.
func (s Stats) HostHits() (tokens int) {
	for _, t := range s.Tiers {
		tokens += t.Hits
	}
	return tokens
}

// fetch takes the head of the queue, for which there is room, out of it and has its hits
// fetched: it is run when they have come.
func (m *mixed) fetch(s *seq, hits, take int) {
	m.waiting.popFront()
	m.take(s, hits, take)
	m.found(s, hits)
	s.phase, s.computed = inTransfer, hits*m.kv.block
	m.away++
	m.kv.tiers.load(s, m.kv.fetched(s, hits))
}

// resume runs the first of those whose blocks have come, within a budget of tokens; false when
// it must wait. The room for its first tokens has been taken with that for the hits.
func (m *mixed) resume(budget int) (n int, ok bool) {
	s := m.came.front()
	if s.gone {
		m.came.popFront()
		return 0, true
	}
	if n, ok = m.part(s.known()-s.computed, budget); !ok {
		return 0, false
	}
	if !m.kv.grow(s, s.computed+n) {
		n = min(n, len(s.blocks)*m.kv.block-s.computed)
	}
	m.came.popFront()
	s.phase = inRunning
	m.running = append(m.running, s)
	m.kv.settle(s, s.computed+n)
	m.next = append(m.next, work{s: s, n: n})
	return n, true
}

// arrivals ends the fetches that have ended by now.
func (sc *scheduler) arrivals(now time.Duration) {
	t := sc.kv.tiers
	t.now = now
	for len(t.moves) > 0 && t.moves[0].at <= now {
		s := t.moves[0].s
		t.moves = slices.Delete(t.moves, 0, 1)
		sc.away--
		if s.gone {
			sc.kv.free(s)
			continue
		}
		s.phase = hasCome
		sc.kv.publish(s, s.computed)
		sc.came.pushBack(s)
	}
}

// due is when the next fetch ends; false where none is under way.
func (t *tiers) due() (time.Duration, bool) {
	if t == nil || len(t.moves) == 0 {
		return 0, false
	}
	return t.moves[0].at, true
}
