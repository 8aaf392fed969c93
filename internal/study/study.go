package study

import (
	"fmt"
	"os"

	"perflab/internal/arch"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// Study is a study file that was found right, and what follows from it: its
// texts parsed, its names looked up, its recipes read. What takes opening a
// dataset is found when it is first asked for.
type Study struct {
	*File

	Metric      result.Metric    // of the objective
	Goal        tune.Objective   // as the search takes it
	Limits      tune.Budget      // likewise
	Bounds      []Bound          // the constraints of the objective
	Accelerator arch.Accelerator // that the hardware has; of arch.CPU none
	Recipes     []tune.Candidate // of the prior files, those that the study may try
	Skipped     int              // recipes that it may not

	models  map[string]arch.Model // by name, those that were looked up
	lengths map[string]*Lengths   // by workload and pass
	counts  map[string]int        // requests by workload
}

// resolve makes the study of a file whose values are right.
func resolve(f *File, r recipes) (*Study, error) {
	s := &Study{
		File: f, Recipes: r.usable, Skipped: r.skipped,
		models: map[string]arch.Model{}, lengths: map[string]*Lengths{}, counts: map[string]int{},
	}
	var err error
	if s.Accelerator, err = arch.LookupAccelerator(f.Hardware.GPU); err != nil {
		return nil, err
	}
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

// BaselineConfig is the configuration that every gain is counted from.
func (s *Study) BaselineConfig() tune.Config {
	return tune.Change{Set: s.whole(*s.Baseline)}.Apply(nil)
}

// Fingerprint tells the study from every other: a journal goes on only with the
// study that it was begun with.
func (s *Study) Fingerprint() (string, error) {
	return tune.Fingerprint(struct {
		*File
		Recipes []tune.Candidate `json:"recipes,omitempty"` // the files may change
	}{s.File, s.Recipes})
}

// WorkloadNames are the names in the order of the file.
func (f *File) WorkloadNames() []string {
	names := make([]string, len(f.Workloads))
	for i, w := range f.Workloads {
		names[i] = w.Name
	}
	return names
}

// model looks a model up, in the file that the study has for it where there is
// one.
func (s *Study) model(name string) (arch.Model, error) {
	if m, ok := s.models[name]; ok {
		return m, nil
	}
	m, err := s.lookupModel(name)
	if err == nil {
		s.models[name] = m
	}
	return m, err
}

func (s *Study) lookupModel(name string) (arch.Model, error) {
	path, ok := s.ModelConfig[name]
	if !ok {
		return arch.LookupModel(name)
	}
	f, err := os.Open(path)
	if err != nil {
		return arch.Model{}, fmt.Errorf("model_config of %s: %w", name, err)
	}
	defer f.Close()
	return arch.ParseConfig(name, f)
}
