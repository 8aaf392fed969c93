package surrogate

// A number counts less than a choice, as its effect is mostly predicted.
const numberCovers = 0.5

// Coverage is which values of configurations have run together, by every two parameters, and which
// by themselves.
type Coverage struct {
	Alone bool // values count by themselves, not by twos
	ran   map[together]bool
}

// together are two values of a configuration, by their parameters' places; of a value by itself twice
// the same.
type together struct {
	i, j int
	a, b string
}

// Add notes a configuration that has run.
func (k *Coverage) Add(p Point) {
	if k.ran == nil {
		k.ran = map[together]bool{}
	}
	k.each(p, func(x together, _ float64) { k.ran[x] = true })
	for i, c := range p.At {
		k.ran[together{i, i, c.Value, c.Value}] = true
	}
}

// Fresh is what those values of a configuration count that have not run together.
func (k *Coverage) Fresh(p Point) float64 {
	sum := 0.0
	k.each(p, func(x together, weight float64) {
		if !k.ran[x] {
			sum += weight
		}
	})
	return sum
}

// First reports whether a configuration has a choice that has not run at all.
func (k *Coverage) First(p Point) bool {
	for i, c := range p.At {
		if !c.Ordered && !k.ran[together{i, i, c.Value, c.Value}] {
			return true
		}
	}
	return false
}

// each calls f with every two values of a configuration, or with every value, and what they count.
func (k *Coverage) each(p Point, f func(together, float64)) {
	weight := func(c Coordinate) float64 {
		if c.Ordered {
			return numberCovers
		}
		return 1
	}
	for i, a := range p.At {
		if k.Alone {
			f(together{i, i, a.Value, a.Value}, weight(a))
			continue
		}
		for j, b := range p.At[:i] {
			f(together{i, j, a.Value, b.Value}, weight(a)*weight(b))
		}
	}
}
