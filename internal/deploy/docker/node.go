package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"perflab/internal/deploy"
)

// labelAgent is the id of the agent of a fleet that made a container.
const labelAgent = labelPrefix + "agent"

// ValidateOnNode says what keeps the settings from being used on another machine, by its agent, which has a Docker
// Engine and a home directory of its own.
func (s Settings) ValidateOnNode() error {
	var errs []error
	for _, c := range []struct {
		set  bool
		text string
	}{
		{s.Container != "", "container does not apply to machines of a fleet: give an image, and their agents start it each"},
		{s.DockerHost != "", "docker_host does not apply to machines of a fleet: each agent has its own Docker Engine, which DOCKER_HOST names where the agent is started"},
		{s.Address != "", "address does not apply to machines of a fleet: what is on them is reached through their agents"},
	} {
		if c.set {
			errs = append(errs, errors.New(c.text))
		}
	}
	for _, m := range s.Mounts {
		source, _, _ := strings.Cut(m, ":")
		if strings.Contains(source, "/") && !path.IsAbs(source) && !strings.HasPrefix(source, "~/") {
			errs = append(errs, fmt.Errorf("mount %q begins with a path that is relative to nothing on another machine: write an absolute path, ~/..., or the name of a volume", m))
		}
	}
	return errors.Join(errs...)
}

// OnNode are the settings as an agent of a fleet gets them. Names in env that stand alone have this perflab's values then: an
// agent never gives its own.
func (s Settings) OnNode(progress func(text string)) (deploy.Containers, error) {
	if err := errors.Join(s.Validate(), s.ValidateOnNode()); err != nil {
		return deploy.Containers{}, &deploy.InfraError{Op: "start containers on a machine of the fleet", Err: err, Help: "correct the settings under runtime.docker", Lasting: true}
	}
	s.Env = s.environment()
	raw, err := json.Marshal(s)
	if err != nil {
		return deploy.Containers{}, fmt.Errorf("encode the settings of containers: %w", err)
	}
	e := &engine{settings: s, address: loopback}
	return deploy.Containers{Settings: raw, Bind: e.bind(), Check: e.checkSpec, Progress: progress}, nil
}

// Node is the Docker Engine of an agent's machine, in whose containers leaders of its fleet start engines.
type Node struct {
	ID    string // of the agent: its containers have it as a label
	Host  string // address of the Docker Engine; "": that of DOCKER_HOST, else the current docker context, else this machine's socket
	Allow Allow  // what leaders may use
}

var (
	_ deploy.Places = Node{}
	_ deploy.Place  = (*place)(nil)
)

// place is the Docker Engine by the settings of a leader. A tag is resolved once in its life.
type place struct {
	*Runtime
	telling sync.Mutex
	tell    func(string)
}

// Open reads a leader's settings, and refuses what is not allowed.
func (n Node) Open(raw json.RawMessage) (deploy.Place, error) {
	const op = "use Docker"
	var s Settings
	err := json.Unmarshal(raw, &s)
	if err == nil {
		err = errors.Join(s.Validate(), s.ValidateOnNode())
	}
	if err == nil && slices.ContainsFunc(s.Env, func(e string) bool { return !strings.Contains(e, "=") }) {
		err = errors.New("env names a variable without its value, and the agent's own are given to nobody")
	}
	if err != nil {
		return nil, &deploy.InfraError{Op: op, Err: err, Help: "correct the settings under runtime.docker", Lasting: true}
	}
	if s, err = n.Allow.confine(s); err != nil {
		return nil, err
	}
	s.DockerHost = n.Host
	p := &place{Runtime: &Runtime{Settings: s}}
	p.Progress = p.told
	e, err := p.connect(op)
	if err != nil {
		return nil, err
	}
	if !e.local() {
		return nil, &deploy.InfraError{Op: op, Err: fmt.Errorf("the agent's Docker Engine, at %s, is on another machine", e.api.DaemonHost()), Help: "start the agent where that Docker Engine is, or with the DOCKER_HOST of its own machine", Lasting: true}
	}
	e.agent = n.ID
	return p, nil
}

