package tokenizer

import "fmt"

// compiler turns a parsed pattern into steps; each is compiled with what
// follows it.
type compiler struct {
	uni   *tables
	stars int
}

func (c *compiler) compile(x *expr, next *node) *node {
	switch x.op {
	case opAccept:
		for i := len(x.list) - 1; i >= 0; i-- {
			next = c.compile(x.list[i], next)
		}
		return next
	case opClass:
		return &node{op: opClass, class: c.class(x.set), next: next}
	case opAlt:
		return c.alternatives(x, next)
	case opLoop:
		return c.repeat(x, next)
	case opLook, opAtomic:
		body := c.compile(x.list[0], &node{op: opAccept})
		return &node{op: x.op, neg: x.neg, body: body, next: next}
	case opBehind:
		return &node{op: opBehind, neg: x.neg, class: c.class(x.set), next: next}
	default:
		return &node{op: x.op, next: next}
	}
}

func (c *compiler) class(s *set) *class {
	k := &class{set: s, uni: c.uni}
	for b := range rune(len(k.ascii)) {
		k.ascii[b] = s.has(b, c.uni.mask(b))
	}
	return k
}

func (c *compiler) alternatives(x *expr, next *node) *node {
	if len(x.list) > 64 {
		half := len(x.list) / 2
		x = &expr{op: opAlt, list: []*expr{{op: opAlt, list: x.list[:half]}, {op: opAlt, list: x.list[half:]}}}
	}
	n := &node{op: opAlt, starts: make([]uint64, startLen)}
	for k, alt := range x.list {
		a := c.compile(alt, next)
		n.alts = append(n.alts, a)
		for i, can := range starts(a) {
			if can {
				n.starts[i] |= 1 << k
			}
		}
	}
	return n
}

// repeat compiles a repetition: of a class as one scan, of a group as its
// copies.
func (c *compiler) repeat(x *expr, next *node) *node {
	body := x.list[0]
	for body.op == opAccept && len(body.list) == 1 {
		body = body.list[0]
	}
	if body.op == opClass {
		return &node{op: opLoop, greed: x.greed, min: x.min, max: x.max, class: c.class(body.set), next: next}
	}
	if x.greed == possessive {
		return c.compile(&expr{op: opAtomic, list: []*expr{{op: opLoop, min: x.min, max: x.max, list: x.list}}}, next)
	}
	if x.max < 0 {
		star := &node{op: opStar, greed: x.greed, id: c.stars % maxStars, next: next}
		c.stars++
		star.body = c.compile(body, &node{op: opStarEnd, body: star})
		next = star
	} else {
		end := next
		for range x.max - x.min {
			next = either(c.compile(body, next), end, x.greed == lazy)
		}
	}
	for range x.min {
		next = c.compile(body, next)
	}
	return next
}

// either is an optional copy of a group; leaving it out leaves out the copies
// behind it as well.
func either(with, without *node, leave bool) *node {
	n := &node{op: opAlt, alts: []*node{with, without}, starts: make([]uint64, startLen)}
	if leave {
		n.alts = []*node{without, with}
	}
	for i := range n.starts {
		n.starts[i] = 3
	}
	return n
}

// starts tells what a match of a step may start with; a superset.
func starts(n *node) (can [startLen]bool) {
	add := func(more [startLen]bool) {
		for i, ok := range more {
			can[i] = can[i] || ok
		}
	}
	switch n.op {
	case opClass, opLoop:
		copy(can[:], n.class.ascii[:])
		can[startWide] = true
		if n.op == opLoop && n.min == 0 {
			add(starts(n.next))
		}
	case opAlt:
		for _, a := range n.alts {
			add(starts(a))
		}
	case opLook, opBehind, opLineStart, opLineEnd, opTextStart, opTextEnd:
		return starts(n.next)
	case opAtomic:
		return starts(n.body)
	case opStar:
		add(starts(n.body))
		add(starts(n.next))
	default: // the end of the pattern, or of a round
		for i := range can {
			can[i] = true
		}
	}
	return can
}

// compilePattern reads a regular expression.
func compilePattern(src string, uni *tables) (*pattern, error) {
	p := &parser{src: src, uni: uni}
	x, err := p.alternation()
	if err == nil && p.i < len(p.src) {
		err = p.errorf("unmatched )")
	}
	if err != nil {
		return nil, err
	}
	if n := x.size(); n > maxSteps {
		return nil, fmt.Errorf("pattern %q unrolls to %d steps, more than %d are not supported", src, n, maxSteps)
	}
	c := &compiler{uni: uni}
	prog := c.compile(x, &node{op: opAccept})
	if c.stars > maxStars {
		return nil, fmt.Errorf("pattern %q repeats more than %d groups, which is not supported", src, maxStars)
	}
	return &pattern{prog: prog}, nil
}

// literalPattern matches a text as it stands.
func literalPattern(s string, uni *tables) *pattern {
	x := &expr{op: opAccept}
	for _, r := range s {
		x.list = append(x.list, &expr{op: opClass, set: &set{ranges: []rune{r, r}}})
	}
	c := &compiler{uni: uni}
	return &pattern{prog: c.compile(x, &node{op: opAccept})}
}
