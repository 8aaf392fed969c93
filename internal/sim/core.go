package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
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
}

// Core is one engine in virtual time. It is not safe for concurrent use.
type Core struct {
	cfg     engine.Config
	model   *stepModel
	pool    *blockPool
	front   frontEnd
	waiting queue[*seq] // cancelled ones stay until their turn
	running []*seq
	spare   []*seq       // finished and named nowhere, for the jobs to come
	live    map[int]*seq // by Job.Index, from Submit to the end
	seed    uint64
	accept  float64 // probability that a drafted token is accepted
	record  bool    // a replay: steps write outcomes and report the ends of jobs alone
	layout  engine.Layout
	radix   radix // SGLang's view of its memory
	now     time.Duration
	order   uint64
	next    []work         // scheduled, not yet begun
	work    []work         // of the step that runs
	ended   []*seq         // in the last step; work may still name them
	hits    []int32        // blocks that lookup found
	held    *time.Duration // counter of what first stopped a waiting request when c.next was scheduled; nil: nothing did
	result  Step
	stats   Stats

	peakHeld int // blocks
}

// seq is a job on its way through the engine. What every step reads is first.
type seq struct {
	prompt     int     // tokens
	produced   int     // tokens
	computed   int     // tokens whose keys and values are in the cache, or will be when the step that runs ends
	pending    int     // tokens that the step that runs will bring
	output     int     // tokens to produce
	registered int     // blocks published since admission
	blocks     []int32 // held
	out        Outcome // of a replay, so far

	job    Job
	order  uint64
	cached int           // prompt tokens found in the cache at first admission
	ready  time.Duration // left the front end
	first  bool          // never scheduled yet
	gone   bool          // cancelled or finished
	phase  phase
	state  []int32  // blocks of windows and recurrent states
	shared int      // leading blocks full of Job.Prompt, which others may share
	hashes []uint64 // of the prefix up to the end of each of them
	own    []int32  // the blocks after them that have been published, as long as they carry their stamps
	chance *rand.Rand
}

type phase byte

const (
	inFront phase = iota
	inWaiting
	inRunning
)

// known is the number of tokens whose ids are settled, or will be when the step
// that runs ends.
func (s *seq) known() int { return s.prompt + s.produced + s.pending }

// stamp marks the block that holds tokens of s alone as its i-th. It is even,
// and no other's.
func (s *seq) stamp(i int) uint64 { return (s.order+1)<<32 | uint64(i)<<1 }

// decoding says that only the newest token is left to compute.
func (s *seq) decoding() bool { return s.produced+s.pending > 0 && s.known()-s.computed == 1 }

// work is a sequence's part in a step: n tokens after those computed.
type work struct {
	s      *seq
	n      int
	decode bool // of one token and drafts after it
	ends   bool // brings a token
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

	s *seq
}

// Stats are counters and gauges of a core.
type Stats struct {
	Running, Waiting int // waiting includes the front end
	PeakRunning      int
	PeakWaiting      int
	RunningTime      time.Duration // sum over requests of the steps in which they ran
	WaitingTime      time.Duration // and in which they waited
	KVTime           time.Duration // sum over steps of their length by the share of blocks held
	KVUsage          float64       // share of blocks that sequences hold
	PeakKV           float64       // the same at most, in any step
	KVBlocks         int
	Steps            int
	Preemptions      int
	PrefixQueries    int // prompt tokens looked up in the prefix cache
	PrefixHits       int
	PromptTokens     int // of requests that were scheduled
	GenerationTokens int
	Drafted          int // speculative tokens
	Accepted         int
	Drafts           int // sequences' steps that drafted
	Finished         int
	Busy             time.Duration // sum of the steps' lengths
	Times            Times         // where Busy went
	Waits            Waits         // what requests waited for meanwhile
}

// Times is where the time of steps went, by term of the step model. The terms
// add up to Busy.
type Times struct {
	Weights     time.Duration // reading dense weights and the head, as far as that bounds their products
	Arithmetic  time.Duration // multiplying by them, as far as that does
	ExpertReads time.Duration // reading routed experts
	Experts     time.Duration // multiplying by them
	KV          time.Duration // reading the KV cache and recurrent states
	Attention   time.Duration // of prompts
	Collectives time.Duration // between devices
	Elementwise time.Duration
	Host        time.Duration // fixed, per layer and per sequence; graphs missed
	Drafting    time.Duration
}

// Waits is how long at least one request waited for each thing. A step counts
// for what first stopped the admission of a waiting request in it.
type Waits struct {
	KV       time.Duration // blocks of the KV cache
	Seqs     time.Duration // a place among the running
	Tokens   time.Duration // tokens of a step
	FrontEnd time.Duration // the front end, with no step running
	Idle     time.Duration // nothing was there to do, between the first and the last step
}

