// Package docker starts engines in containers, through the Docker Engine API.
//
//	r := &docker.Runtime{Settings: docker.Settings{
//		Image: "vllm/vllm-openai:v0.11.0", GPUs: docker.GPUsAll, IPC: "host",
//		Mounts: []string{"~/.cache/huggingface:/root/.cache/huggingface"},
//		Env:    []string{"HF_TOKEN"},
//	}}
//	d, err := r.Start(ctx, spec) // pulls, creates, copies files, starts, waits until ready
//
// Each process of a replica is a container of its own, of one image: the tag is resolved
// once a Runtime, so all launches have the same, and Runtime.Resolved says its digest. The
// engine's command is complete, so an image's entrypoint (vllm/vllm-openai has one) is
// replaced; Settings.Entrypoint puts a script before the command.
//
// With Settings.Container engines are started inside a container that runs already, by a
// keeper that ends them when its connection ends: an exec'd process cannot be ended through
// the API.
//
// Invariants. Containers are known by their id and by a label that no other deployment
// has, never by name; those of another perflab are left alone. After Stop, and when Start
// fails, none is left, nor a volume of it. Values of the environment go into the
// container, where docker inspect shows them, and nowhere else.
//
// When perflab itself is killed, its containers run on, for they are the daemon's
// children: the next Start over the same directory, or Sweep, ends them. What was exec'd
// in a container that runs already ends with the connection.
//
// A Node gives others the Docker Engine of its machine, as far as its Allow goes: agents of a fleet are
// given one, and know nothing of Docker. Its containers have the agent's id as a label.
//
// Absent: building images, networks and volumes of perflab's own, several Docker hosts
// in one deployment.
package docker

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"perflab/internal/deploy"
)

// Runtime is the runtime of one Docker Engine. A Runtime is used by pointer; it holds what
// it has learnt about the image.
type Runtime struct {
	Settings Settings
	Grace    time.Duration     // from asking a container to end to killing it; 0: 10 s
	Poll     time.Duration     // first pause between health checks; 0: 50 ms
	Progress func(text string) // told of pulls, some lines a second at most, and warnings; may be nil

	mu     sync.Mutex
	engine *engine // nil before the first use
}

var (
	_ deploy.Runtime   = (*Runtime)(nil)
	_ deploy.Commander = (*Runtime)(nil)
)

const kind = "docker"

// Start pulls the image where it must, starts the replicas and waits until all are ready.
// The pull is not part of the deployment's time limit.
func (r *Runtime) Start(ctx context.Context, s deploy.Spec) (deploy.Deployment, error) {
	op := "start " + cmp.Or(s.Name, "deployment")
	e, err := r.prepare(ctx, op)
	if err != nil {
		return nil, err
	}
	if err := e.checkSpec(s); err != nil {
		return nil, &deploy.InfraError{Op: op, Err: err, Help: "set network to host"}
	}
	h := &host{engine: e}
	d, err := r.launcher(h).Start(ctx, s)
	if err != nil {
		return nil, err
	}
	return &deployment{d, h}, nil
}

func (r *Runtime) launcher(h *host) deploy.Launcher {
	return deploy.Launcher{Host: h, Kind: kind, Bind: h.bind(), Grace: r.Grace, Poll: r.Poll}
}

// Sweep ends the containers of deployments under dir whose perflab was killed, and says
// what they were. Without such a deployment the daemon is not asked.
func (r *Runtime) Sweep(ctx context.Context, dir string) ([]string, error) {
	e, err := r.connect("end what deployments left running")
	if err != nil {
		return nil, err
	}
	return r.launcher(&host{engine: e}).Sweep(ctx, dir)
}

// Resolved is what the image of Settings was when it was first used: NAME@sha256:..., or
// sha256:... for one that no registry has; of a container that runs already, its image.
// Before the first Start or Command there is none.
func (r *Runtime) Resolved() (image string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engine == nil || r.engine.image.id == "" {
		return "", false
	}
	return cmp.Or(r.engine.image.digest, r.engine.image.id), true
}

// Here reports whether containers are given the devices of this machine: they are made by
// its own Docker engine, and not entered.
func (r *Runtime) Here() (bool, error) {
	e, err := r.connect("find the Docker host")
	if err != nil {
		return false, err
	}
	return e.local() && e.settings.Container == "", nil
}

// Nodes is the Docker host.
func (r *Runtime) Nodes() []string { return []string{""} }

// Command runs argv in a short-lived container of the image, or in the container that
// runs already. A container for a command has GPUs only where all are asked for.
func (r *Runtime) Command(ctx context.Context, node string, argv []string, stdout io.Writer) error {
	op := "run " + redacted(argv)
	if err := oneNode(node); err != nil {
		return &deploy.InfraError{Op: op, Err: err}
	}
	e, err := r.prepare(ctx, op)
	if err != nil {
		return err
	}
	if e.settings.Container != "" {
		return e.exec(ctx, e.attached.id, argv, stdout)
	}
	return e.runOnce(ctx, op, argv, stdout)
}

// connect makes the client, once.
func (r *Runtime) connect(op string) (*engine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engine != nil {
		return r.engine, nil
	}
	if err := r.Settings.Validate(); err != nil {
		return nil, &deploy.InfraError{Op: op, Err: err, Help: "correct the settings of the docker runtime"}
	}
	e, err := connect(r.Settings, r.tell)
	if err != nil {
		return nil, &deploy.InfraError{Op: op, Err: err, Help: "correct docker_host, DOCKER_HOST or the docker context"}
	}
	e.grace = r.Grace
	r.engine = e
	return e, nil
}

func (r *Runtime) tell(text string) {
	if r.Progress != nil {
		r.Progress(text)
	}
}

// prepare resolves the image, once, or looks at the container that runs already. What it
// returns stays as it is while others prepare.
func (r *Runtime) prepare(ctx context.Context, op string) (*engine, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	e, err := r.connect(op)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.settings.Container != "" {
		err = e.attach(ctx, op)
	} else if e.image.id == "" {
		err = e.resolve(ctx, op)
	}
	snapshot := *e
	return &snapshot, err
}

// deployment is one whose containers can be asked.
type deployment struct {
	deploy.Deployment
	host *host
}

var _ deploy.Commander = (*deployment)(nil)

// Nodes is the Docker host.
func (d *deployment) Nodes() []string { return []string{""} }

// Command runs argv inside the container of a replica, with its GPUs and files.
func (d *deployment) Command(ctx context.Context, node string, argv []string, stdout io.Writer) error {
	op := "run " + redacted(argv)
	err := oneNode(node)
	id, running := d.host.running()
	if err == nil && !running {
		err = fmt.Errorf("no container of the deployment runs")
	}
	if err != nil {
		return &deploy.InfraError{Op: op, Err: err}
	}
	return d.host.exec(ctx, id, argv, stdout)
}
