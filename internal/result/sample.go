package result

import "slices"

// Sampler returns what appends the samples that a call gives to a family
// ("ttft", "itl"), by the definitions of o and for the calls of a run with this
// header; of an unknown family a call gives none.
func (s *CallSet) Sampler(h Header, o Options, name string) func(*Call, []float64) []float64 {
	if o.Compat == VLLM {
		if f, ok := vllmSamplers[name]; ok {
			return func(c *Call, x []float64) []float64 { return f(c.vllmTimeline(), x) }
		}
	}
	f, ok := familyOf(name)
	switch {
	case !ok:
		return func(_ *Call, x []float64) []float64 { return x }
	case f.value == nil && name == familyITL:
		return (*Call).appendGaps
	case f.value == nil:
		return (*Call).appendPerToken
	}
	var steady Window
	if f.steady {
		steady = s.SteadyWindow()
	}
	return func(c *Call, x []float64) []float64 { return f.collect(x, c, h.Limit, steady) }
}

// FamilySamples returns, sorted and in ms, the samples of a family ("ttft", "itl")
// of which a Summary of the same calls has the statistics; nil when there is
// no such family. The calls must be those of a run that Summarize takes.
func FamilySamples(h Header, calls []Call, family string) []float64 {
	s := NewCallSet(calls)
	var x []float64
	appendTo := s.Sampler(h, Options{}, family)
	for _, c := range s.Succeeded {
		x = appendTo(c, x)
	}
	slices.Sort(x)
	return x
}
