package study

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/candidate"
	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// Strategies of a study.
const (
	Race   = "race"
	Staged = "staged"
	Survey = "survey"
	Random = "random"
	Grid   = "grid"
	TPE    = "tpe"
)

// Strategies lists the names, the default first.
func Strategies() []string { return []string{Race, Staged, Survey, Random, Grid, TPE} }

// Search is what a study says about the space that race, random, grid and tpe
// search: by itself it is the engines' catalogue.
type Search struct {
	Space  map[string][]string `yaml:"space,omitempty" json:"space,omitempty" jsonschema:"description=Narrows the catalogue: parameter (or engine or model) -> the values that may be tried; an empty value is the engine's default"`
	Arms   []Candidate         `yaml:"arms,omitempty" json:"arms,omitempty" jsonschema:"description=Whole configurations to try besides the catalogue's"`
	Priors []string            `yaml:"priors,omitempty" json:"priors,omitempty" jsonschema:"description=Files of recipes (from the working directory): YAML lists of label\\, engine\\, model\\, set and source. Those of the study's engines and models are tried too"`
	Race   RaceUse             `yaml:"race,omitempty" json:"race,omitzero"`
}

// RaceUse says how a race goes about it.
type RaceUse struct {
	Rounds    int     `yaml:"rounds,omitempty" json:"rounds,omitempty" jsonschema:"description=Launches of the best\\, of the second and of the baseline that confirm the winner (default 3)"`
	ShortLoad float64 `yaml:"short_load,omitempty" json:"short_load,omitempty" jsonschema:"description=Share of the load under which configurations compete first (default a third)"`
}

// Recipe is a configuration that somebody has published, in a file of priors.
type Recipe struct {
	Label  string `yaml:"label"`
	Engine string `yaml:"engine"`
	Model  string `yaml:"model"`
	Set    Values `yaml:"set"`
	Source string `yaml:"source"` // where it comes from, for the report
}

// Share is a part of a whole as users write it: "2%" or 0.02.
type Share string

// Value is the share; "" is 0.
func (s Share) Value() (float64, error) {
	if s == "" {
		return 0, nil
	}
	number, percent := strings.CutSuffix(string(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v < 1) {
		return 0, fmt.Errorf("%q is no share: write 2%% or 0.02", string(s))
	}
	return v, nil
}

// minGain is what a race takes for a difference that matters where the study
// says nothing: less is dear to show, since launches of one configuration differ
// by a percent or two.
const minGain = 0.02

// draws reports whether the strategy searches the engines' catalogue.
func (f *File) draws() bool {
	return slices.Contains([]string{Race, Random, Grid, TPE}, f.Strategy)
}

// NewStrategy builds the search from the study, and the field of what it may try
// where it searches the catalogue. p may be nil.
func (s *Study) NewStrategy(p tune.Predictor) (tune.Strategy, *candidate.Field, error) {
	names := s.WorkloadNames()
	if s.Strategy == Survey {
		var all []tune.Change
		for _, k := range s.Survey {
			all = append(all, tune.Change{Label: k.Label, Set: s.whole(k)})
		}
		survey, err := tune.NewSurvey(all, names, s.Goal)
		return survey, nil, err
	}
	space := tune.Space{Baseline: s.whole(*s.Baseline), Primary: names[0], Others: names[1:]}
	if s.Strategy == Staged {
		for _, st := range s.Stages {
			stage := tune.Stage{Name: st.Name}
			for _, k := range st.Try {
				stage.Changes = append(stage.Changes, s.change(k))
			}
			space.Stages = append(space.Stages, stage)
		}
		staged, err := tune.NewStaged(space, s.Goal, s.Limits)
		return staged, nil, err
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
	switch s.Strategy {
	case Race:
		st, err = tune.NewRace(field.SearchSpace(), p, space, s.Goal, s.Limits, tune.RaceOptions{Rounds: s.Search.Race.Rounds, Short: s.Search.Race.ShortLoad})
	case Random:
		st, err = tune.NewRandom(product, space, s.Goal, s.Limits, s.Seed)
	case Grid:
		st, err = tune.NewGrid(product, space, s.Goal, s.Limits, s.Seed)
	case TPE:
		st, err = tune.NewTPE(product, space, s.Goal, s.Limits, s.Seed)
	default:
		err = fmt.Errorf("strategy %q is not known: use %s", s.Strategy, strings.Join(Strategies(), ", "))
	}
	return st, field, err
}

// NoPredictor predicts nothing.
type NoPredictor struct{}

// Predict has no figures.
func (NoPredictor) Predict(tune.Config, string) (map[string]float64, bool) { return nil, false }

// options are what the study may try. Configurations are made concrete by what
// the study file alone says: what an engine tells of itself comes later, and a
// study that is resumed must find what it began with.
func (s *Study) options() candidate.Options {
	engines, models := s.tried()
	o := candidate.Options{
		Baseline: s.whole(*s.Baseline), Engines: engines, Models: models, Narrow: s.Space,
		GPUs: s.Hardware.GPUs, Latency: s.forLatency(), Numerics: s.Accuracy != nil, Longest: s.longestRequest(),
		Resolve: func(c tune.Config) (engine.Command, engine.Config, error) {
			k, err := s.Configure(c, Installed{})
			return k.Command, k.Config, err
		},
	}
	taken := map[string]bool{}
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
			o.Candidates = append(o.Candidates, tune.Candidate{Label: c.Label, Config: c.Apply(nil), Prior: ofStudy})
		}
	}
	for _, k := range s.Arms {
		o.Candidates = append(o.Candidates, tune.Candidate{Label: k.Label, Config: tune.Change{Set: s.whole(k)}.Apply(nil), Prior: ofStudy})
	}
	o.Candidates = append(o.Candidates, s.Recipes...)
	return o
}

