package kube_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"perflab/internal/deploy"
	"perflab/internal/deploy/kube"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/kubetest"
)

var podKind = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// stack is a Service of somebody else, over pods that answer.
type stack struct {
	place
	port int // of the first pod; the others have the next
}

// newStack makes a Service llama without an address of its own, and its pods.
func newStack(t *testing.T, n int) stack {
	t.Helper()
	s := stack{newPlace(t), deploytest.UnusedPorts(t, n+1)}
	s.service(t, map[string]any{"selector": map[string]any{"app": "llama"}})
	for i := range n {
		s.pod(t, i)
	}
	for i := range n {
		s.awaitReady(t, "llama-"+strconv.Itoa(i))
	}
	return s
}

// service makes the Service llama.
func (s stack) service(t *testing.T, spec map[string]any) {
	t.Helper()
	spec["clusterIP"] = cmp.Or[any](spec["clusterIP"], "None")
	if spec["clusterIP"] == "any" {
		delete(spec, "clusterIP")
	}
	if spec["ports"] == nil {
		spec["ports"] = []any{map[string]any{"name": "http", "port": int64(80), "targetPort": "serve"}}
	}
	s.make(t, "services", map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "llama"}, "spec": spec})
}

// pod makes the i-th pod, which serves at the i-th port.
func (s stack) pod(t *testing.T, i int) {
	t.Helper()
	port := s.port + i
	e := deploytest.Engine(t, t.TempDir(), deploytest.Ready)
	argv := []any{}
	for _, a := range e.Argv {
		argv = append(argv, strings.ReplaceAll(a, "{port}", strconv.Itoa(port)))
	}
	env := []any{}
	for _, kv := range e.Env {
		name, value, _ := strings.Cut(kv, "=")
		env = append(env, map[string]any{"name": name, "value": value})
	}
	s.make(t, "pods", map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "llama-" + strconv.Itoa(i), "labels": map[string]any{"app": "llama"}},
		"spec": map[string]any{"terminationGracePeriodSeconds": int64(1), "containers": []any{
			map[string]any{"name": "beside", "image": "registry.example/beside:v1", "command": []any{"sleep", "600"}},
			map[string]any{
				"name": "main", "image": image, "command": argv, "env": env, "ports": []any{map[string]any{"name": "serve", "containerPort": int64(port)}},
				"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/health", "port": int64(port)}, "periodSeconds": int64(1)},
				"resources":      map[string]any{"limits": map[string]any{"nvidia.com/gpu": "1"}},
			},
		}},
	})
}

func (s stack) awaitReady(t *testing.T, pod string) {
	t.Helper()
	for end := time.Now().Add(soon); ; {
		u, err := s.Client().Resource(podKind).Namespace(s.namespace).Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		if slices.ContainsFunc(list, func(c any) bool {
			c1, _ := c.(map[string]any)
			return c1["type"] == "Ready" && c1["status"] == "True"
		}) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("pod %s is not ready: %v", pod, u.Object["status"])
		}
	}
}

// of is the Service as a user of the cluster reaches it.
func (s stack) of(t *testing.T, user string, change ...func(*kube.Service)) *kube.Service {
	t.Helper()
	r := &kube.Service{Settings: kube.Settings{Kubeconfig: s.Kubeconfig(t, user)}, Name: s.namespace + "/llama", Poll: 5 * time.Millisecond, Progress: func(text string) { t.Log(text) }}
	for _, f := range change {
		f(r)
	}
	return r
}

