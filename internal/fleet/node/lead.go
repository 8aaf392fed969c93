package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/fleet/bus"
	"perflab/internal/load"
	"perflab/internal/result"
)

// Bus is a leader's connection to a hub.
type Bus interface {
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
	Claim(ctx context.Context, key string, value []byte, ttl time.Duration) (*bus.Lease, error)
}

var (
	_ Bus  = (*bus.Conn)(nil)
	_ Conn = (*bus.Conn)(nil)
)

// Agent is a machine of the fleet, as it says of itself.
type Agent struct {
	ID, Name string
	Labels   map[string]string
}

// Leader says who leads nodes, and by what.
type Leader struct {
	Conn   Bus
	Agents func(ctx context.Context) []Agent                        // that are there now and start engines
	Crew   func(ctx context.Context, id string) (bench.Crew, error) // of one agent, which sends a load
	Who    string                                                   // in words, for others who want a node
	Study  string                                                   // that the nodes are for, by its name; "": it has none
	Lease  time.Duration                                            // a node whose leader is not heard of for so long ends its engines, and one that does not answer is lost; 0: 10 s
	Log    *slog.Logger
}

// words say who leads, and what.
func (o Leader) words() string {
	who := cmp.Or(o.Who, "a leader")
	if o.Study != "" {
		who += " (study " + o.Study + ")"
	}
	return who
}

const defaultLease = 10 * time.Second

// Nodes are the machines of a fleet that start engines.
type Nodes struct {
	o       Leader
	session string // for agents: see holdOrder

	mu  sync.Mutex
	all map[string]*Node
}

// Lead begins; Close gives all nodes back.
func Lead(o Leader) *Nodes {
	o.Lease = min(max(cmp.Or(o.Lease, defaultLease), leastLease), mostLease)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Nodes{o: o, session: rand.Text(), all: map[string]*Node{}}
}

// Close gives the nodes back. What runs there must have been stopped before, and ends at the latest now.
func (n *Nodes) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	var wait sync.WaitGroup
	for _, node := range n.all {
		wait.Go(node.leave)
	}
	wait.Wait()
}

// Names are the nodes that are there and have all of some labels.
func (n *Nodes) Names(ctx context.Context, labels map[string]string) ([]string, error) {
	var out []string
	all := n.o.Agents(ctx)
	for _, a := range all {
		if !hasAll(a.Labels, labels) {
			continue
		}
		if slices.Contains(out, a.Name) {
			return nil, fmt.Errorf("two agents of the fleet are called %s: remove one of them, or let it join by another name", a.Name)
		}
		out = append(out, a.Name)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("none of the %d agents that start engines has the label %s: perflab fleet shows who is there, with labels; perflab agent --engines lets a machine start engines", len(all), labelText(labels))
	}
	slices.Sort(out)
	return out, nil
}

func hasAll(has, labels map[string]string) bool {
	for name, value := range labels {
		if v, ok := has[name]; !ok || v != value {
			return false
		}
	}
	return true
}

func labelText(labels map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, name+"="+labels[name])
	}
	return strings.Join(out, " and ")
}

// On starts engines on a node, as this machine would: of p its directory, limits, grace and pauses count. With c
// they are started in containers there.
func (n *Nodes) On(name string, p deploy.Process, c *deploy.Containers) deploy.Runtime {
	return &Runtime{node: n.node(name), process: p, containers: c}
}

func (n *Nodes) node(name string) *Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	node := n.all[name]
	if node == nil {
		node = &Node{o: n.o, session: n.session, name: name}
		n.all[name] = node
	}
	return node
}

// Crew has a node's own agent send the load to the engine beside it.
func (n *Nodes) Crew(name string) bench.Crew { return &beside{n.node(name)} }

// beside is a crew of one.
type beside struct{ node *Node }

// Load is bench.Crew's. The targets, which lead through the bus here, are the engine's own ports there.
func (b *beside) Load(ctx context.Context, job bench.CrewJob, emit func(result.Call)) (load.Stats, *result.Fleet, error) {
	id, targets, err := b.node.there(job.Spec.Targets)
	if err != nil {
		return load.Stats{}, nil, err
	}
	crew, err := b.node.o.Crew(ctx, id)
	if err != nil {
		return load.Stats{}, nil, fmt.Errorf("send the load from node %s: %w", b.node.name, err)
	}
	job.Spec.Targets = targets
	return crew.Load(ctx, job, emit)
}

// Node is one of the machines, and the right to it.
type Node struct {
	o       Leader
	session string
	name    string

	taking sync.Mutex
	mu     sync.Mutex
	cur    *hold // nil: not held yet

	forwards map[string]there // by the base URL here
}

// there is where a forwarded port leads to.
type there struct {
	h    *hold
	port int
}

// there are targets as the node itself reaches them, and the agent's ID.
func (n *Node) there(targets []string) (id string, out []string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range targets {
		to, ok := n.forwards[t]
		if !ok {
			return "", nil, fmt.Errorf("send the load from node %s: %s leads to no engine there", n.name, t)
		}
		id, out = to.h.id, append(out, fmt.Sprintf("http://127.0.0.1:%d", to.port))
	}
	return id, out, nil
}

// held is the right to the node: the one there is, or a new one.
func (n *Node) held(ctx context.Context) (*hold, error) {
	n.taking.Lock()
	defer n.taking.Unlock()
	n.mu.Lock()
	cur := n.cur
	n.mu.Unlock()
	if cur != nil && cur.ctx.Err() == nil {
		return cur, nil
	}
	if cur != nil {
		cur.release()
	}
	h, err := n.take(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, unreached(n.name, err)
	}
	n.mu.Lock()
	n.cur = h
	n.mu.Unlock()
	return h, nil
}

// unreached is a node that cannot be used now.
func unreached(name string, err error) error {
	help := "see whether perflab agent --engines runs there: perflab fleet shows who is there"
	switch {
	case errors.Is(err, bus.ErrNobody):
		err, help = errors.New("nobody answers there who starts engines"), "start perflab agent there with --engines, or see whether it runs: perflab fleet shows who is there"
	case errors.Is(err, errOthers):
		help = "wait for the end of what uses it, or give the study other nodes"
	}
	return &deploy.InfraError{Op: "reach node " + name, Err: err, Help: help}
}

// errOthers is a node that somebody else holds.
var errOthers = errors.New("it is in use")

// leave gives the node back.
func (n *Node) leave() {
	n.taking.Lock()
	defer n.taking.Unlock()
	n.mu.Lock()
	h := n.cur
	n.cur = nil
	n.mu.Unlock()
	if h == nil {
		return
	}
	if h.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
		defer cancel()
		_, _ = once[struct{}](ctx, h, wordLeave, nil) // else its lease ends
	}
	h.release()
}

const leaveWithin = 20 * time.Second // engines that are ended at the last moment have their grace

// agent finds the node among those that are there.
func (n *Node) agent(ctx context.Context) (Agent, error) {
	all := n.o.Agents(ctx)
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == n.name || a.ID == n.name })
	if i < 0 {
		return Agent{}, fmt.Errorf("it is none of the %d agents that are there and start engines", len(all))
	}
	return all[i], nil
}
