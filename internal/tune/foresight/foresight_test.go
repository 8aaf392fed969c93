package foresight

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/tune"
	"perflab/internal/tune/answers"
)

// world is a small space: engines a and b with a number n each, a quantisation, and a
// flag that does nothing.
type world struct{ figure func(tune.Config) float64 }

func (world) Refuse(c tune.Config) string {
	if c["engine"] == "b" && c["n"] == "8" {
		return "b runs no 8"
	}
	return ""
}
func (world) Numerics(c tune.Config) string { return c["model"] }
func (world) Settings(c tune.Config) int    { return len(c) - 1 }
func (world) Steps(c tune.Config) []tune.Change {
	var out []tune.Change
	n, _ := strconv.Atoi(c["n"])
	for _, k := range []int{n / 2, n * 2} {
		if k >= 1 && k <= 64 && n > 0 {
			out = append(out, tune.Change{Label: fmt.Sprint("n ", k), Set: tune.Config{"n": strconv.Itoa(k)}})
		}
	}
	if c["flag"] == "" {
		out = append(out, tune.Change{Label: "flag on", Set: tune.Config{"flag": "on"}})
	}
	return out
}
func (world) Removals(c tune.Config) []tune.Change {
	var out []tune.Change
	if c["flag"] != "" {
		out = append(out, tune.Change{Label: "--flag", Set: tune.Config{"flag": ""}})
	}
	return out
}

// Predict has the figure, and a latency that grows with n.
func (s world) Predict(c tune.Config, _ string) (map[string]float64, bool) {
	v := s.figure(c)
	n, _ := strconv.ParseFloat(c["n"], 64)
	return map[string]float64{"tput": v, "latency": n}, v > 0
}

// Doubt is off by a tenth.
func (s world) Doubt(of, to tune.Config, _ string) (tune.Span, []string, bool) {
	x := s.figure(of) / s.figure(to)
	return tune.Span{Value: x, Low: x / 1.1, High: x * 1.1}, []string{"this was not seen"}, true
}

// ran is a forecast to its end, with the trials that it made.
func ran(t *testing.T, s world, o tune.Objective, candidates ...tune.Candidate) (tune.Result, []tune.Proposal) {
	t.Helper()
	base := tune.Config{"engine": "a", "n": "2"}
	all := append([]tune.Candidate{{Label: "a", Config: base}}, candidates...)
	f, err := New(tune.SearchSpace{Candidates: all, Rules: s, Neighbourhood: s}, s, tune.Space{Baseline: base, Primary: "w", Others: []string{"x"}}, o)
	if err != nil {
		t.Fatal(err)
	}
	var trials []tune.Proposal
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
		end := tune.Observation{Trial: p.Trial, Status: tune.Measured, Figures: map[string]map[string]float64{"w": figures, "x": figures}}
		if p.Questions { // which a quantised model answers worse
			end.Answers = strings.Repeat("1", 200)
			if p.Config["model"] != "" {
				end.Answers = strings.Repeat("01", 100)
			}
		}
		if !ok {
			end = tune.Observation{Trial: p.Trial, Status: tune.Refused, Reason: "it cannot"}
		}
		f.Tell(end)
	}
}

