package kubetest

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status is the pod's as the kubelet shows it.
func (p *pod) status() corev1.PodStatus {
	s := corev1.PodStatus{
		HostIP: address, HostIPs: []corev1.HostIP{{IP: address}}, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &p.begun,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	initialized := true
	for _, c := range p.containers {
		cs, done := c.status(cmp.Or(p.pending, "ContainerCreating"), p.message)
		if c.init {
			s.InitContainerStatuses = append(s.InitContainerStatuses, cs)
			initialized = initialized && (done || c.sidecar() && cs.Started != nil && *cs.Started)
			continue
		}
		s.ContainerStatuses = append(s.ContainerStatuses, cs)
	}
	// What ran beside the containers may have ended since.
	initialized = initialized || p.initialized
	p.initialized = initialized
	s.Phase = p.phase(s, initialized)
	if p.reason != "" {
		s.Phase, s.Reason = corev1.PodFailed, p.reason
		s.Message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 60Mi."
		p.set(&s, corev1.DisruptionTarget, true, "TerminationByKubelet", s.Message)
	}
	ready := initialized && s.Phase == corev1.PodRunning
	for _, cs := range s.ContainerStatuses {
		ready = ready && cs.Ready
	}
	why := ""
	if !ready {
		why = "ContainersNotReady"
	}
	p.set(&s, corev1.PodReadyToStartContainers, s.Phase != corev1.PodFailed && s.Phase != corev1.PodSucceeded, "", "")
	p.set(&s, corev1.PodInitialized, initialized, "", "")
	p.set(&s, corev1.ContainersReady, ready, why, "")
	p.set(&s, corev1.PodReady, ready, why, "")
	return s
}

// set adds a condition; its instant is that of its last change.
func (p *pod) set(s *corev1.PodStatus, kind corev1.PodConditionType, holds bool, reason, message string) {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
	if holds {
		c.Status = corev1.ConditionTrue
	}
	if old := p.ready[kind]; old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	p.ready[kind] = c
	s.Conditions = append(s.Conditions, c)
}

// unready are the pod's conditions with Ready false for a reason, those of others left out.
func (p *pod) unready(reason string) []any {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []any{}
	for kind, c := range p.ready {
		if kind == corev1.PodReady {
			c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionFalse, reason, metav1.Now()
		}
		out = append(out, c)
	}
	return append(out, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: p.begun})
}

// phase is the pod's place in its life.
func (p *pod) phase(s corev1.PodStatus, initialized bool) corev1.PodPhase {
	if !initialized {
		for _, c := range s.InitContainerStatuses {
			if t := c.State.Terminated; t != nil && t.ExitCode != 0 && p.object.Spec.RestartPolicy == corev1.RestartPolicyNever {
				return corev1.PodFailed
			}
		}
		return corev1.PodPending
	}
	ended, failed := 0, false
	for i, c := range s.ContainerStatuses {
		t := c.State.Terminated
		switch {
		case c.State.Waiting != nil && c.LastTerminationState.Terminated == nil:
			return corev1.PodPending
		case t != nil && (p.deleting || p.reason != "" || !p.restarts(p.object.Spec.Containers[i], int(t.ExitCode))):
			ended++
			failed = failed || t.ExitCode != 0
		}
	}
	switch {
	case ended < len(s.ContainerStatuses):
		return corev1.PodRunning
	case failed:
		return corev1.PodFailed
	}
	return corev1.PodSucceeded
}

// restarts says whether a container that ended with a code begins again.
func (p *pod) restarts(c corev1.Container, code int) bool {
	if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
		return true
	}
	switch p.object.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	}
	return true
}

// status is a container's; done says that it has ended well. The reason and the message are why
// it waits if it has not come so far itself.
func (c *container) status(pending, message string) (s corev1.ContainerStatus, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s = corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ImageID: c.imageID, ContainerID: c.containerID(), RestartCount: c.restarts,
		State: c.state, LastTerminationState: c.last, Ready: c.ready, Started: new(c.started),
	}
	if s.State == (corev1.ContainerState{}) {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: pending, Message: message}
	}
	if t := s.State.Terminated; t != nil && c.init {
		done = t.ExitCode == 0
		s.Ready = done
	}
	return s, done
}

// Back-off of restarts and pulls: a hundredth of the kubelet's ten seconds to five minutes.
const (
	firstBackOff = 100 * time.Millisecond
	lastBackOff  = 3 * time.Second
)

// backOff is the pause before the next try after some that failed.
func backOff(failed int) time.Duration {
	if failed <= 0 {
		return 0
	}
	return min(firstBackOff<<min(failed-1, 10), lastBackOff)
}

// exitError is a command's end with another code than 0, as the kubelet's streams know it.
type exitError struct{ code int }

func (e *exitError) Error() string {
	return fmt.Sprintf("command terminated with exit code %d", e.code)
}
func (e *exitError) String() string  { return e.Error() }
func (e *exitError) Exited() bool    { return true }
func (e *exitError) ExitStatus() int { return e.code }

var errNotRunning = errors.New("the container does not run")
