package telemetry

import (
	"os"
	"testing"
	"time"

	"perflab/internal/result"
)

// TestThisHost reads this machine, directly and by the loop of its shell.
func TestThisHost(t *testing.T) {
	const every = 20 * time.Millisecond
	rec := Start(t.Context(), Host(every), RemoteHost("self", every, LocalCommand))
	awaitReadings(rec, func(n map[string]int) bool { return n[""] >= 3 && n["self"] >= 3 }, func(r result.Reading) string { return r.Node })
	rec.Stop()
	n := map[string]int{}
	for _, r := range rec.Readings(time.Now()) {
		share, ok := r.Values[result.CPUUtilization]
		if r.Error != "" || r.Values[result.MemoryUsed] <= 0 || r.Values[result.MemoryUsed] >= r.Values[result.MemoryTotal] || ok && (share < 0 || share > 1) {
			t.Errorf("reading %+v", r)
		}
		n[r.Node]++
	}
	if n[""] < 3 || n["self"] < 3 {
		t.Errorf("readings by node: %v, want 3 and more of each", n)
	}
}

func BenchmarkHost(b *testing.B) {
	s := hostStream{emit: func(time.Time, result.Reading) {}}
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
