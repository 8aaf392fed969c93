package prediction

import (
	"fmt"
	"io"
	"math"
	"strings"

	"perflab/internal/calib"
	"perflab/internal/forecast"
)

// doubtTexts say what a prediction hangs on, and which run would narrow it most.
func doubtTexts(r *forecast.Row) []string {
	var out []string
	if len(r.Hangs) > 0 {
		figure := "Throughput"
		if r.Rate > 0 {
			figure = "E2E latency"
		}
		out = append(out, figure+" hangs most on:")
		for _, h := range r.Hangs {
			meaning, _, _ := strings.Cut(h.Meaning, ":")
			out = append(out, fmt.Sprintf("  - %s, known to ± %.0f %%: %.0f %% of it (%s)", h.Name, 100*h.PriorSpread, 100*math.Abs(h.Moves), meaning))
		}
	}
	if r.Measure != nil {
		out = append(out, fmt.Sprintf("To narrow it, measure: perflab bench %s (%.0f s), then give that run as --with.", benchFlags(r.Measure.Load), math.Ceil(r.Measure.Seconds)))
	}
	return out
}

// benchFlags are the flags by which perflab bench sends a load of made-up prompts.
func benchFlags(l calib.Load) string {
	text := fmt.Sprintf("--dataset-name random --num-prompts %d --random-input-len %.0f --random-output-len %.0f", l.Requests, l.Input.Mean, l.Output.Mean)
	if l.Concurrency > 0 {
		text += fmt.Sprintf(" --max-concurrency %d", l.Concurrency)
	}
	return text
}

// WritePlan lists the runs to take on new hardware.
func WritePlan(w io.Writer, p calib.Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "SIMULATED: the constants leave predictions of this configuration uncertain by %.0f %% (root mean square over throughput and latencies\nof six loads). The runs that narrow them most for their time, in this order:\n\n", 100*p.Before)
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "  %d. %s, about %.0f s: uncertain by %.0f %% after it\n     perflab bench %s\n", i+1, s.Title, math.Ceil(s.Seconds), 100*s.Left, benchFlags(s.Load))
	}
	b.WriteString("\nThen: perflab predict --with RUN --with RUN --with RUN, or perflab calibrate RUN... for a file.\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print the plan: %w", err)
	}
	return nil
}
