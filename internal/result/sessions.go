package result

import (
	"maps"

	"perflab/internal/session"
)

// addSession takes in a call that succeeded.
func (t *Tally) addSession(c *Call) {
	input, _ := c.Input()
	output, _ := c.Output()
	t.Sessions.Add(session.Request{Session: c.Session, Turn: c.Turn, Turns: c.Turns, Sent: c.Sent, End: c.End, Input: input, Output: output})
}

// addSessions sets the figures of sessions.
func (a *Analysis) addSessions() {
	maps.Copy(a.Figures, a.Sessions.Figures(a.Figures["duration"]))
}

// sessionScalars are the rows of the metric table that sessions give.
func sessionScalars() []Metric {
	const absent = "; absent where requests stand alone"
	const whole = "the sessions that are done and began with their first request"
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
		{session.Time, "session time", "From the first sending of a session to its last end, idle times among them", "last End - first Sent"},
		{session.Serving, "session time without tools", "How long of a session at least one of its requests was in flight", "length of the union of [Sent, End]"},
	} {
		for _, st := range session.Statistics() {
			rows = append(rows, Metric{Name: st.Name + "_" + x.name, Label: st.Label + " " + x.label + " (s)", Unit: "s", Section: sectionSessions, Better: Lower, Decimals: 2,
				Doc:     x.doc + "; " + st.Words + " over " + whole + absent + ".",
				Formula: x.formula})
		}
	}
	turn := func(name, label, doc, formula string) Metric {
		return Metric{Name: name, Label: label + " (s)", Unit: "s", Section: sectionSessions, Better: Lower, Decimals: 3, Doc: doc + ", over " + whole + absent + ".", Formula: formula}
	}
	prompt := func(name, label, doc, formula string) Metric {
		return Metric{Name: name, Label: label, Unit: "tokens", Section: sectionSessions, Doc: doc + "; median over " + whole + absent + ".", Formula: formula}
	}
	return append(rows,
		turn("mean_turn_s", "Mean turn time", "Session time by its requests, so that the time of tools and waiting is in it", "sum of session times / their requests"),
		turn("mean_turn_serving_s", "Mean turn time without tools", "The same of the time in which at least one request was in flight", "sum of session times without tools / their requests"),
		prompt("first_turn_input_tokens", "Prompt of a session's first turn", "Prompt tokens of a session's first request", "p of turn 0"),
		prompt("median_turn_input_tokens", "Prompt of a session's middle turn", "Median of the prompt tokens of a session's requests", "median of p"),
		prompt("last_turn_input_tokens", "Prompt of a session's last turn", "Prompt tokens of a session's last request", "p of the last turn"),
		prompt("input_growth_per_turn", "Growth of the prompt per turn", "By how much a session's prompts grow from one request to the next, agents that it started among them", "(p of the last turn - p of turn 0) / (turns - 1)"),
	)
}
