package timebins

import (
	"bufio"
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// call is one of a run, with its tokens.
type call struct {
	sent, end time.Duration
	tokens    []time.Duration
}

// run makes calls of some seconds and their course.
func run(seed uint64, n int, start, gap time.Duration) ([]call, *Course) {
	rng := rand.New(rand.NewPCG(seed, 1))
	after := func(mean time.Duration) time.Duration { return time.Duration(rng.ExpFloat64() * float64(mean)) }
	c := New(start)
	var calls []call
	at := start
	for range n {
		at += after(gap)
		k := call{sent: at, end: at + after(20*gap)}
		for stamp := k.sent; stamp < k.end; stamp += 1 + after(gap) {
			k.tokens = append(k.tokens, stamp)
			c.AddTokens(stamp, 2)
		}
		b := c.Bin(k.sent)
		b.Sent++
		b.Due++
		b.Spent.Add(Spent{Server: k.end - k.sent})
		c.Bin(k.end).Ended++
		c.Bin(k.end).Took += k.end - k.sent
		calls = append(calls, k)
	}
	return calls, c
}

// What a course answers is what the calls say, but for what it says that it leaves open.
func TestCourse(t *testing.T) {
	for seed := range uint64(5) {
		const gap = 7 * time.Millisecond
		start := time.Duration(seed) * 123456789
		calls, c := run(seed, 3000, start, gap)
		var sent, end, tokens []time.Duration
		for _, k := range calls {
			sent, end, tokens = append(sent, k.sent), append(end, k.end), append(tokens, k.tokens...)
		}
		slices.Sort(tokens)
		slices.Sort(end)
		from, to := start+3*time.Second+123, start+9*time.Second+456
		inside := func(all []time.Duration) (n float64) {
			for _, at := range all {
				if from < at && at <= to {
					n++
				}
			}
			return n
		}
		if n, edges := c.Tokens(from, to); edges <= 0 || edges > 100 || math.Abs(n-2*inside(tokens)) > edges {
			t.Errorf("seed %d: %v tokens, %v at the edges, counted %v", seed, n, edges, 2*inside(tokens))
		}
		if n, _, edges := c.Ended(from, to); edges > 20 || math.Abs(n-inside(end)) > edges+1 {
			t.Errorf("seed %d: %v ended, %v at the edges, counted %v", seed, n, edges, inside(end))
		}
		if got := c.Quantile(len(end), func(b Bin) uint32 { return b.Ended }, 0.9); math.Abs(got-end[len(end)*9/10].Seconds()) > 0.02 {
			t.Errorf("seed %d: 90 %% had ended at %v s, counted %v", seed, got, end[len(end)*9/10])
		}

		peak := 0.0
		for i, j := 0, 0; i < len(tokens); i++ {
			for ; tokens[j] <= tokens[i]-time.Second; j++ {
			}
			peak = max(peak, 2*float64(i-j+1))
		}
		if least, most := c.Peak(); least > peak || peak > most || most-least > 100 {
			t.Errorf("seed %d: peak %v is not from %v to %v", seed, peak, least, most)
		}
		open, reach := 0.0, 0.0
		for i, j := 0, 0; i < len(sent); i++ {
			for ; end[j] <= sent[i]; j++ {
				open--
			}
			open++
			reach = max(reach, open)
		}
		if least, most := c.MaxInFlight(); least > reach || reach > most {
			t.Errorf("seed %d: %v in flight is not from %v to %v", seed, reach, least, most)
		}
		mean := 0.0
		for _, k := range calls {
			mean += float64(max(0, min(k.end, to)-max(k.sent, from))) / float64(to-from)
		}
		if got := c.MeanInFlight(from, to); math.Abs(got-mean) > 0.02*mean {
			t.Errorf("seed %d: %v in flight on average, counted %v", seed, got, mean)
		}
		if spent, n := c.Thirds(); n[0]+n[1]+n[2] != len(calls) || n[0] < 900 || n[1] < 900 || n[2] < 900 || spent[0].Server == 0 || spent[0].Late != 0 {
			t.Errorf("seed %d: thirds of %v calls spent %v", seed, n, spent)
		}
	}
}

// A run that outgrows its bins has wider ones, in which all is that was counted.
func TestWiderBins(t *testing.T) {
	const most = 1000
	c := New(0)
	for i := range 1001 {
		at := time.Duration(i) * 70 * time.Millisecond
		c.bin(at, most).Sent++
		c.addTokens(at, 1, most)
	}
	if c.Coarse >= coarseBins || c.Fine >= fineBins || len(c.Bins) > most+1 || len(c.Output) > most+1 || time.Second%time.Duration(c.Coarse) != 0 {
		t.Errorf("%d and %d bins of %d and %d a second", len(c.Bins), len(c.Output), c.Coarse, c.Fine)
	}
	sent := 0
	for _, b := range c.Bins {
		sent += int(b.Sent)
	}
	if n, _ := c.Tokens(-1, time.Hour); sent != 1001 || n != 1001 || c.Sum != 1001 {
		t.Errorf("%d sendings and %v tokens (%v) of 1001", sent, n, c.Sum)
	}
}

// Full load begins and ends at ends of bins, and what is within a bin is said.
func TestFull(t *testing.T) {
	c := New(0)
	const ms = time.Millisecond
	for _, b := range []struct {
		at   time.Duration
		sent uint32
		end  uint32
	}{{100 * ms, 2, 0}, {200 * ms, 2, 0}, {900 * ms, 0, 1}, {2000 * ms, 0, 3}} {
		bin := c.Bin(b.at)
		bin.Sent, bin.Ended = b.sent, b.end
	}
	from, to, more, ok := c.Full(4)
	if !ok || from < 200*ms || from > 220*ms || to < 880*ms || to > 900*ms || more <= 0 || more > 40*ms {
		t.Errorf("full from %v to %v, by %v longer, %v", from, to, more, ok)
	}
	if _, _, _, ok := c.Full(5); ok {
		t.Error("five were never in flight")
	}
}

func TestListsRoundTrip(t *testing.T) {
	_, c := run(3, 500, time.Second, time.Millisecond)
	var b bytes.Buffer
	w := bufio.NewWriterSize(&b, 4096)
	c.WriteLists(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	again, tokens, bins := c.Bare()
	if err := again.ReadLists(bytes.NewReader(b.Bytes()), tokens, bins); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, &again); diff != "" {
		t.Error(diff)
	}
	if err := again.ReadLists(bytes.NewReader(b.Bytes()[:b.Len()-1]), tokens, bins); err == nil {
		t.Error("lists that were cut off are read")
	}
	if err := again.ReadLists(&b, -1, bins); err == nil {
		t.Error("a list of -1 bins is read")
	}
}
