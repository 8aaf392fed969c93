package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shared returns the directory of reference facts, and skips the test where it
// is not there.
func shared(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("PERFLAB_SHARED"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "shared", "reference", "seed_blocks.json")); err == nil {
			return filepath.Join(dir, "shared")
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		t.Skip("the published studies are not here: set PERFLAB_SHARED to read them")
	}
}

// reference is what is known of a published block.
type reference struct {
	ID      string
	Seed    string
	Lines   [2]int
	Section []string `json:"section_path"`
	Model   string
	Engine  string
	Version string `json:"engine_version"`
	Command string `json:"serving_command"`
	GPUs    int
	Doc     string
	Figures []struct {
		Label string
		Raw   string
		Value float64
		Unit  string
	}
	Inferred []string
}

var engineTitles = map[string]string{"vLLM": "vllm", "SGLang": "sglang", "TensorRT-LLM": "trtllm"}

// Every figure, place and fact of the 72 blocks of the four studies.
func TestPublishedStudies(t *testing.T) {
	dir := shared(t)
	data, err := os.ReadFile(filepath.Join(dir, "reference", "seed_blocks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var refs struct{ Blocks []reference }
	if err := json.Unmarshal(data, &refs); err != nil {
		t.Fatal(err)
	}
	runs := map[string][]Run{}
	blocks, figures := 0, 0
	for _, ref := range refs.Blocks {
		if _, ok := runs[ref.Seed]; !ok {
			text, err := os.ReadFile(filepath.Join(dir, "published", ref.Seed))
			if err != nil {
				t.Fatal(err)
			}
			f := Read(ref.Seed, text)
			runs[ref.Seed] = f.Runs
			for _, fault := range f.Faults {
				t.Error(fault)
			}
		}
		i := slices.IndexFunc(runs[ref.Seed], func(r Run) bool { return r.Place.Line == ref.Lines[0] && r.Place.End == ref.Lines[1] })
		if i < 0 {
			t.Errorf("%s: no block in lines %v", ref.ID, ref.Lines)
			continue
		}
		blocks++
		r := runs[ref.Seed][i]
		figures += sameFigures(t, ref, r)
		sameFacts(t, ref, r)
	}
	all := 0
	for _, r := range runs {
		all += len(r)
	}
	if blocks != 72 || all != 72 || figures != 1466 {
		t.Errorf("%d blocks of %d, %d figures: want 72 of 72, 1466", blocks, all, figures)
	}
}

// sameFigures compares label, text, value and order, and returns how many are
// equal.
func sameFigures(t *testing.T, ref reference, r Run) (same int) {
	if len(r.Figures) != len(ref.Figures) || len(r.Other) != 0 {
		t.Errorf("%s: %d figures and %d other lines, want %d", ref.ID, len(r.Figures), len(r.Other), len(ref.Figures))
		return 0
	}
	for i, want := range ref.Figures {
		got, value := r.Figures[i], want.Value
		if strings.HasSuffix(want.Label, "Latency(s)") {
			value *= 1000
		}
		if got.Label != want.Label || got.Text != want.Raw || got.Value != value || got.Line <= r.Place.Line || got.Line >= r.Place.End {
			t.Errorf("%s: %+v, want %+v", ref.ID, got, want)
			continue
		}
		same++
	}
	return same
}

// sameFacts compares what stands around a block.
func sameFacts(t *testing.T, ref reference, r Run) {
	im := r.Header.Imported
	path := slices.Clone(im.Section)
	if im.Labels["role"] != "" {
		path = append(path, im.Labels["caption"])
	}
	if c := im.Labels["case"]; c != "" && c != im.Labels["profile"] {
		path = append(path, c)
	}
	want := ref.Section
	if ref.Doc == "spark" {
		// The reference writes "4 node(s) (tp)" for each spelling, and adds the
		// number of prompts, which is no heading.
		want = want[:2]
		path[1] = strings.Replace(strings.Replace(path[1], "nodes", "node(s)", 1), "node ", "node(s) ", 1)
	}
	if !slices.Equal(path, want) {
		t.Errorf("%s: section %q, want %q", ref.ID, path, want)
	}
	model := ref.Model
	if ref.Doc == "h200" { // the precision is inferred there: blocks list flags, never the model
		model = strings.TrimSuffix(model, "-FP8")
	}
	if r.Header.Model != model {
		t.Errorf("%s: model %q, want %q", ref.ID, r.Header.Model, model)
	}
	if got := im.Labels["engine"]; got != engineTitles[ref.Engine] {
		t.Errorf("%s: engine %q, want %q", ref.ID, got, ref.Engine)
	}
	if got := im.Labels["engine_version"]; got != ref.Version {
		t.Errorf("%s: engine version %q, want %q", ref.ID, got, ref.Version)
	}
	if r.Header.Command != ref.Command {
		t.Errorf("%s: command\n%s, want\n%s", ref.ID, r.Header.Command, ref.Command)
	}
}
