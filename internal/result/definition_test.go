package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/stat"
)

// reckon computes every figure of docs/metrics.md once more, by its formula
// and without care for time: what Summarize does must be the same.
type reckon struct {
	limit int
	f     map[string]float64
	good  []*Call
}

func reckoned(h Header, bounds []SLO, percentiles []float64, calls []Call) map[string]float64 {
	k := &reckon{limit: h.Limit, f: map[string]float64{}}
	for i := range calls {
		if calls[i].Class == "" {
			k.good = append(k.good, &calls[i])
		}
	}
	if h.Limit > 0 {
		k.f["max_concurrency"] = float64(h.Limit)
	}
	if h.Rate > 0 {
		k.f["request_rate"] = h.Rate
	}
	k.f["completed"], k.f["failed"] = float64(len(k.good)), float64(len(calls)-len(k.good))
	if len(calls) == 0 {
		return k.f
	}
	k.totals(calls, bounds)
	if len(k.good) > 0 {
		k.windows(calls)
	}
	k.families(percentiles)
	return k.f
}

// output is n.
func output(c *Call) float64 {
	counted := 0
	for _, x := range c.Chunks {
		counted += int(x.Tokens)
	}
	switch {
	case c.Usage != nil && c.Usage.Completion > 0:
		return float64(c.Usage.Completion)
	case c.Recount > 0:
		return float64(c.Recount)
	}
	return float64(counted)
}

func input(c *Call) float64 {
	if c.Usage != nil && c.Usage.Prompt > 0 {
		return float64(c.Usage.Prompt)
	}
	return float64(c.WantIn)
}

// tokensOf are the tokens of each chunk, which sum to n: those counted in the stream
// where these do; else the first one's as docs/metrics.md has them, and the others in
// proportion to what was counted.
func tokensOf(c *Call) []float64 {
	n, counted := output(c), 0.0
	out := make([]float64, len(c.Chunks))
	for i, x := range c.Chunks {
		out[i] = float64(x.Tokens)
		counted += out[i]
	}
	one := out[0]
	switch {
	case len(out) == 1:
		out[0] = n
		return out
	case n <= counted:
		out[0] = one * n / counted
	case c.StreamText > 0 && n+1 >= 2*counted && n*float64(c.FirstText)/float64(c.StreamText) > one*math.Sqrt(n/counted):
		out[0] = math.Ceil(one * n / counted)
	}
	for i := 1; i < len(out); i++ {
		out[i] *= (n - out[0]) / (counted - one)
	}
	return out
}

// reads are the reads that brought tokens, with what they brought.
func reads(c *Call) (out []Chunk) {
	for i, x := range c.Chunks {
		if i > 0 {
			last := &out[len(out)-1]
			if before := c.Chunks[i-1]; x.At == before.At || c.Reads > 0 && x.Read == before.Read {
				last.Tokens += x.Tokens
				continue
			}
		}
		out = append(out, x)
	}
	return out
}

// brought are the tokens of each read.
func brought(c *Call) (out []float64) {
	all := tokensOf(c)
	for _, r := range reads(c) {
		n := 0.0
		for counted := int32(0); counted < r.Tokens; all = all[1:] {
			n += all[0]
			counted += c.Chunks[len(c.Chunks)-len(all)].Tokens
		}
		out = append(out, n)
	}
	return out
}

