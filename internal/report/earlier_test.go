package report

import (
	"strings"
	"testing"

	"perflab/internal/outcome"
)

// TestEarlierStudies: every form says what directed the search, and that it is in no result; the
// documents say how alike each was.
func TestEarlierStudies(t *testing.T) {
	s := raceStudy()
	s.Earlier = []outcome.Earlier{
		{Name: "a100", Path: "../a100", Simulated: true, Likeness: 0.61, Configurations: 12, Differences: []string{"4 devices against 8"}, Unused: []string{"Of 14 results 2 are not used: no configuration is known"}},
		{Name: "cpu", Path: "../cpu", Differences: []string{"other hardware: CPU of the host against NVIDIA H100 SXM"}},
	}
	for form, text := range render(t, s) {
		text = plain(text)
		if want := "12 configurations of an earlier study directed the search. None of their figures is in a result"; !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", form, want)
		}
		for _, want := range []string{"Earlier studies", "a100 (SIMULATED)", "0.61", "4 devices against 8", "a100: Of 14 results 2 are not used: no configuration is known.", "other hardware: CPU of the host"} {
			if strings.Contains(text, want) == (form == "text") {
				t.Errorf("%s and %q: it belongs into documents", form, want)
			}
		}
	}
	s.Earlier = nil
	for form, text := range render(t, s) {
		if strings.Contains(text, "arlier stud") {
			t.Errorf("%s speaks of earlier studies where there are none", form)
		}
	}
}
