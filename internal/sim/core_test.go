package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/stat"
)

// testConfig is vLLM on one H100 with a small dense model and nothing left to
// another package's defaults.
func testConfig() engine.Config {
	return engine.Config{
		Engine: "vllm", TP: 1, PP: 1, DP: 1, EP: 1, GPUs: 1,
		Model: arch.Model{
			Name: "test/dense", Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, HeadDim: 128,
			FFN: 14336, Vocab: 128256, MaxLen: 32768, Format: arch.BF16,
		},
		GPU: arch.Accelerator{
			Name: "h100-sxm", BF16TFLOPS: 989, FP8TFLOPS: 1979, BandwidthGBs: 3350, MemoryGiB: 79.2, LinkGBs: 450, LinkLatency: 5, SM: 90,
		},
		Seqs: 256, Batched: 8192, MaxLen: 32768, MemoryShare: 0.9, KVBytes: 2, Block: 16,
		Prefix: true, Chunked: true, GraphMax: 512, PromptGraphs: 512,
	}
}

func mustCore(t testing.TB, cfg engine.Config, o Options) *Core {
	t.Helper()
	if o.KVTokens == 0 {
		o.KVTokens = 200_000
	}
	c, err := newCore(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ran is what drive saw.
type ran struct {
	tokens    map[int]int
	first     map[int]time.Duration
	preempted int
	peak      int
	end       time.Duration
}

// drive runs a core dry and checks what every run must keep.
func drive(t testing.TB, c *Core, jobs []Job) ran {
	t.Helper()
	r := ran{tokens: map[int]int{}, first: map[int]time.Duration{}}
	for _, j := range jobs {
		if err := c.Submit(j); err != nil {
			t.Fatalf("job %d: %v", j.Index, err)
		}
	}
	done := map[int]bool{}
	for {
		step, ok := c.Step()
		if !ok {
			break
		}
		if step.End <= step.Start || step.Start < r.end {
			t.Fatalf("step from %v to %v after %v", step.Start, step.End, r.end)
		}
		r.end = step.End
		r.preempted += len(step.Preempted)
		for _, p := range step.Progress {
			if done[p.Index] {
				t.Fatalf("job %d gives tokens after its end", p.Index)
			}
			if r.tokens[p.Index] == 0 {
				r.first[p.Index] = step.End
			}
			r.tokens[p.Index] += p.N
			done[p.Index] = p.Done
		}
	}
	for _, j := range jobs {
		if r.tokens[j.Index] != j.Output || !done[j.Index] {
			t.Fatalf("job %d: %d of %d tokens, done %v", j.Index, r.tokens[j.Index], j.Output, done[j.Index])
		}
	}
	s := c.Stats()
	if s.KVUsage != 0 || s.Running != 0 || s.Waiting != 0 {
		t.Fatalf("after the last job: %+v", s)
	}
	if free := freeBlocks(c.sched.kv.pool); free != c.sched.kv.pool.total || c.sched.kv.pool.free != free {
		t.Fatalf("%d of %d blocks are free, the count says %d", free, c.sched.kv.pool.total, c.sched.kv.pool.free)
	}
	r.peak = s.PeakRunning
	return r
}

// freeBlocks walks the LRU list.
func freeBlocks(p *blockPool) int {
	n := p.total - len(p.blocks) + 1
	for id := p.blocks[0].next; id != 0; id = p.blocks[id].next {
		if p.blocks[id].refs != 0 {
			panic("a block in the free list is held")
		}
		n++
	}
	return n
}

func engines() map[string]engine.Config {
	v := testConfig()
	trt := v
	trt.Engine, trt.Reserve, trt.Chunked, trt.Block, trt.Seqs, trt.Overlap, trt.Serial, trt.PromptGraphs = "trtllm", true, false, 32, 2048, true, true, 0
	sgl := v
	sgl.Engine, sgl.PrefillOnly, sgl.Block, sgl.PrefillTokens, sgl.Overlap, sgl.PromptGraphs = "sglang", true, 1, 16384, true, 0
	late := v
	late.Overlap = true
	spec := v
	spec.Spec, spec.SpecTokens = "mtp", 3
	plain := v
	plain.Prefix = false
	dp := v
	dp.DP, dp.PP, dp.TP = 2, 2, 2
	hybrid := late // layers of three kinds: eight groups of four, two blocks of state in each of five
	hybrid.Model.WindowLayers, hybrid.Model.Window = 8, 64
	hybrid.Model.Linear = &arch.Linear{Layers: 20, KeyHeads: 8, ValueHeads: 16, HeadDim: 64, StateBytes: 20 << 18, Conv: 4}
	return map[string]engine.Config{"vllm": v, "vllm async": late, "trtllm": trt, "sglang": sgl, "spec": spec, "no prefix cache": plain, "parallel": dp, "hybrid": hybrid}
}

func TestConservation(t *testing.T) {
	jobs := chat(150)
	in, out := 0, 0
	for _, j := range jobs {
		in, out = in+len(j.Prompt), out+j.Output
	}
	for name, cfg := range engines() {
		for _, kv := range []int{3000, 400_000} {
			c := mustCore(t, cfg, Options{KVTokens: kv})
			got := drive(t, c, jobs)
			s := c.Stats()
			if s.PromptTokens != in || s.GenerationTokens != out || s.Finished != 150 {
				t.Errorf("%s, %d tokens of cache: counted %d + %d tokens of %d requests, want %d + %d of 150", name, kv, s.PromptTokens, s.GenerationTokens, s.Finished, in, out)
			}
			if got.preempted != s.Preemptions {
				t.Errorf("%s: steps report %d preemptions, the counter %d", name, got.preempted, s.Preemptions)
			}
			if cfg.Reserve && s.Preemptions != 0 {
				t.Errorf("%s preempts %d times in spite of its reservations", name, s.Preemptions)
			}
			if name == "vllm" && kv == 3000 && s.Preemptions == 0 {
				t.Error("vllm does not preempt in a cache of 3000 tokens")
			}
		}
	}
}

func TestDeterminism(t *testing.T) {
	for name, cfg := range engines() {
		a := drive(t, mustCore(t, cfg, Options{KVTokens: 10_000}), chat(60))
		b := drive(t, mustCore(t, cfg, Options{KVTokens: 10_000}), chat(60))
		if d := cmp.Diff(a, b, cmp.AllowUnexported(ran{})); d != "" {
			t.Errorf("%s: two runs differ:\n%s", name, d)
		}
	}
}

func TestMoreSequencesNeverLowerThePeak(t *testing.T) {
	for name, cfg := range engines() {
		last := 0
		for _, cfg.Seqs = range []int{1, 8, 64, 256} {
			got := drive(t, mustCore(t, cfg, Options{}), chat(60)).peak
			if got < last || got > cfg.Seqs*cfg.DP {
				t.Errorf("%s: %d sequences allowed, %d at once, before %d", name, cfg.Seqs, got, last)
			}
			last = got
		}
	}
}

// Steps read the weights once for everybody: eight together take far less than
// eight times one alone.
func TestBatching(t *testing.T) {
	one := drive(t, mustCore(t, testConfig(), Options{}), burst(1, 100, 200)).end
	eight := drive(t, mustCore(t, testConfig(), Options{}), burst(8, 100, 200)).end
	if eight > 2*one {
		t.Errorf("one request takes %v, eight take %v", one, eight)
	}
	cfg := testConfig()
	cfg.Seqs = 1
	if alone := drive(t, mustCore(t, cfg, Options{}), burst(8, 100, 200)).end; alone < 7*one {
		t.Errorf("one request takes %v, eight one after another %v", one, alone)
	}
}

func TestFrontEnd(t *testing.T) {
	f := frontEnd{cost: 10e6}
	ms := time.Millisecond
	add := func(at time.Duration) *seq { s := &seq{job: Job{Arrive: at}}; f.add(s); return s }
	a, b, c := add(0), add(0), add(0) // all leave at 30 ms
	d := add(45 * ms)                 // alone until 50 ms, then beside e
	e := add(50 * ms)                 // d: 5 ms left at half speed, 60 ms; e: 5 ms left, 65 ms
	f.advance(time.Second)
	want := []time.Duration{30 * ms, 30 * ms, 30 * ms, 60 * ms, 65 * ms}
	got := []time.Duration{a.ready, b.ready, c.ready, d.ready, e.ready}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A serial front end passes requests on in order, each cost after the one before.
func TestSerialFrontEnd(t *testing.T) {
	f := frontEnd{cost: 10e6, serial: true}
	ms := time.Millisecond
	var all []*seq
	for _, at := range []time.Duration{0, 0, 5, 45, 50} {
		s := &seq{job: Job{Arrive: at * ms}}
		f.add(s)
		all = append(all, s)
	}
	f.advance(time.Second)
	want := []time.Duration{10 * ms, 20 * ms, 30 * ms, 55 * ms, 65 * ms}
	var got []time.Duration
	for _, s := range all {
		got = append(got, s.ready)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestQueue(t *testing.T) {
	var q queue[int]
	var want []int
	r := stat.Stream(1, "queue")
	for i := range 5000 {
		switch k := r.IntN(4); {
		case k == 0:
			q.pushFront(i)
			want = slices.Insert(want, 0, i)
		case k < 3 || len(want) == 0:
			q.pushBack(i)
			want = append(want, i)
		default:
			if got := q.popFront(); got != want[0] {
				t.Fatalf("popped %d, want %d", got, want[0])
			}
			want = want[1:]
		}
		if q.len() != len(want) {
			t.Fatalf("length %d, want %d", q.len(), len(want))
		}
	}
}

func TestPrefixCache(t *testing.T) {
	cfg := testConfig()
	c := mustCore(t, cfg, Options{})
	shared := prompt(1, 1000)
	ask := func(index int, tail int) Progress {
		t.Helper()
		p := append(slices.Clone(shared), prompt(100+index, tail)...)
		if err := c.Submit(Job{Index: index, Arrive: c.Now(), Prompt: p, Output: 1}); err != nil {
			t.Fatal(err)
		}
		step, _ := c.Step()
		return step.Progress[0]
	}
	if got := ask(1, 50).Cached; got != 0 {
		t.Errorf("first request finds %d tokens", got)
	}
	if got := ask(2, 50).Cached; got != 992 { // 62 blocks of 16; the 63rd holds tokens of the tail
		t.Errorf("second request finds %d tokens, want 992", got)
	}
	shared = shared[:992]
	if got := ask(3, 0).Cached; got != 976 { // the last block is computed anew
		t.Errorf("third request finds %d tokens, want 976", got)
	}
	if s := c.Stats(); s.PrefixQueries != 1050+1050+992 || s.PrefixHits != 992+976 {
		t.Errorf("queries %d, hits %d", s.PrefixQueries, s.PrefixHits)
	}
	cfg.Prefix = false
	c = mustCore(t, cfg, Options{})
	ask(1, 50)
	if got := ask(2, 50).Cached; got != 0 {
		t.Errorf("without a prefix cache a request finds %d tokens", got)
	}
}

// A cache that holds one prompt forgets it when another comes.
func TestEviction(t *testing.T) {
	c := mustCore(t, testConfig(), Options{KVTokens: 1600})
	// The second prompt takes the 6 blocks never used and 88 of the first's,
	// the last ones first.
	for i, want := range []int{0, 1488, 0, 96, 1488} {
		which := []int{1, 1, 2, 1, 1}[i]
		if err := c.Submit(Job{Index: i, Arrive: c.Now(), Prompt: prompt(which, 1500), Output: 1}); err != nil {
			t.Fatal(err)
		}
		step, _ := c.Step()
		if got := step.Progress[0].Cached; got != want {
			t.Errorf("request %d finds %d tokens, want %d", i, got, want)
		}
	}
}

func TestSpeculation(t *testing.T) {
	cfg := testConfig()
	plain := drive(t, mustCore(t, cfg, Options{}), burst(1, 100, 500)).end
	cfg.Spec, cfg.SpecTokens = "mtp", 1
	c := mustCore(t, cfg, Options{})
	fast := drive(t, c, burst(1, 100, 500)).end
	s := c.Stats()
	kept := float64(s.Accepted) / float64(s.Drafted)
	if want := c.accept; math.Abs(kept-want) > 3*math.Sqrt(want*(1-want)/float64(s.Drafted)) {
		t.Errorf("%d of %d drafted tokens accepted, each with a chance of %.2f", s.Accepted, s.Drafted, want)
	}
	var one, two batch
	one.decode(350, 1, 0)
	two.decode(350, 2, 0)
	two.drafts = true
	step := c.model.duration(&one, new(Times)).Seconds() / c.model.duration(&two, new(Times)).Seconds()
	if got, want := plain.Seconds()/fast.Seconds(), (1+kept)*step; math.Abs(got/want-1) > 0.02 {
		t.Errorf("speculation is %.3f times as fast, want %.3f", got, want)
	}
}

func TestTokenBudget(t *testing.T) {
	cfg := testConfig()
	cfg.Batched = 512
	chunked := drive(t, mustCore(t, cfg, Options{}), burst(1, 2000, 1))
	cfg.Batched = 8192
	whole := drive(t, mustCore(t, cfg, Options{}), burst(1, 2000, 1))
	if chunked.end <= whole.end {
		t.Errorf("four chunks take %v, one step %v", chunked.end, whole.end)
	}
	c := mustCore(t, cfg, Options{})
	drive(t, c, burst(1, 2000, 3))
	if got := c.Stats().Steps; got != 3 {
		t.Errorf("%d steps for a prompt and three tokens, want 3", got)
	}
}

// SGLang's decodes wait while prompts are computed; vLLM's share their steps.
func TestPrefillFirst(t *testing.T) {
	for _, name := range []string{"vllm", "sglang"} {
		c := mustCore(t, engines()[name], Options{})
		if err := c.Submit(Job{Index: 0, Prompt: prompt(0, 100), Output: 50}); err != nil {
			t.Fatal(err)
		}
		c.Step()
		if err := c.Submit(Job{Index: 1, Arrive: c.Now(), Prompt: prompt(1, 100), Output: 50}); err != nil {
			t.Fatal(err)
		}
		for {
			step, _ := c.Step()
			i := slices.IndexFunc(step.Progress, func(p Progress) bool { return p.Index == 1 })
			if i < 0 {
				continue
			}
			if alone := len(step.Progress) == 1; alone != (name == "sglang") {
				t.Errorf("%s: the step that computes the second prompt gives %v", name, step.Progress)
			}
			break
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		engine  string
		in, out int
		want    string
	}{
		{"vllm", 32768, 1, "This model's maximum context length is 32768 tokens. However, your request has 32768 input tokens. Please reduce the length of the input messages."},
		{"vllm", 32700, 100, "'max_tokens' or 'max_completion_tokens' is too large: 100. This model's maximum context length is 32768 tokens and your request has 32700 input tokens (100 > 32768 - 32700)."},
		{"vllm", 0, 1, "The prompt has no tokens."},
		{"vllm", 1, 0, "max_tokens must be at least 1, got 0."},
		{"vllm", 30000, 1, "The request needs 1876 KV blocks of 16 tokens and the cache has 1250."},
		{"sglang", 40000, 1, "The input (40000 tokens) is longer than the model's context length (32768 tokens)."},
		{"vllm", 10, math.MaxInt, "'max_tokens' or 'max_completion_tokens' is too large: 9223372036854775807. This model's maximum context length is 32768 tokens and your request has 10 input tokens (9223372036854775807 > 32768 - 10)."},
		{"sglang", 10, math.MaxInt, "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 9223372036854775817 tokens: 10 tokens from the input messages and 9223372036854775807 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit."},
		{"trtllm", 10, math.MaxInt, "The sum of prompt length (10.0), query length (0) and max_tokens (9223372036854775807) should not exceed max_seq_len (32768)"},
		{"trtllm", 9000, 1, "The sum of prompt length (9000.0), query length (0) should not exceed max_num_tokens (8192)"},
	} {
		c := mustCore(t, engines()[tt.engine], Options{KVTokens: 20_000})
		err := c.Submit(Job{Prompt: prompt(0, tt.in), Output: tt.out})
		if r, ok := err.(*Refusal); !ok || r.Text != tt.want {
			t.Errorf("%s, %d + %d tokens:\n got %v\nwant %s", tt.engine, tt.in, tt.out, err, tt.want)
		}
	}
}

func TestCancel(t *testing.T) {
	c := mustCore(t, testConfig(), Options{KVTokens: 20_000})
	jobs := burst(10, 3000, 50)
	for _, j := range jobs {
		if err := c.Submit(j); err != nil {
			t.Fatal(err)
		}
	}
	c.Cancel(3) // in the front end
	c.Step()
	c.Step()
	c.Cancel(0) // running
	c.Cancel(9) // waiting
	c.Cancel(9) // again, and unknown ones, do nothing
	c.Cancel(77)
	for {
		step, ok := c.Step()
		if !ok {
			break
		}
		for _, p := range step.Progress {
			if slices.Contains([]int{0, 3, 9}, p.Index) {
				t.Fatalf("cancelled job %d gives tokens", p.Index)
			}
		}
	}
	if s := c.Stats(); s.Finished != 7 || s.Running+s.Waiting != 0 || freeBlocks(c.sched.kv.pool) != c.sched.kv.pool.total {
		t.Errorf("after cancelling three of ten: %+v, %d of %d blocks free", s, freeBlocks(c.sched.kv.pool), c.sched.kv.pool.total)
	}
}

// Room that a preemption made goes to those that run, not to newcomers.
func TestNoAdmissionBesidePreemption(t *testing.T) {
	cfg := testConfig()
	cfg.Batched = 64 // a first chunk would fit into what the victim left
	c := mustCore(t, cfg, Options{KVTokens: 5000})
	for _, j := range chat(100) {
		if err := c.Submit(j); err != nil {
			t.Fatal(err)
		}
	}
	preempted := 0
	for {
		before := slices.Clone(c.sched.running)
		step, ok := c.Step()
		if !ok {
			break
		}
		if len(step.Preempted) == 0 {
			continue
		}
		preempted++
		for _, s := range c.sched.running {
			if !slices.Contains(before, s) || slices.Contains(step.Preempted, s.job.Index) {
				t.Fatalf("job %d is admitted in a step that preempted %v", s.job.Index, step.Preempted)
			}
		}
	}
	if preempted == 0 {
		t.Error("no step preempted")
	}
}

// What a preempted request had computed and nobody evicted is not computed
// again: the same load takes less time with the prefix cache, though no two
// prompts share anything.
func TestPreemptedKeepTheirBlocks(t *testing.T) {
	cfg := testConfig()
	cfg.Batched = 2048
	with := drive(t, mustCore(t, cfg, Options{KVTokens: 60_000}), burst(40, 8000, 100))
	cfg.Prefix = false
	without := drive(t, mustCore(t, cfg, Options{KVTokens: 60_000}), burst(40, 8000, 100))
	if with.preempted == 0 || with.end >= without.end {
		t.Errorf("with credit %v after %d preemptions, without %v", with.end, with.preempted, without.end)
	}
}

// TestWholePromptOverBudget: without chunked prefill a prompt longer than the
// token budget is computed in a step of its own, as SGLang does, instead of
// waiting for ever.
func TestWholePromptOverBudget(t *testing.T) {
	cfg := engines()["sglang"]
	cfg.Chunked, cfg.Batched, cfg.PrefillTokens = false, 1000, 1000
	var jobs []Job
	for i, n := range []int{600, 5000, 600} {
		jobs = append(jobs, Job{Index: i, Prompt: prompt(i, n), Output: 2})
	}
	r := drive(t, mustCore(t, cfg, Options{}), jobs)
	if !(r.first[0] < r.first[1] && r.first[1] < r.first[2]) {
		t.Errorf("the prompts did not take turns: first tokens at %v", r.first)
	}
}
