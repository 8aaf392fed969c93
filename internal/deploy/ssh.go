package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// SSH is the runtime that starts processes on other machines by the system's ssh
// client: what works by hand works here, with the user's configuration, keys and
// agent. Sessions of a machine share connections that perflab holds open; Close ends
// those, and so does perflab's own end, however it comes.
//
// A process runs under a Keeper: it ends when perflab ends or cannot be reached for
// Silence.
type SSH struct {
	Hosts   []HostEntry   // the machines; node "" is the first
	Config  string        // ssh configuration file, "": the user's
	Dir     string        // working directory over there; "": where a session begins
	Limits  Limits        // of each process
	Grace   time.Duration // from SIGTERM to SIGKILL; 0: 10 s
	Poll    time.Duration // first pause between health checks; 0: 50 ms
	Silence time.Duration // until a connection without a sign of life is lost, in whole seconds; 0: 30 s
	// Direct has engines listen on all addresses of their machine, and reaches them there. By
	// default they listen on its loopback interface, and requests go through the
	// connection: what is measured then has its encryption and its one TCP stream in it.
	Direct bool

	mu    sync.Mutex
	links map[string][]*link // by node
}

var (
	_ Runtime   = (*SSH)(nil)
	_ Commander = (*SSH)(nil)
	_ Host      = sshHost{}
)

func (r *SSH) launcher() Launcher {
	bind := loopback
	if r.Direct {
		bind = "0.0.0.0"
	}
	return Launcher{Host: sshHost{r.keeper(), r}, Kind: "ssh", Bind: bind, Grace: r.Grace, Poll: r.Poll}
}

func (r *SSH) keeper() Keeper {
	return Keeper{Transport: r, Limits: r.Limits, Dir: r.Dir, Silence: r.Silence, Grace: r.Grace}
}

// Start starts the replicas and waits until all are ready.
func (r *SSH) Start(ctx context.Context, s Spec) (Deployment, error) {
	if err := r.validate(s); err != nil {
		return nil, &InfraError{Op: "start " + s.name(), Err: err, Help: "correct the inventory of hosts, or the nodes of the replicas"}
	}
	return r.launcher().Start(ctx, s)
}

// validate says what keeps the hosts, or the nodes of a deployment, from being used.
func (r *SSH) validate(s Spec) error {
	if err := errors.Join(validateHosts(r.Hosts), r.Limits.Validate()); err != nil {
		return err
	}
	for _, rep := range s.Replicas {
		for _, p := range append([]Peer{{Member: rep.Member}}, rep.Peers...) {
			if _, err := r.host(p.Node); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweep ends what deployments under dir left running when their perflab was killed,
// and says what that was.
func (r *SSH) Sweep(ctx context.Context, dir string) ([]string, error) {
	return r.launcher().Sweep(ctx, dir)
}

// Nodes are the names of the hosts.
func (r *SSH) Nodes() []string {
	names := make([]string, len(r.Hosts))
	for i, h := range r.Hosts {
		names[i] = h.Name
	}
	return names
}

// Command runs argv on a node.
func (r *SSH) Command(ctx context.Context, node string, argv []string, stdout io.Writer) error {
	return r.keeper().Run(ctx, node, argv, stdout)
}

// Close ends the connections. What runs over them must have been stopped before.
func (r *SSH) Close() error {
	r.mu.Lock()
	links := r.links
	r.links = nil
	r.mu.Unlock()
	for _, of := range links {
		for _, l := range of {
			l.close()
		}
	}
	return nil
}

// host finds a node in the inventory.
func (r *SSH) host(node string) (HostEntry, error) {
	if len(r.Hosts) == 0 {
		return HostEntry{}, errors.New("no host is given")
	}
	if node == "" {
		return r.Hosts[0], nil
	}
	i := slices.IndexFunc(r.Hosts, func(h HostEntry) bool { return h.Name == node })
	if i < 0 {
		return HostEntry{}, fmt.Errorf("host %s is not in the inventory, which has %s", node, strings.Join(r.Nodes(), ", "))
	}
	return r.Hosts[i], nil
}

// Open starts a command on a node, over a connection that there is or a new one.
func (r *SSH) Open(ctx context.Context, node string, argv []string, stdout, stderr io.Writer) (Session, error) {
	h, err := r.host(node)
	if err != nil {
		return nil, &InfraError{Op: "reach " + node, Err: err, Help: "add it to the inventory, or correct the name"}
	}
	l, err := r.link(ctx, h)
	if err != nil {
		return nil, err
	}
	return l.open(argv, stdout, stderr)
}

// link finds a connection to a host with room for a session, or makes one. Each
// caller has taken a place in it.
func (r *SSH) link(ctx context.Context, h HostEntry) (*link, error) {
	r.mu.Lock()
	if r.links == nil {
		r.links = map[string][]*link{}
	}
	r.links[h.Name] = slices.DeleteFunc(r.links[h.Name], (*link).unusable)
	for _, l := range r.links[h.Name] {
		if l.acquire() {
			r.mu.Unlock()
			return l, l.awaitUp(ctx)
		}
	}
	l := newLink(h, r.Config)
	r.links[h.Name] = append(r.links[h.Name], l)
	r.mu.Unlock()
	return l, l.awaitUp(ctx)
}

// sshHost is the machines of an SSH as a Host.
type sshHost struct {
	Keeper
	ssh *SSH
}

// Spawn starts a process.
func (h sshHost) Spawn(ctx context.Context, j Job) (Running, error) {
	k, err := h.Keeper.Spawn(ctx, j)
	if err != nil {
		return nil, err
	}
	return &sshProcess{KeeperProcess: k, ssh: h.ssh, node: j.Node}, nil
}

// sshProcess is a process on another machine.
type sshProcess struct {
	*KeeperProcess
	ssh  *SSH
	node string

	mu       sync.Mutex
	forwards []*forward
}

// URL leads to a port of the process.
func (p *sshProcess) URL(ctx context.Context, port int) (string, error) {
	p.Serves(port)
	h, err := p.ssh.host(p.node)
	if err != nil {
		return "", err
	}
	l, err := p.ssh.link(ctx, h)
	if err != nil {
		return "", err
	}
	if p.ssh.Direct {
		defer l.release()
		address := cmp.Or(h.Address, l.address(ctx))
		return (&url.URL{Scheme: "http", Host: net.JoinHostPort(address, strconv.Itoa(port))}).String(), nil
	}
	f, err := l.forward(ctx, port)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	p.forwards = append(p.forwards, f)
	p.mu.Unlock()
	return "http://" + f.local, nil
}

// Stop ends the process, and the ways to it.
func (p *sshProcess) Stop(grace time.Duration, hurry <-chan struct{}) error {
	err := p.KeeperProcess.Stop(grace, hurry)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.forwards {
		f.cancel()
	}
	p.forwards = nil
	return err
}
