package kube_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"perflab/internal/deploy"
	"perflab/internal/deploy/kube"
	"perflab/internal/test/deploytest"
)

// ownerEnv makes the test binary a perflab that starts a deployment in the directory it
// names, says so, and waits to be killed.
const ownerEnv = "PERFLAB_TEST_OWNER"

func own(dir string) {
	time.AfterFunc(2*time.Minute, func() { os.Exit(3) })
	r := &kube.Runtime{Grace: time.Second}
	s := deploy.Spec{Dir: dir}
	for key, v := range map[string]any{"_REPLICAS": &s.Replicas, "_SETTINGS": &r.Settings} {
		if err := json.Unmarshal([]byte(os.Getenv(ownerEnv+key)), v); err != nil {
			panic(err)
		}
	}
	if _, err := r.Start(context.Background(), s); err != nil {
		panic(err)
	}
	os.Stdout.WriteString("started\n")
	select {}
}

// killOwner has another process start the deployment, and kills it.
func killOwner(t *testing.T, settings kube.Settings, s deploy.Spec) {
	t.Helper()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"="+s.Dir)
	for key, v := range map[string]any{"_REPLICAS": s.Replicas, "_SETTINGS": settings} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		owner.Env = append(owner.Env, ownerEnv+key+"="+string(b))
	}
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	owner.Process.Kill()
	owner.Wait()
	if line != "started\n" {
		t.Fatalf("owner says %q (%v)", line, err)
	}
}

// TestKilled: what a perflab that was killed left is removed by the next start in its directory, and
// by a sweep.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := p.runtime(t)
	s := deploytest.Spec(t, deploytest.Ready)
	killOwner(t, r.Settings, s)
	before := p.pods(t)
	if len(before) != 1 {
		t.Fatalf("pods %v are left, want one", before)
	}
	d := deploytest.Start(t, r, s)
	if now := p.pods(t); len(now) != 1 || now[0] == before[0] {
		t.Errorf("pods %v after the start, and %v before", now, before)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	killOwner(t, r.Settings, s)
	ended, err := r.Sweep(t.Context(), s.Dir)
	if err != nil || len(ended) != 1 || !strings.Contains(ended[0], "in the namespace "+p.namespace) {
		t.Errorf("sweep: %q, %v", ended, err)
	}
	if pods := p.pods(t); len(pods) > 0 {
		t.Errorf("pods %v are left", pods)
	}
	deploytest.NothingLeft(t, s, 3)
}

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// TestStale: a start removes what perflabs of other directories left, once their Leases are old, and
// leaves alone what is fresh.
func TestStale(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := p.runtime(t)
	alive := deploytest.Start(t, r, deploytest.Spec(t, deploytest.Ready))
	left := deploytest.Spec(t, deploytest.Ready)
	killOwner(t, r.Settings, left)
	list, err := kube.List(t.Context(), r.Settings)
	if err != nil || len(list) != 2 || list[0].Stale || list[1].Stale || len(list[0].Pods) != 1 {
		t.Fatalf("list: %+v, %v, want two that are fresh", list, err)
	}
	if ended, err := kube.Clean(t.Context(), r.Settings); err != nil || len(ended) > 0 {
		t.Errorf("clean removes %q of what is fresh (%v)", ended, err)
	}
	old := list[0].Name
	if strings.HasSuffix(list[0].Holder, fmt.Sprintf("/%d", os.Getpid())) {
		old = list[1].Name
	}
	p.age(t, old)
	list, err = kube.List(t.Context(), r.Settings)
	for _, d := range list {
		if d.Stale != (d.Name == old) {
			t.Errorf("stale is %v of %+v", d.Stale, d)
		}
	}
	if err != nil || len(list) != 2 {
		t.Errorf("list: %+v, %v", list, err)
	}
	other := deploytest.Start(t, p.runtime(t), deploytest.Spec(t, deploytest.Ready))
	deploytest.NothingLeft(t, left, 1)
	for _, d := range []deploy.Deployment{alive, other} {
		if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
			t.Errorf("a living deployment answers %d", status)
		}
	}
}

