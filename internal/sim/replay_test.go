package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReplay(t *testing.T) {
	jobs := burst(30, 100, 20)
	run := func(replicas, limit int) (out []Outcome) {
		seq, err := Replay(testConfig(), replicas, slices.Values(jobs), ReplayOptions{MaxConcurrency: limit, KVTokens: 50_000})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Collect(seq)
	}
	last := func(out []Outcome) time.Duration { o := out[len(out)-1]; return o.Tokens[len(o.Tokens)-1].At }

	per := map[int]int{}
	for _, o := range run(3, 0) {
		per[o.Replica]++
	}
	if d := cmp.Diff(map[int]int{0: 10, 1: 10, 2: 10}, per); d != "" {
		t.Errorf("thirty jobs on three replicas:\n%s", d)
	}
	if one, three := last(run(1, 0)), last(run(3, 0)); three >= one {
		t.Errorf("three replicas take %v, one %v", three, one)
	}

	// One at a time: each starts when the one before it ends.
	var end time.Duration
	for i, o := range run(1, 1) {
		if o.Index != i || o.Due != 0 || o.Ready != end || o.Sent != end {
			t.Fatalf("job %d starts at %v, the one before it ended at %v", o.Index, o.Ready, end)
		}
		end = o.Tokens[len(o.Tokens)-1].At
	}

	// Never more in flight than allowed, over all replicas.
	type edge struct {
		at time.Duration
		by int
	}
	var edges []edge
	for _, o := range run(2, 7) {
		edges = append(edges, edge{o.Sent, 1}, edge{o.Tokens[len(o.Tokens)-1].At, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return int(a.at-b.at)*2 + a.by - b.by })
	n, most := 0, 0
	for _, e := range edges {
		n += e.by
		most = max(most, n)
	}
	if most != 7 {
		t.Errorf("%d in flight, the limit is 7", most)
	}

	// A refused job is an outcome, and does not hold a place.
	jobs[0].Output = 1 << 20
	out := run(1, 1)
	if len(out) != 30 || out[0].Index != 0 || out[0].Err == "" || out[1].Ready != 0 {
		t.Errorf("%d outcomes, the first %+v", len(out), out[0])
	}
	if _, err := Replay(testConfig(), 0, slices.Values(jobs), ReplayOptions{}); err == nil {
		t.Error("no error for no replicas")
	}
}

// A consumer may stop early, and range again.
func TestReplayStops(t *testing.T) {
	seq, err := Replay(testConfig(), 2, slices.Values(burst(30, 100, 20)), ReplayOptions{MaxConcurrency: 4, KVTokens: 50_000})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n := 0
		for range seq {
			if n++; n == 3 {
				break
			}
		}
		if n != 3 {
			t.Errorf("%d outcomes before the break", n)
		}
	}
}

// TestFirstUse: the first prompt whose beginning is cached waits for a kernel, and what is
// computed beside it; one that a warm-up has met waits no more.
func TestFirstUse(t *testing.T) {
	cfg := engines()["sglang"]
	jobs := []Job{{Index: 0, Prompt: prompt(1, 200), Output: 2}}
	for i := range 2 {
		jobs = append(jobs, Job{Index: i + 1, Arrive: time.Duration(i+1) * time.Minute, Prompt: slices.Concat(prompt(1, 100), prompt(7+i, 100)), Output: 2})
	}
	k, err := Priors().With(Set{Values: map[string]float64{"t_compile": 6}})
	if err != nil {
		t.Fatal(err)
	}
	first := func(o ReplayOptions) (at []time.Duration) {
		o.KVTokens, o.Constants = 100_000, k
		for _, x := range finish(t, cfg, 1, jobs, o).outcomes {
			at = append(at, (x.Tokens[0].At - x.Sent).Round(time.Second))
		}
		return at
	}
	twice := []Job{jobs[0], jobs[1]}
	for _, w := range []struct {
		o    ReplayOptions
		want []time.Duration
	}{
		{ReplayOptions{}, []time.Duration{0, 0, 0}},
		{ReplayOptions{FirstUse: true}, []time.Duration{0, 6 * time.Second, 0}},
		{ReplayOptions{FirstUse: true, Warm: jobs[:1]}, []time.Duration{6 * time.Second, 0, 0}},
		{ReplayOptions{FirstUse: true, Warm: twice}, []time.Duration{0, 0, 0}},
	} {
		if got := first(w.o); !slices.Equal(got, w.want) {
			t.Errorf("first use %v, %d requests before: first tokens come after %v, want %v", w.o.FirstUse, len(w.o.Warm), got, w.want)
		}
	}
}

