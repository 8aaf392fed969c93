package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/redact"
)

// Runtime starts deployments on a node.
type Runtime struct {
	node       *Node
	process    deploy.Process
	containers *deploy.Containers // nil: processes

	readying sync.Mutex
	readied  *hold // for which the containers' image was made ready
	mu       sync.Mutex
	image    string // that it was
}

var (
	_ deploy.Runtime   = (*Runtime)(nil)
	_ deploy.Commander = (*Runtime)(nil)
	_ deploy.Host      = host{}
	_ deploy.Running   = (*running)(nil)
)

const kind = "fleet"

func (r *Runtime) launcher() deploy.Launcher {
	l := deploy.Launcher{Host: host{r}, Kind: kind, Bind: "127.0.0.1", Forwarded: true, Grace: r.process.Grace, Poll: r.process.Poll}
	if r.containers != nil {
		l.Bind = cmp.Or(r.containers.Bind, l.Bind)
	}
	return l
}

// Start starts the replicas and waits until all are ready. A pull of the containers' image is not part of the deployment's time limit.
func (r *Runtime) Start(ctx context.Context, s deploy.Spec) (deploy.Deployment, error) {
	if err := r.check(s); err != nil {
		return nil, &deploy.InfraError{Op: "start " + cmp.Or(s.Name, "deployment"), Err: err, Help: "correct the settings under runtime.docker", Lasting: true}
	}
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	return r.launcher().Start(ctx, s)
}

// check says why a deployment cannot be started in the containers.
func (r *Runtime) check(s deploy.Spec) error {
	if r.containers == nil || r.containers.Check == nil {
		return nil
	}
	return r.containers.Check(s)
}

// settings are those of whatever is started.
func (r *Runtime) settings() Settings {
	s := Settings{Dir: r.process.Dir, Limits: r.process.Limits}
	if r.containers != nil {
		s.Containers = r.containers.Settings
	}
	return s
}

// Sweep ends what deployments under dir left running when their perflab was killed, and says what that was: to take a
// node is to end all that an earlier leader has there.
func (r *Runtime) Sweep(ctx context.Context, dir string) ([]string, error) {
	return r.launcher().Sweep(ctx, dir)
}

// Nodes is the node.
func (r *Runtime) Nodes() []string { return []string{r.node.name} }

// Command runs argv on the node.
func (r *Runtime) Command(ctx context.Context, _ string, argv []string, stdout io.Writer) error {
	h, err := r.node.held(ctx)
	if err != nil {
		return err
	}
	if err := r.ready(ctx); err != nil {
		return err
	}
	n := h.number()
	if _, err := surely[struct{}](ctx, h, wordRun, runOrder{n, r.settings(), argv}); err != nil {
		return r.infra(ctx, "run "+strings.Join(redact.Argv(argv), " "), err)
	}
	defer h.kill(n)
	for {
		out, err := once[output](ctx, h, wordOutput, numbered{n}) // what is lost of it is lost
		if err != nil {
			return r.infra(ctx, "run "+strings.Join(redact.Argv(argv), " "), err)
		}
		if len(out.Bytes) > 0 {
			if _, err := stdout.Write(out.Bytes); err != nil {
				return err
			}
		}
		if out.Ended {
			return out.Fault.err()
		}
	}
}

// kill ends a command, and has it forgotten.
func (h *hold) kill(number int) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	_, _ = once[struct{}](ctx, h, wordKill, numbered{number}) // else it is the lease's end
}

// ready has the image of the containers made ready, once as long as the node is held.
func (r *Runtime) ready(ctx context.Context) error {
	if r.containers == nil {
		return nil
	}
	h, err := r.node.held(ctx)
	if err != nil {
		return err
	}
	r.readying.Lock()
	defer r.readying.Unlock()
	if r.readied == h {
		return nil
	}
	if err := r.prepare(ctx, h); err != nil {
		return r.infra(ctx, "prepare containers", err)
	}
	r.readied = h
	return nil
}

