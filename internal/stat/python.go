package stat

// Python draws the numbers of CPython's random.Random, so that a choice made
// by a Python program from the same seed can be made again: the Mersenne
// twister MT19937, seeded as by random.seed(int).
type Python struct {
	state [624]uint32
	next  int
}

// NewPython returns the generator that random.Random(seed) is.
func NewPython(seed uint64) *Python {
	key := []uint32{uint32(seed)}
	if seed > 0xffffffff {
		key = append(key, uint32(seed>>32))
	}
	p := &Python{}
	s := &p.state
	s[0] = 19650218
	for i := 1; i < len(s); i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	// The key is mixed in over one round of the state, then a second round
	// without it: MT19937's init_by_array.
	i := 1
	step := func() {
		if i++; i == len(s) {
			s[0] = s[len(s)-1]
			i = 1
		}
	}
	for k := range len(s) {
		j := k % len(key)
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1664525) + key[j] + uint32(j)
		step()
	}
	for range len(s) - 1 {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1566083941) - uint32(i)
		step()
	}
	s[0] = 1 << 31
	p.next = len(s)
	return p
}

// uint32 returns the next tempered word.
func (p *Python) uint32() uint32 {
	s := &p.state
	if p.next == len(s) {
		for i := range s {
			y := s[i]&(1<<31) | s[(i+1)%len(s)]&(1<<31-1)
			s[i] = s[(i+397)%len(s)] ^ y>>1 ^ y&1*0x9908b0df
		}
		p.next = 0
	}
	y := s[p.next]
	p.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// Below returns a number in [0, n) as random.randrange and random.choice draw
// it: as many bits as n has, again until they are below n. n is from 1 to 2^32-1.
func (p *Python) Below(n int) int {
	if n < 1 || int64(n) > 0xffffffff {
		panic("stat: Below needs a number from 1 to 2^32-1")
	}
	bits := 0
	for m := n; m > 0; m >>= 1 {
		bits++
	}
	for {
		if r := int(p.uint32() >> (32 - bits)); r < n {
			return r
		}
	}
}

// Shuffle permutes n elements as random.shuffle does.
func (p *Python) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, p.Below(i+1))
	}
}
