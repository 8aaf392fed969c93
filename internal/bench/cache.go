package bench

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"perflab/internal/field"
	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// What an openai.Client does about the server's prefix cache.
type (
	cacheResetter interface {
		ResetCache(ctx context.Context) error
	}
	cacheCounter interface {
		// CacheCounters returns the server's counters of prompt tokens looked
		// up and found, and the name of the metric.
		CacheCounters(ctx context.Context) (queries, hits float64, from string, err error)
	}
)

// cacheMonitor is the servers' prefix caches over a run.
type cacheMonitor struct {
	reset         bool
	counters      []cacheCounter // of each server; nil: one does not tell
	queries, hits float64        // before the run
	from          string
	fills         []sentPrompt // that filled the caches
}

// countTimeout bounds one reading of a server's counters.
const countTimeout = 5 * time.Second

// prepareCache does what the run's policy asks for, and reads the counters.
func (b Runner) prepareCache(ctx context.Context, clients []*openai.Client, w *workload.Workload) (c *cacheMonitor, note string, err error) {
	c = &cacheMonitor{}
	switch b.Spec.Cache {
	case CacheReset:
		b.phase(PhaseReset)
		c.reset, err = true, resetCaches(ctx, clients)
	case CacheWarm:
		b.phase(PhaseFilling)
		note, err = b.fillCaches(ctx, clients, w, c)
	}
	if err == nil {
		var filled string
		filled, err = b.fillSessions(ctx, clients, w, c)
		note = joined(note, filled)
	}
	if err != nil {
		return nil, "", err
	}
	for _, client := range clients {
		c.counters = append(c.counters, client)
	}
	if c.queries, c.hits, c.from, err = c.read(ctx); err != nil {
		c.counters = nil // a server that does not tell is no fault of the run
	}
	return c, note, nil
}

// resetCaches empties the prefix cache of every server.
func resetCaches[T cacheResetter](ctx context.Context, clients []T) error {
	for _, client := range clients {
		if err := client.ResetCache(ctx); err != nil {
			return fmt.Errorf("cache reset: %w", err)
		}
	}
	return nil
}

// fillCaches sends every measured prompt to every server once, for one token,
// and throws the answers away.
func (b Runner) fillCaches(ctx context.Context, clients []*openai.Client, w *workload.Workload, c *cacheMonitor) (note string, err error) {
	if w.Len() == 0 {
		return "", field.Errorf("cache", "warm needs to know the prompts beforehand: give [num_prompts]")
	}
	const usual = 32 // at a time, where the workload has no limit of its own
	o := load.Options{MaxConcurrency: cmp.Or(b.Spec.Workload.MaxConcurrency, usual)}
	if w.Conversations() {
		o.Next = func(r workload.Request, answer string) (workload.Request, time.Duration, bool) {
			r, _, ok := w.Next(r, answer)
			r.Output = 1
			return r, 0, ok
		}
	}
	sent, failed, err := fill(ctx, clients, o, func(int) iter.Seq[workload.Request] { return oneTokenEach(w.All()) }, c.filled)
	if err != nil {
		return "", err
	}
	switch {
	case failed == sent:
		return "", field.Errorf("cache", "warm: all %d requests that should have filled the prefix cache failed", failed)
	case failed > 0:
		note = fmt.Sprintf("%d of %d requests that should have filled the prefix cache before the run failed", failed, sent)
	}
	return note, nil
}

// fill sends requests to each client after the other, to fill its server's prefix cache, and throws the answers away.
// each is told of every call.
func fill(ctx context.Context, clients []*openai.Client, o load.Options, requests func(client int) iter.Seq[workload.Request], each func(client int, c result.Call)) (sent, failed int, err error) {
	for i, client := range clients {
		_, err := load.Run(ctx, requests(i), []load.Sender{client}, o, func(c result.Call) {
			sent++
			if c.Class != result.OK {
				failed++
			}
			each(i, c)
		})
		if err != nil {
			return sent, failed, err
		}
		if ctx.Err() != nil {
			return sent, failed, context.Cause(ctx)
		}
	}
	return sent, failed, nil
}

// filled notes a call that filled the cache of a client's server.
func (c *cacheMonitor) filled(client int, call result.Call) {
	if call.OK() && len(c.fills) < mostPrompts {
		c.fills = append(c.fills, sentAs(&call, client))
	}
}

// oneTokenEach makes requests due at once, for one token.
func oneTokenEach(requests iter.Seq[workload.Request]) iter.Seq[workload.Request] {
	return func(yield func(workload.Request) bool) {
		for r := range requests {
			r.Due, r.Output = 0, 1
			if !yield(r) {
				return
			}
		}
	}
}

// read sums the counters of all servers.
func (c *cacheMonitor) read(ctx context.Context) (queries, hits float64, from string, err error) {
	for _, k := range c.counters {
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		q, h, name, err := k.CacheCounters(ctx)
		cancel()
		if err != nil {
			return 0, 0, "", err
		}
		queries, hits, from = queries+q, hits+h, name
	}
	return queries, hits, from, nil
}

// usage is what the counters grew by; nil when nothing is known. A run that was
// interrupted still has its counters read.
func (c *cacheMonitor) usage(ctx context.Context) *result.CacheUse {
	u := &result.CacheUse{Reset: c.reset}
	if c.counters != nil {
		q, h, from, err := c.read(context.WithoutCancel(ctx))
		if err == nil && q >= c.queries && h >= c.hits { // else it was started again
			u.Queries, u.Hits, u.From = q-c.queries, h-c.hits, from
		}
	}
	if !u.Reset && u.From == "" {
		return nil
	}
	return u
}

// fingerprint begins to compute a workload's fingerprint, which builds every
// prompt, beside the waiting and the warming up; the function it returns waits
// for it, so that none of the work falls into the measurement. A run that ends
// before leaves the goroutine to its end: it holds nothing but the workload.
func fingerprint(w *workload.Workload) (wait func() string) {
	hash := make(chan string, 1) // its one value never blocks the goroutine
	go func() { hash <- w.Fingerprint() }()
	return func() string { return <-hash }
}
