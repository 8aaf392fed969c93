package kube_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"perflab/internal/deploy"
	"perflab/internal/deploy/kube"
	"perflab/internal/test/kubetest"
)

// fakeAgent puts a program called perflab before all others: it notes how it was called and what its
// invitation says, each in a file, and does what the script says.
func fakeAgent(t *testing.T, script string) (notes string) {
	t.Helper()
	bin, notes := t.TempDir(), t.TempDir()
	text := "#!/bin/sh\ncd " + notes + "\nfor a; do case $a in */join/*) cat \"$a\" > $3.join 2>/dev/null;; esac; done\necho \"$*\" > part.$3 && mv part.$3 $3.args\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(bin, "perflab"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return notes
}

// notesOf waits for so many files, and gives what they hold, by their names.
func notesOf(t *testing.T, n int, glob string) (out []string) {
	t.Helper()
	var files []string
	for end := time.Now().Add(soon); len(files) < n && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var err error
		if files, err = filepath.Glob(glob); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSpace(string(b)))
	}
	return out
}

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// TestAgents: each agent has a name of its own and its own invitation, whose value is in the Secret alone; nothing stays.
func TestAgents(t *testing.T) {
	p := newPlace(t)
	p.Cluster.Node(t, "node-2", nil)
	notes := fakeAgent(t, "exec sleep 600")
	s := p.runtime(t).Settings
	urls := []string{"perflab://hub:7422/#a", "perflab://hub:7422/#b", "perflab://hub:7422/#c"}
	l, err := kube.StartAgents(t.Context(), s, kube.Agents{Number: 3, Image: "registry.example/perflab:v1", CPU: "1", Memory: "64Mi"}, kube.Joining{URLs: urls}, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	job, err := p.Client().Resource(jobs).Namespace(p.namespace).Get(t.Context(), l.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := job.MarshalJSON(); err != nil || strings.Contains(string(text), "perflab://") {
		t.Errorf("the Job has an invitation: %v\n%s", err, text)
	}
	calls := notesOf(t, 3, notes+"/*.args")
	for i, call := range calls {
		if !strings.HasPrefix(call, "agent --name "+l.Name()+"-"+strconv.Itoa(i)+"-") || !strings.Contains(call, " --label job="+l.Name()+" ") || strings.Contains(call, "perflab://") {
			t.Errorf("agent %d was called as perflab %s", i, call)
		}
	}
	if joins := notesOf(t, 3, notes+"/*.join"); len(calls) != 3 || !slices.Equal(joins, urls) {
		t.Errorf("%d agents were called, with the invitations %q", len(calls), joins)
	}
	if err := l.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if left := p.Left(t, p.namespace, soon); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// TestAgentsOutside: an outside server is joined by keys that somebody has put into a Secret.
func TestAgentsOutside(t *testing.T) {
	p := newPlace(t)
	notes := fakeAgent(t, "exec sleep 600")
	p.secret(t, "keys", map[string]string{"agent-0.nk": "S0", "agent-1.nk": "S1", "ca.crt": "C"})
	l, err := kube.StartAgents(t.Context(), p.runtime(t).Settings, kube.Agents{Number: 2, Image: "registry.example/perflab:v1", Keys: "keys", CPU: "1", Memory: "64Mi"}, kube.Joining{Server: "tls://nats:4222"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, call := range notesOf(t, 2, notes+"/*.args") {
		if !strings.Contains(call, "--hub tls://nats:4222 --hub-seed ") || !strings.Contains(call, "/agent-"+strconv.Itoa(i)+".nk --hub-ca ") {
			t.Errorf("agent %d was called as perflab %s", i, call)
		}
	}
	if err := l.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAgentsFail: what keeps agents from running is said, and nothing stays.
func TestAgentsFail(t *testing.T) {
	p := newPlace(t)
	one := kube.Agents{Number: 1, Image: "registry.example/perflab:v2", CPU: "1", Memory: "64Mi"}
	lacking := kube.Agents{Number: 1, Image: "registry.example/lacking:v1", CPU: "1", Memory: "64Mi"}
	for name, c := range map[string]struct {
		agents kube.Agents
		script string
		before func(p place)
		want   []string
	}{
		"none":          {kube.Agents{Image: "i"}, "", nil, []string{"agents: 0 must be from 1 to 1000"}},
		"no image":      {kube.Agents{Number: 1}, "", nil, []string{"image: name an image that has perflab"}},
		"it ends":       {one, "echo another version of perflab; exit 1", nil, []string{"has ended: another version of perflab"}},
		"no such image": {lacking, "", func(p place) { p.Image("registry.example/lacking:v1", kubetest.Image{Pull: refusedPull}) }, []string{"manifest unknown"}},
		"too large":     {kube.Agents{Number: 1, Image: "registry.example/perflab:v2", CPU: "4000"}, "", nil, []string{"0 of 1 pods run after 1s", "Insufficient cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			fakeAgent(t, c.script)
			if c.before != nil {
				c.before(p)
			}
			s := p.runtime(t).Settings
			s.PendingS = 60
			if name == "too large" {
				s.PendingS = 1
			}
			l, err := kube.StartAgents(t.Context(), s, c.agents, kube.Joining{URLs: []string{"perflab://secret"}}, nil)
			for err == nil { // its pod was seen to run
				err = l.Ended(t.Context())
			}
			if l != nil {
				if err := l.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			}
			infra, ok := errors.AsType[*deploy.InfraError](err)
			if !ok || infra.Hint() == "" {
				t.Fatalf("%T %v", err, err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			if left := p.Left(t, p.namespace, soon); len(left) > 0 {
				t.Errorf("left are %q", left)
			}
		})
	}
}

// soon is enough for what should take a moment.
const soon = 20 * time.Second

func refusedPull(context.Context) error { return errors.New("manifest unknown") }

// secret is one of the user's own.
func (p place) secret(t *testing.T, name string, data map[string]string) {
	t.Helper()
	values := map[string]any{}
	for key, value := range data {
		values[key] = value
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "stringData": values}}
	if _, err := p.Client().Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(p.namespace).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
