package workload

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// longSpec is a spec of a day at 1,000 requests/s.
func longSpec(arrival string) Spec {
	return Spec{Dataset: "random", RandomInputLen: 32, RandomOutputLen: 16, RandomRangeRatio: 0.5, Rate: 1000, Arrival: arrival}
}

// TestLong: a day of requests is drawn on the way, in its order and in its time, and takes
// no memory by their number.
func TestLong(t *testing.T) {
	for _, arrival := range []string{"constant", "poisson"} {
		for name, bound := range map[string]func(*Spec){
			"number": func(s *Spec) { s.NumPrompts = 20_000_000 },
			"time":   func(s *Spec) { s.Duration = "20000s" },
		} {
			t.Run(arrival+" "+name, func(t *testing.T) {
				s := longSpec(arrival)
				bound(&s)
				w, err := Open(s)
				if err != nil {
					t.Fatal(err)
				}
				totals := w.Totals()
				if n := w.Len(); math.Abs(float64(n)-2e7) > 2e4 || totals.Requests != n || math.Abs(totals.Span.Seconds()-20000) > 1 {
					t.Errorf("%d requests in %v", n, totals.Span)
				}
				if mean := float64(totals.Output) / float64(w.Len()); math.Abs(mean-16) > 0.1 {
					t.Errorf("%g output tokens on average", mean)
				}
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				if m.HeapAlloc > 200<<20 {
					t.Errorf("%d MB are held", m.HeapAlloc>>20)
				}
				last, seen := time.Duration(0), map[string]bool{}
				for r := range w.All() {
					if r.Due < last || seen[r.Prompt] || r.Input < 16 {
						t.Fatalf("request %d is due at %v after %v, its prompt %d tokens", r.Index, r.Due, last, r.Input)
					}
					if last, seen[r.Prompt] = r.Due, true; r.Index == 2000 {
						break
					}
				}
				if math.Abs(last.Seconds()-2) > 0.3 {
					t.Errorf("request 2000 is due at %v", last)
				}
			})
		}
	}
}

// TestLongPrompts: where lengths come again, prompts do not.
func TestLongPrompts(t *testing.T) {
	s := longSpec("constant")
	s.NumPrompts = 11_000_000
	w, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	a, b := w.request(5), w.request(5+longRows)
	if a.Input != b.Input || a.Output != b.Output || a.Prompt == b.Prompt {
		t.Errorf("%d and %d tokens, the same prompt %v", a.Input, b.Input, a.Prompt == b.Prompt)
	}
	s.NumPrompts = maxLong + 1
	if _, err := Open(s); err == nil {
		t.Error("more than the limit was taken")
	}
}

// TestLongSchedule: due times that are drawn on the way are those of a schedule that is
// held.
func TestLongSchedule(t *testing.T) {
	for _, arrival := range []string{"constant", "poisson", "gamma"} {
		s := longSpec(arrival)
		s.Burstiness = 2
		s = s.Defaults()
		l := &long{spec: s, n: 1000, scale: 1e-3}
		sum := 0.0
		for at := range l.seconds() {
			sum = at
		}
		if arrival != "constant" {
			l.scale *= 1 / sum
		}
		want, err := schedule(s, make([]row, 1000))
		if err != nil {
			t.Fatal(err)
		}
		var got []time.Duration
		for _, at := range l.due() {
			got = append(got, at)
		}
		if !slices.EqualFunc(got, want, func(a, b time.Duration) bool { return (a - b).Abs() <= 1000 }) {
			t.Errorf("%s: %v..., held %v...", arrival, got[:5], want[:5])
		}
	}
}

// TestLongShards: of a workload that is drawn on the way the shards are the whole too.
func TestLongShards(t *testing.T) {
	s := longSpec("poisson")
	s.NumPrompts = maxRequests + 5
	w, err := Open(s)
	if err != nil || w.long == nil {
		t.Fatal(err)
	}
	take := func(i, n, count int) (out []Request) {
		for r := range w.Shard(i, n) {
			if out = append(out, r); len(out) == count {
				break
			}
		}
		return out
	}
	all := take(0, 1, 70)
	for n := 1; n <= 7; n++ {
		var union []Request
		requests := 0
		for i := range n {
			requests += w.ShardLen(i, n)
			union = append(union, take(i, n, 70/n)...)
		}
		slices.SortFunc(union, func(a, b Request) int { return a.Index - b.Index })
		if requests != w.Len() || w.MostShards() != w.Len() {
			t.Errorf("%d shards have %d of %d requests", n, requests, w.Len())
		}
		if d := cmp.Diff(all[:len(union)], union); d != "" {
			t.Errorf("%d shards: -whole +union\n%s", n, d)
		}
	}
}
