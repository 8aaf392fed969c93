package study

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzParse: whatever a study file holds, it is a study that can be told apart and
// searched, or an error with places.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good.yaml", "testdata/everything.yaml", "../../examples/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			f.Fatalf("%s: %v, %d files", pattern, err, len(paths))
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, "")
			f.Add(data, "staged")
		}
	}
	f.Add([]byte("a: &a [*a, *a]\nname: {x: 1}\n"), "")
	f.Add([]byte("workloads:\n  - {name: a, dataset_name: random, num_prompts: 1e99, random_range_ratio: .nan}\n"), "race")
	f.Fuzz(func(t *testing.T, data []byte, strategy string) {
		s, err := ParseAs("f.yaml", data, strategy)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a word")
			}
			return
		}
		if _, err := s.Fingerprint(); err != nil {
			t.Error(err)
		}
		_, _ = s.Percentiles(), s.Redacted(data)
	})
}

// FuzzReadRecipes: likewise of a file of recipes.
func FuzzReadRecipes(f *testing.F) {
	data, err := os.ReadFile("testdata/recipes.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("- {label: a, engine: vllm, model: m, set: {tp: 8}, source: s}\n- 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "recipes.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, problems := readRecipes(path)
		for _, p := range problems {
			if p == "" {
				t.Error("a problem without a word")
			}
		}
	})
}

// FuzzParseBound: a bound reads back as the same one.
func FuzzParseBound(f *testing.F) {
	for _, s := range []string{"p99_ttft_ms <= 500", "accuracy >= baseline - 2pt", "mean_tpot_ms <= baseline + 5%", "p99_ttft_ms <= 1.05x baseline", "agreement>=0.9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBound(s)
		if err != nil {
			return
		}
		_, _ = b.Against(nil)
		_, _ = b.Against(map[string]float64{b.Metric: 1})
	})
}
