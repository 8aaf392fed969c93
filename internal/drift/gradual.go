package drift

import "math"

// slopes says of each change whether it is a slow drift that no step describes: of changes
// that follow each other in one direction, whether a straight line through their segments
// describes the points better than the segments' medians do. For n points whose sum of
// distances from either is D, better is the smaller 2 n ln D + p ln n (Schwarz's criterion for
// Laplace noise), where the line has p = 2 parameters and k changes have 2 k + 1.
func slopes(x []float64, e []int) []bool {
	n := len(e) - 2
	if n < 1 {
		return nil
	}
	gradual := make([]bool, n)
	m := make([]float64, n+1)
	for i := range m {
		m[i] = median(x[e[i]:e[i+1]])
	}
	for i := 0; i < n; {
		j := i + 1
		for j < n && (m[j+1] > m[j]) == (m[i+1] > m[i]) {
			j++
		}
		steps := 0.0
		for k := i; k <= j; k++ {
			steps += distances(x[e[k]:e[k+1]])
		}
		all, k := float64(e[j+1]-e[i]), float64(j-i)
		straight := line(x[e[i]:e[j+1]]) < steps*math.Pow(all, (2*k-1)/(2*all))
		for ; i < j; i++ {
			gradual[i] = straight
		}
	}
	return gradual
}

// line is the sum of the distances from a straight line whose slope is the median of those
// between points half the series apart, so that outliers do not turn it.
func line(x []float64) float64 {
	n := len(x)
	half := n / 2
	rises := make([]float64, 0, n-half)
	for i := range n - half {
		rises = append(rises, (x[i+half]-x[i])/float64(half))
	}
	slope := median(rises)
	if math.IsInf(slope, 0) || math.IsNaN(slope) {
		return math.Inf(1)
	}
	rest := make([]float64, n)
	for i, v := range x {
		rest[i] = v - slope*float64(i)
	}
	return distances(rest)
}
