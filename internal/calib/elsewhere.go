package calib

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/sim"
)

// shipped are the fitted parameters as sets, and what they say of devices, formats and
// engines, and of combinations of them, that no run has seen: the conditional mean and
// spread of a constant there, given those that were fitted.
func (p *problem) shipped() []sim.Set {
	sets := p.setsAt(p.x)
	for i := range sets {
		sets[i].Source = fmt.Sprintf("fitted to %d runs", p.runsOf(&sets[i]))
	}
	sets = append(p.elsewhere(), sets...)
	if study := p.obs[0].Study; !slices.ContainsFunc(p.obs, func(b Observation) bool { return b.Study != study }) && study != "" {
		sets = append(sets, p.site(p.x, study)...) // runs of one site are asked about for that site
	}
	slices.SortStableFunc(sets, bySelectors)
	for _, s := range sets {
		for name, v := range s.Values {
			s.Values[name] = round(v)
		}
		for name, v := range s.Spread {
			s.Spread[name] = round(v)
		}
	}
	return sets
}

// runsOf is how many runs have a part in a set.
func (p *problem) runsOf(s *sim.Set) (n int) {
	for i := range p.obs {
		c := &p.obs[i].Config
		if (s.Accelerator == "" || c.GPU.Name == s.Accelerator) && (s.Engine == "" || s.Engine == c.Engine) && s.Generation == c.Generation &&
			(s.Family == "" || s.Family == c.Model.Family()) && (s.Format == "" || s.Format == c.Model.Kernels() || s.Format == arch.BF16) {
			n++
		}
	}
	return n
}

// elsewhere are the constants of what was not seen.
func (p *problem) elsewhere() []sim.Set {
	seen := map[string][4]map[string]bool{} // selectors by what a constant is of: accelerator, format, engine with its generation, family
	known := map[Parameter]bool{}
	for _, q := range p.params {
		about, _ := p.options.Base.About(q.Name)
		s := seen[about.Of]
		for i, v := range []string{q.Accelerator, string(q.Format), strings.TrimRight(q.Engine+" "+q.Generation, " "), q.Family} {
			if s[i] == nil {
				s[i] = map[string]bool{"": true}
			}
			s[i][v] = true
		}
		seen[about.Of] = s
		q.Prior, q.PriorSpread, q.Value, q.Spread = 0, 0, 0, 0
		known[q] = true
	}
	g := newGiven(p)
	var sets []sim.Set
	for _, of := range slices.Sorted(maps.Keys(seen)) {
		if of == "site" || of == "installation" {
			continue // another study's own
		}
		for _, q := range combinations(seen[of]) {
			s := q.set()
			s.Source = "from fits of others"
			for _, name := range p.options.Base.Names() {
				q.Name = name
				if about, _ := p.options.Base.About(name); about.Of != of || known[q] {
					continue
				}
				if v, sd, ok := g.of(q); ok {
					s.Values[name], s.Spread[name] = v, sd
				}
			}
			if len(s.Values) > 0 {
				sets = append(sets, s)
			}
		}
	}
	return sets
}

// combinations are all of some accelerators, formats, engines and families.
func combinations(of [4]map[string]bool) (all []Parameter) {
	for _, a := range slices.Sorted(maps.Keys(of[0])) {
		for _, f := range slices.Sorted(maps.Keys(of[1])) {
			for _, e := range slices.Sorted(maps.Keys(of[2])) {
				for _, m := range slices.Sorted(maps.Keys(of[3])) {
					name, generation, _ := strings.Cut(e, " ")
					all = append(all, Parameter{Accelerator: a, Format: arch.Format(f), Engine: name, Generation: generation, Family: m})
				}
			}
		}
	}
	return all
}

// given is what a fit says of parameters that it does not have.
type given struct {
	p      *problem
	weighs []float64 // inverse prior covariance times x
	byName map[string][]int
}

func newGiven(p *problem) *given {
	g := &given{p: p, weighs: make([]float64, len(p.params)), byName: map[string][]int{}}
	for i := range p.params {
		g.byName[p.params[i].Name] = append(g.byName[p.params[i].Name], i)
		for j := range p.params {
			g.weighs[i] += p.prior[i][j] * p.x[j]
		}
	}
	return g
}

// of is the middle and the relative spread of a parameter; not ok where no other of its
// name was fitted.
func (g *given) of(q Parameter) (v, spread float64, ok bool) {
	p, same := g.p, g.byName[q.Name]
	if len(same) == 0 {
		return 0, 0, false
	}
	q.Prior = p.options.Base.Value(q.subject(), q.Name)
	q.PriorSpread = p.options.Base.Spread(q.subject(), q.Name)
	with := make([]float64, len(same))
	for i, k := range same {
		with[i] = correlation(&q, &p.params[k]) * q.PriorSpread * p.params[k].PriorSpread
	}
	x, explained := 0.0, 0.0
	weights := make([]float64, len(same)) // of the fitted ones in the conditional mean
	for i, k := range same {
		x += with[i] * g.weighs[k]
		for j, l := range same {
			weights[i] += p.prior[k][l] * with[j]
		}
		explained += weights[i] * with[i]
	}
	variance := q.PriorSpread*q.PriorSpread - explained
	for i, k := range same {
		for j, l := range same {
			variance += weights[i] * p.inverse[k][l] * weights[j]
		}
	}
	return q.Prior * math.Exp(x), math.Sqrt(max(0, variance)), true
}
