package kubetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// LeaderWorkerSet's kind, and the labels of its pods.
var (
	setKind        = schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}
	definitionKind = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

const (
	setLabel    = "leaderworkerset.sigs.k8s.io/name"
	groupLabel  = "leaderworkerset.sigs.k8s.io/group-index"
	workerLabel = "leaderworkerset.sigs.k8s.io/worker-index"
)

// recreate is the restart policy by which the end of one pod is the end of its group.
const recreate = "RecreateGroupOnPodRestart"

// definition is LeaderWorkerSet v1 with the fields that matter here: what is none of them is
// pruned, or refused where a client asks for strict fields. Templates of pods are not looked into.
func definition() map[string]any {
	text, whole := map[string]any{"type": "string"}, map[string]any{"type": "integer", "format": "int32"}
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	free := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	template := object(map[string]any{"metadata": free, "spec": free})
	count := func(least int) map[string]any {
		return map[string]any{"type": "integer", "format": "int32", "default": 1, "minimum": least}
	}
	choice := func(first string, more ...string) map[string]any {
		return map[string]any{"type": "string", "default": first, "enum": append([]string{first}, more...)}
	}
	group := object(map[string]any{
		"size": count(1), "leaderTemplate": template, "workerTemplate": template,
		"restartPolicy": choice(recreate, "Default", "None", "RecreateGroupAfterStart"),
	})
	group["required"] = []string{"workerTemplate"}
	spec := object(map[string]any{
		"replicas": count(0), "leaderWorkerTemplate": group, "startupPolicy": choice("LeaderCreated", "LeaderReady"),
		"rolloutStrategy": free, "networkConfig": free,
	})
	spec["required"] = []string{"leaderWorkerTemplate"}
	status := object(map[string]any{
		"replicas": whole, "readyReplicas": whole, "updatedReplicas": whole, "hpaPodSelector": text,
		"conditions": map[string]any{"type": "array", "items": free},
	})
	return map[string]any{
		"apiVersion": definitionKind.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": setKind.GroupResource().String()},
		"spec": map[string]any{
			"group": setKind.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": "LeaderWorkerSet", "listKind": "LeaderWorkerSetList", "plural": setKind.Resource, "singular": "leaderworkerset", "shortNames": []string{"lws"}},
			"versions": []any{map[string]any{
				"name": setKind.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": object(map[string]any{"apiVersion": text, "kind": text, "metadata": map[string]any{"type": "object"}, "spec": spec, "status": status})},
			}},
		},
	}
}

// installSets makes the kind known and waits until it is served.
func (p *plane) installSets() error {
	if _, err := p.api.make(p.ctx, definitionKind, "", definition()); err != nil {
		return fmt.Errorf("definition of LeaderWorkerSet: %w", err)
	}
	var err error
	if !eventually(p.ctx, soon, func() bool {
		_, err = p.api.Resource(setKind).List(p.ctx, metav1.ListOptions{})
		return err == nil
	}) {
		return fmt.Errorf("LeaderWorkerSets are not served in time: %w", err)
	}
	return nil
}

// sets is the controller of LeaderWorkerSets.
type sets struct {
	api   *client
	ctx   context.Context
	dirty chan struct{}

	mu   sync.Mutex
	all  map[types.UID]*unstructured.Unstructured
	pods map[types.UID]*corev1.Pod

	groups map[string]*group // by the set's UID and the group's index
}

// group is what the controller remembers of one.
type group struct{ whole, ending bool }

// runSets runs the controller until the control plane ends.
func (p *plane) runSets() {
	s := &sets{
		api: p.api, ctx: p.ctx, dirty: make(chan struct{}, 1), groups: map[string]*group{},
		all: map[types.UID]*unstructured.Unstructured{}, pods: map[types.UID]*corev1.Pod{},
	}
	p.work.Go(func() { s.api.follow(s.ctx, setKind, metav1.ListOptions{}, s.noteSet) })
	p.work.Go(func() { s.api.follow(s.ctx, podKind, metav1.ListOptions{LabelSelector: setLabel}, s.notePod) })
	p.work.Go(s.run)
}

func (s *sets) noteSet(u *unstructured.Unstructured, gone bool) {
	s.mu.Lock()
	s.all[u.GetUID()] = u
	if gone {
		delete(s.all, u.GetUID())
	}
	s.mu.Unlock()
	s.wake()
}

