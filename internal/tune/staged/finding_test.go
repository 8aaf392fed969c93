package staged

import (
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/tune"
)

// sentences are findings by the sentence that package report makes of them: a test
// there holds both together.
var sentences = sync.OnceValue(func() map[string]*tune.Finding {
	out := map[string]*tune.Finding{}
	b, err := os.ReadFile("testdata/findings.json")
	if err != nil {
		panic(err)
	}
	var rows []struct {
		Sentence string
		Finding  *tune.Finding
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		panic(err)
	}
	for _, r := range rows {
		out[r.Sentence] = r.Finding
	}
	return out
})

// sentence is the finding of which report makes a sentence.
func sentence(text string) *tune.Finding {
	if f := sentences()[text]; f != nil {
		return f
	}
	return &tune.Finding{Reason: "testdata/findings.json has no finding for: " + text}
}

// says reports a finding that is not the one of a sentence.
func says(t *testing.T, got tune.Finding, want string) {
	t.Helper()
	if diff := cmp.Diff(*sentence(want), got); diff != "" {
		t.Errorf("want %q (-want +got):\n%s", want, diff)
	}
}
