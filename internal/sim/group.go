package sim

import (
	"fmt"
	"slices"
	"time"

	"perflab/internal/engine"
)

// Group is a replica whose engines compute prompts or generate, and the router before
// them, in virtual time. It is not safe for concurrent use.
//
// With vLLM the router asks a prefill engine for one token and, when that has come, a
// decode engine for all, which fetches the KV cache of the prompt, computes the last
// token of it again and streams. With SGLang it asks both at once: the decode engine
// takes room for the prompt, the prefill engine computes it then and sends the KV cache
// chunk by chunk, and the first token with the last chunk. Blocks stay taken on both
// sides until the last byte is there.
//
// Each engine steps by itself. A step of the group has no length: it is one event.
type Group struct {
	cfg      engine.Config
	members  []*member
	prefills router
	decodes  router
	pushes   bool          // prefill engines send what decode engines have room for, as SGLang's do
	route    time.Duration // that the router takes to pass a request on
	link     link
	live     map[int]*relay // by Job.Index, from Submit to the end
	moves    []move         // on their way, the next to end last
	record   bool
	now      time.Duration // of the last event
	first    time.Duration // when the first request came; -1: none has
	result   Step
	stats    Stats // of what no engine counts
	pools    Pools // of what is between the engines
	inFlight time.Duration
}

// member is an engine of a group.
type member struct {
	core     *Core
	prefill  bool
	step     *Step // that it is in; nil: none
	runs     int   // requests in that
	port     port
	requests int // that the router has sent and that have not ended
	tokens   int // of all prompts that it has sent
}

// relay is a job on its way through a group.
type relay struct {
	job      Job
	out      Outcome
	from, to *member
	ps, ds   *seq // its parts in them; ds is nil until the router has asked the decode engine
	stage    stage
	gone     bool          // cancelled
	cached   int           // prompt tokens found in the prefill engine's cache
	sent     int           // blocks whose content has been sent
	arrives  time.Duration // when the last of it arrives
}

type stage byte

const (
	computing stage = iota // its prompt is, or waits to be
	computed               // its KV cache waits for room in the decode engine (vLLM)
	moving                 // the last of its KV cache is on its way
	decoding               // the decode engine has it
)

// newGroup builds the engines of a disaggregated replica. It fails where a core of one of
// them would, and where nothing is known of how their KV caches would move.
func newGroup(cfg engine.Config, o Options) (*Group, error) {
	one := cfg
	one.Prefills, one.Decodes, one.Prefill = 0, 0, nil
	if cfg.Prefills < 1 || cfg.Decodes < 1 || cfg.Prefill == nil {
		return nil, fmt.Errorf("simulate %s: a disaggregated replica needs engines that compute prompts, their configuration, and engines that generate (have %d and %d)", cfg.Engine, cfg.Prefills, cfg.Decodes)
	}
	if cfg.Engine != "vllm" && cfg.Engine != "sglang" {
		return nil, fmt.Errorf("simulate %s: how its engines pass KV caches on is not modelled: use vLLM or SGLang, or engines that do both", cfg.Engine)
	}
	k := constantsFor(o.Constants, cfg)
	g := &Group{
		cfg: cfg, pushes: cfg.Engine == "sglang", live: map[int]*relay{}, first: -1,
		route: seconds(k.get("route") * 1e-3),
	}
	for i := range cfg.Prefills + cfg.Decodes {
		m := &member{prefill: i < cfg.Prefills}
		c := one
		if m.prefill {
			c = *cfg.Prefill
		}
		c.Tiers = nil // no configuration has them beside pools
		if c.PrefillOnly && !m.prefill {
			c.Prefix = false // unless --disaggregation-decode-enable-radix-cache
		}
		seed := o.Seed
		if i > 0 {
			seed = mix(o.Seed + uint64(i))
		}
		var err error
		if m.core, err = newCore(c, Options{Seed: seed, KVTokens: o.KVTokens, Constants: o.Constants, Speed: o.Speed}); err != nil {
			return nil, err
		}
		m.join()
		g.members = append(g.members, m)
	}
	g.prefills.engines, g.decodes.engines = g.members[:cfg.Prefills], g.members[cfg.Prefills:]
	var err error
	g.link, err = newLink(cfg, g.prefills.engines[0].core.cfg, g.decodes.engines[0].core.cfg, k)
	return g, err
}

