package cli

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/engine/logs"
	"perflab/internal/study"
)

// TestGeneratedFailureClasses holds the table at the end of docs/runtimes.md against the
// catalogue.
func TestGeneratedFailureClasses(t *testing.T) {
	const path, head = "../../docs/runtimes.md", "| class | kind | meaning | what to do |\n| --- | --- | --- | --- |\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(text), head)
	if !ok {
		t.Fatal("docs/runtimes.md has no table of failure classes")
	}
	var b strings.Builder
	b.WriteString(before + head)
	for _, c := range logs.FailureClasses() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, c.Kind, c.Doc, c.Advice)
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(b.String(), string(text)); d != "" {
		t.Errorf("docs/runtimes.md is stale (make docs writes it):\n%s", d)
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestStudySamples: every YAML sample of the documents is part of a study that is valid,
// and that editors accept.
func TestStudySamples(t *testing.T) {
	schema := compileSchema(t)
	for path, least := range map[string]int{"../../docs/runtimes.md": 9} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		samples := yamlBlock.FindAllStringSubmatch(string(text), -1)
		if len(samples) < least {
			t.Errorf("%s has %d samples, want at least %d", path, len(samples), least)
		}
		for _, m := range samples {
			text, err := completed(m[1])
			if err != nil {
				t.Errorf("%s: %v in\n%s", path, err, m[1])
				continue
			}
			if _, err := study.Parse("sample", text); err != nil {
				t.Errorf("%s: %v in\n%s", path, err, m[1])
			}
			if err := schema.Validate(generic(t, text)); err != nil {
				t.Errorf("%s: %v in\n%s", path, err, m[1])
			}
		}
	}
	if text, err := completed("runtime: {kind: docker, docker: {ulimit: [memlock=-1]}}\nengines: {vllm: {image: i}}"); err != nil {
		t.Error(err)
	} else if _, err := study.Parse("sample", text); err == nil || !strings.Contains(err.Error(), `unknown key "ulimit"`) {
		t.Errorf("a sample with an unknown key passes: %v", err)
	}
}

// completed is a sample with what it leaves out of a study.
func completed(sample string) ([]byte, error) {
	s := map[string]any{}
	if err := yaml.Unmarshal([]byte(sample), &s); err != nil {
		return nil, err
	}
	name := "vllm"
	if engines, ok := s["engines"].(map[string]any); ok {
		name = slices.Min(slices.Collect(maps.Keys(engines)))
	}
	try := []any{map[string]any{"name": "Sequences", "try": []any{map[string]any{"label": "64", "set": map[string]any{"max_num_seqs": 64}}}}}
	runtime, _ := s["runtime"].(map[string]any)
	if runtime["kind"] == study.Existing && runtime["hooks"] == nil {
		try = []any{}
	}
	rest := map[string]any{
		"name": "sample", "model": "Qwen/Qwen3-8B", "hardware": map[string]any{"gpu": "h100-sxm", "gpus": 2},
		"objective": map[string]any{"metric": "total_token_throughput"},
		"workloads": []any{map[string]any{"name": "short", "dataset_name": "random", "num_prompts": 10, "random_input_len": 64, "random_output_len": 8}},
		"baseline":  map[string]any{"label": "default", "engine": name}, "stages": try,
		"runtime": map[string]any{"kind": "process"},
	}
	for key, value := range rest {
		if _, ok := s[key]; !ok {
			s[key] = value
		}
	}
	return yaml.Marshal(s)
}
