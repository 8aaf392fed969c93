package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/bench"
	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/stat"
	"perflab/internal/truth"
	"perflab/internal/workload"
)

// Comparison is one load on a server that knows the truth, and how far the
// client's figures were from it.
type Comparison struct {
	Calls  int
	Failed int // calls that failed, or whose events are not those that were sent
	Reason string
	Events int
	Reads  int // sends with a stamp of their own; fewer than Sends where some came in one read
	Sends  int

	Arrival  []float64     // us, ascending: an event's stamp less its send, without sign
	Lateness []float64     // us, ascending: when the server had a request, less its due instant
	TTFT     time.Duration // client's mean less the server's
	E2E      time.Duration // client's mean less the server's
	ITL      time.Duration // client's p99 less the server's, every send a gap
	ITLShown time.Duration // client's p99 as a run shows it: without the gaps within a read
	ITLTruth time.Duration // server's p99

	Told   int // events before the last of a read that the client says may have been late
	Beyond int // events whose stamp is later than the client says it may be

	// From a moment at which all streams were open and none had an event, to
	// the end; where the server has a gate for all of them, else zero.
	Window time.Duration
	CPU    time.Duration // of this process
	Allocs uint64
	Open   int64 // bytes by which this process had grown when all streams were open
	Peak   int64 // bytes of this process at most, since it began

	Server truth.Truth // without the single sends
}

// Merged is the share of sends that came in one read with another one.
func (a *Comparison) Merged() float64 { return 1 - float64(a.Reads)/float64(a.Sends) }

// PerEvent is the CPU time of an event.
func (a *Comparison) PerEvent() time.Duration { return a.CPU / time.Duration(max(1, a.Events)) }

// Measure sends one request at each due instant to a server that knows
// the truth, in the way a benchmark sends them, and compares.
func Measure(ctx context.Context, server truth.Remote, p truth.Params, due []time.Duration) (*Comparison, error) {
	if err := load.CheckCapacity(len(due), 1); err != nil {
		return nil, err
	}
	if err := server.Set(ctx, p); err != nil {
		return nil, err
	}
	client, err := openai.New(openai.Config{
		BaseURL: server.URL, Backend: openai.BackendChat, Model: truth.Model, Concurrency: len(due),
		FirstTokenTimeout: p.TTFT + slices.Max(due) + streamMargin,
	})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	defer debug.SetGCPercent(debug.SetGCPercent(bench.HeapGrowth))
	runtime.GC()
	calls := make([]result.Call, 0, len(due))
	watch := &windowSampler{before: resident(), progress: new(load.Progress), n: int64(len(due)), over: make(chan struct{}), done: make(chan struct{})}
	if p.Gate == len(due) {
		go watch.run()
	} else {
		close(watch.done)
	}
	stats, err := load.Run(ctx, requests(p, due), []load.Sender{client}, load.Options{Spin: load.DefaultSpin, Progress: watch.progress}, func(c result.Call) {
		calls = append(calls, c)
	})
	a := &Comparison{Calls: len(calls)}
	watch.stop(a)
	end := time.Now()
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	if a.Server, err = server.Truth(ctx, true); err != nil {
		return nil, err
	}
	a.compare(calls, due, wallOf(stats.Start, end))
	if a.Failed == a.Calls {
		return nil, fmt.Errorf("all %d calls to the truth server failed: %s", a.Calls, a.Reason)
	}
	return a, nil
}

// streamMargin is how much longer than its schedule a stream is waited for: behind a
// gate one call that fails keeps all others waiting.
const streamMargin = 20 * time.Second

// requests makes requests by which the server knows their index.
func requests(p truth.Params, due []time.Duration) iter.Seq[workload.Request] {
	return func(yield func(workload.Request) bool) {
		for i, d := range due {
			if !yield(workload.Request{Index: i, Due: d, Prompt: truth.Prompt(i), Input: 1, Output: p.Tokens}) {
				return
			}
		}
	}
}

// windowSampler samples this process when all requests are sent and the server
// still holds its gate, or the time to first token, closed.
type windowSampler struct {
	before   int64 // bytes resident
	progress *load.Progress
	n        int64
	over     chan struct{} // closed when the load ended
	done     chan struct{} // closed when run ended
	usage    *load.Usage   // nil: never were all sent
	mallocs  uint64
	open     int64
}

// pollInterval is the pause between two looks at how many requests are sent.
const pollInterval = 5 * time.Millisecond

func (w *windowSampler) run() {
	defer close(w.done)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for w.progress.Sent.Load() < w.n {
		select {
		case <-tick.C:
		case <-w.over:
			return
		}
	}
	// The last ones are on their way to the server.
	for range 10 {
		select {
		case <-tick.C:
		case <-w.over:
			return
		}
	}
	w.open = resident() - w.before
	w.mallocs = mallocs()
	w.usage = load.StartUsage()
}