// ladder is best for engine b at n 32, where a flag brings a thousandth.
func ladder(c tune.Config) float64 {
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

var tput = tune.Objective{Metric: "tput", Higher: true, MinGain: 0.02}

// TestSearch: the search climbs past a refused step from what the study names, drops a
// setting that brings nothing, repeats nothing, and states the predictor's error.
func TestSearch(t *testing.T) {
	r, trials := ran(t, world{ladder}, tput,
		tune.Candidate{Label: "b", Config: tune.Config{"engine": "b", "n": "16", "flag": "on"}, Named: true},
		tune.Candidate{Label: "b of 8", Config: tune.Config{"engine": "b", "n": "8"}, Named: true, Refused: "b runs no 8"})
	won := trials[r.Winner-1]
	if won.Config["engine"] != "b" || won.Config["n"] != "32" || won.Config["flag"] != "" || won.Stage != tune.BestStage {
		t.Errorf("it ends on %+v", won)
	}
	seen := map[string]bool{}
	for _, p := range trials {
		if k := fmt.Sprint(p.Config); seen[k] || p.Pass != 0 || len(p.Workloads) != 2 {
			t.Errorf("trial %+v", p)
		} else {
			seen[k] = true
		}
	}
	if trials[0].Stage != tune.BaselineStage || trials[1].Stage != tune.NamedStage || trials[1].Label != "b" {
		t.Errorf("it begins with %+v", trials[:2])
	}
	v := r.Verdict
	if v.Kind != tune.PredictedBetter || v.Comparison == nil || r.Confirmed || r.Evidence != nil {
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

// TestSearchKeepsWhatIsNamed: where nothing is better than a configuration that the study
// names, it is recommended as it stands, with a setting that brings little.
func TestSearchKeepsWhatIsNamed(t *testing.T) {
	r, trials := ran(t, world{ladder}, tput, tune.Candidate{Label: "ours", Config: tune.Config{"engine": "b", "n": "32", "flag": "on"}, Named: true})
	if won := trials[r.Winner-1]; won.Label != "ours" || won.Stage != tune.NamedStage {
		t.Errorf("it ends on %+v", won)
	}
}

// TestSearchOfNothing: the baseline stays where nothing is predicted to be better by what
// matters, and where the best misses a bound.
func TestSearchOfNothing(t *testing.T) {
	flat := world{func(c tune.Config) float64 { return 100 + float64(len(c["flag"]))/2 }}
	r, _ := ran(t, flat, tput, tune.Candidate{Label: "b", Config: tune.Config{"engine": "b", "n": "2"}})
	if r.Verdict.Kind != tune.PredictedBaseline || r.Winner != r.Baseline || r.Gain == nil || *r.Gain != 0 || r.Interval != nil {
		t.Errorf("%+v: %+v", r, r.Verdict)
	}
	bounded := tput
	bounded.SLOs = []tune.Bound{{Metric: "latency", Op: "<=", Limit: 4}}
	r, trials := ran(t, world{ladder}, bounded, tune.Candidate{Label: "b", Config: tune.Config{"engine": "b", "n": "16"}})
	if won := trials[r.Winner-1]; won.Config["n"] != "4" || len(r.Misses) > 0 {
		t.Errorf("it ends on %+v, which misses %v", won, r.Misses)
	}
	none := world{func(c tune.Config) float64 { return 0 }}
	if r, _ := ran(t, none, tput); r.Verdict.Kind != tune.PredictedNothing || r.Winner != 0 || r.Verdict.Cause == nil {
		t.Errorf("of nothing: %+v", r.Verdict)
	}
	alone := world{func(c tune.Config) float64 { return map[string]float64{"b": 7}[c["engine"]] }}
	if r, _ := ran(t, alone, tput, tune.Candidate{Label: "b", Config: tune.Config{"engine": "b", "n": "2"}}); r.Verdict.Kind != tune.PredictedAlone || r.Gain != nil || r.Winner == 0 {
		t.Errorf("without a baseline: %+v", r.Verdict)
	}
}

// TestSearchGuards: what does not answer as the baseline does is not recommended, however good it is predicted to
// be; what answers alike is asked nothing.
func TestSearchGuards(t *testing.T) {
	faster := world{func(c tune.Config) float64 {
		if c["model"] != "" {
			return 3 * ladder(c)
		}
		return ladder(c)
	}}
	guarded := tput
	guarded.Guard = &answers.Guard{Margin: 0.02}
	r, trials := ran(t, faster, guarded,
		tune.Candidate{Label: "int4", Config: tune.Config{"engine": "a", "n": "2", "model": "int4"}, Named: true},
		tune.Candidate{Label: "b", Config: tune.Config{"engine": "b", "n": "16"}})
	if won := trials[r.Winner-1]; won.Config["model"] != "" || won.Config["engine"] != "b" || won.Config["n"] != "32" {
		t.Errorf("it ends on %+v", won)
	}
	asked := slices.DeleteFunc(slices.Clone(trials), func(p tune.Proposal) bool { return !p.Questions })
	if len(asked) != 2 || asked[0].Stage != tune.BaselineStage || asked[1].Label != "int4" {
		t.Errorf("asked were %+v", asked)
	}
	if e := r.Forecast.Named[0]; e.Finding == nil || e.Finding.Kind != tune.OtherAnswers {
		t.Errorf("of what answers otherwise it is said: %+v", e)
	}
}
