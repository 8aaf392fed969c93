package report

import (
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/result"
)

// Headline is what a study comes to, in the words of its report.
type Headline struct {
	Best    string // the configuration that it singles out; "": none
	Word    string // recommended, best, kept ...
	Figure  string // of the objective, with its unit
	Measure string // the objective's label
	Gain    string // against the baseline, with its interval where there is one; "": none is given
	Basis   string // what the gain rests on, or why there is none
	Tone    string // up or down where the interval says so
	Command string // that serves it
}

// StudyHeadline is the headline of a study.
func StudyHeadline(s outcome.Study) Headline {
	x := index(s)
	h := Headline{Measure: x.objective.Label, Basis: x.sentence(x.Verdict)}
	r := x.Recommended
	if r == nil {
		return h
	}
	h.Best, h.Figure, h.Command = x.pickTitle(r), quantity(r.Summary, x.objective), commandText(r)
	h.Word, h.Tone = strings.ToLower(x.standing().word), x.gainTone()
	switch {
	case x.survey():
		h.Basis = "A list: nothing was measured as an improvement of another."
	case x.Race != nil:
		h.Gain, h.Basis = race{x}.sure()
	case x.Forecast != nil:
		h.Gain, h.Basis = x.spanned(r.Gain, r.Interval), "predicted, in nine of ten cases; nothing was launched"
	case x.keepsBaseline():
		h.Gain, h.Basis = "none", "the baseline stays"
	case x.Confirmed:
		h.Gain, h.Basis = x.spanned(r.Gain, r.Interval), "no interval: one launch of each on fresh seeds"
	default:
		h.Gain, h.Basis = x.spanned(r.Gain, r.Interval), "no interval: single launches of the search"
	}
	return h
}

// Figure prints a figure of a summary by its name, as every report does.
func Figure(s *result.Summary, name string) string { return number(s, metric(name)) }

// Quantity prints a figure of a summary with its unit.
func Quantity(s *result.Summary, name string) string { return quantity(s, metric(name)) }

// Gain prints a gain of a figure as the field does; lower says that less of it is better.
func Gain(gain float64, name string, lower bool) string {
	better := "higher"
	if lower {
		better = "lower"
	}
	return gainText(&gain, metric(name), better)
}
