package audit

import (
	"math"

	"perflab/internal/interop"
)

// interval is every value that a figure may stand for.
type interval struct{ lo, hi float64 }

// slack is the relative error that binary fractions may add to a bound: far
// below what any client prints.
const slack = 1e-9

// of is the interval of a printed figure.
func of(f interop.Figure) interval { return interval{f.Value - f.Half, f.Value + f.Half} }

// exactly is the interval of a number without rounding.
func exactly(v float64) interval { return interval{v, v} }

func (a interval) plus(b interval) interval  { return interval{a.lo + b.lo, a.hi + b.hi} }
func (a interval) minus(b interval) interval { return interval{a.lo - b.hi, a.hi - b.lo} }

func (a interval) times(b interval) interval {
	p := []float64{a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi}
	return interval{min(p[0], p[1], p[2], p[3]), max(p[0], p[1], p[2], p[3])}
}

// over is a / b, of counts and times, which are not negative: a divisor that may
// be zero leaves the quotient open upwards.
func (a interval) over(b interval) interval {
	if b.hi <= 0 {
		return interval{math.Inf(-1), math.Inf(1)}
	}
	if b.lo <= 0 {
		return interval{a.lo / b.hi, math.Inf(1)}
	}
	return a.times(interval{1 / b.hi, 1 / b.lo})
}

// scale is a * k.
func (a interval) scale(k float64) interval { return a.times(exactly(k)) }

// widen adds a share of the value on both sides.
func (a interval) widen(share float64) interval {
	return interval{a.lo - share*math.Abs(a.lo), a.hi + share*math.Abs(a.hi)}
}

// above reports whether every value of a is above every value of b.
func (a interval) above(b interval) bool {
	return a.lo-b.hi > slack*max(math.Abs(a.lo), math.Abs(b.hi))
}

// meets reports whether a value is in both.
func (a interval) meets(b interval) bool { return !a.above(b) && !b.above(a) }

// mid is the middle of the interval: what is printed.
func (a interval) mid() float64 { return (a.lo + a.hi) / 2 }
