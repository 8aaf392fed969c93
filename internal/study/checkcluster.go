package study

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/deploy/kube"
	"perflab/internal/field"
	"perflab/internal/redact"
)

// pods checks what is said of a cluster, and that engines can be pods there.
func (c places) pods() {
	s, at := c.s, "runtime.kubernetes"
	if s.Runtime.Kind != Kubernetes {
		if s.Runtime.Kind == Existing && s.Runtime.Service != "" {
			c.serviceSettings()
		} else if s.Runtime.Kubernetes != nil && s.Runtime.Kind != "" {
			c.add(at, "kubernetes does not apply to runtime kind %s", s.Runtime.Kind)
		}
		return
	}
	if n := s.Hardware.Nodes; n > 1 && s.Hardware.GPUs%n != 0 {
		c.add("hardware.nodes", "%d gpus do not spread evenly over %d nodes", s.Hardware.GPUs, n)
	}
	seen := map[string]bool{}
	for _, name := range s.usedEngines() {
		for _, e := range field.All(s.Cluster(name).Validate()) {
			text := strings.TrimSpace(e.Path + " " + e.Reason)
			if e.Path == "" { // which an engine may have of its own
				text = name + ": " + text
			}
			if !seen[text] {
				c.add(field.Join(at, e.Path), "%s", text)
			}
			seen[text] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		c.podSecrets(name)
	}
	gpu, err := arch.LookupAccelerator(s.Hardware.GPU)
	if known := err == nil && gpu.Platform != arch.CPU; known && s.Cluster("").Resource == "" {
		c.add(at, "resource is missing: the name by which the cluster offers %s, as kubectl describe node shows it", gpu.Title)
	}
	c.spread()
}

// podSecrets refuses values of secrets, which whoever may read pods could read.
func (c places) podSecrets(engineName string) {
	use, named := c.s.Engines[engineName], map[string]string{}
	if k := c.s.Runtime.Kubernetes; k != nil {
		named = k.Secrets
	}
	shown := redact.Env(use.Env)
	for i, kv := range use.Env {
		name, _, _ := strings.Cut(kv, "=")
		at := field.Index("engines."+engineName+".env", i)
		switch {
		case named[name] != "":
			c.add(at, "%s is named under runtime.kubernetes.secrets too: leave it out here", name)
		case shown[i] != kv:
			c.add(at, "the value of %s would stand in the cluster for whoever may read pods: create a Secret, and name it under runtime.kubernetes.secrets as %[1]s: SECRET/KEY", name)
		}
	}
	for _, part := range []struct {
		key   string
		flags []string
	}{{"flags", use.Flags}, {"prefill.flags", use.Prefill.Flags}, {"decode.flags", use.Decode.Flags}, {"router", use.Router}} {
		if shown := redact.Argv(part.flags); !slices.Equal(shown, part.flags) {
			c.add("engines."+engineName+"."+part.key, "a secret stands here, and would stand in the cluster for whoever may read pods: create a Secret, name it under runtime.kubernetes.secrets, and use the engine's variable for it")
		}
	}
	if file := any(use.File); len(use.File) > 0 && !reflect.DeepEqual(redact.Tree("", file), file) {
		c.add("engines."+engineName+".file", "a secret stands here, and would stand in the cluster for whoever may read its objects: leave it out")
	}
}

// LoadAgents are the agents that send the study's loads from beside its engines; nil: this machine sends them.
func (f *File) LoadAgents() *kube.Agents {
	inCluster := f.Runtime.Kind == Kubernetes || f.Runtime.Kind == Existing && f.Runtime.Service != ""
	if !inCluster || f.Runtime.Kubernetes == nil {
		return nil
	}
	return f.Runtime.Kubernetes.Load
}
