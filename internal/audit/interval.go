package audit

import (
	"math"

	"perflab/internal/interop"
)

// Interval is every value that a figure may stand for.
type Interval struct{ Lo, Hi float64 }

// Between is the interval of two bounds.
func Between(lo, hi float64) Interval { return Interval{lo, hi} }

// slack is the relative error that binary fractions may add to a bound: far
// below what any client prints.
const slack = 1e-9

// of is the interval of a printed figure.
func of(f interop.Figure) Interval { return Interval{f.Value - f.Half, f.Value + f.Half} }

// exactly is the interval of a number without rounding.
func exactly(v float64) Interval { return Interval{v, v} }

func (a Interval) plus(b Interval) Interval  { return Interval{a.Lo + b.Lo, a.Hi + b.Hi} }
func (a Interval) minus(b Interval) Interval { return Interval{a.Lo - b.Hi, a.Hi - b.Lo} }

func (a Interval) times(b Interval) Interval {
	p := []float64{a.Lo * b.Lo, a.Lo * b.Hi, a.Hi * b.Lo, a.Hi * b.Hi}
	return Interval{min(p[0], p[1], p[2], p[3]), max(p[0], p[1], p[2], p[3])}
}

// Over is a / b, of counts and times, which are not negative: a divisor that may
// be zero leaves the quotient open upwards.
func (a Interval) Over(b Interval) Interval {
	if b.Hi <= 0 {
		return Interval{math.Inf(-1), math.Inf(1)}
	}
	if b.Lo <= 0 {
		return Interval{a.Lo / b.Hi, math.Inf(1)}
	}
	return a.times(Interval{1 / b.Hi, 1 / b.Lo})
}

// scale is a * k.
func (a Interval) scale(k float64) Interval { return a.times(exactly(k)) }

// widen adds a share of the value on both sides.
func (a Interval) widen(share float64) Interval {
	return Interval{a.Lo - share*math.Abs(a.Lo), a.Hi + share*math.Abs(a.Hi)}
}

// above reports whether every value of a is above every value of b.
func (a Interval) above(b Interval) bool {
	return a.Lo-b.Hi > slack*max(math.Abs(a.Lo), math.Abs(b.Hi))
}

// Meets reports whether a value is in both.
func (a Interval) Meets(b Interval) bool { return !a.above(b) && !b.above(a) }

// mid is the middle of the interval: what is printed.
func (a Interval) mid() float64 { return (a.Lo + a.Hi) / 2 }
