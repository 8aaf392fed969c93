package cli

import (
	"context"
	"iter"
	"net/http"

	"perflab/internal/lab"
	"perflab/internal/result"
	"perflab/internal/sim"
	"perflab/internal/token"
	"perflab/internal/workload"
)

// predictor gives lab the simulator's replay: requests in, calls out, in
// virtual time. It is the only place where the two sides touch.
type predictor struct{}

var _ lab.Predictor = predictor{}

// Predict replays a workload on a configuration.
func (predictor) Predict(ctx context.Context, p lab.Prediction) iter.Seq2[result.Call, error] {
	return func(yield func(result.Call, error) bool) {
		asked := make([]sim.Job, 0, p.Workload.Len())
		outcomes, err := sim.Replay(p.Config, p.Replicas, jobs(p.Workload, &asked), sim.ReplayOptions{
			MaxConcurrency: p.Workload.Spec().MaxConcurrency, Seed: p.Seed,
		})
		if err != nil {
			yield(result.Call{}, err)
			return
		}
		for o := range outcomes {
			if ctx.Err() != nil {
				yield(result.Call{}, context.Cause(ctx))
				return
			}
			j := asked[o.Index]
			if !yield(call(o, len(j.Prompt), j.Output), nil) {
				return
			}
			asked[o.Index].Prompt = nil // millions of tokens in a long run
		}
	}
}

// jobs turns requests into the simulator's jobs, remembering what was asked.
func jobs(w *workload.Workload, asked *[]sim.Job) iter.Seq[sim.Job] {
	return func(yield func(sim.Job) bool) {
		for r := range w.All() {
			j := sim.Job{Index: r.Index, Arrive: r.Due, Prompt: promptOf(r), Output: r.Output}
			*asked = append(*asked, j)
			if !yield(j) {
				return
			}
		}
	}
}

// promptOf are ids of all that a request sends, equal where texts are, and as
// many as the workload counts: a model's tokenizer may count otherwise than
// package token, whose pieces these are.
func promptOf(r workload.Request) []uint32 {
	ids := make([]uint32, 0, r.Input)
	for _, id := range r.IDs {
		ids = append(ids, uint32(id))
	}
	ids = token.Append(ids, r.System)
	for _, m := range r.History {
		ids = token.Append(ids, m.Content)
	}
	ids = token.Append(ids, r.Prompt)
	for len(ids) < r.Input {
		ids = append(ids, uint32(len(ids)))
	}
	return ids[:r.Input]
}

// call is what a client would have seen of an outcome, had there been one:
// no network, and stamps without error.
func call(o sim.Outcome, prompt, want int) result.Call {
	c := result.Call{
		Index: o.Index, Target: o.Replica, Due: o.Due, Ready: o.Ready, Sent: o.Sent, End: o.Sent,
		Sim: true, WantIn: prompt, Want: want,
	}
	if o.Err != "" {
		c.Class, c.Status, c.Error = result.HTTPStatus, http.StatusBadRequest, o.Err
		return c
	}
	n := 0
	for _, e := range o.Tokens {
		c.Chunks = append(c.Chunks, result.Chunk{At: e.At, Tokens: int32(e.N)})
		n += e.N
	}
	c.Status, c.Finish = http.StatusOK, "length"
	c.Usage = &result.Usage{Prompt: prompt, Completion: n, Cached: o.Cached}
	if n > 0 {
		c.Headers, c.Answer = c.Chunks[0].At, c.Chunks[0].At
		c.End = c.Chunks[len(c.Chunks)-1].At
	}
	return c
}