func (s *sets) notePod(u *unstructured.Unstructured, gone bool) {
	pod := &corev1.Pod{}
	if decode(u, pod) != nil {
		return // no pod
	}
	s.mu.Lock()
	s.pods[pod.UID] = pod
	if gone {
		delete(s.pods, pod.UID)
	}
	s.mu.Unlock()
	s.wake()
}

func (s *sets) wake() {
	select {
	case s.dirty <- struct{}{}:
	default: // it will look anyway
	}
}

func (s *sets) run() {
	for {
		select {
		case <-s.dirty:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		all := make([]*unstructured.Unstructured, 0, len(s.all))
		for _, u := range s.all {
			all = append(all, u)
		}
		s.mu.Unlock()
		again := false
		for _, u := range all {
			if err := s.reconcile(u); err != nil {
				again = true
			}
		}
		if again && sleep(s.ctx, 5*firstBackOff) {
			s.wake()
		}
	}
}

// set is a LeaderWorkerSet as far as the controller looks at it.
type set struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas             int32
		StartupPolicy        string
		LeaderWorkerTemplate struct {
			Size                           int
			RestartPolicy                  string
			LeaderTemplate, WorkerTemplate *corev1.PodTemplateSpec
		}
	}
}

// reconcile makes the pods of a set what it says.
func (s *sets) reconcile(u *unstructured.Unstructured) error {
	var l set
	if err := fromJSON(u, &l); err != nil || l.DeletionTimestamp != nil {
		return nil // its pods go with it
	}
	if err := s.service(&l); err != nil {
		return err
	}
	var failed error
	ready := 0
	for i := range int(l.Spec.Replicas) {
		whole, err := s.reconcileGroup(&l, i)
		if err != nil {
			failed = err
			s.say(&l, "FailedCreate", err)
		}
		if whole {
			ready++
		}
	}
	if err := s.tell(u, &l, ready); err != nil && failed == nil {
		failed = err
	}
	return failed
}

// service is the set's own, by which pods find each other where there are names.
func (s *sets) service(l *set) error {
	_, err := s.api.in(serviceKind, l.Namespace).Get(s.ctx, l.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = s.api.make(s.ctx, serviceKind, l.Namespace, map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": l.Name, "ownerReferences": []any{ownedBy("LeaderWorkerSet", setKind.GroupVersion().String(), l.Name, l.UID)}},
		"spec":     map[string]any{"clusterIP": "None", "publishNotReadyAddresses": true, "selector": map[string]any{setLabel: l.Name}},
	})
	return err
}

func ownedBy(kind, version, name string, uid types.UID) map[string]any {
	return map[string]any{"apiVersion": version, "kind": kind, "name": name, "uid": string(uid), "controller": true, "blockOwnerDeletion": true}
}

// reconcileGroup makes the pods of a group, or ends them all where one of them has ended; ready
// says that all are.
func (s *sets) reconcileGroup(l *set, index int) (ready bool, err error) {
	key := string(l.UID) + "/" + strconv.Itoa(index)
	g := s.groups[key]
	if g == nil {
		g = &group{}
		s.groups[key] = g
	}
	size := l.Spec.LeaderWorkerTemplate.Size
	pods := s.podsOf(l, index)
	broken := slices.ContainsFunc(pods, ended) || g.whole && len(pods) < size
	if g.whole && broken && l.Spec.LeaderWorkerTemplate.RestartPolicy == recreate {
		g.ending = true
	}
	if g.ending {
		if len(pods) > 0 {
			return false, s.endGroup(l, pods)
		}
		*g = group{}
	}
	if err := s.makeGroup(l, index, pods); err != nil {
		return false, err
	}
	g.whole = g.whole || len(pods) == size
	return len(pods) == size && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return !isReady(p) }), nil
}

func (s *sets) podsOf(l *set, index int) (pods []*corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pods {
		if p.Namespace == l.Namespace && p.Labels[setLabel] == l.Name && p.Labels[groupLabel] == strconv.Itoa(index) {
			pods = append(pods, p)
		}
	}
	return pods
}

