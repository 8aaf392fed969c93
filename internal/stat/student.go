package stat

import "math"

// studentQuantile is the p-quantile, p > 0.5, of Student's t distribution with
// df degrees of freedom, by bisection of its distribution function
// F(t) = 1 - I_{df/(df+t²)}(df/2, 1/2)/2.
func studentQuantile(p, df float64) float64 {
	upper := func(t float64) float64 { return incompleteBeta(df/(df+t*t), df/2, 0.5) / 2 }
	lo, hi := 0.0, 1.0
	for upper(hi) > 1-p && hi < 1e12 {
		hi *= 2
	}
	for range 64 { // halvings: more than a float has bits to tell apart
		mid := (lo + hi) / 2
		if upper(mid) > 1-p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
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
