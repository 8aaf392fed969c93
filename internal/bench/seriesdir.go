package bench

import (
	"fmt"
	"path/filepath"
	"perflab/internal/rundir"
)

// OpenSeries reads a series back from its directory and computes the figures
// of its points again from the runs' calls, with these percentiles besides
// those that the runs were made for. What the series concluded stays as it was
// written. damage says, one sentence each, which figures could not be computed
// again and are as they were stored.
func OpenSeries(dir string, percentiles ...float64) (f *SeriesFacts, damage []string, err error) {
	path := rundir.SeriesFile(dir)
	if path == "" {
		return nil, nil, fmt.Errorf("%s is no directory of a series: it has no sweep.json", dir)
	}
	f = &SeriesFacts{}
	if err := rundir.ReadJSON(path, f); err != nil {
		return nil, nil, fmt.Errorf("read the series in %s: %w", dir, err)
	}
	if len(f.Points) == 0 {
		return nil, nil, fmt.Errorf("%s has no point: nothing was measured", path)
	}
	for i := range f.Points {
		p := &f.Points[i]
		r, err := rundir.OpenRun(filepath.Join(dir, p.Dir))
		if err != nil {
			damage = append(damage, fmt.Sprintf("%s: the figures are those stored in %s (%v)", p.Load, filepath.Base(path), err))
			continue
		}
		if r.Damage != "" {
			damage = append(damage, p.Dir+": "+r.Damage)
		}
		s, err := r.Resummarise(append(f.wanted(), percentiles...)...)
		if err != nil {
			return nil, nil, fmt.Errorf("summarise %s: %w", filepath.Join(dir, p.Dir), err)
		}
		p.Judge(&Outcome{Header: r.Header, Summary: s, Calls: r.Calls}, f.SLOs, f.MaxErrors)
	}
	if f.Kind == KindRepeat {
		f.Spread = Spreads(f.Points)
	}
	return f, damage, nil
}

// wanted are the percentiles that the series shows and judges by.
func (f *SeriesFacts) wanted() []float64 {
	out := append([]float64{}, f.Percentiles...)
	for _, slo := range f.SLOs {
		out = append(out, PercentilesOf(slo.Metric)...)
	}
	return out
}
