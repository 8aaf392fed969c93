package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"perflab/internal/engine"
)

// tiered is a configuration with a host cache of so many tokens, as its engine has one.
func tiered(cfg engine.Config, tokens int) engine.Config {
	t := engine.Tier{Name: engine.HostTier, GBs: 64, Bytes: int64(tokens/cfg.Block) * cfg.BlockBytes() * int64(max(1, cfg.TP*cfg.PP))}
	switch {
	case cfg.PrefillOnly:
		t.Fetch = engine.FetchLayers
	case cfg.Engine == "trtllm":
		t.Fetch, t.WriteBack, t.Moves = engine.FetchBefore, true, true
	}
	cfg.Tiers = []engine.Tier{t}
	return cfg
}

// tieredEngines are the ways in which engines keep and fetch what devices give up.
func tieredEngines() map[string]engine.Config {
	all := engines()
	back := all["sglang"]
	back.Conserve = 1
	out := map[string]engine.Config{"vllm": all["vllm"], "vllm async": all["vllm async"], "trtllm": all["trtllm"], "sglang": all["sglang"], "parallel": all["parallel"], "sglang write back": back}
	for name, cfg := range out {
		out[name] = tiered(cfg, 1<<20)
	}
	out["sglang write back"].Tiers[0].WriteBack = true
	return out
}

// withRoom is a configuration whose host cache has room for so many tokens.
func withRoom(cfg engine.Config, tokens int) engine.Config {
	cfg.Tiers = slices.Clone(cfg.Tiers)
	cfg.Tiers[0].Bytes = int64(tokens/cfg.Block) * cfg.BlockBytes() * int64(max(1, cfg.TP*cfg.PP))
	return cfg
}

// talks are conversations whose turns come in a drawn order, n turns in all: each prompt is the one
// before it of its conversation and some tokens more.
func talks(seed uint64, conversations, n int, gap time.Duration) []Job {
	r := rand.New(rand.NewPCG(seed, 3))
	prompts := make([][]uint32, conversations)
	jobs := make([]Job, n)
	for i := range jobs {
		c := r.IntN(conversations)
		for range 40 + r.IntN(200) {
			prompts[c] = append(prompts[c], uint32(c)<<20|uint32(len(prompts[c])))
		}
		if len(prompts[c]) > 1500 {
			prompts[c] = prompts[c][:100]
		}
		jobs[i] = Job{Index: i, Arrive: time.Duration(i) * gap, Prompt: slices.Clone(prompts[c]), Output: 1 + r.IntN(30)}
	}
	return jobs
}

func hits(s Stats) int { return s.PrefixHits + s.HostHits() }

