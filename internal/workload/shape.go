package workload

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/field"
)

// Span is a length of time as users write it: "90s", "2m", or seconds alone.
type Span string

// Duration returns the span; "" is 0.
func (s Span) Duration() (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(string(s))
	if seconds, bare := strconv.ParseFloat(string(s), 64); bare == nil {
		// Outside the limits the float would not fit; Abs(NaN) fails as well.
		if !(math.Abs(seconds) <= maxSpan.Seconds()) {
			return 0, fmt.Errorf("%q is not a time: write 90s, 2m or 90", string(s))
		}
		d, err = time.Duration(math.Round(seconds*1e9)), nil
	}
	if err != nil || d <= 0 || d > maxSpan {
		return 0, fmt.Errorf("%q is not a time above 0: write 90s, 2m or 90", string(s))
	}
	return d, nil
}

// length is the duration of a valid spec.
func (s Spec) length() time.Duration {
	d, _ := s.Duration.Duration() // Validate has seen the error
	return d
}

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
func (s Spec) segments() ([]segment, error) {
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
	segments, err := s.segments()
	if err != nil || segments == nil {
		return nil, err
	}
	// A request this near the end of a step belongs to the next one: products
	// such as 0.1·30 are not whole in floating point.
	const edge = 1e-9
	gap := gaps(s)
	sum := 0.0
	for _, g := range segments {
		sum += g.mass()
	}
	if sum > maxRequests {
		return nil, fmt.Errorf("the schedule holds more than %d requests: choose a lower rate or a shorter time", maxRequests)
	}
	var due []time.Duration
	mass, past, start := 0.0, 0.0, 0.0 // of the request; of the steps before, and their seconds
	if s.Arrival != "constant" {
		mass = gap(1)
	}
	for _, g := range segments {
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

// lay opens the dataset of a valid spec with its defaults and lays out the
// schedule.
func lay(s Spec, k promptBuilder) (source, []time.Duration, error) {
	due, err := dueInTime(s)
	if err != nil {
		return source{}, nil, err
	}
	asked := s
	switch {
	case s.isTrace() && due != nil:
		asked.NumPrompts = 0 // its rows are counted below
	case due != nil:
		asked.NumPrompts = len(due)
	case s.endless():
		asked.NumPrompts = firstDraw(s)
	}
	src, err := open(asked, k)
	if err != nil {
		return source{}, nil, err
	}
	switch {
	case due == nil:
		if due, err = schedule(s, src.rows); err != nil {
			return source{}, nil, err
		}
		if d := s.length(); d > 0 && s.Arrival == "trace" {
			due = due[:len(due)-len(trailing(due, d))]
		}
	case s.isTrace() && len(due) > len(src.rows):
		return source{}, nil, fmt.Errorf("the schedule holds %d requests, and the trace, which is not repeated, %d usable rows: "+
			"choose a shorter time or a lower rate", len(due), len(src.rows))
	}
	n := min(len(due), len(src.rows))
	src.rows, due = src.rows[:n], due[:n]
	src.number()
	return src, due, nil
}

// trailing are the due times that are not before an end.
func trailing(due []time.Duration, end time.Duration) []time.Duration {
	n, _ := slices.BinarySearch(due, end)
	return due[n:]
}

// timed reports whether the load is bounded by time.
func (s Spec) timed() bool { return s.Steps != "" || s.Duration != "" }

// closed reports whether a request goes out when another one ends, with no
// schedule of its own.
func (s Spec) closed() bool { return s.Arrival == "inf" && s.MaxConcurrency > 0 }

// timeDecides reports whether the number of requests depends on how fast the
// server answers.
func (s Spec) timeDecides() bool {
	return s.Duration != "" && (s.closed() || s.Dataset == "conversations")
}

// endless reports whether requests are drawn for as long as the run lasts.
func (s Spec) endless() bool { return s.Duration != "" && s.closed() && s.NumPrompts == 0 }

// Until is when a run is over whose number of requests time decides: from this
// offset on no request is sent. 0: the requests are all sent.
func (w *Workload) Until() time.Duration {
	if !w.spec.timeDecides() {
		return 0
	}
	return w.spec.length()
}

// Closed reports whether a request is due when the concurrency limit lets it
// pass. That is so in a closed loop of conversations or bounded by time; one of
// a fixed number of requests has them all due at once, as in `vllm bench
// serve`, so that the wait for the limit shows.
func (w *Workload) Closed() bool {
	return w.spec.closed() && (w.spec.Duration != "" || w.spec.Dataset == "conversations")
}

// shapeFaults names what is wrong about steps and duration.
func (s Spec) shapeFaults(d Spec, paced bool) (faults []error) {
	fault := func(path, format string, a ...any) { faults = append(faults, field.Errorf(path, format, a...)) }
	if s.Steps != "" {
		switch {
		case !paced:
			fault("steps", "applies to [arrival] constant, poisson or gamma, not %s", d.Arrival)
		case !s.Rate.Inf():
			fault("request_rate", "does not apply with [steps], which has the rates")
		}
		if s.RampStrategy != "" {
			fault("ramp_up_strategy", "does not apply with [steps], which has the rates")
		}
		if s.Duration != "" {
			fault("duration", "does not apply with [steps], which has the times")
		}
		if _, err := parseSteps(s.Steps); err != nil {
			faults = append(faults, err)
		}
	}
	if s.Duration == "" {
		return faults
	}
	if _, err := s.Duration.Duration(); err != nil {
		fault("duration", "%v", err)
	}
	if d.Arrival == "inf" && s.MaxConcurrency == 0 {
		fault("duration", "needs [request_rate], a ramp, a trace or [max_concurrency]: without any of them all requests are due at once")
	}
	if d.endless() && d.isTrace() {
		fault("duration", "in a closed loop takes requests without end, and a trace is not repeated: give [num_prompts] or [request_rate] as well")
	}
	if d.endless() && d.RandomRNG != "" {
		fault("duration", "in a closed loop takes requests without end, and [random_rng] %s draws a number of them at once: give [num_prompts] as well", d.RandomRNG)
	}
	return faults
}
