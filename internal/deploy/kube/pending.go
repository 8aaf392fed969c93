package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"perflab/internal/deploy"
)

// stage is how far a pod is on its way to running.
type stage int

const (
	queued    stage = iota // Kueue has not let it in
	unplaced               // no node was found, or nobody has made the pod
	preparing              // on a node: volumes, images
	begun                  // its containers run, or have ended
)

// standing is where a pod stands, and what it waits for.
type standing struct {
	stage
	why string
	bad *deploy.InfraError // why it will never run; nil: it may
}

// standingOf looks at a pod; containers are those that have to be running.
func standingOf(p *corev1.Pod, containers []string) standing {
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
			continue
		}
		if c.Reason == corev1.PodReasonSchedulingGated {
			return standing{stage: queued, why: "waits in the queue"}
		}
		return standing{stage: unplaced, why: sentence(cmp.Or(c.Message, c.Reason))}
	}
	if len(p.Spec.SchedulingGates) > 0 {
		return standing{stage: queued, why: "waits in the queue"}
	}
	if p.Spec.NodeName == "" {
		return standing{stage: unplaced, why: "the scheduler has not looked at it yet"}
	}
	out := standing{stage: begun}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if bad := waitFault(p, s); bad != nil {
			return standing{stage: preparing, bad: bad}
		}
	}
	for _, s := range p.Status.InitContainerStatuses {
		if bad := initFault(p, s); bad != nil {
			return standing{stage: preparing, bad: bad}
		}
	}
	for _, name := range containers {
		s, found := statusOf(p, name)
		if !found || s.State.Running == nil && s.State.Terminated == nil && s.RestartCount == 0 {
			out = standing{stage: preparing, why: "is being made on node " + p.Spec.NodeName}
		}
		if s.State.Waiting != nil && s.State.Waiting.Message != "" && out.stage == preparing {
			out.why += ": " + sentence(s.State.Waiting.Message)
		}
	}
	if out.stage == preparing && p.Status.Phase == corev1.PodFailed {
		return standing{stage: begun} // it ends as it is
	}
	return out
}

// containersOf are the names of a pod's containers.
func containersOf(p *corev1.Pod) (out []string) {
	for _, c := range p.Spec.Containers {
		out = append(out, c.Name)
	}
	return out
}

// definite are words of registries for which another try cannot help.
var definite = []string{"not found", "manifest unknown", "unauthorized", "denied", "authentication required", "no match for platform", "no matching manifest"}

// waitFault says why a container that waits will wait for ever.
func waitFault(p *corev1.Pod, s corev1.ContainerStatus) *deploy.InfraError {
	w := s.State.Waiting
	if w == nil || s.RestartCount > 0 {
		return startFault(p, s)
	}
	message := sentence(w.Message)
	fault := &deploy.InfraError{Err: fmt.Errorf("%s: %s: %s", describePod(p), w.Reason, message), Lasting: true}
	switch w.Reason {
	case "ErrImagePull", "RegistryUnavailable", "ImageInspectError":
		if !slices.ContainsFunc(definite, func(s string) bool { return strings.Contains(strings.ToLower(message), s) }) {
			return nil // it is tried again
		}
		fault.Help = imageHelp(s.Image, message)
	case "ImagePullBackOff":
		fault.Help, fault.Lasting = imageHelp(s.Image, message), false
	case "InvalidImageName":
		fault.Help = "correct image: " + s.Image + " is no name of one"
	case "ErrImageNeverPull":
		fault.Help = "the image is not on the node and the pod says that it is not to be pulled: correct imagePullPolicy in pod, or load the image there"
	case "CreateContainerConfigError":
		fault.Help = "create the Secret or ConfigMap, or its key, that is named here in the namespace " + p.Namespace + ", or correct secrets"
	case "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError":
		explainProgram(fault, p, s.Name, message)
	default:
		return nil
	}
	return fault
}

