package kube_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	yaml "go.yaml.in/yaml/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"perflab/internal/deploy"
	"perflab/internal/deploy/kube"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/kubetest"
)

// make creates an object as an administrator.
func (p place) make(t *testing.T, resource string, object map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: object}
	kind := u.GroupVersionKind().GroupVersion().WithResource(resource)
	if _, err := p.Client().Resource(kind).Namespace(p.namespace).Create(t.Context(), u, metav1.CreateOptions{FieldManager: "kubetest"}); err != nil {
		t.Fatal(err)
	}
}

// pods are the names of the deployments' pods.
func (p place) pods(t *testing.T) (out []string) {
	t.Helper()
	list, err := p.Client().Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(p.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=perflab"})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range list.Items {
		out = append(out, u.GetName())
	}
	return out
}

// deletePod deletes a pod, as anybody may.
func (p place) deletePod(t *testing.T, name string) {
	t.Helper()
	kind := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	if err := p.Client().Resource(kind).Namespace(p.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// Limits that a busy machine needs to get as far as a test wants it, and a wait that is longer.
const (
	pending = 10 // seconds in which the scheduler has said what it thinks of a pod
	startup = 15 * time.Second
	longer  = startup + time.Second
)

// refusals are starts that cannot come to anything, and what is said of them.
var refusals = []struct {
	name    string
	prepare func(t *testing.T, p place)
	change  func(s *kube.Settings)
	spec    func(s *deploy.Spec)
	says    []string // in the error
	help    string   // in the hint
	lasting bool
}{
	{
		name: "Unschedulable", change: func(s *kube.Settings) { s.PendingS = pending }, spec: func(s *deploy.Spec) { s.Replicas[0].Devices = make([]string, 9) },
		says: []string{"replica 0 has waited", "Insufficient nvidia.com/gpu"}, help: "free a node",
	},
	{
		name: "NoSuchImage", prepare: pulls("not found"),
		says: []string{"ErrImagePull", "not found"}, help: "there is no image " + image, lasting: true,
	},
	{
		name: "PullBackOff", prepare: pulls("connection reset by peer"),
		says: []string{"ImagePullBackOff", "connection reset by peer"}, help: "whether it reaches the registry",
	},
	{
		name: "Login", prepare: func(_ *testing.T, p place) { p.Image(image, kubetest.Image{Login: "user:secret-of-the-registry"}) },
		says: []string{"pull access denied"}, help: "pull_secrets", lasting: true,
	},
	{
		name: "InvalidImageName", change: func(s *kube.Settings) { s.Image = "Registry.Example//no:image" },
		says: []string{"InvalidImageName"}, help: "is no name of one", lasting: true,
	},
	{
		name: "NoSecret", change: func(s *kube.Settings) { s.Secrets = map[string]string{"HF_TOKEN": "hub/token"} },
		says: []string{"CreateContainerConfigError", `"hub"`}, help: "create the Secret", lasting: true,
	},
	{
		name: "NoKeyInSecret", change: func(s *kube.Settings) { s.Secrets = map[string]string{"HF_TOKEN": "hub/token"} },
		prepare: func(t *testing.T, p place) {
			p.make(t, "secrets", map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "hub"}, "stringData": map[string]any{"other": "x"}})
		},
		says: []string{"CreateContainerConfigError", "token"}, help: "or its key", lasting: true,
	},
	{
		name: "SecretInTheCommand", spec: func(s *deploy.Spec) {
			s.Replicas[0].Env = append(s.Replicas[0].Env, "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345")
		},
		says: []string{"HF_TOKEN", "SECRET/KEY"}, lasting: true,
	},
	{
		name: "Quota", prepare: func(t *testing.T, p place) {
			p.make(t, "resourcequotas", map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "none"}, "spec": map[string]any{"hard": map[string]any{"pods": "0"}}})
		},
		says: []string{"exceeded quota"}, help: "quota of the namespace",
	},
	{
		name: "Webhook", prepare: func(t *testing.T, p place) {
			p.Refuse(t, p.namespace, func(object map[string]any) string {
				if object["kind"] == "Pod" {
					return "pods need the label cost-centre"
				}
				return ""
			})
		},
		says: []string{"pods need the label cost-centre"}, help: "webhook", lasting: true,
	},
	{
		name: "MissingClaim", change: func(s *kube.Settings) { s.Mounts = []string{"claim:models:/models"} },
		says: []string{`"models"`, "not found"}, help: "create the PersistentVolumeClaim models", lasting: true,
	},
	{
		name: "MissingProgramOfAPath", spec: func(s *deploy.Spec) { s.Replicas[0].Argv[0] = "/opt/no-such-engine" },
		says: []string{"StartError"}, help: "/opt/no-such-engine does not exist in the image", lasting: true,
	},
	{
		name: "NamespaceMissing", change: func(s *kube.Settings) { s.Namespace = "no-such-namespace" },
		says: []string{`"no-such-namespace" not found`}, help: "kubectl create namespace", lasting: true,
	},
}

