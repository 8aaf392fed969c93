// Package segment is the arithmetic of rates that change: how many requests a stretch of time holds, and when
// each of them is due.
//
//	g := segment.Segment{Seconds: 30, From: 2, To: 8}
//	at := g.When(10)
//
// Absent: random gaps and the spec that segments are made of (package workload).
package segment

import "math"

// Segment is a stretch of a schedule over which the rate in requests/s goes
// from one value to another: in a line, or by equal factors in equal times.
type Segment struct {
	Seconds  float64
	From, To float64
	Grows    bool // exponentially
}

// Mass is how many requests a segment holds on average: the integral of its
// rate.
func (g Segment) Mass() float64 {
	if g.Grows {
		return g.From * g.Seconds / g.pace() * (g.To/g.From - 1)
	}
	return (g.From + g.To) / 2 * g.Seconds
}

// pace is ln(to/from).
func (g Segment) pace() float64 { return math.Log(g.To / g.From) }

// When is the inverse of the integral of the rate: after how many seconds of
// the segment it comes to m.
func (g Segment) When(m float64) float64 {
	switch {
	case g.Grows: // from·T/p·(e^(p·t/T)-1) = m
		return g.Seconds / g.pace() * math.Log1p(m*g.pace()/(g.From*g.Seconds))
	case g.From == g.To:
		return m / g.From
	}
	// from·t + (to-from)·t²/2T = m, in the form that divides by no small number
	k := (g.To - g.From) / g.Seconds
	return 2 * m / (g.From + math.Sqrt(g.From*g.From+2*k*m))
}