// age lets a deployment look as if nobody had renewed it for long.
func (p place) age(t *testing.T, name string) {
	t.Helper()
	old := time.Now().Add(-kube.ExpiredAfter - time.Minute).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	_, err := p.Client().Resource(leases).Namespace(p.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"renewTime":"`+old+`"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestClean removes what is named, whoever has it, and what nobody has any more.
func TestClean(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := p.runtime(t)
	named, left := deploytest.Spec(t, deploytest.Ready), deploytest.Spec(t, deploytest.Ready)
	killOwner(t, r.Settings, named)
	killOwner(t, r.Settings, left)
	list, err := kube.List(t.Context(), r.Settings)
	if err != nil || len(list) != 2 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	if _, err := kube.Clean(t.Context(), r.Settings, "perflab-nothing"); err == nil || !strings.Contains(err.Error(), "there is no deployment perflab-nothing") {
		t.Errorf("clean of nothing: %v", err)
	}
	if ended, err := kube.Clean(t.Context(), r.Settings, list[0].Name); err != nil || len(ended) != 1 {
		t.Errorf("clean: %q, %v", ended, err)
	}
	p.age(t, list[1].Name)
	if ended, err := kube.Clean(t.Context(), r.Settings); err != nil || len(ended) != 1 || ended[0] != list[1].Name {
		t.Errorf("clean: %q, %v", ended, err)
	}
	deploytest.NothingLeft(t, named, 1)
	deploytest.NothingLeft(t, left, 1)
}

// TestAway: an API server that is away disturbs no engine, and all is removed when it is back.
func TestAway(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := p.runtime(t)
	d := deploytest.Start(t, r, deploytest.Spec(t, deploytest.Ready))
	back := p.Away(t)
	const away = 30 * time.Second
	over := time.After(away)
	for served := 0; ; served++ {
		if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
			t.Fatalf("target answers %d while the API server is away", status)
		}
		select {
		case <-d.Done():
			t.Fatalf("the deployment ends: %v", d.Err())
		case <-time.After(100 * time.Millisecond):
			continue
		case <-over:
		}
		break
	}
	stopped := make(chan error, 1)
	go func() { stopped <- d.Stop(context.WithoutCancel(t.Context())) }()
	select {
	case err := <-stopped:
		t.Errorf("stop ends without an API server: %v", err)
	case <-time.After(time.Second):
	}
	back()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestAwayAtTheStart: without an API server a start says where none answers.
func TestAwayAtTheStart(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := p.runtime(t)
	back := p.Away(t)
	defer back()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("interrupted"))
	defer cancel()
	if _, err := r.Start(ctx, deploytest.Spec(t, deploytest.Ready)); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("start: %v, want its interruption while perflab is patient", err)
	}
}

// TestFlaky: an API server that fails every third request changes nothing but the time that things take.
func TestFlaky(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var asked atomic.Int64
	p.FailWith(func(*http.Request) (int, string) {
		if asked.Add(1)%3 == 0 {
			return http.StatusServiceUnavailable, "etcdserver: leader changed"
		}
		return 0, ""
	})
	r := p.runtime(t)
	s := deploytest.Spec(t, deploytest.Ready)
	s.Timeout *= 3
	d := deploytest.Start(t, r, s)
	awaitText(t, filepath.Join(s.Dir, "replica-0.log"), deploytest.Hello) // which may take some tries, and a stop takes the pod
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	deploytest.NothingLeft(t, s, 1)
	if text := read(t, s, "replica-0.log"); strings.Count(text, deploytest.Hello) != 1 {
		t.Errorf("the log has not each line once:\n%s", text)
	}
}

// TestNoSets: a cluster without LeaderWorkerSet says what it lacks.
func TestNoSets(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.FailWith(func(r *http.Request) (int, string) {
		if strings.HasPrefix(r.URL.Path, "/apis/leaderworkerset.x-k8s.io/") {
			return http.StatusNotFound, "the server could not find the requested resource"
		}
		return 0, ""
	})
	r := p.runtime(t)
	s := spread(t, deploytest.Worker)
	_, err := r.Start(t.Context(), s)
	if e, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(e.Error(), "LeaderWorkerSet") || !strings.Contains(e.Hint(), "install LeaderWorkerSet") || !e.Lasting {
		t.Errorf("start: %v", err)
	}
	findings, err := kube.Check(t.Context(), r.Settings, s)
	if err != nil || findings[len(findings)-1].OK || !strings.Contains(findings[len(findings)-1].Text, "which the cluster lacks") {
		t.Errorf("check: %+v, %v", findings, err)
	}
}
