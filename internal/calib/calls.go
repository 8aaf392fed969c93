package calib

import (
	"iter"

	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/sim"
)

// Calls replays jobs in virtual time and gives what a client would have seen
// of each, had there been one: no network, and stamps without error. They come
// in the order in which they end.
func Calls(cfg engine.Config, replicas int, jobs iter.Seq[sim.Job], o sim.ReplayOptions) (iter.Seq[result.Call], error) {
	type want struct{ prompt, output int }
	wanted := map[int]want{} // of the jobs in flight
	outcomes, err := sim.Replay(cfg, replicas, func(yield func(sim.Job) bool) {
		for j := range jobs {
			wanted[j.Index] = want{len(j.Prompt), j.Output}
			if !yield(j) {
				return
			}
		}
	}, o)
	if err != nil {
		return nil, err
	}
	return func(yield func(result.Call) bool) {
		for o := range outcomes {
			w := wanted[o.Index]
			delete(wanted, o.Index)
			if !yield(call(o, w.prompt, w.output)) {
				return
			}
		}
	}, nil
}

// Status codes of what a server would have answered.
const (
	statusOK         = 200
	statusBadRequest = 400
)

// call is an outcome as a client would have seen it.
func call(o sim.Outcome, prompt, want int) result.Call {
	c := result.Call{
		Index: o.Index, Target: o.Replica, Due: o.Due, Ready: o.Ready, Sent: o.Sent, End: o.Sent,
		Sim: true, WantIn: prompt, Want: want,
	}
	if o.Err != "" {
		c.Class, c.Status, c.Error = result.HTTPStatus, statusBadRequest, o.Err
		return c
	}
	n := 0
	c.Chunks = make([]result.Chunk, 0, len(o.Tokens))
	for _, e := range o.Tokens {
		c.Chunks = append(c.Chunks, result.Chunk{At: e.At, Tokens: int32(e.N)})
		n += e.N
	}
	c.Status, c.Finish = statusOK, "length"
	c.Usage = &result.Usage{Prompt: prompt, Completion: n, Cached: o.Cached}
	if n > 0 {
		c.Headers, c.Answer = c.Chunks[0].At, c.Chunks[0].At
		c.End = c.Chunks[len(c.Chunks)-1].At
	}
	return c
}
