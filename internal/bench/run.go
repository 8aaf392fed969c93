package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/telemetry"
	"perflab/internal/workload"
)

// Run measures: wait until the server answers, warm up, load, summarise. An
// interrupted run returns its outcome (marked partial) beside ctx's cause, and
// one whose directory could not be finished returns it beside that error.
func (b Runner) Run(ctx context.Context) (*Outcome, error) {
	if err := rundir.Free(b.Dir); err != nil {
		return nil, err
	}
	tok, closeTok, err := b.tokenizer(ctx)
	if err != nil {
		return nil, err
	}
	defer closeTok()
	w, err := workload.OpenWith(b.Spec.Workload, tok)
	if err != nil {
		return nil, err
	}
	if err := ChatOnly(w, b.Spec.Backend); err != nil {
		return nil, err
	}
	capacity, err := b.checkCapacity(w)
	if err != nil {
		return nil, err
	}
	clients, err := b.clients(whole(w), b.progressHook())
	if err != nil {
		return nil, err
	}
	hash := fingerprint(w)
	defer closeAll(clients)
	if err := accepts(clients[0], w); err != nil {
		return nil, err
	}
	simulated, note, err := b.prepare(ctx, clients)
	if err != nil {
		return nil, err
	}
	h, err := b.clientHeader(w, clients[0], simulated)
	if err != nil {
		return nil, err
	}
	if err := b.warmUp(ctx, clients, w); err != nil {
		return nil, err
	}
	cache, cacheNote, err := b.prepareCache(ctx, clients, w)
	if err != nil {
		return nil, err
	}
	h.Fingerprint = hash()
	rec, stop, err := b.record(ctx, clients)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := b.open(ctx, w, clients); err != nil {
		return nil, err
	}
	out, profileNote, err := b.profiled(ctx, clients, func() (*Outcome, error) { return b.measure(ctx, h, w, tok, clients, cache, rec) })
	if out != nil {
		out.Notes = notes(note, b.instead, fleetNote(out.Header), capacity, cacheNote, profileNote, out.idled, w.Known(), droppedRows(w), conversations(w, out.Client))
	}
	return out, err
}

// checkCapacity refuses a load that this machine cannot send, and notes from where on it could
// not. Of a crew each has its own.
func (b Runner) checkCapacity(w *workload.Workload) (note string, err error) {
	if b.Crew != nil {
		return "", nil
	}
	if err := load.CheckCapacity(whole(w).atOnce(), len(b.Spec.Targets)); err != nil {
		return "", err
	}
	return capacityNote(w, len(b.Spec.Targets)), nil
}

// clientHeader is the header of a run that a client sends.
func (b Runner) clientHeader(w *workload.Workload, c *openai.Client, simulated bool) (result.Header, error) {
	h, err := b.Header(w, simulated)
	if err != nil {
		return h, err
	}
	h.Clock, h.Lengths = c.Clock(), lengths(c, w)
	if w.Spec().UntilPrecision != "" || b.Early != nil {
		h.Requests = 0 // what is found on the way decides
	}
	h.LateReads = h.Clock == result.ClockKernel // net/http does not say when a socket was empty
	return h, nil
}

// prepare waits for every target and asks what it serves. note says what could
// not be checked.
func (b Runner) prepare(ctx context.Context, clients []*openai.Client) (simulated bool, note string, err error) {
	b.phase(PhaseWaiting)
	for _, c := range clients {
		if b.Spec.ReadyTimeout > 0 {
			if err := c.Ready(ctx, b.Spec.ReadyTimeout); err != nil {
				return false, "", err
			}
		}
		info, err := c.Probe(ctx)
		if err != nil {
			return false, "", err
		}
		simulated = simulated || info.Simulated
		note = cmp.Or(note, info.Note)
	}
	return simulated, note, nil
}

// open makes the connections of the load, where this machine sends it.
func (b Runner) open(ctx context.Context, w *workload.Workload, clients []*openai.Client) error {
	if b.Crew != nil {
		return nil
	}
	return openConnections(ctx, whole(w), clients)
}

// openConnections makes those that the first instant needs: a burst, or the
// first requests of a closed loop, should not measure how fast this client
// connects.
func openConnections(ctx context.Context, w share, clients []*openai.Client) error {
	n := w.first()
	for _, c := range clients {
		if err := c.Open(ctx, (n+len(clients)-1)/len(clients)); err != nil {
			return err
		}
		c.Sockets() // those of the warm-up are not the run's
	}
	return nil
}

// HeapGrowth is GOGC during a load: the heap is the calls themselves, to be
// collected a few times and not all along.
const HeapGrowth = 400

// heapGoal is what the heap may grow to by collecting seldom. The most that an accumulator
// holds is some 700 MB, with ten million rows: so the process stays near 1 GB.
const heapGoal = 800 << 20

// growthEvery is after how many calls the growth is looked at: seconds at any rate, since
// to change it stops the process for some 50 us.
const growthEvery = 1 << 15

// heapGrowth is GOGC for what an accumulator holds. Below 25 collecting costs more
// than the memory is worth.
func heapGrowth(held int) int {
	return max(25, min(HeapGrowth, 100*(heapGoal-held)/max(held, 1)))
}

// accumulator is what the run's calls go into, with the options of its figures.
func (b Runner) accumulator(h result.Header) (opt result.Options, acc *result.Accumulator, err error) {
	if opt, err = b.Spec.summaryOptions(); err == nil {
		acc, err = result.NewAccumulator(h, opt)
	}
	return opt, acc, err
}

