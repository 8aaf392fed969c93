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
