package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"perflab/internal/engine"
	"perflab/internal/stat"
)

// Options are what a core needs besides the engine's configuration.
type Options struct {
	Seed      uint64
	KVTokens  int        // size of each data-parallel copy's KV cache as the engine reports it; 0: what the configuration leaves room for
	Constants *Constants // of the step model; nil: Default()
	Speed     float64    // of the machine beside others of its kind: a step takes the time over it; 0: 1
	FirstUse  bool       // no kernel that is compiled where it is first needed has been on this machine
}

// Core is one engine in virtual time. It is not safe for concurrent use.
type Core struct {
	cfg    engine.Config
	model  *stepModel
	front  frontEnd
	sched  scheduler
	policy policy       // of sched
	spare  []*seq       // finished and named nowhere, for the jobs to come
	live   map[int]*seq // by Job.Index, from Submit to the end
	seed   uint64
	speed  float64 // 0: as others of its kind
	accept float64 // probability that a drafted token is accepted
	record bool    // a replay: steps write outcomes and report the ends of jobs alone
	member bool    // of a group: it may have to wait for room that another engine gives back
	keeps  bool    // what has ended holds its blocks until it is released
	stuck  bool    // nothing can be scheduled until another engine has given room back
	now    time.Duration
	order  uint64
	work   []work // of the step that runs
	ended  []*seq // in the last step; work may still name them
	result Step
	stats  Stats

	// compile is how long the first step waits that reads the cached beginning of a prompt: for a kernel
	// of that alone, which FlashInfer compiles where no launch before has left it on the machine's disk.
	compile time.Duration

	peakHeld int // blocks
}

// Step is what one step did. Its slices are valid until the next Step.
type Step struct {
	Start, End time.Duration
	Progress   []Progress
	Preempted  []int // Job.Index
}

// Progress is one job's output of a step.
type Progress struct {
	Index  int
	N      int // tokens emitted
	Cached int // prompt tokens found in the prefix cache
	Done   bool
	At     time.Duration // the end of the step

	Queued, Begun time.Duration // when the request came into the scheduler's queue, and when its first step began

	Guesses *Guesses // at the end of a request that guessed; of a server's core alone

	s *seq
}

// newCore builds a core. It fails when the configuration leaves no room for a KV
// cache or names no limits.
func newCore(cfg engine.Config, o Options) (*Core, error) {
	cfg.TP, cfg.PP, cfg.DP = max(1, cfg.TP), max(1, cfg.PP), max(1, cfg.DP)
	cfg.Block = max(1, cfg.Block)
	if cfg.Seqs < 1 || cfg.Batched < 1 || cfg.MaxLen < 1 {
		return nil, fmt.Errorf("simulate %s: the configuration needs at least one sequence, one token per step and a context length (have %d, %d, %d)",
			cfg.Engine, cfg.Seqs, cfg.Batched, cfg.MaxLen)
	}
	layout := cfg.Layout()
	blocks := o.KVTokens / cfg.Block * layout.Groups() // as Config.KVTokens shares them out
	if o.KVTokens == 0 {
		var err error
		if blocks, err = cfg.KVBlocks(); err != nil {
			return nil, fmt.Errorf("simulate %s: %w", cfg.Engine, err)
		}
	}
	if blocks < 1 {
		return nil, fmt.Errorf("simulate %s: %d tokens of KV cache hold no block of %d", cfg.Engine, o.KVTokens, cfg.Block)
	}
	blocks *= cfg.DP // data-parallel ranks are one group: each brings its cache and its limits
	cfg.Seqs, cfg.Batched = cfg.Seqs*cfg.DP, cfg.Batched*cfg.DP
	k := constantsFor(o.Constants, cfg)
	c := &Core{
		cfg: cfg, model: newStepModel(cfg, k),
		front:  frontEnd{cost: float64(k.frontEnd()), entry: seconds(1e-3 * k.host() * k.get("t_entry")), serial: cfg.Serial},
		live:   map[int]*seq{},
		seed:   o.Seed,
		speed:  o.Speed,
		accept: acceptance(k, cfg),
		result: Step{Start: -1},
	}
	c.sched = scheduler{cfg: cfg, stats: &c.stats, kv: kvCache{
		pool: newBlockPool(blocks), block: cfg.Block, prefix: cfg.Prefix, late: cfg.PrefillOnly, layout: layout,
	}}
	if cfg.Prefix {
		var err error
		if c.sched.kv.tiers, err = newTiers(cfg, k); err != nil {
			return nil, err
		}
	}
	if o.FirstUse {
		c.compile = seconds(k.get("t_compile"))
	}
	if t := c.sched.kv.tiers; t != nil {
		c.sched.kv.pool.below = t.list[0]
	}
	c.policy = &mixed{&c.sched}
	if cfg.PrefillOnly {
		c.policy = newSGLang(&c.sched)
	}
	return c, nil
}

