package tune

import (
	"fmt"
	"math"
	"strconv"
	"testing"
)

// forecastSpace is a small space: engines a and b with a number n each, a quantisation, and a
// flag that does nothing.
type forecastSpace struct{ figure func(Config) float64 }

func (forecastSpace) Refuse(c Config) string {
	if c["engine"] == "b" && c["n"] == "8" {
		return "b runs no 8"
	}
	return ""
}
func (forecastSpace) Numerics(c Config) string { return c["model"] }
func (forecastSpace) Settings(c Config) int    { return len(c) - 1 }
func (forecastSpace) Steps(c Config) []Change {
	var out []Change
	n, _ := strconv.Atoi(c["n"])
	for _, k := range []int{n / 2, n * 2} {
		if k >= 1 && k <= 64 && n > 0 {
			out = append(out, Change{Label: fmt.Sprint("n ", k), Set: Config{"n": strconv.Itoa(k)}})
		}
	}
	if c["flag"] == "" {
		out = append(out, Change{Label: "flag on", Set: Config{"flag": "on"}})
	}
	return out
}
func (forecastSpace) Removals(c Config) []Change {
	var out []Change
	if c["flag"] != "" {
		out = append(out, Change{Label: "--flag", Set: Config{"flag": ""}})
	}
	return out
}

// Predict has the figure, and a latency that grows with n.
func (s forecastSpace) Predict(c Config, _ string) (map[string]float64, bool) {
	v := s.figure(c)
	n, _ := strconv.ParseFloat(c["n"], 64)
	return map[string]float64{"tput": v, "latency": n}, v > 0
}

// Doubt is off by a tenth.
func (s forecastSpace) Doubt(of, to Config, _ string) (Span, []string, bool) {
	x := s.figure(of) / s.figure(to)
	return Span{x, x / 1.1, x * 1.1}, []string{"this was not seen"}, true
}

// ran is a forecast to its end, with the trials that it made.
func ran(t *testing.T, s forecastSpace, o Objective, candidates ...Candidate) (Result, []Proposal) {
	t.Helper()
	base := Config{"engine": "a", "n": "2"}
	all := append([]Candidate{{Label: "a", Config: base}}, candidates...)
	f, err := NewForecast(SearchSpace{Candidates: all, Rules: s, Neighbourhood: s}, s, Space{Baseline: base, Primary: "w", Others: []string{"x"}}, o)
	if err != nil {
		t.Fatal(err)
	}
	var trials []Proposal
	for {
		p, ok := f.Ask()
		if !ok {
			return f.Result(), trials
		}
		if before := f.Result(); before.Verdict.After == nil {
			t.Fatalf("it is not said that the study is not finished: %+v", before.Verdict)
		}
		trials = append(trials, p)
		figures, ok := s.Predict(p.Config, "w")
		end := Observation{Trial: p.Trial, Status: Measured, Figures: map[string]map[string]float64{"w": figures, "x": figures}}
		if !ok {
			end = Observation{Trial: p.Trial, Status: Refused, Reason: "it cannot"}
		}
		f.Tell(end)
	}
}

// ladder is best for engine b at n 32, where a flag brings a thousandth.
func ladder(c Config) float64 {
	n, _ := strconv.ParseFloat(c["n"], 64)
	v := 100 - math.Abs(math.Log2(n)-5)*10
	if c["engine"] == "b" {
		v *= 1.2
	}
	if c["flag"] != "" {
		v *= 1.001
	}
	return v
}

var tput = Objective{Metric: "tput", Higher: true, MinGain: 0.02}

