package bench

import (
	"cmp"
	"slices"

	"perflab/internal/result"
	"perflab/internal/reuse"
	"perflab/internal/workload"
)

// mostPrompts bounds the prompts of which it is kept what they share: a line takes some 50 bytes.
const mostPrompts = 1 << 20

// sentPrompts notes which prompts were sent, before the run to fill caches and in it.
type sentPrompts struct {
	w     *workload.Workload
	fills []sentPrompt // in the order of their ends
	calls []sentPrompt
}

// sentPrompt is what tells one from all others.
type sentPrompt struct {
	request workload.Request // Index, Session, Turn and Model
	input   int
	target  int
}

// promptsOf begins to note; nil where no cache would have anything of the prompts.
func promptsOf(w *workload.Workload, h result.Header, c *cacheMonitor) *sentPrompts {
	if !h.Sharing && h.Cache != result.CacheWarm {
		return nil
	}
	return &sentPrompts{w: w, fills: c.fills}
}

func sentAs(c *result.Call, target int) sentPrompt {
	return sentPrompt{workload.Request{Index: c.Index, Session: c.Session, Turn: c.Turn, Model: c.Model}, c.WantIn, target}
}

// add notes a call of the run.
func (s *sentPrompts) add(c *result.Call) {
	if s != nil && c.OK() && len(s.calls) < mostPrompts {
		s.calls = append(s.calls, sentAs(c, c.Target))
	}
}

// lines are what the prompts share; nil where that is not known.
func (s *sentPrompts) lines() []reuse.Prompt {
	if s == nil || len(s.calls) == 0 || len(s.calls) == mostPrompts {
		return nil
	}
	slices.SortFunc(s.calls, func(a, b sentPrompt) int { return cmp.Compare(a.request.Index, b.request.Index) })
	input := map[int][]int{} // of sessions, by turn
	for _, p := range s.calls {
		if k := p.request.Session; k > 0 {
			for len(input[k]) <= p.request.Turn {
				input[k] = append(input[k], 0)
			}
			input[k][p.request.Turn] = p.input
		}
	}
	var trie reuse.Trie
	out := make([]reuse.Prompt, 0, len(s.fills)+len(s.calls))
	add := func(p sentPrompt, fill bool) bool {
		lengths := input[p.request.Session]
		if p.request.Session == 0 {
			lengths = []int{p.input}
		}
		pieces, answer, ok := s.w.Pieces(p.request, lengths)
		if !ok {
			return false
		}
		line := reuse.Prompt{Index: p.request.Index, Tokens: p.input}
		if fill {
			line = reuse.Prompt{Fill: true, Target: p.target, Tokens: p.input}
			answer = reuse.Piece{}
		}
		line.Like, line.Alike = trie.Add(pieces, answer)
		out = append(out, line)
		return true
	}
	for _, p := range s.fills {
		if !add(p, true) {
			return nil
		}
	}
	for _, p := range s.calls {
		if !add(p, false) {
			return nil
		}
	}
	return out
}
