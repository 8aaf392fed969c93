package kube_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"perflab/internal/deploy"
	"perflab/internal/deploy/kube"
	"perflab/internal/test/deploytest"
)

// role are the objects of the Role that perflab prints.
func role(t *testing.T, namespace string, u kube.Uses) (out []map[string]any) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(kube.Role(namespace, u))); ; {
		var o map[string]any
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
}

// TestRoleSuffices starts everything there is with the rights of the Role alone.
func TestRoleSuffices(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.Cluster.Node(t, "node-2", nil)
	for _, o := range role(t, p.namespace, kube.Uses{}) {
		kind, _ := o["kind"].(string)
		p.make(t, strings.ToLower(kind)+"s", o)
	}
	account := func(s *kube.Settings) {
		s.Kubeconfig = p.Kubeconfig(t, p.Account(t, p.namespace, "perflab"))
	}
	p.Claim(t, p.namespace, "models", t.TempDir())
	several := deploytest.Spec(t, deploytest.Reader)
	several.Replicas[0].Files = []deploy.File{{Name: "engine.yaml", Text: "port: {port}\n"}}
	several.Replicas[0].Argv = slices.Insert(several.Replicas[0].Argv, 2, "--config", "{file:engine.yaml}")
	worker := deploytest.Beside(t, several.Dir, "worker", deploytest.Worker)
	several.Replicas[0].Peers = []deploy.Peer{worker}
	for name, s := range map[string]deploy.Spec{"one machine": several, "two machines": spread(t, deploytest.Worker)} {
		r := p.runtime(t, account, func(s *kube.Settings) { s.Mounts = []string{"claim:models:/root/.cache/huggingface"} })
		if err := deploytest.Start(t, r, s).Stop(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var out bytes.Buffer
		if err := r.Command(t.Context(), "", []string{"echo", "here"}, &out); err != nil || out.String() != "here\n" {
			t.Errorf("%s: command: %q, %v", name, out.String(), err)
		}
		findings, err := kube.Check(t.Context(), r.Settings, s)
		if err != nil {
			t.Error(err)
		}
		for _, f := range findings {
			if !f.OK {
				t.Errorf("%s: %s: %s (%s)", name, f.Check, f.Text, f.Help)
			}
		}
	}
	r := p.runtime(t, account, func(s *kube.Settings) { s.Reach = kube.ReachForward })
	if err := deploytest.Start(t, r, deploytest.Spec(t, deploytest.Ready)).Stop(t.Context()); err != nil {
		t.Errorf("forward: %v", err)
	}
	left := deploytest.Spec(t, deploytest.Ready)
	killOwner(t, r.Settings, left)
	list, err := kube.List(t.Context(), r.Settings)
	if err != nil || len(list) != 1 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	if ended, err := kube.Clean(t.Context(), r.Settings, list[0].Name); err != nil || len(ended) != 1 {
		t.Errorf("clean: %q, %v", ended, err)
	}
}

// TestRightsLack: without any one of the verbs that a start needs it says which, before anything is made.
func TestRightsLack(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var all []rbacv1.PolicyRule
	for _, o := range role(t, p.namespace, kube.Uses{}) {
		if o["kind"] != "Role" {
			continue
		}
		list, _, _ := unstructured.NestedSlice(map[string]any{"rules": o["rules"]}, "rules")
		for _, r := range list {
			r, _ := r.(map[string]any)
			if resource := texts(r["resources"])[0]; resource == "services" || resource == "endpointslices" {
				continue // which no engine needs
			}
			all = append(all, rbacv1.PolicyRule{APIGroups: texts(r["apiGroups"]), Resources: texts(r["resources"]), Verbs: texts(r["verbs"])})
		}
	}
	tried := 0
	for i, rule := range all {
		optional := slices.Contains([]string{"pods/portforward", "events", "jobs", "leaderworkersets", "persistentvolumeclaims", "resourcequotas", "localqueues"}, rule.Resources[0])
		for _, verb := range rule.Verbs {
			less := slices.Clone(all)
			less[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == verb })
			if len(less[i].Verbs) == 0 {
				less = slices.Delete(less, i, i+1)
			}
			r := p.runtime(t, func(s *kube.Settings) { s.Kubeconfig = p.Kubeconfig(t, p.User(t, p.namespace, less...)) })
			what := fmt.Sprintf("%s %s", verb, rule.Resources[0])
			findings, err := kube.Check(t.Context(), r.Settings, deploy.Spec{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(findings, func(f kube.Finding) bool {
				return f.Check == kube.CheckRights && f.OK == optional && strings.Contains(f.Text, what)
			}) {
				t.Errorf("without %s the check finds %+v", what, findings)
			}
			if optional {
				continue
			}
			tried++
			_, err = r.Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
			e, ok := errors.AsType[*deploy.InfraError](err)
			if !ok || !strings.Contains(e.Error(), "may not "+what) || !strings.Contains(e.Hint(), "perflab kube role") || !e.Lasting {
				t.Errorf("without %s: %v", what, err)
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d verbs were tried", tried)
	}
}

func texts(v any) (out []string) {
	list, _ := v.([]any)
	for _, e := range list {
		out = append(out, fmt.Sprint(e))
	}
	return out
}

// checks are clusters and settings in which something is wrong, and the check that finds it.
var checks = []struct {
	name    string
	prepare func(t *testing.T, p place)
	change  func(s *kube.Settings)
	spec    func(s *deploy.Spec)
	check   string
	says    string
	help    string
}{
	{name: "Kubeconfig", change: func(s *kube.Settings) { s.Kubeconfig = "/no/such/file" }, check: kube.CheckAPI, says: "no such file", help: "kubeconfig"},
	{name: "Context", change: func(s *kube.Settings) { s.Context = "elsewhere" }, check: kube.CheckAPI, says: "elsewhere", help: "context"},
	{name: "Namespace", change: func(s *kube.Settings) { s.Namespace = "no-such-namespace" }, check: kube.CheckNamespace, says: "no-such-namespace", help: "kubectl create namespace"},
	{name: "Queue", change: func(s *kube.Settings) { s.Queue = "team" }, prepare: func(t *testing.T, p place) { p.Queue(t, p.namespace, "other") }, check: kube.CheckKinds, says: "no LocalQueue team", help: "correct queue"},
	{name: "Claim", change: func(s *kube.Settings) { s.Mounts = []string{"claim:models:/models"} }, check: kube.CheckClaims, says: "no claim models", help: "create"},
	{name: "Secret", change: func(s *kube.Settings) { s.Secrets = map[string]string{"HF_TOKEN": "hub/token"} }, check: kube.CheckClaims, says: "no Secret hub", help: "kubectl create secret generic hub"},
	{name: "Key", change: func(s *kube.Settings) { s.Secrets = map[string]string{"HF_TOKEN": "hub/token"} }, prepare: func(t *testing.T, p place) {
		p.make(t, "secrets", map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "hub"}, "stringData": map[string]any{"other": "x"}})
	}, check: kube.CheckClaims, says: "has no key token", help: "add the key"},
	{name: "Node", spec: func(s *deploy.Spec) { s.Replicas[0].Devices = make([]string, 9) }, check: kube.CheckNodes, says: "no node has 9 nvidia.com/gpu", help: "correct resource"},
	{name: "Selector", change: func(s *kube.Settings) {
		s.Template = map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"gpu": "b200"}}}
	}, check: kube.CheckNodes, says: "no node", help: "nodeSelector"},
	{name: "Quota", prepare: func(t *testing.T, p place) {
		p.make(t, "resourcequotas", map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "none"}, "spec": map[string]any{"hard": map[string]any{"pods": "0"}}})
	}, check: kube.CheckObjects, says: "exceeded quota", help: "quota of the namespace"},
	{name: "Webhook", prepare: func(t *testing.T, p place) {
		p.Refuse(t, p.namespace, func(object map[string]any) string {
			if object["kind"] == "Pod" {
				return "pods need the label cost-centre"
			}
			return ""
		})
	}, check: kube.CheckObjects, says: "cost-centre", help: "webhook"},
	{name: "Field", change: func(s *kube.Settings) {
		s.Template = map[string]any{"spec": map[string]any{"tolerations": "none"}}
	}, check: kube.CheckObjects, says: "tolerations", help: "does not take it"},
}

