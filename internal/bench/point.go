package bench

import (
	"fmt"

	"perflab/internal/result"
)

// Point is one run of a series.
type Point struct {
	Load      Load           `json:"load"`
	Dir       string         `json:"dir"` // below the series' directory
	Seed      uint64         `json:"seed"`
	Nonce     string         `json:"nonce,omitempty"`
	Requests  int            `json:"requests"`
	Offered   float64        `json:"offered_rate,omitzero"`  // requests/s; absent: all at once
	Achieved  float64        `json:"achieved_rate,omitzero"` // requests/s: see achieved
	Saturated bool           `json:"saturated"`              // the server fell behind what was offered
	Capped    bool           `json:"capped,omitzero"`        // the concurrency limit kept the rate below what was offered
	Failed    bool           `json:"failed,omitzero"`        // more calls failed than may: the point misses, void or not
	Void      bool           `json:"void"`                   // not to be believed, and so in no conclusion
	Partial   bool           `json:"partial"`                // stopped before its end; in no conclusion either
	Early     string         `json:"ended_early,omitempty"`  // why it ended before all of its requests were sent
	Missed    []string       `json:"missed"`                 // what it missed of SLOs and share of failures, a phrase each
	Summary   result.Summary `json:"summary"`
}

// Usable reports whether the point's figures may enter a conclusion.
func (p Point) Usable() bool { return !p.Void && !p.Partial }

// Judged reports whether it is known if the point meets the bounds: it does not where
// too many calls failed, whatever the others' figures are worth.
func (p Point) Judged() bool { return !p.Partial && (!p.Void || p.Failed) }

// End is how a run ended, as the exit status of its command tells.
type End int

// Ends of a run, from good to bad.
const (
	Met    End = iota
	Missed     // an SLO
	Voided     // its figures cannot be believed
	Failed     // more calls failed than may, or all
)

// End says how the run of the point ended.
func (p Point) End() End {
	switch {
	case p.Failed:
		return Failed
	case p.Void:
		return Voided
	case len(p.Missed) > 0:
		return Missed
	}
	return Met
}

// Meets reports whether the point is usable and missed nothing.
func (p Point) Meets() bool { return p.Usable() && len(p.Missed) == 0 }

// achieved is the rate at which calls ended. Where a rate was offered it is
// taken between the 10 % and the 90 % quantile of their ends, which leaves out
// filling and draining, and compared with the same span of the due times, which
// leaves out chance in the arrivals: a run of any length at a rate that the
// server keeps up with achieves that rate. Few calls have no such span.
//
// Calls that were not offered at a rate end in waves, many in one instant, so
// that a span between two of their ends says nothing: theirs is the rate of the
// whole run.
func achieved(offered float64, out *Outcome) float64 {
	const least = 10
	figures, p := out.Summary.Figures, out.Pace
	whole := figures["request_throughput"]
	if offered <= 0 || out.Header.Limit > 0 || figures["completed"] < least || p.DueSpan <= 0 || p.EndSpan <= 0 {
		return whole
	}
	return offered * min(1, p.DueSpan/p.EndSpan) * figures["success_rate"]
}

// Judge says what a run of a series is worth.
func (p *Point) Judge(out *Outcome, slos []result.SLO, maxErrors float64) {
	p.Summary, p.Missed = out.Summary, []string{}
	p.Achieved = achieved(p.Offered, out)
	figures := p.Summary.Figures
	done, failed := figures["completed"], figures["failed"]
	p.Partial = p.Summary.Partial
	p.Void = p.Summary.Verdict.Status == result.Voided && done > 0 // who answers nothing has missed
	p.Saturated = noted(p.Summary.Verdict, result.CheckSaturation)
	p.Capped = noted(p.Summary.Verdict, result.CheckLimit)
	for _, slo := range slos {
		met, why := slo.Judge(p.Summary)
		if met {
			continue
		}
		v, ok := p.Summary.Get(slo.Metric)
		if !ok {
			p.Missed = append(p.Missed, slo.Metric+" is absent")
			continue
		}
		if slo.Holds(v) { // of the calls that succeeded
			p.Missed = append(p.Missed, why)
			continue
		}
		beyond := map[string]string{"<=": ">", ">=": "<"}[slo.Op]
		p.Missed = append(p.Missed, fmt.Sprintf("%s %s %s %s", slo.Metric, rounded(v), beyond, Short(slo.Limit)))
	}
	if rate := failed / (done + failed); done == 0 || rate > maxErrors {
		p.Failed = true
		p.Missed = append(p.Missed, fmt.Sprintf("%g of %g calls failed", failed, done+failed))
	}
}

// noted reports whether a check casts doubt.
func noted(v result.Verdict, check string) bool {
	c, _ := v.Check(check)
	return c.Status.WorseThan(result.Sound)
}
