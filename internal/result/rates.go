package result

import (
	"cmp"
	"slices"
	"time"

	"perflab/internal/stat"
	"perflab/internal/timebins"
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

// addRates sets what is divided by the duration, and the goodput of the calls that met
// its bounds, where any were asked for.
func (a *Analysis) addRates(asked bool, good int) {
	f := a.Figures
	if asked && a.Total > 0 {
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
	if asked {
		f["request_goodput"] = float64(good) / d
	}
}

// addFlow sets the figures that depend on when tokens came and calls overlapped.
func (a *Analysis) addFlow() {
	if a.Completed == 0 {
		return
	}
	var events []Event
	peakBound := 0.0
	if a.large == nil {
		events = a.TokenEvents()
		// Of one instant in the order of the calls, which is that of their index.
		stat.SortBy(events, func(e Event) uint64 { return uint64(e.At) ^ 1<<63 })
		a.Peak = peak(events, time.Second)
	} else {
		a.Peak, peakBound = atMost(a.large.Flow.Peak())
	}
	if a.binned() {
		most, bound := atMost(a.large.Flow.MaxInFlight())
		a.set("max_concurrent_requests", most, bound)
	} else {
		a.Figures["max_concurrent_requests"] = float64(maxSpans(a.spans()))
	}
	if mean, ok := a.Figures["output_throughput"]; ok && a.Chunks > 0 {
		a.set("max_output_tokens_per_s", max(a.Peak, mean), peakBound)
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
	s := w.Seconds()
	tokens, edges := a.tokensWithin(w, events)
	prompts, ends := a.promptsWithin(w)
	longer := share(w.slack.Seconds(), s)
	a.set(name+"_duration", s, longer)
	a.set(name+"_request_throughput", float64(w.Ends)/s, a.cut(w)+2*longer)
	if !a.Pooling() {
		a.set(name+"_output_throughput", tokens/s, share(edges, tokens)+2*longer)
	}
	a.set(name+"_total_token_throughput", (tokens+prompts)/s, share(edges+ends, tokens+prompts)+2*longer)
}

// cut is by what share the calls that ended in a window may be more or fewer: those of
// the bins at its ends count in part.
func (a *Analysis) cut(w Window) float64 {
	if !a.binned() {
		return 0
	}
	_, _, edges := a.large.Flow.Ended(w.From, w.To)
	return share(edges+1, float64(w.Ends)) // and it is rounded
}

// tokensWithin returns the output tokens stamped in a window, and those that bins at its
// ends hold.
func (a *Analysis) tokensWithin(w Window, events []Event) (n, edges float64) {
	if a.large != nil {
		return a.large.Flow.Tokens(w.From, w.To)
	}
	var tokens stat.Total
	for _, e := range events {
		if w.Contains(e.At) {
			tokens.Add(e.Tokens)
		}
	}
	return tokens.Sum(), 0
}

// promptsWithin returns the prompt tokens of the calls whose first token came in a window.
func (a *Analysis) promptsWithin(w Window) (n, edges float64) {
	if a.binned() {
		return a.large.Flow.Prompts(w.From, w.To)
	}
	prompts := 0
	for c := range a.each() {
		first, ok := c.FirstToken()
		if !ok {
			first, ok = c.last()
		}
		if ok && w.Contains(first) {
			p, _ := c.Input()
			prompts += p
		}
	}
	return float64(prompts), 0
}

// Pace is how fast calls came due and ended, and where their time went along the
// run. Of conversations it is of the first turns: when a later one is due the turn
// before it decides.
type Pace struct {
	Calls               int
	DueSpan, EndSpan    float64 // seconds between the 10 % and 90 % quantiles of due times and of ends
	First, Middle, Last Spent   // of the thirds of the calls
}

// Spent is the mean seconds of calls from due to end, by what they were spent on.
type Spent struct {
	Waiting float64 // for a place among the calls in flight
	Late    float64 // sent later than possible, by the client
	Server  float64 // connecting, and from sending to the end
}

// Total is the mean from due to end.
func (s Spent) Total() float64 { return s.Waiting + s.Late + s.Server }

// Minus is by how much each part is longer.
func (s Spent) Minus(o Spent) Spent {
	return Spent{s.Waiting - o.Waiting, s.Late - o.Late, s.Server - o.Server}
}

// Pace compares the calls' due times with their ends, over the successful calls.
func (s *CallSet) Pace() Pace {
	switch {
	case s.Completed == 0:
		return Pace{}
	case s.binned():
		return s.large.pace(s.Completed)
	}
	type timed struct {
		due, end time.Duration
		index    int
		spent    timebins.Spent
	}
	calls := make([]timed, 0, s.Completed)
	for c := range s.each() {
		if c.Turn == 0 {
			calls = append(calls, timed{c.Due, c.End, c.Index, c.spent()})
		}
	}
	if len(calls) < 3 {
		return Pace{Calls: len(calls)}
	}
	slices.SortStableFunc(calls, func(a, b timed) int { return cmp.Or(cmp.Compare(a.due, b.due), a.index-b.index) })
	due, end := make([]float64, len(calls)), make([]float64, len(calls))
	var thirds [3]timebins.Spent
	third := len(calls) / 3
	for i, c := range calls {
		due[i], end[i] = c.due.Seconds(), c.end.Seconds()
		k := 1
		if i < third {
			k = 0
		} else if i >= len(calls)-third {
			k = 2
		}
		thirds[k].Add(c.spent)
	}
	stat.Sort(end)
	return Pace{
		Calls: len(calls), DueSpan: innerSpan(due), EndSpan: innerSpan(end),
		First: meanSpent(thirds[0], third), Middle: meanSpent(thirds[1], len(calls)-2*third), Last: meanSpent(thirds[2], third),
	}
}

// meanSpent is what a call spent of the time of so many.
func meanSpent(s timebins.Spent, calls int) Spent {
	n := float64(max(1, calls))
	return Spent{s.Waiting.Seconds() / n, s.Late.Seconds() / n, s.Server.Seconds() / n}
}

// spent says what the call's time was spent on.
func (c *Call) spent() timebins.Spent {
	return timebins.Spent{Waiting: c.waited(), Late: c.Lag(1), Server: c.Dial + c.End - c.Sent}
}

// waited is how long the call waited for a place among the calls in flight.
func (c *Call) waited() time.Duration { return max(0, c.Ready-c.Due) }

// innerSpan is the distance of the 10 % and 90 % quantiles.
func innerSpan(sorted []float64) float64 {
	return stat.Quantile(sorted, 0.9) - stat.Quantile(sorted, 0.1)
}