// TestCheck finds what is wrong, says what to do, and makes nothing.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if c.prepare != nil {
				c.prepare(t, p)
			}
			r := p.runtime(t)
			s := deploytest.Spec(t, deploytest.Ready)
			if c.spec != nil {
				c.spec(&s)
			}
			if good, err := kube.Check(t.Context(), r.Settings, deploytest.Spec(t, deploytest.Ready)); err != nil || c.prepare == nil && slices.ContainsFunc(good, func(f kube.Finding) bool { return !f.OK }) {
				t.Errorf("without a fault: %+v, %v", good, err)
			}
			if c.change != nil {
				c.change(&r.Settings)
			}
			findings, err := kube.Check(t.Context(), r.Settings, s)
			if err != nil {
				t.Fatal(err)
			}
			var bad []kube.Finding
			for _, f := range findings {
				if !f.OK {
					bad = append(bad, f)
				}
			}
			if len(bad) != 1 || bad[0].Check != c.check || !strings.Contains(bad[0].Text, c.says) || !strings.Contains(bad[0].Help, c.help) {
				t.Errorf("found %+v, want %s: %q (%q)", bad, c.check, c.says, c.help)
			}
		})
	}
}

// TestCheckEnds with its caller.
func TestCheckEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	if _, err := kube.Check(ctx, p.runtime(t).Settings, deploy.Spec{}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("check: %v", err)
	}
}
