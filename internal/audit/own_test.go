package audit

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/block"
	"perflab/internal/engine"
	"perflab/internal/interop"
	"perflab/internal/result"
	"perflab/internal/sim"
)

// randomCalls is a load of any kind: at once, at a rate or in a closed loop,
// answers of one length or of many, chunks of several tokens, reads of several
// chunks, failures.
func randomCalls(r *rand.Rand) (result.Header, []result.Call) {
	h := result.Header{Schema: "perflab.run/1", Model: "m"}
	n := 1 + r.IntN(120)
	gap := time.Duration(r.IntN(3)) * time.Duration(r.IntN(int(300*time.Millisecond)))
	if gap > 0 {
		h.Rate = float64(time.Second) / float64(gap)
	}
	step := time.Duration(1+r.IntN(80)) * time.Millisecond
	fixed, several, merged, broken := r.IntN(3) == 0, r.IntN(4) == 0, r.IntN(4) == 0, r.IntN(4) == 0
	length, prompt := 1+r.IntN(60), 1+r.IntN(3000)
	free := make([]time.Duration, 1+r.IntN(40)) // ends in a closed loop
	if r.IntN(3) == 0 {
		h.Limit, h.Rate, gap = len(free), 0, 0
	}
	var calls []result.Call
	for i := range n {
		due := time.Duration(i) * gap
		c := result.Call{Index: i, Due: due, Ready: due}
		if h.Limit > 0 {
			slices.Sort(free)
			c.Due, c.Ready = 0, free[0]
		}
		c.Sent = c.Ready + time.Duration(r.IntN(int(time.Millisecond)))
		tokens := length
		if !fixed {
			tokens = 1 + r.IntN(4*length)
		}
		at := c.Sent + time.Duration(1+r.IntN(int(2*time.Second)))
		c.First, c.Headers = at, at
		read := int32(0)
		for left := tokens; left > 0; {
			k := 1
			if several {
				k = min(left, 1+r.IntN(5))
			}
			c.Chunks = append(c.Chunks, result.Chunk{At: at, Tokens: int32(k), Read: read})
			left -= k
			if !merged || r.IntN(2) == 0 {
				at += step/2 + time.Duration(r.IntN(int(step)))
				read++
			}
		}
		c.End = c.Chunks[len(c.Chunks)-1].At + time.Duration(r.IntN(int(5*time.Millisecond)))
		c.Usage = &result.Usage{Prompt: prompt, Completion: tokens}
		if broken && r.IntN(10) == 0 {
			c.Class, c.Error, c.Usage = result.Connect, "it broke", nil
		}
		free[0] = c.End
		calls = append(calls, c)
	}
	return h, calls
}

func all(calls []result.Call) iter.Seq[result.Call] { return slices.Values(calls) }

// blocksOfRun are the blocks that perflab prints of a run, with what stands
// under them and without.
func blocksOfRun(t *testing.T, h result.Header, calls []result.Call) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, compat := range []string{"", result.VLLM} {
		s, err := result.Summarize(h, &result.Client{}, result.Options{Compat: compat}, all(calls))
		if err != nil {
			t.Fatal(err)
		}
		for name, st := range map[string]block.Style{
			"vllm":     {},
			"all":      {Sections: []string{"ttft", "tpot", "itl", "e2el"}, Percentiles: []float64{50, 90, 95, 99}},
			"gpustack": {Layout: block.GPUStack},
		} {
			block := block.Text(s, st)
			out[name+" "+compat+" verdict"] = block + s.Verdict.Text()
			out[name+" "+compat] = block
		}
	}
	return out
}

// No run of our own contradicts itself, whatever its calls.
func TestOwnBlocksHaveNoErrors(t *testing.T) {
	t.Parallel()
	for seed := range 100 {
		h, calls := randomCalls(rand.New(rand.NewPCG(uint64(seed), 7)))
		for name, text := range blocksOfRun(t, h, calls) {
			f := interop.Read("own.txt", []byte(text))
			for _, found := range filesAudited([]interop.File{f}, Options{}) {
				if found.Severity == Error {
					t.Errorf("seed %d, %s: %s %s: %s\n%s", seed, name, found.Place, found.Type, found.Text, text)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}

// Runs of the simulated engine at a load that it bears yield nothing at all.
func TestSimulatedRunsAreClean(t *testing.T) {
	t.Parallel()
	m := mustMachine(t, "Qwen/Qwen3-32B", "h100-sxm", 2)
	command, err := engine.Parse([]string{"vllm", "serve", "Qwen/Qwen3-32B", "-tp", "2"})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := command.Resolve(m.model, m.acc, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, load := range []struct {
		n, prompt, output int
		gap               time.Duration
		limit             int
	}{
		{1, 1024, 128, 0, 0}, {10, 1024, 128, 0, 0}, {100, 512, 64, 0, 0}, {60, 300, 100, time.Second, 0}, {80, 2000, 40, 0, 8}, {50, 100, 4, 0, 50},
	} {
		r := rand.New(rand.NewPCG(uint64(load.n), 3))
		calls, err := simulate(cfg, load.limit, func(yield func(sim.Job) bool) {
			for i := range load.n {
				prompt := make([]uint32, load.prompt)
				for j := range prompt {
					prompt[j] = r.Uint32()
				}
				if !yield(sim.Job{Index: i, Arrive: time.Duration(i) * load.gap, Prompt: prompt, Output: load.output}) {
					return
				}
			}
		}, load.prompt)
		if err != nil {
			t.Fatal(err)
		}
		h := result.Header{Schema: "perflab.run/1", Model: "Qwen/Qwen3-32B", Command: command.String(), Limit: load.limit}
		if load.gap > 0 {
			h.Rate = float64(time.Second) / float64(load.gap)
		}
		for name, text := range blocksOfRun(t, h, calls) {
			doc := "# Run\n\n## Hardware\n\n2 x NVIDIA H100 SXM\n\n## Result\n\n```bash\n" + command.String() + "\n```\n\n```\n" + text + "\n```\n"
			f := interop.Read("own.md", []byte(doc))
			for _, found := range filesAudited([]interop.File{f}, Options{}) {
				if found.Type == "peak-buckets" && strings.Contains(name, " vllm") {
					continue // vLLM's fixed seconds, asked for, of a run of 1.05 s
				}
				t.Errorf("%v, %s: %s %s %s: %s\n%s", load, name, found.Place, found.Severity, found.Type, found.Text, text)
			}
		}
	}
}

// simulate replays jobs and returns what a client would have seen.
func simulate(cfg engine.Config, limit int, jobs iter.Seq[sim.Job], prompt int) ([]result.Call, error) {
	outcomes, err := sim.Replay(cfg, 1, jobs, sim.ReplayOptions{MaxConcurrency: limit, Seed: 1})
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	var calls []result.Call
	for o := range outcomes {
		c := result.Call{Index: o.Index, Due: o.Due, Ready: o.Ready, Sent: o.Sent, Finish: "length", Status: 200}
		n := 0
		for i, e := range o.Tokens {
			c.Chunks = append(c.Chunks, result.Chunk{At: e.At, Tokens: int32(e.N), Read: int32(i)})
			n += e.N
		}
		c.Usage = &result.Usage{Prompt: prompt, Completion: n}
		c.First, c.Headers, c.End = c.Chunks[0].At, c.Chunks[0].At, c.Chunks[len(c.Chunks)-1].At
		calls = append(calls, c)
	}
	return calls, nil
}
