package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"perflab/internal/bench"
	"perflab/internal/fleet/node"
	"perflab/internal/fleet/order"
	"perflab/internal/load"
	"perflab/internal/result"
)

// Nodes are the agents that start engines, for the study of this leader that has a name. Whoever closes the leader closes them before.
func (l *Leader) Nodes(study string) *node.Nodes {
	return node.Lead(node.Leader{
		Conn: l.conn, Who: l.o.Who, Study: study, Log: l.log,
		Agents: func(ctx context.Context) []node.Agent {
			var out []node.Agent
			for _, a := range l.Gather(ctx, nil) {
				if len(a.Facts.Starts) > 0 && (l.o.Version == "" || a.Facts.Version == l.o.Version) {
					out = append(out, node.Agent{ID: a.ID, Name: a.Facts.Name, Labels: a.Facts.Labels})
				}
			}
			return out
		},
		Crew: func(_ context.Context, id string) (bench.Crew, error) { return &nodeCrew{l, id}, nil },
	})
}

// nodeCrew is the agent of a node that the leader holds.
type nodeCrew struct {
	l  *Leader
	id string
}

// Load is bench.Crew's. Where a leader was killed its claim of the agent is waited for; what the agent is still at then,
// bringing in calls of a load whose leader is gone, the new load ends.
func (c *nodeCrew) Load(ctx context.Context, job bench.CrewJob, emit func(result.Call)) (load.Stats, *result.Fleet, error) {
	here := func(a Agent) bool { return a.ID == c.id }
	for until := time.Now().Add(claimed + order.HereEvery); ; {
		all := c.l.Gather(ctx, func(all []Agent) bool { return slices.ContainsFunc(all, here) })
		i := slices.IndexFunc(all, here)
		if i < 0 {
			return load.Stats{}, nil, fmt.Errorf("the agent is none of the %d that are there", len(all))
		}
		stats, f, err := c.l.load(ctx, all[i:i+1], job, emit)
		if _, busy := errors.AsType[*BusyError](err); !busy || time.Now().After(until) {
			return stats, f, err
		}
		select {
		case <-ctx.Done():
			return load.Stats{}, nil, context.Cause(ctx)
		case <-c.l.Changed(): // as every agent does each second
		}
	}
}