func (k *reckon) totals(calls []Call, bounds []SLO) {
	from, to, lastSent := time.Duration(math.MaxInt64), time.Duration(0), time.Duration(0)
	for _, c := range calls {
		from = min(from, c.Due)
		if c.Class == "" {
			from = min(from, c.Sent)
		}
		to, lastSent = max(to, c.End), max(lastSent, c.Sent)
	}
	d := (to - from).Seconds()
	n, p, cached, opened, chunks, merged, met, told := 0.0, 0.0, 0, 0, 0, 0, 0, false
	for _, c := range k.good {
		n, p = n+output(c), p+input(c)
		chunks, merged = chunks+len(c.Chunks), merged+len(c.Chunks)-len(reads(c))
		if c.Usage != nil {
			cached += c.Usage.Cached
		}
		told = told || c.New || c.Wrote > 0
		if c.New {
			opened++
		}
		ok := true
		for _, b := range bounds {
			v, has := map[string]func() (float64, bool){
				"ttft_ms": func() (float64, bool) { return sample("ttft", c, k.limit) },
				"e2el_ms": func() (float64, bool) { return sample("e2el", c, k.limit) },
				"tpot_ms": func() (float64, bool) {
					if output(c) == 1 {
						return 0, true
					}
					return sample("tpot", c, k.limit)
				},
			}[b.Metric]()
			ok = ok && has && v <= b.Limit
		}
		if ok {
			met++
		}
	}
	put := func(name string, v float64, there bool) {
		if there {
			k.f[name] = v
		}
	}
	any := len(k.good) > 0
	put("duration", d, true)
	put("drain_s", (to - lastSent).Seconds(), true)
	put("success_rate", float64(len(k.good))/float64(len(calls)), true)
	put("goodput_ratio", float64(met)/float64(len(calls)), len(bounds) > 0)
	put("request_goodput", float64(met)/d, len(bounds) > 0 && any && d > 0)
	put("total_input_tokens", p, any)
	put("total_output_tokens", n, any)
	put("request_throughput", float64(len(k.good))/d, any && d > 0)
	put("output_throughput", n/d, any && d > 0)
	put("total_token_throughput", (n+p)/d, any && d > 0)
	put("total_cached_tokens", float64(cached), cached > 0)
	put("cached_token_ratio", float64(cached)/p, cached > 0 && p > 0)
	put("new_connections", float64(opened), told)
	put("tokens_per_chunk", n/float64(chunks), chunks > 0)
	put("tokens_per_read", n/float64(chunks-merged), chunks > 0)
	put("merged_chunks", float64(merged), any)
	put("max_output_tokens_per_s", max(k.busiest(), n/d), any && d > 0)
}

// token is a chunk's share of its call's n.
type token struct {
	at time.Duration
	n  float64
}

func (k *reckon) tokens() (out []token) {
	for _, c := range k.good {
		for i, n := range tokensOf(c) {
			out = append(out, token{c.Chunks[i].At, n})
		}
	}
	return out
}

func (k *reckon) busiest() (most float64) {
	all := k.tokens()
	for _, t := range all {
		sum := 0.0
		for _, x := range all {
			if t.at-time.Second < x.at && x.at <= t.at {
				sum += x.n
			}
		}
		most = max(most, sum)
	}
	return most
}

func (k *reckon) windows(calls []Call) {
	from, to := k.good[0].End, k.good[0].Sent
	most := 0
	for _, c := range k.good {
		from, to = min(from, c.End), max(to, c.Sent)
		open := 0
		for _, x := range k.good {
			if x.Sent <= c.Sent && c.Sent < x.End {
				open++
			}
		}
		most = max(most, open)
	}
	k.f["max_concurrent_requests"] = float64(most)
	k.window("steady", from, to)
	if k.limit == 0 {
		return
	}
	// Instants at which the number in flight may change.
	var at []time.Duration
	begin := func(c *Call) time.Duration {
		if c.Class != "" {
			return max(c.Sent, c.Ready)
		}
		return c.Sent
	}
	for i := range calls {
		at = append(at, begin(&calls[i]), calls[i].End)
	}
	slices.Sort(at)
	from, to = -1, -1
	full := false
	for _, t := range at {
		open := 0
		for i := range calls {
			if c := &calls[i]; begin(c) <= t && t < c.End {
				open++
			}
		}
		was := full
		full = float64(open) >= 0.95*float64(k.limit)
		if full && from < 0 {
			from = t
		}
		if was && !full {
			to = t
		}
	}
	k.window("full_load", from, to)
}

func (k *reckon) window(name string, from, to time.Duration) {
	in := func(t time.Duration) bool { return from < t && t <= to }
	ends, n, p := 0, 0.0, 0.0
	for _, c := range k.good {
		if in(c.End) {
			ends++
		}
		if in(c.Chunks[0].At) {
			p += input(c)
		}
	}
	for _, t := range k.tokens() {
		if in(t.at) {
			n += t.n
		}
	}
	if ends < 10 {
		return
	}
	w := (to - from).Seconds()
	k.f[name+"_duration"], k.f[name+"_request_throughput"] = w, float64(ends)/w
	k.f[name+"_output_throughput"], k.f[name+"_total_token_throughput"] = n/w, (n+p)/w
	if name != "steady" {
		return
	}
	for _, family := range []string{"ttft", "tpot", "e2el"} {
		k.f["?steady_"+family] = 1 // for families: of the calls sent in the window
	}
	for i, c := range k.good {
		if in(c.Sent) {
			k.f[fmt.Sprint("?sent ", i)] = 1
		}
	}
}

