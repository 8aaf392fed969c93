package draw

import (
	"math"
	"math/rand/v2"
	"slices"

	"perflab/internal/stat"
	"perflab/internal/tune"
)

// What the estimator takes from Optuna's defaults.
const (
	tpeStartup    = 10 // trials before the first that is not drawn at random, the baseline included
	tpeCandidates = 24 // drawn for each proposal
	tpePrior      = 1  // weight of the uniform prior, in observations
	tpeRecent     = 25 // observations that keep their full weight; more make the oldest fade
)

// NewTPE returns a search by the tree-structured Parzen estimator (Bergstra and
// others, 2011), or everything that is wrong with what it was given.
//
// After some trials drawn as NewRandom's are, with the same seed the same ones
// (10, or a third of a budget below 20), trials are parted into the best tenth,
// at most 25, and the rest; of 24 configurations drawn as the good ones lie the
// one is proposed whose density among them is highest against that among the
// rest. Densities are of one parameter at a time (Optuna's default too): that two
// values are good only together is not learned. What was refused, or failed, is
// among the rest, so it is avoided without having a figure made up for it; what
// misses an SLO ranks below all that does not, the worst miss last.
//
// Unlike Optuna, which takes the best of 24 for each parameter by itself, this
// scores whole configurations, of which it can then propose one that is new.
func NewTPE(g tune.SearchSpace, s tune.Space, o tune.Objective, b tune.Budget, seed uint64) (*Search, error) {
	return newSearch(g, s, o, b, seed, (*Search).estimate)
}

// estimate draws the next configuration as TPE does.
func (d *Search) estimate(rng *rand.Rand) (tune.Config, bool) {
	first := tpeStartup
	if n := d.singles.Budget.Trials; n > 0 && n < 20 {
		first = max(1, n/3)
	}
	if len(d.configs) < first {
		return d.random(rng)
	}
	p := d.product
	good, rest := d.parted()
	likely, log := make([][]float64, len(p.dims)), make([][]float64, len(p.dims))
	for i, dim := range p.dims {
		likely[i] = parzen(dim, d.observed(good, i))
		unlikely := parzen(dim, d.observed(rest, i))
		log[i] = make([]float64, len(dim.Values))
		for v := range log[i] {
			log[i][v] = math.Log(likely[i][v] / unlikely[v])
		}
	}
	var best tune.Config
	top, drawn := math.Inf(-1), map[string]bool{}
	for tries := 0; tries < 4*tpeCandidates && len(drawn) < tpeCandidates; tries++ {
		point := make([]int, len(p.dims))
		for i := range point {
			point[i] = pick(rng, likely[i])
		}
		c, ok := p.settle(point, rng)
		if !ok || p.seen[p.key(c)] || drawn[p.key(c)] {
			continue
		}
		drawn[p.key(c)] = true
		if s := density(log, p.values(c)); s > top {
			best, top = c, s
		}
	}
	if best == nil {
		return d.random(rng) // all that is near the good ones was tried
	}
	return best, true
}

// density is a configuration's logarithm of the ratio of both densities, without
// the digits in which processors differ, so that a study can go on elsewhere.
func density(log [][]float64, at []int) float64 {
	sum := 0.0
	for i, v := range at {
		if v >= 0 {
			sum += log[i][v]
		}
	}
	return math.Round(sum*1e9) / 1e9
}

// parted splits the configurations, each part in the order in which they were measured. Of
// those without a figure none is good.
func (d *Search) parted() (good, rest []tune.Config) {
	ranked := d.singles.Ranked()
	best := ranked[:min((len(d.configs)+9)/10, 25, len(ranked))]
	for i, c := range d.configs {
		if slices.Contains(best, i) {
			good = append(good, c)
		} else {
			rest = append(rest, c)
		}
	}
	return good, rest
}

// observed are the values that configurations had of dimension i.
func (d *Search) observed(configs []tune.Config, i int) []int {
	var at []int
	for _, c := range configs {
		if v := d.product.values(c)[i]; v >= 0 {
			at = append(at, v)
		}
	}
	return at
}

// parzen is the estimated density over a dimension's values: a mixture of a
// kernel for each observation, the oldest first, and a uniform prior. A kernel is
// the value itself, and for numbers a normal curve over their places, as wide as
// the farther neighbour is far. Each kernel gives all values a share of the
// prior, a curve only the engine's default, which has no place among numbers.
func parzen(dim tune.Dimension, observed []int) []float64 {
	out := make([]float64, len(dim.Values))
	kernels := float64(len(observed) + 1)
	weights := fading(len(observed))
	curve := curves(dim, observed)
	total := stat.Sum(weights) + tpePrior
	for v := range out {
		out[v] = tpePrior / total / float64(len(out))
	}
	for n, at := range observed {
		row := make([]float64, len(out))
		for v := range row {
			if row[v] = tpePrior / kernels; curve[n] != nil && dim.Values[v] != "" {
				row[v] = curve[n][v]
			}
		}
		if curve[n] == nil {
			row[at]++
		}
		sum := stat.Sum(row)
		for v := range row {
			out[v] += weights[n] / total * row[v] / sum
		}
	}
	return out
}

// fading are the weights of n observations: 1 for the most recent, less for those
// before, by a line from 1/n.
func fading(n int) []float64 {
	w := make([]float64, n)
	old := n - tpeRecent
	for i := range w {
		switch {
		case i >= old:
			w[i] = 1
		case old == 1:
			w[i] = 1 / float64(n)
		default:
			w[i] = 1/float64(n) + (1-1/float64(n))*float64(i)/float64(old-1)
		}
	}
	return w
}

// curves are the kernels of numbers, over all values of a dimension; nil for an
// observation that is none.
func curves(dim tune.Dimension, observed []int) [][]float64 {
	out := make([][]float64, len(observed))
	if !dim.Ordered {
		return out
	}
	place, places := make([]float64, len(dim.Values)), 0.0
	for v, value := range dim.Values {
		if value != "" {
			place[v] = places
			places++
		}
	}
	centres := []float64{(places - 1) / 2} // the prior's
	for _, at := range observed {
		if dim.Values[at] != "" {
			centres = append(centres, place[at])
		}
	}
	slices.Sort(centres)
	narrowest := places / min(100, 1+float64(len(centres)))
	for n, at := range observed {
		if dim.Values[at] == "" {
			continue
		}
		// The neighbours of the first of equal centres and of the last.
		i, _ := slices.BinarySearch(centres, place[at])
		last := i
		for last+1 < len(centres) && centres[last+1] == place[at] {
			last++
		}
		wide := 0.0
		if i > 0 {
			wide = place[at] - centres[i-1]
		}
		if last+1 < len(centres) {
			wide = max(wide, centres[last+1]-place[at])
		}
		wide = min(max(wide, narrowest), places)
		below := func(x float64) float64 { return stat.NormalCDF((x - place[at]) / wide) }
		mass := below(places-0.5) - below(-0.5)
		out[n] = make([]float64, len(dim.Values))
		for v, value := range dim.Values {
			if value != "" {
				out[n][v] = (below(place[v]+0.5) - below(place[v]-0.5)) / mass
			}
		}
	}
	return out
}

// pick draws an index by its probability.
func pick(rng *rand.Rand, probability []float64) int {
	at := rng.Float64() * stat.Sum(probability)
	for i, p := range probability {
		if at -= p; at < 0 {
			return i
		}
	}
	return len(probability) - 1
}
