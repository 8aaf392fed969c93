package result

import (
	"slices"
	"strings"
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

// Where a gap is of several tokens, every place that shows an ITL says of how many, and the
// gap by token stands beside it.
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
		block := Block(s, Style{})
		for _, want := range []string{
			"Inter-token Latency (" + say + ")-", "\nMean ITL (ms):                           160.00\n",
			"Inter-token Latency per Token-", "\nMean ITL per token (ms):                 20.00\n",
		} {
			if !strings.Contains(block, want) {
				t.Errorf("no %q in\n%s", want, block)
			}
		}
		if got := Precision(s, Style{}); !strings.Contains(got, "Mean ITL, "+say+" ") || !strings.Contains(got, "Mean ITL per token ") {
			t.Errorf("the precision does not say what the gaps are of:\n%s", got)
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
	if got := Label(m, &s); got != "P99 ITL (ms)" || s.PerEvent() != "" || strings.Contains(Block(s, Style{}), "(per") {
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

// A block's lines keep the labels that tools look for, and a figure that is open has what
// it can be in lines of its own.
func TestBlockSaysWhatIsOpen(t *testing.T) {
	s := Summary{
		Figures: map[string]float64{"mean_itl_ms": 20, "p99_itl_ms": 82.4, "p99_e2el_ms": 1100},
		Bounds:  map[string][2]float64{"p99_itl_ms": {42.31, 90}, "mean_itl_ms": {19.9, 20.1}, "p99_e2el_ms": {1000, 1100}},
	}
	block := Block(s, Style{})
	if want := "P99 ITL (ms):                            82.40\nP99 ITL at least (ms):                   42.31\nP99 ITL at most (ms):                    90.00\n"; !strings.Contains(block, want) {
		t.Errorf("no\n%s in\n%s", want, block)
	}
	if strings.Contains(block, "Mean ITL at") {
		t.Errorf("a mean that is off by 0.5 %% at most is said to be open:\n%s", block)
	}
	if got := Block(s, Style{Layout: GPUStack}); !strings.Contains(got, "P99 Latency(s):                           1.10\nP99 Latency at least (s):                 1.00\n") {
		t.Errorf("seconds:\n%s", got)
	}
	if got := Precision(Summary{Figures: s.Figures, Bounds: s.Bounds, Samples: map[string]int{"itl": 10}}, Style{}); !strings.Contains(got, ", late reads leave it open from 42.31 to 90.00\n") {
		t.Errorf("precision:\n%s", got)
	}
}