// collector takes calls as they end into what figures are made of and, where there is
// one, into the directory. The more is held, the sooner the heap is collected.
func (b Runner) collector(tok workload.Tokenizer, acc *result.Accumulator, dir *rundir.Writer) *outputCounter {
	bare := func(c *result.Call) {
		if !b.Spec.KeepText {
			c.Text = "" // kept until here for the next turn's prompt, or to be counted
		}
		b.conceal(c)
	}
	growth := HeapGrowth
	return &outputCounter{tok: tok, deferred: b.Spec.Workload.Tokenizer == workload.ServerTokenizer, emit: func(c result.Call) {
		bare(&c)
		acc.Add(&c)
		if acc.Total%growthEvery == 0 {
			if p := heapGrowth(acc.Size()); p < growth {
				growth = p
				debug.SetGCPercent(p)
			}
		}
		if dir != nil {
			dir.Add(&c)
		}
	}, keep: func(c result.Call) {
		if bare(&c); dir != nil {
			dir.AddUncounted(&c)
		}
	}}
}

// follow writes readings down as they come, from the start of the load on, which begun tells and is not
// kept up by. done ends that a start is waited for.
func follow(rec *telemetry.Recording, keep func(gauge.Reading), simulated bool) (begun func(start time.Time), done func()) {
	starts := make(chan time.Time, 1)
	go func() {
		if start, ok := <-starts; ok {
			rec.Follow(start, func(r gauge.Reading) {
				if usable(r, simulated) {
					keep(r)
				}
			})
		}
	}()
	return func(start time.Time) { starts <- start }, func() { close(starts) }
}

// measure runs the load and summarises. What figures need is in memory, so a disk
// that fills up costs the directory and not the figures.
func (b Runner) measure(ctx context.Context, h result.Header, w *workload.Workload, tok workload.Tokenizer, clients []*openai.Client, cache *cacheMonitor, rec *telemetry.Recording) (*Outcome, error) {
	out := &Outcome{Header: h, Totals: w.Totals()}
	opt, acc, err := b.accumulator(h)
	if err != nil {
		return nil, err
	}
	var dir *rundir.Writer
	if b.Dir != "" {
		if dir, err = rundir.Create(b.Dir, h); err != nil {
			return nil, err
		}
		defer dir.Abandon()
	}
	if b.Progress != nil {
		b.Progress.Planned.Store(int64(w.Len()))
	}
	var unwritten error // of the header, of which the end of the load is no time to fail
	who := func(f *result.Fleet) error {
		out.Header = sentBy(h, f)
		if acc.SetHeader(out.Header); dir != nil {
			unwritten = dir.Rewrite(out.Header)
		}
		return unwritten
	}
	b.phase(PhaseMeasuring)
	defer debug.SetGCPercent(debug.SetGCPercent(HeapGrowth))
	count := b.collector(tok, acc, dir)
	precision, sure := watch(w.Spec()), b.Early.begin(w.Len(), h, opt)
	looked, prompts := b.inOrder(precision.add), promptsOf(w, h, cache)
	o := sure.options(precision.options(b.options(whole(w))))
	if dir != nil && (b.Spec.Telemetry > 0 || len(b.Sources) > 0) {
		var written func()
		o.Begun, written = follow(rec, dir.KeepReadings(), h.Simulated)
		defer written()
	}
	stats, err := b.send(ctx, w, clients, o, keeping{h, who, dir.Save}, func(c result.Call) {
		looked.add(&c)
		sure.add(&c)
		prompts.add(&c)
		count.add(c)
	})
	if err != nil {
		return nil, err
	}
	looked.finish()
	count.finish()
	if h.Requests == 0 {
		out.Totals = sentTotals(acc)
	}
	out.Client, out.Early, out.idled = &stats.Client, sure.ended(), idleNote(stats, b.Spec.MaxIdle)
	out.Client.Start = stats.Start.Round(0).UTC()
	out.Client.Precision, out.Client.Profiled = precision.found(), b.Spec.Profile
	rec.Stop()
	out.Readings = usableReadings(rec.Readings(stats.Start), h.Simulated)
	out.Client.Cache, out.Prompts = cache.usage(ctx), prompts.lines()
	if err := out.summarise(acc, opt); err != nil {
		return nil, err
	}
	return b.kept(ctx, out, acc, dir, unwritten)
}

// kept finishes the directory of a run, where there is one; unwritten is what went wrong with it before.
func (b Runner) kept(ctx context.Context, out *Outcome, acc *result.Accumulator, dir *rundir.Writer, unwritten error) (*Outcome, error) {
	if dir != nil {
		out.Dir = b.Dir
		dir.Condensed(acc)
		err := unwritten
		if err == nil {
			err = dir.KeepPrompts(out.Prompts).Finish(out.Client, &out.Summary, out.Readings)
		}
		if err != nil {
			out.Dir = dir.Unfinished()
			return out, fmt.Errorf("the run directory is incomplete: %w", err)
		}
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	return out, nil
}

// send has the load sent, by this machine or by the crew, whose fleet k.who is told.
func (b Runner) send(ctx context.Context, w *workload.Workload, clients []*openai.Client, o load.Options, k keeping, emit func(result.Call)) (load.Stats, error) {
	if b.Crew != nil {
		return b.sentByCrew(ctx, w, o, k, emit)
	}
	stats, err := load.Run(ctx, w.All(), Senders(clients), o, emit)
	stats.Client.Sockets, stats.Client.Opened = sockets(clients)
	return stats, err
}

// sockets are those that clients had open at most, and that they opened in all.
func sockets(clients []*openai.Client) (most, opened int) {
	for _, c := range clients {
		m, o := c.Sockets()
		most, opened = most+m, opened+o
	}
	return most, opened
}
