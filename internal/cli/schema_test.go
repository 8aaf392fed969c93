package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/spf13/pflag"

	"perflab/internal/hardware"
	"perflab/internal/result"
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
	requireBaseline(s)
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the schema: %w", err)
	}
	return append(b, '\n'), nil
}

// requireBaseline has every study give what its gains are counted from: a survey its candidates,
// the others a baseline.
func requireBaseline(s *jsonschema.Schema) {
	survey := jsonschema.NewProperties()
	survey.Set("strategy", &jsonschema.Schema{Const: study.Survey})
	s.If = &jsonschema.Schema{Properties: survey, Required: []string{"strategy"}}
	s.Then = &jsonschema.Schema{Required: []string{"candidates"}}
	s.Else = &jsonschema.Schema{Required: []string{"baseline"}}
}

// describeWorkloads gives the keys of a workload the words that perflab bench
// has for its flags: they are the same parameters.
func describeWorkloads(s *jsonschema.Schema) error {
	list, ok := s.Properties.Get("workloads")
	if !ok || list.Items == nil {
		return errors.New("describe the study format: it has no list of workloads")
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	addWorkloadFlags(flags, &workload.Spec{}, new(string))
	addUntilFlags(flags, &workload.Spec{})
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
	case reflect.TypeFor[result.Price]():
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
