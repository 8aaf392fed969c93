package cli

import (
	"cmp"
	"context"
	"fmt"
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
		var unread error
		outcomes, err := sim.Replay(p.Config, p.Replicas, jobs(p, &unread), sim.ReplayOptions{
			MaxConcurrency: p.Workload.Spec().MaxConcurrency, Seed: p.Seed,
		})
		if err != nil {
			yield(result.Call{}, err)
			return
		}
		for o := range outcomes {
			if err := cmp.Or(unread, context.Cause(ctx)); err != nil {
				yield(result.Call{}, err)
				return
			}
			if !yield(call(o), nil) {
				return
			}
		}
		if unread != nil {
			yield(result.Call{}, unread)
		}
	}
}

// jobs turns requests into the simulator's jobs. It ends at the first prompt
// that cannot be read, and says why.
func jobs(p lab.Prediction, unread *error) iter.Seq[sim.Job] {
	return func(yield func(sim.Job) bool) {
		for r := range p.Workload.All() {
			j := sim.Job{Index: r.Index, Arrive: r.Due, Output: r.Output}
			if j.Prompt, *unread = promptTokens(r, p.Tokenizer); *unread != nil {
				return
			}
			if !yield(j) {
				return
			}
		}
	}
}

// promptTokens are the tokens of all that a request sends, by the workload's
// own tokenizer where it has one.
func promptTokens(r workload.Request, tok workload.Tokenizer) ([]uint32, error) {
	var out []uint32
	for _, id := range r.IDs {
		out = append(out, uint32(id))
	}
	if out != nil {
		return out, nil
	}
	texts := []string{r.System}
	for _, m := range r.History {
		texts = append(texts, m.Content)
	}
	for _, text := range append(texts, r.Prompt) {
		if tok == nil {
			out = token.Append(out, text)
			continue
		}
		ids, err := tok.Encode(text, false)
		if err != nil {
			return nil, fmt.Errorf("count the tokens of request %d: %w", r.Index, err)
		}
		for _, id := range ids {
			out = append(out, uint32(id))
		}
	}
	return out, nil
}

// call is what a client would have seen of an outcome, had there been one:
// no network, and stamps without error.
func call(o sim.Outcome) result.Call {
	c := result.Call{
		Index: o.Index, Target: o.Replica, Due: o.Due, Ready: o.Ready, Sent: o.Sent, End: o.Sent,
		Sim: true, WantIn: o.Prompt, Want: o.Output,
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
	c.Usage = &result.Usage{Prompt: o.Prompt, Completion: n, Cached: o.Cached}
	if n > 0 {
		c.Headers, c.Answer = c.Chunks[0].At, c.Chunks[0].At
		c.End = c.Chunks[len(c.Chunks)-1].At
	}
	return c
}
