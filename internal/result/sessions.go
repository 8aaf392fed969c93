package result

import (
	"cmp"
	"slices"
	"time"

	"perflab/internal/stat"
)

// Sessions is what the calls of a run tell of the sessions, or conversations, that they are of.
// A session is done when all requests that the run has of it have succeeded. What is under way holds
// its calls' spans, and a session that is done its two times alone.
type Sessions struct {
	UnderWay map[int]*Session
	Ended    int
	Turns    int           // calls of sessions that succeeded
	Output   int           // their tokens
	InTurns  time.Duration // from their sending to their end

	// Of the sessions that are done and began with their first request: from the first sending
	// to the last end, and how much of that at least one request was in flight.
	Times, Serving []time.Duration
}

// Session is one that is under way.
type Session struct {
	Spans []span
	Cut   bool // it did not begin with its first request
}

// add takes in a call that succeeded.
func (s *Sessions) add(c *Call) {
	if c.Session == 0 || c.Turns == 0 {
		return
	}
	n, _ := c.Output()
	s.Turns, s.Output, s.InTurns = s.Turns+1, s.Output+n, s.InTurns+c.End-c.Sent
	if s.UnderWay == nil {
		s.UnderWay = map[int]*Session{}
	}
	u := s.UnderWay[c.Session]
	if u == nil {
		u = &Session{Cut: true}
		s.UnderWay[c.Session] = u
	}
	u.Spans = append(u.Spans, span{c.Sent, c.End})
	u.Cut = u.Cut && c.Turn > 0
	if len(u.Spans) < c.Turns {
		return
	}
	delete(s.UnderWay, c.Session)
	s.Ended++
	if whole, serving := u.times(); !u.Cut {
		s.Times, s.Serving = append(s.Times, whole), append(s.Serving, serving)
	}
}

// times are how long the session took, and for how much of that a request was in flight.
func (u *Session) times() (whole, serving time.Duration) {
	slices.SortFunc(u.Spans, func(a, b span) int { return cmp.Compare(a.From, b.From) })
	first, until := u.Spans[0].From, u.Spans[0].From
	for _, x := range u.Spans {
		serving += max(0, x.To-max(x.From, until))
		until = max(until, x.To)
	}
	return until - first, serving
}

// Names of figures of sessions; those of times have a statistic in front.
const (
	sessionTime    = "session_s"
	sessionServing = "session_serving_s"
)

// sessionStats are the statistics of a session's times.
var sessionStats = []struct {
	name, label, words string
	q                  float64 // of a quantile; 0: the mean
}{{"mean", "Mean", "mean", 0}, {"median", "Median", "median", 0.5}, {"p90", "P90", "90th percentile", 0.9}}

// sessionScalars are the rows of the metric table that sessions give.
func sessionScalars() []Metric {
	const absent = "; absent where requests stand alone"
	rows := []Metric{
		{Name: "sessions", Label: "Sessions done", Unit: "sessions", Section: sectionSessions, Better: Higher,
			Doc: "Sessions of agents, or conversations, of which every request that the run has succeeded" + absent + ".", Formula: "count of sessions"},
		{Name: "sessions_per_hour", Label: "Sessions per hour", Unit: "1/h", Section: sectionSessions, Better: Higher, Decimals: 2,
			Doc: "Sessions done per hour of the run" + absent + ".", Formula: "3600 sessions / D"},
		{Name: "turns_per_hour", Label: "Turns per hour", Unit: "1/h", Section: sectionSessions, Better: Higher, Decimals: 2,
			Doc: "Successful requests of sessions per hour of the run, of sessions that are not done too" + absent + ".", Formula: "3600 turns / D"},
		{Name: "e2e_avg_interactivity", Label: "Tokens over turn time (tok/s)", Unit: "tok/s", Section: sectionSessions, Better: Higher, Decimals: 2,
			Doc: "Output tokens of the successful requests of sessions over the time that these took, which is all that a session waits for the server where its agents work one after the other: tools take no part" + absent + ".", Formula: "sum of n / sum of (End - Sent)"},
	}
	for _, x := range []struct{ name, label, doc, formula string }{
		{sessionTime, "session time", "From the first sending of a session to its last end, idle times among them", "last End - first Sent"},
		{sessionServing, "session time without tools", "How long of a session at least one of its requests was in flight", "length of the union of [Sent, End]"},
	} {
		for _, st := range sessionStats {
			rows = append(rows, Metric{Name: st.name + "_" + x.name, Label: st.label + " " + x.label + " (s)", Unit: "s", Section: sectionSessions, Better: Lower, Decimals: 2,
				Doc:     x.doc + "; " + st.words + " over the sessions that are done and began with their first request" + absent + ".",
				Formula: x.formula})
		}
	}
	return rows
}

// addSessions sets the figures of sessions.
func (a *Analysis) addSessions() {
	s, f := &a.Sessions, a.Figures
	d := f["duration"]
	if s.Turns == 0 || d <= 0 {
		return
	}
	f["sessions"] = float64(s.Ended)
	f["sessions_per_hour"] = 3600 * float64(s.Ended) / d
	f["turns_per_hour"] = 3600 * float64(s.Turns) / d
	if s.InTurns > 0 && s.Output > 0 {
		f["e2e_avg_interactivity"] = float64(s.Output) / s.InTurns.Seconds()
	}
	for name, times := range map[string][]time.Duration{sessionTime: s.Times, sessionServing: s.Serving} {
		if len(times) == 0 {
			continue
		}
		sorted := make([]float64, len(times))
		for i, t := range times {
			sorted[i] = t.Seconds()
		}
		slices.Sort(sorted)
		for _, st := range sessionStats {
			if f[st.name+"_"+name] = stat.Mean(sorted); st.q > 0 {
				f[st.name+"_"+name] = stat.Quantile(sorted, st.q)
			}
		}
	}
}
