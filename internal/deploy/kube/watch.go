package kube

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// seen is a pod as it was last seen.
type seen struct {
	*corev1.Pod
	gone bool // no such pod is there any more
}

// view is what is known of the pods of a deployment. It stays as it was while the API server does
// not answer: engines run on meanwhile.
type view struct {
	mu      sync.Mutex
	pods    map[types.UID]seen
	err     error         // why the pods may not be watched
	synced  bool          // they have been listed
	changed chan struct{} // closed at the next change
}

func newView() *view { return &view{pods: map[types.UID]seen{}, changed: make(chan struct{})} }

// change notes something, and wakes who waits for news.
func (v *view) change(note func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	note()
	close(v.changed)
	v.changed = make(chan struct{})
}

// all are the pods, and what is closed at the next change.
func (v *view) all() (pods []seen, changed <-chan struct{}, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.pods {
		pods = append(pods, p)
	}
	return pods, v.changed, v.err
}

// pod is one of them.
func (v *view) pod(uid types.UID) (p seen, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pods[uid], v.changed
}

// left are the names of pods that are there still, by the last news.
func (v *view) left() (out []string, changed <-chan struct{}) {
	pods, changed, _ := v.all()
	for _, p := range pods {
		if !p.gone {
			out = append(out, p.Name)
		}
	}
	return out, changed
}

// follow keeps the view of a deployment's pods fresh until ctx ends.
func (o *owner) follow(ctx context.Context, v *view) {
	o.cluster.follow(ctx, v, labelInstance+"="+o.name)
}

// follow keeps a view of the pods with some labels fresh until ctx ends: a list, and what changes after it.
func (c *cluster) follow(ctx context.Context, v *view, selector string) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		list, err := c.of(podKind).List(ctx, metav1.ListOptions{LabelSelector: selector})
		switch {
		case err == nil:
			v.replace(list.Items)
			began := time.Now()
			err = c.changes(ctx, v, selector, list.GetResourceVersion())
			if time.Since(began) > lastPause {
				pause = firstPause
			}
		case !passing(err) && ctx.Err() == nil:
			v.change(func() { v.err = err })
		}
		if apierrors.IsForbidden(err) {
			v.change(func() { v.err = err })
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// changes takes in changes after a version. It returns when a new list is needed.
func (c *cluster) changes(ctx context.Context, v *view, selector, version string) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		w, err := c.of(podKind).Watch(ctx, metav1.ListOptions{
			LabelSelector: selector, ResourceVersion: version, AllowWatchBookmarks: true,
		})
		if err == nil {
			var fresh string
			if fresh, err = v.take(ctx, w); fresh != "" {
				version, pause = fresh, firstPause
			}
		}
		if ctx.Err() != nil || err != nil && !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// take takes in what a watch says until it ends, and gives the last version; an error of the API's
// where the watch cannot go on from there.
func (v *view) take(ctx context.Context, w watch.Interface) (version string, err error) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, ctx.Err()
		case e, open := <-w.ResultChan():
			if !open {
				return version, nil
			}
			if e.Type == watch.Error {
				return version, apierrors.FromObject(e.Object)
			}
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				return version, errors.New("the API server sends what is no object")
			}
			version = u.GetResourceVersion()
			if e.Type != watch.Bookmark {
				v.change(func() { v.put(u, e.Type == watch.Deleted) })
			}
		}
	}
}

// put notes a pod; mu is held.
func (v *view) put(u *unstructured.Unstructured, gone bool) {
	pod := new(corev1.Pod)
	if err := into(u, pod); err == nil {
		v.pods[pod.UID] = seen{pod, gone}
	}
}

// replace takes in a list: what is not in it is gone.
func (v *view) replace(list []unstructured.Unstructured) {
	v.change(func() {
		v.synced, v.err = true, nil
		here := map[types.UID]bool{}
		for i := range list {
			here[list[i].GetUID()] = true
			v.put(&list[i], false)
		}
		for uid, p := range v.pods {
			if !here[uid] {
				p.gone = true
				v.pods[uid] = p
			}
		}
	})
}
