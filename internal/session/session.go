// Package session makes figures of sessions of agents, or conversations, from their requests: how many get done,
// how long they take, and how their prompts grow.
//
//	t.Add(session.Request{Session: 1, Turn: 0, Turns: 4, Sent: sent, End: end, Input: 900, Output: 40})
//	figures := t.Figures(duration)
//
// Invariants: figures do not depend on the order of the requests; of a session that is done no more is kept
// than its figures need; a figure without data is absent.
//
// Deliberately absent: calls and the metric table (package result, which adds calls and has a row for each figure).
package session

import (
	"cmp"
	"slices"
	"time"

	"perflab/internal/stat"
)

// Request is one that succeeded. Times are offsets from the run's start.
type Request struct {
	Session     int // from 1; 0: it stands alone
	Turn, Turns int // its place from 0, and how many the run has of the session; 0: not known
	Sent, End   time.Duration
	Input       int // prompt tokens
	Output      int
}

// Tally is what the requests of a run tell of sessions. A session is done when all requests
// that the run has of it have succeeded. What is under way holds its requests, and a session that is done a few
// numbers alone.
type Tally struct {
	UnderWay map[int]*Under
	Ended    int
	Turns    int           // requests of sessions that succeeded
	Output   int           // their tokens
	InTurns  time.Duration // from their sending to their end

	// Of the sessions that are done and began with their first request.
	Times, Serving []time.Duration // from the first sending to the last end, and how much of that at least one request was in flight
	TimedTurns     int             // their requests
	Prompts        []Prompts
}

// Under is a session that is under way.
type Under struct {
	Done []Done
	Cut  bool // it did not begin with its first request
}

// Done is a request of a session that is under way.
type Done struct {
	Turn      int
	Sent, End time.Duration
	Input     int
}

// Prompts are the tokens of a session's prompts, by its requests in the order of their turns.
type Prompts struct {
	First, Last int
	Median      float64
	Growth      float64 // from one to the next, on average
	Grows       bool    // there is more than one
}

// Add takes a request in.
func (t *Tally) Add(r Request) {
	if r.Session == 0 || r.Turns == 0 {
		return
	}
	t.Turns, t.Output, t.InTurns = t.Turns+1, t.Output+r.Output, t.InTurns+r.End-r.Sent
	if t.UnderWay == nil {
		t.UnderWay = map[int]*Under{}
	}
	u := t.UnderWay[r.Session]
	if u == nil {
		u = &Under{Cut: true}
		t.UnderWay[r.Session] = u
	}
	u.Done = append(u.Done, Done{r.Turn, r.Sent, r.End, r.Input})
	u.Cut = u.Cut && r.Turn > 0
	if len(u.Done) < r.Turns {
		return
	}
	delete(t.UnderWay, r.Session)
	t.Ended++
	if u.Cut {
		return
	}
	whole, serving := u.times()
	t.Times, t.Serving = append(t.Times, whole), append(t.Serving, serving)
	t.TimedTurns += len(u.Done)
	t.Prompts = append(t.Prompts, u.prompts())
}

// times are how long the session took, and for how much of that a request was in flight.
func (u *Under) times() (whole, serving time.Duration) {
	slices.SortFunc(u.Done, func(a, b Done) int { return cmp.Compare(a.Sent, b.Sent) })
	first, until := u.Done[0].Sent, u.Done[0].Sent
	for _, x := range u.Done {
		serving += max(0, x.End-max(x.Sent, until))
		until = max(until, x.End)
	}
	return until - first, serving
}

func (u *Under) prompts() Prompts {
	slices.SortFunc(u.Done, func(a, b Done) int { return cmp.Compare(a.Turn, b.Turn) })
	input := make([]float64, len(u.Done))
	for i, x := range u.Done {
		input[i] = float64(x.Input)
	}
	n := len(u.Done)
	p := Prompts{First: u.Done[0].Input, Last: u.Done[n-1].Input, Grows: n > 1}
	if p.Grows {
		p.Growth = float64(p.Last-p.First) / float64(n-1)
	}
	slices.Sort(input)
	p.Median = stat.Quantile(input, 0.5)
	return p
}

// Statistic is one of a session's times, in front of the name of its figure; Q is of a quantile, 0: the mean.
type Statistic struct {
	Name, Label, Words string
	Q                  float64
}

// Names of figures of times; these have a statistic in front.
const (
	Time    = "session_s"
	Serving = "session_serving_s"
)

// Statistics are those of a session's times.
func Statistics() []Statistic {
	return []Statistic{{"mean", "Mean", "mean", 0}, {"median", "Median", "median", 0.5}, {"p90", "P90", "90th percentile", 0.9}}
}

// Figures are those of a run of so many seconds, by their names in the metric table.
func (t *Tally) Figures(duration float64) map[string]float64 {
	f := map[string]float64{}
	if t.Turns == 0 || duration <= 0 {
		return f
	}
	f["sessions"] = float64(t.Ended)
	f["sessions_per_hour"] = 3600 * float64(t.Ended) / duration
	f["turns_per_hour"] = 3600 * float64(t.Turns) / duration
	if t.InTurns > 0 && t.Output > 0 {
		f["e2e_avg_interactivity"] = float64(t.Output) / t.InTurns.Seconds()
	}
	for name, times := range map[string][]time.Duration{Time: t.Times, Serving: t.Serving} {
		if len(times) == 0 {
			continue
		}
		sorted := ascending(times, time.Duration.Seconds)
		for _, st := range Statistics() {
			if f[st.Name+"_"+name] = stat.Mean(sorted); st.Q > 0 {
				f[st.Name+"_"+name] = stat.Quantile(sorted, st.Q)
			}
		}
	}
	t.addTurns(f)
	return f
}

// addTurns adds what a turn takes, and how prompts grow.
func (t *Tally) addTurns(f map[string]float64) {
	if t.TimedTurns == 0 {
		return
	}
	sum := func(times []time.Duration) (s float64) {
		for _, x := range ascending(times, time.Duration.Seconds) {
			s += x
		}
		return s
	}
	f["mean_turn_s"] = sum(t.Times) / float64(t.TimedTurns)
	f["mean_turn_serving_s"] = sum(t.Serving) / float64(t.TimedTurns)
	median := func(of []Prompts, value func(Prompts) float64) float64 {
		return stat.Quantile(ascending(of, value), 0.5)
	}
	f["first_turn_input_tokens"] = median(t.Prompts, func(p Prompts) float64 { return float64(p.First) })
	f["median_turn_input_tokens"] = median(t.Prompts, func(p Prompts) float64 { return p.Median })
	f["last_turn_input_tokens"] = median(t.Prompts, func(p Prompts) float64 { return float64(p.Last) })
	grows := slices.DeleteFunc(slices.Clone(t.Prompts), func(p Prompts) bool { return !p.Grows })
	if len(grows) > 0 {
		f["input_growth_per_turn"] = median(grows, func(p Prompts) float64 { return p.Growth })
	}
}

// ascending are values of a list in their order, whatever that of the list: sums of floats depend on it.
func ascending[T any](list []T, value func(T) float64) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = value(x)
	}
	slices.Sort(out)
	return out
}
