package drift

import (
	"slices"
	"time"
)

// Staleness is how old the newest figure is, held against the usual gap between figures.
type Staleness struct {
	Newest time.Time     `json:"newest"` // of the points that count; zero: there is none
	Age    time.Duration `json:"age_ns"`
	Gap    time.Duration `json:"gap_ns,omitzero"` // median between one point and the next; 0: too few to tell
	Stale  bool          `json:"stale"`
	Voids  int           `json:"voids,omitempty"` // void points since: measured, and not to be believed
}

// fewestGaps tell what is usual.
const fewestGaps = 3

// A history is stale when its newest point is older than usualGaps gaps, and half older again
// than nine gaps in ten are, so that a series that rests on weekends is not stale on Mondays.
const (
	usualGaps = 3
	longGaps  = 1.5
)

// Age says how old the newest point is at an instant, and whether that is unusual. Points
// that are void or have no value do not count. Points of one instant are one.
func Age(points []Point, now time.Time) Staleness {
	var s Staleness
	var gaps []time.Duration
	for _, p := range points {
		if !p.counts() {
			s.Voids++
			continue
		}
		if !s.Newest.IsZero() && p.Time.After(s.Newest) {
			gaps = append(gaps, p.Time.Sub(s.Newest))
		}
		s.Newest, s.Voids = p.Time, 0
	}
	if s.Newest.IsZero() {
		return s
	}
	s.Age = max(0, now.Sub(s.Newest))
	if len(gaps) < fewestGaps {
		return s
	}
	slices.Sort(gaps)
	s.Gap = gaps[len(gaps)/2]
	long := gaps[len(gaps)*9/10]
	s.Stale = s.Age > usualGaps*s.Gap && float64(s.Age) > longGaps*float64(long)
	return s
}
