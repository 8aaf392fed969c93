package kubetest

import (
	"context"
	"io"
	"maps"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// object is one as YAML or JSON would have it.
type object = map[string]any

// onePod is a pod of one container.
func onePod(name string, container object, more ...object) object {
	c := object{"name": "engine", "image": "registry.example/engine:v1"}
	maps.Copy(c, container)
	spec := object{"containers": []any{c}, "restartPolicy": "Never", "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 5}
	for _, m := range more {
		maps.Copy(spec, m)
	}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name}, "spec": spec}
}

// create makes a pod and removes it, and its end, with the test.
func create(t *testing.T, c *Cluster, ns string, pod object) string {
	t.Helper()
	u, err := c.plane.api.make(t.Context(), podKind, ns, pod)
	if err != nil {
		t.Fatal(err)
	}
	return u.GetName()
}

// until waits until a pod is as f says, and returns it.
func until(t *testing.T, c *Cluster, ns, name string, f func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if !eventually(t.Context(), soon, func() bool {
		pod = &corev1.Pod{}
		return c.plane.api.read(t.Context(), podKind, ns, name, pod) == nil && f(pod)
	}) {
		t.Fatalf("pod %s does not come so far:\n%+v", name, pod.Status)
	}
	return pod
}

func phase(want corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Status.Phase == want }
}

// readLog is a log of a pod's container.
func readLog(t *testing.T, c *Cluster, ns, name, query string) string {
	t.Helper()
	text, err := c.plane.api.get(t.Context(), "/api/v1/namespaces/"+ns+"/pods/"+name+"/log"+query)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func remove(t *testing.T, c *Cluster, ns, name string) {
	t.Helper()
	if err := c.plane.api.in(podKind, ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !eventually(t.Context(), soon, func() bool {
		_, err := c.plane.api.in(podKind, ns).Get(t.Context(), name, metav1.GetOptions{})
		return err != nil && ignoreMissing(err) == nil
	}) {
		t.Fatalf("pod %s is not gone in time", name)
	}
}

func shell(script string) object { return object{"command": []any{"sh", "-c", script}} }

// TestPod has a pod scheduled, run to its end, read and deleted.
func TestPod(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	n := c.Node(t, "node-1", Resources{"nvidia.com/gpu": "2"})
	pod := shell("echo begins; echo $(WHO) on $(NODE); trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.05; done")
	pod["resources"] = object{"limits": object{"nvidia.com/gpu": "2"}}
	pod["env"] = []any{object{"name": "WHO", "value": "engine"}, object{"name": "NODE", "valueFrom": object{"fieldRef": object{"fieldPath": "spec.nodeName"}}}}
	name := create(t, c, ns, onePod("a", pod))
	got := until(t, c, ns, name, phase(corev1.PodRunning))
	if s := got.Status.ContainerStatuses[0]; !s.Ready || s.ImageID != "registry.example/engine@"+c.Digest("registry.example/engine:v1") || got.Status.PodIP != address {
		t.Errorf("status of the pod that runs: %+v", got.Status)
	}
	if !eventually(t.Context(), soon, func() bool {
		return strings.HasSuffix(readLog(t, c, ns, name, ""), "begins\nengine on "+n.Name+"\nup\n")
	}) {
		t.Errorf("log %q", readLog(t, c, ns, name, ""))
	}
	second := create(t, c, ns, onePod("b", object{"command": []any{"true"}, "resources": pod["resources"]}))
	got = until(t, c, ns, second, func(p *corev1.Pod) bool { return len(p.Status.Conditions) > 0 })
	if s := got.Status.Conditions[0]; s.Reason != corev1.PodReasonUnschedulable || !strings.Contains(s.Message, "Insufficient nvidia.com/gpu") {
		t.Errorf("a pod that finds no room: %+v", s)
	}
	log := follow(t, c, ns, name)
	remove(t, c, ns, name)
	if text, err := io.ReadAll(log); err != nil || !strings.HasSuffix(string(text), "asked\n") {
		t.Errorf("followed log %q, %v", text, err)
	}
	got = until(t, c, ns, second, phase(corev1.PodSucceeded))
	if s := got.Status.ContainerStatuses[0].State.Terminated; s == nil || s.Reason != "Completed" {
		t.Errorf("status of the pod that ended: %+v", got.Status)
	}
	remove(t, c, ns, second)
}

func follow(t *testing.T, c *Cluster, ns, name string) io.ReadCloser {
	t.Helper()
	r, err := c.plane.api.open(context.Background(), "/api/v1/namespaces/"+ns+"/pods/"+name+"/log?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}
