package tune

import "slices"

// foreteller is what a predictor says of configurations, each by itself.
type foreteller struct {
	of          *history // by whose objective figures are merged
	search      SearchSpace
	predictor   Predictor              // nil: nothing is predicted
	foretells   map[string]bool        // by engine, whether something is predicted of it
	predictions map[string]*prediction // by configuration
}

// foretell is what the predictor says of a configuration, merged; nil: nothing.
func (f *foreteller) foretell(config Config) map[string]float64 {
	o := Observation{Status: Measured, Figures: map[string]map[string]float64{}}
	for _, w := range f.of.workloads() {
		if figures, ok := f.predictor.Predict(config, w); ok {
			o.Figures[w] = figures
		}
	}
	return f.of.merge(o)
}

// foretellsAlike reports whether all that counts is predicted to be the same of two configurations.
func (f *foreteller) foretellsAlike(a, b Config) bool {
	if f.predictor == nil {
		return false
	}
	for _, w := range slices.Concat(f.of.workloads(), f.of.holdOuts()) {
		x, ok := f.predictor.Predict(a, w)
		y, too := f.predictor.Predict(b, w)
		metric := f.of.objective.Metric
		if !ok || !too || x[metric] != y[metric] || slices.ContainsFunc(f.of.objective.SLOs, func(b Bound) bool { return x[b.Metric] != y[b.Metric] }) {
			return false
		}
	}
	return true
}

// foretellsOf reports whether something is predicted of an engine: so far, or of any candidate.
func (f *foreteller) foretellsOf(engine string) bool {
	if _, asked := f.foretells[engine]; !asked {
		f.foretells[engine] = slices.ContainsFunc(f.search.Candidates, func(k Candidate) bool {
			return k.Refused == "" && k.Config[engineParameter] == engine && f.foretell(Change{}.Apply(k.Config)) != nil
		})
	}
	return f.foretells[engine]
}

// borrow is what is predicted of a configuration's settings in other engines, the means; nil: nothing.
// What suits a load in one engine mostly suits it in another, of which nothing is predicted: how much
// slower or faster that is its launches say.
func (f *foreteller) borrow(config Config) map[string]float64 {
	var all []*trial
	for _, c := range f.lenders(config) {
		if figures := f.foretell(c); figures != nil {
			all = append(all, &trial{merged: figures})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return mean(all)
}

// lenders are the settings of a configuration in each other engine that takes them.
func (f *foreteller) lenders(config Config) []Config {
	var out []Config
	asked := map[string]bool{config[engineParameter]: true}
	for _, k := range f.search.Candidates {
		if engine := k.Config[engineParameter]; !asked[engine] {
			asked[engine] = true
			if c := config.with(engineParameter, engine); f.search.Refuse(c) == "" {
				out = append(out, c)
			}
		}
	}
	return out
}

// predictAhead has configurations predicted together, where the predictor can, of which each
// will be asked for, and then what is borrowed for those of which nothing is.
func (f *foreteller) predictAhead(configs []Config) {
	p, ok := f.predictor.(Parallel)
	if !ok {
		return
	}
	have := map[string]bool{}
	together := func(all []Config) (fresh []Config) {
		for _, c := range all {
			if k := c.key(); !have[k] && f.predictions[k] == nil && f.search.Refuse(c) == "" {
				have[k] = true
				fresh = append(fresh, c)
			}
		}
		for _, w := range f.of.workloads() {
			p.PredictAll(fresh, w)
		}
		return fresh
	}
	var lenders []Config
	for _, c := range together(configs) {
		if !f.foretellsOf(c[engineParameter]) {
			lenders = append(lenders, f.lenders(c)...)
		}
	}
	together(lenders)
}
