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
				if _, late := errors.AsType[*lateError](cause); !late {
					return nil, fmt.Errorf("%s: %w", d.op, cause)
				}
			}
			e := &InfraError{Op: d.op + ": choose a port", Err: err, Help: "see whether the machine is up, or allow more time"}
			if infra, ok := errors.AsType[*InfraError](err); ok {
				e.Help = infra.Help
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

// texts are all in a process's description that may have placeholders.
func (m Member) texts() []string {
	texts := slices.Concat(m.Argv, m.Env)
	for _, f := range m.Files {
		texts = append(texts, f.Text)
	}
	return texts
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

// replace returns the member with placeholders replaced in all its texts.
func (m Member) replace(r *strings.Replacer) Member {
	m.Argv, m.Env, m.Files = slices.Clone(m.Argv), slices.Clone(m.Env), slices.Clone(m.Files)
	for i := range m.Argv {
		m.Argv[i] = r.Replace(m.Argv[i])
	}
	for i := range m.Env {
		m.Env[i] = r.Replace(m.Env[i])
	}
	for i := range m.Files {
		m.Files[i].Text = r.Replace(m.Files[i].Text)
	}
	return m
}

// In returns the member with each {file:NAME} replaced by where the file is when the
// files are in dir: a Host writes them there.
func (m Member) In(dir string) Member {
	var pairs []string
	for _, f := range m.Files {
		pairs = append(pairs, fileMark+f.Name+"}", strings.TrimSuffix(dir, "/")+"/"+f.Name)
	}
	return m.replace(strings.NewReplacer(pairs...))
}

// VisibleEnv is the environment entry that shows a process its accelerators alone, and
// false where it may see all.
func (j Job) VisibleEnv() (string, bool) {
	if j.Devices == nil {
		return "", false
	}
	ids := make([]string, len(j.Devices))
	for i, d := range j.Devices {
		ids[i] = strconv.Itoa(d)
	}
	name := j.Visible
	if name == "" {
		name = "CUDA_VISIBLE_DEVICES"
	}
	return name + "=" + strings.Join(ids, ","), true
}
