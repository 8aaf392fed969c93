package stat

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Why there is no contrast.
var (
	ErrNoCommonRound = errors.New("no round has a figure of both")
	ErrNoSpread      = errors.New("too few figures to know the spread between launches")
)

// Rounds are the natural logarithms of figures of launches: a row is a round in
// which every configuration was launched once, one beside the other, a column is
// a configuration. NaN, or a row that ends early, is a launch without a figure.
type Rounds [][]float64

// Contrast is a difference of two configurations, of logarithms: exp(Diff) is
// the ratio of their figures.
type Contrast struct {
	Diff, Low, High float64 // with the interval that was asked for
	SE              float64 // of Diff
	DF              float64 // of SE
	P               float64 // two-sided, that there is no difference
	SD              float64 // between launches of one configuration in one round
	N               int     // rounds that have both
}

// At is the interval at another confidence. To have the comparisons of a family
// corrected as Holm corrects their P, give the one at place i of n, ascending by
// P from 0, the confidence 1 - alpha/(n-i).
func (c Contrast) At(confidence float64) (low, high float64) {
	half := StudentQuantile((1+confidence)/2, c.DF) * c.SE
	return c.Diff - half, c.Diff + half
}

// Contrast returns column b minus column a by least squares on
//
//	y[round][column] = configuration[column] + round[round] + error
//
// over the cells there are: what a round has in common (a warmer room, another
// tenant) is no noise of the difference, and columns beside a and b help to know
// the rounds and the spread. That is one for all columns: so few launches tell
// too little of the spread of each by itself (Student's factor is 4.3 for three
// differences, 2.8 for three rounds of three columns).
//
// In 2000 simulated draws of 3 rounds of 3 columns the 95 % interval holds the
// truth in 94 to 95 % of them, also with a missing cell, whatever the rounds do.
// Where one column is four times as noisy as the others it does in 88 % if the
// noisy one is compared, and in 99 % if it is not.
func (r Rounds) Contrast(a, b int, confidence float64) (Contrast, error) {
	l := newLayout(r)
	if a == b || min(a, b) < 0 || max(a, b) >= l.columns {
		return Contrast{}, fmt.Errorf("compare columns %d and %d of %d: %w", a, b, l.columns, ErrNoCommonRound)
	}
	common := 0
	for _, row := range l.rows {
		if l.has(row, a) && l.has(row, b) {
			common++
		}
	}
	if common == 0 {
		return Contrast{}, ErrNoCommonRound
	}
	free, grounded := l.freedom(a)
	if free < 1 {
		return Contrast{}, ErrNoSpread
	}
	normal, right := l.normal(grounded)
	unit := make([]float64, l.columns)
	unit[b] = 1
	effects, leverage := solve(normal, right), solve(normal, unit)
	c := Contrast{Diff: effects[b], DF: float64(free), N: common}
	c.SD = math.Sqrt(l.residual(effects) / c.DF)
	// What rounding leaves of equal figures is no difference, and no noise.
	rounding := 1e-13 * max(1, l.largest)
	if math.Abs(c.Diff) < rounding {
		c.Diff = 0
	}
	if c.SD < rounding {
		c.SD = 0
	}
	c.SE = c.SD * math.Sqrt(leverage[b])
	c.Low, c.High = c.At(confidence)
	switch {
	case c.SE > 0:
		c.P = StudentTail(c.Diff/c.SE, c.DF)
	case c.Diff == 0:
		c.P = 1
	}
	return c, nil
}

// layout is a two-way layout with holes.
type layout struct {
	rows    [][]float64
	columns int
	largest float64 // of the figures, without sign
}

func newLayout(r Rounds) layout {
	l := layout{rows: r}
	for _, row := range r {
		l.columns = max(l.columns, len(row))
		for column, y := range row {
			if l.has(row, column) {
				l.largest = max(l.largest, math.Abs(y))
			}
		}
	}
	return l
}

func (l layout) has(row []float64, column int) bool {
	return column < len(row) && !math.IsNaN(row[column]) && !math.IsInf(row[column], 0)
}

