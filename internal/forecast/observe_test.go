package forecast

import (
	"strings"
	"testing"

	"perflab/internal/calib"
	"perflab/internal/result"
)

// Runs whose load a replay cannot repeat, or whose figures mean nothing.
func TestUnfit(t *testing.T) {
	figures := func(name string, v float64) Measurement {
		return Measurement{Summary: result.Summary{Figures: map[string]float64{"total_input_tokens": 1000, name: v}}}
	}
	void := Measurement{}
	void.Summary.Verdict.Add(result.Check{Name: "clock", Status: result.Voided, Text: "the clock stood"})
	for _, c := range []struct {
		m    Measurement
		want string
	}{
		{figures("completed", 10), ""},
		{figures("total_cached_tokens", 5), ""},
		{figures("total_cached_tokens", 200), "20 % of its prompts came from the prefix cache"},
		{figures("failed", 3), "3 requests failed"},
		{void, "void: the clock stood"},
		{Measurement{Calls: []result.Call{{Session: 1}}}, "conversations"},
		{Measurement{Header: result.Header{Sharing: true}}, "share prefixes on purpose"},
		{Measurement{Header: result.Header{Simulated: true}}, "SIMULATED"},
		{Measurement{Summary: result.Summary{Partial: true}}, "stopped before its end"},
	} {
		err := c.m.unfit(false)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestSilent: a constant that no run speaks of stays where it is, or nearly.
func TestSilent(t *testing.T) {
	for _, c := range []struct {
		value, spread float64
		want          bool
	}{{1, 0.2, true}, {1.05, 0.2, true}, {1.05, 0.1, false}, {1.3, 0.2, false}} {
		if got := silent(&calib.Parameter{Prior: 1, PriorSpread: 0.2, Value: c.value, Spread: c.spread}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
