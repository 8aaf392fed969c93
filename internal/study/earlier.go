package study

import (
	"fmt"
	"maps"
	"slices"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/bench"
	"perflab/internal/candidate"
	"perflab/internal/earlier"
	"perflab/internal/field"
	"perflab/internal/tune"
)

// cannotLearn says why earlier studies are of no use to the study; "" where they are.
func (f *File) cannotLearn() string {
	switch {
	case f.Strategy != Race:
		return fmt.Sprintf("earlier belongs to strategy race: %s does not learn from other studies", f.Strategy)
	case f.Runtime.Kind == Predicted:
		return "runtime kind predicted launches nothing, and so has no search that earlier studies could direct: leave earlier out"
	}
	return ""
}

// earlier checks whether the study can learn at all; what its paths hold is read by others.
func (c *checker) earlier() {
	if why := c.s.cannotLearn(); why != "" && len(c.s.Earlier) > 0 {
		c.add("earlier", "%s", why)
	}
}

// LearnFrom adds earlier studies to those that the file names.
func (s *Study) LearnFrom(paths []string) error {
	if why := s.cannotLearn(); why != "" && len(paths) > 0 {
		return field.Errorf("earlier", "%s", why)
	}
	s.Earlier = append(s.Earlier, paths...)
	return nil
}

// EarlierError says what is wrong with an earlier study, with its place in the file.
func (s *Study) EarlierError(i int, err error) error {
	if i >= len(s.earlierAt) { // not of the file
		return field.Errorf("earlier", "%s: %v", s.Earlier[i], err)
	}
	return &Error{s.path, []string{fmt.Sprintf("%searlier study %s: %v%s", s.earlierAt[i], s.Earlier[i], err, whereLooked(s.Earlier[i]))}}
}

// placesOf are where the values of a list stand in the file: "12:5: ".
func placesOf(doc *yaml.Node, key string, n int) []string {
	var faults []*field.Error
	for i := range n {
		faults = append(faults, &field.Error{Path: field.Index(key, i)})
	}
	return problems(doc, faults)
}

// Learner is the study as one that learns from earlier ones.
func (s *Study) Learner() (earlier.Target, error) {
	primary := s.Workloads[0]
	t := earlier.Target{
		Metric: s.Metric.Name, Model: s.BaselineConfig()["model"], Lookup: s.model, Engines: map[string]string{},
		GPU: s.Accelerator, GPUs: s.Hardware.GPUs, Load: LoadOf(primary), Simulated: s.Runtime.Modelled(),
	}
	var engines []string
	engines, t.Models = s.searchedNames()
	for _, name := range engines {
		t.Engines[name] = s.Engines[name].Version
	}
	if w, _, err := bench.OpenWorkload(s.WorkloadSpec(primary.Name, 0)); err == nil {
		if n := w.Len(); n > 0 {
			t.Load.Input, t.Load.Output = float64(w.Totals().Input)/float64(n), float64(w.Totals().Output)/float64(n)
		}
	}
	var err error
	t.Dimensions, err = s.dimensions()
	return t, err
}

// dimensions are the parameters in which configurations of the study may differ.
func (s *Study) dimensions() ([]tune.Dimension, error) {
	space, err := candidate.New(s.options())
	if err != nil {
		return nil, err
	}
	out := space.Domain()
	add := func(c tune.Config) {
		for _, name := range slices.Sorted(maps.Keys(c)) {
			i := slices.IndexFunc(out, func(d tune.Dimension) bool { return d.Name == name })
			if i < 0 {
				i, out = len(out), append(out, tune.Dimension{Name: name, Values: []string{""}})
			}
			if !slices.Contains(out[i].Values, c[name]) {
				out[i].Values = append(slices.Clone(out[i].Values), c[name])
			}
		}
	}
	add(s.BaselineConfig())
	for _, k := range space.Candidates() {
		add(k.Config)
	}
	return out, nil
}

// LoadOf is a workload as loads of studies are held against each other; how long its requests
// are only the opened dataset tells.
func LoadOf(w Workload) earlier.Load {
	l := earlier.Load{Dataset: w.Dataset, Limit: w.MaxConcurrency, Traced: w.Rate == 0 && w.Arrival == "trace"}
	if !w.Rate.Inf() && w.Rate > 0 {
		l.Rate = float64(w.Rate)
	}
	if w.FindMax != nil {
		l.Searched, l.Rate, l.Limit = w.FindMax.Axis, 0, 0
	}
	return l
}

// Kept reads the copy of its file that a study keeps in its directory, as far as this version
// knows its keys: nothing of it is checked, nor opened.
func Kept(data []byte) (*File, error) {
	f := &File{}
	if err := yaml.Load(data, f); err != nil {
		return nil, err
	}
	f.fill()
	return f, nil
}
