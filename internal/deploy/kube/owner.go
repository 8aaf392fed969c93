package kube

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Labels of all objects that perflab makes.
const (
	labelName     = "app.kubernetes.io/name"
	labelManager  = "app.kubernetes.io/managed-by"
	labelInstance = "app.kubernetes.io/instance" // the owner's name
	engineName    = "perflab-engine"
)

// A Lease owns all objects of a deployment. It is renewed as long as its perflab runs, and tells
// other perflabs when it does not any more.
const (
	leaseTime  = 60 * time.Second
	leaseEvery = 10 * time.Second
	leaseSlack = 30 * time.Second // after its time, for a perflab that could not reach the API server
)

// ownerName is the name of the Lease of a deployment, by its marker.
func ownerName(marker string) string {
	_, value, _ := strings.Cut(marker, "=")
	value, _, _ = strings.Cut(value, "/")
	const enough = 12 // letters of 5 bits
	return "perflab-" + strings.ToLower(value[:min(len(value), enough)])
}

// owner is a Lease that owns the objects of one deployment.
type owner struct {
	*cluster
	name   string
	uid    types.UID
	ahead  time.Duration // of the API server's clock before this machine's
	cancel context.CancelFunc
	renews sync.WaitGroup
}

func labels(owner string) map[string]any {
	return map[string]any{labelName: engineName, labelManager: manager, labelInstance: owner}
}

// own creates the Lease and keeps it fresh until release.
func (c *cluster) own(ctx context.Context, name, holder string) (*owner, error) {
	o := &owner{cluster: c, name: name}
	ahead, err := c.clock(ctx)
	if err != nil {
		return nil, err
	}
	o.ahead = ahead
	made, err := c.apply(ctx, o.lease(time.Now().Add(ahead), holder))
	if err != nil {
		return nil, err
	}
	o.uid = made.GetUID()
	renewing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o.cancel = cancel
	o.renews.Go(func() { o.renew(renewing, holder) })
	return o, nil
}

// clock is how far the API server's clock is ahead of this machine's: clocks of machines differ by
// more than a Lease is long, and the API server's is everyone's. An object that is made as a trial
// has its time.
func (c *cluster) clock(ctx context.Context) (ahead time.Duration, err error) {
	o := &owner{cluster: c, name: "perflab-clock"}
	err = c.retry(ctx, func(ctx context.Context) error {
		now := time.Now()
		made, err := c.patch(ctx, o.lease(now, "nobody"), metav1.DryRunAll)
		if err == nil {
			created := made.GetCreationTimestamp()
			ahead = created.Sub(now)
		}
		return err
	})
	return ahead, err
}

// lease is the object at a time of the API server's clock.
func (o *owner) lease(now time.Time, holder string) map[string]any {
	return map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"name": o.name, "namespace": o.namespace, "labels": labels(o.name)},
		"spec": map[string]any{
			"holderIdentity": holder, "leaseDurationSeconds": int64(leaseTime / time.Second),
			"renewTime": now.UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
		},
	}
}

// renew keeps the Lease fresh. One that somebody has deleted is not made again: its objects go
// with it.
func (o *owner) renew(ctx context.Context, holder string) {
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().Add(o.ahead).UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
		once, cancel := context.WithTimeout(ctx, leaseEvery)
		_, err := o.of(leaseKind).Patch(once, o.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager})
		cancel()
		if apierrors.IsNotFound(err) {
			return
		}
	}
}

// release ends the renewing.
func (o *owner) release() {
	o.cancel()
	o.renews.Wait()
}

// reference is what makes an object the owner's.
func (o *owner) reference() map[string]any {
	return map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": o.name, "uid": string(o.uid)}
}

// adopt makes an object the owner's, and its pods known by labels.
func (o *owner) adopt(object map[string]any) {
	meta := mapping(object, "metadata")
	meta["namespace"] = o.namespace
	meta["ownerReferences"] = []any{o.reference()}
	for _, path := range [][]string{
		{"metadata"}, {"spec", "template", "metadata"},
		{"spec", "leaderWorkerTemplate", "leaderTemplate", "metadata"}, {"spec", "leaderWorkerTemplate", "workerTemplate", "metadata"},
	} {
		if _, ok, _ := unstructured.NestedMap(object, path[:len(path)-1]...); !ok && len(path) > 1 {
			continue
		}
		at := mapping(mapping(object, path...), "labels")
		maps.Copy(at, labels(o.name))
	}
}