// ended says whether a pod has ended, or one of its containers that began again.
func ended(p *corev1.Pod) bool {
	restarted := func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 }
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed ||
		slices.ContainsFunc(p.Status.ContainerStatuses, restarted) || slices.ContainsFunc(p.Status.InitContainerStatuses, restarted)
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (s *sets) endGroup(l *set, pods []*corev1.Pod) error {
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		err := s.api.in(podKind, l.Namespace).Delete(s.ctx, p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// makeGroup makes what is missing of a group: the leader, and the workers once it is there.
func (s *sets) makeGroup(l *set, index int, pods []*corev1.Pod) error {
	var leader *corev1.Pod
	have := map[string]bool{}
	for _, p := range pods {
		have[p.Labels[workerLabel]] = true
		if p.Labels[workerLabel] == "0" {
			leader = p
		}
	}
	t := l.Spec.LeaderWorkerTemplate
	if leader == nil {
		first := t.WorkerTemplate
		if t.LeaderTemplate != nil {
			first = t.LeaderTemplate
		}
		return s.makePod(l, index, 0, first, ownedBy("LeaderWorkerSet", setKind.GroupVersion().String(), l.Name, l.UID))
	}
	if leader.DeletionTimestamp != nil || l.Spec.StartupPolicy == "LeaderReady" && !isReady(leader) {
		return nil
	}
	for i := 1; i < t.Size; i++ {
		if have[strconv.Itoa(i)] {
			continue
		}
		if err := s.makePod(l, index, i, t.WorkerTemplate, ownedBy("Pod", "v1", leader.Name, leader.UID)); err != nil {
			return err
		}
	}
	return nil
}

// makePod makes a pod of a group.
func (s *sets) makePod(l *set, index, worker int, template *corev1.PodTemplateSpec, owner map[string]any) error {
	name := fmt.Sprintf("%s-%d", l.Name, index)
	leader := name
	if worker > 0 {
		name = fmt.Sprintf("%s-%d", name, worker)
	}
	template = template.DeepCopy()
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace = name, l.Namespace
	for key, value := range map[string]string{setLabel: l.Name, groupLabel: strconv.Itoa(index), workerLabel: strconv.Itoa(worker)} {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "leaderworkerset.sigs.k8s.io/size", strconv.Itoa(l.Spec.LeaderWorkerTemplate.Size))
	if worker > 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "leaderworkerset.sigs.k8s.io/leader-name", leader)
	}
	env := []corev1.EnvVar{
		{Name: "LWS_LEADER_ADDRESS", Value: address}, // there are no names here
		{Name: "LWS_GROUP_SIZE", Value: strconv.Itoa(l.Spec.LeaderWorkerTemplate.Size)},
		{Name: "LWS_WORKER_INDEX", Value: strconv.Itoa(worker)},
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].Env = append(slices.Clone(env), list[i].Env...)
		}
	}
	u, err := encode(pod)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(u.Object, "status")
	if err := unstructured.SetNestedSlice(u.Object, []any{owner}, "metadata", "ownerReferences"); err != nil {
		return err
	}
	_, err = s.api.in(podKind, l.Namespace).Create(s.ctx, u, metav1.CreateOptions{FieldManager: "lws"})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// tell writes the set's status.
func (s *sets) tell(u *unstructured.Unstructured, l *set, ready int) error {
	was, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	if _, told, _ := unstructured.NestedMap(u.Object, "status"); told && int(was) == ready {
		return nil
	}
	available, progressing := "False", "True"
	if ready == int(l.Spec.Replicas) {
		available, progressing = "True", "False"
	}
	return ignoreMissing(s.api.merge(s.ctx, setKind, l.Namespace, l.Name, map[string]any{"status": map[string]any{
		"replicas": l.Spec.Replicas, "readyReplicas": ready, "updatedReplicas": ready,
		"conditions": []any{
			condition("Available", available, "AllGroupsReady", "All replicas are ready"),
			condition("Progressing", progressing, "GroupsProgressing", "Replicas are progressing"),
		},
	}}, "status"))
}

// say makes an event about a set.
func (s *sets) say(l *set, reason string, err error) {
	now := metav1.Now()
	_, _ = s.api.make(s.ctx, eventKind, l.Namespace, &corev1.Event{ // events may be lost
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{GenerateName: l.Name + ".", Namespace: l.Namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: setKind.GroupVersion().String(), Kind: "LeaderWorkerSet", Namespace: l.Namespace, Name: l.Name, UID: l.UID},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: err.Error(), Source: corev1.EventSource{Component: "leaderworkerset"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
}
