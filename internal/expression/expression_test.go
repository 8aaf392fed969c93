package expression

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]Bound{
		"p99_ttft <= 500":          {"p99_ttft", "<=", "500"},
		" success_rate>99% ":       {"success_rate", ">=", "99%"},
		"p99 < baseline + 20 ms":   {"p99", "<=", "baseline + 20 ms"},
		"< 5":                      {"", "<=", "5"},
		"output_throughput >= = 3": {"output_throughput", ">=", "= 3"},
	} {
		if got, ok := Parse(text); !ok || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, ok, want)
		}
	}
	if e, ok := Parse("p99_ttft = 5"); ok {
		t.Errorf("no sign: %+v", e)
	}
}

func TestRatio(t *testing.T) {
	for text, want := range map[string]float64{"1.05x": 1.05, "2 x": 2, "+5%": 1.05, "-10%": 0.9, "+400 %": 5} {
		if got, ok := Ratio(text); !ok || got < want*(1-1e-12) || got > want*(1+1e-12) {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "x", "5%", "1.05", "0x", "-1x", "-100%", "NaNx", "Infx", "+Inf%", "1e9x", "+%"} {
		if got, ok := Ratio(text); ok {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