// fast are constants with which fetches cost nothing.
func fast(t *testing.T) *Constants {
	t.Helper()
	c, err := Default().With(Set{Values: map[string]float64{"host_link": 1e12, "host_setup": 0}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTierOfNothing, exactly: one without room for a block is none.
func TestTierOfNothing(t *testing.T) {
	for name, cfg := range tieredEngines() {
		jobs := talks(1, 6, 60, 30*time.Millisecond)
		none := withRoom(cfg, 0)
		bare := cfg
		bare.Tiers = nil
		o := ReplayOptions{KVTokens: 4000}
		if d := differ(finish(t, bare, 1, jobs, o), finish(t, none, 1, jobs, o)); d != "" {
			t.Errorf("%s: a tier without room changes:\n%s", name, d)
		}
	}
}

// TestLargerTier: of requests that come one after another, and so in any case in one order, a larger tier finds as
// much and more, whatever of it; with many at once the order differs, and the bound is looser.
func TestLargerTier(t *testing.T) {
	for name, cfg := range tieredEngines() {
		for seed := range uint64(3) {
			last, first := -1, 0
			for _, room := range []int{0, 2000, 4000, 8000, 1 << 20} {
				f := finish(t, withRoom(cfg, room), 1, talks(seed, 8, 80, 5*time.Second), ReplayOptions{KVTokens: 3000})
				got := hits(f.stats[0])
				if got < last {
					t.Errorf("%s, seed %d: %d tokens of room find %d tokens, less room %d", name, seed, room, got, last)
				}
				if last < 0 {
					first = got
				}
				last = got
			}
			if last < first+5000 {
				t.Errorf("%s, seed %d: %d tokens are found without a tier and %d with all room", name, seed, first, last)
			}
			few := hits(finish(t, withRoom(cfg, 2000), 1, talks(seed, 8, 80, 0), ReplayOptions{KVTokens: 3000}).stats[0])
			all := hits(finish(t, cfg, 1, talks(seed, 8, 80, 0), ReplayOptions{KVTokens: 3000}).stats[0])
			if float64(all) < 0.95*float64(few) {
				t.Errorf("%s, seed %d, all at once: all room finds %d tokens, a little of it %d", name, seed, all, few)
			}
		}
	}
}

// TestEndlessTier: one of any size whose fetches take no time is a cache of the devices of any size, for
// requests that each fit by themselves: to the nanosecond.
func TestEndlessTier(t *testing.T) {
	for name, cfg := range tieredEngines() {
		jobs := talks(5, 8, 80, 5*time.Second)
		bare := cfg
		bare.Tiers = nil
		small := finish(t, cfg, 1, jobs, ReplayOptions{KVTokens: 3000, Constants: fast(t)})
		large := finish(t, bare, 1, jobs, ReplayOptions{KVTokens: 1 << 20, Constants: fast(t)})
		if d := differ(large.outcomes, small.outcomes); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
		if hits(small.stats[0]) != hits(large.stats[0]) || small.stats[0].HostHits() == 0 {
			t.Errorf("%s: %d tokens found, %d of them in the host; %d in a large cache", name, hits(small.stats[0]), small.stats[0].HostHits(), hits(large.stats[0]))
		}
	}
}

// TestFetch: what a hit in the host costs, to the nanosecond, in each way of fetching.
func TestFetch(t *testing.T) {
	prompt := make([]uint32, 2000)
	other := make([]uint32, 2000)
	for i := range prompt {
		prompt[i], other[i] = uint32(i), uint32(i)|1<<20
	}
	k := Default()
	for name, cfg := range tieredEngines() {
		if cfg.DP > 1 {
			continue
		}
		jobs := []Job{{Index: 0, Prompt: prompt, Output: 1}, {Index: 1, Arrive: 10 * time.Second, Prompt: other, Output: 1}, {Index: 2, Arrive: 20 * time.Second, Prompt: prompt, Output: 1}}
		took := func(cfg engine.Config, kv int, jobs []Job) time.Duration {
			f := finish(t, cfg, 1, jobs, ReplayOptions{KVTokens: kv})
			last := f.outcomes[len(f.outcomes)-1]
			return last.Tokens[0].At - last.Sent
		}
		near := took(cfg, 1<<16, jobs) // the devices have it still
		far := took(cfg, 2100, jobs)
		anew := took(cfg, 2100, jobs[:1])
		f := finish(t, cfg, 1, jobs, ReplayOptions{KVTokens: 2100})
		tier := f.stats[0].Tiers[0]
		blocks := tier.Loaded / cfg.Block
		link := seconds(float64(blocks) * float64(cfg.BlockBytes()) / (64e9 * k.Value(SubjectOf(cfg), "host_link")))
		setup := seconds(k.Value(SubjectOf(cfg), "host_setup") * 1e-3)
		want := near + setup + link
		write := seconds(0)
		if cfg.Tiers[0].WriteBack { // the room for it is written first
			write = seconds(float64(blocks) * float64(cfg.BlockBytes()) / (64e9 * k.Value(SubjectOf(cfg), "host_link")))
		}
		switch {
		case cfg.Tiers[0].Fetch == engine.FetchLayers && !cfg.Tiers[0].WriteBack: // hidden but for what is longer than the step
			if far < near+setup || far > want {
				t.Errorf("%s: %v with a fetch, %v without: want up to %v", name, far, near, want)
			}
		case cfg.Tiers[0].WriteBack:
			if far < near+setup || far > want+write+time.Millisecond {
				t.Errorf("%s: %v with a fetch, %v without: want up to %v", name, far, near, want+write)
			}
		case far != want:
			t.Errorf("%s: %v with a fetch, %v without: want %v", name, far, near, want)
		}
		if far >= anew || tier.Hits != tier.Loaded || tier.Hits < 1800 || tier.Loading-link > time.Microsecond || link-tier.Loading > time.Microsecond {
			t.Errorf("%s: %v with a fetch and %v to compute it anew; %+v, want %v on the link", name, far, anew, tier, link)
		}
	}
}

// TestOthersGoOn: while vLLM fetches for one request, another's steps go on.
func TestOthersGoOn(t *testing.T) {
	cfg := tieredEngines()["vllm"]
	slow, err := Default().With(Set{Values: map[string]float64{"host_setup": 2000}})
	if err != nil {
		t.Fatal(err)
	}
	prompt, other := make([]uint32, 1600), make([]uint32, 1600)
	for i := range prompt {
		prompt[i], other[i] = uint32(i), uint32(i)|1<<20
	}
	f := finish(t, cfg, 1, []Job{
		{Index: 0, Prompt: prompt, Output: 1}, {Index: 1, Arrive: 5 * time.Second, Prompt: other, Output: 1},
		{Index: 2, Arrive: 10 * time.Second, Prompt: prompt, Output: 1}, {Index: 3, Arrive: 10*time.Second + time.Millisecond, PromptLen: 50, Output: 5},
	}, ReplayOptions{KVTokens: 2000, Constants: slow})
	fetched, short := f.outcomes[2], f.outcomes[3]
	if end := short.Tokens[len(short.Tokens)-1].At; end > 11*time.Second || fetched.Tokens[0].At < 12*time.Second {
		t.Errorf("the short request ends at %v, the one that is fetched for begins at %v", end, fetched.Tokens[0].At)
	}
	if f.stats[0].Waits.Transfer < time.Second {
		t.Errorf("nothing ran while blocks were fetched, and that is counted as %v", f.stats[0].Waits.Transfer)
	}
}

// TestTiersConserve: under pressure, with requests that give up, every block comes back and every job that stays
// has its tokens.
func TestTiersConserve(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for name, cfg := range tieredEngines() {
		cfg = withRoom(cfg, 20_000)
		c := mustCore(t, cfg, Options{KVTokens: 2500})
		jobs := talks(9, 10, 150, 0)
		got, asked, cancelled := map[int]int{}, map[int]int{}, 0
		for i, active := 0, true; i < len(jobs) || active; {
			if i < len(jobs) && r.IntN(2) == 0 {
				j := jobs[i]
				i++
				j.Arrive = c.Now()
				if err := c.Submit(j); err != nil {
					t.Fatal(err)
				}
				asked[j.Index] = j.Output
			}
			var step *Step
			if step, active = c.Step(); !active {
				continue
			}
			for _, p := range step.Progress {
				got[p.Index] += p.N
			}
			if gone := r.IntN(len(jobs)); c.live[gone] != nil && r.IntN(6) == 0 {
				c.Cancel(gone)
				delete(asked, gone)
				cancelled++
			}
		}
		for i, n := range asked {
			if got[i] != n {
				t.Fatalf("%s: job %d has %d of %d tokens", name, i, got[i], n)
			}
		}
		pool := c.sched.kv.pool
		if freeBlocks(pool) != pool.total || len(c.live) > 0 || c.sched.away != 0 || len(c.sched.kv.tiers.moves) != 0 {
			t.Errorf("%s: %d of %d blocks are free, %d jobs live, %d away", name, freeBlocks(pool), pool.total, len(c.live), c.sched.away)
		}
		if s := c.Stats(); cancelled == 0 || s.HostHits() == 0 || s.Tiers[0].Used > s.Tiers[0].Room || s.Tiers[0].Stored == 0 {
			t.Errorf("%s: %d cancelled; %+v", name, cancelled, s.Tiers)
		}
	}
}

// TestDisk: what the host gives up the disk still has, whole chunks of it.
func TestDisk(t *testing.T) {
	cfg := tiered(testConfig(), 6144)
	cfg.Tiers[0].Fetch, cfg.Tiers[0].Chunk = engine.FetchBefore, 256
	cfg.Tiers = append(cfg.Tiers, engine.Tier{Name: engine.DiskTier, Bytes: 1 << 40, Chunk: 256, Fetch: engine.FetchBefore})
	f := finish(t, cfg, 1, talks(2, 8, 80, 5*time.Second), ReplayOptions{KVTokens: 3000})
	host, disk := f.stats[0].Tiers[0], f.stats[0].Tiers[1]
	if host.Hits == 0 || disk.Hits == 0 || disk.Queries != host.Queries-host.Hits {
		t.Errorf("host %+v\ndisk %+v", host, disk)
	}
	for _, o := range f.outcomes {
		if o.Cached%16 != 0 {
			t.Errorf("%d cached tokens are no whole blocks", o.Cached)
		}
	}
}

// BenchmarkReplayTiers is conversations that go through a small cache of the devices.
func BenchmarkReplayTiers(b *testing.B) {
	for _, name := range []string{"vllm", "sglang", "trtllm"} {
		cfg := tieredEngines()[name]
		b.Run(name, func(b *testing.B) {
			benchmarkReplay(b, cfg, talks(1, 50, 1000, 20*time.Millisecond), ReplayOptions{KVTokens: 20_000})
		})
	}
}