func (w *windowSampler) stop(a *Comparison) {
	close(w.over)
	<-w.done
	a.Peak = peakResident()
	if w.usage == nil {
		return
	}
	c := w.usage.Stop()
	a.Window, a.CPU, a.Allocs, a.Open = c.Wall, c.CPU, mallocs()-w.mallocs, w.open
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// wallOf turns offsets from start into Unix nanoseconds. The wall clock may be
// slewed against the monotonic one; what it moved until end is spread over the
// time between.
func wallOf(start, end time.Time) func(time.Duration) int64 {
	span := end.Sub(start)
	drift := float64(end.UnixNano()-start.UnixNano()-int64(span)) / float64(max(1, span))
	return func(at time.Duration) int64 {
		return start.UnixNano() + int64(at) + int64(drift*float64(at))
	}
}

// compare joins calls and the server's requests by their index.
func (a *Comparison) compare(calls []result.Call, due []time.Duration, wall func(time.Duration) int64) {
	known := make(map[int]*truth.Request, len(a.Server.Requests))
	for i := range a.Server.Requests {
		known[a.Server.Requests[i].ID] = &a.Server.Requests[i]
	}
	merge := max(1, a.Server.Params.Merge)
	var gaps, shown, trueGaps, ttft, e2e []float64
	first := time.Duration(math.MaxInt64) // end of the call that failed first: others may have waited for it
	for i := range calls {
		c := &calls[i]
		q := known[c.Index]
		if why := mismatch(c, q); why != nil {
			a.Failed++
			if c.End < first {
				first, a.Reason = c.End, why.Error()
			}
			continue
		}
		a.Events += len(c.Chunks)
		a.Lateness = append(a.Lateness, float64(q.Received-wall(due[c.Index]))/1e3)
		for k, at := range q.Sends {
			chunk := c.Chunks[k*merge]
			a.Sends++
			if k == 0 || chunk.At != c.Chunks[k*merge-1].At {
				a.Reads++
			}
			a.Arrival = append(a.Arrival, math.Abs(float64(wall(chunk.At)-at))/1e3)
			if k > 0 {
				gap := float64(chunk.At - c.Chunks[(k-1)*merge].At)
				if gaps = append(gaps, gap); gap > 0 {
					shown = append(shown, gap)
				}
				trueGaps = append(trueGaps, float64(at-q.Sends[k-1]))
			}
		}
		a.held(c, q, merge, wall)
		first, last := c.Chunks[0].At, c.Chunks[len(c.Chunks)-1].At
		ttft = append(ttft, float64(int64(first-c.Sent)-(q.First-q.Received)))
		e2e = append(e2e, float64(int64(last-c.Sent)-(q.Last-q.Received)))
		q.Sends = nil
	}
	slices.Sort(a.Arrival)
	slices.Sort(a.Lateness)
	if len(ttft) > 0 {
		a.TTFT, a.E2E = time.Duration(stat.Mean(ttft)), time.Duration(stat.Mean(e2e))
	}
	if len(gaps) > 0 {
		slices.Sort(gaps)
		slices.Sort(trueGaps)
		a.ITLTruth = time.Duration(stat.Quantile(trueGaps, 0.99))
		a.ITL = time.Duration(math.Round(stat.Quantile(gaps, 0.99) - stat.Quantile(trueGaps, 0.99)))
	}
	if len(shown) > 0 {
		slices.Sort(shown)
		a.ITLShown = time.Duration(stat.Quantile(shown, 0.99))
	}
}

// untold is what a stamp may be off by without a word of the client: what it
// leaves unsaid of a read, and the server's own way from its stamp to its send.
const untold = 4 * time.Millisecond

// held counts the events of a call that came in one read with a later one, and
// holds what the client says of them against the truth.
func (a *Comparison) held(c *result.Call, q *truth.Request, merge int, wall func(time.Duration) int64) {
	by := make(map[int32]time.Duration, len(c.Late))
	for _, l := range c.Late {
		by[l.Read] = l.By
	}
	for i, k := range c.Chunks {
		bound, told := by[k.Read]
		if told && i+1 < len(c.Chunks) && c.Chunks[i+1].Read == k.Read {
			a.Told++
		}
		if off := time.Duration(wall(k.At) - q.Sends[i/merge]); off > bound+untold {
			a.Beyond++
		}
	}
}

// mismatch says why a call does not agree with what the server sent.
func mismatch(c *result.Call, q *truth.Request) error {
	switch {
	case !c.OK():
		return errors.New(string(c.Class) + ": " + c.Error)
	case q == nil:
		return errors.New("a call that the server knows nothing of")
	case len(c.Chunks) != q.Events || q.Events == 0:
		return errors.New("a call has " + strconv.Itoa(len(c.Chunks)) + " events, and the server sent " + strconv.Itoa(q.Events))
	}
	return nil
}

// resident is the memory that this process has now, in bytes; 0: not known.
func resident() int64 { return procStatus("VmRSS:") }

// peakResident is the most that it had; 0: not known.
func peakResident() int64 { return procStatus("VmHWM:") }

func procStatus(key string) int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == key {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}
