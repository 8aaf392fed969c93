package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"perflab/internal/deploy"
)

// Finding is what one check of a cluster found.
type Finding struct {
	Check string `json:"check"` // one of the constants below
	OK    bool   `json:"ok"`
	Text  string `json:"text"`           // one sentence
	Help  string `json:"help,omitempty"` // what to do, where it is not OK
}

// Checks, in the order in which they are made.
const (
	CheckAPI       = "api"
	CheckNamespace = "namespace"
	CheckRights    = "rights"
	CheckKinds     = "kinds"  // of objects: LeaderWorkerSet and Kueue's queue
	CheckClaims    = "claims" // and secrets
	CheckNodes     = "nodes"
	CheckObjects   = "objects" // as a trial on the server: quota, webhooks, policies
	CheckOfService = "service" // one of others, and its pods
	CheckPods      = "pods"
	CheckPath      = "path" // of requests and of what is read during them
)

// Further kinds, which are only looked at.
var (
	claimKind     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	secretKind    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	nodeKind      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	namespaceKind = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// checker collects findings.
type checker struct {
	*cluster
	spec deploy.Spec
	out  []Finding
}

// Check looks whether a deployment could be started with the settings, and changes nothing. A
// deployment without replicas leaves out what depends on them. A check that the account may not make
// says so and is OK: the start will tell.
func Check(ctx context.Context, s Settings, d deploy.Spec) ([]Finding, error) {
	k := &checker{spec: d}
	c, err := connect(s)
	if err != nil {
		k.bad(CheckAPI, "correct kubeconfig, context or KUBECONFIG", "%s", sentence(err.Error()))
		return k.out, nil
	}
	defer c.close()
	k.cluster = c
	for _, step := range []func(context.Context) bool{k.api, k.space, k.rights, k.kinds, k.claims, k.secrets, k.nodes, k.trial} {
		goOn := step(ctx)
		if cause := context.Cause(ctx); cause != nil {
			return nil, fmt.Errorf("check the cluster: %w", cause)
		}
		if !goOn {
			break
		}
	}
	return k.out, nil
}

func (k *checker) good(check, format string, args ...any) {
	k.out = append(k.out, Finding{Check: check, OK: true, Text: fmt.Sprintf(format, args...)})
}

func (k *checker) bad(check, help, format string, args ...any) {
	k.out = append(k.out, Finding{Check: check, Text: fmt.Sprintf(format, args...), Help: help})
}

// fail makes a finding of an error of the API.
func (k *checker) fail(check, what string, err error) {
	e := k.explain(what, err)
	f := Finding{Check: check, Text: e.Error()}
	if h, ok := e.(interface{ Hint() string }); ok {
		f.Help = h.Hint()
	}
	k.out = append(k.out, f)
}

// api asks whether the API server answers, and knows who asks.
func (k *checker) api(ctx context.Context) bool {
	b, err := k.core.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		k.fail(CheckAPI, "ask "+k.config.Host, err)
		return false
	}
	var v struct{ GitVersion string }
	_ = json.Unmarshal(b, &v) // without a version there is none to tell
	k.good(CheckAPI, "the API server at %s answers (%s)", k.config.Host, cmp.Or(v.GitVersion, "version unknown"))
	return true
}

// space asks whether the namespace is there, by a trial in it.
func (k *checker) space(ctx context.Context) bool {
	_, err := k.clock(ctx)
	if apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		_, err = k.objects.Resource(namespaceKind).Get(ctx, k.namespace, metav1.GetOptions{})
		if apierrors.IsForbidden(err) {
			k.good(CheckNamespace, "the account may not see whether the namespace %s is there", k.namespace)
			return true
		}
	}
	if err != nil {
		k.fail(CheckNamespace, "look at the namespace "+k.namespace, err)
		return false
	}
	k.good(CheckNamespace, "the namespace %s is there", k.namespace)
	return true
}

// rights asks for each verb that the runtime uses.
func (k *checker) rights(ctx context.Context) bool {
	enough := true
	for _, r := range k.rules() {
		lacking, err := k.lacking(ctx, r)
		if err != nil {
			k.fail(CheckRights, "ask which rights the account has", err)
			return false
		}
		if len(lacking) == 0 {
			continue
		}
		text := fmt.Sprintf("the account may not %s %s", strings.Join(lacking, ", "), r.resource)
		if !k.needs(r, k.spec) {
			k.good(CheckRights, "%s: %s", text, r.optional)
			continue
		}
		enough = false
		k.bad(CheckRights, roleHelp, "%s", text)
	}
	if enough {
		k.good(CheckRights, "the account has the rights that are needed in the namespace %s", k.namespace)
	}
	return enough
}