// start starts the Service's deployment, which is stopped with the test.
func start(t *testing.T, r *kube.Service) deploy.Deployment {
	t.Helper()
	d, err := r.Start(t.Context(), deploy.Spec{Name: "llama", Timeout: soon})
	if err != nil {
		t.Fatalf("%v (%s)", err, hint(err))
	}
	t.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// nvidiaSMI puts a program before all others that names the GPU of a pod.
func nvidiaSMI(t *testing.T) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte("#!/bin/sh\necho GPU-of-$NVIDIA_VISIBLE_DEVICES\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

// TestService: the pods of a Service are found with what they are, whichever way requests go.
func TestService(t *testing.T) {
	nvidiaSMI(t)
	s := newStack(t, 2)
	for _, c := range []struct {
		name, reach    string
		urls           []string
		targets, inner []string // "*": a forwarded port
		metrics        string
	}{
		{"usual", "", nil, s.at(0, 1), s.at(0, 1), kube.ReachPods},
		{"forward", kube.ReachForward, nil, []string{"*", "*"}, s.at(0, 1), kube.ReachForward},
		{"gateway", "", s.at(1), s.at(1), s.at(1), kube.ReachPods},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := start(t, s.of(t, kubetest.Admin, func(r *kube.Service) { r.Settings.Reach, r.URLs = c.reach, c.urls }))
			targets, in := d.Targets(), d.(deploy.Insider)
			for i, target := range targets {
				if i >= len(c.targets) || c.targets[i] != "*" && c.targets[i] != target || in.Inside(target) != c.inner[i] {
					t.Errorf("target %s, from inside %s", target, in.Inside(target))
				}
			}
			if len(targets) != len(c.targets) || len(d.Engines()) != 2 {
				t.Errorf("%d targets, want %d; %d pods have metrics", len(targets), len(c.targets), len(d.Engines()))
			}
			for i, p := range d.(kube.Placed).Places(t.Context()) {
				want := kube.Place{
					Replica: i, Pod: fmt.Sprintf("llama-%d", i), UID: p.UID, Node: s.Name, Image: "registry.example/engines/fake@" + s.Digest(image), GPUs: p.GPUs,
					Forward: c.reach == kube.ReachForward, Metrics: c.metrics,
				}
				if got := fmt.Sprint(p); got != fmt.Sprint(want) || p.UID == "" || len(p.GPUs) != 1 || !strings.HasPrefix(p.GPUs[0], "GPU-of-") {
					t.Errorf("place %d is %+v, want %+v", i, p, want)
				}
			}
			if at := d.(kube.Attached).Served(); at.Port != 80 || at.UID == "" || len(at.Lacks) > 0 {
				t.Errorf("served is %+v", at)
			}
		})
	}
}

// at are the URLs of pods.
func (s stack) at(pods ...int) (out []string) {
	for _, i := range pods {
		out = append(out, fmt.Sprintf("http://127.0.0.1:%d", s.port+i))
	}
	return out
}

