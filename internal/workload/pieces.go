package workload

import (
	"strconv"

	"perflab/internal/reuse"
)

// Pieces are the parts that the prompt of a sent request consists of: two requests of the run begin alike exactly as far
// as their pieces do. input has the tokens of the prompts of its session by turn, by the workload's own count, those
// of later turns among them where they were sent; of a request that stands alone its own. answer is what the
// server answers, where a later prompt has it. ok is false where it is not known what prompts share.
func (w *Workload) Pieces(r Request, input []int) (prompt []reuse.Piece, answer reuse.Piece, ok bool) {
	if w.spec.RandomImages > 0 || len(input) == 0 {
		return nil, answer, false
	}
	add := func(id uint64, tokens int) { prompt = append(prompt, reuse.Piece{ID: id, Tokens: tokens}) }
	add(reuse.Name("run "+r.Model, 0), w.nonce.tokens)
	if r.Session > 0 {
		src, i, _ := w.row(r.Session - 1)
		t := src.conversations[i]
		if t.tree != nil {
			recorded, _ := w.Recorded(r.Session - 1)
			return append(prompt, recorded.Pieces(r.Turn)...), answer, true
		}
		return t.pieces(prompt, w.spec.History, r, input)
	}
	src, i, _ := w.row(r.Index)
	shared := 0
	if src.shared != nil {
		prefix := src.shared(i)
		for _, p := range prefix {
			shared += p.Tokens
		}
		prompt = append(prompt, prefix...)
	} else if is(w.spec.row().shares, w.spec) {
		return nil, answer, false
	}
	add(reuse.Name("request", int64(r.Index)), input[0]-shared-w.nonce.tokens)
	return prompt, answer, true
}

// Pieces are those of a turn, without what the run has in front of all: see agentPrompt.
func (r Recorded) Pieces(turn int) []reuse.Piece {
	u := r.Turns[turn]
	out := make([]reuse.Piece, 0, len(u.Blocks)+1)
	space := "agents " + strconv.Itoa(r.Round)
	own := space + " session " + strconv.Itoa(r.Number)
	if !r.Global {
		space = own
	}
	block := reuse.Names(space + " block")
	left := u.Input
	for _, id := range u.Blocks {
		n := min(left, r.Block)
		if n == 0 {
			break
		}
		out = append(out, reuse.Piece{ID: block(id), Tokens: n})
		left -= n
	}
	if left > 0 {
		out = append(out, reuse.Piece{ID: reuse.Name(own+" turn", int64(turn)), Tokens: left})
	}
	return out
}

// pieces are system text, questions and answers up to a turn.
func (t conversation) pieces(prompt []reuse.Piece, history string, r Request, input []int) ([]reuse.Piece, reuse.Piece, bool) {
	if len(input) <= r.Turn {
		return nil, reuse.Piece{}, false
	}
	prompt = append(prompt, reuse.Piece{ID: reuse.Name("text "+t.system, 0), Tokens: t.head})
	said := func(turn int) reuse.Piece {
		if history == historyAnswers {
			return reuse.Piece{ID: reuse.Name("text "+t.text(turn, true), 0), Tokens: t.turns[turn].answer}
		}
		p := reuse.Piece{ID: reuse.Name("answer "+strconv.Itoa(r.Session), int64(turn))}
		if turn+1 < len(input) {
			p.Tokens = input[turn+1] - input[turn] - t.turns[turn+1].question
		}
		return p
	}
	for turn := range r.Turn + 1 {
		if turn > 0 {
			prompt = append(prompt, said(turn-1))
		}
		prompt = append(prompt, reuse.Piece{ID: reuse.Name("text "+t.text(turn, false), 0), Tokens: t.turns[turn].question})
	}
	if history == historyAnswers {
		return prompt, reuse.Piece{}, true
	}
	return prompt, said(r.Turn), true
}
