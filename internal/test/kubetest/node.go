package kubetest

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Resources are a node's by name, {"nvidia.com/gpu": "8"}. Unless they are among them it has 64
// CPUs, 512 GiB of memory, 100 GiB of disk and room for 110 pods.
type Resources map[string]string

// Node is a machine of the cluster: a Node object, and a kubelet that runs its pods.
type Node struct {
	Name string

	c      *Cluster
	dir    string
	server *server
	ctx    context.Context
	quit   context.CancelFunc
	work   sync.WaitGroup
	ended  sync.Once

	mu      sync.Mutex
	silent  bool // nothing is said of pods any more
	pods    map[types.UID]*pod
	pulled  map[string]bool
	devices devices
}

// Node adds a machine to the test's cluster, with labels KEY=VALUE. Pods of the test's
// namespaces alone run on it. It ends with the test, after the test's namespaces. Its name in the cluster, Node.Name, begins
// with the test's.
func (c *Cluster) Node(t testing.TB, name string, has Resources, labels ...string) *Node {
	t.Helper()
	n := &Node{Name: c.id + "-" + name, c: c, pods: map[types.UID]*pod{}, pulled: map[string]bool{}, devices: newDevices(c.id+"-"+name, has)}
	n.dir = filepath.Join(c.dir, n.Name)
	n.ctx, n.quit = context.WithCancel(c.plane.ctx)
	var err error
	if n.server, err = serveKubelet(n); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	if err := n.register(has, labels); err != nil {
		t.Fatal(err)
	}
	n.work.Go(n.watch)
	return n
}

// serves says whether a node of the test has a kubelet.
func (c *Cluster) serves(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.nodes, func(n *Node) bool { return n.Name == name })
}

// register makes the Node object of a machine that is ready.
func (n *Node) register(has Resources, labels []string) error {
	marks := map[string]any{tenantLabel: n.c.id, "kubernetes.io/hostname": n.Name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		marks[key] = value
	}
	api, ctx := n.c.plane.api, n.ctx
	_, err := api.make(ctx, nodeKind, "", map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": n.Name, "labels": marks},
	})
	if err != nil {
		return err
	}
	all := Resources{"cpu": "64", "memory": "512Gi", "ephemeral-storage": "100Gi", "pods": "110"}
	maps.Copy(all, has)
	err = api.merge(ctx, nodeKind, "", n.Name, map[string]any{"status": map[string]any{
		"capacity": all, "allocatable": all,
		"conditions":      []any{condition("Ready", "True", "KubeletReady", "kubelet is posting ready status")},
		"addresses":       []any{map[string]any{"type": "InternalIP", "address": address}, map[string]any{"type": "Hostname", "address": n.Name}},
		"daemonEndpoints": map[string]any{"kubeletEndpoint": map[string]any{"Port": n.server.port}},
		"nodeInfo":        map[string]any{"kubeletVersion": "v1.37.2", "operatingSystem": "linux", "architecture": "amd64"},
	}}, "status")
	if err != nil {
		return err
	}
	// A new node has the taint of one that is not ready.
	return api.merge(ctx, nodeKind, "", n.Name, map[string]any{"spec": map[string]any{"taints": nil}})
}

func condition(kind, status, reason, message string) map[string]any {
	now := metav1.Now()
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": now, "lastTransitionTime": now}
}

// watch runs the pods that the scheduler gives to the node.
func (n *Node) watch() {
	opts := metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name}
	n.c.plane.api.follow(n.ctx, podKind, opts, func(u *unstructured.Unstructured, gone bool) {
		object := &corev1.Pod{}
		if err := decode(u, object); err != nil {
			return // no pod
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		p := n.pods[object.UID]
		switch {
		case gone && p != nil: // by somebody who did not wait for the kubelet
			p.vanish()
			delete(n.pods, object.UID)
		case gone || n.silent:
		case p == nil:
			p = newPod(n, object)
			n.pods[object.UID] = p
			n.work.Go(p.run)
		default:
			p.update(object)
		}
	})
}

// Stop ends the machine in good order: pods that are being deleted end first, then all others
// are killed, and the Node object goes.
func (n *Node) Stop() {
	n.ended.Do(func() {
		eventually(n.ctx, patience, func() bool { return !n.terminating() })
		n.halt()
		ctx, cancel := context.WithTimeout(n.c.plane.ctx, soon)
		defer cancel()
		_ = n.c.plane.api.remove(ctx, nodeKind, "", n.Name) // gone with the control plane at the latest
	})
}

// terminating says whether a pod is being deleted.
func (n *Node) terminating() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		if p.deleted() {
			return true
		}
	}
	return false
}

// halt is the end of a machine: its processes are killed and nothing more is said of them.
func (n *Node) halt() {
	n.mu.Lock()
	n.silent = true
	for _, p := range n.pods {
		p.kill("")
	}
	n.mu.Unlock()
	n.quit()
	n.c.mu.Lock()
	n.c.nodes = slices.DeleteFunc(n.c.nodes, func(m *Node) bool { return m == n })
	n.c.mu.Unlock()
	n.work.Wait()
	n.server.close()
}

