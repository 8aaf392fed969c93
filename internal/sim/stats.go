package sim

import "time"

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
	Tiers            []TierStats   // memories below the devices' KV cache, the nearest first
	Pools            *Pools        // of a group; nil for an engine that does all
}

// Pools are what the engines of a group have counted, each pool by itself, and what is
// between them. In Stats a token, and a request that waits, counts once.
type Pools struct {
	Prefill, Decode   Stats         // of all engines of a pool
	Replicas          int           // groups
	Prefills, Decodes int           // engines of all of them
	Elapsed           time.Duration // since the first request came
	Transfers         int           // prompts whose KV cache has been sent for
	Moved             int64         // bytes
	Moving            time.Duration // sum over transfers of the time that they take the links
	LinkWait          time.Duration // and that they wait for them
	RoomWait          time.Duration // sum over requests of the wait for room for the KV cache in a decode engine
	Egress, Ingress   int           // links that send, and that receive
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
	Host        time.Duration // fixed, per layer and per sequence
	Launches    time.Duration // of kernels one by one, as far as devices wait for them: no graph covers the step
	Drafting    time.Duration
	Fetching    time.Duration // blocks from memories below the KV cache, and writing those that made room
}

// Waits is how long at least one request waited for each thing. A step counts
// for what first stopped the admission of a waiting request in it.
type Waits struct {
	KV       time.Duration // blocks of the KV cache
	Seqs     time.Duration // a place among the running
	Tokens   time.Duration // tokens of a step
	FrontEnd time.Duration // the front end, with no step running
	Idle     time.Duration // nothing was there to do, between the first and the last step
	Transfer time.Duration // the KV cache, on its way from the engine that computed the prompt
}

// With adds the counters of another engine, of the same kind; gauges are those of the
// fuller.
func (s Stats) With(o Stats) Stats {
	s.Running, s.Waiting = s.Running+o.Running, s.Waiting+o.Waiting
	s.PeakRunning, s.KVBlocks = max(s.PeakRunning, o.PeakRunning), max(s.KVBlocks, o.KVBlocks)
	s.PeakWaiting = max(s.PeakWaiting, o.PeakWaiting)
	s.RunningTime, s.WaitingTime, s.KVTime = s.RunningTime+o.RunningTime, s.WaitingTime+o.WaitingTime, s.KVTime+o.KVTime
	s.KVUsage, s.PeakKV = max(s.KVUsage, o.KVUsage), max(s.PeakKV, o.PeakKV)
	s.Steps, s.Preemptions, s.Finished = s.Steps+o.Steps, s.Preemptions+o.Preemptions, s.Finished+o.Finished
	s.PrefixQueries, s.PrefixHits = s.PrefixQueries+o.PrefixQueries, s.PrefixHits+o.PrefixHits
	s.PromptTokens, s.GenerationTokens = s.PromptTokens+o.PromptTokens, s.GenerationTokens+o.GenerationTokens
	s.Drafted, s.Accepted, s.Drafts = s.Drafted+o.Drafted, s.Accepted+o.Accepted, s.Drafts+o.Drafts
	s.Busy += o.Busy
	s.Tiers = withTiers(s.Tiers, o.Tiers)
	s.Times.add(o.Times)
	s.Waits.add(o.Waits)
	switch {
	case s.Pools == nil:
		s.Pools = o.Pools
	case o.Pools != nil:
		both := s.Pools.with(o.Pools)
		s.Pools = &both
	}
	return s
}

func (t *Times) add(o Times) {
	t.Weights, t.Arithmetic = t.Weights+o.Weights, t.Arithmetic+o.Arithmetic
	t.ExpertReads, t.Experts = t.ExpertReads+o.ExpertReads, t.Experts+o.Experts
	t.KV, t.Attention = t.KV+o.KV, t.Attention+o.Attention
	t.Collectives, t.Elementwise = t.Collectives+o.Collectives, t.Elementwise+o.Elementwise
	t.Host, t.Drafting = t.Host+o.Host, t.Drafting+o.Drafting
	t.Launches, t.Fetching = t.Launches+o.Launches, t.Fetching+o.Fetching
}

func (w *Waits) add(o Waits) {
	w.KV, w.Seqs, w.Tokens = w.KV+o.KV, w.Seqs+o.Seqs, w.Tokens+o.Tokens
	w.FrontEnd, w.Idle, w.Transfer = w.FrontEnd+o.FrontEnd, w.Idle+o.Idle, w.Transfer+o.Transfer
}

func (p Pools) with(o *Pools) Pools {
	p.Prefill, p.Decode = p.Prefill.With(o.Prefill), p.Decode.With(o.Decode)
	p.Replicas, p.Prefills, p.Decodes = p.Replicas+o.Replicas, p.Prefills+o.Prefills, p.Decodes+o.Decodes
	p.Egress, p.Ingress = p.Egress+o.Egress, p.Ingress+o.Ingress
	p.Elapsed = max(p.Elapsed, o.Elapsed)
	p.Transfers, p.Moved = p.Transfers+o.Transfers, p.Moved+o.Moved
	p.Moving, p.LinkWait, p.RoomWait = p.Moving+o.Moving, p.LinkWait+o.LinkWait, p.RoomWait+o.RoomWait
	return p
}
