package lab

import (
	"slices"
	"strings"
	"testing"

	"perflab/internal/study"
)

// TestPreviewNames: what the study names has the study's label, with what it is made of beside it,
// and a budget without a launch for all of it is said with one that has.
func TestPreviewNames(t *testing.T) {
	text := strings.NewReplacer("label: base", "label: vLLM as it comes", "{label: TP3, set: {tp: 3}}", "{label: TP2, set: {tp: 2}}, {label: other, engine: sglang}",
		"kind: predicted", "kind: simulated", "trials: 14", "trials: 6").Replace(fewArms)
	preview := func(text string) Preview {
		s, err := study.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, ok, err := Rank(t.Context(), s, paced{}, nil)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return p
	}
	p := preview(text)
	for label, remark := range map[string]string{
		"vLLM as it comes": "(the baseline: vLLM, tp 1 x 2 replicas)", "FP8": "(the study: vLLM, FP8, tp 1 x 2 replicas)",
		"TP2": "(the study: vLLM, tp 2)", "other": "(the study: SGLang, tp 1 x 2 replicas)",
	} {
		i := slices.IndexFunc(p.Candidates, func(c PreviewCandidate) bool { return c.Label == label })
		if i < 0 || p.Candidates[i].Remark() != remark {
			t.Errorf("no candidate %q with %q in %+v", label, remark, p.Candidates)
		}
	}
	want := "The study names 3 configurations beside the baseline, and the budget of 6 launches leaves 1 launch for them: raise budget.trials to 8, or name fewer."
	if !slices.Equal(p.Doubts, []string{want}) {
		t.Errorf("it is said %q, want %q", p.Doubts, want)
	}
	if p := preview(strings.Replace(text, "trials: 6", "trials: 8", 1)); len(p.Doubts) > 0 {
		t.Errorf("of a budget that is enough it is said %q", p.Doubts)
	}
}
