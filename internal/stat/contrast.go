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

// Launch is the figure of one launch of a configuration.
type Launch struct {
	Y     float64 // natural logarithm of the figure; not a number, or infinite: none
	Arm   int     // the configuration
	Round int     // launches of one round share their requests
	Node  int     // the machine

	// Stratum parts launches that may not be held against each other, as those of
	// another day or another driver: they tell of the noise between launches alike, and
	// of a difference only to others of their own.
	Stratum int
}

// Launches are those of any number of configurations, in any order.
type Launches []Launch

// Contrast is a difference of two configurations, of logarithms: exp(Diff) is
// the ratio of their figures.
type Contrast struct {
	Diff, Low, High float64 // with the interval that was asked for
	SE              float64 // of Diff
	DF              float64 // of SE
	P               float64 // two-sided, that there is no difference
	SD              float64 // between launches of one configuration in one round on one machine
	N               int     // rounds that have both

	parts []part
}

// part is what a contrast would be, were its variances known: the difference is normal
// about diff. The weights of all add up to 1.
type part struct{ weight, diff, se float64 }

// Contrast returns arm b minus arm a by the model
//
//	y = arm + stratum + round + node + noise
//
// in which rounds and nodes are drawn by chance, the noise of a and of b may
// differ, and launches of other arms have no part, since another engine may be
// many times as noisy. Nobody knows the ratios of these variances, so each of a few
// is taken in turn (see blockRatios), weighed by the likelihood of the figures with all
// else integrated out (restricted maximum likelihood; Patterson and Thompson 1971).
// Of each the difference and the noise are those of generalised least squares, with what is known
// of noise beforehand (usualNoise), and the interval is that of their mixture. So what a round has in
// common is no noise where rounds differ, and where they do not, the degrees of freedom that pairs
// would cost are not lost (2(n-1) for n launches each, and not n-1); a launch that has
// no partner counts for what it is worth. docs/tuning.md says in how many of
// simulated confirmations the interval holds the truth.
func (l Launches) Contrast(a, b int, confidence float64) (Contrast, error) {
	d, err := newDesign(l, a, b)
	if err != nil {
		return Contrast{}, err
	}
	c := Contrast{DF: float64(len(d.y) - d.columns), N: d.common}
	rounding := 1e-13 * max(1, d.largest)
	diff, sure := d.exact(rounding)
	if sure {
		c.Diff = diff
	} else if c.integrate(d, usualNoise); c.SD < rounding {
		c.SD, c.SE, c.parts = 0, 0, nil
	}
	if math.Abs(c.Diff) < rounding {
		c.Diff = 0 // what rounding leaves of equal figures is no difference
	}
	c.Low, c.High = c.At(confidence)
	below := c.Below(0)
	c.P = 2 * min(below, 1-below)
	return c, nil
}

// What the ratios of the variances may be. Of rounds and of nodes it is the ratio to that of
// the noise: none has the weight noBlocks, and all others share the rest alike, on a scale of
// logarithms. Of the noise of b and of a it is the ratio of the standard deviations, with
// its weights: with less at the ends the interval would hold the truth too rarely where the
// noises differ, as after few launches they may differ by more than is seen, and with more
// it would be wider than need be where they do not. Both are the result of simulations.
var (
	blockRatios  = []float64{0, 0.5, 2, 8, 32, 128, 1024}
	noiseRatios  = []float64{1.0 / 16, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16}
	noiseWeights = []float64{8, 4, 2, 1, 1, 1, 2, 4, 8}
)

const noBlocks = 0.3

// blockWeight is that of a ratio among blockRatios.
func blockWeight(of []float64, at int) float64 {
	switch {
	case len(of) == 1:
		return 1
	case at == 0:
		return noBlocks
	}
	return (1 - noBlocks) / float64(len(of)-1)
}

// usualNoise is what the noise between launches seldom is far above. Below it nothing is thought of the
// noise beforehand; beyond it, twice as much is half as likely (a tail as that of the half-Cauchy
// distribution; Gelman 2006, Prior distributions for variance parameters in hierarchical models,
// section 4.3). So two launches that happen to lie apart do not have the interval allow for noise that
// hardly any server has.
const usualNoise = 0.15

