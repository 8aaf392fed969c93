package workload

import (
	"strings"
	"testing"

	"perflab/internal/reuse"
)

// sentText is all that a request sends, in the order in which a server has it.
func sentText(r Request) string {
	parts := []string{r.System}
	for _, m := range r.History {
		parts = append(parts, m.Content)
	}
	return strings.TrimSpace(strings.Join(append(parts, r.Prompt), " "))
}

// answeredTurns are all requests of a workload, of conversations those that follow when the server says a few
// words of its own each time.
func answeredTurns(w *Workload) (out []Request) {
	for r := range w.All() {
		for more := true; more; r, _, more = w.Next(r, strings.Repeat("yes ", 3+r.Index%5)+"indeed") {
			out = append(out, r)
		}
	}
	return out
}

// TestPieces: prompts begin alike exactly as far as their pieces say, answers of the server among them.
func TestPieces(t *testing.T) {
	chat := `{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"how are you"},{"role":"assistant","content":"fine"},{"role":"user","content":"and the rest of you"},{"role":"assistant","content":"fine too"}]}
{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"how are you"},{"role":"assistant","content":"fine"},{"role":"user","content":"see you"},{"role":"assistant","content":"yes"}]}`
	for name, spec := range map[string]Spec{
		"agents":            {Dataset: "agents", Path: agentFile(t, agentLines("global")), NumPrompts: 6, Seed: 9},
		"prefix":            {Dataset: "prefix_repetition", PrefixRepetitionPrefixLen: 30, PrefixRepetitionSuffixLen: 9, PrefixRepetitionNumPrefixes: 3, NumPrompts: 12, Seed: 1},
		"groups":            {Dataset: "shared-prefix", GSPNumGroups: 3, GSPPromptsPerGroup: 4, GSPSystemPromptLen: 21, GSPQuestionLen: 7, Seed: 3},
		"random":            {Dataset: "random", RandomInputLen: 20, RandomPrefixLen: 12, NumPrompts: 8, Seed: 2},
		"mooncake":          {Dataset: "mooncake", Path: agentFile(t, mooncakeText), Seed: 4},
		"conversations":     {Dataset: "conversations", NumPrompts: 3, Turns: "3", TurnInputLen: "9", TurnOutputLen: "5", SystemLen: 6, Seed: 5},
		"their answers":     {Dataset: "conversations", NumPrompts: 3, Turns: "3", TurnInputLen: "9", TurnOutputLen: "5", History: "answers", Seed: 5},
		"of a file":         {Dataset: "conversations", Path: agentFile(t, chat), NumPrompts: 5, Seed: 5},
		"behind a nonce":    {Dataset: "conversations", Path: agentFile(t, chat), NumPrompts: 4, Seed: 5, Nonce: "x"},
		"nothing in common": {Dataset: "random", RandomInputLen: 20, NumPrompts: 8, Seed: 2},
	} {
		w := mustOpen(t, spec)
		all := answeredTurns(w)
		input := map[int][]int{}
		for _, r := range all {
			if r.Session > 0 {
				for len(input[r.Session]) <= r.Turn {
					input[r.Session] = append(input[r.Session], 0)
				}
				input[r.Session][r.Turn] = r.Input
			}
		}
		var trie reuse.Trie
		texts, shared := []string{}, 0
		for i, r := range all {
			lengths := input[r.Session]
			if r.Session == 0 {
				lengths = []int{r.Input}
			}
			pieces, answer, ok := w.Pieces(r, lengths)
			if !ok {
				t.Fatalf("%s: request %d has no pieces", name, i)
			}
			sum := 0
			for _, p := range pieces {
				sum += p.Tokens
			}
			if sum != r.Input {
				t.Errorf("%s: request %d has %d tokens, its pieces %d", name, i, r.Input, sum)
			}
			like, is := trie.Add(pieces, answer)
			texts = append(texts, sentText(r))
			want := 0
			for _, before := range texts[:i] {
				want = max(want, alike(texts[i], before))
			}
			if answer := r.Turn > 0 && w.Generates(); answer && (like == 0 || is != r.Input-len(tokens(r.Prompt))) {
				t.Errorf("%s: request %d begins like line %d for %d tokens, want those before its question, %d", name, i, like, is, r.Input-len(tokens(r.Prompt)))
			} else if !answer && is != want {
				t.Errorf("%s: request %d begins like line %d for %d tokens, want %d", name, i, like, is, want)
			}
			shared += is
		}
		if (shared > 0) != (name != "nothing in common") {
			t.Errorf("%s: %d tokens in common", name, shared)
		}
	}
	for name, spec := range map[string]Spec{
		"sonnet": {Dataset: "sonnet", SonnetPrefixLen: 50, NumPrompts: 3}, "images": {Dataset: "conversations", NumPrompts: 2, RandomImages: 1},
	} {
		r := answeredTurns(mustOpen(t, spec))[0]
		if pieces, _, ok := mustOpen(t, spec).Pieces(r, []int{r.Input}); ok {
			t.Errorf("%s: %v", name, pieces)
		}
	}
}