// Config is the configuration the core runs with.
func (c *Core) Config() engine.Config { return c.cfg }

// Now is the end of the last step.
func (c *Core) Now() time.Duration { return c.now }

// Submit hands a job to the front end at job.Arrive, or as soon after as a job
// can come: after the one before it and after the beginning of the last step.
// The error is a *Refusal for a job that the engine would not take.
func (c *Core) Submit(j Job) error {
	if err := c.check(j); err != nil {
		return err
	}
	c.enter(j)
	return nil
}

// put is enter for those who do not know what serves the job: out is what is known
// of the outcome. It returns when the job has come.
func (c *Core) put(j Job, out Outcome) time.Duration {
	s := c.enter(j)
	s.out = out
	return s.job.Arrive
}

func (c *Core) records() { c.record = true }

func (c *Core) cancel(index int, _ time.Duration) { c.Cancel(index) }

// enter hands a job that has been checked to the front end.
func (c *Core) enter(j Job) *seq {
	s := new(seq)
	if n := len(c.spare); n > 0 {
		s, c.spare = c.spare[n-1], c.spare[:n-1]
		*s = seq{blocks: s.blocks[:0], state: s.state[:0], hashes: s.hashes[:0], own: s.own[:0]}
	}
	s.job, s.order, s.first = j, c.order, true
	s.prompt, s.output, s.shared = j.promptLen(), j.Output, j.shared()/c.cfg.Block
	s.job.Arrive = max(j.Arrive, c.result.Start+1, c.front.at)
	c.order++
	c.live[j.Index] = s
	c.front.add(s)
	return s
}

func (c *Core) check(j Job) error {
	n, m := j.promptLen(), j.Output
	switch {
	case n < 1:
		return refuse("The prompt has no tokens.")
	case m < 1:
		return refuse("max_tokens must be at least 1, got %d.", m)
	case c.live[j.Index] != nil:
		return fmt.Errorf("job %d is already in the engine", j.Index)
	}
	if err := limitError(c.cfg, n, m); err != nil {
		return err
	}
	m = min(m, math.MaxInt/2) // the sum must not overflow
	kv := &c.sched.kv
	have := kv.pool.total / c.cfg.DP // no request is shared between copies
	if need := kv.blocksFor(n+m+c.cfg.SpecTokens) + kv.layout.SideBlocks(n+m); need > have {
		return refuse("The request needs %d KV blocks of %d tokens and the cache has %d.", need, c.cfg.Block, have)
	}
	return nil
}

// warm serves jobs one after another and turns the time back: what is left of
// them is in the prefix cache. One that the engine refuses leaves nothing.
func (c *Core) warm(jobs []Job) {
	if len(jobs) == 0 {
		return
	}
	for i, j := range jobs {
		j.Index, j.Arrive = -1-i, c.now
		if c.Submit(j) != nil {
			continue
		}
		for _, ok := c.Step(); ok; _, ok = c.Step() {
		}
	}
	c.reset()
}

// reset turns the time of an engine back in which nothing runs.
func (c *Core) reset() {
	c.front = frontEnd{cost: c.front.cost, entry: c.front.entry, serial: c.front.serial}
	c.now, c.stats, c.peakHeld = 0, Stats{}, 0
	c.result.Start, c.result.End = -1, 0
	if t := c.sched.kv.tiers; t != nil {
		t.reset()
	}
}

