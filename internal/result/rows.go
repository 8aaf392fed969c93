package result

import (
	"encoding/binary"
	"iter"
	"time"
)

// rows are successful calls without their streams, some 50 bytes each: what
// figures of one sample a call, and of calls in flight, are computed from. They
// are in the order of add.
type rows struct {
	Segments [][]byte // of whole rows
	N        int
	prev     Call // Index and Due of the row before
}

// rowSegment is how many bytes a segment has; rowMost is more than a row takes.
const (
	rowSegment = 1 << 20
	rowMost    = 16 * binary.MaxVarintLen64
)

func (r *rows) add(c *Call) {
	n := len(r.Segments)
	if n == 0 || cap(r.Segments[n-1])-len(r.Segments[n-1]) < rowMost {
		r.Segments = append(r.Segments, make([]byte, 0, rowSegment))
		r.prev = Call{}
		n++
	}
	b := r.Segments[n-1]
	put := func(v time.Duration) { b = binary.AppendVarint(b, int64(v)) }
	put(time.Duration(c.Index - r.prev.Index))
	put(c.Due - r.prev.Due)
	put(c.Ready - c.Due)
	put(c.Sent - c.Ready)
	put(c.End - c.Sent)
	dial := c.Dial << 2
	if c.New {
		dial |= 1
	}
	if c.Turn > 0 {
		dial |= 2
	}
	put(dial)
	for _, at := range [...]time.Duration{c.First, c.Headers, c.Answer} {
		if at == 0 {
			put(0) // not known
			continue
		}
		put((at-c.Sent)<<1 | 1)
	}
	k, later := c.FirstRead()
	output, _ := c.Output()
	input, _ := c.Input()
	put(time.Duration(input))
	put(time.Duration(output))
	if first, ok := c.FirstToken(); ok {
		last, _ := c.LastToken()
		flag := time.Duration(1)
		if later {
			flag = 2
		}
		put(time.Duration(k)<<2 | flag)
		put(first - c.Sent)
		put(last - first)
	} else {
		put(0)
	}
	r.Segments[n-1] = b
	r.prev.Index, r.prev.Due = c.Index, c.Due
	r.N++
}

// all yields the calls again, of whose streams there are the first chunk and the
// last. The call is the same each time and is not to be kept.
func (r *rows) all() iter.Seq[*Call] {
	return func(yield func(*Call) bool) {
		var c Call
		var usage Usage
		var chunks [2]Chunk
		for _, b := range r.Segments {
			var prev Call
			next := func() time.Duration {
				v, n := binary.Varint(b)
				b = b[n:]
				return time.Duration(v)
			}
			for len(b) > 0 {
				c = Call{Index: prev.Index + int(next()), Due: prev.Due + next()}
				prev.Index, prev.Due = c.Index, c.Due
				c.Ready = c.Due + next()
				c.Sent = c.Ready + next()
				c.End = c.Sent + next()
				dial := next()
				c.Dial, c.New, c.Turn = dial>>2, dial&1 == 1, int(dial>>1&1) // first turn or a later one
				for _, at := range [...]*time.Duration{&c.First, &c.Headers, &c.Answer} {
					if v := next(); v != 0 {
						*at = c.Sent + v>>1
					}
				}
				c.WantIn = int(next())
				usage = Usage{Completion: int(next())}
				c.Usage = &usage
				if v := next(); v != 0 {
					c.chunkEnds(&chunks, int(v>>2), v&3 == 2, next(), next())
				}
				if !yield(&c) {
					return
				}
			}
		}
	}
}

// chunkEnds gives the call its first chunk and its last, which sum to its tokens.
func (c *Call) chunkEnds(chunks *[2]Chunk, k int, later bool, ttft, rest time.Duration) {
	c.Reads = 1
	chunks[0] = Chunk{At: c.Sent + ttft, Tokens: int32(k)}
	n, _ := c.Output()
	chunks[1] = Chunk{At: c.Sent + ttft + rest, Tokens: int32(n - k)}
	if later {
		c.Reads, chunks[1].Read = 2, 1
	}
	c.Chunks = chunks[:]
}
