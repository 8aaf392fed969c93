package report

import (
	"fmt"
	"math"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// gainText writes a gain g of an objective as the field does. A gain is the
// ratio of the figures in the direction that is better, less one: for a figure
// that shall be high it is shown as a percentage, +59.2 %; for one that shall
// be low as the factor 1+g, 1.63x faster.
func gainText(g *float64, m result.Metric, better string) string {
	if g == nil || math.IsNaN(*g) || *g <= -1 {
		return missing
	}
	if better != "lower" {
		return fmt.Sprintf("%+.1f %%", *g*100)
	}
	word := [2]string{"lower", "higher"}
	if m.Unit == "ms" || m.Unit == "s" {
		word = [2]string{"faster", "slower"}
	}
	factor, w := 1+*g, word[0]
	if *g < 0 {
		factor, w = 1/factor, word[1]
	}
	f := fmt.Sprintf("%.2fx", factor)
	if f == "1.00x" {
		return f + " (no change)"
	}
	return f + " " + w
}

// gain is a gain of the study's objective.
func (x study) gain(g *float64) string { return gainText(g, x.objective, x.Objective.Better) }

// spanned is a gain with its interval, as the field writes it.
func (x study) spanned(g *float64, s *tune.Span) string {
	text := x.gain(g)
	if s == nil || text == missing {
		return text
	}
	return text + " " + x.brackets(*g, *s)
}

// brackets is the interval of a gain g: in percent, or as factors of what g is
// written as.
func (x study) brackets(g float64, s tune.Span) string {
	switch {
	case !x.lower():
		return fmt.Sprintf("[%+.1f, %+.1f]", 100*s.Low, 100*s.High)
	case g < 0:
		return fmt.Sprintf("[%.2f, %.2f]", 1/(1+s.High), 1/(1+s.Low))
	}
	return fmt.Sprintf("[%.2f, %.2f]", 1+s.Low, 1+s.High)
}

// gainOf is the gain that a ratio stands for, with its interval.
func (x study) gainOf(r tune.Span) string {
	s := &tune.Span{Value: r.Value - 1, Low: r.Low - 1, High: r.High - 1}
	if !known(r) {
		s = nil
	}
	return x.spanned(new(r.Value-1), s)
}

// gainTone is good or bad news only where the interval says so.
func (x study) gainTone() string {
	if x.Recommended == nil || x.Recommended.Interval == nil || x.keepsBaseline() {
		return ""
	}
	switch s := x.Recommended.Interval; {
	case s.Low > 0:
		return "up"
	case s.High < 0:
		return "down"
	}
	return ""
}

// caseGain is the gain on a workload: by repeated launches where there are some.
func (x study) caseGain(c outcome.Case) (text, tone string) {
	if x.Race != nil {
		for _, k := range x.Race.HoldOuts {
			if k.Workload == c.Workload && known(k.Ratio) {
				return x.gainOf(k.Ratio), verdictTone(k.Verdict)
			}
		}
		if r := x.Recommended; c.Workload == x.primary && !x.weighed() && r != nil && r.Gain != nil && !x.keepsBaseline() {
			return x.spanned(r.Gain, r.Interval), x.gainTone()
		}
		return x.gain(c.Gain), ""
	}
	tone = "up"
	if c.Gain != nil && *c.Gain < 0 {
		tone = "down"
	}
	if r := x.Recommended; x.Forecast != nil && c.Workload == x.primary && !x.weighed() && r != nil && r.Interval != nil {
		return x.spanned(r.Gain, r.Interval), x.gainTone()
	}
	return x.gain(c.Gain), tone
}

// known reports whether a ratio has an interval.
func known(r tune.Span) bool { return r.High > 0 }

// interval is that of a ratio, in brackets.
func interval(r tune.Span) string {
	if !known(r) {
		return doc.None
	}
	return fmt.Sprintf("[%.3f, %.3f]", r.Low, r.High)
}

// verdictTone is good or bad news.
func verdictTone(verdict string) string {
	switch verdict {
	case tune.Better:
		return "up"
	case tune.Worse, tune.Missed:
		return "down"
	}
	return ""
}
