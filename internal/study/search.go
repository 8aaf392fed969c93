package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/candidate"
	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/tune"
	"perflab/internal/tune/draw"
	"perflab/internal/tune/foresight"
	"perflab/internal/tune/staged"
)

// NewStrategy builds the search from the study, and the field of what it may try
// where it searches the catalogue. p may be nil.
func (s *Study) NewStrategy(p tune.Predictor) (tune.Strategy, *candidate.Field, error) {
	names := s.WorkloadNames()
	if s.Strategy == Survey {
		survey, err := staged.NewSurvey(s.surveyed(), names, s.Goal)
		return survey, nil, err
	}
	space := tune.Space{Baseline: s.fullConfig(*s.Baseline), Primary: names[0], Others: names[1:]}
	if s.Strategy == Staged {
		for _, st := range s.Stages {
			stage := tune.Stage{Name: st.Name}
			for _, k := range st.Try {
				stage.Changes = append(stage.Changes, s.change(k))
			}
			space.Stages = append(space.Stages, stage)
		}
		st, err := staged.New(space, s.Goal, s.Limits)
		return st, nil, err
	}
	field, err := candidate.New(s.options())
	if err != nil {
		return nil, nil, err
	}
	product := tune.SearchSpace{Domain: field.Domain(), Rules: field}
	if p == nil {
		p = NoPredictor{}
	}
	var st tune.Strategy
	switch {
	case s.Strategy == Race && s.Runtime.Kind == Predicted:
		st, err = foresight.New(field.SearchSpace(), p, space, s.Goal)
	case s.Strategy == Race:
		st, err = tune.NewRace(field.SearchSpace(), p, space, s.Goal, s.Limits, tune.RaceOptions{Rounds: s.Search.Race.Rounds, Short: s.shortLoad(space), Earlier: s.Known, Nodes: s.MachineNames()})
	case s.Strategy == Random:
		st, err = draw.NewRandom(product, space, s.Goal, s.Limits, s.Seed)
	case s.Strategy == Grid:
		st, err = draw.NewGrid(product, space, s.Goal, s.Limits, s.Seed)
	case s.Strategy == TPE:
		st, err = draw.NewTPE(product, space, s.Goal, s.Limits, s.Seed)
	default:
		err = fmt.Errorf("strategy %q is not known: use %s", s.Strategy, strings.Join(Strategies(), ", "))
	}
	return st, field, err
}

// shortLoad is the share of the load under which configurations compete first; 1 where no
// workload of the search is any shorter by it: a launch under all of the load would be taken for
// one under a part, and compared with nothing else.
func (s *Study) shortLoad(space tune.Space) float64 {
	p := tune.Proposal{Workloads: []string{space.Primary}, Share: cmp.Or(s.Search.Race.ShortLoad, tune.ShortLoad)}
	for _, name := range space.Others {
		if s.Goal.Weights[name] > 0 {
			p.Workloads = append(p.Workloads, name)
		}
	}
	if s.Limits.Time > 0 && s.LoadShare(p) == 0 {
		return 1
	}
	return s.Search.Race.ShortLoad
}

// NoPredictor predicts nothing.
type NoPredictor struct{}

// Predict has no figures.
func (NoPredictor) Predict(tune.Config, string) (map[string]float64, bool) { return nil, false }

// options are what the study may try. Configurations are made concrete by what
// the study file alone says: what an engine tells of itself comes later, and a
// study that is resumed must find what it began with.
func (s *Study) options() candidate.Options {
	engines, models := s.searchedNames()
	longest, prompt := s.longest()
	o := candidate.Options{
		Baseline: s.fullConfig(*s.Baseline), Label: s.Baseline.Label, Engines: engines, Models: models, Narrow: s.Space,
		GPUs: s.Hardware.GPUs, Latency: s.forLatency(), Numerics: s.Accuracy != nil, Longest: longest, Prompt: prompt, Shared: sharesPrefixes(s.Workloads), Unlaunched: s.Runtime.Kind == Predicted,
		Resolve: func(c tune.Config) (engine.Command, engine.Config, error) {
			k, err := s.Configure(c, Installed{})
			return k.Command, k.Config, err
		},
	}
	taken := map[string]bool{s.Baseline.Label: true}
	label := func(text, stage string) string {
		if taken[text] && stage != "" {
			text = stage + ": " + text // it is unique within its stage only
		}
		taken[text] = true
		return text
	}
	for _, st := range s.Stages {
		for _, k := range st.Try {
			c := s.change(k)
			if c.Label = label(c.Label, st.Name); !c.Replace {
				o.Changes = append(o.Changes, c)
				continue
			}
			o.Candidates = append(o.Candidates, tune.Candidate{Label: c.Label, Config: c.Apply(nil), Prior: studyOrigin})
		}
	}
	for _, k := range s.Arms {
		o.Candidates = append(o.Candidates, tune.Candidate{Label: k.Label, Config: s.whole(k), Prior: studyOrigin})
	}
	if r := s.Reference; r != nil {
		o.Candidates = append(o.Candidates, tune.Candidate{Label: r.Label, Config: s.ReferenceConfig(), Prior: studyOrigin})
	}
	o.Candidates = append(o.Candidates, s.Recipes...)
	return o
}

// studyOrigin is where the configurations of the study file come from.
const studyOrigin = "the study"

// forLatency reports whether the objective is how long a call or a part of it
// takes, and not how much is done.
func (s *Study) forLatency() bool {
	m := s.Metric
	return m.Better == result.Lower && (m.Unit == "ms" || m.Unit == "s") && m.Name != "duration"
}

// sharesPrefixes reports whether prompts of a workload begin as earlier ones do.
func sharesPrefixes(workloads []Workload) bool {
	return slices.ContainsFunc(workloads, func(w Workload) bool { return w.SharesPrefixes() })
}

// longest are the tokens of the longest request of all workloads, and of the longest prompt of the
// first one, which decides what a trial is worth, unless that is an estimate; 0 for what is not known.
func (s *Study) longest() (request, prompt int) {
	for i, w := range s.Workloads {
		e := s.Lengths(w.Name, 0)
		if e == nil {
			continue
		}
		request = max(request, e.Whole.Input+e.Whole.Output)
		if i == 0 && e.Exact {
			prompt = e.Prompt.Input
		}
	}
	return request, prompt
}
