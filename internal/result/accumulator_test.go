package result

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/stat"
)

// randomCalls are the calls of a run as they end: streams of different lengths and
// shapes, failed calls among them.
func randomCalls(seed uint64, n int) []Call {
	rng := stat.Stream(seed, "accumulated calls")
	packed, usage := rng.IntN(3) == 0, rng.IntN(4) > 0
	calls := make([]Call, n)
	at := time.Duration(0)
	for i := range calls {
		at += time.Duration(rng.ExpFloat64() * 1e6 * 20)
		calls[i] = randomCall(rng, i, at, packed, usage)
	}
	slices.SortFunc(calls, func(a, b Call) int { return int(a.End - b.End) })
	return calls
}

func randomCall(rng *rand.Rand, i int, due time.Duration, packed, usage bool) Call {
	after := func(mean float64) time.Duration { return time.Duration(mean * rng.ExpFloat64() * 1e6) }
	c := Call{Index: i, Target: i % 2, Due: due, WantIn: 10 + rng.IntN(500), Want: 1 + rng.IntN(60)}
	c.Ready = c.Due + after(1)
	c.Turn = c.Index % 8 / 7 // some are later turns of conversations
	c.Sent = c.Ready + after(0.1)
	if rng.IntN(10) == 0 {
		c.New, c.Dial = true, min(after(0.05), c.Sent-c.Ready)
	}
	if rng.IntN(20) == 0 {
		c.Class, c.Error, c.End = HTTPStatus, "busy", c.Sent+after(5)
		return c
	}
	c.Wrote = c.Sent + 1000
	c.First = c.Sent + after(20)
	c.Headers = c.First
	stamp, read, n := c.First+after(30), int32(1), 0
	atEnd := packed && usage && i%2 == 0 // usage alone counts several tokens a chunk
	for range c.Want {
		tokens := int32(1)
		if packed {
			tokens = int32(1 + rng.IntN(4))
		}
		n += int(tokens)
		if c.StreamText += 4 * int(tokens); c.FirstText == 0 {
			c.FirstText = c.StreamText
		}
		if atEnd {
			tokens = 1
		}
		c.Chunks = append(c.Chunks, Chunk{At: stamp, Tokens: tokens, Read: read})
		if rng.IntN(15) > 0 {
			stamp, read = stamp+1000+after(12), read+1
		}
	}
	if rng.IntN(3) == 0 {
		c.Answer = c.Chunks[len(c.Chunks)/2].At
	}
	c.Reads = int(read) + 1
	c.End = stamp + after(0.3)
	if usage {
		c.Usage = &Usage{Prompt: c.WantIn + 3, Completion: n, Cached: rng.IntN(5)}
		if i%3 == 0 {
			c.Speculation = randomSpeculation(i)
		}
	}
	return c
}

// accumulated are the figures of calls under limits.
func accumulated(t testing.TB, h Header, o Options, l Limits, calls []Call) *Analysis {
	t.Helper()
	acc, err := NewLimited(h, o, l)
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		acc.Add(&calls[i])
	}
	a, err := acc.Analyze(&Client{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// off is by what share two figures differ.
func off(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / max(math.Abs(got), math.Abs(want))
}

// TestAccumulatorBounds: a run of which not everything is kept has the figures that
// it has when everything is, each off by its bound at most, and no others.
func TestAccumulatorBounds(t *testing.T) {
	slos, err := ParseGoodput("ttft:60 tpot:14")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Goodput: slos, Percentiles: []float64{1, 75, 99.9}}
	for seed := range uint64(4) {
		calls := randomCalls(seed, 2000)
		h := Header{Requests: len(calls), Limit: []int{0, 8}[seed%2]}
		for _, compat := range []string{"", VLLM} {
			o.Compat = compat
			whole := accumulated(t, h, o, DefaultLimits(), calls)
			for name, l := range map[string]Limits{"rows": {Bytes: 200_000, Some: 100_000, Rows: 1e6}, "bins": {Bytes: 200_000, Some: 100_000, Rows: 700}} {
				t.Run(fmt.Sprintf("%d %s %s", seed, name, compat), func(t *testing.T) {
					a := accumulated(t, h, o, l, calls)
					if a.Every < 2 || a.large == nil || (a.rows == nil) != (name == "bins") {
						t.Fatalf("one in %d is kept, rows %v", a.Every, a.rows != nil)
					}
					sameFigures(t, a.Summary(), whole.Summary(), name == "rows")
					samePace(t, a.Pace(), whole.Pace(), name == "rows")
				})
			}
		}
	}
}

func samePace(t *testing.T, got, want Pace, exact bool) {
	t.Helper()
	bound := 0.01
	if exact {
		bound = 0
	}
	for _, p := range [][2]float64{{got.DueSpan, want.DueSpan}, {got.EndSpan, want.EndSpan}, {got.First.Total(), want.First.Total()},
		{got.Middle.Total(), want.Middle.Total()}, {got.Last.Server, want.Last.Server}, {got.Last.Waiting, want.Last.Waiting}, {got.Last.Total(), want.Last.Total()}, {float64(got.Calls), float64(want.Calls)}} {
		if off(p[0], p[1]) > bound {
			t.Errorf("pace %+v, of all calls %+v", got, want)
		}
	}
}

func sameFigures(t *testing.T, got, want Summary, rows bool) {
	t.Helper()
	const rounding = 1e-9 // of sums in another order
	for name, w := range want.Figures {
		v, ok := got.Figures[name]
		bound := got.Approximate[name]
		if d := off(v, w); !ok || d > bound+rounding {
			t.Errorf("%s is %v (%v), of all calls %v: %.3g apart, %.3g allowed", name, v, ok, w, d, bound)
		}
		if m, err := Lookup(name); rows && bound > 0 && err == nil && m.Family != "" && !strings.HasPrefix(m.Family, familyITL) && got.Compat == "" {
			t.Errorf("%s is approximate though there are rows", name)
		}
	}
	for name := range got.Figures {
		if _, ok := want.Figures[name]; !ok {
			t.Errorf("%s is there, and not of all calls", name)
		}
	}
	if !sameCounts(got.Samples, want.Samples) {
		t.Errorf("samples %v, of all calls %v", got.Samples, want.Samples)
	}
	for name, w := range want.Intervals {
		v, ok := got.Intervals[name]
		width := w[1] - w[0]
		if !ok || math.Abs(v[0]-w[0]) > 0.35*width+1e-3*math.Abs(w[0]) || math.Abs(v[1]-w[1]) > 0.35*width+1e-3*math.Abs(w[1]) {
			t.Errorf("interval of %s %v (%v), of all calls %v", name, v, ok, w)
		}
	}
}

func sameCounts(a, b map[string]int) bool {
	if len(a) != len(b) {
		return false
	}
	for k, n := range a {
		if b[k] != n {
			return false
		}
	}
	return true
}

// TestApproximateIsSaid: a figure that is not exact says so in the summary's JSON.
func TestApproximateIsSaid(t *testing.T) {
	calls := randomCalls(1, 1500)
	s := accumulated(t, Header{Requests: len(calls)}, Options{}, Limits{Bytes: 100_000, Some: 50_000, Rows: 700}, calls).Summary()
	b, err := json.Marshal(s)
	var back Summary
	if err != nil || json.Unmarshal(b, &back) != nil || back.Approximate["p99_itl_ms"] != stat.SketchError {
		t.Errorf("%s, %v", b, err)
	}
}
