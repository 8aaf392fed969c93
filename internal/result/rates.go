package result

import (
	"cmp"
	"slices"
	"time"

	"perflab/internal/stat"
)

// addCounts sets totals, ratios of counts and what follows from the first and the
// last call.
func (a *Analysis) addCounts() {
	f := a.Figures
	if a.Header.Limit > 0 {
		f["max_concurrency"] = float64(a.Header.Limit)
	}
	if a.Header.HasRate() {
		f["request_rate"] = a.Header.Rate
	}
	f["completed"] = float64(a.Completed)
	f["failed"] = float64(a.Total - a.Completed)
	if a.Total == 0 {
		return
	}
	f["duration"] = (a.End - a.Start).Seconds()
	f["drain_s"] = max(0, (a.End - a.LastSent).Seconds())
	f["success_rate"] = float64(a.Completed) / float64(a.Total)
	if a.Completed == 0 {
		return
	}
	if a.CachedTokens > 0 {
		f["total_cached_tokens"] = float64(a.CachedTokens)
	}
	if a.Connected > 0 {
		f["new_connections"] = float64(a.Opened)
	}
	f["total_input_tokens"] = float64(a.InputTokens)
	if !a.Pooling() {
		f["total_output_tokens"] = float64(a.OutputTokens)
	}
}

// addRates sets what is divided by the duration, and the goodput, which counts the
// calls that met says; nil says that nothing was asked.
func (a *Analysis) addRates(met func(*Call) bool) {
	f, good := a.Figures, 0
	if met != nil && a.Total > 0 {
		for _, c := range a.Succeeded {
			if met(c) {
				good++
			}
		}
		f["goodput_ratio"] = float64(good) / float64(a.Total)
	}
	d := f["duration"]
	if a.Completed == 0 || d <= 0 {
		return
	}
	f["request_throughput"] = float64(a.Completed) / d
	if !a.Pooling() {
		f["output_throughput"] = float64(a.OutputTokens) / d
	}
	f["total_token_throughput"] = float64(a.OutputTokens+a.InputTokens) / d
	if met != nil {
		f["request_goodput"] = float64(good) / d
	}
}

// addFlow sets the figures that depend on when tokens came and calls overlapped.
func (a *Analysis) addFlow() {
	if a.Completed == 0 {
		return
	}
	a.Figures["max_concurrent_requests"] = float64(maxInFlight(a.Succeeded))
	events := a.TokenEvents()
	// Of one instant in the order of the calls, which is that of their index.
	stat.SortBy(events, func(e Event) uint64 { return uint64(e.At) ^ 1<<63 })
	a.Peak = peak(events, time.Second)
	if mean, ok := a.Figures["output_throughput"]; ok && len(events) > 0 {
		a.Figures["max_output_tokens_per_s"] = max(a.Peak, mean)
	}
	a.Steady = a.SteadyWindow()
	a.addWindowRates("steady", a.Steady, events)
	a.addWindowRates("full_load", a.FullLoad(a.Header.Limit), events)
}

// addWindowRates sets the figures of a window.
func (a *Analysis) addWindowRates(name string, w Window, events []Event) {
	if !w.OK {
		return
	}
	var tokens stat.Total
	for _, e := range events {
		if w.Contains(e.At) {
			tokens.Add(e.Tokens)
		}
	}
	prompts := 0
	for _, c := range a.Succeeded {
		first, ok := c.FirstToken()
		if !ok {
			first, ok = c.last()
		}
		if ok && w.Contains(first) {
			p, _ := c.Input()
			prompts += p
		}
	}
	s, sum := w.Seconds(), tokens.Sum()
	a.Figures[name+"_duration"] = s
	a.Figures[name+"_request_throughput"] = float64(w.Ends) / s
	if !a.Pooling() {
		a.Figures[name+"_output_throughput"] = sum / s
	}
	a.Figures[name+"_total_token_throughput"] = (sum + float64(prompts)) / s
}

// Pace is how fast calls came due and ended, and whether their latency grew
// along the run.
type Pace struct {
	DueSpan, EndSpan float64 // seconds between the 10 % and 90 % quantiles of due times and of ends
	First, Last      float64 // mean seconds from due to end over the first and the last third of the calls
}

// Pace compares the calls' due times with their ends, over the successful calls.
func (s *CallSet) Pace() Pace {
	if len(s.Succeeded) == 0 {
		return Pace{}
	}
	calls := slices.SortedStableFunc(slices.Values(s.Succeeded), func(a, b *Call) int { return cmp.Compare(a.Due, b.Due) })
	due, end, took := make([]float64, len(calls)), make([]float64, len(calls)), make([]float64, len(calls))
	for i, c := range calls {
		due[i], end[i] = c.Due.Seconds(), c.End.Seconds()
		took[i] = (c.End - c.Due).Seconds()
	}
	slices.Sort(end)
	third := len(took) / 3
	return Pace{
		DueSpan: innerSpan(due), EndSpan: innerSpan(end),
		First: stat.Mean(took[:third]), Last: stat.Mean(took[len(took)-third:]),
	}
}

// innerSpan is the distance of the 10 % and 90 % quantiles.
func innerSpan(sorted []float64) float64 {
	return stat.Quantile(sorted, 0.9) - stat.Quantile(sorted, 0.1)
}