// TestKubeconfigs: what is wrong with a kubeconfig is said at once, and where.
func TestKubeconfigs(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	whole, err := os.ReadFile(p.Kubeconfig(t, kubetest.Admin))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(whole, &config); err != nil {
		t.Fatal(err)
	}
	set := func(list, entry, key string, value any) string {
		all, _ := config[list].([]any)
		first, _ := all[0].(map[string]any)
		changed, _ := first[entry].(map[string]any)
		changed = maps.Clone(changed)
		changed[key] = value
		if key == "exec" {
			changed = map[string]any{key: value}
		}
		other := maps.Clone(config)
		other[list] = []any{map[string]any{"name": first["name"], entry: changed}}
		b, err := yaml.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct{ name, config, says, help string }{
		{"NoCredentials", set("users", "user", "exec", map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-login", "interactiveMode": "Never"}), "no-such-login", "log in again"},
		{"Token", set("users", "user", "token", "wrong"), "does not know who asks", "log in again"},
		{"Authority", set("clusters", "cluster", "certificate-authority-data", otherAuthority(t)), "is not trusted", "certificate-authority"},
		{"NoYAML", "clusters: [", "", "kubeconfig"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(path, []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			r := p.runtime(t, func(s *kube.Settings) { s.Kubeconfig = path })
			_, err := r.Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
			e, ok := errors.AsType[*deploy.InfraError](err)
			if !ok || !strings.Contains(e.Error(), c.says) || !strings.Contains(e.Hint(), c.help) || !e.Lasting {
				t.Errorf("start: %v, want %q (%q)", err, c.says, c.help)
			}
			findings, err := kube.Check(t.Context(), r.Settings, deploy.Spec{})
			if err != nil || len(findings) != 1 || findings[0].Check != kube.CheckAPI || findings[0].OK || !strings.Contains(findings[0].Help, c.help) {
				t.Errorf("check: %+v, %v", findings, err)
			}
		})
	}
}

// otherAuthority is a certificate that has signed nothing of the cluster's.
func otherAuthority(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// pulls makes the image one that cannot be pulled.
func pulls(why string) func(*testing.T, place) {
	return func(_ *testing.T, p place) {
		p.Image(image, kubetest.Image{Pull: func(context.Context) error { return errors.New(why) }})
	}
}

// TestRefusals: what cannot start is told apart, is never held against the configuration, and leaves
// nothing in the namespace.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if c.prepare != nil {
				c.prepare(t, p)
			}
			r := p.runtime(t)
			if c.change != nil {
				c.change(&r.Settings)
			}
			s := deploytest.Spec(t, deploytest.Ready)
			if c.spec != nil {
				c.spec(&s)
			}
			d, err := r.Start(t.Context(), s)
			if err == nil {
				d.Stop(t.Context())
				t.Fatal("start succeeds")
			}
			e, ok := errors.AsType[*deploy.InfraError](err)
			if !ok {
				t.Fatalf("start: %T %v, want an InfraError", err, err)
			}
			for _, want := range c.says {
				if !strings.Contains(e.Error(), want) {
					t.Errorf("error %q lacks %q", e, want)
				}
			}
			if !strings.Contains(e.Hint(), c.help) || e.Lasting != c.lasting {
				t.Errorf("hint %q lacks %q, or lasting is %v", e.Hint(), c.help, e.Lasting)
			}
			if strings.Contains(err.Error()+e.Hint(), "secret-of-the-registry") || strings.Contains(err.Error(), "hf_abcdef") {
				t.Errorf("a secret is told: %v", err)
			}
		})
	}
}

