package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/spf13/pflag"

	"perflab/internal/cli/flagset"
	"perflab/internal/hardware"
	"perflab/internal/price"
	"perflab/internal/study"
	"perflab/internal/workload"
)

// studySchema is the JSON Schema of study files, made from study.File.
func studySchema() ([]byte, error) {
	r := jsonschema.Reflector{
		DoNotReference: true, ExpandedStruct: true, RequiredFromJSONSchemaTags: true, Mapper: scalars,
	}
	s := r.Reflect(&study.File{})
	s.ID = ""
	s.Title = "perflab study"
	if err := describeWorkloads(s); err != nil {
		return nil, err
	}
	requireWhole(s)
	requireDeclared(s)
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the schema: %w", err)
	}
	return append(b, '\n'), nil
}

// requireWhole has every study give what its gains are counted from, a survey its candidates and
// the others a baseline. These and whatever starts from nothing have an engine, and a model where
// the study has none.
func requireWhole(s *jsonschema.Schema) {
	s.If = only("strategy", &jsonschema.Schema{Const: study.Survey})
	s.If.Required = []string{"strategy"}
	s.Then = &jsonschema.Schema{Required: []string{"candidates"}}
	s.Else = &jsonschema.Schema{Required: []string{"baseline"}}
	model := &jsonschema.Schema{Required: []string{"model"}}
	whole := only("candidates", &jsonschema.Schema{Items: model})
	whole.Properties.Set("baseline", model)
	whole.Properties.Set("reference", model)
	s.AnyOf = []*jsonschema.Schema{model, whole}
	for key, list := range s.Properties.FromOldest() {
		switch key {
		case "baseline":
			list.Required = []string{"engine"} // its label has a default
		case "candidates", "arms":
			list.Items.Required = append(list.Items.Required, "engine")
		case "stages":
			try, _ := list.Items.Properties.Get("try")
			try.Items.If = only("fresh", &jsonschema.Schema{Const: true})
			try.Items.If.Required = []string{"fresh"}
			try.Items.Then = &jsonschema.Schema{Required: []string{"engine"}}
		}
	}
}

// only describes one key of a mapping.
func only(key string, of *jsonschema.Schema) *jsonschema.Schema {
	p := jsonschema.NewProperties()
	p.Set(key, of)
	return &jsonschema.Schema{Properties: p}
}

// requireDeclared has a study of simulated engines say what the accuracy is that it asks for.
func requireDeclared(s *jsonschema.Schema) {
	accuracy, _ := s.Properties.Get("accuracy")
	declared, _ := accuracy.Properties.Get("declared")
	effects, _ := declared.Properties.Get("effects")
	when, _ := effects.Items.Properties.Get("when")
	when.MinProperties = new(uint64(1))
	simulated := only("runtime", only("kind", &jsonschema.Schema{Enum: []any{study.Simulated, study.Predicted}}))
	s.AllOf = []*jsonschema.Schema{{If: simulated, Then: only("accuracy", &jsonschema.Schema{Required: []string{"declared"}})}}
}

// describeWorkloads gives the keys of a workload the words that perflab bench
// has for its flags: they are the same parameters.
func describeWorkloads(s *jsonschema.Schema) error {
	list, ok := s.Properties.Get("workloads")
	if !ok || list.Items == nil {
		return errors.New("describe the study format: it has no list of workloads")
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flagset.AddWorkload(flags, &workload.Spec{}, new(string))
	flagset.AddUntil(flags, &workload.Spec{})
	flags.VisitAll(func(f *pflag.Flag) {
		if p, ok := list.Items.Properties.Get(strings.ReplaceAll(f.Name, "-", "_")); ok {
			p.Description = f.Usage
		}
	})
	return nil
}

// scalars describes the types whose YAML form reflection cannot see.
func scalars(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[workload.Rate]():
		return &jsonschema.Schema{
			OneOf:       []*jsonschema.Schema{{Type: "number", ExclusiveMinimum: "0"}, {Const: "inf"}},
			Description: "Requests per second; inf sends all at once",
		}
	case reflect.TypeFor[price.Hourly]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "number", ExclusiveMinimum: "0"}, {Type: "string"}}}
	case reflect.TypeFor[hardware.Devices]():
		return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "integer", Minimum: "0"}, {Type: "string"}}}}
	case reflect.TypeFor[workload.Span]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "number", ExclusiveMinimum: "0"}, {Type: "string"}}}
	case reflect.TypeFor[workload.Range]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "integer", Minimum: "1"}, {Type: "string"}}}
	case reflect.TypeFor[study.Share]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "number", Minimum: "0"}, {Type: "string"}}}
	case reflect.TypeFor[map[string][]string]():
		return &jsonschema.Schema{
			Type: "object",
			AdditionalProperties: &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{
				OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}},
			}},
		}
	case reflect.TypeFor[study.Values]():
		return &jsonschema.Schema{
			Type: "object",
			AdditionalProperties: &jsonschema.Schema{
				OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}},
			},
			Description: "Engine-neutral parameters, such as tp or max_num_batched_tokens; an empty value removes one",
		}
	}
	return nil
}
