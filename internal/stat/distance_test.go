package stat

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"dataset_name", "random_input_len", "turn_input_len", "num_prompts", "tp", "--max-num-seqs"}
	for name, want := range map[string]string{
		"dataset":        "dataset_name",     // its beginning
		"input_len":      "random_input_len", // the first that ends so
		"num_promts":     "num_prompts",
		"NUM_PROMPT":     "num_prompts",
		"turn_inptu_ln":  "turn_input_len", // few letters off
		"tpp":            "tp",
		"--max-num-seq":  "--max-num-seqs",
		"--num-seqs":     "--max-num-seqs",
		"price_per_hour": "",
		"":               "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := Nearest("a", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}