// Refusal is a job that the engine does not take, in the engine's own words.
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return r.Text }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// limitError is the engine's own refusal of n prompt and m output tokens.
func limitError(cfg engine.Config, n, m int) error {
	switch cfg.Engine {
	case "sglang":
		if n >= cfg.MaxLen {
			return refuse("The input (%d tokens) is longer than the model's context length (%d tokens).", n, cfg.MaxLen)
		}
		if m > cfg.MaxLen-n { // the sum might overflow
			return refuse("Requested token count exceeds the model's maximum context length of %d tokens. You requested a total of %d tokens: %d tokens from the input messages and %d tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
				cfg.MaxLen, uint64(n+m), n, m)
		}
	case "trtllm":
		if !cfg.Chunked && n > cfg.Batched {
			return refuse("The sum of prompt length (%d.0), query length (0) should not exceed max_num_tokens (%d)", n, cfg.Batched)
		}
		if m > cfg.MaxLen-n { // the sum might overflow
			return refuse("The sum of prompt length (%d.0), query length (0) and max_tokens (%d) should not exceed max_seq_len (%d)", n, m, cfg.MaxLen)
		}
	default:
		if n >= cfg.MaxLen {
			return refuse("This model's maximum context length is %d tokens. However, your request has %d input tokens. Please reduce the length of the input messages.", cfg.MaxLen, n)
		}
		if m > cfg.MaxLen-n { // the sum might overflow
			return refuse("'max_tokens' or 'max_completion_tokens' is too large: %d. This model's maximum context length is %d tokens and your request has %d input tokens (%d > %d - %d).",
				m, cfg.MaxLen, n, m, cfg.MaxLen, n)
		}
	}
	return nil
}

// Cancel takes a job out of the engine, as a disconnecting client does.
func (c *Core) Cancel(index int) {
	s := c.live[index]
	if s == nil {
		return
	}
	delete(c.live, index)
	s.gone = true
	switch {
	case s.phase == inRunning:
		c.sched.remove(s)
	case s.phase == hasCome && !c.member:
		c.sched.kv.free(s)
	}
}

// Next is the time at which the next step can begin, given the jobs submitted
// so far; ok is false when there is nothing to do.
func (c *Core) Next() (at time.Duration, ok bool) {
	if !c.stuck && (len(c.sched.running) > 0 || c.sched.waiting.next() != nil || c.sched.resumes()) {
		return c.now, true
	}
	for c.front.done.len() > 0 && c.front.done.front().gone {
		c.front.done.popFront()
	}
	at, ok = c.front.next()
	if due, loads := c.sched.kv.tiers.due(); loads && (!ok || due < at) {
		at, ok = due, true
	}
	if !ok {
		return 0, false
	}
	return max(at, c.now), true
}

// Step begins a step at Next and runs it to its end. ok is false when there is
// nothing to do. Jobs that arrive while a step runs are submitted after it.
//
// An engine that overlaps scheduling with the device's work schedules the step
// after this one as soon as this one begins, from what it knows then: who came
// later, or finishes in this step, is seen one step late.
func (c *Core) Step() (step *Step, ok bool) {
	start, ok := c.Next()
	if !ok {
		return nil, false
	}
	c.arrive(start)
	_, loads := c.sched.kv.tiers.due()
	r := &c.result
	r.Start, r.End = start, start
	c.forget(r)
	c.countGap(start, loads)
	c.now = start
	if c.sched.kv.tiers != nil {
		c.sched.arrivals(start)
	}
	if c.sched.idle() {
		c.sched.next = c.sched.next[:0]
		if len(c.sched.running) == 0 && c.sched.waiting.len() == 0 && !c.sched.resumes() {
			return r, true // the request that was due has been cancelled
		}
		c.policy.schedule()
		if c.member && len(c.sched.next) == 0 {
			c.policy.schedule() // who has been preempted leaves room to others
		}
		_, loads = c.sched.kv.tiers.due()
		if c.stuck = (c.member || loads) && len(c.sched.next) == 0; c.stuck {
			r.Preempted = c.sched.preempted
			return r, true
		}
	}
	c.work, c.sched.next = c.sched.next, c.work[:0]
	if len(c.work) == 0 {
		panic("sim: a step without work")
	}
	b := c.batch()
	length := c.model.duration(&b, &c.stats.Times)
	if c.speed > 0 {
		length = time.Duration(float64(length) / c.speed)
	}
	length += c.waits(&b, length)
	if c.sched.blocked != nil && c.sched.waiting.next() != nil {
		*c.sched.blocked += length
	}
	c.begin()
	if c.cfg.Overlap && len(c.sched.running)+c.sched.waiting.len() > 0 {
		c.policy.schedule()
	}
	r.Preempted = c.sched.preempted
	r.End = start + length
	c.now = r.End
	c.stats.Steps++
	c.stats.Busy += length
	c.occupy(length)
	c.apply()
	return r, true
}

