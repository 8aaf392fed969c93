package kube

import (
	"fmt"
	"strings"
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
	{"", "secrets", []string{"create", "patch"}, "no load is sent from pods: the invitations of agents are in a Secret"},
	{"kueue.x-k8s.io", "localqueues", []string{"get"}, "queues are not looked at before the start"},
}

// Role is all that an account needs to run engines in a namespace, as YAML for kubectl apply: a
// ServiceAccount perflab, a Role and its RoleBinding. Nothing in it is of the cluster as a whole.
func Role(namespace string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: v1
kind: ServiceAccount
metadata:
  name: perflab
  namespace: %[1]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: perflab
  namespace: %[1]s
rules:
`, namespace)
	for _, r := range rules {
		fmt.Fprintf(&b, "- apiGroups: [%q]\n  resources: [%q]\n  verbs: [%s]\n", r.group, r.resource, `"`+strings.Join(r.verbs, `", "`)+`"`)
	}
	fmt.Fprintf(&b, `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: perflab
  namespace: %[1]s
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
