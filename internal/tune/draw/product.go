package draw

import (
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"perflab/internal/tune"
)

// product is all combinations of the values of a search space's domain, on top of what
// the baseline sets besides. Combination n has the values point(n).
type product struct {
	rules    tune.Rules
	dims     []tune.Dimension // that have values
	baseline tune.Config
	fixed    tune.Config // what the baseline sets besides
	size     uint64      // combinations; 0: more than can be numbered
	refused  map[string]bool
	seen     map[string]bool // proposed already
}

func newProduct(g tune.SearchSpace, baseline tune.Config) *product {
	p := &product{rules: g.Rules, baseline: tune.Change{}.Apply(baseline), size: 1, refused: map[string]bool{}, seen: map[string]bool{}}
	p.fixed = maps.Clone(p.baseline)
	for _, dim := range g.Domain {
		if len(dim.Values) == 0 {
			continue
		}
		delete(p.fixed, dim.Name)
		p.dims = append(p.dims, dim)
		if over, n := bits.Mul64(p.size, uint64(len(dim.Values))); over > 0 {
			p.size = 0 // and stays so
		} else {
			p.size = n
		}
	}
	return p
}

// config is that of a point.
func (p *product) config(point []int) tune.Config {
	c := maps.Clone(p.fixed)
	for i, dim := range p.dims {
		if v := dim.Values[point[i]]; v != "" {
			c[dim.Name] = v
		}
	}
	return c
}

// runs asks the rules, once for a configuration.
func (p *product) runs(c tune.Config) bool {
	k := p.key(c)
	refused, known := p.refused[k]
	if !known {
		refused = p.rules.Refuse(maps.Clone(c)) != ""
		p.refused[k] = refused
	}
	return !refused
}

// settle makes a configuration that runs of a point, if it can. Most of a
// product may be refused (one engine's parameters on another, layouts that do
// not fill the node), so drawing whole points until one runs would not end.
// Instead what must be set is set first, with single parameters redrawn while
// that is refused; then the rest of the point is added parameter by parameter,
// in a random order, and what is refused is left at its default. If even the
// first cannot be had, the point's values are tried one by one on the baseline.
//
// Every point that runs is itself, so nothing that runs is out of reach. Without
// rng nothing is redrawn, the order is the domain's, and a point that cannot be
// reached by leaving values out is given up: a grid stays a grid.
func (p *product) settle(point []int, rng *rand.Rand) (tune.Config, bool) {
	if c := p.config(point); p.runs(c) {
		return c, true
	}
	var must []int // dimensions that have no default
	order := make([]int, len(p.dims))
	for i, dim := range p.dims {
		if order[i] = i; !slices.Contains(dim.Values, "") {
			must = append(must, i)
		}
	}
	point = slices.Clone(point)
	c := p.least(point, must)
	if rng != nil {
		for range 20 {
			if p.runs(c) || len(must) == 0 {
				break
			}
			i := must[rng.IntN(len(must))]
			point[i] = rng.IntN(len(p.dims[i].Values))
			c = p.least(point, must)
		}
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	switch {
	case p.runs(c):
	case rng == nil:
		return nil, false
	default:
		c = p.baseline
	}
	for _, i := range order {
		if more := (tune.Change{Set: tune.Config{p.dims[i].Name: p.dims[i].Values[point[i]]}}).Apply(c); p.runs(more) {
			c = more
		}
	}
	return c, p.runs(c) && !slices.Contains(p.values(c), -1) // the baseline may have what the domain has not
}

// least is a point's configuration with all that has a default left at it.
func (p *product) least(point, must []int) tune.Config {
	c := maps.Clone(p.fixed)
	for _, i := range must {
		c[p.dims[i].Name] = p.dims[i].Values[point[i]]
	}
	return c
}

// label says what a configuration has other than the baseline.
func (p *product) label(c tune.Config) string {
	var parts []string
	for _, dim := range p.dims {
		switch v := c[dim.Name]; {
		case v == p.baseline[dim.Name]:
		case v == "":
			parts = append(parts, dim.Name+" default")
		default:
			parts = append(parts, dim.Name+"="+v)
		}
	}
	return strings.Join(parts, " ")
}

// point is combination n of the product: the first dimension changes slowest.
func (p *product) point(n uint64) []int {
	point := make([]int, len(p.dims))
	for i := len(p.dims) - 1; i >= 0; i-- {
		k := uint64(len(p.dims[i].Values))
		point[i] = int(n % k)
		n /= k
	}
	return point
}

// values are where a configuration lies on each dimension, -1 for a value that
// the domain does not have.
func (p *product) values(c tune.Config) []int {
	at := make([]int, len(p.dims))
	for i, dim := range p.dims {
		at[i] = slices.Index(dim.Values, c[dim.Name])
	}
	return at
}

// stride is about the golden section of size, and shares no factor with it, so
// that strides of it meet every number below size once.
func stride(size uint64) uint64 {
	step := max(1, uint64(float64(size)*(math.Sqrt(5)-1)/2))
	for ; ; step++ {
		a, b := step, size
		for b > 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return step
		}
	}
}

// strided is start + n*step modulo size, which may be any 64-bit number.
func strided(start, step, n, size uint64) uint64 {
	hi, lo := bits.Mul64(step, n)
	lo, carry := bits.Add64(lo, start, 0)
	return bits.Rem64(hi+carry, lo, size)
}

// key names a configuration of the product, or the baseline; equal ones have one
// name. All have the same in what the domain does not have.
func (p *product) key(c tune.Config) string {
	var b strings.Builder
	for _, dim := range p.dims {
		b.WriteString(c[dim.Name])
		b.WriteByte(0)
	}
	return b.String()
}
