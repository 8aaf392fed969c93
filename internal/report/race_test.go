package report

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/tune"
	"perflab/internal/tune/answers"
)

func TestGoldenRace(t *testing.T) {
	for name, s := range map[string]outcome.Study{"race": raceStudy(), "race-tie": tieStudy(), "race-small": smallStudy()} {
		o := Options{Repeat: "perflab tune " + s.Name + ".yaml"}
		golden(t, name+".md", func(w io.Writer) error { return doc.Markdown(w, must(Study(s, o))) })
		golden(t, name+".html", func(w io.Writer) error { return doc.HTML(w, must(Study(s, o))) })
		golden(t, name+".txt", func(w io.Writer) error { return doc.Text(w, must(Study(s, Options{}))) })
	}
}

// plain undoes the escapes of a page that hide what a reader sees.
func plain(doc string) string {
	return strings.NewReplacer("&#43;", "+", "&lt;", "<", `\[`, "[", `\]`, "]", "&#39;", "'").Replace(doc)
}

// TestRaceHonesty names what a race must say in every form.
func TestRaceHonesty(t *testing.T) {
	for _, k := range []struct {
		name string
		s    outcome.Study
		want []string
	}{
		{"race", raceStudy(), []string{"SIMULATED", "+40.8 %", "[+38.1, +43.6], 3 launches each, corrected for 2 comparisons", "WORSE than the baseline on Short Prompt (-5.8 % [-8.3, -3.2])", "out_of_memory", "--max-num-batched-tokens 8192",
			"24 launches", "20.4 GPU-hours", "differ by 0.8 % apart from their seeds (6 launches), so effects below 2.1 % cannot be shown", "Rejected: vLLM FP8 KV8 TP2 x4", "no difference shown", "16 refused by rules", "p99_ttft_ms <= 30000: met", "vllm serve Qwen/Qwen3-32B-FP8 -tp 2 --max-num-seqs 512"}},
		{"tie", tieStudy(), []string{"the baseline stays", "no difference shown", "[0.985, 1.028]"}},
		{"small", smallStudy(), []string{"1.03x faster", "no interval: the launches were not repeated", "budget too small", "Not confirmed", "the launches of one configuration were under different loads, or with different requests", "2.5 hours"}},
	} {
		for form, doc := range render(t, k.s) {
			doc = plain(doc)
			for _, want := range k.want {
				if !strings.Contains(doc, want) {
					t.Errorf("%s as %s lacks %q", k.name, form, want)
				}
			}
			for _, bad := range []string{"NaN", "+Inf", "greedy", "ncumbent", "<nil"} {
				if i := strings.Index(doc, bad); i >= 0 {
					t.Errorf("%s as %s says %q", k.name, form, doc[max(0, i-60):i+len(bad)])
				}
			}
		}
	}
	for form, doc := range render(t, smallStudy()) {
		doc = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(doc, "")
		if i := strings.Index(strings.ReplaceAll(doc, "no GPU was", ""), "GPU-h"); i >= 0 {
			t.Errorf("%s of a study on the CPU has GPU-hours: %s", form, doc[max(0, i-80):i+10])
		}
	}
}

