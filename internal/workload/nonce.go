package workload

import (
	"fmt"
	"slices"
	"strconv"

	"perflab/internal/stat"
)

// nonceWords is how many words a nonce becomes: over 10^13 different starts of
// a prompt, and less than a block of any prefix cache.
const nonceWords = 4

// nonce is what makes the prompts of a run differ from those of any other run
// while those of the same run share what they did: a line before each text,
// or another place in the vocabulary for each id.
type nonce struct {
	text   string
	tokens int // of the text alone; where it meets a prompt a vocabulary may count a token more or less

	ordinary   []int32 // where ids are moved
	mult, plus int
}

// newNonce returns the nonce of a text, for requests of ids or of text; ""
// gives one that changes nothing.
func newNonce(text string, ids bool, p promptBuilder) (n nonce, err error) {
	if text == "" {
		return nonce{}, nil
	}
	rng := stat.Stream(0, "nonce "+text)
	n.text = p.text(rng, nonceWords) + "\n"
	if !ids {
		n.tokens, err = p.count(n.text, false)
		return n, err
	}
	n.ordinary = p.tok.Ordinary()
	if size := len(n.ordinary); size > 2 {
		n.plus = rng.IntN(size)
		for n.mult = 2 + rng.IntN(size-2); gcd(n.mult, size) != 1; {
			n.mult = 1 + n.mult%(size-1)
		}
	}
	return n, nil
}

// saltOf is the nonce of request k: another one in each pass over the dataset, so that none finds in a
// server's prefix cache what an earlier one left there.
func saltOf(w *Workload, k int) nonce {
	if w.spec.Pass == 0 || k < w.spec.Pass || w.nonce.text == "" {
		return w.nonce
	}
	pass := k / w.spec.Pass
	if n, ok := w.salts.Load(pass); ok {
		return n.(nonce)
	}
	n, err := newNonce(w.spec.Nonce+" pass "+strconv.Itoa(pass), w.src.ids, w.builder)
	if err != nil {
		panic(fmt.Sprintf("workload: a nonce cannot be drawn again: %v", err))
	}
	w.salts.Store(pass, n)
	return n
}

// mark puts the nonce in front of a request's first text, and of its
// documents, which a server may read on their own; or moves its ids.
func (n nonce) mark(r *Request) {
	switch {
	case n.text == "":
		return
	case r.IDs != nil:
		n.move(r.IDs)
	case r.System != "":
		r.System = n.text + r.System
	case len(r.History) > 0:
		r.History = slices.Clone(r.History)
		r.History[0].Content = n.text + r.History[0].Content
	default:
		r.Prompt = n.text + r.Prompt
	}
	r.Documents = slices.Clone(r.Documents)
	for i := range r.Documents {
		r.Documents[i] = n.text + r.Documents[i]
	}
}

// move maps ids one to one onto the vocabulary, so that lengths and shared
// prefixes stay. It does not only add: two runs of consecutive ids would then
// still meet, shifted against each other.
func (n nonce) move(ids []int32) {
	if n.mult == 0 {
		return
	}
	for i, id := range ids {
		if at, ok := slices.BinarySearch(n.ordinary, id); ok {
			ids[i] = n.ordinary[(at*n.mult+n.plus)%len(n.ordinary)]
		}
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// describe says that there is a nonce, "" where there is none.
func (n nonce) describe(ids bool) string {
	switch {
	case n.text == "":
		return ""
	case ids:
		return "ids of this run alone"
	}
	return fmt.Sprintf("behind %d tokens of this run alone", n.tokens)
}
