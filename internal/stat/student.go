package stat

import "math"

// StudentQuantile is the p-quantile, p > 0.5, of Student's t distribution with
// df degrees of freedom: where its upper tail I_{df/(df+t²)}(df/2, 1/2)/2 is
// 1 - p. The tail falls and is convex, so Newton's steps from the normal
// quantile, which is less, never pass it; they end where rounding lets them go
// no further.
func StudentQuantile(p, df float64) float64 {
	half, _ := math.Lgamma(df / 2)
	more, _ := math.Lgamma((df + 1) / 2)
	top := math.Exp(more-half) / math.Sqrt(df*math.Pi) // the density at 0
	t := math.Sqrt2 * math.Erfinv(2*p-1)
	for range 200 { // far out, with one degree of freedom, a step doubles t
		tail := incompleteBeta(df/(df+t*t), df/2, 0.5) / 2
		next := t + (tail-(1-p))/(top*math.Exp(-(df+1)/2*math.Log1p(t*t/df)))
		if !(next > t*(1+1e-15)) || next > 1e12 {
			break
		}
		t = next
	}
	return t
}

// StudentTail is the probability that Student's t with df degrees of freedom,
// whole or not, is at least as far from 0 as t on either side. It is exact to
// 1e-10 up to some 10,000 degrees of freedom.
func StudentTail(t, df float64) float64 {
	switch {
	case math.IsNaN(t) || !(df > 0):
		return math.NaN()
	case math.IsInf(t, 0):
		return 0
	case math.IsInf(df, 1):
		return math.Erfc(math.Abs(t) / math.Sqrt2)
	}
	return incompleteBeta(df/(df+t*t), df/2, 0.5)
}

// incompleteBeta is the regularised incomplete beta function I_x(a, b), by its
// continued fraction (Lentz's method), which converges fast for
// x < (a+1)/(a+b+2); beyond, I_x(a, b) = 1 - I_{1-x}(b, a).
func incompleteBeta(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - incompleteBeta(1-x, b, a)
	}
	ln := func(v float64) float64 { g, _ := math.Lgamma(v); return g }
	front := math.Exp(ln(a+b)-ln(a)-ln(b)+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	c, d := 1.0, 1-(a+b)*x/(a+1)
	if math.Abs(d) < tiny {
		d = tiny
	}
	d = 1 / d
	f := d
	for m := 1.0; m < 300; m++ {
		for _, k := range []float64{
			m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)),
			-(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1)),
		} {
			if d = 1 + k*d; math.Abs(d) < tiny {
				d = tiny
			}
			if c = 1 + k/c; math.Abs(c) < tiny {
				c = tiny
			}
			d = 1 / d
			f *= d * c
		}
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return front * f
}
