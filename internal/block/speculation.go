package block

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"perflab/internal/result"
)

// Speculation returns the lines that stand behind those of telemetry, "" where no answer
// tells of speculation. As in Precision no line has a colon, which tools look for.
func Speculation(s result.Summary) string {
	n, ok := s.Figures["speculating_requests"]
	if !ok {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  Requests that tell of it\t%.0f\n", n)
	_, rated := s.Figures["request_acceptance_rate"]
	if _, stepped := s.Figures["request_acceptance_length"]; !rated && !stepped {
		fmt.Fprintf(w, "  Guesses\tnone was made\n")
	}
	if v, ok := s.Figures["request_acceptance_rate"]; ok {
		fmt.Fprintf(w, "  Acceptance rate\t%.1f %%\n", 100*v)
	}
	if v, ok := s.Figures["request_acceptance_length"]; ok {
		fmt.Fprintf(w, "  Acceptance length\t%.2f tokens\n", v)
	}
	var shares []string
	for _, p := range result.Positions(&s) {
		shares = append(shares, fmt.Sprintf("%.1f %%", 100*p.Share))
	}
	if len(shares) > 0 {
		fmt.Fprintf(w, "  Accepted by position\t%s\n", strings.Join(shares, ", "))
	}
	w.Flush() // into a strings.Builder, which never fails
	return "Speculation by request (told by the answers, not by the engine's counters)\n" + b.String()
}
