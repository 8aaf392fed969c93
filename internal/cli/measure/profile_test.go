package measure

import (
	"slices"
	"strings"
	"testing"
)

// A name behind --profile belongs to it, and nothing else does.
func TestNamedProfile(t *testing.T) {
	for in, want := range map[string]string{
		"bench --profile agentx --model m":       "bench --profile=agentx --model m",
		"bench --profile --model m":              "bench --profile --model m",
		"bench --model m --profile":              "bench --model m --profile",
		"bench --profile=agentx":                 "bench --profile=agentx",
		"bench serve --profile mlperf-endpoints": "bench serve --profile=mlperf-endpoints",
		"tune --profile x":                       "tune --profile x",
		"":                                       "",
	} {
		if got := NamedProfile(strings.Fields(in)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