func imageHelp(image, message string) string {
	lower := strings.ToLower(message)
	switch {
	case strings.Contains(lower, "unauthorized") || strings.Contains(lower, "denied") || strings.Contains(lower, "authentication"):
		return "the registry wants a login, or has no image " + image + ": name a Secret with one in pull_secrets, or correct image"
	case strings.Contains(lower, "not found") || strings.Contains(lower, "unknown"):
		return "there is no image " + image + ": correct its name or tag"
	case strings.Contains(lower, "toomanyrequests") || strings.Contains(lower, "rate limit"):
		return "the registry limits pulls without a login: name a Secret with one in pull_secrets, or wait"
	case strings.Contains(lower, "platform"):
		return "the image " + image + " is not made for the node's processor: choose another tag, or a nodeSelector in pod"
	}
	return "the node cannot pull the image " + image + ": see whether it reaches the registry"
}

// startFault is about a container whose program could not be started at all.
func startFault(p *corev1.Pod, s corev1.ContainerStatus) *deploy.InfraError {
	for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
		if t == nil || t.Reason != "StartError" && t.Reason != "ContainerCannotRun" {
			continue
		}
		fault := &deploy.InfraError{Err: fmt.Errorf("%s: %s: %s", describePod(p), t.Reason, sentence(t.Message)), Lasting: true}
		explainProgram(fault, p, s.Name, t.Message)
		return fault
	}
	return nil
}

// initFault is about a container that should have ended well before the engine's begin.
func initFault(p *corev1.Pod, s corev1.ContainerStatus) *deploy.InfraError {
	t := s.State.Terminated
	if t == nil {
		t = s.LastTerminationState.Terminated
	}
	if t == nil || t.ExitCode == 0 {
		return nil
	}
	return &deploy.InfraError{
		Err:  fmt.Errorf("the init container %s of %s ended with %s", s.Name, describePod(p), exitText(int(t.ExitCode), t.Reason, t.Message)),
		Help: "see kubectl logs " + p.Name + " -c " + s.Name + " -n " + p.Namespace + ", or correct the pod template of the study",
	}
}

// await returns the pod of a replica once its containers run, or have run. Of others' time (a queue,
// the search for a node, an image) it tells, and bounds what the settings bound.
func (l *launch) await(ctx context.Context, g *group) (*corev1.Pod, error) {
	defer l.host.idle()()
	w := waiting{launch: l, group: g, since: time.Now()}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		pods, changed, err := l.view.all()
		if err != nil {
			return nil, l.explain(l.op+": watch pods", err)
		}
		pod, s, err := w.look(g.current(pods))
		if err != nil || pod != nil && s.stage == begun {
			return pod, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-changed:
		case <-tick.C: // what takes less is not worth telling
			w.tell(s)
			if err := w.ask(ctx, pod); err != nil {
				return nil, err
			}
		}
	}
}

const lookEvery = time.Second

// waiting is the wait for one replica.
type waiting struct {
	*launch
	*group
	stage   stage
	since   time.Time // of the stage
	blocked string    // what events say of volumes and the like
	pulls   bool      // an image is being pulled
}

// look takes in how the pods of the replica stand: the one that serves must have begun, and the
// others too where a replica has several.
func (w *waiting) look(pods []seen) (lead *corev1.Pod, s standing, err error) {
	s = standing{stage: unplaced, why: "no pod has been made yet"}
	if len(pods) >= w.size {
		s = standing{stage: begun}
	}
	for _, p := range pods {
		if w.leads(p.Pod) {
			lead = p.Pod
		}
		at := standingOf(p.Pod, containersOf(p.Pod))
		if at.bad != nil {
			at.bad.Op = w.op
			return lead, at, at.bad
		}
		if at.stage < s.stage {
			s = at
		}
	}
	if s.stage != w.stage {
		w.stage, w.since = s.stage, time.Now()
	}
	if s.stage == begun {
		return lead, s, nil
	}
	return lead, s, w.overdue(s)
}

