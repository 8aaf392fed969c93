package load

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// Progress is what a live view reads while Run works. Several runs may add to
// one Progress.
type Progress struct {
	Planned  atomic.Int64 // set by the caller, who knows; 0: not known
	Running  atomic.Bool  // the load has begun
	Sent     atomic.Int64
	Done     atomic.Int64 // ended, failed ones included
	Failed   atomic.Int64
	InFlight atomic.Int64

	Tokens atomic.Int64   // output tokens as they came; see Seen
	TTFT   stat.Histogram // ns; see Seen
	ITL    stat.Histogram // ns, one value a read; see Seen

	mu      sync.Mutex
	classes map[result.Class]int
}

// Seen takes a read that brought tokens, as an openai.Client tells of it.
func (p *Progress) Seen(tokens int, since time.Duration, first bool) {
	p.Tokens.Add(int64(tokens))
	if first {
		p.TTFT.Add(int64(since))
		return
	}
	p.ITL.Add(int64(since))
}

// Ended takes a call that another machine sent, and that has ended: what Run and an openai.Client tell of
// one that was sent here, but for its sending and its tokens.
func (p *Progress) Ended(c *result.Call) {
	if p.end(c); !c.OK() {
		return
	}
	if d, ok := c.TTFT(); ok {
		p.TTFT.Add(int64(d))
	}
	for i := 1; i < len(c.Chunks); i++ {
		if c.Chunks[i].Read == c.Chunks[i-1].Read {
			continue // they came together
		}
		p.ITL.Add(int64(c.Chunks[i].At - c.Chunks[i-1].At))
	}
}

// end counts a call that has ended.
func (p *Progress) end(c *result.Call) {
	p.Done.Add(1)
	if !c.OK() {
		p.fail(c.Class)
	}
}

func (p *Progress) fail(c result.Class) {
	p.Failed.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.classes == nil {
		p.classes = map[result.Class]int{}
	}
	p.classes[c]++
}

// Failures are the failed calls by class.
func (p *Progress) Failures() map[result.Class]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.classes)
}