// sample is a call's figure in ms.
func sample(family string, c *Call, limit int) (float64, bool) {
	r := reads(c)
	first, last := r[0].At, r[len(r)-1].At
	millis := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	switch family {
	case "ttft":
		return millis(first - c.Sent), true
	case "ttft_due":
		return millis(first - c.Due), true
	case "e2el":
		return millis(last - c.Sent), true
	case "e2el_due":
		return millis(last - c.Due), true
	case "tpot":
		k := max(1, math.Round(brought(c)[0]))
		return millis(last-first) / (output(c) - k), len(r) > 1 && output(c) > k
	case "ttfa":
		return millis(c.Answer - c.Sent), c.Answer > 0
	case "ttfa_due":
		return millis(c.Answer - c.Due), c.Answer > 0
	case "ttfb":
		return millis(c.First - c.Sent), c.First > 0
	case "headers":
		return millis(c.Headers - c.Sent), c.Headers > 0
	case "connect":
		return millis(c.Dial), c.New
	case "stream":
		return millis(c.End - c.Sent), true
	case "stream_due":
		return millis(c.End - c.Due), true
	case "queue":
		return millis(c.Ready - c.Due), limit > 0
	case "dispatch_lag":
		if limit > 0 {
			return millis(c.Sent - c.Dial - max(c.Due, c.Ready)), true
		}
		return millis(c.Sent - c.Dial - c.Due), true
	}
	panic(family)
}

func (k *reckon) families(percentiles []float64) {
	pools := map[string][]float64{}
	for i, c := range k.good {
		for _, name := range []string{"ttft", "ttft_due", "e2el", "e2el_due", "tpot", "ttfa", "ttfa_due", "ttfb", "headers", "connect", "stream", "stream_due", "queue", "dispatch_lag"} {
			v, ok := sample(name, c, k.limit)
			if !ok {
				continue
			}
			pools[name] = append(pools[name], v)
			if k.f["?steady_"+name] == 1 && k.f[fmt.Sprint("?sent ", i)] == 1 {
				pools["steady_"+name] = append(pools["steady_"+name], v)
			}
		}
		r, n := reads(c), brought(c)
		for j := 1; j < len(r); j++ {
			gap := (r[j].At - r[j-1].At).Seconds() * 1e3
			pools["itl"] = append(pools["itl"], gap)
			for range r[j].Tokens {
				pools["itl_token"] = append(pools["itl_token"], gap/n[j])
			}
		}
	}
	maps.DeleteFunc(k.f, func(name string, _ float64) bool { return name[0] == '?' })
	for name, x := range pools {
		slices.Sort(x)
		n, sum, squares := float64(len(x)), 0.0, 0.0
		for _, v := range x {
			sum += v
		}
		for _, v := range x {
			squares += (v - sum/n) * (v - sum/n)
		}
		at := func(p float64) float64 {
			h := (n - 1) * p / 100
			lo, hi := x[int(math.Floor(h))], x[int(math.Ceil(h))]
			return lo + (h-math.Floor(h))*(hi-lo)
		}
		set := func(stat string, v float64) { k.f[stat+"_"+name+"_ms"] = v }
		set("mean", sum/n)
		set("std", math.Sqrt(squares/n))
		set("min", x[0])
		set("max", x[len(x)-1])
		set("median", at(50))
		for _, p := range percentiles {
			set(fmt.Sprintf("p%g", p), at(p))
		}
	}
}

