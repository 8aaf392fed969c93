package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// Crew is other machines that send a run's load.
type Crew interface {
	// Load has agents send the job's load, shard i by the agent that is number i+1 in the calls
	// and place i in the fleet, and gives every call that comes back to emit, by any goroutine
	// and in any order. When ctx ends, nothing more is sent and what is in flight is cancelled.
	//
	// An agent that is lost is no error: its place in the fleet says why, and nobody takes over what it
	// did not send. An error says that there was no load.
	//
	// Of the stats Start, in which the offsets of the calls are on this machine's clock, and Partial
	// count; the rest is in the fleet.
	Load(ctx context.Context, job CrewJob, emit func(result.Call)) (load.Stats, *result.Fleet, error)
}

// CrewJob is a load for a crew.
type CrewJob struct {
	Spec     Spec               // of the run, with the tokenizer that was found
	APIKey   string             // a secret: it goes to the server under test alone
	Workload *workload.Workload // opened
	Progress *load.Progress     // that the crew adds to

	Simulated bool // what answers is a simulator

	Header result.Header // of the run, but for who sends it
	Dir    string        // of the run, on this machine; "": it keeps none

	Keep   func()                    // called before an agent hears that its calls are here: a kill of this process does not take them then
	Ready  func(*result.Fleet) error // called before the start, when all are ready: who sends what; an error ends the load
	Begun  func(start time.Time)     // called once when the start instant has come, on this machine's clock
	Enough <-chan struct{}           // closed once nothing more is to be sent: see Shard.Enough
}

// Agents is how many of so many agents have a part in the load: none has less than one request,
// or conversation, and one place of a limit on calls in flight.
func (j CrewJob) Agents(there int) int {
	if most := j.Workload.MostShards(); most > 0 {
		return min(there, most)
	}
	return there
}

// Shard is the job of the agent that sends shard i of n. Its files are still to be fetched.
func (j CrewJob) Shard(i, n int) ShardJob {
	return ShardJob{Spec: j.Spec, Index: i, Of: n, APIKey: j.APIKey, Totals: j.Workload.Totals(), Simulated: j.Simulated}
}

// keeping is what the directory of a run has to do with a crew: who is told who sends the load, keep
// gives the kernel the calls that came.
type keeping struct {
	header result.Header
	who    func(*result.Fleet) error
	keep   func()
}

// sentByCrew has the crew send the load. k.who is told who sends it, before the load and, in full, after.
func (b Runner) sentByCrew(ctx context.Context, w *workload.Workload, o load.Options, k keeping, emit func(result.Call)) (load.Stats, error) {
	p := cmp.Or(b.Progress, new(load.Progress))
	enough := make(chan struct{})
	var one sync.Mutex
	ended := false
	job := CrewJob{
		Spec: b.Spec, APIKey: b.APIKey, Workload: w, Simulated: k.header.Simulated, Progress: p, Ready: k.who, Enough: enough,
		Header: k.header, Dir: b.place(),
		Begun: func(start time.Time) {
			p.Running.Store(true)
			if o.Begun != nil {
				o.Begun(start)
			}
		},
		Keep: func() {
			one.Lock()
			defer one.Unlock()
			k.keep()
		},
	}
	stats, fleet, err := b.Crew.Load(ctx, job, func(c result.Call) {
		one.Lock()
		defer one.Unlock()
		emit(c)
		if !ended && o.Enough != nil && o.Enough.Load() {
			ended = true
			close(enough)
		}
	})
	if err != nil {
		return stats, err
	}
	if fleet == nil || len(fleet.Agents) == 0 {
		return stats, errors.New("send the load: the fleet does not say who sent it")
	}
	stopped := stats.Client.StopNote
	stats.Client = fleet.Client()
	switch {
	case ctx.Err() != nil: // all of them say the same
		stats.Client.Partial, stats.Client.StopNote = true, context.Cause(ctx).Error()
	case stats.Partial && !stats.Client.Partial:
		stats.Client.Partial, stats.Client.StopNote = true, cmp.Or(stopped, "the load was stopped")
	}
	_ = k.who(fleet) // it keeps its error: the calls are here
	return stats, nil
}

// place is where the run's directory is on this machine; "" for none.
func (b Runner) place() string {
	if b.Dir == "" {
		return ""
	}
	dir, err := filepath.Abs(b.Dir)
	if err != nil {
		return b.Dir
	}
	return dir
}

// sentBy is the header of a run that a fleet sent.
func sentBy(h result.Header, f *result.Fleet) result.Header {
	h.Fleet, h.SelfCheck = f, nil // which is of this machine
	h.Clock = result.ClockKernel
	for _, a := range f.Agents {
		if a.Clock != result.ClockKernel {
			h.Clock = a.Clock
		}
	}
	h.LateReads = h.Clock == result.ClockKernel
	return h
}

// fleetNote says who sent a load, and what became of its concurrency limit; "" where no fleet did.
func fleetNote(h result.Header) string {
	if h.Fleet == nil {
		return ""
	}
	names := h.Fleet.Names()
	text := "agent " + names[0] + " sent the load"
	if n := len(names); n > 1 {
		text = fmt.Sprintf("%d agents sent the load, each every %s request: %s and %s", n, ordinal(n), strings.Join(names[:n-1], ", "), names[n-1])
	}
	limits := h.Fleet.Limits()
	switch {
	case limits == "":
		return text
	case h.HasRate():
		return fmt.Sprintf("%s; the limit of %d in flight is split into %s, which is not exactly one limit: an agent may hold a request back while another one has a free place", text, h.Limit, limits)
	}
	return fmt.Sprintf("%s; the %d places of the closed loop are split into %s, and each agent refills its own", text, h.Limit, limits)
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		suffix = cmp.Or(map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10], suffix)
	}
	return fmt.Sprint(n, suffix)
}

// crewSpread is how far apart in time the calls of agents may come in: each ships what has ended
// several times a second.
const crewSpread = time.Second

// ordered gives calls on in the order in which they ended, as those of one machine come, where
// agents bring theirs at most crewSpread apart.
type ordered struct {
	give   func(*result.Call)
	held   []result.Call // ascending by End
	newest time.Duration
	direct bool // they come in that order
}

// inOrder has calls looked at in the order in which they ended.
func (b Runner) inOrder(give func(*result.Call)) *ordered {
	return &ordered{give: give, direct: b.Crew == nil}
}

func (o *ordered) add(c *result.Call) {
	if o.direct {
		o.give(c)
		return
	}
	i, _ := slices.BinarySearchFunc(o.held, c.End, func(h result.Call, end time.Duration) int { return cmp.Compare(h.End, end) })
	o.held = slices.Insert(o.held, i, *c)
	o.newest = max(o.newest, c.End)
	o.release(o.newest - crewSpread)
}

// release gives those on that ended before an instant.
func (o *ordered) release(before time.Duration) {
	n := 0
	for n < len(o.held) && o.held[n].End < before {
		o.give(&o.held[n])
		n++
	}
	o.held = slices.Delete(o.held, 0, n)
}

// finish gives on what is held.
func (o *ordered) finish() { o.release(1<<63 - 1) }
