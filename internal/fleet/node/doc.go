// Package node has agents of a fleet start engines, each on its own machine, as a leader says.
//
//	err := node.Serve(ctx, node.Options{Conn: conn, Dir: dir, Processes: true}) // on the machine: it may start engines
//	nodes := node.Lead(node.Leader{Conn: conn, Agents: who, Crew: load})
//	d, err := nodes.On("gpu-1", deploy.Process{}, nil).Start(ctx, spec) // a deploy.Runtime as any other
//
// Whoever leads holds a node by a lease of the hub, whose revision is the fencing token: it grows with each
// holder. Every order has it, and so has every answer. The leader asks and the agent answers; nothing else is said, so
// that an agent that comes back after a while has nothing to say that anybody waits for.
//
// An engine's ports are reached through the bus, one connection a Stream: well enough for readiness,
// warm-up and metrics. The load that is measured is sent by the node's own agent to the engine beside it (Nodes.Crew), so
// that no figure has the bus in it.
//
// Invariants: an agent takes no order of a lower token than it has seen, and none of a holder that it has not; what
// an earlier holder started has ended before a new one's first order is done. A holder that is not heard of for its
// lease is no holder any more, and what it started is ended. A connection leads to a port of an engine of the
// same holder, on the loopback interface, and nowhere else. Engines are started in the ways that the agent was given, and
// in no other. As long as what an earlier process of the agent left in containers is not ended, no container is
// started. The leader takes no answer that has
// another token or is of another process of the agent than it holds.
//
// Deliberately absent: the load (package fleet), which configurations are tried (package lab), what a bus is, and what a
// container is (whoever starts the agent gives it deploy.Places).
package node
