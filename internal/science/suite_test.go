package science

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var only = flag.String("landscape", "", "only landscapes whose names have this in them")

// TestSurvey prints what each landscape is.
func TestSurvey(t *testing.T) {
	for _, l := range Suite() {
		if *only != "" && !strings.Contains(l.Name, *only) {
			continue
		}
		begun := time.Now()
		w, err := Open(l)
		if err != nil {
			t.Error(err)
			if w == nil {
				continue
			}
		}
		var regrets []float64
		near, refused, pruned := 0, 0, 0
		for _, c := range w.valid {
			r := w.Regret(c)
			if _, why := w.Truth(c); why != "" {
				refused++
			} else if r == 1 {
				pruned++
			}
			if r < 0.02 {
				near++
			}
			regrets = append(regrets, r)
		}
		slices.Sort(regrets)
		c, f := w.Best()
		b, _ := w.Truth(w.Baseline)
		fmt.Printf("%-26s of %5d valid %4d refused %3d miss %4d near %3d base regret %.3f median %.2f  %6.1fs best %v %s %.4g base %.4g", l.Name, len(w.product()), len(w.valid), refused, pruned, near,
			w.Regret(w.Baseline), regrets[len(regrets)/2], time.Since(begun).Seconds(), key(c), l.Objective.Metric, f[l.Objective.Metric], b[l.Objective.Metric])
		for _, s := range l.Objective.SLOs {
			fmt.Printf(" | %s best %.4g base %.4g", s, f[s.Metric], b[s.Metric])
		}
		fmt.Println()
	}
}
