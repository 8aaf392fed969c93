package sim

import "iter"

// Piece is a run of a prompt's tokens that stands for its words: its k-th token is that of
// every other piece of its key. A prompt of 100,000 tokens is some thousand pieces.
type Piece struct {
	Key    uint64
	Tokens int
}

// shared is how many tokens of a prompt others may begin with.
func (j *Job) shared() int {
	if j.Pieces != nil {
		return j.PromptLen
	}
	return len(j.Prompt)
}

// beginnings are the hashes of the beginnings of a prompt, each n tokens longer than the one before.
func (j *Job) beginnings(n int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		h, at := uint64(0), place{}
		for end := n; end <= j.shared(); end += n {
			if j.Pieces != nil {
				h = at.chain(h, j.Pieces, n)
			} else {
				h = chain(h, j.Prompt[end-n:end])
			}
			if !yield(h) {
				return
			}
		}
	}
}

// place is a place in a list of pieces: so many tokens after the start of one.
type place struct{ piece, token int }

// chain is the hash of the n tokens from a place on after the prefix hashed parent, and moves
// the place behind them. It is odd.
func (p *place) chain(parent uint64, of []Piece, n int) uint64 {
	h := parent ^ 0x9e3779b97f4a7c15
	for n > 0 {
		k := min(n, of[p.piece].Tokens-p.token)
		h = mix(h ^ of[p.piece].Key)
		h = mix(h ^ uint64(p.token)<<32 ^ uint64(k))
		n -= k
		if p.token += k; p.token == of[p.piece].Tokens {
			p.piece, p.token = p.piece+1, 0
		}
	}
	return h | 1
}
