package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"perflab/internal/redact"
)

// event is one of a replica's objects, as it is kept.
type event struct {
	Time    time.Time `json:"time"`
	Object  string    `json:"object"` // Pod/NAME
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count,omitempty"`
}

// evidenceOf writes down the pods of a replica as they are: what was asked for, where they run, and
// from which images.
func (l *launch) evidenceOf(g *group, dir string) {
	pods, _, _ := l.view.all()
	var b bytes.Buffer
	slices.SortFunc(pods, func(a, b seen) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range pods {
		if p.Labels[labelApp] != g.name {
			continue
		}
		plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.Pod)
		if err != nil {
			continue // it came from there
		}
		delete(mapping(plain, "metadata"), "managedFields")
		text, err := yaml.Marshal(plain)
		if err != nil {
			continue
		}
		b.WriteString("---\n")
		b.WriteString(redact.Text(string(text)))
	}
	l.keep(filepath.Join(dir, fmt.Sprintf("replica-%d.pod.yaml", g.replica)), b.Bytes())
}

// evidence writes down what the cluster knows before it is asked to forget it.
func (l *launch) evidence() {
	ctx, cancel := context.WithTimeout(context.Background(), evidenceTime)
	defer cancel()
	for _, g := range l.groups {
		dir := l.host.spec.Dir
		if dir == "" {
			return // of a pod for a command
		}
		l.evidenceOf(g, dir)
		names := []string{g.name}
		pods, _, _ := l.view.all()
		for _, p := range pods {
			if p.Labels[labelApp] == g.name {
				names = append(names, p.Name)
			}
		}
		var b bytes.Buffer
		for _, name := range names {
			list, err := l.events(ctx, name)
			if err != nil {
				continue // without the right, or the API server, there are none
			}
			for _, e := range list {
				text, err := json.Marshal(event{when(e), e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, e.Type, e.Reason, sentence(e.Message), e.Count})
				if err == nil {
					b.Write(append(text, '\n'))
				}
			}
		}
		if b.Len() > 0 {
			l.keep(filepath.Join(dir, fmt.Sprintf("replica-%d.events.jsonl", g.replica)), b.Bytes())
		}
	}
}

// evidenceTime is how long an end waits for events.
const evidenceTime = 5 * time.Second

// keep writes a file of evidence; a measurement does not fail for want of it.
func (l *launch) keep(path string, text []byte) {
	if len(text) == 0 {
		return
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		l.host.tell("evidence is not kept: " + err.Error())
	}
}

// Place is where a replica runs.
type Place struct {
	Replica int      `json:"replica"`
	Pod     string   `json:"pod"`
	UID     string   `json:"uid"`
	Node    string   `json:"node"`
	Image   string   `json:"image,omitempty"`   // by digest
	GPUs    []string `json:"gpus,omitempty"`    // UUIDs
	Forward bool     `json:"forward,omitempty"` // reached through the API server, which is no way for a measurement
	Metrics string   `json:"metrics,omitempty"` // of a Service's pod: how they are read, ReachPods or ReachForward; "": they are not
}

var _ Placed = (*deployment)(nil)

// Placed is a deployment that knows where it runs.
type Placed interface {
	Places(ctx context.Context) []Place
}

// Places are where the pods of the deployment run, leaders and workers.
func (d *deployment) Places(ctx context.Context) (out []Place) {
	d.host.mu.Lock()
	runs, l := slices.Clone(d.host.runs), d.host.launch
	d.host.mu.Unlock()
	if l == nil {
		return nil
	}
	pods, _, _ := l.view.all()
	for _, g := range l.groups {
		for _, p := range pods {
			if p.Labels[labelApp] != g.name || p.Spec.NodeName == "" {
				continue
			}
			place := Place{Replica: g.replica, Pod: p.Name, UID: string(p.UID), Node: p.Spec.NodeName}
			for _, s := range p.Status.ContainerStatuses {
				if place.Image == "" {
					place.Image = imageOf(s)
				}
			}
			for _, r := range runs {
				if r.pod == p.UID {
					place.Forward = place.Forward || r.Forwarded()
				}
			}
			place.GPUs = l.gpus(ctx, l.op, p.Pod)
			out = append(out, place)
		}
	}
	slices.SortFunc(out, func(a, b Place) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// gpus are the UUIDs of the GPUs that the containers of a pod see, where they were given some.
func (c *cluster) gpus(ctx context.Context, op string, p *corev1.Pod) (out []string) {
	for _, container := range p.Spec.Containers {
		if !accelerated(container) {
			continue
		}
		var b bytes.Buffer
		if err := c.exec(ctx, op, p.Name, container.Name, []string{"nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"}, &b); err != nil {
			continue // AMD's, say
		}
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "GPU-") || strings.HasPrefix(line, "MIG-") {
				out = append(out, line)
			}
		}
	}
	return out
}

// accelerated reports whether a container was given NVIDIA GPUs.
func accelerated(c corev1.Container) bool {
	for name := range c.Resources.Limits {
		if strings.HasPrefix(string(name), "nvidia.com/") {
			return true
		}
	}
	return false
}

// learn takes note of the image that pods were given.
func (r *Runtime) learn(h *host) {
	h.mu.Lock()
	l := h.launch
	h.mu.Unlock()
	if l == nil {
		return
	}
	pods, _, _ := l.view.all()
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			if image := imageOf(s); image != "" {
				r.mu.Lock()
				r.image = image
				r.mu.Unlock()
				return
			}
		}
	}
}
