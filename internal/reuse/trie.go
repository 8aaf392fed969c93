package reuse

// Piece is a part of a prompt. Prompts that begin with the same pieces begin with the same tokens, and so
// do the first tokens of two pieces with one id.
type Piece struct {
	ID     uint64
	Tokens int
}

// Trie tells of prompts which earlier one each begins alike with. Its zero value is empty.
type Trie struct {
	lines int
	known map[uint64]place // by the pieces before and the id of the piece that ends there
}

// place is where a piece ends in the line that had it first.
type place struct {
	line, tokens int // tokens of the piece
}

// Add takes a prompt, and returns the line, from 1, of an earlier prompt that begins as it does, and for how
// many tokens; 0 where none does. answer is what the server's answer will be in later prompts, as a piece; one
// without tokens is in none.
func (t *Trie) Add(prompt []Piece, answer Piece) (like, alike int) {
	if t.known == nil {
		t.known = map[uint64]place{}
	}
	t.lines++
	if answer.Tokens > 0 {
		prompt = append(prompt[:len(prompt):len(prompt)], answer)
	}
	keys := make([]uint64, len(prompt))
	before := uint64(0)
	for i, p := range prompt {
		keys[i] = mix(before ^ p.ID)
		before = mix(keys[i] + uint64(p.Tokens))
	}
	n := len(prompt)
	if answer.Tokens > 0 {
		n--
	}
	deepest := t.deepest(keys[:n])
	if i := deepest - 1; i >= 0 {
		at := t.known[keys[i]]
		like, alike = at.line, min(prompt[i].Tokens, at.tokens)
		for _, p := range prompt[:i] {
			alike += p.Tokens
		}
		if prompt[i].Tokens > at.tokens { // this line has more of it
			t.known[keys[i]] = place{t.lines, prompt[i].Tokens}
		}
	}
	for i := deepest; i < len(prompt); i++ {
		t.known[keys[i]] = place{t.lines, prompt[i].Tokens}
	}
	if alike == 0 {
		return 0, 0
	}
	return like, alike
}

// deepest is how many of the keys are known, which are the first.
func (t *Trie) deepest(keys []uint64) int {
	lo, hi := 0, len(keys)
	for lo < hi {
		mid := (lo + hi) / 2
		if _, ok := t.known[keys[mid]]; ok {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Name makes an id of what a piece is of and of a number.
func Name(of string, n int64) uint64 { return Names(of)(n) }

// Names is Name for many numbers.
func Names(of string) func(n int64) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(of) {
		h = (h ^ uint64(of[i])) * 1099511628211
	}
	return func(n int64) uint64 { return mix(h ^ mix(uint64(n))) }
}

// mix is the finaliser of splitmix64, a bijection that spreads every bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
