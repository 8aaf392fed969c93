//go:build unix

package store_test

import (
	"os"
	"syscall"
	"testing"

	"perflab/internal/store"
	"perflab/internal/test/storetest"
)

// Sizes that the index is made for.
const (
	benchRuns    = 10_000
	benchStudies = 1_000
)

// many is an index of them.
func many(b *testing.B) (*store.Store, string) {
	if benchRoot == "" {
		var err error
		if benchRoot, err = os.MkdirTemp("", "perflab-store"); err != nil {
			b.Fatal(err)
		}
		storetest.Many(b, benchRoot, benchRuns, benchStudies)
	}
	s := open(b, store.Options{Roots: []string{benchRoot}})
	storetest.Sync(b, s)
	return s, benchRoot
}

// busy reports the processor time of a step, which other programs of the machine change less than its
// time.
func busy(b *testing.B) func() {
	now := func() float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
	}
	began := now()
	return func() { b.ReportMetric((now()-began)/float64(b.N), "cpu-ms/op") }
}

func BenchmarkList(b *testing.B) {
	s, _ := many(b)
	for name, q := range map[string]store.Query{
		"newest":   {Figures: []string{"p99_ttft", "output_throughput", "mean_tpot"}},
		"figure":   {Order: "-output_throughput", Figures: []string{"p99_ttft", "output_throughput"}},
		"filtered": {Filter: "engine=vllm model=~qwen p99_ttft<=200 simulated=false kind=run", Order: "p99_ttft", Figures: []string{"p99_ttft"}},
		"words":    {Filter: "llama vllm void"},
		"last":     {Order: "started", Offset: benchRuns, Limit: 50},
	} {
		b.Run(name, func(b *testing.B) {
			defer busy(b)()
			for b.Loop() {
				if p := storetest.List(b, s, q); len(p.Entries) == 0 {
					b.Fatal("nothing is listed")
				}
			}
		})
	}
	b.Run("groups", func(b *testing.B) {
		defer busy(b)()
		for b.Loop() {
			if g, err := s.Groups(b.Context(), store.Query{}, "config"); err != nil || len(g) == 0 {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRun is what a run's page needs: the row with all figures, and what plots draw.
func BenchmarkRun(b *testing.B) {
	s, _ := many(b)
	id := storetest.List(b, s, store.Query{Filter: "kind=run parent=none", Limit: 1}).Entries[0].ID
	defer busy(b)()
	for b.Loop() {
		e, err := s.Get(b.Context(), id)
		if err != nil || len(e.Figures) == 0 {
			b.Fatal(err)
		}
		if r, err := s.Reduction(b.Context(), id); err != nil || len(r.CDF) == 0 {
			b.Fatal(err)
		}
	}
}

func BenchmarkSyncUnchanged(b *testing.B) {
	s, _ := many(b)
	storetest.Sync(b, s)
	defer busy(b)()
	for b.Loop() {
		if c := storetest.Sync(b, s); c.Any() {
			b.Fatalf("%+v", c)
		}
	}
}

// BenchmarkReopen is the first look of a server that starts again.
func BenchmarkReopen(b *testing.B) {
	_, root := many(b)
	defer busy(b)()
	for b.Loop() {
		s, err := store.Open(b.Context(), store.Options{Roots: []string{root}})
		if err != nil {
			b.Fatal(err)
		}
		storetest.Sync(b, s)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRebuild(b *testing.B) {
	s, _ := many(b)
	defer busy(b)()
	for b.Loop() {
		if err := s.Forget(b.Context()); err != nil {
			b.Fatal(err)
		}
		if c := storetest.Sync(b, s); len(c.Added) != benchRuns+3*benchStudies {
			b.Fatalf("%d of %d", len(c.Added), benchRuns+3*benchStudies)
		}
	}
}
