package report

import (
	"math"
	"testing"
	"time"
)

func TestGainText(t *testing.T) {
	for _, c := range []struct {
		gain         *float64
		metric, want string
		better       string
	}{
		{new(0.592), "total_token_throughput", "+59.2 %", "higher"},
		{new(-0.379), "total_token_throughput", "-37.9 %", "higher"},
		{new(0.0), "total_token_throughput", "+0.0 %", "higher"},
		{new(0.63), "mean_e2el_ms", "1.63x faster", "lower"},
		{new(-0.2), "mean_e2el_ms", "1.25x slower", "lower"},
		{new(0.001), "mean_e2el_ms", "1.00x (no change)", "lower"},
		{new(-0.001), "mean_e2el_ms", "1.00x (no change)", "lower"},
		{new(1.0), "failed", "2.00x lower", "lower"},
		{nil, "mean_e2el_ms", missing, "lower"},
		{new(math.NaN()), "mean_e2el_ms", missing, "lower"},
		{new(-1.0), "mean_e2el_ms", missing, "lower"},
	} {
		if got := gainText(c.gain, metric(c.metric), c.better); got != c.want {
			t.Errorf("gain of %s: %q, want %q", c.metric, got, c.want)
		}
	}
}

func TestRanking(t *testing.T) {
	r := []ranked{{"A", 1, "1.00"}, {"B", 3, "3.00"}, {"C", 3.001, "3.00"}}
	if got, want := ranking(r, false), "C (3.00) = B (3.00) > A (1.00)"; got != want {
		t.Errorf("higher: %s, want %s", got, want)
	}
	if got, want := ranking(r, true), "A (1.00) < B (3.00) = C (3.00)"; got != want {
		t.Errorf("lower: %s, want %s", got, want)
	}
}

// TestSpan: when something ran is said as far as it is known, and an end without a
// beginning is not.
func TestSpan(t *testing.T) {
	at := time.Date(2026, 11, 20, 8, 30, 12, 0, time.UTC)
	for _, tt := range []struct {
		from, to time.Time
		want     string
	}{
		{at, at.Add(2 * time.Hour), "2026-11-20 08:30 UTC to 2026-11-20 10:30 UTC"},
		{at, at.Add(20 * time.Second), "2026-11-20 08:30 UTC"}, {at, time.Time{}, "2026-11-20 08:30 UTC"}, {time.Time{}, at, ""}, {},
	} {
		if got := span(tt.from, tt.to); got != tt.want {
			t.Errorf("%v to %v: %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}
