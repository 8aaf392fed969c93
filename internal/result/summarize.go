package result

import "iter"

// Summarize computes every figure of a run. It is pure and exact, and the
// order of the calls does not matter. The summary has no verdict: a caller who
// wants one calls verdict.Summarize.
func Summarize(h Header, c *Client, o Options, calls iter.Seq[Call]) (Summary, error) {
	a, err := Analyze(h, c, o, calls)
	if err != nil {
		return Summary{}, err
	}
	return a.Summary(), nil
}

// Analyze computes every figure of a run, as Summarize does.
func Analyze(h Header, c *Client, o Options, calls iter.Seq[Call]) (*Analysis, error) {
	acc, err := NewAccumulator(h, o)
	if err != nil {
		return nil, err
	}
	for call := range calls {
		acc.Add(&call)
	}
	return acc.Analyze(c, o)
}

// Summary returns the figures, by the definitions that were asked for and
// without a verdict.
func (a *Analysis) Summary() Summary {
	s := Summary{
		Simulated: a.Simulated,
		Predicted: a.Header.Predicted,
		Partial:   a.Partial,
		Compat:    a.Options.Compat,
		Currency:  a.Options.Price.Currency,
		Failures:  a.Failures,
	}
	x := a.statistics
	if a.Options.Compat == VLLM {
		x = a.asVLLM()
		s.Definitions = DefinitionsOf(VLLM)
	}
	s.Agents = a.Agents
	s.Figures, s.Samples, s.Intervals, s.Bounds = x.Figures, x.Samples, x.Intervals, x.Bounds
	if a.Every > 1 {
		s.OneIn = a.Every
	}
	if len(x.Approximate) > 0 {
		s.Approximate = x.Approximate
	}
	if len(x.OverCalls) > 0 {
		s.OverCalls = x.OverCalls
	}
	return s
}