// join makes the core of a member one that works beside others.
func (m *member) join() {
	c := m.core
	c.member, c.keeps = true, m.prefill
	switch p := c.policy.(type) {
	case *sglang:
		c.policy = newSGLangDecode(&c.sched)
		if m.prefill {
			c.policy = sglangPrefill{p}
		}
	case *mixed:
		if !m.prefill {
			c.policy = &pulling{p}
		}
	}
	m.port = make(port, c.cfg.DP)
}

// Config is the configuration of the group.
func (g *Group) Config() engine.Config { return g.cfg }

func (g *Group) records() {
	g.record = true
	for _, m := range g.decodes.engines {
		m.core.record = true
	}
}

// Submit hands a job to the router at job.Arrive, or as soon after as a job can come. The
// error is a *Refusal for a job that an engine would not take.
func (g *Group) Submit(j Job) error {
	if err := g.check(j); err != nil {
		return err
	}
	g.put(j, Outcome{})
	return nil
}

// check is that of an engine of each pool.
func (g *Group) check(j Job) error {
	if g.live[j.Index] != nil {
		return fmt.Errorf("job %d is already in the engine", j.Index)
	}
	d := g.decodes.engines[0].core
	if err := d.check(j); err != nil {
		return err
	}
	if have := d.sched.kv.pool.total / d.cfg.DP * d.cfg.Block; g.pushes && sglangNeed(j.promptLen(), j.Output, 0) > have {
		return refuse("The request needs room for %d tokens in a decode engine, of which some are kept for what it writes, and the KV cache has %d.", sglangNeed(j.promptLen(), j.Output, 0), have)
	}
	j.Output = 1
	return g.prefills.engines[0].core.check(j)
}

// put hands a job that has been checked to the router, which chooses its engines.
func (g *Group) put(j Job, out Outcome) time.Duration {
	j.Arrive = max(j.Arrive, g.now)
	g.elapseBefore(j.Arrive)
	if g.first < 0 {
		g.first = j.Arrive
		g.now = max(g.now, j.Arrive)
	}
	r := &relay{job: j, out: out, from: g.prefills.choose(&j), to: g.decodes.choose(&j)}
	g.live[j.Index] = r
	for _, m := range []*member{r.from, r.to} {
		m.requests++
		m.tokens += j.promptLen()
	}
	ask := j
	ask.Output = 1
	r.ps = g.ask(r, r.from, ask, j.Arrive)
	if g.pushes {
		r.ps.parked = true
		r.ds = g.ask(r, r.to, j, j.Arrive)
	}
	return j.Arrive
}

// ask passes a job on to an engine.
func (g *Group) ask(r *relay, m *member, j Job, at time.Duration) *seq {
	j.Arrive = at + g.route
	s := m.core.enter(j)
	s.r, s.remote = r, !m.prefill
	return s
}

// warm serves jobs one after another and turns the time back.
func (g *Group) warm(jobs []Job) {
	if len(jobs) == 0 {
		return
	}
	for i, j := range jobs {
		j.Index, j.Arrive = -1-i, g.now
		if g.Submit(j) != nil {
			continue
		}
		for _, ok := g.Step(); ok; _, ok = g.Step() {
		}
	}
	g.reset()
}

// reset turns the time of a group back in which nothing runs.
func (g *Group) reset() {
	for _, m := range g.members {
		m.core.reset()
		m.tokens = 0
		clear(m.port)
	}
	g.now, g.first, g.inFlight, g.stats, g.pools = 0, -1, 0, Stats{}, Pools{}
}

// Next is the time of the next event.
func (g *Group) Next() (time.Duration, bool) {
	e, ok := g.event()
	return e.at, ok
}

// event is something that happens in a group. At one time steps end first, then transfers,
// and then steps begin.
type event struct {
	at   time.Duration
	kind eventKind
	m    *member // whose step ends or begins
}

type eventKind byte

const (
	ends eventKind = iota
	arrives
	begins
)

func (g *Group) event() (best event, ok bool) {
	if n := len(g.moves); n > 0 {
		best, ok = event{at: g.moves[n-1].at, kind: arrives}, true
	}
	for _, m := range g.members {
		e := event{kind: ends, m: m}
		if m.step != nil {
			e.at = m.step.End
		} else if at, busy := m.core.Next(); busy {
			e.at, e.kind = max(at, g.now), begins
		} else {
			continue
		}
		if !ok || e.at < best.at || e.at == best.at && e.kind < best.kind {
			best, ok = e, true
		}
	}
	return best, ok
}

