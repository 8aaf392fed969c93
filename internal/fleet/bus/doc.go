// Package bus carries what the machines of a fleet say to each other. It is the only package
// that knows NATS, whose server is part of this program.
//
//	hub, err := bus.Start(bus.Options{Dir: "lab/fleet", Listen: "0.0.0.0:7422"})
//	url, err := hub.Invite(bus.Invite{})             // for the user: perflab agent --join URL
//	me, err := bus.Join(ctx, url, dir, "gpu-1")      // on the other machine, once
//	conn, err := bus.Dial(ctx, me, bus.DialOptions{}) // and whenever it starts
//	stop, err := conn.Handle(bus.Do(me.ID, "prepare"), func(m bus.Message) { ... m.Reply(answer) })
//
// Who may what: an agent subscribes to what it shall do (Do) and to its own inbox, publishes what it
// has to say (Up), and answers who asked it, once. It does not speak to JetStream: the server answers
// to whatever subject a request names, so who may ask it can make it speak to others. Files go between an
// agent and the hub's own connection, which reads and writes them for it; on a server that is not perflab's,
// a leader's. A leader may do everything below "fleet.". Leases and numbers are for leaders.
//
// The server of a site (Options.Leaf) has members and leaders of its own, and passes on what its agents and the
// hub's leaders say to each other, and nothing else. The hub does not know a site's agents, so it trusts the
// site's server to speak for any agent. Files come from the hub.
//
// Invariants: an agent's messages come from who their subject names, for the server lets no other
// publish there; an answer goes to the inbox of who asked and nowhere else; a connection to an embedded
// hub is encrypted, and trusts the one certificate authority whose fingerprint was in the invitation;
// what cannot be sent now is an error, and never sent later; the seed of a key leaves its machine never.
//
// Of two processes with one agent's identity the one that came last is heard. The other is cut off, told
// so when it comes back, and never heard again (RefusedError, Replaced).
//
// Absent: what the messages mean.
package bus