// New builds a core. It fails when the configuration leaves no room for a KV
// cache or names no limits.
func New(cfg engine.Config, o Options) (*Core, error) {
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
	return &Core{
		cfg: cfg, model: newStepModel(cfg, k), pool: newBlockPool(blocks),
		front:  frontEnd{cost: k.get("f_req") * 1e6, serial: cfg.Serial},
		live:   map[int]*seq{},
		seed:   o.Seed,
		accept: k.get("accept"),
		layout: layout,
		radix:  newRadix(cfg.Conserve),
		result: Step{Start: -1},
	}, nil
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

// enter hands a job that has been checked to the front end.
func (c *Core) enter(j Job) *seq {
	s := new(seq)
	if n := len(c.spare); n > 0 {
		s, c.spare = c.spare[n-1], c.spare[:n-1]
		*s = seq{blocks: s.blocks[:0], state: s.state[:0], hashes: s.hashes[:0], own: s.own[:0]}
	}
	s.job, s.order, s.first = j, c.order, true
	s.prompt, s.output, s.shared = j.promptLen(), j.Output, len(j.Prompt)/c.cfg.Block
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
	m = min(m, math.MaxInt/2)       // the sum must not overflow
	have := c.pool.total / c.cfg.DP // no request is shared between copies
	if need := c.blocksFor(n+m+c.cfg.SpecTokens) + c.layout.SideBlocks(n+m); need > have {
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
	c.front = frontEnd{cost: c.front.cost, serial: c.front.serial}
	c.now, c.stats, c.peakHeld = 0, Stats{}, 0
	c.result.Start, c.result.End = -1, 0
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
	if s.phase == inRunning {
		c.free(s)
		c.running = slices.DeleteFunc(c.running, func(r *seq) bool { return r == s })
		c.radix.shrunk = true
	}
}

// Next is the time at which the next step can begin, given the jobs submitted
// so far; ok is false when there is nothing to do.
func (c *Core) Next() (at time.Duration, ok bool) {
	if len(c.running) > 0 || c.nextWaiting() != nil {
		return c.now, true
	}
	for c.front.done.len() > 0 && c.front.done.front().gone {
		c.front.done.popFront()
	}
	if at, ok = c.front.next(); !ok {
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
	r := &c.result
	r.Start, r.End = start, start
	c.spare, c.ended = append(c.spare, c.ended...), c.ended[:0]
	for _, p := range r.Progress {
		if p.Done && p.s.phase == inRunning { // who ended preempted is still in the queue
			c.ended = append(c.ended, p.s)
		}
	}
	r.Progress, r.Preempted = r.Progress[:0], r.Preempted[:0]
	c.countGap(start)
	c.now = start
	if c.idle() {
		c.next = c.next[:0]
		if len(c.running) == 0 && c.waiting.len() == 0 {
			return r, true // the request that was due has been cancelled
		}
		c.schedule()
	}
	c.work, c.next = c.next, c.work[:0]
	if len(c.work) == 0 {
		panic("sim: a step without work")
	}
	b := c.batch()
	length := c.model.duration(&b, &c.stats.Times)
	if c.held != nil && c.nextWaiting() != nil {
		*c.held += length
	}
	c.begin()
	if c.cfg.Overlap && len(c.running)+c.waiting.len() > 0 {
		c.schedule()
	}
	r.End = start + length
	c.now = r.End
	c.stats.Steps++
	c.stats.Busy += length
	c.occupy(length)
	c.apply()
	return r, true
}

// occupy counts what a step of this length held and kept waiting.
func (c *Core) occupy(length time.Duration) {
	s, held := &c.stats, c.pool.total-c.pool.free
	running, waiting := len(c.running), len(c.live)-len(c.running)
	s.PeakRunning, s.PeakWaiting = max(s.PeakRunning, running), max(s.PeakWaiting, waiting)
	s.RunningTime += length * time.Duration(running)
	s.WaitingTime += length * time.Duration(waiting)
	s.KVTime += time.Duration(float64(length) * float64(held) / float64(c.pool.total))
	c.peakHeld = max(c.peakHeld, held)
}

// countGap counts the time since the last step: the front end was empty until
// its oldest request came.
func (c *Core) countGap(start time.Duration) {
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
			s.phase = inWaiting
			c.waiting.pushBack(s)
		}
	}
}

// idle says that nothing worth running has been scheduled.
func (c *Core) idle() bool {
	return !slices.ContainsFunc(c.next, func(w work) bool { return !w.s.gone })
}

// nextWaiting is the sequence at the head of the queue; nil when none waits.
func (c *Core) nextWaiting() *seq {
	for c.waiting.len() > 0 {
		if s := c.waiting.front(); !s.gone {
			return s
		}
		c.waiting.popFront()
	}
	return nil
}

// batch sums up what the scheduled work costs.
func (c *Core) batch() batch {
	b := batch{drafts: c.cfg.SpecTokens > 0} // prompts pass the draft layers too
	window := c.cfg.Model.Window
	for _, w := range c.work {
		if w.s.decoding() {
			b.decode(w.s.known(), w.n, window)
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
		if w.decode = s.decoding(); w.decode {
			s.computed++
		} else {
			s.computed += w.n
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
			c.result.Progress = append(c.result.Progress, Progress{s.job.Index, n, s.cached, done, c.now, s})
		}
		if c.cfg.PrefillOnly && (done || !w.decode) {
			c.publish(s, s.computed) // SGLang's tree gets prompts when computed, answers when finished
		}
		if done {
			finished = true
			c.free(s)
			s.gone = true
			delete(c.live, s.job.Index)
			c.stats.Finished++
		}
	}
	if finished {
		c.radix.shrunk = true
		c.running = slices.DeleteFunc(c.running, func(s *seq) bool { return s.gone })
	}
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
	return a
}

// Stats reports the counters and the present gauges.
func (c *Core) Stats() Stats {
	s := c.stats
	s.Running = len(c.running)
	s.Waiting = len(c.live) - s.Running
	s.KVBlocks = c.pool.total
	s.KVUsage = float64(c.pool.total-c.pool.free) / float64(c.pool.total)
	s.PeakKV = float64(c.peakHeld) / float64(c.pool.total)
	return s
}
