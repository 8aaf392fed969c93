package bench

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxPoints bounds a sweep, so that a typing error is not a week's work.
const maxPoints = 100

// Sweep is a list of loads to measure. With Auto they follow from two anchors:
// one call at a time, and all requests at once.
type Sweep struct {
	Axis   string
	Values []float64
	Auto   bool
}

// ParseSweep reads "rate=1,2,4", "rate=1..16x2" (geometric),
// "concurrency=8..64+8" (linear) and "rate=auto".
func ParseSweep(text string) (Sweep, error) {
	axis, values, ok := strings.Cut(text, "=")
	s := Sweep{Axis: axis}
	switch {
	case !ok || values == "":
		return s, fmt.Errorf("%q is no sweep: write rate=1,2,4, rate=1..16x2 or rate=auto", text)
	case axis != AxisRate && axis != AxisConcurrency:
		return s, fmt.Errorf("%q cannot be swept: rate or concurrency can", axis)
	case values == "auto" && axis == AxisConcurrency:
		return s, errors.New("concurrency=auto has no anchors: give a range such as concurrency=1..64x2")
	case values == "auto":
		s.Auto = true
		return s, nil
	}
	var err error
	if from, rest, ranged := strings.Cut(values, ".."); ranged {
		s.Values, err = valueRange(from, rest)
	} else {
		s.Values, err = valueList(values)
	}
	if err != nil {
		return s, err
	}
	for i, v := range s.Values {
		if axis == AxisConcurrency && v != math.Trunc(v) {
			return s, fmt.Errorf("concurrency %g is no whole number", v)
		}
		if i > 0 && v <= s.Values[i-1] {
			return s, fmt.Errorf("the values of a sweep ascend: %g comes after %g", v, s.Values[i-1])
		}
	}
	return s, nil
}

func valueList(text string) ([]float64, error) {
	var out []float64
	for part := range strings.SplitSeq(text, ",") {
		v, err := value(part)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	if len(out) > maxPoints {
		return nil, fmt.Errorf("%d points are more than the limit of %d", len(out), maxPoints)
	}
	return out, nil
}

// valueRange expands "1" and "16x2" or "16+3". The end belongs to it when a
// step meets it.
func valueRange(first, rest string) ([]float64, error) {
	i := strings.IndexAny(rest, "x+")
	if i < 0 {
		return nil, fmt.Errorf("the range %s..%s has no step: end it in x2 (doubling) or +2 (adding)", first, rest)
	}
	var v [3]float64
	for k, text := range []string{first, rest[:i], rest[i+1:]} {
		var err error
		if v[k], err = value(text); err != nil {
			return nil, err
		}
	}
	from, to, step := v[0], v[1], v[2]
	if from > to {
		return nil, fmt.Errorf("the range %s..%s goes down: write it from low to high", first, rest)
	}
	if rest[i] == 'x' && step <= 1 {
		return nil, fmt.Errorf("a range cannot be multiplied by %g: the factor must be above 1", step)
	}
	var out []float64
	for k := range maxPoints + 1 {
		x := from + float64(k)*step
		if rest[i] == 'x' {
			x = from * math.Pow(step, float64(k))
		}
		if x > to*(1+1e-9) {
			return out, nil
		}
		out = append(out, tidy(x))
	}
	return nil, fmt.Errorf("the range %s..%s has more than %d points", first, rest, maxPoints)
}

// tidy drops the digits that binary arithmetic leaves behind.
func tidy(v float64) float64 {
	t, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 10, 64), 64)
	if err != nil {
		return v
	}
	return t
}

func value(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 1) {
		return 0, fmt.Errorf("%q is no load: write a number above 0", text)
	}
	return v, nil
}

// Loads are those that are known before the first run: all, or the anchors.
func (s Sweep) Loads() []Load {
	if s.Auto {
		return []Load{{Axis: Synchronous}, {Axis: Throughput}}
	}
	out := make([]Load, len(s.Values))
	for i, v := range s.Values {
		out[i] = Load{s.Axis, v}
	}
	return out
}

// LoadPlan returns the sweep as a plan. points is how many runs an automatic one
// makes, its two anchors among them; requests is how many each run sends.
func (s Sweep) LoadPlan(points, requests int) LoadPlan {
	p := fixedPlan{}
	for _, l := range s.Loads() {
		p.steps = append(p.steps, Step{Load: l})
	}
	if !s.Auto {
		return &p
	}
	few := &p.steps[0].Requests
	if *few = syncRequests; requests > 0 {
		*few = min(*few, requests)
	}
	return &anchoredPlan{points: points, fixedPlan: p}
}

// syncRequests is how many requests the synchronous anchor sends: one after
// the other they take long, and each of them is a sample of the same thing.
const syncRequests = 50

// anchoredPlan adds to its two anchors the rates that divide the distance between
// what they achieved into equal parts.
type anchoredPlan struct {
	fixedPlan
	points  int
	anchors []float64
	failed  string // why there is nothing between them
}

// Tell takes an anchor's achieved rate in.
func (a *anchoredPlan) Tell(p Point) {
	if len(a.anchors) == 2 || a.failed != "" || (p.Load.Axis != Synchronous && p.Load.Axis != Throughput) {
		return
	}
	if !p.Usable() || p.Achieved <= 0 {
		a.failed, a.steps = fmt.Sprintf("the %s run gives no rate to place the others by", p.Load), nil
		return
	}
	if a.anchors = append(a.anchors, p.Achieved); len(a.anchors) < 2 {
		return
	}
	low, high := a.anchors[0], a.anchors[1]
	if high <= low {
		a.failed = fmt.Sprintf("one call at a time achieves %s req/s and all at once %s: there is nothing between them", rounded(low), rounded(high))
		return
	}
	inner := a.points - 2
	for k := range inner {
		v := low + (high-low)*float64(k+1)/float64(inner+1)
		a.steps = append(a.steps, Step{Load: Load{AxisRate, digits3(v)}})
	}
}

// Conclude says whether all points were measured.
func (a *anchoredPlan) Conclude() (Stop, *Max) {
	if a.failed != "" {
		return Stop{StopNoAnchors, a.failed}, nil
	}
	return Stop{StopDone, "anchors and all rates between them were measured"}, nil
}

// StopNoAnchors ends an automatic sweep whose anchors place no rates.
const StopNoAnchors = "no_anchors"

// SplitLoads reads one load or several of an axis, as text: 1,2,inf or a range as a sweep has it.
func SplitLoads(axis, text string) ([]string, error) {
	if !strings.Contains(text, "..") {
		return strings.Split(strings.ReplaceAll(text, " ", ""), ","), nil
	}
	s, err := ParseSweep(axis + "=" + text)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range s.Values {
		out = append(out, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return out, nil
}