// seldom is the logarithm of how likely the noises a and b are, beside ones far below what is usual.
func seldom(a, b, usual float64) float64 {
	return -(math.Log1p(a*a/(usual*usual)) + math.Log1p(b*b/(usual*usual))) / 2
}

// negligible is how much less likely than the likeliest, on logarithms, what is left out of the mixture is.
const negligible = 12

// integrate makes the mixture: over the ratios of the variances, and of each over the noise. Were any
// noise usual, the latter would be Student's distribution.
func (c *Contrast) integrate(d *design, usual float64) {
	sum := 0.0
	for _, f := range d.fits() {
		all, precision := 0.0, 0.0
		root := math.Sqrt(f.noise)
		// The noise is exp(u) times what the figures show of it.
		for u := -2.4 / math.Sqrt(c.DF); u < min(8, negligible/c.DF); u += 0.6 / math.Sqrt(c.DF) {
			sd := f.sd * math.Exp(u)
			w := math.Exp(f.likelihood - c.DF*u - c.DF/2*math.Expm1(-2*u) + seldom(sd/root, sd*root, usual))
			c.parts = append(c.parts, part{w, f.diff, sd * f.scale})
			all, precision = all+w, precision+w/(sd*sd)
		}
		sd := math.Sqrt(all / precision)
		sum += all
		c.Diff += all * f.diff
		c.SD += all * sd * math.Sqrt((f.noise+1/f.noise)/2)
		c.SE += all * sd * f.scale * sd * f.scale
	}
	c.Diff, c.SD, c.SE = c.Diff/sum, c.SD/sum, math.Sqrt(c.SE/sum)
	c.parts = slices.DeleteFunc(c.parts, func(p part) bool { return p.weight <= 1e-5*sum })
	kept := 0.0
	for _, p := range c.parts {
		kept += p.weight
	}
	for i := range c.parts {
		c.parts[i].weight /= kept
	}
}

// Below is the chance that the difference is less than x.
func (c Contrast) Below(x float64) float64 {
	if c.SE == 0 {
		switch {
		case c.Diff < x:
			return 1
		case c.Diff > x:
			return 0
		}
		return 0.5
	}
	below := 0.0
	for _, p := range c.parts {
		below += p.weight * NormalCDF((x-p.diff)/p.se)
	}
	return below
}

// Promise is the chance that more than what matters is shown by the last of all rounds, of which some are made, as things stand:
// what is added is like what there is.
func (c Contrast) Promise(made, all int, confidence, matters float64) float64 {
	switch {
	case c.SE == 0 && c.Diff > matters:
		return 1
	case c.SE == 0 || made >= all:
		return 0
	}
	share := float64(made) / float64(all)
	half := StudentQuantile((1+confidence)/2, c.DF+2*float64(all-made)) * c.SE * math.Sqrt(share)
	short := (max(half, matters) - c.Diff) / (c.SE * math.Sqrt(1-share))
	tail := StudentTail(short, c.DF) / 2
	if short < 0 {
		return 1 - tail
	}
	return tail
}

// At is the interval at another confidence. To have the comparisons of a family
// corrected as Holm corrects their P, give the one at place i of n, ascending by
// P from 0, the confidence 1 - alpha/(n-i).
func (c Contrast) At(confidence float64) (low, high float64) {
	if c.SE == 0 {
		return c.Diff, c.Diff
	}
	return c.quantile((1 - confidence) / 2), c.quantile((1 + confidence) / 2)
}