// waits is what a step of such a length waits for beside what it computes: a kernel that is
// compiled, and copies of KV blocks.
func (c *Core) waits(b *batch, length time.Duration) (more time.Duration) {
	if b.past > 0 {
		more, c.compile = c.compile, 0
		c.stats.Times.Host += more
	}
	if t := c.sched.kv.tiers; t != nil {
		fetching := t.stretch(length + more)
		c.stats.Times.Fetching += fetching
		more += fetching
	}
	return more
}

// forget lets go of what the step before has told.
func (c *Core) forget(r *Step) {
	c.spare, c.ended = append(c.spare, c.ended...), c.ended[:0]
	for _, p := range r.Progress {
		if p.Done && p.s.phase == inRunning { // who ended preempted is still in the queue
			c.ended = append(c.ended, p.s)
		}
	}
	r.Progress, c.sched.preempted = r.Progress[:0], c.sched.preempted[:0]
	r.Preempted = c.sched.preempted
}

// occupy counts what a step of this length held and kept waiting.
func (c *Core) occupy(length time.Duration) {
	s, held := &c.stats, c.sched.kv.pool.held()
	running, waiting := len(c.sched.running), len(c.live)-len(c.sched.running)
	s.PeakRunning, s.PeakWaiting = max(s.PeakRunning, running), max(s.PeakWaiting, waiting)
	s.RunningTime += length * time.Duration(running)
	s.WaitingTime += length * time.Duration(waiting)
	s.KVTime += time.Duration(float64(length) * float64(held) / float64(c.sched.kv.pool.total))
	c.peakHeld = max(c.peakHeld, held)
}

// countGap counts the time since the last step: the front end was empty until
// its oldest request came. What was fetched meanwhile is what the engine waited for.
func (c *Core) countGap(start time.Duration, loads bool) {
	if loads {
		c.stats.Waits.Transfer += start - c.now
		return
	}
	came := min(start, max(c.now, c.front.since))
	c.stats.Waits.FrontEnd += start - came
	if c.stats.Steps > 0 {
		c.stats.Waits.Idle += came - c.now
	}
}

// arrive queues the requests that have left the front end by t.
func (c *Core) arrive(t time.Duration) {
	c.front.advance(t)
	for c.front.done.len() > 0 && c.front.done.front().ready <= t {
		if s := c.front.done.popFront(); !s.gone {
			if s.phase = inWaiting; !s.parked {
				c.sched.waiting.pushBack(s)
			}
		}
	}
}

// batch sums up what the scheduled work costs.
func (c *Core) batch() batch {
	b := batch{drafts: c.cfg.SpecTokens > 0} // prompts pass the draft layers too
	window := c.cfg.Model.Window
	for _, w := range c.work {
		if w.s.decoding() || w.s.pulled {
			n := w.n
			if n > 1 && c.cfg.SpecVerify > 0 {
				n = c.cfg.SpecVerify
			}
			b.decode(w.s.known(), n, window)
		} else {
			b.chunk(w.s.computed, w.n, window, w.s.computed+w.n == w.s.known())
		}
	}
	return b
}

// begin counts the step's tokens as computed, and those it will bring as known:
// that is what the engine's scheduler knows while the step runs.
func (c *Core) begin() {
	for i := range c.work {
		w := &c.work[i]
		s := w.s
		if s.begun == 0 {
			s.begun = c.now
		}
		if w.decode = s.decoding(); w.decode {
			s.computed++
		} else {
			s.computed += w.n
			s.pulled = false
		}
		if w.ends = s.computed == s.known(); w.ends {
			s.pending++
		}
	}
}