// tell says what a replica waits for.
func (w *waiting) tell(s standing) {
	what := fmt.Sprintf("replica %d ", w.replica)
	switch s.stage {
	case queued:
		what += "waits in the queue " + w.Queue
	case unplaced:
		what += "waits for a node: " + s.why
	default:
		what += cmp.Or(w.blocked, s.why)
	}
	w.host.tell(what)
}

// overdue is the error of a replica that has waited for longer than the settings allow. An image
// may take what it takes, and so may a queue for which no time was given.
func (w *waiting) overdue(s standing) error {
	limit := w.Pending()
	if s.stage != queued {
		limit = cmp.Or(limit, usualPending)
	}
	if limit == 0 || time.Since(w.since) < limit || s.stage == preparing && w.pulls {
		return nil
	}
	e := &deploy.InfraError{Op: w.op, Err: fmt.Errorf("replica %d has waited %v for a node: %s", w.replica, limit, s.why)}
	switch s.stage {
	case queued:
		e.Err = fmt.Errorf("replica %d has waited %v in the queue %s", w.replica, limit, w.Queue)
		e.Help = "allow more time (pending_timeout_s), or use another queue"
	case preparing:
		e.Err = fmt.Errorf("replica %d could not be made on its node within %v: %s", w.replica, limit, cmp.Or(w.blocked, s.why))
		e.Help = "see kubectl describe pod, correct mounts, or allow more time (pending_timeout_s)"
	default:
		e.Help = "free a node, correct what the pods ask for (resource, cpu, memory, nodeSelector and tolerations in pod), or allow more time (pending_timeout_s)"
	}
	return e
}

// ask looks for what pods themselves do not say: why none is made, or why one does not begin.
func (w *waiting) ask(ctx context.Context, pod *corev1.Pod) error {
	if pod == nil {
		return w.refusal(ctx)
	}
	if w.stage != preparing {
		return nil
	}
	events, err := w.events(ctx, pod.Name)
	if err != nil {
		w.pulls = true // nobody can say that it is not an image that takes so long
		return nil
	}
	w.blocked = ""
	for _, e := range events {
		switch {
		case e.Reason == "Pulling":
			w.pulls = true
		case e.Reason == "Pulled" || e.Reason == "Created" || e.Reason == "Started":
			w.pulls = false
		case e.Type == corev1.EventTypeWarning && !strings.Contains(e.Reason, "Back") && e.Reason != "FailedScheduling":
			w.blocked = e.Reason + ": " + sentence(e.Message)
		}
		if w.pulls {
			w.blocked = ""
		}
	}
	if w.pulls {
		w.blocked = "node " + pod.Spec.NodeName + " pulls " + w.Image
	}
	return nil
}

// refusal is why the cluster makes no pod: a quota, a webhook, a policy.
func (w *waiting) refusal(ctx context.Context) error {
	message := ""
	switch w.kind {
	case podKind:
		return nil
	case deploymentKind:
		u, err := w.of(deploymentKind).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return nil // the watch says what is the matter
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			c, _ := c.(map[string]any)
			if c["type"] == "ReplicaFailure" && c["status"] == "True" {
				message, _ = c["message"].(string)
			}
		}
	default:
		maker := w.name
		if w.kind == jobKind {
			maker = w.launch.name
		}
		events, err := w.events(ctx, maker)
		if err != nil {
			return nil
		}
		for _, e := range events {
			if e.Reason == "FailedCreate" {
				message = e.Message
			}
		}
	}
	if message == "" {
		return nil
	}
	return refused(w.op+": make a pod", message)
}

// events are those of an object, the oldest first.
func (c *cluster) events(ctx context.Context, name string) (out []corev1.Event, err error) {
	list, err := c.of(eventKind).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		var e corev1.Event
		if err := into(&list.Items[i], &e); err == nil {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b corev1.Event) int { return when(a).Compare(when(b)) })
	return out, nil
}

// when an event was last seen.
func when(e corev1.Event) time.Time {
	switch {
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
