package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/engine"
)

// engineConfig is a configuration of engines without front-end surprises in
// what order requests come.
func engineConfig(name string, edit func(*engine.Config)) engine.Config {
	cfg := engines()[name]
	if edit != nil {
		edit(&cfg)
	}
	return cfg
}

// submit hands jobs of these (prompt, output) sizes in at the core's present time.
func submit(t *testing.T, c *Core, sizes ...[2]int) {
	t.Helper()
	for _, size := range sizes {
		i := int(c.order)
		if err := c.Submit(Job{Index: i, Arrive: c.Now(), Prompt: prompt(i, size[0]), Output: size[1]}); err != nil {
			t.Fatal(err)
		}
	}
}

func indexes(list []*seq) (out []int) {
	for _, s := range list {
		out = append(out, s.job.Index)
	}
	return out
}

func queued(c *Core) []int { return indexes(c.sched.waiting.items[c.sched.waiting.head:]) }

// planned is what the core has scheduled for the step that Step ran last.
func planned(c *Core) (out [][2]int) {
	for _, w := range c.work {
		out = append(out, [2]int{w.s.job.Index, w.n})
	}
	return out
}

// TestChunksAreFound: what vLLM schedules is found at once, by a later prompt of
// the same step too; SGLang's tree gets a chunk when the next is scheduled and
// the last one when it is computed, which the overlapped scheduler sees late.
func TestChunksAreFound(t *testing.T) {
	for name, want := range map[string]int{"vllm": 2032, "sglang": 1536, "sglang in step": 2047} {
		cfg := engines()[name]
		if name == "sglang in step" {
			cfg = engineConfig("sglang", func(c *engine.Config) { c.Overlap = false })
		}
		cfg.Batched = 512
		c := mustCore(t, cfg, Options{})
		for i := range 2 {
			if err := c.Submit(Job{Index: i, Prompt: prompt(0, 2048), Output: 2}); err != nil {
				t.Fatal(err)
			}
		}
		for step, ok := c.Step(); ok; step, ok = c.Step() {
			for _, p := range step.Progress {
				if p.Index == 1 && p.Cached != want {
					t.Fatalf("%s: the second prompt finds %d tokens, want %d", name, p.Cached, want)
				}
			}
		}
	}
}

// TestSGLangPromises: requests of one batch are promised all their output, those
// that run a share of what is left; once one finds no room nobody is tried, though
// there be room, until a running request has gone and a decode step has seen it.
func TestSGLangPromises(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		c := mustCore(t, engineConfig("sglang", func(c *engine.Config) { c.Overlap = overlap }), Options{KVTokens: 1000})
		// The first takes 100 and is promised 300: 600 are left, room for 410. Then
		// 190 are left, none for 250, though a share of 0.7 would leave some.
		submit(t, c, [2]int{100, 300}, [2]int{100, 310}, [2]int{50, 200}, [2]int{5, 5})
		steps, firsts := 0, map[int]int{}
		for step, ok := c.Step(); ok; step, ok = c.Step() {
			if steps++; steps == 2 && !slices.Equal(indexes(c.sched.running), []int{0, 1}) {
				t.Fatalf("overlap %v: %v run, want the first two alone", overlap, indexes(c.sched.running))
			}
			for _, p := range step.Progress {
				if firsts[p.Index] == 0 {
					firsts[p.Index] = steps
				}
			}
		}
		// The first ends with step 300. Step 301 sees that it is gone; overlapped it
		// was scheduled before the end was known, and step 302 does.
		want := map[int]int{0: 1, 1: 1, 2: 302, 3: 302}
		if overlap {
			want[2], want[3] = 303, 303
		}
		if d := cmp.Diff(want, firsts); d != "" {
			t.Errorf("overlap %v: first tokens in steps (-want +got)\n%s", overlap, d)
		}
	}
}

