package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestNobodyIsReusedEarly: what a finished job was kept in serves another only when
// nothing names it any more: neither the work scheduled, nor that which ran, nor
// a queue. Requests come over time to a full cache and give up at random, so that some are
// preempted with their last token on the way.
func TestNobodyIsReusedEarly(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	reused, late := 0, 0
	for range 10 {
		all := engines()
		for _, name := range slices.Sorted(maps.Keys(all)) { // in one order: they draw from one stream
			cfg := all[name]
			cfg.Seqs = 4 + r.IntN(60)
			c := mustCore(t, cfg, Options{KVTokens: 600 + r.IntN(1500)})
			asked, got := map[int]int{}, map[int]int{}
			for i, active := 0, true; i < 150 || active; {
				for range r.IntN(3) {
					if i++; i <= 150 {
						j := Job{Index: i, Arrive: c.Now(), PromptLen: 1 + r.IntN(60), Output: 1 + r.IntN(90)}
						if len(c.spare) > 0 {
							reused++
						}
						if err := c.Submit(j); err != nil {
							t.Fatal(err)
						}
						asked[i] = j.Output
					}
				}
				var step *Step
				if step, active = c.Step(); !active {
					continue
				}
				for _, p := range step.Progress {
					if got[p.Index] += p.N; p.Done && p.s.phase != inRunning {
						late++
					}
				}
				if gone := r.IntN(300); c.live[gone] != nil && r.IntN(4) == 0 {
					c.Cancel(gone)
					delete(asked, gone)
				}
				checkNames(t, name, c)
			}
			for i, n := range asked {
				if got[i] != n {
					t.Fatalf("%s: job %d has %d of %d tokens", name, i, got[i], n)
				}
			}
			if freeBlocks(c.sched.kv.pool) != c.sched.kv.pool.total || len(c.live) > 0 {
				t.Fatalf("%s: %d of %d blocks are free, %d jobs live", name, freeBlocks(c.sched.kv.pool), c.sched.kv.pool.total, len(c.live))
			}
		}
	}
	if reused == 0 || late == 0 {
		t.Errorf("%d reused, %d finished while they waited again: want some of each", reused, late)
	}
}

// checkNames checks that whom a core would reuse is named nowhere, and that every
// live job is in one place.
func checkNames(t *testing.T, name string, c *Core) {
	t.Helper()
	named, places := map[*seq]bool{}, map[*seq]int{}
	for _, w := range slices.Concat(c.sched.next, c.work) {
		named[w.s] = true
	}
	front := slices.Clone(c.front.done.items[c.front.done.head:])
	for _, f := range c.front.inside.items[c.front.inside.head:] {
		front = append(front, f.s)
	}
	for _, s := range slices.Concat(front, c.sched.waiting.items[c.sched.waiting.head:], c.sched.running) {
		named[s] = true
		places[s]++
	}
	for _, s := range c.spare {
		if named[s] {
			t.Fatalf("%s: job %d is to be reused and still named", name, s.job.Index)
		}
	}
	for i, s := range c.live {
		if places[s] != 1 || s.job.Index != i {
			t.Fatalf("%s: job %d is in %d places under the name %d", name, i, places[s], s.job.Index)
		}
	}
}

// TestCancelMakesRoom: SGLang tries the queue again when a running request has been
// cancelled, as when one has ended.
func TestCancelMakesRoom(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		cfg := engines()["sglang"]
		cfg.Overlap = overlap
		c := mustCore(t, cfg, Options{KVTokens: 1000})
		submit(t, c, [2]int{100, 300}, [2]int{100, 300}, [2]int{400, 200})
		for range 5 {
			c.Step()
		}
		c.Cancel(1)
		for range 3 {
			c.Step()
		}
		if got := indexes(c.sched.running); !slices.Equal(got, []int{0, 2}) {
			t.Errorf("overlap %v: %v run after the second was cancelled, want the first and the third", overlap, got)
		}
	}
}

// TestWaitsUnderOverlap: a step counts for what kept those out of it who waited when
// it was scheduled, also where that was during the step before.
func TestWaitsUnderOverlap(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		for _, test := range []struct {
			seqs, batched int
			wait          func(Waits) time.Duration
		}{
			{1, 8192, func(w Waits) time.Duration { return w.Seqs }},
			{8, 100, func(w Waits) time.Duration { return w.Tokens }},
		} {
			cfg := testConfig()
			cfg.Overlap, cfg.Seqs, cfg.Batched = overlap, test.seqs, test.batched
			c := mustCore(t, cfg, Options{})
			submit(t, c, [2]int{100, 3}, [2]int{100, 3})
			var waited time.Duration
			for step, ok := c.Step(); ok; step, ok = c.Step() {
				second := c.live[1]
				if second != nil && second.produced == 0 && !slices.ContainsFunc(c.work, func(w work) bool { return w.s == second }) {
					waited += step.End - step.Start
				}
			}
			if got := c.Stats().Waits; test.wait(got) != waited || waited == 0 || got.KV+got.Tokens+got.Seqs != waited {
				t.Errorf("overlap %v, %d places, %d tokens: waits are %+v, want %v", overlap, test.seqs, test.batched, got, waited)
			}
		}
	}
}

// TestEndedInTheQueue: two are preempted together while the last token of the younger
// is on the way. It ends in the queue, behind the older, where its name stays until
// that is admitted: no newcomer may be kept in its place meanwhile.
func TestEndedInTheQueue(t *testing.T) {
	c := mustCore(t, engines()["vllm async"], Options{KVTokens: 16 * 8})
	submit(t, c, [2]int{12, 40}, [2]int{12, 40}, [2]int{12, 40}, [2]int{12, 40}, [2]int{16, 40}, [2]int{12, 5})
	for c.live[5] != nil {
		c.Step()
	}
	if q := queued(c); len(q) < 2 || q[0] != 4 || q[1] != 5 {
		t.Fatalf("the queue is %v, want the two preempted first", q)
	}
	for range 10 {
		c.Step()
		checkNames(t, "vllm async", c)
		submit(t, c, [2]int{12, 2})
	}
}