// apply hands out what the step has brought.
func (c *Core) apply() {
	finished := false
	for _, w := range c.work {
		s := w.s
		if !w.ends || s.gone || c.cfg.PrefillOnly && s.phase != inRunning {
			continue // SGLang drops the token of a request retracted meanwhile, vLLM keeps it
		}
		n := 1
		if w.decode {
			n = min(1+c.acceptDrafts(s, w.n-1), s.output-s.produced)
			s.computed += n - 1
		}
		s.pending--
		s.produced += n
		c.stats.GenerationTokens += n
		done := s.produced == s.output
		if c.record {
			s.out.Tokens = append(s.out.Tokens, Emit{c.now, n})
		}
		if done || !c.record {
			p := Progress{Index: s.job.Index, N: n, Cached: s.cached, Done: done, At: c.now, Queued: s.ready, Begun: s.begun, s: s}
			if done {
				p.Guesses = s.guesses
			}
			c.result.Progress = append(c.result.Progress, p)
		}
		if c.cfg.PrefillOnly && (done || !w.decode) {
			c.sched.kv.publish(s, s.computed) // SGLang's tree gets prompts when computed, answers when finished
		}
		if done {
			finished = true
			if c.keeps {
				s.phase = inTransfer
				c.sched.away++
			} else {
				c.sched.kv.free(s)
			}
			s.gone = true
			delete(c.live, s.job.Index)
			c.stats.Finished++
		}
	}
	if finished {
		c.sched.shrunk = true
		c.sched.running = slices.DeleteFunc(c.sched.running, func(s *seq) bool { return s.gone })
	}
}

// treeGain is how much a tree of guesses helps: branching into n candidates a step is worth
// 1 + treeGain*ln(n) guesses of one. EAGLE-3 on Llama 3.1 8B (SGLang's documentation: 158
// tok/s without, 373 with 5 steps of 8 candidates) fits 0.4 at a probability of 0.65.
const treeGain = 0.4

// Acceptance is the name of the constant that the chance of a configuration's guesses is: a
// model's own prediction layers were trained with it, which SGLang's EAGLE takes where no
// other drafts, and guess better than drafts of another model or of repeated text.
func Acceptance(cfg engine.Config) string {
	switch {
	case cfg.Spec == "eagle3":
		return "accept_eagle3"
	case engine.MTP(cfg.Spec), cfg.Spec == "eagle" && cfg.Model.HasMTP:
		return "accept_mtp"
	}
	return "accept"
}

// acceptance is the chance of a step of a guess, of which a tree has several candidates:
// as many as it may verify in each step.
func acceptance(k constants, cfg engine.Config) float64 {
	a := k.get(Acceptance(cfg))
	if cfg.SpecTree < 2 || cfg.SpecTokens < 1 {
		return a
	}
	width := min(float64(cfg.SpecTree), max(1, float64(cfg.SpecVerify-1)/float64(cfg.SpecTokens)))
	return 1 - math.Pow(1-min(a, 1), 1+treeGain*math.Log(width))
}

// acceptDrafts draws how many of k drafted tokens the model agrees with: each
// has a chance only if the one before it was accepted. Every sequence has its
// own stream, so the company it runs in does not change its fate.
func (c *Core) acceptDrafts(s *seq, k int) int {
	if k < 1 {
		return 0
	}
	if s.chance == nil {
		s.chance = stat.Stream(c.seed^mix(s.order), "accept")
	}
	a := 0
	for a < k && s.chance.Float64() < c.accept {
		a++
	}
	c.stats.Drafts++
	c.stats.Drafted += k
	c.stats.Accepted += a
	if !c.record {
		if s.guesses == nil {
			s.guesses = &Guesses{ByStep: make([]int, 1+c.cfg.SpecTokens)}
		}
		s.guesses.add(k, a)
	}
	return a
}

// Guesses is what came of the speculation for one request.
type Guesses struct {
	Drafted int
	ByStep  []int // [j]: steps in which j guesses were accepted

	Proposed, Accepted []int // of each step
}

func (g *Guesses) add(proposed, accepted int) {
	g.Drafted += proposed
	g.ByStep[accepted]++
	g.Proposed, g.Accepted = append(g.Proposed, proposed), append(g.Accepted, accepted)
}

// sums are the steps and the guesses accepted in them.
func (g *Guesses) sums() (steps, accepted int) {
	for j, n := range g.ByStep {
		steps, accepted = steps+n, accepted+j*n
	}
	return steps, accepted
}

// Stats reports the counters and the present gauges.
func (c *Core) Stats() Stats {
	s, pool := c.stats, c.sched.kv.pool
	s.Running = len(c.sched.running)
	s.Waiting = len(c.live) - s.Running
	s.KVBlocks = pool.total
	s.KVUsage = float64(pool.held()) / float64(pool.total)
	s.PeakKV = float64(c.peakHeld) / float64(pool.total)
	s.Tiers = c.sched.kv.tiers.read(c.cfg.Block)
	return s
}
