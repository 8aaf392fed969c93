package stat

// NodeEffects are what each of n machines adds to the figures of its launches, by the
// additive model
//
//	y = arm + node + noise
//
// in which nodes are drawn by chance, with ratio the variance of the noise over theirs: so
// one that has few launches, or none of an arm that another has too, is thought to be little
// different (ridge regression, which is their best linear prediction; Robinson 1991). Their
// mean is 0. Figures of one launch are compared over machines once these are taken off.
func (l Launches) NodeEffects(n int, ratio float64) []float64 {
	type arm struct {
		sum float64
		on  []float64 // launches by machine
	}
	arms := map[int]*arm{}
	right, normal := make([]float64, n), make([][]float64, n)
	var order []*arm // a sum over a map would not be the same each time
	for _, x := range l {
		a := arms[x.Arm]
		if a == nil {
			a = &arm{on: make([]float64, n)}
			arms[x.Arm] = a
			order = append(order, a)
		}
		a.sum += x.Y
		a.on[x.Node]++
		right[x.Node] += x.Y
	}
	for i := range normal {
		normal[i] = make([]float64, i+1)
		normal[i][i] = ratio
	}
	for _, a := range order {
		all := Sum(a.on)
		for i, k := range a.on {
			right[i] -= k * a.sum / all
			normal[i][i] += k
			for j := range i + 1 {
				normal[i][j] -= k * a.on[j] / all
			}
		}
	}
	cholesky(normal)
	out := backward(normal, forward(normal, right))
	mean := Mean(out)
	for i := range out {
		out[i] -= mean
	}
	return out
}

// backward solves x l = right for a lower triangle.
func backward(l [][]float64, right []float64) []float64 {
	x := make([]float64, len(right))
	for i := len(right) - 1; i >= 0; i-- {
		x[i] = right[i]
		for j := i + 1; j < len(right); j++ {
			x[i] -= l[j][i] * x[j]
		}
		x[i] /= l[i][i]
	}
	return x
}
