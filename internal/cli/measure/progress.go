package measure

import (
	"sync"
	"time"

	"perflab/internal/bench"
	"perflab/internal/load"
	"perflab/internal/outcome"
	"perflab/internal/report/progress"
)

// phase holds the phase a run is in, set by the run and read by the live
// line.
type phase struct {
	mu    sync.Mutex
	text  string
	since time.Time
}

func (p *phase) set(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text, p.since = text, time.Now()
}

func (p *phase) get() (string, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text, p.since
}

// benchLine is the live line of one run.
func benchLine(phase *phase, p *load.Progress) string {
	text, since := phase.get()
	if text != bench.PhaseMeasuring {
		return text
	}
	return progressText(p, since)
}

// progressText is how far a run is, how fast, and how long it may take.
func progressText(p *load.Progress, since time.Time) string {
	return progress.Load(outcome.UnderwayLoad{
		Planned: int(p.Planned.Load()), Done: int(p.Done.Load()), Failed: int(p.Failed.Load()),
		InFlight: int(p.InFlight.Load()), Tokens: int(p.Tokens.Load()), Seconds: time.Since(since).Seconds(),
	})
}