// ends are what takes a serving engine away.
var ends = []struct {
	name   string
	happen func(t *testing.T, p place, pod string)
	status string
	help   string
	stuck  bool // its node is not there to confirm the end
}{
	{"OOMKilled", func(t *testing.T, p place, pod string) { p.RunOutOfMemory(t, p.namespace, pod, "engine") }, "out of memory", "raise memory", false},
	{"Evicted", func(t *testing.T, p place, pod string) { p.Evict(t, p.namespace, pod) }, "low on resource: memory", "ask for memory", false},
	{"NodeGone", func(t *testing.T, p place, _ string) { p.Gone(t) }, "its node ", "another node", false}, // it falls silent before it goes
	{"NodeFails", func(t *testing.T, p place, _ string) { p.Fail(t) }, "its node does not answer", "kubectl describe node", true},
	{"PodDeleted", func(t *testing.T, p place, pod string) {
		p.deletePod(t, pod)
	}, "its pod was deleted", "ask who deletes pods", false},
	{"LeaseDeleted", func(t *testing.T, p place, pod string) {
		owner := strings.Join(strings.Split(pod, "-")[:2], "-")
		if err := p.Client().Resource(leases).Namespace(p.namespace).Delete(t.Context(), owner, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}, "that owns its pod was deleted", "perflab kube clean", false},
	{"Preempted", preempt, "higher priority", "priorityClassName", false},
	{"NamespaceDeleted", func(t *testing.T, p place, _ string) { p.DeleteNamespace(t, p.namespace) }, "was deleted; its pod", "choose a namespace", false},
}

// preempt asks for all GPUs with a priority above the engine's.
func preempt(t *testing.T, p place, _ string) {
	name := p.namespace + "-high"
	class := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": name}, "value": int64(1000)}}
	if _, err := p.Client().Resource(class).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { _ = p.Client().Resource(class).Delete(context.Background(), name, metav1.DeleteOptions{}) })
	all := map[string]any{"nvidia.com/gpu": "8"}
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "important"}, "spec": map[string]any{
		"priorityClassName": name, "terminationGracePeriodSeconds": int64(1), "containers": []any{map[string]any{
			"name": "work", "image": image, "command": []any{"sleep", "60"}, "resources": map[string]any{"limits": all, "requests": all},
		}},
	}}}
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		pods := p.Client().Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(p.namespace)
		if _, err = pods.Create(t.Context(), pod, metav1.CreateOptions{FieldManager: "kubetest"}); err == nil {
			return // the class is known to those who let pods in a moment after it is made
		}
	}
	t.Fatal(err)
}

