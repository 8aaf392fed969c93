package fleet

import (
	"context"

	"perflab/internal/bench"
	"perflab/internal/fleet/node"
)

// Nodes are the agents that start engines, for a study of this leader. Whoever closes the leader closes them before.
func (l *Leader) Nodes() *node.Nodes {
	return node.Lead(node.Leader{
		Conn: l.conn, Who: l.o.Who, Log: l.log,
		Agents: func(ctx context.Context) []node.Agent {
			var out []node.Agent
			for _, a := range l.Gather(ctx, nil) {
				if a.Facts.Starts && (l.o.Version == "" || a.Facts.Version == l.o.Version) {
					out = append(out, node.Agent{ID: a.ID, Name: a.Facts.Name, Labels: a.Facts.Labels})
				}
			}
			return out
		},
		Crew: func(ctx context.Context, id string) (bench.Crew, error) {
			return l.Crew(ctx, Choice{Names: []string{id}})
		},
	})
}
