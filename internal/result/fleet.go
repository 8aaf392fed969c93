package result

import (
	"time"

	"perflab/internal/stat"
)

// AgentTally is what is counted over the calls of one agent of a fleet, as Tally does over all.
type AgentTally struct {
	Calls        int           `json:"calls"` // that came back
	Failed       int           `json:"failed,omitzero"`
	Lag          stat.Buckets  `json:"-"` // ns, of those that succeeded: the figure dispatch_lag
	LagFromDue   time.Duration `json:"lag_from_due_ns,omitzero"`
	LagFromReady time.Duration `json:"lag_from_ready_ns,omitzero"`
	InCalls      time.Duration `json:"in_calls_ns,omitzero"` // from asking for a connection to the end
	Chunks       int           `json:"chunks,omitzero"`
	Merged       int           `json:"merged_chunks,omitzero"` // of them, read together with the one before
	Late         int           `json:"late_reads,omitzero"`
	LateBy       time.Duration `json:"late_by_ns,omitzero"` // the most that one of them was
	Reads        int           `json:"reads,omitzero"`
	Coarse       int           `json:"coarse,omitzero"` // reads without the kernel's stamp
}

// AgentFigures are the figures of one agent of a fleet: how punctually it sent and read its part of
// the load. What a server did to the calls is in the figures of all alone.
type AgentFigures struct {
	Agent int `json:"agent"` // its number in the calls
	AgentTally
	LagP50 *float64 `json:"p50_dispatch_lag_ms,omitempty"` // within 1.6 %; nil: no call succeeded
	LagP99 *float64 `json:"p99_dispatch_lag_ms,omitempty"`
}

// addAgent counts a call that an agent sent.
func (x *Accumulator) addAgent(c *Call) {
	if x.Agents == nil {
		x.Agents = map[int]*AgentTally{}
	}
	t := x.Agents[c.Agent]
	if t == nil {
		t = &AgentTally{Lag: stat.Buckets{}}
		x.Agents[c.Agent] = t
	}
	t.Calls++
	if !c.OK() {
		t.Failed++
		return
	}
	t.Lag.Add(int64(c.Lag(x.header.Limit)))
	t.LagFromDue += max(0, c.Lag(0))
	t.LagFromReady += max(0, c.Lag(1))
	t.InCalls += c.Dial + c.End - c.Sent
	t.Chunks, t.Merged = t.Chunks+len(c.Chunks), t.Merged+mergedChunks(c)
	t.Reads, t.Coarse = t.Reads+c.Reads, t.Coarse+c.Coarse
	for _, l := range c.Late {
		t.Late, t.LateBy = t.Late+1, max(t.LateBy, l.By)
	}
}

// mergedChunks is how many chunks of a call came together with the one before them.
func mergedChunks(c *Call) (n int) {
	for i := 1; i < len(c.Chunks); i++ {
		if c.joined(i) {
			n++
		}
	}
	return n
}

// agentFigures are those of each agent of the header's fleet, in their order.
func (x *Accumulator) agentFigures() []AgentFigures {
	if x.header.Fleet == nil {
		return nil
	}
	out := make([]AgentFigures, len(x.header.Fleet.Agents))
	for i := range out {
		f := &out[i]
		f.Agent = i + 1
		if t := x.Agents[i+1]; t != nil {
			f.AgentTally = *t
		}
		for q, to := range map[float64]**float64{0.5: &f.LagP50, 0.99: &f.LagP99} {
			if ns, ok := f.Lag.Quantile(q); ok {
				*to = new(ns / 1e6)
			}
		}
	}
	return out
}

// SetHeader replaces the header, but for what the accumulator was made by: of a load that a fleet
// sent all is known at the end.
func (x *Accumulator) SetHeader(h Header) {
	h.Limit = x.header.Limit
	x.header = h
}
