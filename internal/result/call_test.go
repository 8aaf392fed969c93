package result

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"perflab/internal/stat"
)

const msec = time.Millisecond

// stream returns a call sent at sent whose chunks of one token come at the
// given times after it; the stream ends 1 ms after the last.
func stream(index int, sent time.Duration, at ...time.Duration) Call {
	c := Call{Index: index, Due: sent, Ready: sent, Sent: sent, WantIn: 10, Usage: &Usage{Prompt: 10, Completion: len(at)}}
	for _, t := range at {
		c.Chunks = append(c.Chunks, Chunk{At: sent + t, Tokens: 1})
	}
	c.End = sent + at[len(at)-1] + msec
	return c
}

// steady returns n calls, one each gap, of 2 to 20 tokens, TTFT 40 to 60 ms
// and 9 to 11 ms between tokens.
func steady(n int, gap time.Duration) []Call {
	rng := stat.Stream(1, "calls")
	calls := make([]Call, n)
	for i := range calls {
		at := 40*msec + time.Duration(rng.Int64N(int64(20*msec)))
		stamps := []time.Duration{at}
		for range 1 + rng.IntN(19) {
			at += 9*msec + time.Duration(rng.Int64N(int64(2*msec)))
			stamps = append(stamps, at)
		}
		calls[i] = stream(i, time.Duration(i)*gap, stamps...)
	}
	return calls
}

// fail turns a call into a failed one.
func fail(c Call, class Class) Call {
	c.Class, c.Error, c.Chunks, c.Usage = class, "it broke", nil, nil
	return c
}

func shuffled(calls []Call) []Call {
	calls = append([]Call(nil), calls...)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	return calls
}

func TestCallFigures(t *testing.T) {
	type want struct {
		ttft, e2e time.Duration
		tpot      float64 // ns
		tpotOK    bool
		n         int
		from      Source
	}
	for _, test := range []struct {
		name string
		call Call
		want want
	}{
		{"one token a chunk", stream(0, 100*msec, 50*msec, 60*msec, 80*msec),
			want{50 * msec, 80 * msec, 15e6, true, 3, FromUsage}},
		{"one token", stream(0, 0, 50*msec),
			want{50 * msec, 50 * msec, 0, false, 1, FromUsage}},
		{"usage counts more than chunks", func() Call {
			c := stream(0, 0, 50*msec, 110*msec)
			c.Usage.Completion = 7
			return c
		}(), want{50 * msec, 110 * msec, 10e6, true, 7, FromUsage}},
		{"four of seven tokens in the first chunk, by its text", func() Call {
			c := stream(0, 0, 50*msec, 110*msec)
			c.Usage.Completion, c.FirstText, c.StreamText = 7, 19, 33
			return c
		}(), want{50 * msec, 110 * msec, 20e6, true, 7, FromUsage}},
		{"one of seven tokens in the first chunk, by its text", func() Call {
			c := stream(0, 0, 50*msec, 110*msec)
			c.Usage.Completion, c.FirstText, c.StreamText = 7, 5, 33
			return c
		}(), want{50 * msec, 110 * msec, 10e6, true, 7, FromUsage}},
		{"eight tokens a chunk, the last of two", func() Call {
			c := stream(0, 0, 50*msec, 210*msec, 370*msec, 410*msec)
			c.Usage.Completion, c.FirstText, c.StreamText = 26, 40, 130
			return c
		}(), want{50 * msec, 410 * msec, 360e6 / 19, true, 26, FromUsage}},
		{"a first chunk of long text, and one token more than chunks", func() Call {
			c := stream(0, 0, 50*msec, 60*msec, 80*msec)
			c.Usage.Completion, c.FirstText, c.StreamText = 4, 20, 30
			return c
		}(), want{50 * msec, 80 * msec, 10e6, true, 4, FromUsage}},
		{"three tokens in the first chunk", func() Call {
			c := stream(0, 0, 50*msec, 110*msec)
			c.Chunks[0].Tokens, c.Usage.Completion = 3, 5
			return c
		}(), want{50 * msec, 110 * msec, 30e6, true, 5, FromUsage}},
		{"three chunks in the first read", stream(0, 0, 50*msec, 50*msec, 50*msec, 70*msec, 90*msec),
			want{50 * msec, 90 * msec, 20e6, true, 5, FromUsage}},
		{"all in one read", stream(0, 0, 50*msec, 50*msec, 50*msec),
			want{50 * msec, 50 * msec, 0, false, 3, FromUsage}},
		{"hidden tokens in one chunk", func() Call {
			c := stream(0, 0, 50*msec)
			c.Usage.Completion = 281
			return c
		}(), want{50 * msec, 50 * msec, 0, false, 281, FromUsage}},
		{"usage without a completion count", func() Call {
			c := stream(0, 0, 50*msec, 60*msec)
			c.Usage.Completion = 0
			return c
		}(), want{50 * msec, 60 * msec, 10e6, true, 2, FromChunks}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got want
			got.ttft, _ = test.call.TTFT()
			got.e2e, _ = test.call.E2E()
			got.tpot, got.tpotOK = test.call.TPOT()
			got.n, got.from = test.call.Output()
			if got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestCallWithoutTokens(t *testing.T) {
	c := Call{WantIn: 7}
	if _, ok := c.TTFT(); ok {
		t.Error("TTFT of a call without tokens is defined")
	}
	if _, ok := c.E2E(); ok {
		t.Error("E2E of a call without tokens is defined")
	}
	if n, from := c.Input(); n != 7 || from != FromWorkload {
		t.Errorf("Input = %d by %s, want 7 by workload", n, from)
	}
	c.Usage = &Usage{Prompt: 9}
	if n, from := c.Input(); n != 9 || from != FromUsage {
		t.Errorf("Input = %d by %s, want 9 by usage", n, from)
	}
}

func TestLag(t *testing.T) {
	c := Call{Due: 10 * msec, Ready: 30 * msec, Sent: 31 * msec}
	if got := c.Lag(4); got != 1*msec {
		t.Errorf("with a limit the lag is %v, want 1ms: the wait is the limit's", got)
	}
	if got := c.Lag(0); got != 21*msec {
		t.Errorf("without a limit the lag is %v, want 21ms: nothing else held it", got)
	}
}

func TestIdentityHolds(t *testing.T) {
	for _, c := range steady(500, 0) {
		tpot, ok := c.TPOT()
		if !ok {
			continue
		}
		ttft, _ := c.TTFT()
		e2e, _ := c.E2E()
		n, _ := c.Output()
		if d := float64(ttft) + tpot*float64(n-1) - float64(e2e); math.Abs(d) > 1e3 {
			t.Errorf("call %d: TTFT + TPOT*(n-1) - E2E = %v ns", c.Index, d)
		}
	}
}
