package finding

import (
	"fmt"
	"math"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/tune"
)

// Machines says how the machines of a study differ that ran trials at the same time; ""
// where there is one.
func Machines(s outcome.Study) string {
	if len(s.Machines) == 0 {
		return ""
	}
	first, kinds := "", map[string]bool{}
	var parts []string
	for _, m := range s.Machines {
		text := fmt.Sprintf("%s (%s", m.Name, counted(m.Launches, "launch"))
		if m.Lost {
			text += ", lost"
		}
		text += ")"
		switch {
		case m.Effect != nil:
			text += " is " + effect(*m.Effect) + " " + first
		case m.Launches > 0 && first == "":
			first = m.Name
		case m.Launches > 0:
			text += " has no configuration in common with " + first
		}
		kinds[m.Stratum] = true
		parts = append(parts, text)
	}
	out := strings.Join(parts, "; ") + ". What a machine does to figures is taken off where launches on several are compared"
	if len(kinds) > 1 {
		out += ". They are not alike in driver or clocks: the gain is of launches on the most that are"
	}
	return out + "."
}

// effect is how far a machine is from another, with its interval.
func effect(e tune.Span) string {
	percent := func(x float64) string { return fmt.Sprintf("%.1f", 100*math.Abs(x)) }
	word, low, high := "ahead of", e.Low, e.High
	if e.Value < 0 {
		word, low, high = "behind", -e.High, -e.Low
	}
	sign := ""
	if low < 0 {
		sign = "-"
	}
	return fmt.Sprintf("%s %% [%s%s, %s] %s", percent(e.Value), sign, percent(low), percent(high), word)
}
