package workload

import (
	"cmp"
	"fmt"
	"strings"
)

// Describe says in one line for a report what is sent and when.
func (w *Workload) Describe() string {
	s := w.spec
	parts := []string{w.lengths(), w.extent(), describeArrivals(s)}
	if s.RandomImages > 0 {
		parts[0] += fmt.Sprintf(", %s of %s", plural(s.RandomImages, "image"), s.RandomImageSize)
	}
	if n := len(s.LoraModules); n > 0 {
		parts[1] += " over " + plural(n, "adapter")
	}
	parts = append(parts, s.asAgents()...)
	if s.MaxConcurrency > 0 {
		parts = append(parts, fmt.Sprintf("at most %d at a time", s.MaxConcurrency))
	}
	if s.UntilPrecision != "" {
		parts = append(parts, fmt.Sprintf("until its figure is known to ± %s", s.UntilPrecision))
	}
	if n := w.nonce.describe(w.src.ids); n != "" {
		parts = append(parts, n)
	}
	return s.row().title(s) + ": " + strings.Join(parts, ", ")
}

// unit is what a session of the dataset is called.
func (s Spec) unit() string { return cmp.Or(s.row().unit, "conversation") }

// extent is how much is sent.
func (w *Workload) extent() string {
	text := count(w.Len())
	if timeDecides(w.spec) {
		text = fmt.Sprintf("for %v", w.spec.length())
	}
	if w.src.conversations == nil {
		return text
	}
	turns := float64(w.src.turns()) / float64(len(w.src.rows))
	if timeDecides(w.spec) {
		return fmt.Sprintf("%s of %.3g turns on average, %s", w.spec.unit()+"s", turns, text)
	}
	return text + " in " + plural(len(w.src.rows), w.spec.unit())
}

func (w *Workload) lengths() string {
	s := w.spec
	if describe := s.row().lengths; describe != nil {
		if text := describe(s); text != "" {
			return text
		}
	}
	t := w.Totals()
	n := float64(max(w.Len(), len(w.src.rows)))
	if w.src.conversations != nil {
		n = float64(w.src.turns())
	}
	text := ""
	if s.Scenario != "" {
		text = "scenario " + s.Scenario + ", "
	}
	text += fmt.Sprintf("on average %.0f input tokens", float64(t.Input)/n)
	if t.Output > 0 {
		text += fmt.Sprintf(" and %.0f output tokens", float64(t.Output)/n)
	}
	return text
}

func describeArrivals(s Spec) string {
	var kind string
	switch s.Arrival {
	case "inf":
		if s.closed() && s.Duration != "" {
			return "each when another ends"
		}
		return "all at once"
	case "trace":
		if s.Speed == 1 {
			return "at the times of the trace"
		}
		return fmt.Sprintf("at the times of the trace, %g times as fast", s.Speed)
	case "constant":
		kind = "evenly spaced arrivals"
	case "poisson":
		kind = "Poisson arrivals"
	case "gamma":
		kind = fmt.Sprintf("gamma arrivals (burstiness %g)", s.Burstiness)
	}
	unit := "requests/s"
	if s.row().sessions {
		unit = s.unit() + "s/s"
	}
	if s.RampStrategy != "" {
		return fmt.Sprintf("%s from %g to %g %s (%s ramp)", kind, s.RampStart, s.RampEnd, unit, s.RampStrategy)
	}
	if s.Steps != "" {
		return fmt.Sprintf("%s at %s in steps of %s", kind, unit, s.Steps)
	}
	return fmt.Sprintf("%s at %s %s", kind, s.Rate, unit)
}

func count(requests int) string { return plural(requests, "request") }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
