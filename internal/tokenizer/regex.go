package tokenizer

import "unicode/utf8"

// A small backtracking matcher for the patterns that tokenizers split by. It
// exists because the patterns are Oniguruma's, with look-ahead and Oniguruma's
// Unicode tables, and because they decide the speed of encoding: an
// alternative that cannot start with the next byte is never tried, and a loop
// over one class is one scan.

type op uint8

const (
	opAccept op = iota
	opClass
	opLoop
	opAlt
	opLook
	opBehind
	opAtomic
	opStar
	opStarEnd
	opLineStart
	opLineEnd
	opTextStart
	opTextEnd
)

// greed says how a repetition gives back.
type greed uint8

const (
	greedy greed = iota
	lazy
	possessive
)

// node is one step of a compiled pattern.
type node struct {
	op       op
	greed    greed
	neg      bool
	id       int // of an opStar: its slot in the matcher
	min, max int // of an opLoop; max < 0: no limit
	class    *class
	next     *node
	body     *node   // of opLook, opAtomic, opStar; the opStar of an opStarEnd
	alts     []*node // of opAlt
	starts   []uint64
}

// The places in node.starts beyond the 128 ASCII bytes.
const (
	startWide = 128 // any byte of a longer code point
	startEnd  = 129 // the end of the text
	startLen  = 130
)

// pattern is a compiled regular expression, safe for concurrent use.
type pattern struct {
	prog *node
}

// class is a set of code points.
type class struct {
	ascii [128]bool
	set   *set
	uni   *tables
}

// set is a class as it was written: a union of its parts, cut with and.
type set struct {
	neg    bool
	mask   uint64   // any of these bits
	notAny []uint64 // none of these bits
	ranges []rune   // pairs, both ends in
	subs   []*set
	and    *set
}

func (s *set) has(r rune, mask uint64) bool {
	in := mask&s.mask != 0
	for i := 0; !in && i < len(s.notAny); i++ {
		in = mask&s.notAny[i] == 0
	}
	for i := 0; !in && i < len(s.ranges); i += 2 {
		in = s.ranges[i] <= r && r <= s.ranges[i+1]
	}
	for i := 0; !in && i < len(s.subs); i++ {
		in = s.subs[i].has(r, mask)
	}
	if in && s.and != nil {
		in = s.and.has(r, mask)
	}
	return in != s.neg
}

// run returns the end of the longest run of the class from i, of at most max
// code points, and their number.
func (c *class) run(s []byte, i, max int) (end, n int) {
	for i < len(s) && n != max {
		if b := s[i]; b < utf8.RuneSelf {
			if !c.ascii[b] {
				break
			}
			i++
		} else {
			r, size := utf8.DecodeRune(s[i:])
			if !c.set.has(r, c.uni.mask(r)) {
				break
			}
			i += size
		}
		n++
	}
	return i, n
}

// maxStars bounds the repetitions of groups in one pattern.
const maxStars = 8

const (
	maxTries = 10_000_000 // in the search for one match, as in Oniguruma
	maxDepth = 200_000    // rounds of a group, each some frames of the stack
)

type matcher struct {
	s     []byte
	tries int
	depth int           // rounds of groups within each other
	last  [maxStars]int // where the current round of each opStar began
}

// match returns the end of the match of n at i, or -1.
func (m *matcher) match(n *node, i int) int {
	for {
		switch n.op {
		case opAccept:
			return i
		case opClass:
			end, k := n.class.run(m.s, i, 1)
			if k == 0 {
				return -1
			}
			i = end
		case opLoop:
			end, k := n.class.run(m.s, i, n.max)
			if k < n.min {
				return -1
			}
			if n.greed == lazy {
				return m.loopLazy(n, i)
			}
			if n.greed == greedy && n.next.op != opAccept && k > n.min {
				return m.loopBack(n, end, k)
			}
			i = end
		case opAlt:
			return m.alternate(n, i)
		case opStar:
			if end, done := m.star(n, i); done {
				return end
			}
		case opStarEnd:
			if star := n.body; i != m.last[star.id] {
				n = star
				continue
			}
			n = n.body.next
			continue
		case opAtomic:
			if i = m.match(n.body, i); i < 0 {
				return -1
			}
		default:
			if !m.holds(n, i) {
				return -1
			}
		}
		n = n.next
	}
}

