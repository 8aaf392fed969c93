package tokenizer

// symbol is a stretch of the word and its token.
type symbol struct {
	id         int32
	prev, next int32
	dead       bool
}

type bpeScratch struct {
	symbols []symbol
	ranks   []uint64 // of the pair at each symbol, short words
	heap    []merge
	text    []byte
}

// change is a code point of the new text and what it does to the place in the
// old one: 0 takes the next code point, 1 takes none, -n takes n more.
type change struct {
	r     rune
	taken int
}

// path is the best way to a place in the word.
type path struct {
	score float64
	from  int32 // -1: not reached
	id    int32
}

// merge is a candidate: the pair at a symbol, its rank and what it makes.
type merge struct {
	rank uint32
	pos  int32
	id   int32
}
