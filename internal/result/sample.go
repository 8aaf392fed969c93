package result

import (
	"slices"
	"time"
)

// Samples returns, sorted and in ms, the samples of a family ("ttft", "itl")
// of which a Summary of the same calls has the statistics; nil when there is
// no such family. The calls must be those of a run that Summarize takes.
func Samples(h Header, calls []Call, family string) []float64 {
	f, ok := familyOf(family)
	if !ok {
		return nil
	}
	r := run{h: h, ok: succeeded(calls)}
	if len(r.ok) > 0 {
		r.steady = steadyWindow(r.ok)
	}
	var x []float64
	switch {
	case f.value != nil:
		x = r.values(f)
	case f.name == familyITL:
		x = r.pool((*Call).appendGaps).Samples
	default:
		x = r.pool((*Call).appendPerToken).Samples
	}
	slices.Sort(x)
	return x
}

// SteadyWindow returns the part of a run over which its steady_ figures were
// taken; ok is false when it has none.
func SteadyWindow(calls []Call) (from, to time.Duration, ok bool) {
	good := succeeded(calls)
	if len(good) == 0 {
		return 0, 0, false
	}
	w := steadyWindow(good)
	return w.from, w.to, w.ok
}

// succeeded returns the calls that figures are of, as Summarize takes them.
func succeeded(calls []Call) []*Call {
	var ok []*Call
	for i := range calls {
		if c := &calls[i]; c.OK() {
			c, _ = c.believed()
			ok = append(ok, c)
		}
	}
	return ok
}
