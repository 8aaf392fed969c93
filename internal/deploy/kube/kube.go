// Package kube starts engines as pods of a Kubernetes cluster, through its API.
//
//	r := &kube.Runtime{Settings: kube.Settings{
//		Image: "vllm/vllm-openai:v0.11.0",
//		Pods:  render.Pods{Namespace: "bench", Mounts: []string{"claim:models:/root/.cache/huggingface"}},
//	}}
//	d, err := r.Start(ctx, spec) // waits for a node, images and readiness
//
// A replica on one machine is a Deployment of one pod; its processes are containers of that pod,
// which wait at a gate until it is their turn. A replica over several machines is a
// LeaderWorkerSet, one process to the launcher. All objects come from package render.
//
// Invariants. A Lease owns all objects of a deployment, so that its deletion is theirs; after
// Stop, and when Start fails, none is left and no pod runs. The Lease is renewed as long as its
// perflab lives; the next Start in the namespace removes what has not been renewed. What the
// user made (claims, secrets) is left alone. A container that the cluster starts again counts as
// ended. No value of a secret is in any object, log or error: pods refer to Secrets.
//
// The time that pods wait for a queue, a node or an image is not part of the deployment's time
// limit. An API server that does not answer ends no engine: what is known of the pods stays as it was.
//
// A Service that others run is a runtime too (type Service): its pods are found and followed, and nothing is made.
//
// Absent: anything cluster-wide (the Role of Role suffices), restarts, Services of its own, autoscaling.
package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"perflab/internal/deploy"
)

// Runtime is the runtime of one namespace of a cluster. A Runtime is used by pointer; it holds its
// connection and what it has learnt about images.
type Runtime struct {
	Settings Settings
	Grace    time.Duration     // from asking a container to end to killing it, in whole seconds; 0: 10 s
	Poll     time.Duration     // first pause between health checks; 0: 50 ms
	Progress func(text string) // told what pods wait for; may be nil
	Model    string            // of the next Start, a repository: it is downloaded before its first, as Settings.Download says

	mu         sync.Mutex
	cluster    *cluster        // nil before the first use
	image      string          // that pods had, by digest
	entitled   bool            // the account has the rights for what was asked for
	downloaded map[string]bool // models
}

var (
	_ deploy.Runtime   = (*Runtime)(nil)
	_ deploy.Commander = (*Runtime)(nil)
)

const (
	kind         = "kubernetes"
	anyAddress   = "0.0.0.0"
	defaultGrace = 10 * time.Second
)

// Start makes the objects of the deployment and waits until all replicas are ready.
func (r *Runtime) Start(ctx context.Context, s deploy.Spec) (deploy.Deployment, error) {
	op := "start " + cmp.Or(s.Name, "deployment")
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	c, err := r.connect(op)
	if err != nil {
		return nil, err
	}
	if err := r.entitle(ctx, op, c, s); err != nil {
		return nil, err
	}
	if err := r.download(ctx, op, c, s); err != nil {
		return nil, err
	}
	h := r.host(c)
	h.spec = s
	d, err := r.launcher(h).Start(ctx, leading(s))
	if err != nil {
		return nil, err
	}
	r.learn(h)
	return &deployment{d, h}, nil
}

func (r *Runtime) launcher(h *host) deploy.Launcher {
	return deploy.Launcher{Host: h, Kind: kind, Bind: anyAddress, Grace: h.grace, Poll: r.Poll}
}

func (r *Runtime) host(c *cluster) *host {
	return &host{cluster: c, grace: cmp.Or(r.Grace, defaultGrace), tell: news(r.Progress)}
}

// leading is a deployment as the launcher starts it: of a replica over several machines it knows the
// process that serves, and the cluster starts the others.
func leading(s deploy.Spec) deploy.Spec {
	replicas := make([]deploy.Replica, len(s.Replicas))
	for i, rep := range s.Replicas {
		if nodesOf(rep) > 1 {
			rep.Peers = nil
		}
		rep.Node = "" // the cluster chooses it
		peers := append([]deploy.Peer(nil), rep.Peers...)
		for j := range peers {
			peers[j].Node = ""
		}
		rep.Peers = peers
		replicas[i] = rep
	}
	s.Replicas = replicas
	return s
}