// prepare has the image made ready, and passes on what is told of that.
func (r *Runtime) prepare(ctx context.Context, h *hold) error {
	n := h.number()
	if _, err := surely[struct{}](ctx, h, wordReady, runOrder{Number: n, Start: r.settings()}); err != nil {
		return err
	}
	defer h.kill(n)
	for {
		out, err := surely[output](ctx, h, wordOutput, numbered{n})
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(out.Bytes)) {
			if r.containers.Progress != nil {
				r.containers.Progress(redact.Text(redact.Plain(strings.TrimSpace(line))))
			}
		}
		if out.Ended {
			r.mu.Lock()
			r.image = cmp.Or(out.Image, r.image)
			r.mu.Unlock()
			return out.Fault.err()
		}
	}
}

// Resolved is the image of the containers, as the node had it when it was made ready; of processes there is none.
func (r *Runtime) Resolved() (image string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.image, r.image != ""
}

// Reach says why the node, or what has its containers, cannot be reached now.
func (r *Runtime) Reach(ctx context.Context) error {
	h, err := r.node.held(ctx)
	if err != nil {
		return err
	}
	if r.containers != nil {
		err = r.prepare(ctx, h)
	} else {
		_, err = once[struct{}](ctx, h, wordRenew, nil)
	}
	if err != nil {
		return r.infra(ctx, "reach it", err)
	}
	return nil
}

// infra is why something was not done on the node.
func (r *Runtime) infra(ctx context.Context, op string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if _, ok := errors.AsType[*deploy.InfraError](err); ok {
		return wrongOn(r.node.name, err)
	}
	return &deploy.InfraError{Op: op + " on node " + r.node.name, Err: err, Help: "see what perflab agent says there"}
}

// host is the node as a Host.
type host struct{ *Runtime }

// Ports chooses ports of the node.
func (x host) Ports(ctx context.Context, _ string, n int) ([]int, error) {
	h, err := x.node.held(ctx)
	if err != nil {
		return nil, err
	}
	return surely[[]int](ctx, h, wordPorts, portsOrder{n, x.settings()})
}

// Spawn starts a process. What it prints is brought into the job's log, and that is complete when it has ended.
func (x host) Spawn(ctx context.Context, j deploy.Job) (deploy.Running, error) {
	h, err := x.node.held(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(j.Log.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, &deploy.InfraError{Op: j.Op, Err: err, Help: "choose an output directory that can be written to"}
	}
	r := &running{node: x.node, h: h, number: h.number(), name: j.Name, log: log, exited: make(chan struct{})}
	r.record, err = surely[deploy.Record](ctx, h, wordSpawn, spawnOrder{
		Number: r.number, Start: x.settings(), Op: j.Op, Name: j.Name, Marker: j.Marker,
		Ports: j.Ports, Visible: j.Visible, Argv: j.Argv, Env: j.Env, Devices: j.Devices, Files: j.Files,
	})
	if err != nil {
		log.Close()
		if ctx.Err() != nil {
			x.endUnknown(h, r.number)
		}
		return nil, x.infra(ctx, j.Op, err)
	}
	r.work.Go(r.follow)
	return r, nil
}

// endUnknown ends a process of which it is not known whether it was started.
func (x host) endUnknown(h *hold, number int) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	_, _ = once[stopped](ctx, h, wordStop, stopOrder{Number: number, Hurry: true}) // else the lease's end is its own
}

// End says what of a killed leader's the node had to end when it was taken.
func (x host) End(ctx context.Context, r deploy.Record) ([]string, error) {
	h, err := x.node.held(ctx)
	if err != nil {
		return nil, err
	}
	_, value, _ := strings.Cut(r.Marker, "=")
	for _, e := range h.ended {
		if e.Marker == r.Marker || e.Marker == value { // of a container
			return []string{e.Name + " on node " + x.node.name}, nil
		}
	}
	return nil, nil
}

