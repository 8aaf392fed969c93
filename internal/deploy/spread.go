package deploy

import "perflab/internal/engine/cluster"

// Spread is a replica of the parts that cluster.Spread gives.
func Spread(parts []cluster.Part) Replica {
	var r Replica
	for _, p := range parts {
		m := Member{Node: p.Node, Argv: p.Argv, Env: p.Env, Devices: p.Devices}
		for _, f := range p.Files {
			m.Files = append(m.Files, File(f))
		}
		if p.Front {
			r.Member = m
			continue
		}
		r.Peers = append(r.Peers, Peer{Member: m, Name: p.Name, Up: p.Up, Once: p.Once, Serves: p.Serves})
	}
	return r
}