// mapping is the mapping at a path, made where it lacks.
func mapping(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		next, ok := object[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[key] = next
		}
		object = next
	}
	return object
}

// owners are the Leases of deployments in the namespace.
func (c *cluster) owners(ctx context.Context) ([]unstructured.Unstructured, error) {
	var list *unstructured.UnstructuredList
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		list, err = c.of(leaseKind).List(ctx, metav1.ListOptions{LabelSelector: labelManager + "=" + manager + "," + labelName + "=" + engineName})
		return err
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// expired reports whether nobody has renewed a Lease for longer than it lasts.
func expired(l unstructured.Unstructured, now time.Time) bool {
	text, _, _ := unstructured.NestedString(l.Object, "spec", "renewTime")
	seconds, _, _ := unstructured.NestedInt64(l.Object, "spec", "leaseDurationSeconds")
	renewed, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && now.Sub(renewed) > time.Duration(seconds)*time.Second+leaseSlack
}

// sweep removes what perflabs that have gone left in the namespace, and waits until its pods,
// which may have the devices that are wanted, are gone. Time is the API server's.
func (c *cluster) sweep(ctx context.Context, now time.Time) (ended []string, err error) {
	list, err := c.owners(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if !expired(l, now) {
			continue
		}
		gone, err := c.evict(ctx, l)
		if err != nil {
			return ended, err
		}
		if gone {
			ended = append(ended, c.describe(l.GetName()))
		}
	}
	return ended, nil
}

// evict removes a deployment unless its owner has changed since it was looked at: then its perflab
// is alive after all.
func (c *cluster) evict(ctx context.Context, l unstructured.Unstructured) (gone bool, err error) {
	background, version, uid := metav1.DeletePropagationBackground, l.GetResourceVersion(), l.GetUID()
	err = c.retry(ctx, func(ctx context.Context) error {
		return c.of(leaseKind).Delete(ctx, l.GetName(), metav1.DeleteOptions{
			PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		})
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err == nil {
		err = c.awaitGone(ctx, l.GetName())
	}
	return err == nil, err
}

// describe names a deployment for people.
func (c *cluster) describe(owner string) string {
	return fmt.Sprintf("deployment %s in the namespace %s", owner, c.namespace)
}

// end removes a deployment by its owner's name, and reports whether there was something.
func (c *cluster) end(ctx context.Context, name string) (found bool, err error) {
	var pods []unstructured.Unstructured
	leased := true
	err = c.retry(ctx, func(ctx context.Context) error {
		_, err := c.of(leaseKind).Get(ctx, name, metav1.GetOptions{})
		if leased = err == nil; leased || !apierrors.IsNotFound(err) {
			return err
		}
		pods, err = c.podsOf(ctx, name)
		return err
	})
	if err != nil || !leased && len(pods) == 0 {
		return false, err
	}
	if err := c.remove(ctx, leaseKind, name, nil); err != nil {
		return true, err
	}
	return true, c.awaitGone(ctx, name)
}

// podsOf are the pods of a deployment.
func (c *cluster) podsOf(ctx context.Context, owner string) ([]unstructured.Unstructured, error) {
	list, err := c.of(podKind).List(ctx, metav1.ListOptions{LabelSelector: labelInstance + "=" + owner})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// awaitGone waits until no pod of a deployment is left. A pod that is being deleted has its
// devices until its node says that nothing of it runs.
func (c *cluster) awaitGone(ctx context.Context, owner string) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		var pods []unstructured.Unstructured
		err := c.retry(ctx, func(ctx context.Context) (err error) {
			pods, err = c.podsOf(ctx, owner)
			return err
		})
		if err == nil && len(pods) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return err
			}
			return stuck(pods)
		case <-time.After(pause):
		}
	}
}

// goneWait is how long pods may take to be gone after their own grace.
const goneWait = 90 * time.Second

// stuck is the error of pods that do not go.
func stuck(pods []unstructured.Unstructured) error {
	var names []string
	for _, p := range pods {
		node, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName")
		names = append(names, fmt.Sprintf("pod %s on node %s", p.GetName(), node))
	}
	return fmt.Errorf("%s does not end", strings.Join(names, ", "))
}
