package compare

import (
	"math"

	"perflab/internal/result"
)

// StandardError is the standard error of one figure of a run as a share of it, by its
// calls alone: by the figure's own interval where it has one, else by blocks of
// the run's time. It is false where neither can be made: what one launch says
// of its own noise is then not known, which is not the same as none.
func StandardError(m Run, metric string) (float64, bool) {
	d, err := result.Lookup(metric)
	if err != nil {
		return 0, false
	}
	v, ok := m.Summary.Figures[d.Name]
	if !ok || !(v > 0) {
		return 0, false
	}
	if i, ok := m.Summary.Intervals[d.Name]; ok {
		se := (i[1] - i[0]) / 2 / normal95 / v
		return se, se > 0 && !math.IsInf(se, 0)
	}
	r := newBlockedRun(m)
	e, why := r.estimate(d, v, r.blocks)
	if why != "" {
		return 0, false
	}
	se, ok := e.Estimate.Error()
	return se, ok && se > 0
}

// normal95 is how many standard errors a 95 % interval reaches to each side.
const normal95 = 1.959964