// TestSGLangRetracts: of those with the fewest tokens produced the longest prompt
// goes, to the end of the queue; its prompt stays found, its output does not; the
// share is estimated from what the others have produced.
func TestSGLangRetracts(t *testing.T) {
	c := mustCore(t, engineConfig("sglang", func(c *engine.Config) { c.Overlap, c.Conserve = false, 0.01 }), Options{KVTokens: 1000})
	submit(t, c, [2]int{100, 800})
	c.Step()
	submit(t, c, [2]int{100, 250}, [2]int{150, 250})
	for c.front.inside.len() > 0 {
		c.Step()
	}
	submit(t, c, [2]int{10, 900})
	for step, ok := c.Step(); ok; step, ok = c.Step() {
		if len(step.Preempted) == 0 {
			continue
		}
		if d := cmp.Diff([]int{2}, step.Preempted); d != "" {
			t.Fatalf("retracted (-want +got)\n%s", d)
		}
		if d := cmp.Diff([]int{3, 2}, queued(c)); d != "" {
			t.Errorf("queue (-want +got)\n%s", d)
		}
		have := 0
		for _, s := range c.sched.running {
			have += s.produced - 1 + 20 // less the token of this step
		}
		if want := float64(have) / (800 + 250 + 1); c.policy.(*sglang).reserve != want {
			t.Errorf("share %v, want %v", c.policy.(*sglang).reserve, want)
		}
		victim := c.live[2]
		c.sched.kv.lookup(victim)
		if hits := len(c.sched.kv.hits); hits != 150 || victim.produced < 100 {
			t.Errorf("the victim of %d tokens finds %d, want its prompt of 150", victim.produced, hits)
		}
		return
	}
	t.Fatal("nobody was retracted")
}

// TestSGLangChunks: a prompt over the budget fills the batch and is half done; the
// next batch continues it and gives what is left to the next prompt.
func TestSGLangChunks(t *testing.T) {
	c := mustCore(t, engineConfig("sglang", func(c *engine.Config) { c.Batched = 512 }), Options{})
	submit(t, c, [2]int{300, 5}, [2]int{600, 5}, [2]int{50, 5})
	var got [][][2]int
	for range 3 {
		c.Step()
		got = append(got, planned(c))
	}
	want := [][][2]int{{{0, 300}, {1, 212}}, {{1, 388}, {2, 50}}, {{0, 1}, {1, 1}, {2, 1}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("batches (-want +got)\n%s", d)
	}
}

// TestSGLangShareFalls: over 600 decode steps the share falls from 0.7 to 0.14 of
// that, and stays; an idle engine begins anew.
func TestSGLangShareFalls(t *testing.T) {
	c := mustCore(t, engineConfig("sglang", func(c *engine.Config) { c.Overlap = false }), Options{})
	submit(t, c, [2]int{10, 700})
	for range 301 {
		c.Step()
	}
	if got, want := c.policy.(*sglang).reserve, 0.7-0.3*(1-0.14)*0.7/0.6; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("after 300 decode steps the share is %v, want %v", got, want)
	}
	for range 399 {
		c.Step()
	}
	if got := c.policy.(*sglang).reserve; got < 0.098-1e-9 || got > 0.098+1e-9 {
		t.Errorf("after 699 decode steps the share is %v, want 0.098", got)
	}
	submit(t, c, [2]int{10, 2})
	c.Step()
	if c.policy.(*sglang).reserve != 0.7 {
		t.Errorf("after idling the share is %v, want 0.7", c.policy.(*sglang).reserve)
	}
}

// TestOverlapSeesLate: an engine that overlaps scheduling with work has scheduled
// the next step before a request comes, and learns of an end a step late: vLLM
// does not run the ended request again, SGLang does.
func TestOverlapSeesLate(t *testing.T) {
	for name, want := range map[string]struct{ late, beside int }{"vllm": {3, 1}, "vllm async": {4, 1}, "sglang": {4, 2}} {
		c := mustCore(t, engineConfig(name, func(c *engine.Config) { c.Seqs = 8 }), Options{})
		submit(t, c, [2]int{100, 30}, [2]int{100, 6})
		c.Step()
		c.Step()
		c.front.cost, c.front.entry = 0, 0
		if err := c.Submit(Job{Index: 9, Prompt: prompt(9, 10), Output: 1}); err != nil {
			t.Fatal(err)
		}
		c.front.advance(time.Hour) // it has left the front end meanwhile
		steps, beside := 2, 0
		first, ended := 0, 0
		for step, ok := c.Step(); ok; step, ok = c.Step() {
			steps++
			if ended > 0 && steps == ended+1 {
				beside = len(c.work)
			}
			for _, p := range step.Progress {
				if p.Index == 9 {
					first = steps
				}
				if p.Index == 1 && p.Done {
					ended = steps
				}
			}
		}
		if first != want.late || beside != want.beside {
			t.Errorf("%s: the late request's token comes in step %d, want %d; after an end %d run, want %d", name, first, want.late, beside, want.beside)
		}
	}
}