// Step handles the next event. ok is false when there is nothing to do.
func (g *Group) Step() (step *Step, ok bool) {
	e, ok := g.event()
	if !ok {
		return nil, false
	}
	g.elapse(e.at)
	r := &g.result
	r.Start, r.End, r.Progress, r.Preempted = e.at, e.at, r.Progress[:0], nil
	switch e.kind {
	case ends:
		g.end(e.m)
	case arrives:
		g.arrive()
	case begins:
		g.begin(e.m)
	}
	return r, true
}

// begin lets an engine begin a step.
func (g *Group) begin(m *member) {
	c := m.core
	c.now = max(c.now, g.now)
	ran := c.stats.RunningTime
	step, ok := c.Step()
	if !ok {
		return
	}
	if length := step.End - step.Start; length > 0 {
		m.step, m.runs = step, int((c.stats.RunningTime-ran)/length)
	}
	for _, s := range c.sched.taken {
		g.pools.RoomWait += g.now - s.ready
		if g.pushes {
			c := s.r.from.core
			if s.r.ps.parked = false; s.r.ps.phase == inWaiting {
				c.sched.waiting.pushBack(s.r.ps)
			}
			c.stuck = false
		} else {
			g.send(s.r, s.r.blocks()-s.registered, true)
		}
	}
	for _, s := range c.sched.joined {
		done := s.output == 1
		if done {
			delete(c.live, s.job.Index)
		}
		if g.record {
			s.out.Tokens = slices.Insert(s.out.Tokens, 0, Emit{g.now, 1}) // the step may have brought the next
		}
		if done || !g.record {
			g.emit(Progress{Index: s.job.Index, N: 1, Done: done, At: g.now, s: s})
		}
	}
	c.sched.taken, c.sched.joined = c.sched.taken[:0], c.sched.joined[:0]
	g.peaks()
}

// end hands on what a step has brought.
func (g *Group) end(m *member) {
	step := m.step
	m.step, m.runs = nil, 0
	g.result.Preempted = step.Preempted
	if !m.prefill {
		for _, p := range step.Progress {
			g.emit(p)
		}
		return
	}
	if g.pushes {
		g.push(m)
	}
	for _, p := range step.Progress {
		g.prefilled(p.s.r)
	}
}

// push sends what a step of a prefill engine has computed, in whole blocks until the
// last of a prompt.
func (g *Group) push(m *member) {
	for _, w := range m.core.work {
		r := w.s.r
		if r.gone || w.s != r.ps {
			continue
		}
		blocks := w.s.computed / m.core.cfg.Block
		if w.ends {
			blocks = r.blocks()
		}
		if n := blocks - r.sent; n > 0 || w.ends {
			r.sent = blocks
			g.send(r, n, w.ends)
		}
	}
}

// prefilled goes on with a request whose prompt has been computed.
func (g *Group) prefilled(r *relay) {
	r.cached = r.ps.cached
	switch {
	case r.gone:
		g.release(r)
	case !g.pushes:
		r.stage = computed
		r.from.requests--
		r.ds = g.ask(r, r.to, r.job, g.now)
	}
}

// release gives back the blocks that a prefill engine has kept for a request.
func (g *Group) release(r *relay) {
	c := r.from.core
	c.sched.kv.free(r.ps)
	c.sched.away--
	c.stuck = false
}

// arrive ends the transfer that is next to end.
func (g *Group) arrive() {
	r := g.moves[len(g.moves)-1].r
	g.moves = g.moves[:len(g.moves)-1]
	g.release(r)
	c := r.to.core
	c.sched.away--
	c.stuck = false
	if r.gone {
		c.sched.kv.free(r.ds)
		return
	}
	if g.pushes {
		r.from.requests--
	}
	r.stage, r.ds.phase, r.ds.out = decoding, hasCome, r.out
	c.sched.came.pushBack(r.ds)
}

// emit hands out what the decode engine of a request has made.
func (g *Group) emit(p Progress) {
	r := p.s.r
	if r.gone {
		return
	}
	p.Cached = r.cached
	if ps := r.ps; ps != nil && ps.r == r { // not in use for another request since
		p.Queued, p.Begun = ps.ready, ps.begun
	}
	g.result.Progress = append(g.result.Progress, p)
	if p.Done {
		delete(g.live, r.job.Index)
		r.to.requests--
	}
}

