package surrogate

import "slices"

// A number counts less than a choice, as its effect is mostly predicted.
const numberCovers = 0.5

// Coverage is which values of configurations have run together, by every two parameters, and which
// by themselves; and what was refused.
type Coverage struct {
	Alone   bool // values count by themselves, not by twos
	ran     map[together]bool
	refused []Point
	lost    []Point
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
		if k.never(i, c) {
			return true
		}
	}
	return false
}

// never reports whether a coordinate is a choice that has not run at all.
func (k *Coverage) never(place int, c Coordinate) bool {
	return !c.Ordered && !k.ran[together{place, place, c.Value, c.Value}]
}

// Refuse notes a configuration that was refused.
func (k *Coverage) Refuse(p Point) { k.refused = append(k.refused, p) }

// Lose notes a configuration whose launch our machinery lost.
func (k *Coverage) Lose(p Point) { k.lost = append(k.lost, p) }

// Closed is the place of a choice of a configuration with which all that was launched was refused; false
// where it has none, or is shut.
func (k *Coverage) Closed(p Point, often int) (place int, ok bool) {
	if k.Shut(p, often) {
		return 0, false
	}
	for i, c := range p.At {
		if k.never(i, c) && len(with(k.refused, p, i)) > 0 {
			return i, true
		}
	}
	return 0, false
}

// Shut reports whether a configuration has a choice with which all that was launched, so often at least,
// was refused or lost. What another such choice explains better, with more refusals, does not count.
func (k *Coverage) Shut(p Point, often int) bool {
	for i, c := range p.At {
		if k.never(i, c) && len(k.laidTo(p, i))+len(with(k.lost, p, i)) >= often {
			return true
		}
	}
	return false
}

// laidTo are the refusals with a choice of a configuration that has never run, but for those of another
// such choice that was refused more often.
func (k *Coverage) laidTo(p Point, place int) []Point {
	all := with(k.refused, p, place)
	often := len(all)
	return slices.DeleteFunc(all, func(q Point) bool {
		for i, c := range q.At {
			if k.never(i, c) && len(with(k.refused, q, i)) > often {
				return true
			}
		}
		return false
	})
}

// Unlike is how many values of a configuration are in nothing that was refused with its choice at a place.
func (k *Coverage) Unlike(p Point, place int) (n int) {
	refused := with(k.refused, p, place)
	for i, c := range p.At {
		if !slices.ContainsFunc(refused, func(q Point) bool { return q.At[i].Value == c.Value }) {
			n++
		}
	}
	return n
}

// with are those of some configurations that have the value that another has at a place.
func with(of []Point, p Point, place int) []Point {
	return slices.DeleteFunc(slices.Clone(of), func(q Point) bool { return q.At[place].Value != p.At[place].Value })
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