// kinds looks for what a cluster has only where somebody installed it.
func (k *checker) kinds(ctx context.Context) bool {
	if spread(k.spec) {
		if _, err := k.core.Get().AbsPath("/apis/leaderworkerset.x-k8s.io/v1").DoRaw(ctx); apierrors.IsNotFound(err) {
			k.bad(CheckKinds, "have LeaderWorkerSet installed (leaderworkerset.sigs.k8s.io), or give each replica one machine", "replicas over several machines need LeaderWorkerSet, which the cluster lacks")
			return false
		} else if err != nil {
			k.fail(CheckKinds, "look for LeaderWorkerSet", err)
			return false
		}
		k.good(CheckKinds, "the cluster has LeaderWorkerSet")
	}
	if k.Queue == "" {
		return true
	}
	version, err := k.kueue(ctx)
	if apierrors.IsNotFound(err) {
		k.bad(CheckKinds, "have Kueue installed (kueue.sigs.k8s.io), or leave out queue", "the queue %s is one of Kueue, which the cluster lacks", k.Queue)
		return false
	}
	if err == nil {
		_, err = k.of(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: version, Resource: "localqueues"}).Get(ctx, k.Queue, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		k.bad(CheckKinds, "correct queue: kubectl get localqueues -n "+k.namespace+" lists them", "there is no LocalQueue %s in the namespace %s", k.Queue, k.namespace)
		return false
	case apierrors.IsForbidden(err):
		k.good(CheckKinds, "the account may not see whether there is a queue %s", k.Queue)
	case err != nil:
		k.fail(CheckKinds, "look for the queue "+k.Queue, err)
		return false
	default:
		k.good(CheckKinds, "the queue %s is there", k.Queue)
	}
	return true
}

// kueue is the version of Kueue's objects.
func (k *checker) kueue(ctx context.Context) (string, error) {
	b, err := k.core.Get().AbsPath("/apis/kueue.x-k8s.io").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var group metav1.APIGroup
	err = json.Unmarshal(b, &group)
	return group.PreferredVersion.Version, err
}

// claims looks for the claims that are mounted.
func (k *checker) claims(ctx context.Context) bool {
	all := true
	for _, m := range k.Mounts {
		rest, ok := strings.CutPrefix(m, "claim:")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, ":")
		u, err := k.of(claimKind).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			all = false
			k.bad(CheckClaims, "create the PersistentVolumeClaim, or correct mounts", "there is no claim %s in the namespace %s", name, k.namespace)
		case apierrors.IsForbidden(err):
			k.good(CheckClaims, "the account may not see whether there is a claim %s", name)
		case err != nil:
			k.fail(CheckClaims, "look at the claim "+name, err)
			return false
		default:
			phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
			if phase == string(corev1.ClaimLost) {
				all = false
				k.bad(CheckClaims, "the volume behind it is gone: create the claim again", "the claim %s is lost", name)
				continue
			}
			k.good(CheckClaims, "the claim %s is there (%s)", name, phase)
		}
	}
	return all
}

// secrets looks for the keys that pods refer to, where the account may read secrets. No value is kept.
func (k *checker) secrets(ctx context.Context) bool {
	all := true
	for _, variable := range slices.Sorted(maps.Keys(k.Settings.Secrets)) {
		name, key, _ := strings.Cut(k.Settings.Secrets[variable], "/")
		u, err := k.of(secretKind).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			k.good(CheckClaims, "the account may not see whether the Secret %s has the key %s, nor has it to", name, key)
		case apierrors.IsNotFound(err):
			all = false
			k.bad(CheckClaims, fmt.Sprintf("kubectl create secret generic %s -n %s --from-literal=%s=VALUE", name, k.namespace, key), "there is no Secret %s, from which %s comes", name, variable)
		case err != nil:
			k.fail(CheckClaims, "look at the Secret "+name, err)
			return false
		default:
			data, _, _ := unstructured.NestedMap(u.Object, "data")
			if _, ok := data[key]; !ok {
				all = false
				k.bad(CheckClaims, "add the key, or correct secrets", "the Secret %s has no key %s, from which %s comes", name, key, variable)
				continue
			}
			k.good(CheckClaims, "the Secret %s has the key %s", name, key)
		}
	}
	return all
}

