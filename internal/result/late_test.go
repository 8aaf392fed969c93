package result

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"perflab/internal/stat"
)

// packet is what a server sent at once: messages, of which a negative number of
// tokens is one without.
type packet struct {
	at       time.Duration
	messages []int32
}

// answerOf makes the packets of an answer: a role, chunks with or without company, and
// an end that may come with the last chunk.
func answerOf(rng *rand.Rand, sent time.Duration) []packet {
	pace := time.Duration(1+rng.IntN(20)) * time.Millisecond
	at := sent + time.Duration(rng.Int64N(int64(80*time.Millisecond))) + 1
	var out []packet
	next := func(messages ...int32) {
		out = append(out, packet{at, messages})
		at += 1 + time.Duration(rng.Int64N(int64(2*pace)))
	}
	if rng.IntN(2) == 0 {
		next(-1)
	}
	for range rng.IntN(12) {
		messages := []int32{1 + rng.Int32N(3)}
		for rng.IntN(6) == 0 {
			messages = append(messages, 1+rng.Int32N(3))
		}
		next(messages...)
	}
	if last := len(out) - 1; last > 0 && rng.IntN(2) == 0 {
		out[last].messages = append(out[last].messages, -1)
	}
	next(-1)
	return out
}

// readBy is the call as a client sees it that looks at the socket at some instants: a read
// has the stamp of its newest byte. looks is nil for a client that is there at
// once.
func readBy(index int, sent time.Duration, packets []packet, looks []time.Duration) Call {
	c := Call{Index: index, Due: sent, Ready: sent, Sent: sent}
	empty := sent
	tokens := 0
	for i := 0; i < len(packets); {
		end := i + 1
		if looks != nil {
			k, _ := slices.BinarySearch(looks, packets[i].at)
			for ; end < len(packets) && packets[end].at <= looks[k]; end++ {
			}
			empty = sent
			if k > 0 {
				empty = max(empty, looks[k-1])
			}
		}
		at, read, messages := packets[end-1].at, int32(c.Reads), 0
		for _, p := range packets[i:end] {
			for _, n := range p.messages {
				if messages++; n < 0 {
					c.Empty = append(c.Empty, Stamp{At: at, Read: read})
					continue
				}
				tokens += int(n)
				if len(c.Chunks) == 0 {
					c.FirstText = 5 * int(n)
				}
				if c.StreamText += 5 * int(n); index%2 == 1 {
					n = 1 // as of a server that counts them at the end
				}
				c.Chunks = append(c.Chunks, Chunk{At: at, Tokens: n, Read: read})
			}
		}
		if looks != nil && messages > 1 {
			c.Late = append(c.Late, LateRead{Read: read, By: at - empty})
		}
		if c.First == 0 {
			c.First, c.Headers = at, at
		}
		c.UsageAt, c.Done, c.End = at, at, at
		c.Reads++
		i = end
	}
	c.Usage = &Usage{Prompt: 10, Completion: tokens}
	if tokens == 0 {
		c.Class = ZeroTokens
	}
	return c
}

// The truth lies within the bounds, whatever the server sent and however late the client
// was: a client of the same answers that was never late tells it.
func TestTruthWithinLateBounds(t *testing.T) {
	t.Parallel()
	families := []string{"ttft", "tpot", "itl", "itl_token", "e2el", "ttft_due", "e2el_due"}
	bounded, figures := 0, 0
	for seed := range uint64(16) {
		rng := rand.New(rand.NewPCG(seed, 7))
		calm := time.Duration(1+rng.IntN(5)) * time.Millisecond // between two looks of a client that is on time
		var looks []time.Duration
		for at := time.Duration(0); at < 4*time.Second; {
			if at += 1 + time.Duration(rng.Int64N(int64(calm))); rng.IntN(1+int(seed%50)) == 0 {
				at += time.Duration(rng.Int64N(int64(100 * time.Millisecond)))
			}
			looks = append(looks, at)
		}
		var seen, exact []Call
		for i := range 1 + rng.IntN(60) {
			sent := time.Duration(rng.Int64N(int64(time.Second)))
			packets := answerOf(rng, sent)
			seen, exact = append(seen, readBy(i, sent, packets, looks)), append(exact, readBy(i, sent, packets, nil))
		}
		got, err := Summarize(Header{}, nil, Options{}, slices.Values(seen))
		if err != nil {
			t.Fatal(err)
		}
		truth, err := Summarize(Header{}, nil, Options{}, slices.Values(exact))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, figure := range []string{"mean", "median", "p50", "p90", "p95", "p99"} {
				name := fmt.Sprintf("%s_%s_ms", figure, f)
				v, has := got.Figures[name]
				want, ok := truth.Figures[name]
				if !has || !ok {
					continue
				}
				figures++
				low, high := v-boundStep-2*stat.SketchBlur*v, v+boundStep+2*stat.SketchBlur*v
				if b, ok := got.Bounds[name]; ok {
					bounded++
					low, high = min(low, b[0]), max(high, b[1])
				}
				if slack := 1e-9; want < low-slack || want > high+slack {
					t.Errorf("seed %d: %s is %.6f in truth, and %.6f was measured within %.6f to %.6f", seed, name, want, v, low, high)
				}
			}
		}
	}
	if bounded < figures/2 {
		t.Errorf("only %d of %d figures were in doubt: the test says little", bounded, figures)
	}
}