// Fail is the end of a machine that nobody expected: its processes are killed, its kubelet
// is silent, and the Node object is not ready and has the taint of a machine that cannot be
// reached, as a cluster finds after a while. Its pods stay as they were last seen.
func (n *Node) Fail(t testing.TB) {
	t.Helper()
	n.halt()
	api, ctx := n.c.plane.api, n.c.plane.ctx
	reason, message := "NodeStatusUnknown", "Kubelet stopped posting node status."
	err := api.merge(ctx, nodeKind, "", n.Name, map[string]any{"status": map[string]any{"conditions": []any{condition("Ready", "Unknown", reason, message)}}}, "status")
	if err == nil {
		now := metav1.Now().UTC().Format(time.RFC3339)
		err = api.merge(ctx, nodeKind, "", n.Name, map[string]any{"spec": map[string]any{"taints": []any{
			map[string]any{"key": corev1.TaintNodeUnreachable, "effect": "NoSchedule", "timeAdded": now},
			map[string]any{"key": corev1.TaintNodeUnreachable, "effect": "NoExecute", "timeAdded": now},
		}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	n.eachPod(t, func(p *pod) error {
		return api.merge(ctx, podKind, p.object.Namespace, p.object.Name, map[string]any{"status": map[string]any{
			"conditions": p.unready("NodeNotReady"),
		}}, "status")
	})
}

// Gone is Fail of a machine that also leaves the cluster, as one of a cloud does: the Node
// object is deleted, and its pods with it.
func (n *Node) Gone(t testing.TB) {
	t.Helper()
	n.Fail(t)
	api, ctx := n.c.plane.api, n.c.plane.ctx
	if err := api.remove(ctx, nodeKind, "", n.Name); err != nil {
		t.Fatal(err)
	}
	n.eachPod(t, func(p *pod) error {
		why := map[string]any{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "PodGC: node no longer exists", "lastTransitionTime": metav1.Now()}
		err := api.merge(ctx, podKind, p.object.Namespace, p.object.Name, map[string]any{"status": map[string]any{
			"phase": "Failed", "conditions": append(p.unready("NodeNotReady"), why),
		}}, "status")
		if ignoreMissing(err) != nil {
			return err
		}
		return api.remove(ctx, podKind, p.object.Namespace, p.object.Name)
	})
}

func (n *Node) eachPod(t testing.TB, f func(p *pod) error) {
	t.Helper()
	n.mu.Lock()
	pods := slices.Collect(maps.Values(n.pods))
	n.mu.Unlock()
	for _, p := range pods {
		if err := ignoreMissing(f(p)); err != nil {
			t.Fatal(err)
		}
	}
}

// Evict ends a pod as a kubelet does whose machine has too little memory.
func (n *Node) Evict(t testing.TB, namespace, name string) {
	t.Helper()
	n.pod(t, namespace, name).kill("Evicted")
}

// RunOutOfMemory ends a container as the kernel does one whose memory is used up.
func (n *Node) RunOutOfMemory(t testing.TB, namespace, name, container string) {
	t.Helper()
	c := n.pod(t, namespace, name).container(container)
	if c == nil || !c.runOutOfMemory() {
		t.Fatalf("pod %s has no container %s that runs", name, container)
	}
}

// Processes are the ids of those that run in the containers of a pod.
func (n *Node) Processes(t testing.TB, namespace, name string) (pids []int) {
	t.Helper()
	for _, c := range n.pod(t, namespace, name).containers {
		pids = append(pids, marked(c.marker())...)
	}
	return pids
}

func (n *Node) pod(t testing.TB, namespace, name string) *pod {
	t.Helper()
	p := n.find(namespace, name)
	if p == nil {
		t.Fatalf("node %s has no pod %s of namespace %s", n.Name, name, namespace)
	}
	return p
}

// find is a pod by its name, nil for none.
func (n *Node) find(namespace, name string) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		if p.object.Namespace == namespace && p.object.Name == name {
			return p
		}
	}
	return nil
}

// say makes an event about an object, as the kubelet does.
func (n *Node) say(about *corev1.Pod, kind, reason, format string, args ...any) {
	now := metav1.Now()
	e := &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{GenerateName: about.Name + ".", Namespace: about.Namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: about.Namespace, Name: about.Name, UID: about.UID},
		Type:           kind, Reason: reason, Message: fmt.Sprintf(format, args...),
		Source: corev1.EventSource{Component: "kubelet", Host: n.Name}, ReportingController: "kubelet", ReportingInstance: n.Name,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if !n.isSilent() {
		_, _ = n.c.plane.api.make(n.ctx, eventKind, about.Namespace, e) // events may be lost
	}
}

func (n *Node) isSilent() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.silent
}
