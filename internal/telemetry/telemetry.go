// Package telemetry samples what surrounds a load while it lasts: the metrics of
// the engines, GPUs through nvidia-smi, CPU and memory of the machines. The
// readings are stamped on the clock of the calls.
//
//	rec := telemetry.Start(ctx, telemetry.Engine(gauge.SourceEngine, 0, time.Second, scrape), telemetry.GPU("", 500*time.Millisecond, nil, telemetry.LocalCommand))
//	defer rec.Stop()
//	stats, err := load.Run(ctx, ...)
//	rec.Stop()
//	readings := rec.Readings(stats.Start)
//
// Invariants: every source has a goroutine of its own, which has ended when Stop
// returns; no source touches the load's connections or goroutines; counters are
// kept as they are told, differences are made of them by package result; a source
// that cannot be read says so in one reading and costs nothing more.
//
// A sample costs the load's machine some 0.1 ms of a processor for an engine's page
// of 500 series and its exchange beside it, 0.06 ms for this host, 0.02 ms for eight
// GPUs (the benchmarks of this package, on two cores of a virtual machine): at the
// default intervals less than a thousandth of a processor. To the engine a page
// costs what its front end needs to write it, which is why the interval has a least.
//
// Absent on purpose: figures (package result makes them), an HTTP client (the
// caller has one, with the server's credentials), and sources that need a library
// of the device's vendor.
package telemetry

import (
	"context"
	"io"
	"maps"
	"math"
	"sync"
	"time"

	"perflab/internal/gauge"
)

// Source samples one thing until ctx ends and tells what it saw. It may be used
// for one run after the other.
type Source func(ctx context.Context, emit Emit)

// Emit takes a reading and the instant that it is of.
type Emit func(at time.Time, r gauge.Reading)

// Command runs a program where an engine runs and passes its output on until the
// program ends or ctx does.
type Command func(ctx context.Context, argv []string, stdout io.Writer) error

// Recording is sampling under way.
type Recording struct {
	cancel   context.CancelFunc
	sources  sync.WaitGroup
	mu       sync.Mutex
	readings []timedReading
	follow   func(timedReading) // is given each as it comes; nil: nobody is
}

type timedReading struct {
	at time.Time
	r  gauge.Reading
}

// since is the reading with its instant counted from start.
func (t timedReading) since(start time.Time) gauge.Reading {
	t.r.At = t.at.Sub(start)
	return t.r
}

// firstWait is how long Start waits for first readings at most: nvidia-smi needs
// that long to begin where the driver has to wake the devices.
const firstWait = 2 * time.Second

// Start begins to sample and returns when each source has told its first reading
// or ended, so that counters begin before the load does; or when ctx ends or
// two seconds have passed. Sampling goes on until Stop, also when ctx ends.
func Start(ctx context.Context, sources ...Source) *Recording {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	rec := &Recording{cancel: cancel}
	var begun sync.WaitGroup
	for _, sample := range sources {
		begun.Add(1)
		done := sync.OnceFunc(begun.Done)
		rec.sources.Go(func() {
			defer done()
			sample(inner, func(at time.Time, r gauge.Reading) {
				rec.add(at, r)
				done()
			})
		})
	}
	all := make(chan struct{})
	rec.sources.Go(func() {
		begun.Wait()
		close(all)
	})
	late := time.NewTimer(firstWait)
	defer late.Stop()
	select {
	case <-all:
	case <-late.C:
	case <-ctx.Done():
	}
	return rec
}

// add keeps a reading. What is not a number, which some drivers print for what they do
// not know, is missing: no file could hold it.
func (rec *Recording) add(at time.Time, r gauge.Reading) {
	maps.DeleteFunc(r.Values, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.readings = append(rec.readings, timedReading{at, r})
	if rec.follow != nil {
		rec.follow(timedReading{at, r})
	}
}

// Follow gives keep every reading as it comes, and before them those that were taken so far, their
// instants counted from start. keep is called by one goroutine at a time, and may not take long.
func (rec *Recording) Follow(start time.Time, keep func(gauge.Reading)) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for _, t := range rec.readings {
		keep(t.since(start))
	}
	rec.follow = func(t timedReading) { keep(t.since(start)) }
}

// Stop ends sampling, with a last reading of what can be asked at once, and waits
// for its goroutines. It is safe to call twice.
func (rec *Recording) Stop() {
	rec.cancel()
	rec.sources.Wait()
}

// Readings are those taken so far in the order of time, their instants counted
// from start.
func (rec *Recording) Readings(start time.Time) []gauge.Reading {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	out := make([]gauge.Reading, len(rec.readings))
	for i, s := range rec.readings {
		out[i] = s.since(start)
	}
	gauge.Sort(out)
	return out
}

// lastWait bounds the last sample of a source.
const lastWait = 2 * time.Second

// repeat calls sample now, every interval, and once more when ctx has ended; until
// sample says that there is no point.
func repeat(ctx context.Context, every time.Duration, sample func(context.Context) bool) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		if !sample(ctx) {
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWait)
	defer cancel()
	sample(last)
}
