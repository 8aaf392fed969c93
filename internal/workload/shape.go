package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"perflab/internal/field"
)

// segment is a stretch of a schedule over which the rate in requests/s goes
// from one value to another: in a line, or by equal factors in equal times.
type segment struct {
	seconds  float64
	from, to float64
	grows    bool // exponentially
}

// mass is how many requests a segment holds on average: the integral of its
// rate.
func (g segment) mass() float64 {
	if g.grows {
		return g.from * g.seconds / g.pace() * (g.to/g.from - 1)
	}
	return (g.from + g.to) / 2 * g.seconds
}

// pace is ln(to/from).
func (g segment) pace() float64 { return math.Log(g.to / g.from) }

// when is the inverse of the integral of the rate: after how many seconds of
// the segment it comes to m.
func (g segment) when(m float64) float64 {
	switch {
	case g.grows: // from·T/p·(e^(p·t/T)-1) = m
		return g.seconds / g.pace() * math.Log1p(m*g.pace()/(g.from*g.seconds))
	case g.from == g.to:
		return m / g.from
	}
	// from·t + (to-from)·t²/2T = m, in the form that divides by no small number
	k := (g.to - g.from) / g.seconds
	return 2 * m / (g.from + math.Sqrt(g.from*g.from+2*k*m))
}

// segments are the rates over time of a schedule that is bounded by time; nil
// for one that is bounded by a number of requests.
func segments(s Spec) ([]segment, error) {
	d := s.length().Seconds()
	switch {
	case s.Steps != "":
		return parseSteps(s.Steps)
	case d == 0 || s.Arrival == "inf" || s.Arrival == "trace":
		return nil, nil
	case s.RampStrategy != "":
		return []segment{{d, s.RampStart, s.RampEnd, s.RampStrategy == "exponential"}}, nil
	}
	return []segment{{d, float64(s.Rate), float64(s.Rate), false}}, nil
}

// parseSteps reads RATE:TIME,RATE:TIME,...; a rate of 0 is a pause.
func parseSteps(text string) ([]segment, error) {
	const form = "write RATE:TIME,... such as 2:30s,8:60s,2:30s"
	var out []segment
	highest := 0.0
	for part := range strings.SplitSeq(text, ",") {
		left, right, ok := strings.Cut(strings.TrimSpace(part), ":")
		rate, err := strconv.ParseFloat(left, 64)
		if !ok || err != nil || !(rate >= 0) || math.IsInf(rate, 1) {
			return nil, field.Errorf("steps", "has %q: %s", part, form)
		}
		d, err := Span(right).Duration()
		if err != nil || right == "" {
			return nil, field.Errorf("steps", "has %q: %s", part, form)
		}
		out = append(out, segment{seconds: d.Seconds(), from: rate, to: rate})
		highest = max(highest, rate)
	}
	if highest == 0 {
		return nil, field.Errorf("steps", "%s has no rate above 0: %s", text, form)
	}
	return out, nil
}

// dueInTime returns the due times of a schedule bounded by time, nil for one
// that is not.
//
// Arrivals at the rate 1 are stretched so that as much of them falls into each
// stretch of time as the integral of the rate says: that is exact for a
// Poisson process of changing rate, gives an even one its right number in each
// step, and keeps the variability of gamma gaps. Nothing is rescaled, so the
// number of random arrivals is itself random.
func dueInTime(s Spec) ([]time.Duration, error) {
	list, err := segments(s)
	if err != nil || list == nil {
		return nil, err
	}
	// A request this near the end of a step belongs to the next one: products
	// such as 0.1·30 are not whole in floating point.
	const edge = 1e-9
	gap := gaps(s)
	sum := 0.0
	for _, g := range list {
		sum += g.mass()
	}
	most := float64(maxRequests)
	if drawnLong(s) {
		most = maxLong
	}
	if sum > most {
		return nil, fmt.Errorf("the schedule holds more than %.0f requests: choose a lower rate or a shorter time", most)
	}
	var due []time.Duration
	mass, past, start := 0.0, 0.0, 0.0 // of the request; of the steps before, and their seconds
	if s.Arrival != "constant" {
		mass = gap(1)
	}
	for _, g := range list {
		for ; mass < past+g.mass()-edge; mass += gap(1) {
			if len(due) == s.NumPrompts && s.NumPrompts > 0 {
				return due, nil
			}
			at := start + g.when(max(0, mass-past))
			if !(at <= maxSpan.Seconds()) {
				return nil, fmt.Errorf("request %d would be due after %.3g s: choose a shorter time", len(due)+1, at)
			}
			due = append(due, time.Duration(math.Round(at*1e9)))
		}
		past += g.mass()
		start += g.seconds
	}
	switch {
	case len(due) == 0:
		return nil, fmt.Errorf("no request is due within the %.4g s of the schedule: choose a higher rate or a longer time", start)
	case s.Steps != "" && s.NumPrompts > len(due):
		return nil, field.Errorf("num_prompts", "%d is more than the %d requests that [steps] %s holds", s.NumPrompts, len(due), s.Steps)
	}
	return due, nil
}
