package finding

import (
	"testing"

	"perflab/internal/outcome"
)

func TestEarlier(t *testing.T) {
	half := outcome.Earlier{Name: "a100", Path: "../a100", Likeness: 0.61, Configurations: 12, Differences: []string{"4 devices against 8", "another load: 512/64 tokens against 1024/128"}, Unused: []string{"Of 14 results 2 are not used: no configuration is known"}}
	none := outcome.Earlier{Name: "b", Path: "b", Simulated: true, Differences: []string{"other hardware: CPU of the host against NVIDIA H100 SXM"}}
	for _, c := range []struct {
		of   outcome.Earlier
		want string
	}{
		{half, "Earlier study a100 (../a100): 12 configurations, likeness 0.61; 4 devices against 8; another load: 512/64 tokens against 1024/128. Of 14 results 2 are not used: no configuration is known."},
		{none, "Earlier study b, SIMULATED: nothing is learned from it; other hardware: CPU of the host against NVIDIA H100 SXM."},
	} {
		if got := Earlier(c.of); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	const still = " directed the search. None of their figures is in a result: only launches of this study count."
	for _, c := range []struct {
		of   []outcome.Earlier
		want string
	}{
		{nil, ""},
		{[]outcome.Earlier{none}, "No earlier study directed the search: nothing could be learned from those that are named."},
		{[]outcome.Earlier{half, none}, "12 configurations of an earlier study" + still},
		{[]outcome.Earlier{half, half}, "24 configurations of 2 earlier studies" + still},
	} {
		if got := Learned(c.of); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}
