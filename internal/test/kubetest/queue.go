package kubetest

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kueue's words.
const (
	queueLabel   = "kueue.x-k8s.io/queue-name"
	managedLabel = "kueue.x-k8s.io/managed"
	queueGate    = "kueue.x-k8s.io/admission"
)

var (
	queueKind = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "localqueues"}
	jobKind   = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// Queue is a LocalQueue of Kueue with what Kueue does to pods of a namespace: one with the
// queue's label waits behind a gate, and a Job is suspended, until it is admitted.
type Queue struct {
	Name string

	c         *Cluster
	namespace string
	open      atomic.Bool
}

// Queue adds a queue to a namespace. At first it admits nothing. From the first queue of a test
// binary on, the kind LocalQueue is known to all of its tests.
func (c *Cluster) Queue(t testing.TB, namespace, name string) *Queue {
	t.Helper()
	q := &Queue{Name: name, c: c, namespace: namespace}
	if err := c.plane.installQueues(); err != nil {
		t.Fatal(err)
	}
	_, err := c.plane.api.make(c.ctx, queueKind, namespace, map[string]any{
		"apiVersion": queueKind.GroupVersion().String(), "kind": "LocalQueue", "metadata": map[string]any{"name": name}, "spec": map[string]any{"clusterQueue": "all"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.webhook(t, "MutatingWebhookConfiguration", namespace, map[string]any{
		"apiGroups": []any{"", "apps", "batch", setKind.Group}, "apiVersions": []any{"*"}, "operations": []any{"CREATE"},
		"resources": []any{"pods", "deployments", "jobs", setKind.Resource},
	}, q.change)
	return q
}

// installQueues makes the kind LocalQueue known.
func (p *plane) installQueues() error {
	free := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	_, err := p.api.make(p.ctx, definitionKind, "", map[string]any{
		"apiVersion": definitionKind.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": queueKind.GroupResource().String()},
		"spec": map[string]any{
			"group": queueKind.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": "LocalQueue", "listKind": "LocalQueueList", "plural": queueKind.Resource, "singular": "localqueue"},
			"versions": []any{map[string]any{
				"name": queueKind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": free, "status": free}}},
			}},
		},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	eventually(p.ctx, soon, func() bool {
		_, err = p.api.Resource(queueKind).List(p.ctx, metav1.ListOptions{})
		return err == nil
	})
	return err
}

// change is what Kueue does to an object as it is made.
func (q *Queue) change(object map[string]any) verdict {
	u := &unstructured.Unstructured{Object: object}
	if u.GetLabels()[queueLabel] != q.Name {
		return verdict{}
	}
	switch u.GetKind() {
	case "Pod":
		if q.open.Load() {
			return verdict{}
		}
		labels := u.GetLabels()
		labels[managedLabel] = "true"
		gates, _, _ := unstructured.NestedSlice(object, "spec", "schedulingGates")
		return verdict{patch: []any{
			put("/metadata/labels", labels),
			put("/spec/schedulingGates", append(gates, map[string]any{"name": queueGate})),
		}}
	case "Job":
		return verdict{patch: []any{put("/spec/suspend", !q.open.Load())}}
	case "Deployment":
		return verdict{patch: q.label(object, "spec", "template")}
	}
	patch := q.label(object, "spec", "leaderWorkerTemplate", "leaderTemplate")
	return verdict{patch: append(patch, q.label(object, "spec", "leaderWorkerTemplate", "workerTemplate")...)}
}

func put(path string, value any) any {
	return map[string]any{"op": "add", "path": path, "value": value}
}

// label gives a template of pods the queue's label.
func (q *Queue) label(object map[string]any, fields ...string) []any {
	template, there, _ := unstructured.NestedMap(object, fields...)
	if !there {
		return nil
	}
	if err := unstructured.SetNestedField(template, q.Name, "metadata", "labels", queueLabel); err != nil {
		return nil // refused by whoever looks at it next
	}
	var path strings.Builder
	for _, f := range fields {
		path.WriteString("/" + f)
	}
	return []any{put(path.String(), template)}
}

// Admit lets in what waits and what comes.
func (q *Queue) Admit(t testing.TB) {
	t.Helper()
	q.open.Store(true)
	for _, u := range q.waiting(t, podKind) {
		gates, _, _ := unstructured.NestedSlice(u.Object, "spec", "schedulingGates")
		gates = slices.DeleteFunc(gates, func(g any) bool {
			m, is := g.(map[string]any)
			return is && m["name"] == queueGate
		})
		q.patch(t, podKind, u.GetName(), map[string]any{"spec": map[string]any{"schedulingGates": gates}})
	}
	for _, u := range q.waiting(t, jobKind) {
		q.patch(t, jobKind, u.GetName(), map[string]any{"spec": map[string]any{"suspend": false}})
	}
}

// Preempt takes the place of what runs: its pods are told why and deleted, and what comes waits
// again.
func (q *Queue) Preempt(t testing.TB) {
	t.Helper()
	q.open.Store(false)
	for _, u := range q.waiting(t, podKind) {
		pod := &corev1.Pod{}
		if err := decode(&u, pod); err != nil {
			t.Fatal(err)
		}
		why := corev1.PodCondition{
			Type: "TerminationTarget", Status: corev1.ConditionTrue, Reason: "StoppedByKueue", LastTransitionTime: metav1.Now(),
			Message: "Preempted to accommodate a workload due to prioritization in the ClusterQueue",
		}
		q.patch(t, podKind, pod.Name, map[string]any{"status": map[string]any{"conditions": append(pod.Status.Conditions, why)}}, "status")
		if err := ignoreMissing(q.c.plane.api.in(podKind, q.namespace).Delete(q.c.ctx, pod.Name, metav1.DeleteOptions{})); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range q.waiting(t, jobKind) {
		q.patch(t, jobKind, u.GetName(), map[string]any{"spec": map[string]any{"suspend": true}})
	}
}

// waiting are the objects of a kind that have the queue's label.
func (q *Queue) waiting(t testing.TB, kind schema.GroupVersionResource) []unstructured.Unstructured {
	t.Helper()
	list, err := q.c.plane.api.in(kind, q.namespace).List(q.c.ctx, metav1.ListOptions{LabelSelector: queueLabel + "=" + q.Name})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (q *Queue) patch(t testing.TB, kind schema.GroupVersionResource, name string, patch any, subresources ...string) {
	t.Helper()
	if err := ignoreMissing(q.c.plane.api.merge(q.c.ctx, kind, q.namespace, name, patch, subresources...)); err != nil {
		t.Fatal(err)
	}
}
