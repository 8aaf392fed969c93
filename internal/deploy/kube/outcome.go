package kube

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"perflab/internal/deploy"
	"perflab/internal/redact"
)

// outcome is how a container ended.
type outcome struct {
	status string
	code   int
	why    deploy.End
}

// outcomeOf says how a container of a pod ended, and false as long as it runs. A container that was
// started again has ended: what runs since is another launch.
func outcomeOf(p seen, container string) (o outcome, over bool) {
	taken, isTaken := takenAway(p)
	s, found := statusOf(p.Pod, container)
	t := s.State.Terminated
	if t == nil && found && s.RestartCount > 0 {
		t = s.LastTerminationState.Terminated
	}
	switch {
	case t != nil:
		o.status, o.code = exitText(int(t.ExitCode), t.Reason, t.Message), int(t.ExitCode)
		if t.Reason == oomKilled {
			o.why.Help = "the container took more memory than its limit: raise memory, or lower what the engine takes of the machine's memory (/dev/shm and caches of files count)"
		}
		if isTaken {
			o.status, o.why = taken.status+", "+o.status, taken.why
		}
		return o, true
	case p.gone || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded || found && s.RestartCount > 0 || isTaken && lost(p):
		if !isTaken {
			taken = outcome{status: "status unknown", why: deploy.End{Outside: true, Help: "see its events in the directory of the logs"}}
		}
		taken.code = -1
		return taken, true
	}
	return o, false
}

const oomKilled = "OOMKilled"

// lost reports whether nobody will say how a pod ends: its node does not answer, or it has had the
// time to end and has not.
func lost(p seen) bool {
	return p.Status.Reason == nodeLost || silent(p.Pod) || p.DeletionTimestamp != nil && time.Since(p.DeletionTimestamp.Time) > lostAfter
}

const nodeLost = "NodeLost"

// silent reports whether the cluster has given up a pod's node. It says so by taking the pod's
// readiness away, while the kubelet's last word is that all containers are ready.
func silent(p *corev1.Pod) bool {
	ready := map[corev1.PodConditionType]corev1.PodCondition{}
	for _, c := range p.Status.Conditions {
		ready[c.Type] = c
	}
	whole := ready[corev1.PodReady]
	return ready[corev1.ContainersReady].Status == corev1.ConditionTrue && whole.Status == corev1.ConditionFalse &&
		whole.Reason != "ReadinessGatesNotReady"
}

// lostAfter is how long after its grace a pod counts as ended. Clocks of machines differ.
const lostAfter = time.Minute

// statusOf is what the kubelet says of a container.
func statusOf(p *corev1.Pod, container string) (s corev1.ContainerStatus, ok bool) {
	if p == nil {
		return s, false
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == container {
			return s, true
		}
	}
	return s, false
}

// disruptions are reasons for which a cluster takes a pod away, in words, and what to do.
var disruptions = map[string][2]string{
	"Evicted":                {"the node evicted its pod", "the node lacked memory or disk: ask for memory (memory), so that the pod is not the first to go, or use another node"},
	"PreemptionByScheduler":  {"a pod of higher priority took its place", "give the pods a priorityClassName in pod, or run when the cluster is less busy"},
	"Preempted":              {"a pod of higher priority took its place", "give the pods a priorityClassName in pod, or run when the cluster is less busy"},
	"Preempting":             {"a pod of higher priority took its place", "give the pods a priorityClassName in pod, or run when the cluster is less busy"},
	"DeletionByTaintManager": {"its node got a taint that the pod does not tolerate", "see kubectl describe node, or add tolerations in pod"},
	"EvictionByEvictionAPI":  {"its pod was evicted, as when a node is drained", "ask who drains nodes, or use another node"},
	"DeletionByPodGC":        {"its node is gone", "start again on another node"},
	"TerminationByKubelet":   {"the node ended its pod", "the node was shut down or lacked something: see kubectl describe node"},
	nodeLost:                 {"its node does not answer", "see kubectl describe node, or use another node"},
	"NodeShutdown":           {"its node was shut down", "start again on another node"},
	"Terminated":             {"its node was shut down", "start again on another node"},
	takenByQueue:             {"the queue took its place back", "the queue gave its quota to others: start again when it is free, or use a queue of higher priority"},
}

// takenByQueue is Kueue's condition of a pod that it ends.
const takenByQueue = "TerminationTarget"

// takenAway says why a pod was taken from its engine, whatever the engine did.
func takenAway(p seen) (o outcome, ok bool) {
	if p.Pod == nil {
		return o, false
	}
	reason, message := p.Status.Reason, p.Status.Message
	if _, known := disruptions[reason]; !known {
		for _, c := range p.Status.Conditions {
			switch {
			case c.Status != corev1.ConditionTrue:
			case c.Type == corev1.DisruptionTarget:
				reason, message = c.Reason, c.Message
			case c.Type == takenByQueue:
				reason, message = takenByQueue, c.Message
			}
		}
	}
	if silent(p.Pod) {
		reason, message = nodeLost, ""
	}
	d, known := disruptions[reason]
	switch {
	case known:
	case p.Status.Phase == corev1.PodFailed && reason != "":
		d = [2]string{"its pod failed (" + reason + ")", "see its events in the directory of the logs"}
	case p.DeletionTimestamp != nil || p.gone:
		d, message = [2]string{"its pod was deleted", "somebody deleted the pod, the Lease " + p.Labels[labelInstance] + " that owns it, or the whole namespace"}, ""
	default:
		return o, false
	}
	o.status, o.why = d[0], deploy.End{Outside: true, Help: d[1]}
	if message != "" {
		o.status += " (" + sentence(message) + ")"
	}
	if p.Spec.NodeName != "" && !strings.Contains(message, p.Spec.NodeName) {
		o.status += " on " + p.Spec.NodeName
	}
	return o, true
}

// exitText is "exit status 137 (signal: killed)", as of other containers.
func exitText(code int, reason, message string) string {
	text := "exit status " + strconv.Itoa(code)
	const base, signals = 128, 65
	switch {
	case reason == oomKilled:
		text += " (the kernel ended it: out of memory)"
	case reason == "ContainerStatusUnknown":
		text = "status unknown: " + cmp.Or(sentence(message), "its node does not say how it ended")
	case code > base && code < base+signals && message == "":
		text += " (signal: " + syscall.Signal(code-base).String() + ")"
	}
	return text
}

// sentence is what the cluster says, on one line, without secrets.
func sentence(message string) string {
	return redact.Text(strings.TrimSuffix(strings.Join(strings.Fields(message), " "), "."))
}

// describePod names a pod for people.
func describePod(p *corev1.Pod) string {
	if p.Spec.NodeName == "" {
		return "pod " + p.Name
	}
	return fmt.Sprintf("pod %s on node %s", p.Name, p.Spec.NodeName)
}
