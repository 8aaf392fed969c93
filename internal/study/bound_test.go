package study

import (
	"math"
	"strings"
	"testing"

	"perflab/internal/result"
	"perflab/internal/tune"
)

func TestParseBound(t *testing.T) {
	for text, want := range map[string]tune.Bound{
		"p99_ttft_ms <= 500":                    {Metric: "p99_ttft_ms", Op: "<=", Limit: 500},
		"p99_ttft < 0.5s":                       {Metric: "p99_ttft_ms", Op: "<=", Limit: 500},
		"mean_tpot_ms <= baseline":              {Metric: "mean_tpot_ms", Op: "<=", Limit: 1, Of: tune.Times},
		"mean_tpot_ms <= baseline + 5%":         {Metric: "mean_tpot_ms", Op: "<=", Limit: 1.05, Of: tune.Times},
		"mean_tpot_ms<baseline+150 %":           {Metric: "mean_tpot_ms", Op: "<=", Limit: 2.5, Of: tune.Times},
		"output_throughput >= baseline - 10%":   {Metric: "output_throughput", Op: ">=", Limit: 0.9, Of: tune.Times},
		"p99_ttft_ms <= baseline + 20 ms":       {Metric: "p99_ttft_ms", Op: "<=", Limit: 20, Of: tune.Plus},
		"p99_ttft_ms <= baseline - 0.02s":       {Metric: "p99_ttft_ms", Op: "<=", Limit: -20, Of: tune.Plus},
		"p99_ttft_ms <= baseline + 20":          {Metric: "p99_ttft_ms", Op: "<=", Limit: 20, Of: tune.Plus},
		"success_rate >= baseline - 1pt":        {Metric: "success_rate", Op: ">=", Limit: -0.01, Of: tune.Plus},
		"accuracy >= baseline - 2pt":            {Metric: "accuracy", Op: ">=", Limit: -0.02, Of: tune.Plus},
		"accuracy >= baseline":                  {Metric: "accuracy", Op: ">=", Of: tune.Plus},
		" accuracy  >=  baseline  -  0.5  pt  ": {Metric: "accuracy", Op: ">=", Limit: -0.005, Of: tune.Plus},
	} {
		got, err := ParseBound(text)
		if err != nil || got.Metric != want.Metric || got.Op != want.Op || got.Of != want.Of || math.Abs(got.Limit-want.Limit) > 1e-12 {
			t.Errorf("%q: %+v (%v), want %+v", text, got.Bound, err, want)
		}
	}
	for text, want := range map[string]string{
		"p99_ttft_ms":                      "has no bound",
		"p99_ttft_ms <= baseline * 2":      "baseline + 5%",
		"p99_ttft_ms <= 110% of baseline":  "baseline + 5%",
		"p99_ttft_ms <= baseline + x%":     "baseline + 5%",
		"p99_ttft_ms <= baseline - 100%":   "baseline + 5%",
		"p99_ttft_ms <= baseline + -5 ms":  "baseline + 5%",
		"p99_ttft_ms <= baseline + 5 tok":  "baseline + 5%",
		"p99_ttft_ms <= baseline + 5pt":    "points (pt) are of shares",
		"success_rate >= baseline - 101pt": "points (pt)",
		"nosuch <= baseline":               "nosuch",
		"accuracy >= 0.8":                  "write accuracy >= baseline - 2pt",
		"accuracy >= baseline + 2pt":       "write accuracy >= baseline - 2pt",
		"accuracy <= baseline - 2pt":       "write accuracy >= baseline - 2pt",
		"accuracy >= baseline - 2":         "write accuracy >= baseline - 2pt",
	} {
		if _, err := ParseBound(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A bound of the baseline's figure is judged against it, and never kept for lack
// of one.
func TestBoundJudge(t *testing.T) {
	figures := func(v float64) result.Summary {
		return result.Summary{Figures: map[string]float64{"p99_ttft_ms": v}}
	}
	b, err := ParseBound("p99_ttft_ms <= baseline + 5%")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		is, was result.Summary
		met     bool
	}{
		{figures(104), figures(100), true}, {figures(106), figures(100), false},
		{figures(104), result.Summary{}, false}, {result.Summary{}, figures(100), false},
	} {
		if met, why := b.Judge(tt.is, tt.was); met != tt.met || why == "" {
			t.Errorf("%v against %v: met %v: %s", tt.is.Figures, tt.was.Figures, met, why)
		}
	}
}

func TestBoundJudgeSays(t *testing.T) {
	b, err := ParseBound("p99_ttft_ms <= baseline + 10%")
	if err != nil {
		t.Fatal(err)
	}
	s := func(v float64) result.Summary {
		return result.Summary{Figures: map[string]float64{"p99_ttft_ms": v}}
	}
	if _, why := b.Judge(s(700.5), s(673.837342)); why != "p99_ttft_ms <= baseline + 10%: met, 700.5 ms (the limit is 741.22)" {
		t.Error(why)
	}
}

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "2%": 0.02, "0.5 %": 0.005, "0.02": 0.02, "0": 0} {
		if v, err := Share(text).Value(); err != nil || math.Abs(v-want) > 1e-12 {
			t.Errorf("%q: %v (%v)", text, v, err)
		}
	}
	for _, text := range []string{"two", "100%", "-1%", "NaN", "2"} {
		if v, err := Share(text).Value(); err == nil {
			t.Errorf("%q is taken for %v", text, v)
		}
	}
}
