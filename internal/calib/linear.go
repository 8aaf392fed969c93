package calib

import "math"

// solveSymmetric solves a*x = b for a positive definite a by Cholesky's
// decomposition; directions of no curvature get 0.
func solveSymmetric(a [][]float64, b []float64) []float64 { return solveFactored(cholesky(a), b) }

// solveFactored solves l*l'*x = b.
func solveFactored(l [][]float64, b []float64) []float64 {
	n := len(b)
	y, x := make([]float64, n), make([]float64, n)
	for i := range n {
		s := b[i]
		for k := range i {
			s -= l[i][k] * y[k]
		}
		y[i] = quotient(s, l[i][i])
	}
	for i := n - 1; i >= 0; i-- {
		s := y[i]
		for k := i + 1; k < n; k++ {
			s -= l[k][i] * x[k]
		}
		x[i] = quotient(s, l[i][i])
	}
	return x
}

func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func cholesky(a [][]float64) [][]float64 {
	l := make([][]float64, len(a))
	for i := range a {
		l[i] = make([]float64, len(a))
		for j := range i + 1 {
			s := a[i][j]
			for k := range j {
				s -= l[i][k] * l[j][k]
			}
			switch {
			case i == j:
				l[i][i] = math.Sqrt(max(0, s))
			default:
				l[i][j] = quotient(s, l[j][j])
			}
		}
	}
	return l
}

// invert is the inverse of a positive definite matrix.
func invert(a [][]float64) [][]float64 {
	out := make([][]float64, len(a))
	l := cholesky(a)
	for i := range a {
		e := make([]float64, len(a))
		e[i] = 1
		out[i] = solveFactored(l, e)
	}
	return out
}
