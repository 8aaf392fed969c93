package agents

import (
	"slices"
	"time"
)

// CapIdle is the session with no idle time over a limit; 0: as recorded.
func (s Session) CapIdle(most time.Duration) Session {
	if most == 0 {
		return s
	}
	s.Turns = slices.Clone(s.Turns)
	for i := range s.Turns {
		s.Turns[i].Idle = min(s.Turns[i].Idle, most)
	}
	return s
}

// Fit is the session as a model of so many tokens of context can run it. With
// truncate a prompt that is too long for it loses its end, down to one token; else
// the turn is left out, with all that waits for it. cut is how many turns that
// was done to.
func (s Session) Fit(context int, truncate bool) (fitting Session, cut int) {
	if context == 0 {
		return s, 0
	}
	if truncate {
		s.Turns = slices.Clone(s.Turns)
		for i := range s.Turns {
			t := &s.Turns[i]
			if t.Input+t.Output > context {
				t.Output = min(t.Output, context-1)
				t.Input = context - t.Output
				t.Blocks = t.Blocks[:min(len(t.Blocks), (t.Input+s.Block-1)/s.Block)]
				cut++
			}
		}
		return s, cut
	}
	gone := make([]bool, len(s.Turns))
	for i, t := range s.Turns {
		gone[i] = t.Input+t.Output > context || slices.ContainsFunc(t.After, func(k int) bool { return gone[k] })
		if gone[i] {
			cut++
		}
	}
	return s.without(func(i int) bool { return gone[i] }), cut
}

// Filling are the turns before one whose prompts put into a cache what all turns
// before it would have: those that are not the beginning of a later one, in their
// order. What of a prompt is less than a block and of no block counts for nothing:
// no other prompt has it.
func (s Session) Filling(before int) []int {
	var out []int
	for i, t := range s.Turns[:before] {
		rest := t.Input - len(t.Blocks)*s.Block
		covered := rest < s.Block && slices.ContainsFunc(s.Turns[i+1:before], func(u Turn) bool {
			return len(u.Blocks) >= len(t.Blocks) && u.Input >= t.Input-max(0, rest) && slices.Equal(u.Blocks[:len(t.Blocks)], t.Blocks)
		})
		if !covered {
			out = append(out, i)
		}
	}
	return out
}
