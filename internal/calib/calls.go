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
	outcomes, err := sim.Replay(cfg, replicas, jobs, o)
	if err != nil {
		return nil, err
	}
	return func(yield func(result.Call) bool) {
		for o := range outcomes {
			if !yield(call(o)) {
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
func call(o sim.Outcome) result.Call {
	c := result.Call{
		Index: o.Index, Target: o.Replica, Due: o.Due, Ready: o.Ready, Sent: o.Sent, End: o.Sent,
		Sim: true, WantIn: o.Prompt, Want: o.Output, Session: o.Session, Turn: o.Turn, Turns: o.Turns,
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
	c.Usage = &result.Usage{Prompt: o.Prompt, Completion: n, Cached: o.Cached}
	if n > 0 {
		c.Headers, c.Answer = c.Chunks[0].At, c.Chunks[0].At
		c.End = c.Chunks[len(c.Chunks)-1].At
	}
	return c
}