// odd is a run of all sorts of calls.
func odd(rng *rand.Rand, n, limit int) []Call {
	calls := make([]Call, n)
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d) + 1)) }
	for i := range calls {
		c := &calls[i]
		*c = Call{Index: i, Due: upTo(2 * time.Second), WantIn: 1 + rng.IntN(50)}
		if rng.IntN(4) == 0 {
			c.Due = 0
		}
		c.Ready = c.Due
		if limit > 0 {
			c.Ready += upTo(30 * msec)
		}
		if c.New = rng.IntN(3) == 0; c.New {
			c.Dial = 1 + upTo(msec)
		}
		c.Sent = c.Ready + c.Dial + upTo(msec/2)
		at, read := c.Sent+1+upTo(300*msec), int32(0)
		if i%2 == 0 && n%2 == 0 {
			c.Wrote = c.Sent
		}
		if rng.IntN(2) == 0 {
			c.First, c.Headers = c.Sent+(at-c.Sent)/2, at
		}
		reasons := rng.IntN(3)
		chunks := 1 + rng.IntN(12)
		for j := range chunks {
			c.Chunks = append(c.Chunks, Chunk{At: at, Tokens: 1 + int32(rng.IntN(3)/2*rng.IntN(4)), Read: read})
			if j >= reasons && c.Answer == 0 {
				c.Answer = at
			}
			if rng.IntN(4) > 0 {
				read++
				at += upTo(40 * msec) // or at the same instant
			}
		}
		c.End = at + upTo(5*msec)
		if rng.IntN(2) == 0 {
			c.Reads = int(read) + 1
		}
		switch rng.IntN(4) {
		case 0:
			c.Recount = 1 + rng.IntN(30)
		case 1, 2:
			c.Usage = &Usage{Prompt: rng.IntN(3) * 11, Completion: rng.IntN(5) * (c.Counted() + rng.IntN(9)), Cached: rng.IntN(2)}
		}
		if rng.IntN(2) == 0 {
			c.StreamText = 1 + rng.IntN(40)
			c.FirstText = 1 + rng.IntN(c.StreamText)
		}
		if rng.IntN(9) == 0 {
			*c = fail(*c, Connect)
			if rng.IntN(2) == 0 {
				c.Sent = 0 // it never was
			}
		}
	}
	return calls
}

// Every figure of hundreds of runs is what its formula says, those that are
// absent included, and none is what JSON cannot hold.
func TestFiguresAreTheirFormulas(t *testing.T) {
	t.Parallel()
	bounds, err := ParseGoodput("ttft:200 tpot:15 e2el:400")
	if err != nil {
		t.Fatal(err)
	}
	rng := stat.Stream(11, "odd runs")
	for run := range 96 {
		h := Header{Limit: rng.IntN(3) * rng.IntN(12), Rate: float64(rng.IntN(2))}
		calls := odd(rng, []int{0, 1, 2, 5, 40, 90}[run%6], h.Limit)
		if run == 1 { // all in no time
			calls[0] = Call{WantIn: 3, Chunks: []Chunk{{Tokens: 2}}}
		}
		o := Options{Percentiles: []float64{0, 37.5, 99.9, 100}}
		if run%2 == 0 {
			o.Goodput = bounds
		}
		s := summarize(t, h, o, calls)
		want := reckoned(h, o.Goodput, append([]float64{50, 90, 95, 99}, o.Percentiles...), calls)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(s.Figures))); diff != "" {
			t.Fatalf("run %d of %d calls: figures: -by the formulas +computed\n%s", run, len(calls), diff)
		}
		for name, w := range want {
			if got := s.Figures[name]; math.Abs(got-w) > 1e-9*max(1, math.Abs(w)) {
				t.Errorf("run %d of %d calls: %s is %v, by its formula %v", run, len(calls), name, got, w)
			}
		}
		for _, compat := range []string{"", VLLM} {
			o.Compat = compat
			sum := summarize(t, h, o, calls)
			b, err := json.Marshal(sum)
			if err != nil {
				t.Fatalf("run %d: %v", run, err)
			}
			var back Summary
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatalf("run %d: %v", run, err)
			}
			for name, i := range sum.Intervals {
				if v, ok := sum.Figures[name]; !ok || !(i[0] <= v && v <= i[1]) {
					t.Errorf("run %d: %s is %v (there: %v), outside of its interval %v", run, name, v, ok, i)
				}
			}
			if diff := cmp.Diff(sum, summarize(t, h, o, shuffled(calls))); diff != "" {
				t.Fatalf("run %d: another order of the calls changes the summary: -sorted +shuffled\n%s", run, diff)
			}
		}
	}
}
