package result

import (
	"maps"
	"math"
	"slices"
)

// Complete adds the figures of own that s lacks, which were computed from the
// calls that came with s. One row must not hold two meanings, so left out are
// families and scalars that s has by a definition which calls do not give,
// families of which s and own have a figure in common and not its value, and
// those that lacks names, of which the calls tell too little. An interval comes
// along where the figure is the same.
func (s *Summary) Complete(own Summary, lacks ...string) {
	figures, intervals, samples, over := maps.Clone(s.Figures), map[string][2]float64{}, map[string]int{}, map[string]float64{}
	if figures == nil {
		figures = map[string]float64{}
	}
	unlike := s.disagreeing(own)
	for name, v := range own.Figures {
		m, err := Lookup(name)
		if err != nil || slices.Contains(lacks, m.Name) || slices.Contains(lacks, m.Family) || unlike[m.Family] {
			continue
		}
		if given, has := s.Figures[name]; !has && s.Definition(name).ofEvents() {
			figures[name] = v
		} else if !has || !agrees(v, given) {
			continue
		}
		if i, ok := own.Intervals[name]; ok {
			intervals[name] = i
		}
		if v, ok := own.OverCalls[name]; ok {
			over[name] = v
		}
		if n, ok := own.Samples[m.Family]; ok {
			samples[m.Family] = n
		}
	}
	maps.Copy(intervals, s.Intervals)
	maps.Copy(samples, s.Samples)
	if maps.Copy(over, s.OverCalls); len(over) > 0 {
		s.OverCalls = over
	}
	s.Figures, s.Intervals, s.Samples = figures, intervals, samples
	if s.Failures == nil {
		s.Failures = own.Failures
	}
	s.Simulated = s.Simulated || own.Simulated
}

// disagreeing are the families of which s and own have a figure in common, and not
// the same one.
func (s *Summary) disagreeing(own Summary) map[string]bool {
	out := map[string]bool{}
	for name, given := range s.Figures {
		m, err := Lookup(name)
		if v, ok := own.Figures[name]; ok && err == nil && m.Family != "" && !agrees(v, given) {
			out[m.Family] = true
		}
	}
	return out
}

// agrees reports whether a figure computed from a file's calls is the one that
// the file gives: clients write times with three to nine digits.
func agrees(computed, given float64) bool {
	return math.Abs(computed-given) <= 0.01+1e-3*math.Abs(given)
}

// Percentiles returns the percentiles of distributions that the summary has
// figures for, in percent, the median aside.
func (s Summary) Percentiles() []float64 {
	out := []float64{}
	for name := range s.Figures {
		m, err := Lookup(name)
		if p, ok := percentile(m.Stat); err == nil && ok && p != 50 && slices.Contains(Families(), m.Family) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Sections returns the distributions that the summary has figures for, which are sections of a block.
func (s Summary) Sections() []string {
	out := []string{}
	for _, f := range families() {
		if _, ok := s.Figures["mean_"+f.name+"_ms"]; ok {
			out = append(out, f.name)
		} else if _, ok := s.Figures["median_"+f.name+"_ms"]; ok {
			out = append(out, f.name)
		}
	}
	return out
}
