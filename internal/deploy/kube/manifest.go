package kube

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"perflab/internal/deploy"
	"perflab/internal/deploy/render"
	topology "perflab/internal/engine/cluster"
)

const engineContainer = "engine"

// objectsOf are the objects of one replica, and the group of its pods.
func (h *host) objectsOf(owner string, replica int) (*group, []map[string]any, error) {
	s := h.spec
	s.Replicas = s.Replicas[replica : replica+1 : replica+1]
	p := render.Plan{
		Name: fmt.Sprintf("%s-%d", owner, replica), Spec: s, Nodes: machines(s.Replicas[0]), Image: h.Image,
		Pods: h.Pods, Labels: map[string]string{labelManager: manager, labelInstance: owner}, Gated: true,
		Ports: h.plan.Ports[replica],
	}
	p.Pods.Namespace = h.namespace
	objects, err := render.Objects(p)
	if err != nil {
		return nil, nil, err
	}
	if err := h.unreferenced(p.Name, objects); err != nil {
		return nil, nil, err
	}
	g := &group{replica: replica, name: p.Name, size: 1}
	for _, o := range objects {
		switch u := (unstructured.Unstructured{Object: o}); u.GetKind() {
		case "Deployment":
			g.kind, g.gated = deploymentKind, len(s.Replicas[0].Peers) > 0
		case "LeaderWorkerSet":
			size, _, _ := unstructured.NestedInt64(o, "spec", "leaderWorkerTemplate", "size")
			g.kind, g.size = groupKind, int(size)
		}
	}
	if g.kind.Resource == "" {
		return nil, nil, errors.New("the runtime starts no such deployment: write it down with perflab render, and measure it as an existing one")
	}
	return g, objects, nil
}

// machines are those that a replica is spread over, as names: the cluster chooses which they are.
func machines(r deploy.Replica) (out []topology.Node) {
	names := []string{r.Node}
	for _, p := range r.Peers {
		names = append(names, p.Node)
	}
	for _, name := range names {
		if name != "" && !slices.ContainsFunc(out, func(n topology.Node) bool { return n.Name == name }) {
			out = append(out, topology.Node{Name: name, Addr: render.Addr(name)})
		}
	}
	return out
}

// unreferenced refuses a command that has a value of a secret of which no Secret of the namespace is
// named: it would have to be written into the cluster.
func (h *host) unreferenced(name string, objects []map[string]any) error {
	lacking := map[string]bool{}
	for _, o := range objects {
		walk(o, func(m map[string]any) {
			if ref, ok := m["secretKeyRef"].(map[string]any); ok && ref["name"] == name+"-secrets" {
				key, _ := ref["key"].(string)
				lacking[key] = true
			}
		})
	}
	if len(lacking) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(lacking))
	return fmt.Errorf("the engine is given the secret %s, whose value would have to be written into the cluster: create a Secret in the namespace %s and name it in secrets, as %s: SECRET/KEY", strings.Join(names, ", "), h.namespace, names[0])
}

// walk visits all mappings of an object.
func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(v)
		for _, e := range v {
			walk(e, visit)
		}
	case []any:
		for _, e := range v {
			walk(e, visit)
		}
	}
}

// containerOf is the container of a process of a replica.
func (h *host) containerOf(g *group, peer string) string {
	if !g.gated {
		return engineContainer
	}
	return render.ContainerOf(h.spec.Replicas[g.replica], peer)
}

// command is a deployment of one process; every deployment is given a port.
func command(argv, env []string) deploy.Spec {
	return deploy.Spec{Replicas: []deploy.Replica{{Member: deploy.Member{Argv: argv, Env: append([]string{"PERFLAB_PORT={port}"}, env...)}}}}
}

// commandPod is a pod that runs the command of the host's deployment once.
func (h *host) commandPod(owner string) (map[string]any, error) {
	h.plan.Ports = []map[string]int{nil}
	_, objects, err := h.objectsOf(owner, 0)
	if err != nil {
		return nil, err
	}
	template, _, _ := unstructured.NestedMap(objects[len(objects)-1], "spec", "template")
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]}
	mapping(pod, "metadata")["name"] = owner
	spec := mapping(pod, "spec")
	spec["restartPolicy"], spec["activeDeadlineSeconds"], spec["terminationGracePeriodSeconds"] = "Never", int64(commandDeadline), int64(1)
	containers, _ := spec["containers"].([]any)
	for _, c := range containers {
		if c, ok := c.(map[string]any); ok && c["name"] == engineContainer {
			delete(c, "startupProbe")
			delete(c, "readinessProbe")
		}
	}
	return pod, nil
}

const commandDeadline = 3600 // seconds: nobody's command takes as long, and a forgotten pod ends

// once runs argv in a pod of its own.
func (h *host) once(ctx context.Context, op string, argv []string, stdout io.Writer) (err error) {
	h.spec, h.plan.Marker = command([]string{"sleep", "3600"}, nil), "="+rand.Text()
	o, err := h.own(ctx, ownerName(h.plan.Marker), holder())
	if err != nil {
		return orCause(ctx, h.explain(op+": create a Lease", err))
	}
	defer func() {
		o.release()
		whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*h.patience)
		defer cancel()
		if _, left := o.cluster.end(whole, o.name); left != nil {
			err = errors.Join(err, h.explain(op+": remove the pod", left))
		}
	}()
	pod, err := h.commandPod(o.name)
	if err != nil {
		return &deploy.InfraError{Op: op, Err: err, Lasting: true}
	}
	o.adopt(pod)
	if _, err := o.apply(ctx, pod); err != nil {
		return orCause(ctx, h.explain(op+": apply the Pod "+o.name, err))
	}
	l := &launch{owner: o, host: h, op: op, view: newView()}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.follow.Go(func() { o.follow(watching, l.view) })
	defer l.follow.Wait()
	defer stop()
	p, err := l.await(ctx, &group{name: o.name + "-0", kind: podKind, size: 1})
	if err != nil {
		return orCause(ctx, err)
	}
	return h.exec(ctx, op, p.Name, engineContainer, argv, stdout)
}

// imageOf is the image of a container by digest, as the kubelet says it, "" where it does not.
func imageOf(s corev1.ContainerStatus) string {
	return strings.TrimPrefix(s.ImageID, "docker-pullable://")
}
