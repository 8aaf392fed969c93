package finding

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/tune"
	"perflab/internal/tune/answers"
)

// TestFindings: every finding that package tune's tests expect has the sentence that
// stands beside it.
func TestFindings(t *testing.T) {
	b, err := os.ReadFile("../../tune/staged/testdata/findings.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Sentence, Of, Metric string
		Higher               bool
		Finding              *tune.Finding
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		w := wording{metric: r.Metric, higher: r.Higher}
		words := map[string]func(*tune.Finding) string{
			"note": w.note, "candidate": w.candidate, "setting": w.setting, "stop": w.stop,
			"verdict": func(f *tune.Finding) string { return w.verdict(*f, nil) },
		}
		if got := words[r.Of](r.Finding); got != r.Sentence {
			t.Errorf("%s of %s:\ngot  %s\nwant %s", r.Of, r.Finding.Kind, got, r.Sentence)
		}
	}
	if len(rows) < 50 {
		t.Errorf("%d findings", len(rows))
	}
}

// TestPairedTest words what the guard found.
func TestPairedTest(t *testing.T) {
	for _, tt := range []struct {
		both, lost, won, neither int
		guard                    answers.Guard
		want                     string
	}{
		{152, 12, 5, 31, answers.Guard{Margin: 0.02},
			"loses 3.5 points [at most 7.2] of 82.0 % on 200 questions, more than the 2 points allowed (standard error 2, McNemar p 0.14)"},
		{162, 2, 1, 35, answers.Guard{Margin: 0.02},
			"loses 0.5 points [at most 2.5] of 82.0 % on 200 questions, so that a loss of more than the 2 points allowed is not ruled out (standard error 0.9, McNemar p 1); about 610 questions would tell"},
		{164, 0, 0, 36, answers.Guard{Margin: 0.02},
			"loses 0 points [at most 1.3] of 82.0 % on 200 questions, within the 2 points allowed (standard error 0, McNemar p 1)"},
		{16, 0, 0, 4, answers.Guard{Margin: 0.02},
			"about 140 questions would tell"},
		{164, 0, 2, 34, answers.Guard{Margin: 0.02},
			"gains 1 points [or loses at most 0.3] over 82.0 %"},
		{100, 0, 60, 40, answers.Guard{Margin: 0.02},
			"gains 30 points [at least 25] over 50.0 % on 200 questions, within the 2 points allowed (standard error 3.2, McNemar p below 0.001)"},
		{492, 0, 0, 108, answers.Guard{Margin: 0.02, Questions: 200},
			"loses 0 points [at most 1.3] of 82.0 % on 200 questions asked 3 times,"},
		{492, 0, 0, 107, answers.Guard{Margin: 0.02, Questions: 200},
			"is not accepted: 599 answers are not those to 200 questions"},
	} {
		r := strings.Repeat
		base := r("1", tt.both+tt.lost) + r("0", tt.won+tt.neither)
		other := r("1", tt.both) + r("0", tt.lost) + r("1", tt.won) + r("0", tt.neither)
		d, _ := tt.guard.Judge("x", base, other)
		if got := pairedTest(d); !strings.Contains(got, tt.want) {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// TestWordedKeepsOlder: a file that has sentences and no findings is shown as it is.
func TestWordedKeepsOlder(t *testing.T) {
	old := outcome.Study{Verdict: "said before", Stages: []outcome.Stage{{Result: "goes on"}}, Race: &outcome.Race{
		Stopped: "nothing was left to try", Candidates: []outcome.Candidate{{Reason: "surely misses a constraint: x"}},
		Comparisons: []tune.Comparison{{Sentence: "better than it"}},
	}}
	s := Worded(old)
	if s.Verdict != old.Verdict || s.Stages[0].Result != "goes on" || s.Race.Stopped != old.Race.Stopped || s.Race.Comparisons[0].Sentence != "better than it" || !OutByBounds(s.Race.Candidates[0]) {
		t.Errorf("worded %+v %+v", s, s.Race)
	}
	s = Worded(outcome.Study{Conclusion: &tune.Finding{Kind: tune.BaselineLeads, After: new(3)}, Stages: []outcome.Stage{{
		Finding: &tune.Finding{Kind: tune.StageEmpty, Against: "A"}, Skipped: []tune.Entry{{Label: "B", Finding: &tune.Finding{Kind: tune.NoTimeLeft, Seconds: 60}}},
	}}})
	if s.Verdict != "not finished after 3 trials: nothing beats the baseline yet" || s.Stages[0].Result != "A stays: no other candidate was measured; B was not measured: the budget of 1m0s is used up, time for the confirmation is kept" {
		t.Errorf("worded %q, %q", s.Verdict, s.Stages[0].Result)
	}
}
