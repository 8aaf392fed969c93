package figure

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// figures has one of each kind, with numbers missing wherever one may be.
func figures() []Figure {
	return []Figure{
		{Name: "ttft", Title: "TTFT", CDF: &CDF{
			X:     Axis{Label: "TTFT", Unit: "ms", Log: true},
			Sides: []Side{{Name: "a", Values: []Number{1, 2, 2, 9}}, {Name: "b", Values: []Number{3}, Shares: []Number{1}, Calls: 1}},
			SLOs:  []Mark{{At: 5, Label: "p99 <= 5 ms"}},
		}},
		{Name: "rate", Title: "Tokens", Simulated: true, Time: &Time{
			Axes:   []Axis{{Label: "Tokens", Unit: "tok/s"}, {Label: "Requests"}},
			Series: []Line{{Name: "out", Seconds: []Number{0, 1, 2}, Values: []Number{0, Missing, 3}}, {Name: "running", Axis: 1, Step: true}},
			Spans:  []Span{{From: 0, To: 2, Label: "steady"}},
			Limits: []Limit{{Axis: 1, At: 3, Label: "limit"}},
		}},
		{Name: "p99-ttft", Title: "P99 TTFT", History: &History{
			Y:       Axis{Label: "P99 TTFT", Unit: "ms"},
			Better:  "lower",
			Points:  []Build{{At: day, Value: 10, Low: 9, High: 11, Launches: 3}, {At: day.Add(time.Hour), Value: Missing, Low: Missing, High: Missing}},
			Noise:   []Band{{From: day, To: day.Add(time.Hour), Low: 9, Middle: 10, High: 11}},
			Changes: []Change{{At: day, Kind: Gain, Label: "-8 %"}},
			Notes:   []Note{{At: day, Text: "driver"}},
		}},
		{Name: "front", Title: "Front", Pareto: &Pareto{
			Measures: []Measure{{Name: "tput", Label: "Throughput per GPU", Unit: "tok/s", Better: "higher"}, {Name: "ttft_ms", Label: "TTFT", Unit: "ms", Better: "lower", ByStat: true}},
			Stats:    []string{"p50", "p99"}, X: "ttft_ms", Y: "tput", Stat: "p99",
			Fronts: []Front{{Name: "a", Launches: []Launch{{Label: "1", Verdict: Void, Figures: map[string]Range{"tput": {1, Missing, 2}, "p99 ttft_ms": {Value: Missing}}}}}},
		}},
	}
}

func TestFiguresAreReadAsTheyWereWritten(t *testing.T) {
	equal := cmp.Comparer(func(a, b Number) bool { return a == b || a.Missing() && b.Missing() })
	for _, f := range figures() {
		text, err := f.JSON()
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		var again Figure
		if err := json.Unmarshal(text, &again); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if diff := cmp.Diff(f, again, equal); diff != "" {
			t.Errorf("%s (-written +read):\n%s", f.Name, diff)
		}
	}
}

func TestMissingIsNullAndNeverZero(t *testing.T) {
	for _, n := range []Number{Missing, Number(math.Inf(1)), Number(math.Inf(-1)), Known(nil)} {
		if b, err := json.Marshal(n); err != nil || string(b) != "null" {
			t.Errorf("%v is %s, %v", n, b, err)
		}
	}
	if b, err := json.Marshal([]Number{0, Known(new(1.5))}); err != nil || string(b) != "[0,1.5]" {
		t.Errorf("numbers are %s, %v", b, err)
	}
	if n := Numbers([]float64{1, math.NaN()}); n[0] != 1 || !n[1].Missing() {
		t.Errorf("numbers are %v", n)
	}
}

