package candidate

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

func TestDump(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(studies())) {
		s := studies()[name]
		b := time.Now()
		f := field(t, s)
		arms := f.Arms()
		fmt.Printf("== %s %d arms in %v, %d plans\n", name, len(arms), time.Since(b), len(f.plans))
		for _, a := range arms {
			if a.Refused == "" {
				fmt.Printf("   %-50s %s  %v\n", a.Label, a.Prior, a.Config)
			} else {
				fmt.Printf(" X %-50s %s\n", a.Label, a.Refused)
			}
		}
		fmt.Println("-- steps of the baseline")
		for _, c := range f.Steps(s.Baseline) {
			fmt.Printf("   %-40s %s\n", c.Label, c.Why)
		}
		last := arms[0]
		for _, a := range arms {
			if a.Refused == "" && len(a.Config) > len(last.Config) {
				last = a
			}
		}
		fmt.Println("-- removals of", last.Label, f.Settings(last.Config), f.Numerics(last.Config))
		for _, c := range f.Removals(last.Config) {
			fmt.Printf("   %-40s %v\n", c.Label, c.Set)
		}
		fmt.Println("-- domain")
		for _, d := range f.Domain() {
			fmt.Printf("   %s %q %v\n", d.Name, d.Values, d.Ordered)
		}
	}
}
