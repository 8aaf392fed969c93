package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// portSet is the ports of one replica: that of the front process, and those that
// placeholders name.
type portSet struct {
	front int
	named map[string]int
}

// choosePorts asks each node once for all the ports of its replicas, so that they
// are distinct. A replica's ports are of the node of its front process.
func (d *deployment) choosePorts(ctx context.Context) ([]portSet, error) {
	sets := make([]portSet, len(d.spec.Replicas))
	names := make([][]string, len(sets))
	need := map[string]int{} // node -> ports
	for i, rep := range d.spec.Replicas {
		names[i] = rep.portNames()
		need[rep.Node] += 1 + len(names[i])
	}
	free := map[string][]int{}
	for _, node := range slices.Sorted(maps.Keys(need)) {
		ports, err := d.Ports(ctx, node, need[node])
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				if _, late := errors.AsType[*LateError](cause); !late {
					return nil, fmt.Errorf("%s: %w", d.op, cause)
				}
			}
			e := &InfraError{Op: d.op + ": choose a port", Err: err, Help: "see whether the machine is up, or allow more time"}
			if infra, ok := errors.AsType[*InfraError](err); ok {
				e.Help, e.Lasting = infra.Help, infra.Lasting
			}
			return nil, e
		}
		free[node] = ports
	}
	for i, rep := range d.spec.Replicas {
		take := func() (port int) {
			port, free[rep.Node] = free[rep.Node][0], free[rep.Node][1:]
			return port
		}
		sets[i] = portSet{front: take(), named: map[string]int{}}
		for _, name := range names[i] {
			sets[i].named[name] = take()
		}
	}
	return sets, nil
}

// portNames are the names of {port:NAME} in the replica's processes, in order.
func (r Replica) portNames() []string {
	seen := map[string]bool{}
	collect := func(m Member) {
		for _, text := range m.texts() {
			for _, rest := range strings.Split(text, namedPortMark)[1:] {
				name, _, _ := strings.Cut(rest, "}")
				seen[name] = true
			}
		}
	}
	collect(r.Member)
	for _, p := range r.Peers {
		collect(p.Member)
	}
	return slices.Sorted(maps.Keys(seen))
}

// byName are the ports by their names, "" that which serves.
func (p portSet) byName() map[string]int {
	out := map[string]int{"": p.front}
	maps.Copy(out, p.named)
	return out
}

func (p portSet) all() []int {
	return append([]int{p.front}, slices.Sorted(maps.Values(p.named))...)
}

// fill puts the ports and the address to listen on where their placeholders stand.
func (p portSet) fill(m Member, bind string) Member {
	pairs := []string{portMark, strconv.Itoa(p.front), hostMark, bind}
	for name, port := range p.named {
		pairs = append(pairs, namedPortMark+name+"}", strconv.Itoa(port))
	}
	return m.replace(strings.NewReplacer(pairs...))
}
