package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"perflab/internal/deploy"
)

// launch is what one start made in the cluster.
type launch struct {
	*owner
	host   *host
	op     string
	view   *view
	groups []*group
	cancel context.CancelFunc
	follow sync.WaitGroup

	ending sync.Once
	err    error // of its end
}

// group is the pods of one replica.
type group struct {
	replica int
	name    string // of its objects, and the value of the label app of its pods
	kind    schema.GroupVersionResource
	size    int // pods
	gated   bool
}

// labelApp is of all pods of a replica, labelWorker tells those of a LeaderWorkerSet apart.
const (
	labelApp    = "app"
	labelWorker = "leaderworkerset.sigs.k8s.io/worker-index"
)

// current are the replica's pods that are there; of two of which one takes the other's place, the newer.
func (g *group) current(pods []seen) (out []seen) {
	for _, p := range pods {
		if p.gone || p.Labels[labelApp] != g.name {
			continue
		}
		if g.kind != groupKind && len(out) == 1 {
			if out[0].CreationTimestamp.Before(&p.CreationTimestamp) {
				out[0] = p
			}
			continue
		}
		out = append(out, p)
	}
	return out
}

// leads reports whether a pod is the one that serves.
func (g *group) leads(p *corev1.Pod) bool {
	return g.kind != groupKind || p.Labels[labelWorker] == "0"
}

// launchOf begins a launch: its owner, what gone perflabs left, and the objects of all replicas, so that
// they find their nodes and fetch their images side by side.
func (h *host) launchOf(ctx context.Context, op string) (_ *launch, err error) {
	defer h.idle()()
	name := ownerName(h.plan.Marker)
	l := &launch{host: h, op: op, view: newView()}
	if l.owner, err = h.own(ctx, name, holder()); err != nil {
		return nil, h.explain(op+": create the Lease "+name, err)
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	l.follow.Go(func() { l.owner.follow(watching, l.view) })
	defer func() {
		if err != nil {
			err = errors.Join(err, l.end(nil))
		}
	}()
	swept, err := l.sweep(ctx, time.Now().Add(l.ahead))
	for _, what := range swept {
		h.tell("removed what a perflab that is gone left running: " + what)
	}
	if err != nil {
		return nil, h.explain(op+": look for what other perflabs left running", err)
	}
	return l, l.apply(ctx)
}

// holder says in the Lease who runs the deployment.
func holder() string {
	name, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", cmp.Or(name, "perflab"), os.Getpid())
}

// apply makes the objects of all replicas.
func (l *launch) apply(ctx context.Context) error {
	for i := range l.host.spec.Replicas {
		g, objects, err := l.host.objectsOf(l.name, i)
		if err != nil {
			return &deploy.InfraError{Op: l.op, Err: err, Lasting: true}
		}
		l.groups = append(l.groups, g)
		for _, object := range objects {
			l.adopt(object)
			u := unstructured.Unstructured{Object: object}
			l.finish(object)
			if _, err := l.owner.apply(ctx, object); err != nil {
				if cause := context.Cause(ctx); cause != nil {
					return cause
				}
				return l.explain(l.op+": apply the "+u.GetKind()+" "+u.GetName(), err)
			}
		}
	}
	return nil
}

// finish gives pods what only a runtime knows: the time to end, and no right in the cluster.
func (l *launch) finish(object map[string]any) {
	for _, path := range [][]string{
		{"spec", "template", "spec"},
		{"spec", "leaderWorkerTemplate", "leaderTemplate", "spec"}, {"spec", "leaderWorkerTemplate", "workerTemplate", "spec"},
	} {
		if spec, ok, _ := unstructured.NestedMap(object, path...); ok {
			spec["terminationGracePeriodSeconds"] = seconds(l.host.grace)
			if _, asked := spec["serviceAccountName"]; !asked && spec["automountServiceAccountToken"] == nil {
				spec["automountServiceAccountToken"] = false // an engine has no business with the cluster
			}
			_ = unstructured.SetNestedMap(object, spec, path...) // it is there
		}
	}
}

// seconds of a grace; the API knows no parts of them.
func seconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }

// end removes all that the launch made, and waits until its pods are gone: their devices are free
// then. When hurry is closed they get no more time.
func (l *launch) end(hurry <-chan struct{}) error {
	l.ending.Do(func() {
		l.evidence()
		l.err = l.clear(hurry)
		l.cancel()
		l.release()
		l.follow.Wait()
	})
	return l.err
}

func (l *launch) clear(hurry <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.host.grace+l.patience)
	defer cancel()
	var errs []error
	for _, g := range l.groups {
		if err := l.cluster.remove(ctx, g.kind, g.name, nil); err != nil {
			errs = append(errs, err)
			break // where one cannot be removed, the owner takes the others with it
		}
	}
	err := l.cluster.remove(ctx, leaseKind, l.name, nil)
	if err == nil {
		return l.drain(ctx, hurry)
	}
	return l.remains(l.explain("delete the Lease "+l.name, errors.Join(append(errs, err)...)))
}

// drain waits for the end of the pods.
func (l *launch) drain(ctx context.Context, hurry <-chan struct{}) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		left, changed := l.view.left()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-again.C:
			select {
			case <-hurry:
				l.force(ctx, left)
			default:
			}
		case <-hurry:
			hurry = nil
			l.force(ctx, left)
		case <-ctx.Done():
			pods, _ := l.podsOf(context.WithoutCancel(ctx), l.name)
			if len(pods) == 0 {
				return nil
			}
			return l.remains(stuck(pods))
		}
	}
}

// force gives pods the shortest time to end: with none at all the API server would forget them
// while they run on.
func (l *launch) force(ctx context.Context, pods []string) {
	for _, name := range pods {
		_ = l.cluster.remove(ctx, podKind, name, new(int64(1))) // drain sees whether it helps
	}
}

// remains is the error of what could not be removed.
func (l *launch) remains(err error) error {
	e := &deploy.InfraError{Op: "end " + l.describe(l.name), Err: err}
	if infra, ok := errors.AsType[*deploy.InfraError](err); ok {
		e.Err, e.Help = infra.Err, infra.Help+"; "
	}
	e.Help += "perflab kube clean -n " + l.namespace + " removes it later; where a node is gone, kubectl delete pod --force tells the cluster so"
	return e
}

// named is the process that a Job's name means: replica-0, or replica-0.head.
func named(job string) (replica int, peer string, err error) {
	text, peer, _ := strings.Cut(strings.TrimPrefix(job, "replica-"), ".")
	replica, err = strconv.Atoi(text)
	return replica, peer, err
}
