package study

import (
	"cmp"
	"maps"

	"perflab/internal/tune"
)

// Reference is a recommendation that somebody published: the study tries it, and says
// whether its own is the same or another.
type Reference struct {
	Label  string `yaml:"label" json:"label" jsonschema:"required,description=What the report calls it"`
	Source string `yaml:"source,omitempty" json:"source,omitempty" jsonschema:"description=Where it was published"`
	Engine string `yaml:"engine" json:"engine" jsonschema:"required,enum=vllm,enum=sglang,enum=trtllm,enum=llamacpp"`
	Model  string `yaml:"model,omitempty" json:"model,omitempty" jsonschema:"description=Its checkpoint (default: the study's model)"`
	Set    Values `yaml:"set,omitempty" json:"set,omitempty" jsonschema:"description=Its parameters"`

	Published float64 `yaml:"published,omitempty" json:"published,omitempty" jsonschema:"exclusiveMinimum=0,description=Its published figure of the objective\\, on the first workload"`
}

// candidate is the reference as a whole configuration.
func (r Reference) candidate() Candidate {
	return Candidate{Label: r.Label, Engine: r.Engine, Model: r.Model, Set: r.Set, Published: r.Published}
}

// PublishedFigure is a configuration of which somebody published the objective's figure.
type PublishedFigure struct {
	Label  string
	Config tune.Config
	Figure float64
}

// PublishedFigures are those that the study has: of the baseline, of what it lists whole, and
// of the reference.
func (f *File) PublishedFigures() []PublishedFigure {
	var out []PublishedFigure
	add := func(all ...Candidate) {
		for _, k := range all {
			if k.Published > 0 {
				out = append(out, PublishedFigure{k.Label, f.whole(k), k.Published})
			}
		}
	}
	if f.Baseline != nil {
		add(*f.Baseline)
	}
	for _, st := range f.Stages {
		add(st.Try...)
	}
	add(f.Arms...)
	add(f.Survey...)
	if f.Reference != nil {
		add(f.Reference.candidate())
	}
	return out
}

// ReferenceConfig is the configuration of the reference; nil where there is none.
func (f *File) ReferenceConfig() tune.Config {
	if f.Reference == nil {
		return nil
	}
	return f.whole(f.Reference.candidate())
}

// whole is a candidate that starts from nothing, as strategies have it.
func (f *File) whole(k Candidate) tune.Config { return tune.Change{Set: f.fullConfig(k)}.Apply(nil) }

// surveyed are the configurations of a survey, with the reference where it is none of them.
func (f *File) surveyed() []tune.Change {
	var all []tune.Change
	listed := false
	for _, k := range f.Survey {
		all = append(all, tune.Change{Label: k.Label, Set: f.fullConfig(k)})
		listed = listed || maps.Equal(f.whole(k), f.ReferenceConfig())
	}
	if f.Reference != nil && !listed {
		k := f.Reference.candidate()
		all = append(all, tune.Change{Label: k.Label, Set: f.fullConfig(k)})
	}
	return all
}

// published checks the reference and the figures that were published.
func (c *checker) published() {
	if r := c.s.Reference; r != nil {
		c.candidate("reference", r.candidate(), true)
	}
}

// figure checks the published figure of a candidate that is a whole configuration or not.
func (c *checker) figure(at string, k Candidate, whole bool) {
	switch {
	case k.Published < 0:
		c.add(at+".published", "published is %g: give the figure of the objective as it was published, above 0", k.Published)
	case k.Published > 0 && !whole:
		c.add(at+".published", "a published figure is of a whole configuration: give this candidate fresh: true and all that it sets")
	}
}

// referenceModel is the checkpoint of the reference; "" where there is none.
func (f *File) referenceModel() string {
	if f.Reference == nil {
		return ""
	}
	return cmp.Or(f.Reference.Model, f.Model)
}
