package cluster

import (
	"cmp"
	"fmt"
	"strconv"

	"perflab/internal/engine"
)

// pools are the engines of a replica in pools, each on devices of one node, and the router
// before them. What the collective libraries are told elsewhere of a network they have no use for: theirs
// ends at the node, and what moves KV caches does not read it.
func (s *spreader) pools() ([]Part, error) {
	members, err := s.cmd.Members()
	if err != nil {
		return nil, err
	}
	seats, err := s.seat(members)
	if err != nil {
		return nil, err
	}
	var parts []Part
	at := make([]engine.Address, len(members))
	for i, m := range members {
		node := seats[i]
		name := m.Pool + "-" + strconv.Itoa(m.N)
		listen, reached := s.seen(node)
		at[i] = engine.Address{Host: reached, Port: "{port:" + name + "}", Side: "{port:" + name + "-side}"}
		argv, env := m.ServeArgv(listen, at[i])
		parts = append(parts, Part{Name: name, Node: node.Name, Argv: argv, Env: env, Devices: node.Devices, Serves: name})
	}
	router := s.cmd.RouterArgv(cmp.Or(s.cmd.Host, "0.0.0.0"), "{port}", "{port:router-metrics}", members, at)
	return append(parts, Part{Node: s.nodes[0].Name, Argv: router, Env: s.cmd.Env, Devices: []string{}, Front: true}), nil
}

// seen is where an engine behind the router listens, and where the router and the other
// engines reach it: whoever starts them must reach it too, to know that it is ready.
func (s *spreader) seen(n Node) (listen, reached string) {
	const here, all = "127.0.0.1", "0.0.0.0"
	switch host := s.cmd.Host; {
	case len(s.nodes) > 1:
		return all, n.Addr
	case host == "" && n.Addr != "":
		return all, here
	case host == "":
		return here, here
	case host == "{host}" || host == all || host == "::":
		return host, here
	default:
		return host, host
	}
}

// seat gives each engine devices of one node, in their order.
func (s *spreader) seat(members []engine.Member) ([]Node, error) {
	var out []Node
	node, used := 0, 0
	for _, m := range members {
		n := m.Command.World()
		for node < len(s.nodes) && len(s.nodes[node].Devices)-used < n {
			node, used = node+1, 0
		}
		if node == len(s.nodes) {
			return nil, reject("nodes", "an engine of %d GPUs has no place on %s: each stands on one node, so use a smaller tp, or fewer engines", n, s.given())
		}
		out = append(out, s.nodes[node].with(s.nodes[node].Devices[used:used+n]))
		used += n
	}
	return out, nil
}

// given is what the nodes give.
func (s *spreader) given() string {
	if len(s.nodes) == 1 {
		return fmt.Sprintf("%d GPUs", len(s.nodes[0].Devices))
	}
	return fmt.Sprintf("%d nodes of %d GPUs", len(s.nodes), len(s.nodes[0].Devices))
}
