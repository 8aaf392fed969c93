package outcome

import (
	"testing"

	"perflab/internal/result"
)

// TestAgain: what is void for no fault of the engine's is measured again, and so is a run in
// which the engine stood still; a remark is no reason.
func TestAgain(t *testing.T) {
	for name, test := range map[string]struct {
		checks []result.Check
		want   string
	}{
		"sound":        {[]result.Check{{Name: "tokens", Status: result.Sound, Text: "all"}}, ""},
		"void":         {[]result.Check{{Name: "clock", Status: result.Voided, Text: "too coarse"}}, "void, measured again: too coarse"},
		"stood still":  {[]result.Check{{Name: "pauses", Status: result.Noted, Text: "no answer got a token"}}, "the engine stood still, measured again: no answer got a token"},
		"long prompts": {[]result.Check{{Name: "pauses", Status: result.Remark, Text: "no answer got a token"}}, ""},
		"noted":        {[]result.Check{{Name: "throttled", Status: result.Noted, Text: "hot"}}, ""},
	} {
		var s result.Summary
		for _, c := range test.checks {
			s.Verdict.Add(c)
		}
		if got := Again(s); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	var refused result.Summary
	refused.Verdict.Add(result.Check{Name: result.CheckFailures, Status: result.Voided, Text: "all failed"})
	refused.Verdict.Add(result.Check{Name: "no_calls", Status: result.Voided, Text: "no call succeeded"})
	if refused.Failures = map[result.Class]int{result.HTTPStatus: 9}; Again(refused) != "" {
		t.Errorf("what the engine refused is measured again: %s", Again(refused))
	}
}
