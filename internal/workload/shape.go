package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"perflab/internal/field"
	"perflab/internal/workload/segment"
)

// segments are the rates over time of a schedule that is bounded by time; nil
// for one that is bounded by a number of requests.
func segments(s Spec) ([]segment.Segment, error) {
	d := s.length().Seconds()
	switch {
	case s.Steps != "":
		return parseSteps(s.Steps)
	case d == 0 || s.Arrival == "inf" || s.Arrival == "trace":
		return nil, nil
	case s.RampStrategy != "":
		return []segment.Segment{{Seconds: d, From: s.RampStart, To: s.RampEnd, Grows: s.RampStrategy == "exponential"}}, nil
	}
	return []segment.Segment{{Seconds: d, From: float64(s.Rate), To: float64(s.Rate)}}, nil
}

// parseSteps reads RATE:TIME,RATE:TIME,...; a rate of 0 is a pause.
func parseSteps(text string) ([]segment.Segment, error) {
	const form = "write RATE:TIME,... such as 2:30s,8:60s,2:30s"
	var out []segment.Segment
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
		out = append(out, segment.Segment{Seconds: d.Seconds(), From: rate, To: rate})
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
		sum += g.Mass()
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
		for ; mass < past+g.Mass()-edge; mass += gap(1) {
			if len(due) == s.NumPrompts && s.NumPrompts > 0 {
				return due, nil
			}
			at := start + g.When(max(0, mass-past))
			if !(at <= maxSpan.Seconds()) {
				return nil, fmt.Errorf("request %d would be due after %.3g s: choose a shorter time", len(due)+1, at)
			}
			due = append(due, time.Duration(math.Round(at*1e9)))
		}
		past += g.Mass()
		start += g.Seconds
	}
	switch {
	case len(due) == 0:
		return nil, fmt.Errorf("no request is due within the %.4g s of the schedule: choose a higher rate or a longer time", start)
	case s.Steps != "" && s.NumPrompts > len(due):
		return nil, field.Errorf("num_prompts", "%d is more than the %d requests that [steps] %s holds", s.NumPrompts, len(due), s.Steps)
	}
	return due, nil
}
