package result

import (
	"slices"
	"testing"
	"time"
)

// packedRun is a call each of two: the server makes a token each 20 ms and sends eight at
// a time, in one message or in as many.
func packedRun(t *testing.T, oneMessage bool) Summary {
	t.Helper()
	var calls []Call
	for i := range 3 {
		c := stream(i, time.Duration(i)*msec, 160*msec, 320*msec, 480*msec)
		c.Reads, c.Usage.Completion = 3, 24
		var apart []Chunk
		for k := range c.Chunks {
			c.Chunks[k].Read, c.Chunks[k].Tokens = int32(k), 8
			for range 8 {
				apart = append(apart, Chunk{At: c.Chunks[k].At, Tokens: 1, Read: int32(k)})
			}
		}
		if !oneMessage {
			c.Chunks = apart
		}
		calls = append(calls, c)
	}
	s, err := Summarize(Header{}, nil, Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Where a gap is of several tokens, its label says of how many.
func TestPackedTokensAreSaid(t *testing.T) {
	for oneMessage, say := range map[bool]string{true: "per chunk of 8.0 tokens", false: "per read of 8.0 tokens"} {
		s := packedRun(t, oneMessage)
		if s.Figures["mean_itl_ms"] != 160 || s.Figures["mean_itl_token_ms"] != 20 || s.Figures["mean_tpot_ms"] != 20 {
			t.Errorf("ITL %v, by token %v, TPOT %v; want 160, 20, 20", s.Figures["mean_itl_ms"], s.Figures["mean_itl_token_ms"], s.Figures["mean_tpot_ms"])
		}
		m, _ := Lookup("mean_itl_ms")
		if got := Label(m, &s); got != "Mean ITL (ms), "+say {
			t.Errorf("label %q", got)
		}
	}
}

// One token a chunk is what everybody expects, and nothing is said of it.
func TestUnpackedTokensAreNot(t *testing.T) {
	s, err := Summarize(Header{}, nil, Options{}, slices.Values(steady(20, 10*msec)))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := Lookup("p99_itl_ms")
	if got := Label(m, &s); got != "P99 ITL (ms)" || s.PerEvent() != "" {
		t.Errorf("label %q, %q", got, s.PerEvent())
	}
	packed, merged := packedRun(t, true), packedRun(t, false)
	if got := Label(m, &packed, &merged); got != "P99 ITL (ms), per read of 8.0 tokens" {
		t.Errorf("label of chunks and reads %q", got)
	}
	if got := Label(m, &s, &packed); got != "P99 ITL (ms), per read of 1 or 8.0 tokens" {
		t.Errorf("label of both %q", got)
	}
}
