package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// randomCommand is any serving command that a catalogue entry can spell: values
// of the ladders, and of the edges.
func randomCommand(r *rand.Rand, e *engine.Engine, model string) (engine.Command, error) {
	edges := map[string][]string{
		engine.MaxNumSeqs:  {"1", "2", "7", "4096"},
		engine.MaxBatched:  {"1", "16", "100", "1000000"},
		engine.MaxModelLen: {"1", "100", "2000"},
		engine.BlockSize:   {"1", "3", "256"},
		engine.Speculative: {"mtp:1", "mtp:7", "ngram:40", "eagle3:3:draft"},
		engine.GraphMax:    {"1"},
		engine.KVDtype:     {"fp8"},
		engine.PP:          {"2", "3"},
	}
	params := map[string]string{}
	for _, p := range e.Params {
		values := slices.Concat(p.Ladder, edges[p.Name])
		if p.Kind == engine.Bool {
			values = []string{"true", "false"}
		}
		if len(values) > 0 && r.IntN(5) == 0 {
			params[p.Name] = values[r.IntN(len(values))]
		}
	}
	return engine.New(e.Name, model, params, nil)
}

// randomJobs is a mix with shared prefixes, prompts from one token up to more
// than the context, and outputs from one token.
func randomJobs(r *rand.Rand, maxLen int) []Job {
	shared := make([]uint32, 1+r.IntN(600))
	for i := range shared {
		shared[i] = r.Uint32()
	}
	var jobs []Job
	at := time.Duration(0)
	top := min(maxLen, 1+r.IntN(3000))
	for i := range 1 + r.IntN(30) {
		prompt := slices.Clone(shared[:r.IntN(len(shared)+1)])
		for range r.IntN(top + 1) {
			prompt = append(prompt, r.Uint32())
		}
		jobs = append(jobs, Job{Index: i, Arrive: at, Prompt: prompt, Output: 1 + r.IntN(1+r.IntN(200))})
		if r.IntN(2) == 0 {
			at += time.Duration(r.IntN(int(200 * time.Millisecond)))
		}
	}
	return jobs
}

// TestRandomConfigurations: whatever an engine takes as a configuration, the
// simulator runs: no job is lost or given twice, no token is, and time goes on.
func TestRandomConfigurations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	models, gpus, ran := arch.Models(), arch.Accelerators(), 0
	for range 250 {
		e := engine.All()[r.IntN(3)]
		m, g := models[r.IntN(len(models))], gpus[r.IntN(len(gpus))]
		cmd, err := randomCommand(r, e, m.Name)
		var cfg engine.Config
		if err == nil {
			cfg, err = cmd.Resolve(m, g, 1<<r.IntN(6))
		}
		if err != nil {
			if _, ok := errors.AsType[*engine.Rejection](err); !ok {
				t.Errorf("%v: %v", cmd, err)
			}
			continue
		}
		ran++
		o := ReplayOptions{Seed: r.Uint64(), MaxConcurrency: r.IntN(3) * r.IntN(20)}
		if r.IntN(2) == 0 {
			o.KVTokens = cfg.Block * (1 + r.IntN(400))
		}
		replicas := 1 + r.IntN(3)
		jobs := randomJobs(r, cfg.MaxLen)
		name := fmt.Sprintf("%s on %s, %d replicas, %+v", cmd, g.Name, replicas, o)
		checkReplay(t, name, cfg, replicas, jobs, o)
	}
	if ran < 40 {
		t.Errorf("only %d configurations ran", ran)
	}
}

func checkReplay(t *testing.T, name string, cfg engine.Config, replicas int, jobs []Job, o ReplayOptions) {
	t.Helper()
	out, err := Replay(cfg, replicas, slices.Values(jobs), o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	seen := map[int]bool{}
	for got := range out {
		j := jobs[got.Index]
		if seen[j.Index] {
			t.Fatalf("%s: job %d ends twice", name, j.Index)
		}
		seen[j.Index] = true
		if got.Err != "" {
			if len(got.Tokens) > 0 {
				t.Fatalf("%s: job %d is refused after %d tokens", name, j.Index, len(got.Tokens))
			}
			continue
		}
		tokens, last := 0, got.Sent
		for _, e := range got.Tokens {
			if e.N < 1 || e.At <= last {
				t.Fatalf("%s: job %d gives %d tokens at %v after %v", name, j.Index, e.N, e.At, last)
			}
			tokens, last = tokens+e.N, e.At
		}
		if tokens != j.Output || got.Sent < got.Due || got.Cached < 0 || got.Cached >= len(j.Prompt) || last > time.Hour*24*30 {
			t.Fatalf("%s: job %d of %d tokens ends with %d, due %v, sent %v, last %v, cached %d of %d", name, j.Index, j.Output, tokens, got.Due, got.Sent, last, got.Cached, len(j.Prompt))
		}
	}
	if len(seen) != len(jobs) {
		t.Fatalf("%s: %d of %d jobs end", name, len(seen), len(jobs))
	}
}

// TestRandomCancels: wherever clients give up, the blocks of their jobs come
// back, and the others get every token.
func TestRandomCancels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 15 {
		for name, cfg := range engines() {
			cfg.Seqs, cfg.Batched, cfg.MaxLen = 1+r.IntN(8), 1+r.IntN(500), 4000
			c := mustCore(t, cfg, Options{KVTokens: 4096 + r.IntN(4000)})
			want := map[int]int{}
			for _, j := range randomJobs(r, 2000) {
				if c.Submit(j) == nil {
					want[j.Index] = j.Output
				}
			}
			for step, ok := c.Step(); ok; step, ok = c.Step() {
				for _, p := range step.Progress {
					if want[p.Index] -= p.N; p.Done != (want[p.Index] == 0) {
						t.Fatalf("%s: job %d lacks %d tokens, done %v", name, p.Index, want[p.Index], p.Done)
					}
					if p.Done {
						delete(want, p.Index)
					}
				}
				if gone := r.IntN(60); r.IntN(3) == 0 {
					c.Cancel(gone)
					delete(want, gone)
				}
			}
			if len(want) > 0 || c.sched.kv.pool.free != c.sched.kv.pool.total || freeBlocks(c.sched.kv.pool) != c.sched.kv.pool.total || len(c.live) > 0 || len(c.sched.running) > 0 {
				t.Fatalf("%s: %d jobs lack tokens, %d of %d blocks are free, %d live", name, len(want), c.sched.kv.pool.free, c.sched.kv.pool.total, len(c.live))
			}
		}
	}
}
