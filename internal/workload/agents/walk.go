package agents

import (
	"cmp"
	"slices"
	"time"
)

// Step is a turn that waits for nothing any more but its time.
type Step struct {
	Turn int
	Due  time.Duration // from the start of the run
}

// Walk is one way through a session: it is told which turn has ended and says
// what is due then. But for Next it is not safe for concurrent use.
type Walk struct {
	s     Session
	from  int
	waits []int           // turns that each turn still waits for
	since []time.Duration // the last of their ends
	lost  []bool
	next  [][]int // turns that wait for each
}

// Walk begins at a turn: those before it have ended as if they had run.
func (s Session) Walk(from int) *Walk {
	n := len(s.Turns)
	w := &Walk{s: s, from: from, waits: make([]int, n), since: make([]time.Duration, n), lost: make([]bool, n), next: make([][]int, n)}
	for i := from; i < n; i++ {
		for _, k := range s.Turns[i].After {
			if k >= from {
				w.waits[i]++
				w.next[k] = append(w.next[k], i)
			}
		}
	}
	return w
}

// Begin starts the session at an instant: the first turn is due then, and with it
// those that wait for no other turn, as long after the first as they were recorded.
func (w *Walk) Begin(at time.Duration) []Step {
	var due []Step
	for i := w.from; i < len(w.s.Turns); i++ {
		switch {
		case w.waits[i] > 0:
		case i == w.from:
			due = append(due, Step{i, at})
		default:
			due = append(due, Step{i, at + w.later(i)})
		}
	}
	return due
}

// later is how long after the first turn another one begins that waits for none
// of those that are still to come: the rest of its idle time where it had begun.
func (w *Walk) later(i int) time.Duration {
	t := w.s.Turns[i]
	return min(t.Idle, max(0, t.At-w.s.Turns[w.from].At))
}

// Ended takes the end of a turn, and returns what is due after it. A turn that
// failed takes all with it that waits for it: lost is how many these are.
func (w *Walk) Ended(turn int, at time.Duration, ok bool) (due []Step, lost int) {
	if !ok {
		return nil, w.lose(turn)
	}
	for _, i := range w.next[turn] {
		w.waits[i]--
		w.since[i] = max(w.since[i], at)
		if w.waits[i] == 0 && !w.lost[i] {
			due = append(due, Step{i, w.since[i] + w.s.Turns[i].Idle})
		}
	}
	slices.SortStableFunc(due, func(a, b Step) int { return cmp.Compare(a.Due, b.Due) })
	return due, 0
}

// Next are the turns that wait for a turn. It may be called at any time.
func (w *Walk) Next(turn int) []int { return w.next[turn] }

// lose gives up all turns that wait for one, and returns how many.
func (w *Walk) lose(turn int) (n int) {
	for _, i := range w.next[turn] {
		if !w.lost[i] {
			w.lost[i] = true
			n += 1 + w.lose(i)
		}
	}
	return n
}
