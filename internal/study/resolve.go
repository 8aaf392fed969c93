package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"perflab/internal/arch"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// recipes are those of the prior files.
type recipes struct {
	usable  []tune.Candidate // that the study may try
	skipped int              // of engines or models that it does not try
}

// add adds the recipes of a file that are of the study's engines and models.
func (out *recipes) add(f *File, path string, list []Recipe) {
	engines, models := f.searchedNames()
	taken := map[string]bool{}
	for _, k := range f.Arms {
		taken[k.Label] = true
	}
	for _, a := range out.usable {
		taken[a.Label] = true
	}
	for _, r := range list {
		k := Candidate{Label: r.Label, Engine: r.Engine, Model: r.Model, Set: r.Set}
		config := tune.Change{Set: f.fullConfig(k)}.Apply(nil)
		if !slices.Contains(engines, r.Engine) || !slices.Contains(models, config["model"]) {
			out.skipped++
			continue
		}
		for base, n := r.Label, 2; taken[r.Label]; n++ {
			r.Label = fmt.Sprintf("%s (%d)", base, n)
		}
		taken[r.Label] = true
		out.usable = append(out.usable, tune.Candidate{Label: r.Label, Config: config, Prior: cmp.Or(r.Source, path)})
	}
}

// resolve makes the study of a file whose values are right.
func resolve(f *File, r recipes) (*Study, error) {
	s := &Study{
		File: f, Recipes: r.usable, Skipped: r.skipped,
		models: map[string]arch.Model{}, lengths: map[string]*Lengths{}, counts: map[string]int{}, Tokenizers: map[string]Tokenizer{},
	}
	var err error
	if s.Accelerator, err = arch.LookupAccelerator(f.Hardware.GPU); err != nil {
		return nil, err
	}
	s.Accelerator.HostGiB = f.Hardware.HostMemory * float64(f.Hardware.Nodes)
	if s.Metric, err = result.Lookup(f.Objective.Metric); err != nil {
		return nil, err
	}
	for _, text := range f.Objective.SLOs {
		b, err := ParseBound(text)
		if err != nil {
			return nil, err
		}
		s.Bounds = append(s.Bounds, b)
	}
	if s.Goal, err = s.goal(); err != nil {
		return nil, err
	}
	s.Limits, err = f.limits()
	return s, err
}

// goal is the objective as the search takes it.
func (s *Study) goal() (tune.Objective, error) {
	o := tune.Objective{Metric: s.Metric.Name, Higher: s.Metric.Better == result.Higher, Weights: s.Objective.Weights}
	var err error
	if o.MinGain, err = s.Objective.MinGain.Value(); err != nil {
		return o, err
	}
	if s.Objective.MinGain == "" && s.Strategy == Race {
		o.MinGain = minGain
	}
	for _, b := range s.Bounds {
		if b.Metric == tune.AccuracyFigure {
			o.Guard = s.Accuracy.Guard(-b.Limit)
			continue
		}
		o.SLOs = append(o.SLOs, b.Bound)
	}
	return o, nil
}

// minGain is what a race takes for a difference that matters where the study
// says nothing: less is dear to show, since launches of one configuration differ
// by a percent or two.
const minGain = 0.02

// limits bound the search. GPU hours are time, for all of the hardware is
// allocated as long as a trial lasts.
func (f *File) limits() (tune.Budget, error) {
	limit, err := f.Budget.limit()
	if err != nil {
		return tune.Budget{}, err
	}
	limit *= time.Duration(max(1, len(f.Runtime.Machines))) // of trials: so many run at the same time
	if h := f.Budget.GPUHours; h > 0 {
		wall := time.Duration(math.Min(h/float64(max(f.Hardware.GPUs, 1))*float64(time.Hour), math.MaxInt64/2))
		if limit == 0 || wall < limit {
			limit = wall
		}
	}
	return tune.Budget{Trials: f.Budget.Trials, Time: limit}, nil
}
