package study

import (
	"cmp"
	"fmt"
	"slices"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/hardware"
	"perflab/internal/result"
	"perflab/internal/tune"
	"perflab/internal/tune/journal"
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
	Known       []tune.Earlier   // what the search takes of earlier studies: read by others, as it begins

	Tokenizers map[string]Tokenizer // by workload, those that name none themselves: see MeasureBy

	models    map[string]arch.Model // by name, those that were looked up
	lengths   map[string]*Lengths   // by workload and pass
	counts    map[string]int        // requests by workload
	path      string                // of the file, for messages
	unasked   []string              // see Unasked
	earlierAt []string              // where the file names earlier studies
	offers    *[]Offer              // see Offers; nil: not looked at yet
}

// BaselineConfig is the configuration that every gain is counted from.
func (s *Study) BaselineConfig() tune.Config {
	return tune.Change{Set: s.fullConfig(*s.Baseline)}.Apply(nil)
}

// Fingerprint tells the study from every other: a journal goes on only with the
// study that it was begun with. Which devices of the kind it has may change: the report
// says so.
func (s *Study) Fingerprint() (string, error) {
	f := *s.File
	f.Hardware.Devices, f.Hardware.Check = nil, ""
	f.Earlier = nil // what was read of them is below
	f.Runtime.Hosts = slices.Clone(f.Runtime.Hosts)
	for i := range f.Runtime.Hosts {
		f.Runtime.Hosts[i].Devices = nil
	}
	f.Runtime.Machines = withoutDevices(f.Runtime.Machines)
	return journal.Fingerprint(struct {
		*File
		Recipes []tune.Candidate `json:"recipes,omitempty"` // the files may change
		Learned []tune.Earlier   `json:"learned,omitempty"`
	}{&f, s.Recipes, s.Known})
}

// Visible is the environment variable by which the study's accelerators are dealt out,
// "" where there are none to deal.
func (s *Study) Visible() string { return s.Accelerator.Platform.Visible() }

// Pool is the accelerators that the study's engines may be dealt where they are started on
// this machine (here), with the environment that perflab has by lookup, or elsewhere. What
// the study needs and the environment does not show is an error.
func (s *Study) Pool(here bool, lookup func(string) (string, bool)) (hardware.Pool, error) {
	if s.Visible() == "" {
		return hardware.Pool{}, nil
	}
	p := hardware.Pool{Variable: s.Visible()}
	if here && s.Runtime.StartsEngines() {
		var err error
		if p, err = hardware.Visible(s.Accelerator.Platform.VisibleVariables(), lookup); err != nil {
			return p, err
		}
	}
	p, err := p.Take(s.Hardware.Devices, s.Hardware.GPUs)
	if err != nil {
		return p, fmt.Errorf("hardware of the study: %w", err)
	}
	return p, nil
}

// Percentiles are those of the blocks, and what objective and SLOs ask for.
func (s *Study) Percentiles() []float64 {
	metrics := []string{s.Metric.Name}
	for _, b := range s.Bounds {
		metrics = append(metrics, b.Metric)
	}
	return append([]float64{95, 99}, bench.PercentilesOf(metrics...)...)
}

// Chosen are the questions that every trial of the study is asked: as many as it
// asks for, drawn by its seed, in the order of the file.
func (s *Study) Chosen() ([]Question, error) {
	set, err := ReadQuestions(s.Accuracy.Questions)
	if err != nil {
		return nil, err
	}
	return drawQuestions(set, cmp.Or(s.Accuracy.Limit, defaultQuestions), s.Seed), nil
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
	m, err := ReadModelConfig(name, path)
	if err != nil {
		return arch.Model{}, fmt.Errorf("model_config of %s: %w%s", name, err, whereLooked(path))
	}
	return m, nil
}

// HardwareText is the hardware in words; found is what it calls itself, "" where that is
// not known.
func (s *Study) HardwareText(found string) string {
	switch {
	case s.OnCPU() && s.Hardware.Nodes > 1:
		return fmt.Sprintf("CPUs of %d hosts, no GPU", s.Hardware.Nodes)
	case s.OnCPU() && len(s.Runtime.Machines) > 0:
		return fmt.Sprintf("CPU of one host%s, no GPU", s.machinesText())
	case s.OnCPU() && found != "":
		return fmt.Sprintf("CPU of one host (%s), no GPU", found)
	case s.OnCPU():
		return "CPU of one host, no GPU"
	}
	text := fmt.Sprintf("%d x %s", s.Hardware.GPUs, cmp.Or(found, s.Accelerator.Title))
	if s.Hardware.Nodes > 1 {
		return fmt.Sprintf("%s on %d nodes", text, s.Hardware.Nodes)
	}
	return text + cmp.Or(s.machinesText(), " on one node")
}
