package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTogether(t *testing.T) {
	for name, tt := range map[string]struct {
		there []Able
		want  Together
	}{
		"nobody":                 {nil, Together{}},
		"alike":                  {[]Able{{Name: "a", Connections: 28_000, MaxEvents: 100_000}, {Name: "b", Connections: 28_000, MaxEvents: 100_000}}, Together{Agents: 2, Connections: 56_000, Holding: 2, Events: 140_000, Taking: 2}},
		"the weakest decides":    {[]Able{{Name: "a", Connections: 30_000, MaxEvents: 100_000}, {Name: "b", Connections: 20_000, MaxEvents: 60_000}}, Together{Agents: 2, Connections: 40_000, Holding: 2, Events: 84_000, Taking: 2}},
		"far weaker is left out": {[]Able{{Name: "a", MaxEvents: 1000}, {Name: "b", MaxEvents: 100_000}, {Name: "c", MaxEvents: 100_000}}, Together{Agents: 3, Events: 140_000, Taking: 2}},
		"not checked":            {[]Able{{Name: "a", Connections: 100}, {Name: "b", Connections: 100, MaxEvents: 1000}}, Together{Agents: 2, Connections: 200, Holding: 2, Events: 700, Taking: 1, Unchecked: []string{"a"}}},
	} {
		if d := cmp.Diff(tt.want, TogetherOf(tt.there)); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}
