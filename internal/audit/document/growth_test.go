//go:build !race

package document

import (
	"runtime"
	"testing"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// TestWorkGrowsWithSize: four times the study takes some four times the work,
// whatever the checks look for pairs in. What is counted is allocations, which
// do not depend on the machine.
func TestWorkGrowsWithSize(t *testing.T) {
	work := func(n int) float64 {
		f := interop.Read("wide.md", wide(n))
		if len(f.Runs) != n {
			t.Fatalf("%d runs of %d", len(f.Runs), n)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Audit([]interop.File{f}, audit.Options{})
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs - before.Mallocs)
	}
	few, many := work(manyRuns+20), work(4*(manyRuns+20))
	if many > 6*few {
		t.Errorf("%d experiments take %.0f allocations, and four times as many %.0f", manyRuns+20, few, many)
	}
	t.Logf("%.0f and %.0f allocations", few, many)
}