// TestForecast: the search climbs past a refused step from what the study names, drops a
// setting that brings nothing, repeats nothing, and states the predictor's error.
func TestForecast(t *testing.T) {
	r, trials := ran(t, forecastSpace{ladder}, tput,
		Candidate{Label: "b", Config: Config{"engine": "b", "n": "16", "flag": "on"}, Named: true},
		Candidate{Label: "b of 8", Config: Config{"engine": "b", "n": "8"}, Named: true, Refused: "b runs no 8"})
	won := trials[r.Winner-1]
	if won.Config["engine"] != "b" || won.Config["n"] != "32" || won.Config["flag"] != "" || won.Stage != BestStage {
		t.Errorf("it ends on %+v", won)
	}
	seen := map[string]bool{}
	for _, p := range trials {
		if k := p.Config.key(); seen[k] || p.Pass != 0 || len(p.Workloads) != 2 {
			t.Errorf("trial %+v", p)
		} else {
			seen[k] = true
		}
	}
	if trials[0].Stage != BaselineStage || trials[1].Stage != NamedStage || trials[1].Label != "b" {
		t.Errorf("it begins with %+v", trials[:2])
	}
	v := r.Verdict
	if v.Kind != PredictedBetter || v.Comparison == nil || r.Confirmed || r.Evidence != nil {
		t.Fatalf("verdict %+v", v)
	}
	gain := 120.0/60 - 1
	if r.Gain == nil || math.Abs(*r.Gain-gain) > 1e-9 || math.Abs(r.Interval.Low-((1+gain)/1.1-1)) > 1e-9 || math.Abs(r.Interval.High-((1+gain)*1.1-1)) > 1e-9 {
		t.Errorf("gain %v in %+v", *r.Gain, r.Interval)
	}
	e := r.Forecast
	if len(e.Named) != 2 || e.Named[0].Total == nil || e.Named[1].Trial != 0 || e.Named[1].Finding == nil || e.Refused == 0 || e.Predicted < 6 || e.Cut || len(e.Outside) != 1 {
		t.Errorf("evidence %+v", e)
	}
}

// TestForecastKeepsWhatIsNamed: where nothing is better than a configuration that the study
// names, it is recommended as it stands, with a setting that brings little.
func TestForecastKeepsWhatIsNamed(t *testing.T) {
	r, trials := ran(t, forecastSpace{ladder}, tput, Candidate{Label: "ours", Config: Config{"engine": "b", "n": "32", "flag": "on"}, Named: true})
	if won := trials[r.Winner-1]; won.Label != "ours" || won.Stage != NamedStage {
		t.Errorf("it ends on %+v", won)
	}
}

// TestForecastOfNothing: the baseline stays where nothing is predicted to be better by what
// matters, and where the best misses a bound.
func TestForecastOfNothing(t *testing.T) {
	flat := forecastSpace{func(c Config) float64 { return 100 + float64(len(c["flag"]))/2 }}
	r, _ := ran(t, flat, tput, Candidate{Label: "b", Config: Config{"engine": "b", "n": "2"}})
	if r.Verdict.Kind != PredictedBaseline || r.Winner != r.Baseline || r.Gain == nil || *r.Gain != 0 || r.Interval != nil {
		t.Errorf("%+v: %+v", r, r.Verdict)
	}
	bounded := tput
	bounded.SLOs = []Bound{{Metric: "latency", Op: "<=", Limit: 4}}
	r, trials := ran(t, forecastSpace{ladder}, bounded, Candidate{Label: "b", Config: Config{"engine": "b", "n": "16"}})
	if won := trials[r.Winner-1]; won.Config["n"] != "4" || len(r.Misses) > 0 {
		t.Errorf("it ends on %+v, which misses %v", won, r.Misses)
	}
	none := forecastSpace{func(c Config) float64 { return 0 }}
	if r, _ := ran(t, none, tput); r.Verdict.Kind != PredictedNothing || r.Winner != 0 || r.Verdict.Cause == nil {
		t.Errorf("of nothing: %+v", r.Verdict)
	}
	alone := forecastSpace{func(c Config) float64 { return map[string]float64{"b": 7}[c["engine"]] }}
	if r, _ := ran(t, alone, tput, Candidate{Label: "b", Config: Config{"engine": "b", "n": "2"}}); r.Verdict.Kind != PredictedAlone || r.Gain != nil || r.Winner == 0 {
		t.Errorf("without a baseline: %+v", r.Verdict)
	}
}
