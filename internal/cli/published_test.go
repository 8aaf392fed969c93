//go:build !race

// Predictions alone, which start no goroutine: under the race detector they take ten times as
// long and show no more.

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perflab/internal/lab"
	"perflab/internal/outcome"
	"perflab/internal/replay"
	"perflab/internal/report"
	"perflab/internal/report/doc"
	"perflab/internal/report/finding"
	"perflab/internal/study"
)

// TestPublishedStudies: small copies of the examples of four published studies, the primary
// workload alone and a quarter of its requests, end on the published recommendation or on one
// that the same model predicts to be at least as good, and the report says which. Nothing is
// said of launches that were not made.
func TestPublishedStudies(t *testing.T) {
	for _, tt := range []struct {
		name  string
		same  bool
		found string // of what is recommended
	}{
		{"qwen3-32b-h100", false, "SGLang FP8"},
		{"qwen3-235b-a100", false, "vLLM, FP8, tp 1 dp 8 with EP"},
		{"qwen3.5-35b-h200-latency", false, "FP8 with MTP, 1 token + speculation mtp:3 + max_cudagraph_capture_size 1024"},
		{"spark-models", true, "GPT-OSS-20B"},
		{"spark-gpt-oss", false, "vLLM, tp 1 dp 4 with EP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, text := smallCopy(t, tt.name)
			r := f.Reference
			if r == nil || r.Trial == 0 || r.Published == nil || f.Recommended == nil {
				t.Fatalf("reference %+v, recommended %+v", r, f.Recommended)
			}
			if r.Same != tt.same || !strings.HasPrefix(f.Recommended.Label, tt.found) {
				t.Errorf("it ends on %s, the same: %v", f.Recommended.Label, r.Same)
			}
			if !r.Same && (r.Over == nil || r.Over.Value < 0 || !(r.Over.Low < r.Over.Value && r.Over.Value < r.Over.High)) {
				t.Errorf("over the published one: %+v", r.Over)
			}
			says := "What is recommended is another than the published recommendation, "
			if tt.same {
				says = "What is recommended is the published recommendation, "
			}
			for _, want := range []string{says + r.Label, "configurations whose published figures differ", "Predicted: nothing was launched"} {
				if want != "configurations whose published figures differ" && !strings.Contains(text, want) || r.Pairs > 0 && !strings.Contains(text, want) {
					t.Errorf("the report lacks %q:\n%s", want, text)
				}
			}
			if m := regexp.MustCompile(`(?i)confirmed|fresh seeds|noise between|[0-9] launch`).FindString(text); m != "" {
				t.Errorf("the report says %q:\n%s", m, text)
			}
			for _, trial := range f.Trials {
				for _, o := range f.Trials[:trial.ID-1] {
					if o.Command == trial.Command {
						t.Errorf("trials %d and %d are of one command", o.ID, trial.ID)
					}
				}
			}
		})
	}
}

// smallCopy runs a small copy of an example, and gives the report's text.
func smallCopy(t *testing.T, name string) (outcome.Study, string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../examples", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	small := regexp.MustCompile(`num_prompts: 1000`).ReplaceAll(text, []byte("num_prompts: 250"))
	s, err := study.Parse(name+".yaml", small)
	if err != nil {
		t.Fatal(err)
	}
	s.Workloads = s.Workloads[:1]
	f, err := lab.Tune(t.Context(), s, small, lab.Options{Dir: filepath.Join(t.TempDir(), "out"), Predictor: replay.Predictor{}, Words: finding.Worded})
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.Study(f, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := doc.Text(&b, d); err != nil {
		t.Fatal(err)
	}
	return f, b.String()
}