// ofStudy is where the configurations of the study file come from.
const ofStudy = "the study"

// tried are the engines and models that a search of the catalogue may use: all
// that the study names, or those that its space does.
func (f *File) tried() (engines, models []string) {
	add := func(list *[]string, names ...string) {
		for _, name := range names {
			if name != "" && !slices.Contains(*list, name) {
				*list = append(*list, name)
			}
		}
	}
	add(&engines, f.Baseline.Engine)
	add(&engines, slices.Sorted(maps.Keys(f.Engines))...)
	add(&models, cmp.Or(f.Baseline.Model, f.Model), f.Model)
	named := slices.Clone(f.Arms)
	for _, st := range f.Stages {
		named = append(named, st.Try...)
	}
	for _, k := range named {
		add(&engines, k.Engine)
		add(&models, k.Model)
	}
	if v := f.Space["engine"]; len(v) > 0 {
		engines = v
	}
	if v := f.Space["model"]; len(v) > 0 {
		models = v
	}
	engines = slices.DeleteFunc(slices.Clone(engines), func(name string) bool {
		e, err := engine.ByName(name)
		simulated := f.Runtime.Kind == Simulated || f.Runtime.Kind == Predicted
		return err != nil || e.MeasuredOnly && simulated
	})
	return engines, models
}

// forLatency reports whether the objective is how long a call or a part of it
// takes, and not how much is done.
func (s *Study) forLatency() bool {
	m := s.Metric
	return m.Better == result.Lower && (m.Unit == "ms" || m.Unit == "s") && m.Name != "duration"
}

// longestRequest is the tokens of the longest request of all workloads; 0 where
// it is not known.
func (s *Study) longestRequest() int {
	longest := 0
	for _, w := range s.Workloads {
		if e := s.Lengths(w.Name, 0); e != nil {
			longest = max(longest, e.Whole.Input+e.Whole.Output)
		}
	}
	return longest
}

// limits bound the search. GPU hours are time, for all of the hardware is
// allocated as long as a trial lasts.
func (f *File) limits() (tune.Budget, error) {
	limit, err := f.Budget.limit()
	if err != nil {
		return tune.Budget{}, err
	}
	if h := f.Budget.GPUHours; h > 0 {
		wall := time.Duration(math.Min(h/float64(max(f.Hardware.GPUs, 1))*float64(time.Hour), math.MaxInt64/2))
		if limit == 0 || wall < limit {
			limit = wall
		}
	}
	return tune.Budget{Trials: f.Budget.Trials, Time: limit}, nil
}
