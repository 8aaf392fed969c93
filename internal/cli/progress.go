package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/load"
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
	done, all := int(p.Done.Load()), int(p.Planned.Load())
	seconds := time.Since(since).Seconds()
	// What matters most comes first: a narrow terminal cuts the end.
	parts := []string{fmt.Sprintf("%s %d/%d", console.Bar(done, all, 16), done, all)}
	if all == 0 { // time decides how many
		parts[0] = fmt.Sprintf("%d done", done)
	}
	if n := p.Failed.Load(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", n))
	}
	if t := console.Left(done, all, since); t != "" {
		parts = append(parts, t)
	}
	parts = append(parts,
		fmt.Sprintf("%.1f req/s", float64(done)/seconds),
		fmt.Sprintf("%.0f tok/s", float64(p.Tokens.Load())/seconds),
		fmt.Sprintf("%d in flight", p.InFlight.Load()))
	return strings.Join(parts, "  ")
}