// manifests are the objects of the deployment's first replica; what keeps them from being made is said.
func (k *checker) manifests() (objects []map[string]any, ok bool) {
	h := &host{cluster: k.cluster, spec: k.spec, plan: deploy.Plan{Ports: make([]map[string]int, len(k.spec.Replicas))}}
	_, objects, err := h.objectsOf("perflab-check", 0)
	if err != nil {
		k.bad(CheckObjects, "correct the settings of the runtime", "%s", sentence(err.Error()))
		return nil, false
	}
	return objects, true
}

// podsIn are the pod specifications in objects.
func podsIn(objects []map[string]any) (out []corev1.PodSpec, templates []map[string]any) {
	for _, o := range objects {
		for _, path := range [][]string{
			{"spec", "template"}, {"spec", "leaderWorkerTemplate", "leaderTemplate"}, {"spec", "leaderWorkerTemplate", "workerTemplate"},
		} {
			t, ok, _ := unstructured.NestedMap(o, path...)
			if !ok {
				continue
			}
			var pod corev1.PodTemplateSpec
			if err := into(&unstructured.Unstructured{Object: t}, &pod); err == nil {
				out, templates = append(out, pod.Spec), append(templates, t)
			}
		}
	}
	return out, templates
}

// nodes looks for nodes that are large enough, where the account may see them.
func (k *checker) nodes(ctx context.Context) bool {
	if len(k.spec.Replicas) == 0 {
		return true
	}
	objects, ok := k.manifests()
	if !ok {
		return false
	}
	list, err := k.objects.Resource(nodeKind).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		k.good(CheckNodes, "the account may not see nodes: whether one fits shows when pods are made")
		return true
	}
	if err != nil {
		k.fail(CheckNodes, "list nodes", err)
		return false
	}
	pods, _ := podsIn(objects)
	for _, p := range pods {
		asked := requests(p)
		fits := 0
		for _, u := range list.Items {
			var n corev1.Node
			if err := into(&u, &n); err == nil && holds(n, p, asked) {
				fits++
			}
		}
		if fits == 0 {
			k.bad(CheckNodes, "correct resource, cpu, memory, or nodeSelector in pod: kubectl describe nodes says what nodes have", "no node has %s for a pod, with the labels that it asks for", listed(asked))
			return false
		}
		k.good(CheckNodes, "%d of %d nodes can hold a pod with %s, were they free", fits, len(list.Items), listed(asked))
	}
	return true
}

// requests are what the containers of a pod ask for.
func requests(p corev1.PodSpec) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, c := range p.Containers {
		for name, q := range c.Resources.Requests {
			sum := out[name]
			sum.Add(q)
			out[name] = sum
		}
	}
	return out
}

func listed(asked corev1.ResourceList) string {
	var out []string
	for name, q := range asked {
		out = append(out, q.String()+" "+string(name))
	}
	slices.Sort(out)
	return cmp.Or(strings.Join(out, ", "), "nothing in particular")
}

// holds reports whether an empty node could hold a pod.
func holds(n corev1.Node, p corev1.PodSpec, asked corev1.ResourceList) bool {
	if n.Spec.Unschedulable {
		return false
	}
	for key, value := range p.NodeSelector {
		if n.Labels[key] != value {
			return false
		}
	}
	for name, q := range asked {
		has, ok := n.Status.Allocatable[name]
		if !ok {
			has = resource.Quantity{}
		}
		if has.Cmp(q) < 0 {
			return false
		}
	}
	return true
}

// trial has the server try all objects, and a pod of each kind, without making them: that asks
// quotas, webhooks and policies too.
func (k *checker) trial(ctx context.Context) bool {
	if len(k.spec.Replicas) == 0 {
		return true
	}
	objects, ok := k.manifests()
	if !ok {
		return false
	}
	_, templates := podsIn(objects)
	for i, t := range templates {
		pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": t["metadata"], "spec": t["spec"]}
		mapping(pod, "metadata")["name"] = fmt.Sprintf("perflab-check-%d", i)
		objects = append(objects, pod)
	}
	for _, o := range objects {
		if _, err := k.patch(ctx, o, metav1.DryRunAll); err != nil {
			k.fail(CheckObjects, fmt.Sprintf("try the %v", o["kind"]), err)
			return false
		}
	}
	k.good(CheckObjects, "the cluster takes the objects of the deployment")
	return true
}
