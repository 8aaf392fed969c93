package source

import (
	"strings"
	"testing"

	"perflab/internal/interop"
	"perflab/internal/result"
)

// TestRunNames: a name says what the run is, without the number of its heading
// and with the figures in it, and keeps the end of what is long.
func TestRunNames(t *testing.T) {
	for section, want := range map[string]string{
		"2. Quantization": "003-quantization", "3.1 Size 256": "003-size-256", "4 nodes (tp)": "003-4-nodes-tp", "6k": "003-6k", "8K tokens": "003-8k-tokens",
		"":                                "003-acme-tiny-7b",
		strings.Repeat("long ", 20) + "a": "003-long-long-long-long-long-long-long-long-long-long-long-long-long-a",
	} {
		r := interop.Run{Header: result.Header{Model: "acme/tiny-7b", Imported: &result.Imported{}}}
		if section != "" {
			r.Header.Imported.Section = []string{"Above", section}
		}
		if got := runName(3, &r); got != want || len(got) > 80 {
			t.Errorf("%q is named %s, want %s", section, got, want)
		}
	}
}
