package finding

import (
	"strings"
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/tune"
)

// TestReference: the study says whose its recommendation is, what was published of both, and
// where the order is another.
func TestReference(t *testing.T) {
	study := func(better string, r outcome.Reference) outcome.Study {
		r.Label = "theirs"
		return outcome.Study{Predicted: true, Objective: outcome.Objective{Metric: "tput", Better: better}, Recommended: &outcome.Pick{}, Reference: &r}
	}
	for _, tt := range []struct {
		better string
		r      outcome.Reference
		want   string
	}{
		{"higher", outcome.Reference{Trial: 2, Same: true, PublishedGain: new(0.592), Gain: new(0.403)},
			"what is recommended is the published recommendation, theirs; it was published with +59.2 % over its baseline and is predicted here with +40.3 %"},
		{"lower", outcome.Reference{Trial: 2, Same: true, PublishedGain: new(0.62), Gain: new(0.8)},
			"what is recommended is the published recommendation, theirs; it was published as 1.62x better than its baseline and is predicted here as 1.80x better"},
		{"higher", outcome.Reference{Trial: 2, Over: &tune.Span{Value: 0.133, Low: -0.191, High: 0.506}, Recommended: new(4000.0)},
			"what is recommended is another than the published recommendation, theirs: predicted to be +13.3 % on tput over it (-19.1 % to +50.6 % in nine of ten cases), so it may be no better; of what is recommended 4000 was published"},
		{"lower", outcome.Reference{Trial: 2, Over: &tune.Span{Value: -0.2}, Published: new(3280.0)},
			"what is recommended is another than the published recommendation, theirs: predicted to be 1.25x worse on tput; it was published with 3280; of what is recommended no figure was published"},
		{"higher", outcome.Reference{Refused: "no room"}, "the published recommendation, theirs cannot run here: no room"},
		{"higher", outcome.Reference{}, "the published recommendation, theirs was not tried"},
	} {
		if got := Reference(study(tt.better, tt.r)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	if got := Reference(outcome.Study{}); got != "" {
		t.Error(got)
	}
	got := Otherwise(study("higher", outcome.Reference{Pairs: 17, Alike: 3, Otherwise: []outcome.Otherwise{{Better: "a", Than: "b", Published: 0.21, Here: -0.125}}}))
	if want := "of 17 pairs of configurations whose published figures differ by 2 % and more, 13 come in that order here, 3 are alike, 1 the other way round: a was published to be 1.21x better than b, and is 1.14x worse here"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestPredicted: no verdict of a search by prediction speaks of launches that were made.
func TestPredicted(t *testing.T) {
	w := wording{metric: "tput", higher: true}
	pair := &tune.Pair{Name: "x", Against: "the baseline", Value: 200, Other: 100}
	for _, tt := range []struct {
		f    tune.Finding
		want string
	}{
		{tune.Finding{Kind: tune.PredictedBetter, Pair: pair, N: 90, Comparison: &tune.Comparison{Ratio: tune.Span{Value: 2, Low: 0.9, High: 2.5}}},
			"x is predicted to be +100.0 % on tput over the baseline (200 against 100), the best of 90 configurations; by the errors of such predictions the gain is -10.0 % to +150.0 % in nine of ten cases, so there may be none; nothing was launched, and launches of both would confirm it"},
		{tune.Finding{Kind: tune.PredictedBetter, Pair: pair, N: 90}, "how far such predictions are off is not known; nothing was launched"},
		{tune.Finding{Kind: tune.PredictedBaseline, N: 5}, "no gain is predicted: of 5 configurations none is predicted to be better than the baseline by what matters; nothing was launched"},
		{tune.Finding{Kind: tune.PredictedAlone, Name: "x", Value: new(7.0), N: 2, Cause: &tune.Finding{Kind: tune.TrialEnded, Status: "refused", Reason: "no room"}}, "x is predicted at 7 of tput, the best of 2 configurations; the baseline ended refused: no room, so no gain can be given"},
		{tune.Finding{Kind: tune.PredictedNothing, Against: "the baseline", N: 2, Cause: &tune.Finding{Kind: tune.NoFigure, Workload: "a"}}, "nothing is recommended: of 2 configurations none has a predicted figure that counts"},
		{tune.Finding{Kind: tune.PredictedLeads, Name: "x", After: new(3)}, "not finished after 3 trials: x leads by prediction"},
	} {
		if got := w.verdict(tt.f, nil); !strings.HasPrefix(got, tt.want) && !strings.Contains(got, tt.want) {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
