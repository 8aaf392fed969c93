package prediction

import (
	"strings"
	"testing"

	"perflab/internal/forecast"
)

// TestOmissionsText: a reason once, with its places, of which the directory that all
// share is no news.
func TestOmissionsText(t *testing.T) {
	left := []forecast.Omission{{Place: "a/b/one", Why: "it is void"}, {Place: "a/b/two", Why: "it was predicted"}, {Place: "a/b/three", Why: "it is void"}}
	want := "  it is void\n    one, three\n  two: it was predicted\n"
	if got := OmissionsText(left); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := OmissionsText(left[:1]), "  a/b/one: it is void\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range 40 {
		left = append(left, forecast.Omission{Place: "a/b/run-with-a-name", Why: "it is void"})
	}
	for line := range strings.Lines(OmissionsText(left)) {
		if len(line) > maxWidth+1 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}
