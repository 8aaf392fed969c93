package block

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"perflab/internal/result"
)

// Sessions returns the lines of a summary's sessions or conversations; "" where requests stand
// alone.
func Sessions(s result.Summary) string {
	if _, ok := s.Figures["sessions"]; !ok {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	figure := func(name string) string {
		m, _ := result.Lookup(name) // a name of the lists below
		return fmt.Sprintf("%.*f", m.Decimals, s.Figures[name])
	}
	fmt.Fprintf(w, "  Done\t%s sessions\n", figure("sessions"))
	fmt.Fprintf(w, "  Per hour\t%s sessions, %s turns\n", figure("sessions_per_hour"), figure("turns_per_hour"))
	for _, x := range []struct{ label, name string }{{"Time", "session_s"}, {"Time without tools", "session_serving_s"}} {
		if _, ok := s.Figures["mean_"+x.name]; ok {
			fmt.Fprintf(w, "  %s\tmean %s s, median %s s, P90 %s s\n", x.label, figure("mean_"+x.name), figure("median_"+x.name), figure("p90_"+x.name))
		}
	}
	if _, ok := s.Figures["e2e_avg_interactivity"]; ok {
		fmt.Fprintf(w, "  Tokens over turn time\t%s tok/s\n", figure("e2e_avg_interactivity"))
	}
	w.Flush() // into a strings.Builder, which never fails
	return "Sessions\n" + b.String()
}