// TestRaceClaims: nothing is said of what was not measured.
func TestRaceClaims(t *testing.T) {
	for _, k := range []struct {
		name       string
		change     func(*outcome.Study)
		want, lack []string
	}{
		{"no baseline", func(s *outcome.Study) { s.Recommended.Gain, s.Recommended.Interval, s.Baseline.Summary = nil, nil, nil }, []string{"the baseline has no figures"}, nil},
		{"no questions", func(s *outcome.Study) { s.Race.Accuracy = nil }, []string{"not measured, although model=Qwen/Qwen3-32B-FP8 may change the answers"}, nil},
		{"answers declared", func(s *outcome.Study) {
			s.Trials[14].Notes = []string{"SIMULATED: which answers are right is declared by the study and says nothing of a model."}
		}, []string{"SIMULATED: the answers are declared by the study", "Rejected: vLLM FP8 KV8 TP2 x4 (-5.2 pt)."}, nil},
		{"constraints missed", func(s *outcome.Study) {
			for i := range s.Race.Candidates {
				if a := &s.Race.Candidates[i]; a.State == "eliminated" {
					a.Reason = "surely misses a constraint: p99_ttft_ms"
				}
			}
		}, []string{"2 given up for missing a constraint"}, []string{"shown to be worse,"}},
		{"of the baseline's figure", func(s *outcome.Study) {
			s.Objective.SLOs = []string{"mean_tpot_ms <= baseline + 5%"}
			s.Recommended.SLOs = []outcome.Judged{{SLO: "mean_tpot_ms <= baseline + 5%", Why: "mean_tpot_ms <= baseline + 5%: missed, 41 ms"}}
		}, []string{"mean_tpot_ms <= baseline + 5%: MISSED, 41 ms"}, nil},
		{"equal launches", func(s *outcome.Study) { s.Race.Noise = tune.Noise{Between: 0.015} }, []string{"launches of one configuration did not differ (3 and 3 launches)"}, []string{"no configuration was launched twice"}},
		{"one launch each", func(s *outcome.Study) {
			s.Race.Noise, s.Race.Comparisons, s.Trials = tune.Noise{}, nil, s.Trials[:1]
		}, []string{"not known: no configuration was launched twice"}, nil},
		{"launched twice, measured once", func(s *outcome.Study) {
			s.Race.Noise, s.Race.Comparisons, s.Trials = tune.Noise{}, nil, s.Trials[:2]
			s.Trials[0].Config, s.Trials[1].Config = tune.Config{"engine": "vllm"}, tune.Config{"engine": "vllm"}
			s.Trials[1].Status, s.Trials[1].Log = tune.Failed, "trials/002/logs"
		}, []string{"not known: no configuration was measured twice"}, nil},
		{"stopped in its confirmation", func(s *outcome.Study) {
			s.Race.Noise, s.Race.Comparisons = tune.Noise{}, nil
			for _, i := range []int{0, 1} {
				s.Trials[i].Config, s.Trials[i].Status = tune.Config{"engine": "vllm", "model": "m"}, tune.Measured
			}
		}, []string{"not known: the launches of one configuration were under different loads, or with different requests"}, []string{"no configuration was launched twice"}},
		{"weighed", func(s *outcome.Study) {
			s.Objective.Weights, s.Race.HoldOuts = map[string]float64{"sharegpt": 2, "long": 1, "short": 1}, nil
		}, []string{"weighted over the workloads", "+40.8 %, Long Prompt +11.6 %, Short Prompt -2.0 % (WORSE); of one launch of each side"}, []string{"not measured: how far"}},
		{"over its loads", func(s *outcome.Study) { s.Curves = crossingCurve() }, []string{
			"WORSE than the baseline at 128 in flight; better at 1 and 8 in flight; no difference shown at 32 in flight.",
		}, []string{"Each side is of one launch"}},
		{"predicted", func(s *outcome.Study) { s.Predicted = true }, []string{"in the time of the model, none of it was spent"}, nil},
		{"no ablation", func(s *outcome.Study) {
			s.Race.Ablation = []tune.Ablation{{Setting: "--max-num-seqs 512", Reason: "not tried: the budget is used up"}}
		}, nil, []string{"was taken away once"}},
	} {
		s := raceStudy()
		k.change(&s)
		for form, doc := range render(t, s) {
			doc = plain(doc)
			for _, want := range k.want {
				if !strings.Contains(doc, want) {
					t.Errorf("%s as %s lacks %q", k.name, form, want)
				}
			}
			for _, bad := range k.lack {
				if strings.Contains(doc, bad) {
					t.Errorf("%s as %s says %q", k.name, form, bad)
				}
			}
		}
	}
}

// TestFrontNamesPointsOnce: configurations that measured alike have one name on
// the plot, that of the recommendation before others.
func TestFrontNamesPointsOnce(t *testing.T) {
	s := raceStudy()
	for i, name := range []string{"equal one", "equal two"} {
		s.Race.Frontier = append(s.Race.Frontier, s.Race.Frontier[0])
		p := &s.Race.Frontier[len(s.Race.Frontier)-1]
		p.Label, p.Pick, p.Trials = name, "", []int{30 + i}
	}
	for _, p := range Plots(s) {
		if p.Name == "front" && (strings.Contains(p.SVG, ">equal one</text>") || !strings.Contains(p.SVG, ">"+s.Race.Frontier[0].Label+"</text>")) {
			t.Errorf("names of equal points: %s", p.SVG)
		}
	}
}

// TestRaceTextFitsTheScreen: the essentials in about thirty lines, with what to do next.
func TestRaceTextFitsTheScreen(t *testing.T) {
	var b strings.Builder
	if err := doc.Text(&b, must(Study(raceStudy(), Options{}))); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n > 32 {
		t.Errorf("%d lines, want at most 32:\n%s", n, b.String())
	}
}

// TestRaceMissing renders races of which almost nothing is known: no form
// fails, none shows a zero for a figure that is not there.
func TestRaceMissing(t *testing.T) {
	bare := raceStudy()
	bare.Race = &outcome.Race{Candidates: []outcome.Candidate{{Label: "a", State: "new state"}}, Comparisons: []tune.Comparison{{Label: "a", Against: "b"}}, HoldOuts: []tune.Comparison{{Workload: "x"}},
		Frontier: []outcome.FrontPoint{{Label: "a"}, {Label: "b"}}, Phases: []outcome.Phase{{Name: "x"}}, Ablation: []tune.Ablation{{}}, Steps: []tune.Entry{{}}, Predictions: []tune.PredictionFit{{}}, Accuracy: []answers.Test{{}}}
	bare.Cases, bare.Recommended.Gain, bare.Recommended.Interval = nil, nil, nil
	none := raceStudy()
	none.Race, none.Baseline, none.Recommended, none.Trials = &outcome.Race{}, nil, nil, nil
	for name, s := range map[string]outcome.Study{"bare": bare, "none": none, "empty": {Race: &outcome.Race{}}} {
		for form, doc := range render(t, s) {
			for _, bad := range []string{"NaN", "+Inf", "-100.0 %", "[0.000"} {
				if i := strings.Index(plain(doc), bad); i >= 0 {
					t.Errorf("%s as %s shows %q", name, form, plain(doc)[max(0, i-80):i+20])
				}
			}
		}
	}
}