// freedom counts the degrees of freedom of the residuals: cells less columns
// and rows that have any, and one more for each part of the layout that has no
// row in common with another. One column of each part is grounded, a in its own:
// its effect is 0 and the others' are relative to it. So are empty columns.
func (l layout) freedom(a int) (free int, grounded []bool) {
	part := make([]int, l.columns)
	for i := range part {
		part[i] = i
	}
	cells, held := make([]int, l.columns), 0
	for _, row := range l.rows {
		first := -1
		for column := range l.columns {
			if !l.has(row, column) {
				continue
			}
			cells[column]++
			free++
			if first < 0 {
				first = column
				held++
				continue
			}
			from, to := part[column], part[first]
			for i := range part {
				if part[i] == from {
					part[i] = to
				}
			}
		}
	}
	grounded = make([]bool, l.columns)
	done := map[int]bool{part[a]: true}
	grounded[a] = true
	for column, n := range cells {
		switch {
		case n == 0:
			grounded[column] = true
			continue
		case !done[part[column]]:
			done[part[column]], grounded[column] = true, true
		}
		held++
	}
	return free - held + len(done), grounded
}

// normal is the system for the columns' effects once the rows' are eliminated:
// each row's figures less their mean.
func (l layout) normal(grounded []bool) (matrix [][]float64, right []float64) {
	matrix, right = make([][]float64, l.columns), make([]float64, l.columns)
	for i := range matrix {
		matrix[i] = make([]float64, l.columns)
	}
	for _, row := range l.rows {
		mean, n := l.mean(row, nil)
		for i := range l.columns {
			if !l.has(row, i) || grounded[i] {
				continue
			}
			right[i] += row[i] - mean
			matrix[i][i]++
			for j := range l.columns {
				if l.has(row, j) && !grounded[j] {
					matrix[i][j] -= 1 / n
				}
			}
		}
	}
	for i, g := range grounded {
		if g {
			matrix[i][i] = 1
		}
	}
	return matrix, right
}

// mean of a row's cells, less the columns' effects if there are any.
func (l layout) mean(row, effects []float64) (mean, n float64) {
	var sum Total
	for i, y := range row {
		if l.has(row, i) {
			if effects != nil {
				y -= effects[i]
			}
			sum.Add(y)
			n++
		}
	}
	return sum.Sum() / n, n
}

// residual is the sum of squares that the effects leave.
func (l layout) residual(effects []float64) float64 {
	var squares Total
	for _, row := range l.rows {
		mean, _ := l.mean(row, effects)
		for i, y := range row {
			if l.has(row, i) {
				e := y - effects[i] - mean
				squares.Add(e * e)
			}
		}
	}
	return squares.Sum()
}

// solve returns x of matrix x = right for a symmetric positive definite matrix,
// by elimination; neither argument changes.
func solve(matrix [][]float64, right []float64) []float64 {
	m, x := make([][]float64, len(matrix)), slices.Clone(right)
	for i := range matrix {
		m[i] = slices.Clone(matrix[i])
	}
	for i := range m {
		for k := i + 1; k < len(m); k++ {
			f := m[k][i] / m[i][i]
			for j := i; j < len(m); j++ {
				m[k][j] -= f * m[i][j]
			}
			x[k] -= f * x[i]
		}
	}
	for i := len(m) - 1; i >= 0; i-- {
		for j := i + 1; j < len(m); j++ {
			x[i] -= m[i][j] * x[j]
		}
		x[i] /= m[i][i]
	}
	return x
}

// Detectable is the least difference between the means of n launches each that
// a two-sided test at the confidence shows with the given power, where launches
// have the standard deviation sd and df degrees of freedom know it:
//
//	sd sqrt(2/n) (t[(1+confidence)/2, df] + t[power, df])
//
// The second quantile stands in for one of the noncentral distribution: an
// effect meant to be shown four times in five was in 78 to 79 % of simulated
// confirmations of 3 and of 6 rounds.
func Detectable(sd float64, n int, df, confidence, power float64) float64 {
	reach := 0.0
	switch {
	case power > 0.5:
		reach = StudentQuantile(power, df)
	case power < 0.5:
		reach = -StudentQuantile(1-power, df)
	}
	return sd * math.Sqrt(2/float64(n)) * max(0, StudentQuantile((1+confidence)/2, df)+reach)
}

// LaunchesFor is how many launches a side Detectable asks for to show an effect:
// in rounds of three configurations, as a race confirms (two and the baseline),
// whose spread is then known by 2(n-1) degrees of freedom. It is 3 at least, as
// fewer say little about the spread, and 10,000 where more would be needed.
func LaunchesFor(sd, effect, confidence, power float64) int {
	enough := func(n int) bool {
		return Detectable(sd, n, 2*float64(n-1), confidence, power) <= effect
	}
	const least, most = 3, 10000
	low, high := least, least
	for ; high < most && !enough(high); high *= 2 {
		low = high + 1
	}
	for high = min(high, most); low < high; {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high
}
