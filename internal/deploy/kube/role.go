package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"perflab/internal/deploy"
)

// rule is a right that the runtime needs in its namespace.
type rule struct {
	group, resource string // pods/log for a part of one
	verbs           []string
	optional        string // what is missed without it; "": nothing works
}

// rules are all rights that the runtime uses. What replicas over several machines and the download of
// models need is among them.
var rules = []rule{
	{"coordination.k8s.io", "leases", []string{"get", "list", "create", "patch", "delete"}, ""},
	{"apps", "deployments", []string{"get", "create", "patch", "delete"}, ""},
	{"", "pods", []string{"get", "list", "watch", "create", "patch", "delete"}, ""},
	{"", "pods/log", []string{"get"}, ""},
	{"", "pods/exec", []string{"get", "create"}, ""},
	{"", "pods/portforward", []string{"get", "create"}, "engines are reached at the addresses of pods alone"},
	{"", "configmaps", []string{"get", "create", "patch", "delete"}, ""},
	{"", "events", []string{"get", "list"}, "the reasons of a cluster are told with less detail"},
	{"batch", "jobs", []string{"get", "list", "watch", "create", "patch", "delete"}, "models are not downloaded before the first start"},
	{"leaderworkerset.x-k8s.io", "leaderworkersets", []string{"get", "create", "patch", "delete"}, "replicas run on one machine each"},
	{"", "persistentvolumeclaims", []string{"get"}, "claims are not looked at before the start"},
	{"", "resourcequotas", []string{"list"}, "quotas are told when they refuse a pod"},
	{"kueue.x-k8s.io", "localqueues", []string{"get"}, "queues are not looked at before the start"},
}

// forAgents are the rights that load agents need beside those: their invitations are in a Secret.
var forAgents = []rule{{"", "secrets", []string{"create", "patch"}, ""}}

// forServices are the rights by which a Service of others is measured, each for something that is missed without it.
var forServices = []rule{
	{"", "services", []string{"get", "list"}, "its pods are not known"},
	{"discovery.k8s.io", "endpointslices", []string{"list"}, "the pods of a Service without a selector are not known"},
	{"", "pods", []string{"list", "watch"}, "where it runs and its metrics are not known"},
	{"", "pods/portforward", []string{"get", "create"}, "pods are reached at their addresses alone"},
}

// serviceExtras are used of a Service where the account has them. To run commands in the pods of others is much to ask for
// a list of GPUs.
var serviceExtras = []rule{{"", "pods/exec", []string{"get", "create"}, "the GPUs of its pods are not named"}}

// rules are the rights that the settings need.
func (c *cluster) rules() []rule {
	if c.Load == nil {
		return rules
	}
	return slices.Concat(rules, forAgents)
}

// besideServices are the rights of load agents where perflab starts no engines.
var besideServices = []rule{
	{"coordination.k8s.io", "leases", []string{"get", "list", "create", "patch", "delete"}, ""},
	{"batch", "jobs", []string{"get", "create", "patch", "delete"}, ""},
	{"", "pods", []string{"get", "list"}, ""},
	{"", "pods/log", []string{"get"}, ""},
}

// Uses are what an account is for.
type Uses struct {
	Agents  bool // load agents too
	Service bool // Services of others alone: no engine is started
}

// rules are all rights of the uses. Who starts engines may look at Services as well.
func (u Uses) rules() []rule {
	out := slices.Concat(rules, forServices[:2])
	if u.Service {
		out = slices.Clone(forServices)
		if u.Agents {
			out = slices.Concat(out, besideServices)
		}
	}
	if u.Agents {
		out = slices.Concat(out, forAgents)
	}
	return out
}

// Role is all that an account needs in a namespace to run engines, or to measure what others run, as YAML for kubectl apply: a
// ServiceAccount perflab, a Role and its RoleBinding. Nothing in it is of the cluster as a whole.
func Role(namespace string, u Uses) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: v1
kind: ServiceAccount
metadata:
  name: perflab
  namespace: %[1]s
  labels: {app.kubernetes.io/name: perflab}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: perflab
  namespace: %[1]s
  labels: {app.kubernetes.io/name: perflab}
rules:
`, namespace)
	for _, r := range u.rules() {
		fmt.Fprintf(&b, "- apiGroups: [%q]\n  resources: [%q]\n  verbs: [%s]\n", r.group, r.resource, `"`+strings.Join(r.verbs, `", "`)+`"`)
	}
	fmt.Fprintf(&b, `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: perflab
  namespace: %[1]s
  labels: {app.kubernetes.io/name: perflab}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: perflab
subjects:
- kind: ServiceAccount
  name: perflab
  namespace: %[1]s
`, namespace)
	return b.String()
}

const roleHelp = "have the Role that perflab kube role prints bound to the account"

var reviewKind = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// needs reports whether a deployment cannot be started without a right.
func (c *cluster) needs(r rule, s deploy.Spec) bool {
	switch r.resource {
	case "leaderworkersets":
		return spread(s)
	case "pods/portforward":
		return c.Reach == ReachForward
	case "jobs":
		return c.Load != nil
	}
	return r.optional == ""
}

// spread reports whether a replica is over several machines.
func spread(s deploy.Spec) bool {
	return slices.ContainsFunc(s.Replicas, func(r deploy.Replica) bool { return nodesOf(r) > 1 })
}

// entitled says which rights lack that a deployment needs, before anything is made: what is made
// without the right to remove it stays.
func (c *cluster) entitled(ctx context.Context, op string, s deploy.Spec) error {
	var bad []string
	for _, r := range c.rules() {
		if !c.needs(r, s) {
			continue
		}
		lacking, err := c.lacking(ctx, r)
		if apierrors.IsForbidden(err) {
			return nil // the account may not ask either: what fails will say so
		}
		if err != nil {
			return orCause(ctx, c.explain(op+": ask which rights the account has", err))
		}
		if len(lacking) > 0 {
			bad = append(bad, strings.Join(lacking, ", ")+" "+r.resource)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return &deploy.InfraError{
		Op: op, Err: fmt.Errorf("in the namespace %s this account may not %s", c.namespace, strings.Join(bad, ", nor ")),
		Help: roleHelp, Lasting: true,
	}
}

// lacking are the verbs of a rule that the account does not have.
func (c *cluster) lacking(ctx context.Context, r rule) (out []string, err error) {
	for _, verb := range r.verbs {
		allowed := false
		err := c.retry(ctx, func(ctx context.Context) (err error) {
			allowed, err = c.allowed(ctx, r.group, r.resource, verb)
			return err
		})
		if err != nil {
			return nil, err
		}
		if !allowed {
			out = append(out, verb)
		}
	}
	return out, nil
}

// allowed asks whether the account may do something in the namespace.
func (c *cluster) allowed(ctx context.Context, group, name, verb string) (bool, error) {
	name, sub, _ := strings.Cut(name, "/")
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{"namespace": c.namespace, "group": group, "resource": name, "subresource": sub, "verb": verb}},
	}}
	got, err := c.objects.Resource(reviewKind).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, _, _ := unstructured.NestedBool(got.Object, "status", "allowed")
	return allowed, nil
}