// TestWarm: what every replica has served before time 0 is in its cache, and nowhere
// else: times, counters and SGLang's estimates begin as without.
func TestWarm(t *testing.T) {
	old := burst(3, 6000, 40)
	var jobs []Job
	for i := range 12 {
		jobs = append(jobs, Job{Index: i, Arrive: time.Duration(i) * 40 * time.Millisecond, Prompt: slices.Concat(old[i%3].Prompt, prompt(100+i, 50)), Output: 30})
	}
	for name, cfg := range engines() {
		if cfg.SpecTokens > 0 {
			continue // what is accepted is drawn by a request's number
		}
		for _, replicas := range []int{1, 2} {
			o := ReplayOptions{KVTokens: 100_000, Warm: append(slices.Clone(old), Job{PromptLen: 1 << 20, Output: 1})}
			warm := finish(t, cfg, replicas, jobs, o)
			again := finish(t, cfg, replicas, jobs, o)
			if d := differ(warm, again); d != "" {
				t.Errorf("%s: a second replay differs:\n%s", name, d)
			}
			prompts, output, queries, ended := 0, 0, 0, 0
			for _, s := range warm.stats {
				prompts, output = prompts+s.PromptTokens, output+s.GenerationTokens
				queries, ended = queries+s.PrefixQueries, ended+s.Finished
			}
			if prompts != 12*6050 || output != 12*30 || ended != 12 || cfg.Prefix && queries != prompts {
				t.Errorf("%s: counted %d + %d tokens of %d requests, %d looked up", name, prompts, output, ended, queries)
			}
			if !cfg.Prefix {
				if d := differ(finish(t, cfg, replicas, jobs, ReplayOptions{KVTokens: o.KVTokens}), warm); d != "" {
					t.Errorf("%s: a warm-up changes what happens without a cache:\n%s", name, d)
				}
				continue
			}
			cold := finish(t, cfg, replicas, jobs, ReplayOptions{KVTokens: o.KVTokens})
			if warm.outcomes[0].Tokens[0].At >= cold.outcomes[0].Tokens[0].At {
				t.Errorf("%s: the first token comes at %v, without the warm-up at %v", name, warm.outcomes[0].Tokens[0].At, cold.outcomes[0].Tokens[0].At)
			}
			for i, o := range warm.outcomes {
				if want := 6000 / cfg.Block * cfg.Block; o.Cached != want || o.Sent != jobs[i].Arrive {
					t.Errorf("%s, %d replicas: job %d sent at %v finds %d tokens, want %d", name, replicas, i, o.Sent, o.Cached, want)
				}
			}
		}
	}
}

// TestSizeOfTheCache: the size given is what the engine reports, so that its own changes
// nothing: one copy's of several, in tokens of every group of layers. No request may
// be larger than one copy's.
func TestSizeOfTheCache(t *testing.T) {
	for name, cfg := range engines() {
		tokens, err := cfg.KVTokens()
		if err != nil {
			t.Fatal(err)
		}
		own, err := newCore(cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		given := mustCore(t, cfg, Options{KVTokens: tokens})
		spare := cfg.DP * cfg.Layout().Groups() // blocks that cannot be shared out
		if a, b := own.Stats().KVBlocks, given.Stats().KVBlocks; b > a || b <= a-spare {
			t.Errorf("%s: %d blocks of its own, %d for the %d tokens that it reports", name, a, b, tokens)
		}
		c := mustCore(t, cfg, Options{KVTokens: 3200})
		if err := c.Submit(Job{PromptLen: 3200, Output: 100}); (err == nil) != (name == "hybrid") {
			t.Errorf("%s: 3300 tokens in a cache of 3200: %v", name, err)
		}
		if err := c.Submit(Job{Index: 1, PromptLen: 2900, Output: 100}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
