package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/dockertest"
)

// node is an engine with a container that runs already.
func node(t *testing.T) (e *dockertest.Engine, id string) {
	e = dockertest.Start(t, dockertest.Image{Ref: ref})
	return e, e.Run("node", ref, []string{"sleep", "60"}, nil)
}

// alone waits until the container has no process but its own.
func alone(t *testing.T, e *dockertest.Engine) {
	t.Helper()
	var pids []int
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if pids = only(t, e).PIDs; len(pids) == 1 {
			return
		}
	}
	t.Errorf("processes %v are left in the container", pids)
}

// keepers are directories that keepers have made and not removed.
func keepers(t *testing.T, tmp string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(tmp, "perflab-keeper.*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAttachedLeavesNothing(t *testing.T) {
	t.Parallel()
	e, id := node(t)
	tmp := t.TempDir()
	s := deploytest.Spec(t, deploytest.Forking)
	s.Replicas[0].Files = []deploy.File{{Name: "extra.yaml", Text: "a: b\n"}}
	r := quick(e, docker.Settings{Container: "node", Env: []string{"TMPDIR=" + tmp, "API_KEY=hunter2-hunter2"}, WorkDir: tmp, Entrypoint: []string{"env"}})
	d := deploytest.Start(t, r, s)
	if c := only(t, e); len(c.PIDs) < 3 {
		t.Errorf("processes %v, want the engine and its child", c.PIDs)
	}
	if got := keepers(t, tmp); len(got) != 1 {
		t.Errorf("keepers %q", got)
	}
	if image, ok := r.Resolved(); !ok || image != e.Digest(ref) {
		t.Errorf("resolved to %q", image)
	}
	b, err := os.ReadFile(filepath.Join(s.Dir, "processes.json"))
	if err != nil || !strings.Contains(string(b), `"container": "`+id+`"`) || strings.Contains(string(b), "hunter2") {
		t.Errorf("record %s, %v", b, err)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	deploytest.NothingLeft(t, s, 2)
	alone(t, e)
	if got := keepers(t, tmp); len(got) != 0 {
		t.Errorf("left are %q", got)
	}
	if c := only(t, e); c.ID != id || !c.Running {
		t.Errorf("the container is %+v", c)
	}
}

// When perflab is killed, its connection ends, and the keeper ends the engine.
func TestAttachedKilledPerflab(t *testing.T) {
	t.Parallel()
	e, _ := node(t)
	tmp := t.TempDir()
	s := deploytest.Spec(t, deploytest.Forking)
	r := quick(e, docker.Settings{Container: "node", Env: []string{"TMPDIR=" + tmp}})
	killOwner(t, r.Settings, s)
	alone(t, e)
	if ended, err := r.Sweep(t.Context(), s.Dir); err != nil || len(ended) != 0 {
		t.Errorf("sweep ends %q, %v", ended, err)
	}
	deploytest.NothingLeft(t, s, 2)
	if got := keepers(t, tmp); len(got) != 0 {
		t.Errorf("left are %q", got)
	}
}

func TestAttachedLosesTheConnection(t *testing.T) {
	t.Parallel()
	e, _ := node(t)
	s := deploytest.Spec(t, deploytest.Ready)
	d := deploytest.Start(t, quick(e, docker.Settings{Container: "node"}), s)
	e.Restart()
	if got := died(t, d); !strings.Contains(got.Status, "connection to the container node lost") {
		t.Errorf("status %q", got.Status)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	deploytest.NothingLeft(t, s, 1)
	alone(t, e)
}

func TestAttachedContainerEnds(t *testing.T) {
	t.Parallel()
	e, id := node(t)
	s := deploytest.Spec(t, deploytest.Ready)
	r := quick(e, docker.Settings{Container: "node", Env: []string{"TMPDIR=" + t.TempDir()}})
	d := deploytest.Start(t, r, s)
	e.RunOutOfMemory(id)
	died(t, d)
	_ = d.Stop(t.Context()) // it may say that the container is out of reach
	deploytest.NothingLeft(t, s, 1)
	for only(t, e).Running {
		time.Sleep(time.Millisecond)
	}
	for name, want := range map[string]string{"node": "does not run", "other": "No such container"} {
		_, err := quick(e, docker.Settings{Container: name}).Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("container %s: %v", name, err)
		}
	}
}

// A container that a perflab was killed in and that does not run has nothing to end.
func TestAttachedSweepOfAnEndedContainer(t *testing.T) {
	t.Parallel()
	e, id := node(t)
	s := deploytest.Spec(t, deploytest.Ready)
	r := quick(e, docker.Settings{Container: "node", Env: []string{"TMPDIR=" + t.TempDir()}})
	killOwner(t, r.Settings, s)
	e.RunOutOfMemory(id)
	for only(t, e).Running {
		time.Sleep(time.Millisecond)
	}
	if ended, err := r.Sweep(t.Context(), s.Dir); err != nil || len(ended) != 0 {
		t.Errorf("sweep ends %q, %v", ended, err)
	}
}