// TestServiceChanges: whatever happens to a pod behind the Service ends the deployment, and says what it was.
func TestServiceChanges(t *testing.T) {
	s := newStack(t, 2)
	for _, c := range []struct {
		name string
		do   func(t *testing.T)
		want string
	}{
		{"added", func(t *testing.T) { s.pod(t, 2) }, "pod llama-2 on node "},
		{"deleted", func(t *testing.T) {
			if err := s.Client().Resource(podKind).Namespace(s.namespace).Delete(t.Context(), "llama-2", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "its pod was deleted"},
		{"killed", func(t *testing.T) { s.RunOutOfMemory(t, s.namespace, "llama-1", "main") }, "out of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := start(t, s.of(t, kubetest.Admin))
			if err := d.Err(); err != nil {
				t.Fatalf("it has changed before: %v", err)
			}
			c.do(t)
			select {
			case <-d.Done():
			case <-time.After(soon):
				t.Fatal("nobody told of it")
			}
			e, ok := errors.AsType[*kube.ChangedError](d.Err())
			if !ok || !strings.Contains(e.Error(), c.want) || !strings.Contains(e.Hint(), "kubectl get events -n "+s.namespace) {
				t.Errorf("%v, want %q", d.Err(), c.want)
			}
			if c.name == "killed" {
				s.awaitReady(t, "llama-1")
			}
		})
	}
	d := start(t, s.of(t, kubetest.Admin)) // that a pod was started again before is no news
	select {
	case <-d.Done():
		t.Errorf("ended: %v", d.Err())
	default:
	}
}

// TestServiceWrong: what is wrong is said in a sentence with what to do about it.
func TestServiceWrong(t *testing.T) {
	s := newStack(t, 1)
	make := func(name string, spec map[string]any) {
		s.make(t, "services", map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name}, "spec": spec})
	}
	port := func(name string, n int64) any { return map[string]any{"name": name, "port": n} }
	make("two", map[string]any{"selector": map[string]any{"app": "llama"}, "ports": []any{port("http", 80), port("metrics", 9090)}})
	make("other", map[string]any{"type": "ExternalName", "externalName": "gateway.example"})
	make("empty", map[string]any{"clusterIP": "None", "selector": map[string]any{"app": "nobody"}, "ports": []any{port("http", 80)}})
	make("unnamed", map[string]any{"clusterIP": "None", "selector": map[string]any{"app": "llama"}, "ports": []any{map[string]any{"port": int64(80), "targetPort": "web"}}})
	make("alone", map[string]any{"clusterIP": "None", "ports": []any{port("http", 80)}})
	make("elsewhere", map[string]any{"clusterIP": "None", "selector": map[string]any{"app": "llama"}, "ports": []any{map[string]any{"port": int64(80), "targetPort": int64(s.port + 1)}}})
	for _, c := range []struct {
		name, port, reach string
		want, help        string
	}{
		{"lama", "", "", "there is no Service lama in the namespace " + s.namespace, "there are alone, "},
		{"llama", "http2", "", "has no port http2", "http 80"},
		{"two", "", "", "has 2 ports (http 80, metrics 9090)", "say which one serves"},
		{"other", "", "", "is another name for gateway.example and has no pods", "by urls"},
		{"empty", "", "", "no pod of " + s.namespace + "/empty takes requests: none has the labels app=nobody", "kubectl get pods"},
		{"unnamed", "", "", "has no port named web", "correct targetPort"},
		{"alone", "", "", "no pod is known to which a port could be forwarded", "name an address that answers"},
		{"llama", "", kube.ReachService, "it has no address of its own (clusterIP: None)", "set it to pods"},
		{"elsewhere", "", kube.ReachPods, "the addresses of its pods do not answer from here", "reach to forward"},
		{"elsewhere", "", kube.ReachForward, "", "kubectl get endpointslices"},
		{"A b", "", "", "no name of a Service", "correct the name"},
	} {
		_, err := s.of(t, kubetest.Admin, func(r *kube.Service) {
			r.Name, r.Port, r.Settings.Reach = s.namespace+"/"+c.name, c.port, c.reach
		}).Start(t.Context(), deploy.Spec{Timeout: 300 * time.Millisecond})
		if _, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(err.Error(), c.want) || !strings.Contains(hint(err), c.help) {
			t.Errorf("%s:%s by %s: %v (%s), want %q (%q)", c.name, c.port, c.reach, err, hint(err), c.want, c.help)
		}
	}
}

// TestServiceWithoutSelector: the pods of such a Service are those of its EndpointSlices.
func TestServiceWithoutSelector(t *testing.T) {
	s := stack{newPlace(t), deploytest.UnusedPorts(t, 2)}
	s.service(t, map[string]any{})
	s.pod(t, 0)
	s.pod(t, 1) // which is no endpoint
	s.awaitReady(t, "llama-0")
	s.make(t, "endpointslices", map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"metadata": map[string]any{"name": "llama-by-hand", "labels": map[string]any{"kubernetes.io/service-name": "llama"}},
		"ports":    []any{map[string]any{"name": "http", "port": int64(s.port)}},
		"endpoints": []any{map[string]any{ // pods of the kit have an address that is none of an endpoint
			"addresses": []any{"192.0.2.1"}, "targetRef": map[string]any{"kind": "Pod", "name": "llama-0", "namespace": s.namespace},
		}},
	})
	d := start(t, s.of(t, kubetest.Admin, func(r *kube.Service) { r.Name = "llama" })) // in the namespace of the context
	if got := d.Targets(); !slices.Equal(got, s.at(0)) {
		t.Errorf("targets %q, want %q", got, s.at(0))
	}
	s.RunOutOfMemory(t, s.namespace, "llama-0", "main")
	select {
	case <-d.Done():
	case <-time.After(soon):
		t.Error("nobody told of the end of its pod")
	}
}

