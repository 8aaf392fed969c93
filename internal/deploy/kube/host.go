package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/deploy/render"
)

// host is a namespace as a deploy.Host. Each start has one of its own.
type host struct {
	*cluster
	spec  deploy.Spec // as it was given: with the processes on other machines
	grace time.Duration
	tell  func(text string) // each text once

	plan deploy.Plan

	mu      sync.Mutex
	launch  *launch // nil before the first process of a plan
	waited  time.Duration
	waiting time.Time // since when it waits; zero: it does not
	runs    []*process
}

var (
	_ deploy.Host    = (*host)(nil)
	_ deploy.Planner = (*host)(nil)
	_ deploy.Waiter  = (*host)(nil)
)

// Ports chooses ports. A pod has addresses of its own and all ports free; those of the node's network
// might be taken, which only the start tells.
func (h *host) Ports(_ context.Context, _ string, n int) ([]int, error) {
	return deploy.BlindPorts(n)
}

// Plan takes note of what is about to be started.
func (h *host) Plan(p deploy.Plan) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plan, h.launch = p, nil
	return nil
}

// Waited is how long the host has waited for queues, nodes, images and the cluster itself.
func (h *host) Waited() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting.IsZero() {
		return h.waited
	}
	return h.waited + time.Since(h.waiting)
}

// idle begins a wait that is not the engine's; what it returns ends it.
func (h *host) idle() (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.waiting.IsZero() {
		return func() {} // within another
	}
	h.waiting = time.Now()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.waited, h.waiting = h.waited+time.Since(h.waiting), time.Time{}
	}
}

// begun is the launch of the plan. Processes are spawned one after another.
func (h *host) begun(ctx context.Context, op string) (*launch, error) {
	h.mu.Lock()
	l := h.launch
	h.mu.Unlock()
	if l != nil {
		return l, nil
	}
	l, err := h.launchOf(ctx, op)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.launch = l
	return l, nil
}

// Spawn makes the replicas' objects with the first process, and lets the process begin when its pod
// runs.
func (h *host) Spawn(ctx context.Context, j deploy.Job) (_ deploy.Running, err error) {
	replica, peer, err := named(j.Name)
	if err != nil {
		return nil, &deploy.InfraError{Op: j.Op, Err: err}
	}
	l, err := h.begun(ctx, j.Op)
	if err != nil {
		return nil, orCause(ctx, err)
	}
	defer func() {
		if err != nil {
			err = orCause(ctx, err)
			if _, others := h.running(); others {
				return // whoever stops them ends the launch, and the reason of the end is this one
			}
			if left := l.end(nil); left != nil {
				err = errors.Join(err, left)
			}
		}
	}()
	g := l.groups[replica]
	pod, err := l.await(ctx, g)
	if err != nil {
		return nil, err
	}
	p := &process{launch: l, group: g, pod: pod.UID, podName: pod.Name, container: h.containerOf(g, peer), dir: j.Dir, exited: make(chan struct{})}
	l.evidenceOf(g, j.Dir)
	log, err := os.OpenFile(j.Log.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, &deploy.InfraError{Op: j.Op, Err: err}
	}
	p.begin(log)
	if g.gated {
		if err := p.open(ctx, render.Gate(p.container)); err != nil {
			p.leave()
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs = append(h.runs, p)
	return p, nil
}

// orCause is an error of a start that was given up: why it was.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// End removes what an earlier perflab made: all that its Lease owns.
func (h *host) End(ctx context.Context, r deploy.Record) (ended []string, err error) {
	c, name := h.cluster, ownerName(r.Marker)
	if namespace, owner, ok := strings.Cut(r.ID, "/"); ok {
		other := *c
		other.namespace, name = namespace, owner
		c = &other
	}
	if r.Engine != "" && r.Engine != c.config.Host {
		return nil, fmt.Errorf("%s was started in the cluster at %s, and this is the one at %s: name that by kubeconfig or context, or remove it there", r.Name, r.Engine, c.config.Host)
	}
	op := "look for what an earlier deployment left in the namespace " + c.namespace
	found, err := c.end(ctx, name)
	if err != nil {
		return nil, c.explain(op, err)
	}
	if !found {
		return nil, nil
	}
	return []string{c.describe(name)}, nil
}

// running is a process of the deployment that runs.
func (h *host) running() (*process, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.runs {
		select {
		case <-p.exited:
		default:
			return p, true
		}
	}
	return nil, false
}
