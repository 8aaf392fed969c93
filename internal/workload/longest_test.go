package workload

import "testing"

// TestLongest: the lengths are those of the requests that are sent.
func TestLongest(t *testing.T) {
	all := specs(t)
	all["talks"] = Spec{Dataset: "conversations", NumPrompts: 5, Turns: "2-4", TurnInputLen: "5-9", TurnOutputLen: "3-7", SystemLen: 11, History: "answers", Nonce: "n"}
	for name, s := range all {
		w := mustOpen(t, s)
		var want, long Extent
		for first := range w.All() {
			for r, ok := first, true; ok; r, _, ok = w.Next(r, "") {
				e := Extent{r.Input, r.Output}
				if len(r.Documents) > 0 {
					continue
				}
				if e.total() > want.total() {
					want = e
				}
				if e.Input > long.Input {
					long = e
				}
			}
		}
		if got, prompt, _ := w.Longest(); got != want || prompt.Input != long.Input {
			t.Errorf("%s: longest %v and %v, want %v and %v", name, got, prompt, want, long)
		}
	}
}

// TestLongestIsExact: a length that is known is told from one that is estimated.
func TestLongestIsExact(t *testing.T) {
	texts := file(t, `{"prompt": "a b"}`)
	for name, tt := range map[string]struct {
		spec  Spec
		exact bool
	}{
		"made up":      {Spec{NumPrompts: 3}, true},
		"trace":        {Spec{Dataset: "azure", Path: file(t, azureText)}, true},
		"texts":        {Spec{Dataset: "jsonl", Path: texts}, false},
		"sonnet":       {Spec{Dataset: "sonnet", NumPrompts: 3}, false},
		"time decides": {Spec{MaxConcurrency: 2, Duration: "2s"}, false},
		"to the end":   {Spec{Dataset: "conversations", NumPrompts: 2, History: "generated"}, true}, // made up: EOS is ignored
		"answers":      {Spec{Dataset: "conversations", NumPrompts: 2, History: "answers"}, true},
	} {
		if _, _, exact := mustOpen(t, tt.spec).Longest(); exact != tt.exact {
			t.Errorf("%s: exact %v", name, exact)
		}
	}
	talks := Spec{Dataset: "conversations", Path: file(t, `{"messages": [{"role": "user", "content": "a b"}, {"role": "assistant", "content": "c"}]}`), Tokenizer: "toy"}
	for history, want := range map[string]bool{"answers": true, "generated": false} { // what is generated may end early
		talks.History = history
		if _, _, exact := openWith(t, talks, newToy(false)).Longest(); exact != want {
			t.Errorf("history %s: exact %v", history, exact)
		}
	}
}
