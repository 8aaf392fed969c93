package report

import (
	"io"
	"slices"
	"strings"
	"testing"

	"perflab/internal/block"
	"perflab/internal/report/doc"
	"perflab/internal/result"
)

// guessed is a run whose answers tell of speculation, a third of whose requests gains nothing.
func guessed(t *testing.T, tell func(i int) *result.Speculation) (result.Header, result.Summary, []result.Call) {
	t.Helper()
	h, calls := burst(60)
	for i := range calls {
		calls[i].Speculation = tell(i)
	}
	s, err := result.Summarize(h, nil, result.Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	return h, s, calls
}

func written(t *testing.T, h result.Header, s result.Summary, calls []result.Call) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, write := range map[string]func(io.Writer, doc.Document) error{"md": doc.Markdown, "html": doc.HTML, "text": doc.Text} {
		var b strings.Builder
		if err := write(&b, must(Run(h, s, block.Style{}, calls, nil))); err != nil {
			t.Fatal(err)
		}
		out[name] = b.String()
	}
	return out
}

func TestSpeculationSection(t *testing.T) {
	h, s, calls := guessed(t, func(i int) *result.Speculation {
		if i%3 == 0 {
			return &result.Speculation{Steps: 50, Drafted: 150, Accepted: 0, ByStep: []int32{50, 0, 0, 0}}
		}
		return &result.Speculation{Steps: 20, Drafted: 60, Accepted: 36, ByStep: []int32{4, 4, 4, 8}}
	})
	all := written(t, h, s, calls)
	for form, wants := range map[string][]string{
		"md": {"## Speculation by Request", "By the answers of 59 out of 59 successful requests, each of which tells what came of its own guesses, a step yields 1.79 tokens, 26.3 % of the guesses accepted.",
			"| 1 | 35.1 % | 35.1 % |", "| 2 | 26.3 % | 75.0 % |", "| 3 | 17.5 % | 66.7 % |", "1.00 to 1.00 tokens a step | 14 | 1.00 | 0.0 % | 21.00 |", "2.80 to 2.80 tokens a step | 15 | 2.80 | 60.0 % | 21.00 |"},
		"html": {`id="speculation"`, "Position of the guess", "SIMULATED"},
		"text": {"Speculation by request (told by the answers, not by the engine's counters)\n", "  Acceptance length         1.79 tokens\n", "  Accepted by position      35.1 %, 26.3 %, 17.5 %\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(all[form], want) {
				t.Errorf("%s lacks %q", form, want)
			}
		}
	}
	if strings.Contains(all["md"], "own counters") {
		t.Error("it speaks of counters that nobody read")
	}
	s.Figures["acceptance_length"], s.OneIn = 1.5, 4
	for _, want := range []string{"The engine's own counters, of all that it did during the run, say 1.50 tokens a step.", "One call in 4 is here"} {
		if md := written(t, h, s, calls)["md"]; !strings.Contains(md, want) {
			t.Errorf("lacks %q", want)
		}
	}
}

// llama.cpp tells no steps, so there is neither a length nor a position.
func TestSpeculationWithoutSteps(t *testing.T) {
	h, s, calls := guessed(t, func(i int) *result.Speculation { return &result.Speculation{Drafted: 100, Accepted: i} })
	md := written(t, h, s, calls)["md"]
	for _, want := range []string{"its own guesses, 29.2 % of the guesses accepted.", "0.0 % to 13.0 % of its guesses | 14 | n/a | "} {
		if !strings.Contains(md, want) {
			t.Errorf("lacks %q in\n%s", want, md)
		}
	}
	if strings.Contains(md, "Position of the guess") || strings.Contains(md, "Acceptance length") {
		t.Error("it has what the engine does not tell")
	}
}

// An engine that guesses by what was said before may find nothing to guess by.
func TestSpeculationWithoutGuess(t *testing.T) {
	h, s, calls := guessed(t, func(int) *result.Speculation { return &result.Speculation{ByStep: []int32{0, 0}} })
	md := written(t, h, s, calls)["md"]
	if !strings.Contains(md, "tells what came of its own guesses, none was made.") || strings.Contains(md, "Position of the guess") {
		t.Errorf("it does not say so:\n%s", md)
	}
}

// What no answer tells is not shown.
func TestNoSpeculation(t *testing.T) {
	h, s, calls := guessed(t, func(int) *result.Speculation { return nil })
	for form, text := range written(t, h, s, calls) {
		for _, never := range []string{"Speculation by", "id=\"speculation\"", "by request", "Position of the guess"} {
			if strings.Contains(text, never) {
				t.Errorf("%s has %q", form, never)
			}
		}
	}
}