// TestOverlapKeepsPreemptedTokens: vLLM preempts a request whose token is still
// being computed, and hands that token out all the same.
func TestOverlapKeepsPreemptedTokens(t *testing.T) {
	c := mustCore(t, engineConfig("vllm async", nil), Options{KVTokens: 1600})
	r := drive(t, c, burst(8, 150, 200))
	if r.preempted == 0 {
		t.Fatal("nobody was preempted")
	}
	for i := range 8 {
		if r.tokens[i] != 200 {
			t.Errorf("job %d gives %d tokens", i, r.tokens[i])
		}
	}
}

// TestTRTLLMReserves: a request is admitted with room for all it can need, so
// nobody is preempted, and a prompt is cut at the border of a block.
func TestTRTLLMReserves(t *testing.T) {
	c := mustCore(t, engineConfig("trtllm", func(c *engine.Config) { c.Chunked, c.Batched, c.Overlap = true, 500, false }), Options{KVTokens: 1600})
	submit(t, c, [2]int{300, 340}, [2]int{300, 340}, [2]int{32, 288}, [2]int{1, 1})
	for c.front.inside.len() > 0 { // the front end passes them on one by one
		c.front.advance(c.front.leaves())
	}
	c.now = c.front.at + c.front.entry
	var got [][][2]int
	for range 3 {
		c.Step()
		got = append(got, planned(c))
	}
	// 640 tokens are 20 blocks of the 50; twice that leaves 10, the third's need.
	want := [][][2]int{{{0, 300}, {1, 192}}, {{0, 1}, {1, 108}, {2, 32}}, {{0, 1}, {1, 1}, {2, 1}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("iterations (-want +got)\n%s", d)
	}
	if c.sched.kv.pool.free != 0 || !slices.Equal(queued(c), []int{3}) {
		t.Errorf("%d blocks are free, %v wait", c.sched.kv.pool.free, queued(c))
	}
	for _, ok := c.Step(); ok; _, ok = c.Step() {
	}
	if n := c.Stats().Preemptions; n != 0 {
		t.Errorf("%d preemptions", n)
	}
}

// TestTRTLLMEvicts: with MAX_UTILIZATION a request is admitted with room for its
// prompt, and evicted when its answer finds none.
func TestTRTLLMEvicts(t *testing.T) {
	c := mustCore(t, engineConfig("trtllm", func(c *engine.Config) { c.Reserve, c.Overlap, c.Chunked = false, false, true }), Options{KVTokens: 1600})
	submit(t, c, [2]int{300, 640}, [2]int{300, 640}, [2]int{300, 640})
	most := 0
	for _, ok := c.Step(); ok; _, ok = c.Step() {
		most = max(most, len(c.sched.running))
	}
	if s := c.Stats(); most < 3 || s.Preemptions == 0 || s.Finished != 3 {
		t.Errorf("%d ran at once, %d were evicted, %d finished", most, s.Preemptions, s.Finished)
	}
}

// A step's budget that holds no whole block is used as it is: a prompt goes on.
func TestTRTLLMSmallSteps(t *testing.T) {
	c := mustCore(t, engineConfig("trtllm", func(c *engine.Config) { c.Chunked, c.Batched, c.Block = true, 16, 64 }), Options{KVTokens: 1600})
	submit(t, c, [2]int{100, 4})
	for _, ok := c.Step(); ok; _, ok = c.Step() {
	}
	if n := c.Stats().Finished; n != 1 {
		t.Errorf("%d finished", n)
	}
}

// TestSGLangDropsRetractedTokens: the token of the step that runs is lost to a
// request retracted meanwhile; one request is always kept.
func TestSGLangDropsRetractedTokens(t *testing.T) {
	c := mustCore(t, engineConfig("sglang", func(c *engine.Config) { c.Conserve = 0.01 }), Options{KVTokens: 600})
	submit(t, c, [2]int{100, 400})
	c.Step()
	submit(t, c, [2]int{100, 250})
	retracted := 0
	for step, ok := c.Step(); ok; step, ok = c.Step() {
		for _, victim := range step.Preempted {
			retracted++
			if s := c.live[victim]; s.pending != 0 || s.computed != 0 || len(c.sched.running) == 0 {
				t.Errorf("the victim has %d tokens pending and %d computed; %d run", s.pending, s.computed, len(c.sched.running))
			}
			if slices.ContainsFunc(step.Progress, func(p Progress) bool { return p.Index == victim }) {
				t.Errorf("retracted job %d is given the token of that step", victim)
			}
		}
	}
	if retracted == 0 {
		t.Fatal("nobody was retracted")
	}
}