// TestEnds: whatever ends a serving engine is told, with what to do, and is nothing of the engine's
// where it is not.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, c := range ends {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			r := p.runtime(t)
			s := deploytest.Spec(t, deploytest.Ready)
			s.Replicas[0].Devices = []string{"0", "1"}
			d, err := r.Start(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Stop(context.Background()) }) // where the test has not come so far
			pods := p.pods(t)
			if len(pods) != 1 {
				t.Fatalf("pods %v, want one", pods)
			}
			if c.stuck {
				if err := r.Patience(time.Second); err != nil {
					t.Fatal(err)
				}
			}
			p.awaitReady(t, pods[0])
			c.happen(t, p, pods[0])
			select {
			case <-d.Done():
			case <-time.After(time.Minute):
				t.Fatal("the end goes unnoticed")
			}
			e, ok := errors.AsType[*deploy.DiedError](d.Err())
			if !ok {
				t.Fatalf("Err is %T %v, want a DiedError", d.Err(), d.Err())
			}
			if !strings.Contains(e.Status, c.status) || !strings.Contains(e.Hint(), c.help) || e.Reason != "" && len(e.Last) > 0 {
				t.Errorf("died with %q for %q (%s), want %q (%s)", e.Status, e.Reason, e.Hint(), c.status, c.help)
			}
			err = d.Stop(t.Context())
			if stuck := err != nil; stuck != c.stuck {
				t.Errorf("stop: %v", err)
			}
			if c.stuck {
				if infra, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(infra.Hint(), "kubectl delete pod --force") {
					t.Errorf("stop: %v tells not what to do", err)
				}
				p.bury(t)
			}
		})
	}
}

// awaitReady waits until the kubelet knows a pod for ready, which is later than a load does.
func (p place) awaitReady(t *testing.T, name string) {
	t.Helper()
	kind := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		u, err := p.Client().Resource(kind).Namespace(p.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if c, _ := c.(map[string]any); c["type"] == "Ready" && c["status"] == "True" {
				return
			}
		}
	}
	t.Fatalf("pod %s is not ready in time", name)
}

// bury tells the cluster that nothing runs of the pods, as an administrator does.
func (p place) bury(t *testing.T) {
	t.Helper()
	kind := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for _, name := range p.pods(t) {
		if err := p.Client().Resource(kind).Namespace(p.namespace).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Error(err)
		}
	}
}

// TestRestart: a container that the kubelet starts again has ended, with the code and the log of its
// first life.
func TestRestart(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := deploytest.Spec(t, deploytest.Crash)
	_, err := p.runtime(t).Start(t.Context(), s)
	e, ok := errors.AsType[*deploy.InfraError](err)
	if !ok || !strings.Contains(e.Error(), "exit status 1") || !slices.Equal(e.Last, []string{deploytest.Hello, deploytest.CrashLine}) {
		t.Errorf("start: %v with %q", err, e.Last)
	}
}

// TestPortTaken: where another has the port, as on the network of the node, the deployment is started
// again on others, and the first leaves nothing.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := deploytest.Spec(t, deploytest.Taken)
	d := deploytest.Start(t, p.runtime(t), s)
	if pods := p.pods(t); len(pods) != 1 {
		t.Errorf("pods %v, want one", pods)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	deploytest.NothingLeft(t, s, 2)
}

// TestLaterProcessCannotBegin: where a process cannot be let begin while another of its pod runs, the
// start says so, and not that the other's pod was deleted by perflab's own hand.
func TestLaterProcessCannotBegin(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := deploytest.Pools(t)
	p.FailWith(func(r *http.Request) (int, string) {
		if strings.HasSuffix(r.URL.Path, "/exec") && strings.HasPrefix(r.URL.Query().Get("container"), "decode") {
			return http.StatusForbidden, "exec is not for everybody"
		}
		return 0, ""
	})
	_, err := p.runtime(t).Start(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "exec is not for everybody") || strings.Contains(err.Error(), "deleted") {
		t.Errorf("start: %v", err)
	}
	deploytest.NothingLeft(t, s, 1)
}

// TestSlowPull: the pull of an image is told, and takes none of the time that a start has.
func TestSlowPull(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.Image(image, kubetest.Image{Pull: func(ctx context.Context) error {
		select {
		case <-time.After(longer):
		case <-ctx.Done():
		}
		return nil
	}})
	r := p.runtime(t)
	told := make(chan string, 1000)
	r.Progress = func(text string) { told <- text }
	s := deploytest.Spec(t, deploytest.Ready)
	s.Timeout = startup
	d, err := r.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	close(told)
	var all []string
	for text := range told {
		all = append(all, text)
	}
	if !strings.Contains(strings.Join(all, "\n"), "pulls "+image) {
		t.Errorf("told %q, not of the pull", all)
	}
}
