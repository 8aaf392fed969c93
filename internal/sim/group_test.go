package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/engine"
)

// apart is a replica of prefill and decode engines that are configured alike.
func apart(cfg engine.Config, prefills, decodes int) engine.Config {
	prefill := cfg
	cfg.Prefills, cfg.Decodes, cfg.Prefill = prefills, decodes, &prefill
	cfg.GPUs *= prefills + decodes
	return cfg
}

// pooled are the engines whose groups are simulated.
func pooled() map[string]engine.Config {
	all := engines()
	sync := all["sglang"]
	sync.Overlap = false
	spec := all["sglang"]
	spec.Spec, spec.SpecTokens = "mtp", 3
	groups := map[string]engine.Config{"sglang": all["sglang"], "sglang without overlap": sync, "sglang spec": spec}
	for _, name := range []string{"vllm", "vllm async", "spec", "no prefix cache", "parallel", "hybrid"} {
		groups[name] = all[name]
	}
	return groups
}

func mustGroup(t testing.TB, cfg engine.Config, o Options) *Group {
	t.Helper()
	if o.KVTokens == 0 {
		o.KVTokens = 200_000
	}
	g, err := newGroup(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// runDry runs a group until nothing is left, with what happens after each event, and
// checks what every run must keep: times go on, each token comes after its KV cache, and
// in the end all blocks are free.
func runDry(t testing.TB, name string, g *Group, jobs []Job, after func(*Step)) (tokens map[int][]Emit) {
	t.Helper()
	tokens = map[int][]Emit{}
	relays := map[int]*relay{}
	for _, j := range jobs {
		if err := g.Submit(j); err != nil {
			t.Fatalf("%s: job %d: %v", name, j.Index, err)
		}
		relays[j.Index] = g.live[j.Index]
	}
	last := time.Duration(0)
	for events := 0; ; events++ {
		at, more := g.Next()
		step, ok := g.Step()
		if more != ok {
			t.Fatalf("%s: there is a next event (%v), and a step (%v)", name, more, ok)
		}
		if !ok {
			break
		}
		if at != step.Start || step.Start < last || step.End != step.Start || events > 5_000_000 {
			t.Fatalf("%s: event %d from %v to %v, said to be at %v, after one at %v", name, events, step.Start, step.End, at, last)
		}
		last = step.End
		for _, p := range step.Progress {
			r := relays[p.Index]
			if r.gone || r.arrives == 0 || p.At < r.arrives || p.At < last {
				t.Fatalf("%s: job %d has a token at %v, of an event at %v; its KV cache came at %v", name, p.Index, p.At, last, r.arrives)
			}
			tokens[p.Index] = append(tokens[p.Index], Emit{p.At, p.N})
			sum := 0
			for _, e := range tokens[p.Index] {
				sum += e.N
			}
			if want := r.job.Output; p.Done != (sum == want) || sum > want {
				t.Fatalf("%s: job %d has %d of %d tokens, done %v", name, p.Index, sum, want, p.Done)
			}
		}
		if after != nil {
			after(step)
		}
	}
	checkEmpty(t, name, g)
	return tokens
}

// checkEmpty checks that nothing is left in a group, and nothing taken.
func checkEmpty(t testing.TB, name string, g *Group) {
	t.Helper()
	if len(g.live) > 0 || len(g.moves) > 0 {
		t.Fatalf("%s: %d jobs and %d transfers are left", name, len(g.live), len(g.moves))
	}
	for i, m := range g.members {
		sc := &m.core.sched
		if free := freeBlocks(sc.kv.pool); free != sc.kv.pool.total || sc.kv.pool.free != free {
			t.Fatalf("%s, engine %d: %d of %d blocks are free, the count says %d", name, i, free, sc.kv.pool.total, sc.kv.pool.free)
		}
		if sc.away != 0 || len(m.core.live) != 0 || len(sc.running) != 0 || m.requests != 0 || m.step != nil {
			t.Fatalf("%s, engine %d: %d away, %d live, %d running, %d by the router's count", name, i, sc.away, len(m.core.live), len(sc.running), m.requests)
		}
	}
	if s := g.Stats(); s.Running != 0 || s.Waiting != 0 || s.KVUsage != 0 {
		t.Fatalf("%s: after the last job %+v", name, s)
	}
}

// TestGroupByHand: one request alone, to the nanosecond.
func TestGroupByHand(t *testing.T) {
	const in, out = 1000, 3
	for _, name := range []string{"vllm", "sglang"} {
		g := mustGroup(t, apart(pooled()[name], 1, 1), Options{})
		p, d := g.members[0].core, g.members[1].core
		front := time.Duration(math.Ceil(p.front.cost)) + p.front.entry
		var whole, first, second batch
		whole.chunk(0, in, 0, true)
		first.decode(in, 1, 0)
		second.decode(in+1, 1, 0)
		length := func(b batch) time.Duration { return d.model.duration(&b, new(Times)) }
		l := d.cfg.Layout()
		bytes := float64((in + l.Block - 1) / l.Block * int(l.Page))
		k := Default()
		value := func(name string) float64 {
			return k.Value(Subject{Engine: d.cfg.Engine, Accelerator: d.cfg.GPU.Name, Format: "bf16"}, name)
		}
		transfer := seconds(value("kv_setup")*1e-3) + seconds(bytes/(450e9*value("kv_link")))
		if want := int64(in) * d.cfg.Model.KVBytesPerToken(2); int64(bytes) < want || int64(bytes) > want*17/16 {
			t.Errorf("%s: %v bytes move, of %d", name, bytes, want)
		}
		route := seconds(value("route") * 1e-3)
		want := route + front + length(whole) + transfer
		next := want + length(second)
		if name == "vllm" {
			want += route + front + length(first) // the router asks the decode engine then
			next = want + length(second)
		}
		tokens := runDry(t, name, g, []Job{{Prompt: prompt(7, in), Output: out}}, nil)[0]
		if len(tokens) != out || tokens[0].At != want || tokens[1].At != next {
			t.Errorf("%s: %v, want the first of %d tokens at %v and the second at %v", name, tokens, out, want, next)
		}
		s := g.Stats()
		if s.PromptTokens != in || s.GenerationTokens != out || s.Finished != 1 || s.Pools.Transfers != 1 || s.Pools.Moved != int64(bytes) {
			t.Errorf("%s: %+v, %+v", name, s, *s.Pools)
		}
	}
}

// TestGroupConservation: in caches of any size each request has its tokens, and each
// token counts once.
func TestGroupConservation(t *testing.T) {
	jobs := chat(70)
	in, out := 0, 0
	for _, j := range jobs {
		in, out = in+len(j.Prompt), out+j.Output
	}
	for name, cfg := range pooled() {
		for _, pools := range [][2]int{{1, 1}, {2, 1}, {2, 3}} {
			for _, kv := range []int{4000, 400_000} {
				name := fmt.Sprintf("%s, %v, %d tokens of cache", name, pools, kv)
				g := mustGroup(t, apart(cfg, pools[0], pools[1]), Options{KVTokens: kv})
				runDry(t, name, g, jobs, nil)
				s := g.Stats()
				if s.PromptTokens != in || s.GenerationTokens != out || s.Finished != len(jobs) || s.Pools.Transfers != len(jobs) {
					t.Errorf("%s: counted %d + %d tokens of %d requests and %d transfers, want %d + %d of %d", name, s.PromptTokens, s.GenerationTokens, s.Finished, s.Pools.Transfers, in, out, len(jobs))
				}
				if got := sum(s.Times); got != s.Busy || s.Busy != s.Pools.Prefill.Busy+s.Pools.Decode.Busy {
					t.Errorf("%s: terms of %v in steps of %v", name, got, s.Busy)
				}
				if got := s.RunningTime + s.WaitingTime; got != g.inFlight {
					t.Errorf("%s: requests ran or waited for %v, and were there for %v", name, got, g.inFlight)
				}
				if s.PeakRunning+s.PeakWaiting < len(jobs) || s.PeakRunning > len(jobs) {
					t.Errorf("%s: %d run at most and %d wait of %d", name, s.PeakRunning, s.PeakWaiting, len(jobs))
				}
			}
		}
	}
}

// TestGroupDeterminism: a replay has no chance but its seed's.
func TestGroupDeterminism(t *testing.T) {
	for name, cfg := range pooled() {
		run := func() (out []Outcome) {
			seq, err := Replay(apart(cfg, 2, 2), 2, slices.Values(chat(60)), ReplayOptions{KVTokens: 6000, MaxConcurrency: 30, Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			return slices.Collect(seq)
		}
		if d := cmp.Diff(run(), run()); d != "" {
			t.Errorf("%s: two runs differ:\n%s", name, d)
		}
	}
}

// TestGroupCancels: wherever clients give up, what their jobs have taken in both engines
// comes back, and the others get every token.
func TestGroupCancels(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	stages := map[string]int{}
	for i := range 12 {
		for name, cfg := range pooled() {
			cfg.Seqs, cfg.Batched, cfg.MaxLen = 1+r.IntN(8), 16*(1+r.IntN(30)), 4000
			g := mustGroup(t, apart(cfg, 1+r.IntN(3), 1+r.IntN(3)), Options{KVTokens: 6000 + r.IntN(4000), Seed: r.Uint64()})
			var jobs []Job
			for _, j := range randomJobs(r, 2000) {
				if g.check(j) == nil {
					jobs = append(jobs, j)
				}
			}
			left := map[int]bool{}
			for _, j := range jobs {
				left[j.Index] = true
			}
			name = fmt.Sprintf("%s, round %d", name, i)
			tokens := runDry(t, name, g, jobs, func(step *Step) {
				index := r.IntN(30)
				if k := g.live[index]; k != nil && r.IntN(12) == 0 {
					where := ""
					if k.ds != nil {
						where = fmt.Sprint(k.ds.phase)
					}
					stages[fmt.Sprint(g.pushes, k.stage, k.ps.phase, where)]++
					g.cancel(index, step.End+time.Duration(r.IntN(int(time.Second))))
					delete(left, index)
				}
			})
			for _, j := range jobs {
				n := 0
				for _, e := range tokens[j.Index] {
					n += e.N
				}
				if left[j.Index] && n != j.Output {
					t.Fatalf("%s: job %d has %d of %d tokens", name, j.Index, n, j.Output)
				}
			}
		}
	}
	if len(stages) < 15 { // by engine, stage and where the parts are
		t.Errorf("jobs were cancelled in few situations alone: %v", stages)
	}
}

// tails are what tells configurations apart.
type tails struct {
	itl  time.Duration // P99
	ttft time.Duration // median
	rate float64       // tokens/s
	s    Stats
}

func tailsOf(t *testing.T, cfg engine.Config, replicas int, jobs []Job, o ReplayOptions) (x tails) {
	t.Helper()
	o.Stats = func(_ int, s Stats) { x.s = x.s.With(s) }
	out, err := Replay(cfg, replicas, slices.Values(jobs), o)
	if err != nil {
		t.Fatal(err)
	}
	var gaps, firsts []time.Duration
	tokens, end := 0, time.Duration(0)
	for o := range out {
		for i, e := range o.Tokens {
			if tokens, end = tokens+e.N, max(end, e.At); i > 0 {
				gaps = append(gaps, e.At-o.Tokens[i-1].At)
			}
		}
		tokens += o.Prompt
		firsts = append(firsts, o.Tokens[0].At-o.Sent)
	}
	slices.Sort(gaps)
	slices.Sort(firsts)
	x.itl, x.ttft, x.rate = gaps[len(gaps)*99/100], firsts[len(firsts)/2], float64(tokens)/end.Seconds()
	return x
}

// TestGroupOrder: the time between tokens does not know of other requests' prompts where
// decode engines are apart, and what a replica reaches is up to the pool that is short.
func TestGroupOrder(t *testing.T) {
	for _, name := range []string{"vllm", "vllm async", "sglang"} {
		cfg := pooled()[name]
		load := func(n, in, out int, every time.Duration) []Job {
			jobs := burst(n, in, out)
			for i := range jobs {
				jobs[i].Arrive = time.Duration(i) * every
			}
			return jobs
		}
		steady := load(60, 6000, 150, 300*time.Millisecond)
		whole, split := tailsOf(t, cfg, 2, steady, ReplayOptions{}), tailsOf(t, apart(cfg, 1, 1), 1, steady, ReplayOptions{})
		if 5*split.itl > whole.itl {
			t.Errorf("%s, long prompts: P99 of the times between tokens is %v on two whole engines and %v on 1:1", name, whole.itl, split.itl)
		}
		rates := func(jobs []Job) (one, prefill, decode tails) {
			return tailsOf(t, apart(cfg, 1, 1), 1, jobs, ReplayOptions{}), tailsOf(t, apart(cfg, 2, 1), 1, jobs, ReplayOptions{}), tailsOf(t, apart(cfg, 1, 2), 1, jobs, ReplayOptions{})
		}
		busy := func(s Stats) float64 {
			return s.Pools.Prefill.Busy.Seconds() / float64(s.Pools.Prefills) / s.Pools.Elapsed.Seconds()
		}
		one, prefill, decode := rates(load(60, 9000, 20, 0))
		if prefill.rate < 1.7*one.rate || decode.rate > 1.05*one.rate || decode.rate < 0.95*one.rate {
			t.Errorf("%s, long prompts: 1:1 reaches %.0f tokens/s, 2:1 %.0f, 1:2 %.0f", name, one.rate, prefill.rate, decode.rate)
		}
		if b := busy(one.s); b < 0.9 {
			t.Errorf("%s, long prompts: the prefill engine computes for %.2f of the time", name, b)
		}
		one, prefill, decode = rates(load(400, 100, 800, 0))
		if decode.rate < 1.15*one.rate || prefill.rate > 1.1*one.rate || prefill.rate < 0.95*one.rate {
			t.Errorf("%s, long answers: 1:1 reaches %.0f tokens/s, 2:1 %.0f, 1:2 %.0f", name, one.rate, prefill.rate, decode.rate)
		}
		if b := busy(one.s); b > 0.3 {
			t.Errorf("%s, long answers: the prefill engine computes for %.2f of the time", name, b)
		}
	}
}

// TestGroupLinks: over a slow link first tokens wait for the KV cache, one after another;
// what a prefix cache of the decode engine holds need not move, and SGLang sends the
// chunks of a prompt while it computes the next.
func TestGroupLinks(t *testing.T) {
	cfg := pooled()["vllm"]
	slow := cfg
	slow.GPU.LinkGBs = 1
	jobs := burst(10, 4000, 30)
	fast, late := tailsOf(t, apart(cfg, 1, 1), 1, jobs, ReplayOptions{}), tailsOf(t, apart(slow, 1, 1), 1, jobs, ReplayOptions{})
	p := late.s.Pools
	if p.Moving < 9*p.Elapsed/10 || p.LinkWait < 2*p.Moving || late.ttft < 2*fast.ttft || late.s.Waits.Transfer < 9*p.Elapsed/10 {
		t.Errorf("over 1 GB/s transfers take %v of %v and wait %v, first tokens %v instead of %v", p.Moving, p.Elapsed, p.LinkWait, late.ttft, fast.ttft)
	}
	if p, q := fast.s.Pools, late.s.Pools; p.Moved != q.Moved || p.Moved != 10*int64(250*cfg.Layout().Page) {
		t.Errorf("%d bytes move over a fast link, %d over a slow one", p.Moved, q.Moved)
	}

	again := []Job{{Index: 0, Prompt: prompt(1, 4000), Output: 2}, {Index: 1, Arrive: time.Minute, Prompt: prompt(1, 4000), Output: 2}}
	p = tailsOf(t, apart(cfg, 1, 1), 1, again, ReplayOptions{}).s.Pools
	if want := int64(251 * cfg.Layout().Page); p.Moved != want || p.Decode.PrefixHits != 3984 || p.Prefill.PrefixHits != 3984 { // the last block is fetched again
		t.Errorf("the same prompt twice moves %d bytes, want %d; hits are %d and %d", p.Moved, want, p.Prefill.PrefixHits, p.Decode.PrefixHits)
	}

	sgl := pooled()["sglang"]
	sgl.GPU.LinkGBs = 2
	whole, chunked := sgl, sgl
	whole.Batched, chunked.Batched = 16384, 2048
	one := []Job{{Prompt: prompt(1, 16000), Output: 2}}
	a, b := tailsOf(t, apart(whole, 1, 1), 1, one, ReplayOptions{}), tailsOf(t, apart(chunked, 1, 1), 1, one, ReplayOptions{})
	if a.s.Pools.Moved != b.s.Pools.Moved || b.ttft > a.ttft-a.s.Pools.Prefill.Busy/2 {
		t.Errorf("%d bytes in one piece take until %v, %d in chunks until %v", a.s.Pools.Moved, a.ttft, b.s.Pools.Moved, b.ttft)
	}

	wide := cfg
	wide.TP, wide.GPUs = 4, 4
	narrow := apart(wide, 1, 1)
	narrow.Prefill.TP, narrow.Prefill.GPUs = 2, 2
	four, two := mustGroup(t, apart(wide, 1, 1), Options{}).link, mustGroup(t, narrow, Options{}).link
	if one := mustGroup(t, apart(cfg, 1, 1), Options{}).link; math.Abs(one.block/four.block-4) > 1e-9 || math.Abs(two.block/four.block-2) > 1e-9 || one.bytes != four.bytes {
		t.Errorf("a block takes %v s between single GPUs, %v between four and four, %v between two and four", one.block, four.block, two.block)
	}
}

// TestGroupNetwork: within what a link couples KV caches move over it, else over the network.
func TestGroupNetwork(t *testing.T) {
	cfg := pooled()["vllm"]
	cfg.GPU.Link, cfg.GPU.LinkDevices, cfg.GPU.Network = "nvlink-4", 4, "infiniband-ndr"
	near, far := mustGroup(t, apart(cfg, 2, 2), Options{}).link, mustGroup(t, apart(cfg, 2, 3), Options{}).link
	if math.Abs(far.block/near.block-9) > 1e-9 {
		t.Errorf("a block takes %v s among four GPUs and %v among five", near.block, far.block)
	}
	cfg.GPU.Link, cfg.GPU.Network, cfg.GPU.LinkGBs = "", "", 0
	if _, err := New(apart(cfg, 1, 1), Options{KVTokens: 1000}); err == nil || !strings.Contains(err.Error(), "couples 2") {
		t.Errorf("without a link: %v", err)
	}
}

// TestGroupRefusals: a job is refused where either engine would, and a group that cannot
// be simulated is no engine.
func TestGroupRefusals(t *testing.T) {
	cfg := apart(pooled()["vllm"], 1, 1)
	cfg.Prefill.MaxLen = 2000
	g := mustGroup(t, cfg, Options{KVTokens: 5000})
	for _, tt := range []struct {
		in, out int
		want    string
	}{
		{2500, 10, "maximum context length is 2000"},
		{1000, 4500, "The request needs 344 KV blocks"},
		{0, 10, "no tokens"},
		{1000, 100, ""},
	} {
		if err := g.check(Job{PromptLen: tt.in, Output: tt.out}); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d + %d tokens: %v, want %q", tt.in, tt.out, err, tt.want)
		}
	}
	sgl := mustGroup(t, apart(pooled()["sglang"], 1, 1), Options{KVTokens: 2000})
	if err := sgl.check(Job{PromptLen: 1600, Output: 10}); err == nil || !strings.Contains(err.Error(), "2112 tokens") {
		t.Errorf("a prompt that leaves no room to write: %v", err)
	}
	trt := apart(engines()["trtllm"], 1, 1)
	none := apart(pooled()["vllm"], 1, 1)
	none.Prefill = nil
	for _, bad := range []engine.Config{trt, none, apart(pooled()["vllm"], 1, 0)} {
		if _, err := New(bad, Options{KVTokens: 5000}); err == nil || !strings.HasPrefix(err.Error(), "simulate ") {
			t.Errorf("%s, %d:%d: %v", bad.Engine, bad.Prefills, bad.Decodes, err)
		}
	}
}

// TestGroupWarm: what was served before time 0 is in the caches of both pools.
func TestGroupWarm(t *testing.T) {
	for name, cfg := range pooled() {
		if cfg.SpecTokens > 0 || !cfg.Prefix {
			continue
		}
		old := burst(2, 2000, 40)
		jobs := []Job{{Prompt: slices.Concat(old[0].Prompt, prompt(9, 40)), Output: 5}}
		cold, warm := tailsOf(t, apart(cfg, 1, 1), 1, jobs, ReplayOptions{}), tailsOf(t, apart(cfg, 1, 1), 1, jobs, ReplayOptions{Warm: old})
		if warm.ttft >= cold.ttft || warm.s.PrefixHits < 1900 || warm.s.Finished != 1 || warm.s.PromptTokens != 2040 || warm.s.Pools.Transfers != 1 {
			t.Errorf("%s: the first token comes after %v, cold after %v; %+v", name, warm.ttft, cold.ttft, warm.s)
		}
	}
}

// TestRouter: a prompt goes where its beginning has been, others to who has the least to
// do, and one engine is not buried.
func TestRouter(t *testing.T) {
	a, b := &member{}, &member{}
	r := router{engines: []*member{a, b}}
	send := func(j Job) *member {
		m := r.choose(&j)
		m.requests++
		m.tokens += j.promptLen()
		return m
	}
	if send(Job{Prompt: prompt(1, 1000)}) != a || send(Job{Prompt: prompt(2, 100)}) != b || send(Job{PromptLen: 10}) != b {
		t.Error("unknown prompts do not go to the engine with the fewest requests, then tokens")
	}
	for _, tt := range []struct {
		share int // tokens of 1000 that are known
		want  *member
	}{{1000, a}, {400, a}, {200, nil}} {
		a.requests, b.requests = 5, 3
		p := slices.Concat(prompt(1, tt.share), prompt(100+tt.share, 1000-tt.share))
		if got := send(Job{Prompt: p}); got == b != (tt.want == nil) {
			t.Errorf("%d of 1000 tokens known: it goes to the other engine: %v", tt.share, got == b)
		}
	}
	a.requests, b.requests = 100, 20
	if send(Job{Prompt: prompt(1, 1000)}) != b {
		t.Error("a known prompt goes to an engine with 80 requests more")
	}
	for i := range routedBlocks/62 + 2000 {
		r.choose(&Job{Prompt: prompt(1000+i, 1000)})
	}
	if n := len(r.had[0]) + len(r.had[1]); n > 2*routedBlocks || n < routedBlocks {
		t.Errorf("%d beginnings are remembered", n)
	}
}
