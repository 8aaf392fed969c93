package stat

import "math/bits"

// NumPy draws the numbers of numpy.random.default_rng, so that a choice made
// by a Python program from the same seed can be made again: a SeedSequence
// that feeds PCG64 in its XSL-RR form (math/rand/v2's PCG has the same state
// and another output).
type NumPy struct {
	hi, lo       uint64 // state
	incHi, incLo uint64
	spare        uint32 // upper half of the last word, when half is set
	half         bool
}

// NewNumPy returns the generator that numpy.random.default_rng(seed) is.
func NewNumPy(seed uint64) *NumPy {
	w := seedSequence(seed)
	g := &NumPy{
		incHi: w[2]<<1 | w[3]>>63,
		incLo: w[3]<<1 | 1,
	}
	g.step()
	var carry uint64
	g.lo, carry = bits.Add64(g.lo, w[1], 0)
	g.hi, _ = bits.Add64(g.hi, w[0], carry)
	g.step()
	return g
}

// seedSequence is SeedSequence(seed).generate_state(4, uint64).
func seedSequence(seed uint64) (out [4]uint64) {
	const (
		initA, multA = 0x43b0d7e5, 0x931e8875
		initB, multB = 0x8b51f9dd, 0x58f38ded
		mixL, mixR   = 0xca01f9dd, 0x4973f715
	)
	hash := func(v uint32, c *uint32, mult uint32) uint32 {
		v ^= *c
		*c *= mult
		v *= *c
		return v ^ v>>16
	}
	pool := [4]uint32{uint32(seed), uint32(seed >> 32)}
	c := uint32(initA)
	for i := range pool {
		pool[i] = hash(pool[i], &c, multA)
	}
	for src := range pool {
		for dst := range pool {
			if src != dst {
				r := mixL*pool[dst] - mixR*hash(pool[src], &c, multA)
				pool[dst] = r ^ r>>16
			}
		}
	}
	c = initB
	for i := range out {
		low := hash(pool[2*i%4], &c, multB)
		high := hash(pool[(2*i+1)%4], &c, multB)
		out[i] = uint64(high)<<32 | uint64(low)
	}
	return out
}

// step advances the state: state·mult + inc modulo 2^128.
func (g *NumPy) step() {
	const multHi, multLo = 0x2360ed051fc65da4, 0x4385df649fccf645
	hi, lo := bits.Mul64(g.lo, multLo)
	hi += g.hi*multLo + g.lo*multHi
	var carry uint64
	g.lo, carry = bits.Add64(lo, g.incLo, 0)
	g.hi, _ = bits.Add64(hi, g.incHi, carry)
}

// uint32 returns half a word, the lower one first.
func (g *NumPy) uint32() uint32 {
	if g.half {
		g.half = false
		return g.spare
	}
	g.step()
	w := bits.RotateLeft64(g.hi^g.lo, -int(g.hi>>58))
	g.half, g.spare = true, uint32(w>>32)
	return uint32(w)
}

// Integers returns n numbers in [low, high) as Generator.integers draws them
// (Lemire's method on 32 bits); nothing is drawn where there is one choice
// only. The span is from 1 to 2^32-1.
func (g *NumPy) Integers(low, high, n int) []int {
	span := uint64(int64(high) - int64(low))
	if high <= low || span > 0xffffffff {
		panic("stat: Integers needs a span from 1 to 2^32-1")
	}
	out := make([]int, n)
	for i := range out {
		out[i] = low
		if span > 1 {
			out[i] += int(g.below(span))
		}
	}
	return out
}

func (g *NumPy) below(span uint64) uint64 {
	threshold := (1 << 32) % span
	for {
		m := uint64(g.uint32()) * span
		if m&0xffffffff >= threshold {
			return m >> 32
		}
	}
}

// Permutation returns the numbers below n in the order that
// Generator.permutation(n) leaves them in. n is at most 2^32-1.
func (g *NumPy) Permutation(n int) []int {
	if int64(n) > 0xffffffff {
		panic("stat: Permutation needs at most 2^32-1 numbers")
	}
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := g.interval(uint32(i))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// interval returns a number up to most: as many bits as that has, again until they are
// no more.
func (g *NumPy) interval(most uint32) int {
	mask := uint32(1)<<bits.Len32(most) - 1
	for {
		if v := g.uint32() & mask; v <= most {
			return int(v)
		}
	}
}
