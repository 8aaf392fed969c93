package kubetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// patience is how long what is about to go may take before it counts as left behind.
const patience = 30 * time.Second

// Namespace makes a namespace and returns its name. With the test it is deleted, and the test
// fails if an object of any kind is left in it that the test did not make by Cluster.Client:
// events, and what each namespace has, aside.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	c.mu.Lock()
	name := fmt.Sprintf("%s-%d", c.id, len(c.namespaces)+1)
	c.namespaces = append(c.namespaces, name)
	c.mu.Unlock()
	ctx := c.ctx
	_, err := c.plane.api.make(ctx, namespaceKind, "", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": name, "labels": map[string]any{tenantLabel: c.id},
			"annotations": map[string]any{"scheduler.alpha.kubernetes.io/node-selector": tenantLabel + "=" + c.id},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// A pod is refused before the account is there that it runs as.
	if !eventually(ctx, soon, func() bool {
		_, err := c.plane.api.in(accountKind, name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	}) {
		t.Fatalf("namespace %s has no service account: %v", name, c.plane.ended())
	}
	t.Cleanup(func() {
		for _, left := range c.left(t, name, c.patience, func() { c.buryPods(c.plane.ctx, name) }) {
			t.Errorf("left in namespace %s: %s", name, left)
		}
		// It takes its time, in which nobody looks at it any more.
		if err := ignoreMissing(c.plane.api.Resource(namespaceKind).Delete(c.plane.ctx, name, metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
	return name
}

// Left waits until a namespace holds nothing that the test did not make itself, and says what
// it holds once the time is up: an object of any kind, in a line.
func (c *Cluster) Left(t testing.TB, namespace string, limit time.Duration) (left []string) {
	t.Helper()
	return c.left(t, namespace, limit, func() {})
}

// left is Left that does something before each look.
func (c *Cluster) left(t testing.TB, namespace string, limit time.Duration, first func()) (left []string) {
	t.Helper()
	kinds, err := c.plane.api.listable(c.plane.ctx)
	if err != nil {
		t.Fatal(err)
	}
	eventually(c.plane.ctx, limit, func() bool {
		first()
		left, err = c.plane.api.left(c.plane.ctx, namespace, kinds)
		return err == nil && len(left) == 0
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// left are the objects of a namespace that somebody else than the kit made.
func (c *client) left(ctx context.Context, namespace string, kinds []schema.GroupVersionResource) ([]string, error) {
	all := map[types.UID]*unstructured.Unstructured{}
	for _, kind := range kinds {
		list, err := c.in(kind, namespace).List(ctx, metav1.ListOptions{})
		if ignoreMissing(err) != nil {
			return nil, fmt.Errorf("list %s of namespace %s: %w", kind.Resource, namespace, err)
		}
		for i := range list.Items {
			all[list.Items[i].GetUID()] = &list.Items[i]
		}
	}
	var left []string
	for _, u := range all {
		if !ours(u, all) {
			left = append(left, described(u))
		}
	}
	slices.Sort(left)
	return left, nil
}

// listable are all kinds whose objects are in namespaces, each in the version that its group
// prefers; events aside, which end by themselves.
func (c *client) listable(ctx context.Context) (kinds []schema.GroupVersionResource, err error) {
	var groups metav1.APIGroupList
	if err := c.getJSON(ctx, "/apis", &groups); err != nil {
		return nil, err
	}
	versions := []string{"v1"}
	for _, g := range groups.Groups {
		versions = append(versions, g.PreferredVersion.GroupVersion)
	}
	for _, v := range versions {
		version, err := schema.ParseGroupVersion(v)
		if err != nil {
			return nil, err
		}
		at := "/apis/" + v
		if version.Group == "" {
			at = "/api/" + v
		}
		var resources metav1.APIResourceList
		err = c.getJSON(ctx, at, &resources)
		if e, is := errors.AsType[*statusError](err); is && e.status == http.StatusNotFound {
			continue // a group that was just made, or is about to go
		}
		if err != nil {
			return nil, err
		}
		for _, r := range resources.APIResources {
			if r.Namespaced && r.Name != "events" && slices.Contains(r.Verbs, "list") {
				kinds = append(kinds, version.WithResource(r.Name))
			}
		}
	}
	return kinds, nil
}

// ours says whether an object is each namespace's, or made by the test itself, or belongs to
// such a one.
func ours(u *unstructured.Unstructured, all map[types.UID]*unstructured.Unstructured) bool {
	switch {
	case u.GetKind() == "ServiceAccount" && u.GetName() == "default", u.GetKind() == "ConfigMap" && u.GetName() == "kube-root-ca.crt":
		return true
	}
	for _, owner := range u.GetOwnerReferences() {
		o, there := all[owner.UID]
		return there && ours(o, all)
	}
	return made(u.GetManagedFields())
}

// made says whether the kit is among those who first wrote fields of an object. Instants are
// whole seconds there, in which others may have written too. Of an object without any field nobody
// knows who made it.
func made(fields []metav1.ManagedFieldsEntry) bool {
	first := func(a, b metav1.ManagedFieldsEntry) int { return a.Time.Compare(b.Time.Time) }
	fields = slices.DeleteFunc(fields, func(f metav1.ManagedFieldsEntry) bool { return f.Time == nil })
	if len(fields) == 0 {
		return false
	}
	at := slices.MinFunc(fields, first).Time
	return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == manager && f.Subresource == "" && f.Time.Equal(at)
	})
}

// described is an object in a line.
func described(u *unstructured.Unstructured) string {
	var more []string
	for _, owner := range u.GetOwnerReferences() {
		more = append(more, "of "+owner.Kind+" "+owner.Name)
	}
	if u.GetDeletionTimestamp() != nil {
		more = append(more, "being deleted")
	}
	for _, f := range u.GetFinalizers() {
		more = append(more, "held by "+f)
	}
	if len(more) > 0 {
		return path(u) + " (" + strings.Join(more, ", ") + ")"
	}
	return path(u)
}

// DeleteNamespace deletes a namespace with all that is in it, as an administrator who does not
// know of the test, and waits until it is gone.
func (c *Cluster) DeleteNamespace(t testing.TB, name string) {
	t.Helper()
	if err := c.destroy(c.plane.ctx, name); err != nil {
		t.Error(err)
	}
}

// destroy deletes a namespace and waits for its end. Pods whose node has gone go with it.
func (c *Cluster) destroy(ctx context.Context, name string) error {
	api := c.plane.api
	if err := ignoreMissing(api.Resource(namespaceKind).Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
		return err
	}
	var last *unstructured.Unstructured
	gone := eventually(ctx, emptied, func() bool {
		u, err := api.Resource(namespaceKind).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return ignoreMissing(err) == nil
		}
		last = u
		c.buryPods(ctx, name)
		return false
	})
	if !gone {
		return fmt.Errorf("namespace %s is not gone in time: %s", name, conditions(last))
	}
	return nil
}

// emptied bounds the end of a namespace: its controller deletes what is of each of some seventy kinds,
// and waits longer after each time that it finds something left, up to a minute.
const emptied = 3 * soon

// conditions are what an object says of itself.
func conditions(u *unstructured.Unstructured) string {
	if u == nil {
		return "it could not be read"
	}
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil || len(list) == 0 {
		return "it tells no reason"
	}
	return fmt.Sprint(list)
}

// buryPods removes the pods of a namespace that are being deleted and whose end no kubelet will
// confirm, as the administrators of a cluster do when a machine is lost.
func (c *Cluster) buryPods(ctx context.Context, namespace string) {
	list, err := c.plane.api.in(podKind, namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return // asked again
	}
	for _, u := range list.Items {
		node, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName")
		if u.GetDeletionTimestamp() != nil && !c.serves(node) {
			_ = c.plane.api.remove(ctx, podKind, namespace, u.GetName()) // asked again
		}
	}
}