func TestHostileTextStaysInItsElement(t *testing.T) {
	f := figures()[0]
	f.CDF.Sides[0].Name = "</script><script>alert(1)</script>"
	text, err := f.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(text), "<>&") {
		t.Errorf("an element could end within %s", text)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(all []Figure) Figure
		says   string
	}{
		{"name", func(all []Figure) Figure { all[0].Name = "A b"; return all[0] }, `"A b" is not of lower case`},
		{"title", func(all []Figure) Figure { all[0].Title = ""; return all[0] }, "no title"},
		{"two kinds", func(all []Figure) Figure { all[0].Time = all[1].Time; return all[0] }, "2 kinds"},
		{"no kind", func(all []Figure) Figure { return Figure{Name: "x", Title: "x"} }, "0 kinds"},
		{"falling values", func(all []Figure) Figure { all[0].CDF.Sides[0].Values[3] = 0; return all[0] }, "side a do not ascend"},
		{"missing value", func(all []Figure) Figure { all[0].CDF.Sides[0].Values[3] = Missing; return all[0] }, "side a do not ascend"},
		{"shares above 1", func(all []Figure) Figure { all[0].CDF.Sides[1].Shares[0] = 1.5; return all[0] }, "from 0 to 1"},
		{"shares of others", func(all []Figure) Figure { all[0].CDF.Sides[1].Shares = []Number{0, 1}; return all[0] }, "1 values and 2 shares"},
		{"one value", func(all []Figure) Figure { all[0].CDF.Sides[1].Shares = nil; return all[0] }, "one value and no share"},
		{"third axis", func(all []Figure) Figure { all[1].Time.Axes = make([]Axis, 3); return all[1] }, "3 axes"},
		{"axis", func(all []Figure) Figure { all[1].Time.Series[0].Axis = 2; return all[1] }, "on axis 2"},
		{"limit", func(all []Figure) Figure { all[1].Time.Limits[0].Axis = -1; return all[1] }, "on axis -1"},
		{"lengths", func(all []Figure) Figure { all[1].Time.Series[0].Values = nil; return all[1] }, "3 moments and 0 values"},
		{"moments", func(all []Figure) Figure { all[1].Time.Series[0].Seconds[2] = 0; return all[1] }, "out do not ascend"},
		{"no moment", func(all []Figure) Figure { all[2].History.Points[0].At = time.Time{}; return all[2] }, "point 1 has no moment"},
		{"order", func(all []Figure) Figure { all[2].History.Points[1].At = day.Add(-1); return all[2] }, "point 2 is of before"},
		{"interval", func(all []Figure) Figure { all[2].History.Points[0].Low = 10.5; return all[2] }, "outside of its interval"},
		{"band", func(all []Figure) Figure { all[2].History.Noise[0].To = day.Add(-1); return all[2] }, "ends before it begins"},
		{"change", func(all []Figure) Figure { all[2].History.Changes[0].Kind = "up"; return all[2] }, `but "up"`},
		{"note", func(all []Figure) Figure { all[2].History.Notes[0].At = time.Time{}; return all[2] }, "has no moment"},
		{"better", func(all []Figure) Figure { all[3].Pareto.Measures[0].Better = ""; return all[3] }, "no front"},
		{"axis of no measure", func(all []Figure) Figure { all[3].Pareto.X = "e2e"; return all[3] }, `"e2e" of an axis`},
		{"percentile", func(all []Figure) Figure { all[3].Pareto.Stat = "p90"; return all[3] }, `"p90", which is not there`},
		{"no percentiles", func(all []Figure) Figure { all[3].Pareto.Stats = nil; return all[3] }, "none to choose from"},
		{"figure of no measure", func(all []Figure) Figure { all[3].Pareto.Fronts[0].Launches[0].Figures["x"] = Range{}; return all[3] }, `"x", which is of no measure`},
		{"range", func(all []Figure) Figure {
			all[3].Pareto.Fronts[0].Launches[0].Figures["tput"] = Range{1, 2, 3}
			return all[3]
		}, "outside of its interval"},
	}
	for _, tt := range tests {
		if _, err := tt.change(figures()).JSON(); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}
