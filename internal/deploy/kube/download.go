package kube

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"perflab/internal/deploy"
)

// cacheClaim is the claim that keeps the files of downloaded models, "" where none is mounted there
// to be written to.
func (s Settings) cacheClaim(env []string) string {
	dir := deploy.HubCache(env)
	for _, m := range s.Mounts {
		rest, ok := strings.CutPrefix(m, "claim:")
		name, target, _ := strings.Cut(rest, ":")
		if !ok || strings.HasSuffix(target, ":ro") {
			continue
		}
		target = path.Clean(target)
		if target == dir || strings.HasPrefix(dir, target+"/") || target == dir+"/hub" {
			return name
		}
	}
	return ""
}

// fetcher downloads a model with whatever of the hub's clients the image has.
const fetcher = `if command -v hf >/dev/null 2>&1; then exec hf download "$0"; fi
if command -v huggingface-cli >/dev/null 2>&1; then exec huggingface-cli download "$0"; fi
exec python3 -c 'import sys; from huggingface_hub import snapshot_download; snapshot_download(sys.argv[1])' "$0"`

// download has the model in the claim before the first start: engines that download it, each for
// itself, are recreated over and over where one of them is late. That takes none of the time of a start.
func (r *Runtime) download(ctx context.Context, op string, c *cluster, s deploy.Spec) error {
	if len(s.Replicas) == 0 || r.Settings.Download == DownloadNone || r.Model == "" || deploy.IsPath(r.Model) {
		return nil
	}
	claim := r.Settings.cacheClaim(s.Replicas[0].Env)
	r.mu.Lock()
	done := r.downloaded[r.Model]
	r.mu.Unlock()
	if claim == "" || done {
		return nil
	}
	op += ": download " + r.Model + " into the claim " + claim
	h := r.host(c)
	h.spec = command([]string{"sh", "-c", fetcher, r.Model}, s.Replicas[0].Env)
	h.tell(r.Model + " is being downloaded into the claim " + claim)
	if err := h.job(ctx, op, filepath.Join(s.Dir, "download.log")); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.downloaded == nil {
		r.downloaded = map[string]bool{}
	}
	r.downloaded[r.Model] = true
	return nil
}

// jobTries is how often a Job that fails is tried again: registries and hubs have bad moments.
const jobTries = 2

// jobOf makes of a pod that was made for a command a Job that runs it.
func jobOf(name string, pod map[string]any) map[string]any {
	delete(mapping(pod, "metadata"), "name")
	delete(mapping(pod, "spec"), "activeDeadlineSeconds")
	return map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"backoffLimit": int64(jobTries), "completions": int64(1), "parallelism": int64(1), "ttlSecondsAfterFinished": int64(600),
			"template": map[string]any{"metadata": pod["metadata"], "spec": pod["spec"]},
		},
	}
}