// nodesOf is over how many machines a replica is spread.
func nodesOf(r deploy.Replica) int {
	nodes := map[string]bool{r.Node: true}
	for _, p := range r.Peers {
		nodes[p.Node] = true
	}
	return len(nodes)
}

// Sweep removes what deployments under dir left in the cluster when their perflab was killed, and
// says what that was. Without such a deployment the cluster is not asked.
func (r *Runtime) Sweep(ctx context.Context, dir string) ([]string, error) {
	c, err := r.connect("remove what deployments left running")
	if err != nil {
		return nil, err
	}
	return r.launcher(r.host(c)).Sweep(ctx, dir)
}

// Resolved is the image of the pods that were started, by digest; none before.
func (r *Runtime) Resolved() (image string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.image, r.image != ""
}

// connect makes the client, once.
func (r *Runtime) connect(op string) (*cluster, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cluster != nil {
		return r.cluster, nil
	}
	if err := r.Settings.Validate(); err != nil {
		return nil, &deploy.InfraError{Op: op, Err: err, Help: "correct the settings of the kubernetes runtime", Lasting: true}
	}
	c, err := connect(r.Settings)
	if err != nil {
		return nil, &deploy.InfraError{Op: op, Err: errors.New(sentence(err.Error())), Help: "correct kubeconfig, context or KUBECONFIG", Lasting: true}
	}
	r.cluster = c
	return c, nil
}

// entitle asks once whether the account has the rights that a deployment needs.
func (r *Runtime) entitle(ctx context.Context, op string, c *cluster, s deploy.Spec) error {
	r.mu.Lock()
	known := r.entitled
	r.mu.Unlock()
	if known {
		return nil
	}
	if err := c.entitled(ctx, op, s); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entitled = true
	return nil
}

// news tells a text that is not the one before it; tell may be nil.
func news(tell func(text string)) func(text string) {
	var mu sync.Mutex
	last := ""
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if text != last && tell != nil {
			tell(text)
		}
		last = text
	}
}

// Nodes is the cluster, which chooses the machine.
func (r *Runtime) Nodes() []string { return []string{""} }

// Command runs argv in a short-lived pod of the image, without accelerators.
func (r *Runtime) Command(ctx context.Context, node string, argv []string, stdout io.Writer) error {
	op := "run " + redacted(argv)
	if err := oneNode(node); err != nil {
		return &deploy.InfraError{Op: op, Err: err}
	}
	c, err := r.connect(op)
	if err != nil {
		return err
	}
	if err := r.entitle(ctx, op, c, deploy.Spec{}); err != nil {
		return err
	}
	return r.host(c).once(ctx, op, argv, stdout)
}

// deployment is one whose containers can be asked.
type deployment struct {
	deploy.Deployment
	host *host
}

var (
	_ deploy.Commander = (*deployment)(nil)
	_ deploy.Insider   = (*deployment)(nil)
)

// Nodes is the node of a replica.
func (d *deployment) Nodes() []string { return []string{""} }

// Command runs argv inside the container of a replica, with its accelerators and files.
func (d *deployment) Command(ctx context.Context, node string, argv []string, stdout io.Writer) error {
	op := "run " + redacted(argv)
	err := oneNode(node)
	p, running := d.host.running()
	if err == nil && !running {
		err = errors.New("no pod of the deployment runs")
	}
	if err != nil {
		return &deploy.InfraError{Op: op, Err: err}
	}
	return p.exec(ctx, op, p.podName, p.container, argv, stdout)
}

// Close ends idle connections to the cluster.
func (r *Runtime) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cluster != nil {
		r.cluster.close()
	}
}
