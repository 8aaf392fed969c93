package kube_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/deploy/kube"
	"perflab/internal/test/deploytest"
)

// TestCommand runs commands in a pod of the image, and in that of a running engine.
func TestCommand(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := p.runtime(t)
	d := deploytest.Start(t, r, deploytest.Spec(t, deploytest.Ready))
	for name, c := range map[string]deploy.Commander{"runtime": r, "deployment": d.(deploy.Commander)} {
		if nodes := c.Nodes(); !slices.Equal(nodes, []string{""}) {
			t.Errorf("%s: nodes %q", name, nodes)
		}
		var out bytes.Buffer
		if err := c.Command(t.Context(), "", []string{"sh", "-c", "echo here; echo aside >&2"}, &out); err != nil || out.String() != "here\n" {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
		err := c.Command(t.Context(), "", []string{"sh", "-c", "echo no such flag >&2; exit 3"}, nil)
		if e, ok := errors.AsType[*deploy.ExitError](err); !ok || e.Code != 3 || !strings.Contains(e.Stderr, "no such flag") {
			t.Errorf("%s: %v, want status 3", name, err)
		}
		err = c.Command(t.Context(), "", []string{"perflab-no-such-program"}, nil)
		if e, ok := errors.AsType[*deploy.InfraError](err); !ok || !errors.Is(err, exec.ErrNotFound) || !strings.Contains(e.Hint(), "is not on PATH") {
			t.Errorf("%s: %T %v, want a missing program", name, err, err)
		}
		if err := c.Command(t.Context(), "node-7", []string{"true"}, nil); err == nil || !strings.Contains(err.Error(), "node-7") {
			t.Errorf("%s: %v of a node by name", name, err)
		}
	}
}

// TestForward reaches an engine through the API server, says so, and leaves nothing listening.
func TestForward(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := p.runtime(t, func(s *kube.Settings) { s.Reach = kube.ReachForward })
	d := deploytest.Start(t, r, deploytest.Spec(t, deploytest.Ready))
	for range 3 {
		if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
			t.Errorf("target answers %d", status)
		}
	}
	if places := d.(kube.Placed).Places(t.Context()); len(places) != 1 || !places[0].Forward {
		t.Errorf("places %+v, want one that is forwarded", places)
	}
	p.Away(t)()
	if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 200 {
		t.Errorf("target answers %d once the API server is back", status)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if status := deploytest.Get(t.Context(), d.Targets()[0]+"/health"); status != 0 {
		t.Errorf("target answers %d after the stop", status)
	}
}

// TestEvidence keeps the pods as they were, their events, and where they ran, without a secret.
func TestEvidence(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const hidden = "hf_abcdefghijklmnopqrstuvwxyz012345"
	p.make(t, "secrets", map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "hub"}, "stringData": map[string]any{"token": hidden}})
	r := p.runtime(t, func(s *kube.Settings) { s.Secrets = map[string]string{"HF_TOKEN": "hub/token"} })
	s := deploytest.Spec(t, deploytest.Ready)
	m := &s.Replicas[0].Member
	m.Argv = append([]string{"/bin/sh", "-c", `echo "the token is $HF_TOKEN"; exec "$@"`, "sh"}, m.Argv...)
	if image, ok := r.Resolved(); ok {
		t.Errorf("image %q before the start", image)
	}
	d := deploytest.Start(t, r, s)
	if got, ok := r.Resolved(); !ok || got != "registry.example/engines/fake@"+p.Digest(image) {
		t.Errorf("image %q", got)
	}
	places := d.(kube.Placed).Places(t.Context())
	if len(places) != 1 || places[0].Node != p.Name || places[0].UID == "" || places[0].Forward || !strings.Contains(places[0].Image, p.Digest(image)) {
		t.Errorf("places %+v", places)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	pod, events := read(t, s, "replica-0.pod.yaml"), read(t, s, "replica-0.events.jsonl")
	for _, want := range []string{"nodeName: " + p.Name, p.Digest(image), "secretKeyRef", "startedAt"} {
		if !strings.Contains(pod, want) {
			t.Errorf("the pod lacks %q:\n%s", want, pod)
		}
	}
	var reasons []string
	for line := range strings.Lines(events) {
		var e struct {
			Time   time.Time
			Reason string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Time.IsZero() {
			t.Fatalf("event %q: %v", line, err)
		}
		reasons = append(reasons, e.Reason)
	}
	for _, want := range []string{"ScalingReplicaSet", "Scheduled", "Pulled", "Started"} {
		if !slices.Contains(reasons, want) {
			t.Errorf("events %q lack %s", reasons, want)
		}
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() && strings.Contains(read(t, s, e.Name()), hidden) {
			t.Errorf("%s has the secret", e.Name())
		}
	}
}

func read(t *testing.T, s deploy.Spec, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestQueue: the time in a queue is told, and is none of a start's.
func TestQueue(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	q := p.Queue(t, p.namespace, "team")
	r := p.runtime(t, func(s *kube.Settings) { s.Queue = "team" })
	told := make(chan string, 1000)
	r.Progress = func(text string) { told <- text }
	s := deploytest.Spec(t, deploytest.Ready)
	s.Timeout = 3 * time.Second
	admitted := make(chan struct{})
	go func() {
		defer close(admitted)
		for text := range told {
			if strings.Contains(text, "waits in the queue team") {
				time.AfterFunc(4*time.Second, func() { q.Admit(t) })
				return
			}
		}
	}()
	d, err := r.Start(t.Context(), s)
	close(told)
	<-admitted
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestQueuePreempts: a queue that takes the place of an engine back has ended it.
func TestQueuePreempts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	q := p.Queue(t, p.namespace, "team")
	q.Admit(t)
	d := deploytest.Start(t, p.runtime(t, func(s *kube.Settings) { s.Queue = "team" }), deploytest.Spec(t, deploytest.Ready))
	q.Preempt(t)
	select {
	case <-d.Done():
	case <-time.After(time.Minute):
		t.Fatal("the end goes unnoticed")
	}
	e, ok := errors.AsType[*deploy.DiedError](d.Err())
	if !ok || !strings.Contains(e.Status, "the queue took its place back (Preempted to accommodate") || !strings.Contains(e.Hint(), "start again when it is free") {
		t.Errorf("Err is %v", d.Err())
	}
}

// hub is an image whose client of the hub writes what it is asked for.
const hub = `#!/bin/sh
echo "downloading $2 with $HF_TOKEN"
case $2 in
gated/*) echo "Cannot access gated repo: 401 Client Error" >&2; exit 1 ;;
esac
mkdir -p "$HF_HOME" && echo "$2" >> "$HF_HOME/models"
`

// TestDownload: a model is downloaded into the claim once, before the first start, and what the hub
// refuses is said.
func TestDownload(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "hf"), []byte(hub), 0o755); err != nil {
		t.Fatal(err)
	}
	p.Claim(t, p.namespace, "models", dir)
	settings := func(s *kube.Settings) { s.Mounts = []string{"claim:models:/cache"} }
	s := deploytest.Spec(t, deploytest.Ready)
	s.Replicas[0].Env = append(s.Replicas[0].Env, "HF_HOME=/cache/hub", "PATH="+bin+":"+os.Getenv("PATH"))
	r := p.runtime(t, settings)
	r.Model = "org/model"
	for range 2 {
		if err := deploytest.Start(t, r, s).Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "hub", "models"))
	if err != nil || string(b) != "org/model\n" {
		t.Errorf("the claim has %q (%v), want the model once", b, err)
	}
	if text := read(t, s, "download.log"); !strings.Contains(text, "downloading org/model") {
		t.Errorf("the log of the download is %q", text)
	}
	gated := p.runtime(t, settings)
	gated.Model = "gated/model"
	_, err = gated.Start(t.Context(), s)
	if e, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(e.Error(), "401 Client Error") || !strings.Contains(e.Hint(), "licence") {
		t.Errorf("start: %v", err)
	}
	none := p.runtime(t, settings)
	none.Model, none.Settings.Download = "gated/model", kube.DownloadNone
	if err := deploytest.Start(t, none, s).Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
