package cli

import (
	"os"
	"testing"
)

// TestSchemaBaseline: an editor asks for what a study is counted from as the program does: a survey
// for its candidates, any other study for a baseline.
func TestSchemaBaseline(t *testing.T) {
	schema := compileSchema(t)
	text, err := os.ReadFile("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list := []any{map[string]any{"label": "vLLM", "engine": "vllm"}}
	for _, tt := range []struct {
		name, strategy     string
		baseline, surveyed bool
		right              bool
	}{
		{"a race", "", true, false, true},
		{"a race without a baseline", "", false, false, false},
		{"stages without a baseline", "staged", false, true, false},
		{"a survey", "survey", false, true, true},
		{"a survey of nothing", "survey", false, false, false},
	} {
		study := generic(t, text).(map[string]any)
		if !tt.baseline {
			delete(study, "baseline")
		}
		if tt.strategy != "" {
			study["strategy"] = tt.strategy
		}
		if tt.surveyed {
			study["candidates"] = list
		}
		if err := schema.Validate(study); (err == nil) != tt.right {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
