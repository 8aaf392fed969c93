package source

import (
	"fmt"
	"maps"

	"perflab/internal/compare"
	"perflab/internal/redefine"
	"perflab/internal/result"
)

// addViews computes the figures of perflab's own runs by the definitions of the other
// clients among the sides, whose files keep no more than figures.
func addViews(sides []compare.Side) error {
	var all []map[string]result.Definition
	percentiles := []float64{}
	for _, s := range sides {
		for _, m := range s.Runs {
			if len(m.Summary.Definitions) > 0 && !knownDefinitions(all, m.Summary.Definitions) {
				all = append(all, m.Summary.Definitions)
			}
			percentiles = append(percentiles, m.Summary.Percentiles()...)
		}
	}
	for i := range sides {
		for k := range sides[i].Runs {
			m := &sides[i].Runs[k]
			if m.Header.Imported != nil || len(m.Calls) == 0 {
				continue
			}
			for _, defs := range all {
				if maps.Equal(defs, m.Summary.Definitions) {
					continue
				}
				if m.Summary.OneIn > 1 {
					m.Views = append(m.Views, unmade(defs, m.Summary.OneIn))
					continue
				}
				f, err := redefine.By(defs, m.Header, percentiles, m.Calls)
				if err != nil {
					return fmt.Errorf("compute %s by the definitions of another client: %w", m.Name, err)
				}
				m.Views = append(m.Views, compare.View{Summary: f.Summary, Missing: f.Missing, Sampler: f.Sampler})
			}
		}
	}
	return nil
}

// knownDefinitions reports whether definitions are among those that are known.
func knownDefinitions(all []map[string]result.Definition, defs map[string]result.Definition) bool {
	for _, known := range all {
		if maps.Equal(known, defs) {
			return true
		}
	}
	return false
}

// unmade is the view of a run of which one call in every so many is kept.
func unmade(defs map[string]result.Definition, every int) compare.View {
	v := compare.View{Missing: map[string]string{}}
	for name := range defs {
		v.Missing[name] = fmt.Sprintf("of its calls one in %d is kept", every)
	}
	return v
}
