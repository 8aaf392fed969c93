package workload

import (
	"fmt"
	"slices"
	"time"

	"perflab/internal/stat"
	"perflab/internal/token"
)

// Next returns the turn that follows r in its conversation, and how long after
// the end of r's call it is due. answer is what the server said to r; it is
// part of the next prompt unless the history is the dataset's. ok is false
// after the last turn, and for a request that stands alone.
//
// Of a session of agents it is the next request of the recording, with the time that it
// was idle; Begin says which wait for which.
//
// Images go with the turn that they were made for: a later turn's history does
// not repeat them.
func (w *Workload) Next(r Request, answer string) (next Request, think time.Duration, ok bool) {
	if r.Session == 0 {
		return Request{}, 0, false
	}
	k, turn := r.Session-1, r.Turn+1
	src, i, _ := w.row(k)
	t := src.conversations[i]
	if t.tree != nil {
		return trees{w}.nextTurn(r)
	}
	if turn >= len(t.turns) {
		return Request{}, 0, false
	}
	tokens := t.turns[r.Turn].answer
	if w.spec.History == historyAnswers {
		answer = t.text(r.Turn, true)
	} else {
		tokens = w.answered(answer)
	}
	next = r
	next.Index, next.Turn, next.Due = r.Index+1, turn, 0
	next.History = append(slices.Clip(r.History), Message{"user", r.Prompt}, Message{"assistant", answer})
	next.Prompt = t.text(turn, false)
	next.Input = r.Input + tokens + t.turns[turn].question
	next.Output = t.turns[turn].output
	w.addModelAndImages(&next, k)
	return next, w.think(k, turn), true
}

// answered is the length of an answer, by package token where the tokenizer is
// the server, which is under load now, or fails, which has no place to go here.
func (w *Workload) answered(text string) int {
	if w.spec.Tokenizer != ServerTokenizer {
		if n, err := w.builder.count(text, false); err == nil {
			return n
		}
	}
	return token.Count(text)
}

// think is the time between the end of a turn and the next one.
func (w *Workload) think(k, turn int) time.Duration {
	mean, constant, _ := parseThink(w.spec.ThinkTime) // Validate has seen the error
	if mean == 0 || constant {
		return mean
	}
	rng := stat.Stream(w.spec.Seed, fmt.Sprintf("think %d %d", k, turn))
	return time.Duration(min(rng.ExpFloat64()*float64(mean), float64(maxSpan)))
}

// Prepare makes the images of the turn after r, some ten milliseconds of work,
// so that Next has them at hand.
func (w *Workload) Prepare(r Request) {
	if r.Session == 0 || w.spec.RandomImages == 0 {
		return
	}
	src, i, _ := w.row(r.Session - 1)
	if r.Turn+1 < len(src.conversations[i].turns) {
		w.preparedImages.Store(r.Index+1, syntheticImages(w.spec, r.Index+1))
	}
}
