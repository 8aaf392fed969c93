package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkStart is the time from starting the program to its end when it has
// nothing to do but print its help: the least of the rounds, since all else is
// the machine's.
func BenchmarkStart(b *testing.B) {
	path := filepath.Join(b.TempDir(), "perflab")
	build := exec.Command("go", "build", "-trimpath", "-o", path, ".")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	best := time.Hour
	for b.Loop() {
		start := time.Now()
		if err := exec.Command(path, "--help").Run(); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(best)/1e6, "min-ms")
}