func (p *place) told(text string) {
	p.telling.Lock()
	defer p.telling.Unlock()
	if p.tell != nil {
		p.tell(text)
	}
}

// Prepare pulls the image where it must, and gives its digest. The Docker Engine is asked each time whether it is there.
func (p *place) Prepare(ctx context.Context, tell func(string)) (string, error) {
	p.telling.Lock()
	p.tell = tell
	p.telling.Unlock()
	defer func() {
		p.telling.Lock()
		p.tell = nil
		p.telling.Unlock()
	}()
	const op = "prepare containers"
	e, err := p.prepare(ctx, op)
	if err != nil {
		return "", err
	}
	asking, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := e.api.Ping(asking, client.PingOptions{}); err != nil {
		return "", e.explain(ctx, op, err)
	}
	image, _ := p.Resolved()
	return image, nil
}

// host is a Host for one process: all that it must know of the others is in the Docker Engine.
func (p *place) host(ctx context.Context, op string) (*host, error) {
	e, err := p.prepare(ctx, op)
	return &host{engine: e}, err
}

// Ports chooses ports of the machine.
func (p *place) Ports(ctx context.Context, node string, n int) ([]int, error) {
	e, err := p.connect("choose ports")
	if err != nil {
		return nil, err
	}
	return (&host{engine: e}).Ports(ctx, node, n)
}

// Spawn starts a process in a container of its own.
func (p *place) Spawn(ctx context.Context, j deploy.Job) (deploy.Running, error) {
	h, err := p.host(ctx, j.Op)
	if err != nil {
		return nil, err
	}
	return h.Spawn(ctx, j)
}

// End removes the container that a record leads to.
func (p *place) End(ctx context.Context, r deploy.Record) ([]string, error) {
	e, err := p.connect("end what an earlier deployment left running")
	if err != nil {
		return nil, err
	}
	return (&host{engine: e}).End(ctx, r)
}

// Close lets go of the connections to the Docker Engine.
func (p *place) Close() error {
	e, err := p.connect("close")
	if err != nil {
		return err
	}
	return e.api.Close()
}

// Sweep removes the containers that an agent of the same id has left: engines, and commands. They are known by
// the label that they were made with.
func (n Node) Sweep(ctx context.Context) (map[string]string, error) {
	const op = "look for the containers of an earlier agent"
	e, err := connect(Settings{DockerHost: n.Host}, func(string) {})
	if err != nil {
		return nil, &deploy.InfraError{Op: op, Err: err, Help: "correct DOCKER_HOST or the docker context"}
	}
	defer e.api.Close()
	e.agent = n.ID
	labels, err := e.ofAgent(ctx)
	if err != nil {
		return nil, e.explain(ctx, op, err)
	}
	ended := map[string]string{}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(labels)) {
		_, _ = e.api.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: new(leftoverGrace)}) // what stays is removed by force
		if err := e.remove(ctx, id); err != nil {
			errs = append(errs, &deploy.InfraError{Op: "remove container " + shortID(id) + " of an earlier agent", Err: err, Help: "remove it by docker rm -f " + shortID(id)})
			continue
		}
		if name := labels[id][labelProcess]; name != "" {
			ended[labels[id][labelDeployment]] = name
		}
	}
	return ended, errors.Join(errs...)
}

// ofAgent gives the labels of the agent's containers, running or not, by their ids.
func (e *engine) ofAgent(ctx context.Context) (labels map[string]map[string]string, err error) {
	if e.agent == "" {
		return nil, nil // as a filter it would match others'
	}
	list, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", labelAgent+"="+e.agent)})
	if err != nil {
		return nil, err
	}
	labels = map[string]map[string]string{}
	for _, c := range list.Items {
		if c.Labels[labelAgent] == e.agent {
			labels[c.ID] = c.Labels
		}
	}
	return labels, nil
}
