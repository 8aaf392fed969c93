package stat

// IndexSet tells which indices were there before, a bit each. Its fields are
// exported so that it can be stored.
type IndexSet struct {
	Bits []uint64
	Far  map[int]bool // below 0, and from maxIndexBits on
}

// maxIndexBits bounds the bits, which are 128 MB then.
const maxIndexBits = 1 << 30

// Add puts an index in, and reports whether it was there.
func (s *IndexSet) Add(i int) (had bool) {
	if i < 0 || i >= maxIndexBits {
		if s.Far == nil {
			s.Far = map[int]bool{}
		}
		had, s.Far[i] = s.Far[i], true
		return had
	}
	for w := i / 64; w >= len(s.Bits); {
		s.Bits = append(s.Bits, 0)
	}
	bit := uint64(1) << (i % 64)
	had = s.Bits[i/64]&bit != 0
	s.Bits[i/64] |= bit
	return had
}
