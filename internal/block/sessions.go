package block

import (
	"fmt"

	"perflab/internal/result"
)

// SessionRows are a summary's sessions or conversations, as a reader takes them in; none where requests stand
// alone.
func SessionRows(s result.Summary) []TelemetryRow {
	var rows []TelemetryRow
	row := func(label, format string, names ...string) {
		values := make([]any, len(names))
		for i, name := range names {
			v, ok := s.Figures[name]
			if !ok {
				return
			}
			m, _ := result.Lookup(name) // a name of the lists below
			values[i] = fmt.Sprintf("%.*f", m.Decimals, v)
		}
		rows = append(rows, TelemetryRow{label, fmt.Sprintf(format, values...)})
	}
	row("Done", "%s sessions", "sessions")
	row("Per hour", "%s sessions, %s turns", "sessions_per_hour", "turns_per_hour")
	for _, x := range []struct{ label, name string }{{"Time", "session_s"}, {"Time without tools", "session_serving_s"}} {
		row(x.label, "mean %s s, median %s s, P90 %s s", "mean_"+x.name, "median_"+x.name, "p90_"+x.name)
	}
	row("Time of a turn", "mean %s s, without tools %s s", "mean_turn_s", "mean_turn_serving_s")
	row("Prompts", "first %s tokens, middle %s, last %s", "first_turn_input_tokens", "median_turn_input_tokens", "last_turn_input_tokens")
	row("Growth of prompts", "%s tokens a turn", "input_growth_per_turn")
	row("Tokens over turn time", "%s tok/s", "e2e_avg_interactivity")
	return rows
}

// Sessions returns the lines of SessionRows, "" for none.
func Sessions(s result.Summary) string { return lines(SessionsTitle, SessionRows(s)) }

// SessionsTitle is what to put above these.
const SessionsTitle = "Sessions"