// cancel takes a job out, as a disconnecting client does. What is on its way to a decode
// engine keeps its blocks until it is there.
func (g *Group) cancel(index int, at time.Duration) {
	r := g.live[index]
	if r == nil {
		return
	}
	g.elapseBefore(at)
	delete(g.live, index)
	r.gone = true
	r.to.requests--
	if r.stage == computing || g.pushes && r.stage == moving {
		r.from.requests--
	}
	if r.stage == computing { // what has been computed is released when the step ends
		r.from.core.Cancel(index)
		r.from.core.stuck = false
	}
	if r.stage == computed {
		g.release(r)
	}
	if r.ds == nil {
		return
	}
	c := r.to.core
	holds := r.ds.phase == hasCome
	if r.ds.phase == inTransfer && r.stage != moving {
		holds = true
		c.sched.away--
	}
	c.Cancel(index)
	if holds {
		c.sched.kv.free(r.ds)
	}
	c.stuck = false
}

// elapse counts the time until the next event.
func (g *Group) elapse(to time.Duration) {
	took := to - g.now
	if took <= 0 {
		return
	}
	working := false
	for _, m := range g.members {
		c := m.core
		if m.step != nil {
			working = true
			continue
		}
		c.stats.WaitingTime += took * time.Duration(len(c.live))
		if c.stuck && c.sched.waiting.len() > 0 {
			c.stats.Waits.Transfer += took
		}
	}
	w := &g.stats.Waits
	switch {
	case len(g.moves) > 0:
		w.Transfer += took
	case working:
	case len(g.live) > 0:
		w.FrontEnd += took
	case g.first >= 0:
		w.Idle += took
	}
	g.inFlight += took * time.Duration(len(g.live))
	g.now = to
}

// elapseBefore counts the time until something comes from outside, as far as no event
// comes before it.
func (g *Group) elapseBefore(at time.Duration) {
	if g.first < 0 {
		return
	}
	if e, ok := g.event(); ok {
		at = min(at, e.at)
	}
	g.elapse(at)
}

// peaks counts those that run, and those that do not, while a step runs.
func (g *Group) peaks() {
	running := 0
	for _, m := range g.members {
		running += m.runs
	}
	g.stats.PeakRunning = max(g.stats.PeakRunning, running)
	g.stats.PeakWaiting = max(g.stats.PeakWaiting, len(g.live)-running)
}

// Stats are those of all engines together. The KV cache is that of decode engines, the
// prefix cache that of prefill engines.
func (g *Group) Stats() Stats {
	p := g.pools
	p.Replicas, p.Prefills, p.Decodes = 1, len(g.prefills.engines), len(g.decodes.engines)
	p.Prefill, p.Decode = g.prefills.stats(), g.decodes.stats()
	for _, m := range g.members {
		if m.prefill {
			p.Egress += len(m.port)
		} else {
			p.Ingress += len(m.port)
		}
	}
	p.Elapsed = g.now - max(0, g.first)
	s := p.Decode
	s.Running += p.Prefill.Running
	s.Waiting = max(0, len(g.live)-s.Running)
	s.PeakRunning, s.PeakWaiting = g.stats.PeakRunning, g.stats.PeakWaiting
	s.RunningTime += p.Prefill.RunningTime
	s.WaitingTime = max(0, g.inFlight-s.RunningTime)
	s.KVTime /= time.Duration(p.Decodes)
	s.KVUsage, s.KVBlocks = 0, s.KVBlocks*p.Decodes
	for _, m := range g.decodes.engines {
		pool := m.core.sched.kv.pool
		s.KVUsage += float64(pool.held()) / float64(pool.total) / float64(p.Decodes)
	}
	s.Steps, s.Preemptions, s.Busy = s.Steps+p.Prefill.Steps, s.Preemptions+p.Prefill.Preemptions, s.Busy+p.Prefill.Busy
	s.PrefixQueries, s.PrefixHits, s.PromptTokens = p.Prefill.PrefixQueries, p.Prefill.PrefixHits, p.Prefill.PromptTokens
	s.Times.add(p.Prefill.Times)
	s.Waits.add(p.Prefill.Waits)
	s.Waits.FrontEnd, s.Waits.Idle, s.Waits.Transfer = g.stats.Waits.FrontEnd, g.stats.Waits.Idle, g.stats.Waits.Transfer
	s.Pools = &p
	return s
}