// holds tells whether a step that takes no text is true at i.
func (m *matcher) holds(n *node, i int) bool {
	switch n.op {
	case opLook:
		return (m.match(n.body, i) >= 0) != n.neg
	case opBehind:
		k := 0
		if i > 0 {
			_, size := utf8.DecodeLastRune(m.s[:i])
			_, k = n.class.run(m.s, i-size, 1)
		}
		return (k == 1) != n.neg
	case opLineStart:
		return i == 0 || i < len(m.s) && m.s[i-1] == '\n'
	case opLineEnd:
		return i == len(m.s) || m.s[i] == '\n'
	case opTextStart:
		return i == 0
	default: // opTextEnd
		return i == len(m.s)
	}
}

// more counts a try; false: there were too many.
func (m *matcher) more() bool {
	m.tries++
	return m.tries <= maxTries
}

func (m *matcher) loopBack(n *node, end, k int) int {
	for m.more() {
		if e := m.match(n.next, end); e >= 0 {
			return e
		}
		if k == n.min {
			return -1
		}
		for end--; !utf8.RuneStart(m.s[end]); end-- {
		}
		k--
	}
	return -1
}

func (m *matcher) loopLazy(n *node, i int) int {
	i, k := n.class.run(m.s, i, n.min)
	for m.more() {
		if e := m.match(n.next, i); e >= 0 {
			return e
		}
		end, one := n.class.run(m.s, i, 1)
		if one == 0 || k == n.max {
			return -1
		}
		i, k = end, k+1
	}
	return -1
}

// start returns the place in node.starts for what comes at i.
func (m *matcher) start(i int) int {
	switch {
	case i >= len(m.s):
		return startEnd
	case m.s[i] < utf8.RuneSelf:
		return int(m.s[i])
	}
	return startWide
}

func (m *matcher) alternate(n *node, i int) int {
	able := n.starts[m.start(i)]
	for k, alt := range n.alts {
		if able>>k&1 == 0 || !m.more() {
			continue
		}
		if e := m.match(alt, i); e >= 0 {
			return e
		}
	}
	return -1
}

// star tries one more round of a group; done is false when the caller should
// go on behind the group.
func (m *matcher) star(n *node, i int) (end int, done bool) {
	if n.greed == lazy {
		if e := m.match(n.next, i); e >= 0 {
			return e, true
		}
	}
	if !m.more() {
		return -1, true
	}
	saved := m.last[n.id]
	m.last[n.id] = i
	if m.depth++; m.depth > maxDepth {
		m.tries = maxTries
	}
	e := m.match(n.body, i)
	m.depth--
	if e >= 0 {
		return e, true
	}
	m.last[n.id] = saved
	return -1, n.greed == lazy
}

// matches yields what a pattern finds in a text, as Oniguruma's iterator does:
// an empty match next to the last one is passed over.
type matches struct {
	m          matcher
	p          *pattern
	from, last int
}

func (p *pattern) matches(s []byte) matches {
	return matches{m: matcher{s: s}, p: p, last: -1}
}

// gaveUp tells whether the search for the last match took too long.
func (it *matches) gaveUp() bool { return it.m.tries > maxTries }

// next returns the next match, ok false when there is none.
func (it *matches) next() (start, end int, ok bool) {
	it.m.tries = 0
	for at := it.from; at <= len(it.m.s) && !it.gaveUp(); {
		end := it.m.match(it.p.prog, at)
		if end >= 0 && (end > at || end != it.last) {
			it.from, it.last = end, end
			return at, end, true
		}
		if at == len(it.m.s) {
			break
		}
		_, size := utf8.DecodeRune(it.m.s[at:])
		at += size
	}
	it.from = len(it.m.s) + 1
	return 0, 0, false
}