// running is a process on the node.
type running struct {
	node   *Node
	h      *hold
	number int
	name   string
	log    *os.File
	record deploy.Record
	exited chan struct{}
	work   sync.WaitGroup

	mu       sync.Mutex
	status   string
	code     int
	forwards []*forwarder
}

// follow brings the log, until the process ends or the node is lost.
func (r *running) follow() {
	defer close(r.exited)
	defer r.log.Close()
	var from int64
	for {
		part, err := surely[logPart](r.h.ctx, r.h, wordLog, logOrder{r.number, from})
		if err != nil {
			r.end(fmt.Sprintf("lost: %v", cmp.Or(context.Cause(r.h.ctx), err)), -1)
			return
		}
		_, _ = r.log.Write(part.Bytes) // a full disk costs the log, and not the engine
		from += int64(len(part.Bytes))
		if part.Ended {
			r.end(part.Status, part.Code)
			return
		}
	}
}

func (r *running) end(status string, code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.code = status, code
}

// Exited is closed when the process has ended, or its node is lost.
func (r *running) Exited() <-chan struct{} { return r.exited }

// Status says how it ended.
func (r *running) Status() (string, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status, r.code
}

// Record leads back to it.
func (r *running) Record() deploy.Record { return r.record }

// URL is a port of this machine that leads to one of the process.
func (r *running) URL(_ context.Context, port int) (string, error) {
	f, err := forward(r.h, r.number, port)
	if err != nil {
		return "", &deploy.InfraError{Op: "reach a port of " + r.name, Err: err, Help: "end what uses up the ports of this machine"}
	}
	r.mu.Lock()
	r.forwards = append(r.forwards, f)
	r.mu.Unlock()
	r.node.mu.Lock()
	defer r.node.mu.Unlock()
	if r.node.forwards == nil {
		r.node.forwards = map[string]there{}
	}
	r.node.forwards[f.url()] = there{r.h, port}
	return f.url(), nil
}

// Stop ends the process, and the ways to it. Where the node is lost it is ended by its own agent, when
// the lease is over, and by the next who takes the node at the latest.
func (r *running) Stop(grace time.Duration, hurry <-chan struct{}) error {
	err := r.stop(grace, hurry)
	r.mu.Lock()
	forwards := r.forwards
	r.forwards = nil
	r.mu.Unlock()
	for _, f := range forwards {
		r.node.mu.Lock()
		delete(r.node.forwards, f.url())
		r.node.mu.Unlock()
		f.close()
	}
	if err == nil {
		r.work.Wait()
		_, _ = surely[stopped](r.h.ctx, r.h, wordStop, stopOrder{Number: r.number, Forget: true}) // or with the lease's end
	}
	return err
}

func (r *running) stop(grace time.Duration, hurry <-chan struct{}) error {
	o := stopOrder{Number: r.number, Grace: grace}
	hurried := make(chan struct{})
	defer close(hurried)
	r.work.Go(func() {
		select {
		case <-hurried:
		case <-hurry:
			h := o
			h.Hurry = true
			_, _ = surely[stopped](r.h.ctx, r.h, wordStop, h) // what comes of it the other one hears
		}
	})
	for {
		s, err := surely[stopped](r.h.ctx, r.h, wordStop, o)
		switch {
		case r.h.ctx.Err() != nil:
			return nil
		case err != nil:
			return &deploy.InfraError{Op: "stop " + r.name + " on node " + r.node.name, Err: err, Help: "see what perflab agent says there"}
		case s.Done && s.Fault != nil:
			return wrongOn(r.node.name, s.Fault.err())
		case s.Done:
			return nil
		}
	}
}

// wrongOn is an error of a node, with its name.
func wrongOn(node string, err error) error {
	infra, ok := errors.AsType[*deploy.InfraError](err)
	if !ok {
		return fmt.Errorf("%w on node %s", err, node)
	}
	if where := " node " + node; !strings.HasSuffix(infra.Op, where) {
		infra.Op += " on" + where
	}
	if taken, ok := errors.AsType[*deploy.PortError](err); ok {
		return taken
	}
	return infra
}