// quantile lies between those of the parts. Newton's steps find it, and halves where a
// step would leave the bounds.
func (c Contrast) quantile(p float64) float64 {
	t := StudentQuantile(max(p, 1-p), c.DF)
	if p < 0.5 {
		t = -t
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, k := range c.parts {
		low, high = min(low, k.diff+t*k.se), max(high, k.diff+t*k.se)
	}
	x := min(max(c.Diff+t*c.SE, low), high)
	for range 100 {
		at := c.Below(x) - p
		if at < 0 {
			low = x
		} else {
			high = x
		}
		next := x - at/c.density(x)
		if !(next >= low && next <= high) {
			next = (low + high) / 2
		}
		if math.Abs(next-x) <= 1e-12*(math.Abs(x)+c.SE) {
			return next
		}
		x = next
	}
	return x
}

// density is that of the difference at x.
func (c Contrast) density(x float64) float64 {
	sum := 0.0
	for _, p := range c.parts {
		z := (x - p.diff) / p.se
		sum += p.weight / p.se * math.Exp(-z*z/2)
	}
	return sum / math.Sqrt(2*math.Pi)
}

// design is the launches of two arms as a linear model: column 0 is 1 for arm b,
// and there is a column of ones for each stratum.
type design struct {
	launches Launches
	y        []float64
	x        [][]float64 // by column
	columns  int
	common   int     // rounds that have both
	largest  float64 // of the figures, without sign
}

func newDesign(all Launches, a, b int) (*design, error) {
	d := &design{columns: 1}
	strata := map[int]int{}
	type round struct{ stratum, round int }
	seen := map[round]int{}
	for _, l := range all {
		if l.Arm != a && l.Arm != b || math.IsNaN(l.Y) || math.IsInf(l.Y, 0) {
			continue
		}
		if strata[l.Stratum] == 0 {
			strata[l.Stratum] = d.columns
			d.columns++
		}
		which := 1
		if l.Arm == b {
			which = 2
		}
		k := round{l.Stratum, l.Round}
		if before := seen[k]; before|which == 3 && before != 3 {
			d.common++
		}
		seen[k] |= which
		d.launches = append(d.launches, l)
		d.largest = max(d.largest, math.Abs(l.Y))
	}
	switch {
	case a == b:
		return nil, fmt.Errorf("compare configuration %d with itself: %w", a, ErrNoCommonRound)
	case d.common == 0:
		return nil, ErrNoCommonRound
	case len(d.launches) <= d.columns:
		return nil, ErrNoSpread
	}
	d.x = make([][]float64, d.columns)
	for i := range d.x {
		d.x[i] = make([]float64, len(d.launches))
	}
	for i, l := range d.launches {
		d.y = append(d.y, l.Y-d.launches[0].Y)
		d.x[strata[l.Stratum]][i] = 1
		if l.Arm == b {
			d.x[0][i] = 1
		}
	}
	return d, nil
}

// repeats reports whether a factor can have an effect of its own: it has more than
// one value, and one of them more than one launch.
func (d *design) repeats(factor func(Launch) int) bool {
	n := map[int]int{}
	twice := false
	for _, l := range d.launches {
		n[factor(l)]++
		twice = twice || n[factor(l)] > 1
	}
	return twice && len(n) > 1
}

// exact is the difference where launches of one round on one machine do not scatter at
// all, as those of a simulator.
func (d *design) exact(rounding float64) (diff float64, sure bool) {
	type cell struct{ stratum, round, node int }
	n := map[cell]float64{}
	sum := map[cell][2]float64{}
	at := func(l Launch) cell { return cell{l.Stratum, l.Round, l.Node} }
	for i, l := range d.launches {
		n[at(l)]++
		s := sum[at(l)]
		sum[at(l)] = [2]float64{s[0] + d.y[i], s[1] + d.x[0][i]}
	}
	within := func(i int) (y, x float64) {
		k := at(d.launches[i])
		return d.y[i] - sum[k][0]/n[k], d.x[0][i] - sum[k][1]/n[k]
	}
	var xy, xx float64
	for i := range d.y {
		y, x := within(i)
		xy, xx = xy+x*y, xx+x*x
	}
	if xx == 0 || len(d.y)-len(n) < 2 {
		return 0, false
	}
	diff = xy / xx
	for i := range d.y {
		if y, x := within(i); math.Abs(y-diff*x) > rounding {
			return 0, false
		}
	}
	return diff, true
}

// fitted is a generalised least squares fit.
type fitted struct {
	likelihood float64 // log, restricted, with the noise integrated out
	diff       float64
	scale      float64 // of diff: its standard error over sd
	sd         float64
	noise      float64 // ratio that was taken
}

// fits are those of all ratios that are not negligible. Their likelihoods are beside the largest one's, with
// what is thought of the ratios beforehand.
func (d *design) fits() []fitted {
	one := []float64{0}
	rounds, nodes := one, one
	if d.repeats(func(l Launch) int { return l.Round }) {
		rounds = blockRatios
	}
	if d.repeats(func(l Launch) int { return l.Node }) {
		nodes = blockRatios
	}
	var out []fitted
	likeliest := math.Inf(-1)
	for i, round := range rounds {
		for j, node := range nodes {
			for n, noise := range noiseRatios {
				f := d.fit(round, node, noise)
				f.likelihood += math.Log(blockWeight(rounds, i) * blockWeight(nodes, j) * noiseWeights[n])
				likeliest = max(likeliest, f.likelihood)
				out = append(out, f)
			}
		}
	}
	for i := range out {
		out[i].likelihood -= likeliest
	}
	return slices.DeleteFunc(out, func(f fitted) bool { return f.likelihood < -negligible })
}

// fit is the fit where the variances of rounds and nodes are so many times that of
// the noise, and the standard deviation of b's noise is so many times that of a's.
func (d *design) fit(rounds, nodes, noise float64) fitted {
	n := len(d.y)
	v := make([][]float64, n)
	for i, l := range d.launches {
		v[i] = make([]float64, i+1)
		for j, m := range d.launches[:i+1] {
			if l.Stratum == m.Stratum && l.Round == m.Round {
				v[i][j] += rounds
			}
			if l.Stratum == m.Stratum && l.Node == m.Node {
				v[i][j] += nodes
			}
		}
		if d.x[0][i] == 1 {
			v[i][i] += noise
		} else {
			v[i][i] += 1 / noise
		}
	}
	det := cholesky(v)
	y := forward(v, d.y)
	x := make([][]float64, d.columns)
	for i := range x {
		x[i] = forward(v, d.x[i])
	}
	// The columns' normal equations, with that of the difference last: then its
	// estimate and its error are the last ones of the triangle.
	normal, right := make([][]float64, d.columns), make([]float64, d.columns)
	at := func(i int) []float64 { return x[(i+1)%d.columns] }
	for i := range normal {
		normal[i] = make([]float64, i+1)
		right[i] = dot(at(i), y)
		for j := range i + 1 {
			normal[i][j] = dot(at(i), at(j))
		}
	}
	det += cholesky(normal)
	u := forward(normal, right)
	last := d.columns - 1
	free := float64(n - d.columns)
	rest := max(dot(y, y)-dot(u, u), math.SmallestNonzeroFloat64)
	return fitted{
		likelihood: -det/2 - free/2*math.Log(rest),
		diff:       u[last] / normal[last][last],
		scale:      1 / normal[last][last],
		sd:         math.Sqrt(rest / free),
		noise:      noise,
	}
}

// cholesky puts the lower triangle L with L L' = m in the place of m, of which the lower
// triangle is given, and returns the logarithm of m's determinant.
func cholesky(m [][]float64) (logDet float64) {
	for i, row := range m {
		for j := range i + 1 {
			s := row[j] - dot(row[:j], m[j][:j])
			if i == j {
				row[i] = math.Sqrt(s)
				logDet += math.Log(s)
			} else {
				row[j] = s / m[j][j]
			}
		}
	}
	return logDet
}

// forward solves l x = right for a lower triangle.
func forward(l [][]float64, right []float64) []float64 {
	x := make([]float64, len(right))
	for i, row := range l {
		x[i] = (right[i] - dot(row[:i], x[:i])) / row[i]
	}
	return x
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
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

// LaunchesFor is how many launches a side Detectable asks for to show an effect,
// where 2(n-1) degrees of freedom tell the spread. It is 2 at least, and 10,000 where
// more would be needed.
func LaunchesFor(sd, effect, confidence, power float64) int {
	enough := func(n int) bool {
		return Detectable(sd, n, 2*float64(n-1), confidence, power) <= effect
	}
	const least, most = 2, 10000
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

// HalfWidth is half the width of the interval of two launches each that differ by sd, where so
// many further launches of the first arm, of another stratum, do too: six intervals in seven of
// launches with that noise are narrower.
func HalfWidth(sd float64, further int, confidence float64) float64 {
	y := []float64{sd * math.Sqrt(0.5), -sd * math.Sqrt(0.5)}
	l := Launches{{Y: y[0]}, {Y: y[1], Arm: 1}, {Y: y[1], Round: 1}, {Y: y[0], Arm: 1, Round: 1}}
	for i := range further {
		l = append(l, Launch{Y: y[i%2], Round: -1, Stratum: 1})
	}
	c, err := l.Contrast(0, 1, confidence)
	if err != nil {
		return math.Inf(1)
	}
	return (c.High - c.Low) / 2
}
