package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perflab/internal/study"
)

// TestRequired: of study files, without any one of its keys, the schema and the checker agree
// whether something is missing.
func TestRequired(t *testing.T) {
	schema := compileSchema(t)
	t.Parallel()
	tried := 0
	for _, path := range []string{
		"../../examples/quickstart.yaml", "../../examples/ssh-two-nodes.yaml", "../../examples/disaggregation.yaml", "../../examples/spark-models.yaml", "../study/testdata/everything.yaml",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range keysBelow(generic(t, text), nil) {
			without := generic(t, text)
			drop(without, at)
			b, err := json.Marshal(without) // which is YAML, too
			if err != nil {
				t.Fatal(err)
			}
			tried++
			_, cerr := study.Parse(path, b)
			serr := schema.Validate(generic(t, b))
			if missing := cerr != nil && strings.Contains(cerr.Error(), "missing"); missing != (serr != nil) {
				t.Errorf("%s without %v: checker %v, schema %v", path, at, cerr, serr)
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d keys were left out", tried)
	}
}

// keysBelow are the paths to all keys of mappings.
func keysBelow(v any, at []any) (all [][]any) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			here := append(slices.Clone(at), k)
			all = append(all, here)
			all = append(all, keysBelow(v[k], here)...)
		}
	case []any:
		for i, x := range v {
			all = append(all, keysBelow(x, append(slices.Clone(at), i))...)
		}
	}
	return all
}

// drop removes a key.
func drop(v any, at []any) {
	for _, step := range at[:len(at)-1] {
		switch s := step.(type) {
		case string:
			v = v.(map[string]any)[s]
		case int:
			v = v.([]any)[s]
		}
	}
	delete(v.(map[string]any), fmt.Sprint(at[len(at)-1]))
}

// TestEditorsFindTheSchema: the first line of every example names the schema to editors, by a path
// from there.
func TestEditorsFindTheSchema(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		schema, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), schema)); !ok || err != nil {
			t.Errorf("%s begins %q: %v", path, first, err)
		}
	}
}
