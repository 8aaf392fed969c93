package measure

import (
	"strings"
	"testing"

	"perflab/internal/cli/console"
	"perflab/internal/lab"
)

// TestPreviewAlone: a field of one is said to be no race.
func TestPreviewAlone(t *testing.T) {
	const alone = "There is nothing to race"
	for n, want := range []bool{true, true, false} {
		var b strings.Builder
		if err := writePreview(&b, lab.Preview{Candidates: make([]lab.PreviewCandidate, n)}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), alone); got != want {
			t.Errorf("%d arms: %s", n, b.String())
		}
	}
}

// TestPreviewUnpredicted: where nothing was predicted, no prediction is announced.
func TestPreviewUnpredicted(t *testing.T) {
	for _, predicted := range []*float64{nil, new(1.5)} {
		var b strings.Builder
		if err := writePreview(&b, lab.Preview{Candidates: []lab.PreviewCandidate{{Label: "a"}, {Label: "b", Predicted: predicted}}}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "SIMULATED") != (predicted != nil) || strings.Contains(b.String(), "Nothing is predicted") != (predicted == nil) {
			t.Errorf("%s", b.String())
		}
	}
}

// TestRankedIsSaid: where no terminal shows the live line, the ranking of the
// field still leaves one.
func TestRankedIsSaid(t *testing.T) {
	var b strings.Builder
	live := console.StartLive(console.Env{Stderr: &b}, func() string { return "" }, nil)
	defer live.End()
	v := &tuneView{live: live}
	v.watch(lab.Status{Trial: 1, Phase: lab.PhaseRanking, Ranked: 40})
	v.watch(lab.Status{Trial: 2, Phase: "preparing"})
	v.watch(lab.Status{Trial: 2, Phase: lab.PhaseRanking, Ranked: 30})
	v.watch(lab.Status{Trial: 3, Phase: "preparing"})
	if got := b.String(); got != "ranked configurations by 40 predictions (SIMULATED)\n" {
		t.Errorf("%q", got)
	}
}

// TestPreviewShorter: what a configuration cuts of the context stands beside its name.
func TestPreviewShorter(t *testing.T) {
	var b strings.Builder
	p := lab.Preview{Candidates: []lab.PreviewCandidate{{Label: "a", Prior: "the study", Shorter: "serves requests of up to 4096 tokens, the baseline of up to 8192"}}}
	if err := writePreview(&b, p); err != nil || !strings.Contains(b.String(), "(the study; serves requests of up to 4096 tokens, the baseline of up to 8192)") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
