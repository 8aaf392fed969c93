package kubetest

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waits is a pod whose first container waits for a reason.
func waits(reason string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) > 0 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == reason
	}
}

// first is the status of a pod's first container, an empty one before there is any.
func first(p *corev1.Pod) corev1.ContainerStatus {
	if len(p.Status.ContainerStatuses) == 0 {
		return corev1.ContainerStatus{Started: new(bool)}
	}
	return p.Status.ContainerStatuses[0]
}

// events are the reasons and messages of a pod's events.
func events(t *testing.T, c *Cluster, ns, name string) string {
	t.Helper()
	list, err := c.plane.api.in(eventKind, ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, u := range list.Items {
		b.WriteString(u.Object["reason"].(string) + ": " + u.Object["message"].(string) + "\n")
	}
	return b.String()
}

// has waits until a pod's events have a text.
func has(t *testing.T, c *Cluster, ns, name, text string) {
	t.Helper()
	if !eventually(t.Context(), soon, func() bool { return strings.Contains(events(t, c, ns, name), text) }) {
		t.Errorf("events of %s have no %q:\n%s", name, text, events(t, c, ns, name))
	}
}

// TestImages has images that cannot be had, and some that can be after a while.
func TestImages(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", nil)
	var there atomic.Bool
	c.Image("registry.example/late:v1", Image{Digest: "sha256:" + strings.Repeat("ab", 32), Entrypoint: []string{"sh", "-c", "exit 0"}, Pull: func(context.Context) error {
		if there.Load() {
			return nil
		}
		return errors.New("registry.example/late:v1: not found")
	}})
	slow := make(chan struct{})
	c.Image("registry.example/slow:v1", Image{Pull: func(ctx context.Context) error {
		select {
		case <-slow:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	c.Image("registry.example/private:v1", Image{Login: "user:word"})
	late := create(t, c, ns, onePod("late", object{"image": "registry.example/late:v1"}))
	create(t, c, ns, onePod("slow", object{"image": "registry.example/slow:v1", "command": []any{"true"}}))
	private := object{"image": "registry.example/private:v1", "command": []any{"true"}}
	create(t, c, ns, onePod("private", private))
	create(t, c, ns, onePod("never", object{"imagePullPolicy": "Never", "command": []any{"true"}}))
	create(t, c, ns, onePod("invalid", object{"image": "Registry.example/Engine", "command": []any{"true"}}))
	config := `{"auths": {"registry.example": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("user:word")) + `"}}}`
	secret := object{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson", "metadata": object{"name": "login"}, "stringData": object{".dockerconfigjson": config}}
	if _, err := c.plane.api.make(t.Context(), secretKind, ns, secret); err != nil {
		t.Fatal(err)
	}

	until(t, c, ns, late, waits("ErrImagePull"))
	got := until(t, c, ns, late, waits("ImagePullBackOff"))
	if text := got.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(text, "not found") {
		t.Errorf("message of the back-off: %q", text)
	}
	has(t, c, ns, late, "Failed: Failed to pull image \"registry.example/late:v1\"")
	there.Store(true)
	got = until(t, c, ns, late, phase(corev1.PodSucceeded))
	if id := got.Status.ContainerStatuses[0].ImageID; id != "registry.example/late@sha256:"+strings.Repeat("ab", 32) {
		t.Errorf("image %s", id)
	}
	has(t, c, ns, "slow", "Pulling: Pulling image")
	until(t, c, ns, "slow", waits("ContainerCreating"))
	close(slow)
	until(t, c, ns, "slow", phase(corev1.PodSucceeded))
	until(t, c, ns, "private", waits("ImagePullBackOff"))
	create(t, c, ns, onePod("known", private, object{"imagePullSecrets": []any{object{"name": "login"}}}))
	until(t, c, ns, "known", phase(corev1.PodSucceeded))
	until(t, c, ns, "never", waits("ErrImageNeverPull"))
	until(t, c, ns, "invalid", waits("InvalidImageName"))
}

// TestConfiguration has a container wait for what its environment and its files are made of.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", nil)
	models := t.TempDir()
	if err := os.WriteFile(filepath.Join(models, "weights"), []byte("weights\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Claim(t, ns, "models", models)
	pod := shell(`cat /models/weights /etc/engine/flags; echo "$TOKEN $POD" "$@"; cat $HERE; echo x > /cache/x && ls /cache`)
	pod["args"] = []any{"--", "$(TOKEN)", "$$(TOKEN)", "$(NOT)"}
	pod["env"] = []any{
		object{"name": "TOKEN", "valueFrom": object{"secretKeyRef": object{"name": "hub", "key": "token"}}},
		object{"name": "POD", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.labels['app']"}}},
		object{"name": "HERE", "value": "/etc/engine/flags"},
	}
	pod["volumeMounts"] = []any{
		object{"name": "models", "mountPath": "/models"}, object{"name": "flags", "mountPath": "/etc/engine"}, object{"name": "cache", "mountPath": "/cache"},
	}
	whole := onePod("a", pod, object{"volumes": []any{
		object{"name": "models", "persistentVolumeClaim": object{"claimName": "models"}},
		object{"name": "flags", "configMap": object{"name": "flags"}}, object{"name": "cache", "emptyDir": object{}},
	}})
	whole["metadata"].(object)["labels"] = object{"app": "engine"}
	name := create(t, c, ns, whole)
	has(t, c, ns, name, `FailedMount: MountVolume.SetUp failed for volume "flags" : configmap "flags" not found`)
	add := func(kind, name string, data object) {
		t.Helper()
		resource := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": object{"name": name}}
		gvr := configKind
		resource["data"] = data
		if kind == "Secret" {
			gvr = secretKind
			delete(resource, "data")
			resource["stringData"] = data
		}
		if _, err := c.plane.api.make(t.Context(), gvr, ns, resource); err != nil {
			t.Fatal(err)
		}
	}
	add("ConfigMap", "flags", object{"flags": "--flag\n"})
	got := until(t, c, ns, name, waits("CreateContainerConfigError"))
	if text := got.Status.ContainerStatuses[0].State.Waiting.Message; text != `secret "hub" not found` {
		t.Errorf("message %q", text)
	}
	add("Secret", "hub", object{"other": "x"})
	until(t, c, ns, name, func(p *corev1.Pod) bool {
		w := first(p).State.Waiting
		return w != nil && w.Message == "couldn't find key token in Secret "+ns+"/hub"
	})
	if err := c.plane.api.merge(t.Context(), secretKind, ns, "hub", object{"stringData": object{"token": "s3cret"}}); err != nil {
		t.Fatal(err)
	}
	until(t, c, ns, name, phase(corev1.PodSucceeded))
	if text, want := readLog(t, c, ns, name, ""), "weights\n--flag\ns3cret engine s3cret $(TOKEN) $(NOT)\n--flag\nx\n"; text != want {
		t.Errorf("log %q, not %q", text, want)
	}
}

// TestRestarts has containers that end: once, again and again, for want of memory.
func TestRestarts(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	n := c.Node(t, "node-1", nil)
	always := object{"restartPolicy": "Always"}
	loop := shell("echo try; exit 7")
	loop["terminationMessagePolicy"] = "FallbackToLogsOnError"
	create(t, c, ns, onePod("loop", loop, always))
	create(t, c, ns, onePod("missing", object{"command": []any{"no-such-program"}}))
	create(t, c, ns, onePod("big", shell("echo big; sleep 1000 & wait"), always))
	got := until(t, c, ns, "loop", func(p *corev1.Pod) bool {
		return waits("CrashLoopBackOff")(p) && first(p).RestartCount >= 2
	})
	s := got.Status.ContainerStatuses[0]
	if last := s.LastTerminationState.Terminated; last == nil || last.ExitCode != 7 || last.Reason != "Error" || last.Message != "try\n" || got.Status.Phase != corev1.PodRunning {
		t.Errorf("status of one that ends again and again: %+v", got.Status)
	}
	has(t, c, ns, "loop", "BackOff: Back-off restarting failed container engine")
	if text := readLog(t, c, ns, "loop", "?previous=true"); text != "try\n" {
		t.Errorf("previous log %q", text)
	}
	got = until(t, c, ns, "missing", phase(corev1.PodFailed))
	if s := got.Status.ContainerStatuses[0].State.Terminated; s.Reason != "StartError" || s.ExitCode != 128 || !strings.Contains(s.Message, `exec: "no-such-program": executable file not found`) {
		t.Errorf("status of one whose program is missing: %+v", s)
	}
	until(t, c, ns, "big", phase(corev1.PodRunning))
	if !eventually(t.Context(), soon, func() bool { return readLog(t, c, ns, "big", "") == "big\n" && len(n.Processes(t, ns, "big")) == 2 }) {
		t.Fatalf("processes %v", n.Processes(t, ns, "big"))
	}
	before := n.Processes(t, ns, "big")
	n.RunOutOfMemory(t, ns, "big", "engine")
	got = until(t, c, ns, "big", func(p *corev1.Pod) bool { return first(p).RestartCount == 1 })
	if last := got.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.Reason != "OOMKilled" || last.ExitCode != 137 {
		t.Errorf("status of one that ran out of memory: %+v", got.Status.ContainerStatuses[0])
	}
	for _, pid := range n.Processes(t, ns, "big") {
		if slices.Contains(before, pid) {
			t.Errorf("process %d outlives its container", pid)
		}
	}
	for _, name := range []string{"loop", "missing", "big"} {
		remove(t, c, ns, name)
	}
}

// TestDevices has pods on one machine, each of which sees GPUs of its own, by a program of the image.
func TestDevices(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", Resources{"nvidia.com/gpu": "3"})
	programs := t.TempDir()
	smi := "#!/bin/sh\necho \"$NVIDIA_VISIBLE_DEVICES\" | tr , '\\n'\n"
	if err := os.WriteFile(filepath.Join(programs, "nvidia-smi"), []byte(smi), 0o755); err != nil {
		t.Fatal(err)
	}
	c.Image("registry.example/engine:v1", Image{Programs: programs})
	pod := func(gpus int) object {
		o := shell("nvidia-smi; exec sleep 1000")
		o["resources"] = object{"limits": object{"nvidia.com/gpu": gpus}}
		return o
	}
	see := func(name string) []string {
		t.Helper()
		until(t, c, ns, name, isReady)
		text := ""
		eventually(t.Context(), soon, func() bool { text = readLog(t, c, ns, name, ""); return text != "" })
		return strings.Fields(text)
	}
	create(t, c, ns, onePod("one", pod(1)))
	create(t, c, ns, onePod("two", pod(2)))
	all := append(see("one"), see("two")...)
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != 3 {
		t.Errorf("GPUs of both pods: %q", all)
	}
	remove(t, c, ns, "two")
	remove(t, c, ns, "one")
	create(t, c, ns, onePod("three", pod(3)))
	again := see("three")
	slices.Sort(again)
	if !slices.Equal(again, all) {
		t.Errorf("GPUs %q, once those of %q are free", again, all)
	}
}

// TestInit has containers that run before others.
func TestInit(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", nil)
	step := func(name, script string, more object) object {
		o := object{"name": name, "image": "busybox", "command": []any{"sh", "-c", script}, "volumeMounts": []any{object{"name": "d", "mountPath": "/d"}}}
		maps.Copy(o, more)
		return o
	}
	pod := shell("cat /d/steps")
	pod["volumeMounts"] = []any{object{"name": "d", "mountPath": "/d"}}
	volumes := []any{object{"name": "d", "emptyDir": object{}}}
	create(t, c, ns, onePod("steps", pod, object{"volumes": volumes, "initContainers": []any{
		step("one", "echo one >> /d/steps", nil),
		step("beside", "touch /d/beside; exec sleep 1000", object{"restartPolicy": "Always", "startupProbe": object{"exec": object{"command": []any{"test", "-e", "/d/beside"}}}}),
		step("two", "test -e /d/beside && echo two >> /d/steps", nil),
	}}))
	create(t, c, ns, onePod("broken", pod, object{"volumes": volumes, "initContainers": []any{step("one", "exit 4", nil)}}))
	until(t, c, ns, "steps", phase(corev1.PodSucceeded))
	if text := readLog(t, c, ns, "steps", "?container=engine"); text != "one\ntwo\n" {
		t.Errorf("log %q", text)
	}
	got := until(t, c, ns, "broken", phase(corev1.PodFailed))
	if s := got.Status.InitContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 4 || got.Status.ContainerStatuses[0].State.Waiting == nil {
		t.Errorf("status of one whose first step fails: %+v", got.Status)
	}
}

// TestEnds has pods end by their machine: evicted, on one that fails, on one that is gone.
func TestEnds(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	n := c.Node(t, "node-1", nil)
	stays := shell("trap '' TERM; echo up; while :; do sleep 1000; done")
	create(t, c, ns, onePod("evicted", stays))
	until(t, c, ns, "evicted", phase(corev1.PodRunning))
	n.Evict(t, ns, "evicted")
	got := until(t, c, ns, "evicted", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed && first(p).State.Terminated != nil
	})
	if got.Status.Reason != "Evicted" || !strings.Contains(got.Status.Message, "low on resource: memory") || !slices.ContainsFunc(got.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }) {
		t.Errorf("status of one that is evicted: %+v", got.Status)
	}
	remove(t, c, ns, "evicted")

	create(t, c, ns, onePod("stubborn", stays, object{"terminationGracePeriodSeconds": 1}))
	until(t, c, ns, "stubborn", phase(corev1.PodRunning))
	remove(t, c, ns, "stubborn")

	create(t, c, ns, onePod("lost", stays))
	until(t, c, ns, "lost", phase(corev1.PodRunning))
	marker := n.find(ns, "lost").container("engine").marker()
	n.Fail(t)
	if pids := marked(marker); len(pids) > 0 {
		t.Errorf("processes %d outlive their machine", pids)
	}
	until(t, c, ns, "lost", func(p *corev1.Pod) bool { return !isReady(p) && p.Status.Phase == corev1.PodRunning })
	if err := c.plane.api.in(podKind, ns).Delete(t.Context(), "lost", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, c, ns, "lost", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })

	m := c.Node(t, "node-2", nil)
	create(t, c, ns, onePod("away", stays))
	until(t, c, ns, "away", phase(corev1.PodRunning))
	m.Gone(t)
	if !eventually(t.Context(), soon, func() bool {
		_, err := c.plane.api.in(podKind, ns).Get(t.Context(), "away", metav1.GetOptions{})
		return err != nil && ignoreMissing(err) == nil
	}) {
		t.Error("a pod outlives the machine that has left")
	}
}
