package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// address is that of every pod and every node.
const address = "127.0.0.1"

// pod is one that runs on a node. Its fields below mu change; object's specification and names
// do not.
type pod struct {
	node       *Node
	object     *corev1.Pod
	dir        string
	containers []*container // those that begin before the others first
	dirty      chan struct{}
	ctx        context.Context // of what the pod runs: ends when it is to end
	cancel     context.CancelCauseFunc

	mu          sync.Mutex
	reason      string // why the kubelet ended it
	deleting    bool
	over        chan struct{} // closed when the pod is deleted
	grace       time.Duration // between asking and killing
	begun       metav1.Time
	pending     string // why nothing has begun: a reason of waiting
	message     string
	initialized bool
	ready       map[corev1.PodConditionType]corev1.PodCondition
	published   chan struct{} // closed when no more is told of the pod
}

// errDeleted, errKilled and errDone are why a pod's containers end.
var (
	errDone    = errors.New("the containers beside which it ran have ended")
	errDeleted = errors.New("the pod is deleted")
	errKilled  = errors.New("the pod is killed")
)

func newPod(n *Node, object *corev1.Pod) *pod {
	p := &pod{
		node: n, object: object, dir: filepath.Join(n.dir, string(object.UID)), dirty: make(chan struct{}, 1), pending: "ContainerCreating",
		begun: metav1.Now(), ready: map[corev1.PodConditionType]corev1.PodCondition{}, published: make(chan struct{}), over: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancelCause(n.ctx)
	for i := range object.Spec.InitContainers {
		p.containers = append(p.containers, newContainer(p, object.Spec.InitContainers[i], true))
	}
	for i := range object.Spec.Containers {
		p.containers = append(p.containers, newContainer(p, object.Spec.Containers[i], false))
	}
	return p
}

// update takes note of a pod that changed: of its deletion, that is.
func (p *pod) update(object *corev1.Pod) {
	if object.DeletionTimestamp == nil {
		return
	}
	p.mu.Lock()
	first := p.markDeleted()
	if object.DeletionGracePeriodSeconds != nil {
		p.grace = time.Duration(*object.DeletionGracePeriodSeconds) * time.Second
	}
	p.mu.Unlock()
	if first {
		p.cancel(errDeleted)
	}
}

// markDeleted is called with mu held; first says that nobody has before.
func (p *pod) markDeleted() (first bool) {
	if p.deleting {
		return false
	}
	p.deleting = true
	close(p.over)
	return true
}

func (p *pod) deleted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deleting
}

// kill ends the pod's processes at once; the reason is that of the pod's status, "" for none.
func (p *pod) kill(reason string) {
	p.mu.Lock()
	p.reason = reason
	p.mu.Unlock()
	p.cancel(errKilled)
	for _, c := range p.containers {
		c.kill()
	}
}

// vanish ends a pod that is not in the cluster any more.
func (p *pod) vanish() {
	p.mu.Lock()
	p.markDeleted()
	p.mu.Unlock()
	p.kill("")
}

// graceful says how long a container may take to end, by why it ends.
func (p *pod) graceful(why error) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(why, errDeleted):
		return p.grace
	case errors.Is(why, errDone):
		return time.Duration(*p.object.Spec.TerminationGracePeriodSeconds) * time.Second // the API server sets it
	}
	return 0
}

// run is the pod's life.
func (p *pod) run() {
	p.node.work.Go(p.publish)
	p.update(p.object) // it may come to the kubelet being deleted
	p.node.assign(p)
	p.changed()
	p.live()
	p.node.release(p)
	if p.ctx.Err() == nil {
		<-p.ctx.Done() // it has come to its end by itself, and stays until it is deleted
	}
	_ = os.RemoveAll(p.dir) // goes with the node at the latest
	if p.waitDeleted() {
		p.changed()
		close(p.published)
	}
}

// live runs the containers until all have ended.
func (p *pod) live() {
	mounts := p.mountAll()
	if mounts == nil {
		return
	}
	p.mu.Lock()
	p.pending = "PodInitializing"
	p.mu.Unlock()
	var beside, running sync.WaitGroup
	defer beside.Wait()
	defer p.endSidecars()
	for _, c := range p.containers {
		c.mounts = mounts
		switch {
		case !c.init:
		case c.sidecar():
			beside.Go(func() { c.run() })
			eventually(c.ctx, 1<<62, c.begun)
		case !c.run():
			return
		}
	}
	p.mu.Lock()
	p.pending = "ContainerCreating"
	p.mu.Unlock()
	for _, c := range p.containers {
		if !c.init {
			running.Go(func() { c.run() })
		}
	}
	running.Wait()
}

// endSidecars ends what runs beside the containers, which have ended.
func (p *pod) endSidecars() {
	for _, c := range p.containers {
		if c.sidecar() {
			c.cancel(errDone)
		}
	}
}

// waitDeleted waits until an ended pod is deleted; false: its machine ends before that.
func (p *pod) waitDeleted() bool {
	select {
	case <-p.over:
		return true
	case <-p.node.ctx.Done():
		return false
	}
}

// mountAll prepares what the volumes are, and tries again until it is there; nil: the pod ends
// before that.
func (p *pod) mountAll() map[string]string {
	told := ""
	var mounts map[string]string
	eventually(p.ctx, 1<<62, func() bool {
		m, err := p.mount()
		if err == nil {
			mounts = m
			return true
		}
		p.wait(err)
		if text := err.Error(); text != told {
			told = text
			p.node.say(p.object, corev1.EventTypeWarning, "FailedMount", "%s", text)
		}
		return false
	})
	return mounts
}

// wait shows why no container has begun.
func (p *pod) wait(err error) {
	reason, message := "ContainerCreating", ""
	if e, ok := errors.AsType[*waitError](err); ok {
		reason, message = e.reason, e.message
	}
	p.mu.Lock()
	p.pending, p.message = reason, message
	p.mu.Unlock()
	p.changed()
}

// waitError is why a container cannot begin yet.
type waitError struct{ reason, message string }

func (e *waitError) Error() string { return e.message }

func (p *pod) container(name string) *container {
	i := slices.IndexFunc(p.containers, func(c *container) bool { return c.spec.Name == name })
	if i < 0 {
		return nil
	}
	return p.containers[i]
}

// changed has the status written.
func (p *pod) changed() {
	select {
	case p.dirty <- struct{}{}:
	default: // it will be written anyway
	}
}

// publish writes the status whenever it changes, until the pod is deleted and has ended: then it
// says so.
func (p *pod) publish() {
	last := false
	for !last {
		select {
		case <-p.dirty:
		case <-p.published:
			last = true
		case <-p.node.ctx.Done():
			return
		}
		if !eventually(p.node.ctx, soon, p.tell) {
			return
		}
	}
	if p.node.isSilent() {
		return
	}
	api, o := p.node.c.plane.api, p.object
	eventually(p.node.ctx, soon, func() bool {
		err := api.in(podKind, o.Namespace).Delete(p.node.ctx, o.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &o.UID},
		})
		return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err)
	})
}

// tell writes the status; true: there is nothing more to try.
func (p *pod) tell() bool {
	if p.node.isSilent() {
		return true
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.object.UID}, "status": p.status()})
	if err != nil {
		return true // cannot be: it is a status
	}
	_, err = p.node.c.plane.api.in(podKind, p.object.Namespace).Patch(p.node.ctx, p.object.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{FieldManager: "kubelet"}, "status")
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}
