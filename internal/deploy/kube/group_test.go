package kube_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/kubetest"
)

// spread is a replica over two machines: one serves, the other works for it.
func spread(t *testing.T, worker deploytest.Behaviour) deploy.Spec {
	t.Helper()
	s := deploytest.Spec(t, deploytest.Ready)
	w := deploytest.Beside(t, s.Dir, "rank1", worker)
	s.Replicas[0].Node, w.Node = "a", "b"
	s.Replicas[0].Env = append(s.Replicas[0].Env, "OWN={addr:a}")
	w.Env = append(w.Env, "HEAD={addr:a}")
	s.Replicas[0].Peers = []deploy.Peer{w}
	s.Timeout *= 2
	return s
}

// TestSeveralMachines: a replica over machines is a LeaderWorkerSet, the log of each pod is kept, and
// either's end is the replica's.
func TestSeveralMachines(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.Cluster.Node(t, "node-2", kubetest.Resources{"nvidia.com/gpu": "8"})
	s := spread(t, deploytest.Worker)
	d := deploytest.Start(t, p.runtime(t), s)
	if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
		t.Errorf("target answers %d", status)
	}
	pods := p.pods(t)
	if len(pods) != 2 {
		t.Fatalf("pods %v, want two", pods)
	}
	awaitText(t, filepath.Join(s.Dir, "replica-0.worker-1.log"), deploytest.WorkerLine)
	for _, n := range pods {
		if strings.HasSuffix(n, "-1") {
			p.deletePod(t, n)
		}
	}
	select {
	case <-d.Done():
	case <-time.After(time.Minute):
		t.Fatal("the end of a worker goes unnoticed")
	}
	e, ok := errors.AsType[*deploy.DiedError](d.Err())
	if !ok || !strings.Contains(e.Status, "worker-1: its pod was deleted") {
		t.Errorf("Err is %v", d.Err())
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	deploytest.NothingLeft(t, s, 2)
}

// TestWorkerRefuses: the reason that a worker gives counts.
func TestWorkerRefuses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := spread(t, deploytest.Refuse)
	s.Replicas[0].Env[0] = strings.Replace(s.Replicas[0].Env[0], string(deploytest.Ready), string(deploytest.Never), 1)
	_, err := p.runtime(t).Start(t.Context(), s)
	e, ok := errors.AsType[*deploy.RefusedError](err)
	if !ok || e.Reason != deploytest.RefusalLine {
		t.Errorf("start: %v, want a refusal", err)
	}
}

// awaitText waits for a text in a file.
func awaitText(t *testing.T, path, text string) {
	t.Helper()
	var b []byte
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if b, _ = os.ReadFile(path); strings.Contains(string(b), text) {
			return
		}
	}
	t.Fatalf("%s lacks %q:\n%s", path, text, b)
}