// job runs the deployment's command as a Job, and keeps its log.
func (h *host) job(ctx context.Context, op, logPath string) (err error) {
	h.plan.Marker = "=" + rand.Text()
	l := &launch{host: h, op: op, view: newView()}
	if l.owner, err = h.own(ctx, ownerName(h.plan.Marker), holder()); err != nil {
		return orCause(ctx, h.explain(op+": create a Lease", err))
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	l.follow.Go(func() { l.owner.follow(watching, l.view) })
	defer func() { err = errors.Join(err, l.end(nil)) }()
	pod, err := h.commandPod(l.name)
	if err != nil {
		return &deploy.InfraError{Op: op, Err: err, Lasting: true}
	}
	job := jobOf(l.name, pod)
	l.adopt(job)
	if _, err := l.owner.apply(ctx, job); err != nil {
		return orCause(ctx, l.explain(op+": apply the Job "+l.name, err))
	}
	if err := os.MkdirAll(filepath.Dir(logPath), 0o755); err != nil {
		return &deploy.InfraError{Op: op, Err: err, Help: "choose an output directory that can be written to"}
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return &deploy.InfraError{Op: op, Err: err, Help: "choose an output directory that can be written to"}
	}
	defer log.Close()
	for {
		w := &worker{masked: maskedLines{to: log}}
		done, err := l.attempt(ctx, w, log)
		if err != nil {
			return orCause(ctx, err)
		}
		if done {
			return nil
		}
		failure, sure := l.jobError(w, logPath)
		if sure {
			return failure
		}
		failed, err := l.jobFailed(ctx)
		if err != nil {
			return orCause(ctx, err)
		}
		if failed {
			return failure
		}
	}
}

// attempt follows one pod of the Job to its end; done: it ended well.
func (l *launch) attempt(ctx context.Context, w *worker, log *os.File) (done bool, err error) {
	g := &group{name: l.name + "-0", kind: jobKind, size: 1}
	pod, err := l.await(ctx, g)
	if err != nil {
		return false, err
	}
	w.follower = &follower{launch: l, pod: pod.Name, uid: pod.UID, container: engineContainer, to: &w.masked, file: log}
	w.start(ctx)
	p := &process{launch: l, group: g, pod: pod.UID, container: engineContainer}
	_, end := p.awaitEnd(ctx)
	w.follower.finish()
	w.masked.flush()
	if cause := context.Cause(ctx); cause != nil {
		return false, cause
	}
	l.view.change(func() { // the next attempt is another pod
		seen := l.view.pods[pod.UID]
		seen.gone = true
		l.view.pods[pod.UID] = seen
	})
	return end.code == 0, nil
}

// jobFailed reports whether the Job has been given up, which it says a moment after its last pod.
func (l *launch) jobFailed(ctx context.Context) (bool, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		var u *unstructured.Unstructured
		err := l.retry(ctx, func(ctx context.Context) (err error) {
			u, err = l.of(jobKind).Get(ctx, l.name, metav1.GetOptions{})
			return err
		})
		if err != nil {
			return false, l.explain(l.op, err)
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if c, _ := c.(map[string]any); c["type"] == "Failed" && c["status"] == "True" {
				return true, nil
			}
		}
		pods, changed, _ := l.view.all()
		for _, p := range pods {
			if !p.gone && p.Status.Phase != "Failed" {
				return false, nil
			}
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-changed:
		case <-time.After(pause):
		}
	}
}

// jobError says why the Job failed, by the end of its log; sure: another try fails too.
func (l *launch) jobError(w *worker, logPath string) (e *deploy.InfraError, sure bool) {
	var last []string
	for line := range strings.Lines(string(w.masked.tail)) {
		if line = strings.TrimSpace(line[strings.LastIndexByte(line, '\r')+1:]); line != "" {
			last = append(last, line)
		}
	}
	last = last[max(0, len(last)-5):]
	e = &deploy.InfraError{Op: l.op, Err: errors.New("it failed and printed nothing"), Help: "read " + logPath, Last: last, Log: logPath, Lasting: true}
	if len(last) > 0 {
		e.Err = fmt.Errorf("it failed; its last line is %q", last[len(last)-1])
	}
	sure = true
	switch text := bytes.ToLower(w.masked.tail); {
	case bytes.Contains(text, []byte("gated")) || bytes.Contains(text, []byte("401")) || bytes.Contains(text, []byte("403")):
		e.Help = "accept the model's licence at the hub, and name a Secret that has a token in secrets, as HF_TOKEN: SECRET/KEY"
	case bytes.Contains(text, []byte("no space left")):
		e.Help = "the claim is full: make it larger, or remove what is not needed"
	case bytes.Contains(text, []byte("not found")) && bytes.Contains(text, []byte("python3")) || bytes.Contains(text, []byte("no module named")):
		e.Help = "the image has no client of the hub: set download: none, and put the model into the claim by hand"
	default:
		sure = false
	}
	return e, sure
}
