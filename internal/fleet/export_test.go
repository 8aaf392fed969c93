package fleet

import "perflab/internal/bench"

// NodeCrew is the crew of a node that the leader holds.
func (l *Leader) NodeCrew(id string) bench.Crew { return &nodeCrew{l, id} }
