package telemetry

import (
	"os"
	"testing"
	"time"

	"perflab/internal/gauge"
)

// TestThisHost reads this machine, directly and by the loop of its shell.
func TestThisHost(t *testing.T) {
	const every = 20 * time.Millisecond
	rec := Start(t.Context(), Host(every), RemoteHost("self", every, LocalCommand))
	awaitReadings(rec, func(n map[string]int) bool { return n[""] >= 3 && n["self"] >= 3 }, func(r gauge.Reading) string { return r.Node })
	rec.Stop()
	n := map[string]int{}
	for _, r := range rec.Readings(time.Now()) {
		share, ok := r.Values[gauge.CPUUtilization]
		if r.Error != "" || r.Values[gauge.MemoryUsed] <= 0 || r.Values[gauge.MemoryUsed] >= r.Values[gauge.MemoryTotal] || ok && (share < 0 || share > 1) {
			t.Errorf("reading %+v", r)
		}
		n[r.Node]++
	}
	if n[""] < 3 || n["self"] < 3 {
		t.Errorf("readings by node: %v, want 3 and more of each", n)
	}
}

func BenchmarkHost(b *testing.B) {
	s := hostStream{emit: func(time.Time, gauge.Reading) {}}
	b.ReportAllocs()
	for b.Loop() {
		for _, name := range []string{statFile, memoryFile} {
			text, err := os.ReadFile(name)
			if err != nil {
				b.Fatal(err)
			}
			s.Write(text)
		}
	}
}