func TestRacePlots(t *testing.T) {
	plots := Plots(raceStudy())
	var names []string
	for _, p := range plots {
		names = append(names, p.Name)
		if err := xml.Unmarshal([]byte(p.SVG), new(struct{})); err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", p.Name, err)
		}
		if !strings.Contains(p.SVG, ">SIMULATED<") {
			t.Errorf("%s does not say SIMULATED", p.Name)
		}
		if strings.Contains(p.SVG, "NaN") || strings.Contains(p.SVG, "Inf") {
			t.Errorf("%s holds what is no number", p.Name)
		}
	}
	if got, want := strings.Join(names, " "), "comparisons hold-outs front candidates predictions"; got != want {
		t.Errorf("plots %s, want %s", got, want)
	}
	md := render(t, raceStudy())["md"]
	for _, n := range names {
		if !strings.Contains(md, "plots/"+n+".svg") {
			t.Errorf("the Markdown does not show %s", n)
		}
	}
}

// TestRaceTellsWhichLaunchesMetABound checks that a bound is told by all launches, and
// a hold-out without figures as what it is.
func TestRaceTellsWhichLaunchesMetABound(t *testing.T) {
	s := raceStudy()
	s.Race.Constraints = []tune.Constraint{
		{Bound: "p99_ttft_ms <= 30000", Mean: new(29800.0), Held: true, Met: 2, Launches: 3}, {Bound: "p99_tpot_ms <= 50", Launches: 3},
	}
	s.Race.HoldOuts = []tune.Comparison{{Label: "a", Against: "b", Workload: "long", P: 1, Family: 1, Verdict: tune.Unknown, Sentence: "cannot be compared: no round has a figure of both"}}
	var b strings.Builder
	if err := doc.Text(&b, must(Study(s, Options{}))); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"p99_ttft_ms <= 30000: met (29800 on average; 2 of 3 launches met it); p99_tpot_ms <= 50: MISSED (no figure; 0 of 3 launches met it)",
		"NOT COMPARED on", "(cannot be compared: no round has a figure of both)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the report", want)
		}
	}
}

// crossingCurve is a recommendation that is better at few requests in flight and worse at many.
func crossingCurve() []outcome.Curve {
	c := outcome.Curve{Workload: "chat", Title: "Chat", Axis: "concurrency"}
	for _, p := range []struct {
		load    float64
		gain    tune.Span
		verdict string
	}{
		{1, tune.Span{Value: 0.3, Low: 0.25, High: 0.35}, tune.Better},
		{8, tune.Span{Value: 0.2, Low: 0.15, High: 0.25}, tune.Better},
		{32, tune.Span{Value: 0.01, Low: -0.02, High: 0.04}, tune.NoDifference},
		{128, tune.Span{Value: -0.1, Low: -0.15, High: -0.05}, tune.Worse},
	} {
		side := func(by float64) outcome.CurveSide {
			return outcome.CurveSide{Trials: []int{16, 17, 18}, Figures: map[string]float64{"total_token_throughput": 1000 * p.load * by, "output_throughput": 100 * p.load * by, "p95_ttft_ms": 50 * p.load, "mean_tpot_ms": 20}}
		}
		c.Points = append(c.Points, outcome.CurvePoint{
			Load: p.load, Text: strconv.FormatFloat(p.load, 'f', -1, 64) + " in flight", Workload: "chat-" + strconv.FormatFloat(p.load, 'f', -1, 64),
			Baseline: side(1), Recommended: side(1 + p.gain.Value), Gain: &p.gain, Verdict: p.verdict,
		})
	}
	return []outcome.Curve{c}
}

// TestLoadCurves: a report has a table and plots of the loads, a row for each side, and a study without several loads
// has neither.
func TestLoadCurves(t *testing.T) {
	s := raceStudy()
	for form, doc := range render(t, s) {
		if strings.Contains(strings.ToLower(plain(doc)), "over the loads") {
			t.Errorf("%s has loads of a study without", form)
		}
	}
	s.Curves = crossingCurve()
	for form, doc := range render(t, s) {
		doc = plain(doc)
		if form == "text" {
			continue // it has the sentence alone; see TestRaceClaims
		}
		for _, want := range []string{"128 in flight", "P95 TTFT", "+30.0 %", "[+25.0, +35.0]", "115200", "a percentile is the mean of the launches' percentiles"} {
			if !strings.Contains(doc, want) {
				t.Errorf("%s lacks %q", form, want)
			}
		}
	}
	golden(t, "loads.md", func(w io.Writer) error { // gain and verdict before the figures, which a narrow window cuts off
		var b strings.Builder
		if err := doc.Markdown(&b, must(Study(s, Options{}))); err != nil {
			return err
		}
		_, section, _ := strings.Cut(b.String(), "## Over the Loads\n")
		section, _, _ = strings.Cut(section, "\n### ")
		_, err := io.WriteString(w, section)
		return err
	})
}
