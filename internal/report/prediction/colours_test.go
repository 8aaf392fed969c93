package prediction

import (
	"slices"
	"testing"

	"perflab/internal/report/plot"
)

// TestStepColours: the terms that are there have colours of their own while there are enough.
func TestStepColours(t *testing.T) {
	for _, used := range [][]string{
		{"weights", "arithmetic", "host", "launches"},
		{"weights", "arithmetic", "kv_reads", "drafting", "fetching", "launches"},
		{"arithmetic", "expert_reads", "experts", "kv_reads", "attention", "collectives", "elementwise", "host", "drafting", "launches"},
	} {
		there := map[string]bool{}
		for _, key := range used {
			there[key] = true
		}
		all := stepColours(there)
		var colours []string
		for i, term := range stepTerms {
			if there[term.key] {
				colours = append(colours, all[i])
			} else if i < plot.Series && all[i] != plot.SeriesClass(i) {
				t.Errorf("%v: %s, which is not there, has %s", used, term.key, all[i])
			}
		}
		if slices.Sort(colours); len(slices.Compact(slices.Clone(colours))) != len(used) {
			t.Errorf("%v have %v", used, colours)
		}
	}
}
