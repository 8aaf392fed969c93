package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"perflab/internal/deploy"
)

// process is a container of a replica's pod that was let begin, or the leader of a replica of several pods.
type process struct {
	*launch
	group     *group
	pod       types.UID
	podName   string
	container string
	dir       string
	exited    chan struct{} // closed with end set, and the log complete
	end       outcome
	reach     reach

	stop  context.CancelFunc
	watch sync.WaitGroup
}

var (
	_ deploy.Running   = (*process)(nil)
	_ deploy.Explained = (*process)(nil)
	_ deploy.Forwarder = (*process)(nil)
)

// logDrain is how long an ended container's log may take to be here.
const logDrain = 10 * time.Second

// begin follows the container and its log, which is closed when it has ended.
func (p *process) begin(log *os.File) {
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	p.watch.Go(func() { p.run(ctx, log) })
}

func (p *process) run(ctx context.Context, log *os.File) {
	defer close(p.exited)
	defer log.Close()
	own := &follower{launch: p.launch, pod: p.podName, uid: p.pod, container: p.container, to: log, file: log}
	own.start(ctx)
	workers := p.followWorkers(ctx)
	ended, end := p.awaitEnd(ctx)
	if end.deleted && !p.removed.Load() {
		end = p.deletion(ctx, end)
	}
	p.end = end
	own.finish()
	for uid, w := range workers {
		w.finish()
		if uid == ended {
			p.end.status = fmt.Sprintf("%s: %s", w.name, end.status)
			w.quote(log)
		}
	}
}

// awaitEnd returns how the replica ended, and by which of its pods.
func (p *process) awaitEnd(ctx context.Context) (types.UID, outcome) {
	slow := time.NewTicker(lookEvery) // for a node that says nothing any more
	defer slow.Stop()
	for {
		pods, changed, _ := p.view.all()
		for _, other := range pods {
			container := p.container
			if other.UID != p.pod {
				if p.group.size == 1 || other.Labels[labelApp] != p.group.name {
					continue
				}
				container = engineContainer
			}
			if end, over := outcomeOf(other, container); over {
				return other.UID, end
			}
		}
		select {
		case <-ctx.Done():
			return p.pod, outcome{status: "status unknown", code: -1}
		case <-changed:
		case <-slow.C:
		}
	}
}

// deletion says what was deleted when a pod was: it alone, all of the deployment, or the namespace.
func (p *process) deletion(ctx context.Context, end outcome) outcome {
	ctx, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	if _, err := p.clock(ctx); apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		end.status = "the namespace " + p.namespace + " was deleted; " + end.status
		end.why.Help = "choose a namespace that nobody deletes while a study runs"
		return end
	}
	lease, err := p.of(leaseKind).Get(ctx, p.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && lease.GetDeletionTimestamp() != nil {
		end.status = "the Lease " + p.name + " that owns its pod was deleted; " + end.status
		end.why.Help = "somebody removed the deployment (perflab kube clean), or another perflab held it for left behind, since it was not renewed for " + (leaseTime + leaseSlack).String()
	}
	return end
}

// followWorkers follows the logs of a replica's other pods.
func (p *process) followWorkers(ctx context.Context) map[types.UID]*worker {
	out := map[types.UID]*worker{}
	if p.group.size == 1 {
		return out
	}
	pods, _, _ := p.view.all()
	for _, other := range p.group.current(pods) {
		if other.UID == p.pod {
			continue
		}
		name := "worker-" + other.Labels[labelWorker]
		f, err := os.OpenFile(filepath.Join(p.dir, fmt.Sprintf("replica-%d.%s.log", p.group.replica, name)), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			p.host.tell("the log of " + name + " is not kept: " + err.Error())
			continue
		}
		w := &worker{name: name}
		w.follower = &follower{launch: p.launch, pod: other.Name, uid: other.UID, container: engineContainer, to: &w.masked, file: f}
		w.masked.to = f
		w.start(ctx)
		out[other.UID] = w
	}
	return out
}

func (p *process) Exited() <-chan struct{} { return p.exited }

// Status is "exit status 1".
func (p *process) Status() (string, int) { return p.end.status, p.end.code }

// Explain says why the container ended, where the cluster knows more than its status.
func (p *process) Explain() deploy.End { return p.end.why }

// Record leads to the owner of all objects.
func (p *process) Record() deploy.Record {
	return deploy.Record{ID: p.namespace + "/" + p.name, Engine: p.config.Host}
}

// Stop removes the deployment's objects, and waits until its pods are gone.
func (p *process) Stop(_ time.Duration, hurry <-chan struct{}) error {
	err := p.launch.end(hurry)
	if err != nil {
		p.stop() // nobody will say how it ended
	}
	<-p.exited
	p.leave()
	return err
}

// leave follows the container no further.
func (p *process) leave() {
	p.stop()
	p.watch.Wait()
	p.reach.close()
}