// TestServiceRole: the Role for it suffices, and what lacks costs no more than it says.
func TestServiceRole(t *testing.T) {
	s := newStack(t, 2)
	for _, o := range role(t, s.namespace, kube.Uses{Service: true}) {
		kind, _ := o["kind"].(string)
		s.make(t, strings.ToLower(kind)+"s", o)
	}
	account := s.Account(t, s.namespace, "perflab")
	for _, reach := range []string{"", kube.ReachForward} {
		d := start(t, s.of(t, account, func(r *kube.Service) { r.Settings.Reach = reach }))
		if at := d.(kube.Attached).Served(); len(at.Lacks) > 0 || len(d.Engines()) != 2 {
			t.Errorf("by the Role alone lacks %q, with the metrics of %d pods", at.Lacks, len(d.Engines()))
		}
	}
	nobody := s.User(t, s.namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}})
	for _, reach := range []string{"", kube.ReachForward} {
		findings := s.of(t, account, func(r *kube.Service) { r.Settings.Reach = reach }).Check(t.Context())
		var text strings.Builder
		for _, f := range findings {
			text.WriteString(fmt.Sprintf("%v %s %s\n", f.OK, f.Check, f.Text))
		}
		for _, want := range []string{"true api the API server at", "true service the Service " + s.namespace + "/llama is there, and its port 80 leads to 2 pods", "true rights the account has the rights", "true pods pod llama-1 on node " + s.Name, "true path requests go to "} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the check does not say %q:\n%s", want, text.String())
			}
		}
	}
	d := start(t, s.of(t, nobody, func(r *kube.Service) { r.URLs = s.at(0) }))
	if at := d.(kube.Attached).Served(); len(at.Lacks) != 1 || !strings.Contains(at.Lacks[0], "may not read the Service") || len(d.Engines()) > 0 {
		t.Errorf("without rights %+v", at)
	}
	_, err := s.of(t, nobody, func(r *kube.Service) { r.Port = "80" }).Start(t.Context(), deploy.Spec{})
	if err == nil || !strings.Contains(err.Error(), "may not get services") || !strings.Contains(hint(err), "perflab kube role --service") {
		t.Errorf("without rights and an address: %v (%s)", err, hint(err))
	}
}

// FuzzSplitService: a name that is taken is one of the API's, whatever stands there.
func FuzzSplitService(f *testing.F) {
	for _, text := range []string{"prod/llama:http", "llama", "a/b/c", "prod/llama:", ":80", "prod/llama:8000", "A/b", "a\n/b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, port, err := kube.SplitService(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(name+port, ":\n\t .") || strings.Count(name, "/") > 1 || strings.Contains(port, "/") || name == "" {
			t.Errorf("%q is the Service %q at port %q", text, name, port)
		}
		if again, p, err := kube.SplitService(strings.TrimSuffix(name+":"+port, ":")); err != nil || again != name || p != port {
			t.Errorf("%q: %q at %q, then %q at %q: %v", text, name, port, again, p, err)
		}
	})
}

// TestForwardAtOnce: connections that are made at the same time to a forwarded port are each one of its own.
func TestForwardAtOnce(t *testing.T) {
	s := newStack(t, 1)
	target := start(t, s.of(t, kubetest.Admin, func(r *kube.Service) { r.Settings.Reach = kube.ReachForward })).Targets()[0]
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: soon}
	const n = 20
	errs := make([]error, n)
	var asking sync.WaitGroup
	for i := range n {
		asking.Go(func() {
			answer, err := client.Get(target + "/health")
			if err != nil {
				errs[i] = err
				return
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				errs[i] = errors.New(answer.Status)
			}
		})
	}
	asking.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}
