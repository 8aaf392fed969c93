package study

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"perflab/internal/engine/cluster"
	"perflab/internal/field"
)

// places checks where engines run.
type places struct{ *checker }

// machines checks what is said of machines that ssh reaches, and how replicas span them.
func (c places) machines() {
	r := c.s.Runtime
	if n := c.s.Hardware.Nodes; n > 1 && (r.Kind == Process || r.Kind == Docker) {
		c.add("hardware.nodes", "hardware.nodes is %d, and runtime kind %s starts engines on one machine: use kind ssh with hosts, or kubernetes", n, r.Kind)
	}
	if r.Kind != SSH {
		given := map[string]bool{"hosts": len(r.Hosts) > 0, "ssh_config": r.SSHConfig != "", "direct": r.Direct, "spread": r.Spread != "" && r.Kind != Kubernetes}
		for _, key := range slices.Sorted(maps.Keys(given)) {
			if given[key] && r.Kind != "" {
				c.add("runtime."+key, "%s does not apply to runtime kind %s", key, r.Kind)
			}
		}
		return
	}
	if len(r.Machines) > 0 {
		return
	}
	if len(r.Hosts) == 0 {
		c.add("runtime", "runtime kind ssh needs hosts: the machines that engines run on")
		return
	}
	gpus, seen := 0, map[string]bool{}
	for i, h := range r.Hosts {
		at := field.Index("runtime.hosts", i)
		if err := h.Validate(); err != nil {
			c.add(at, "%v", err)
		}
		if seen[h.Name] {
			c.add(at, "host %s is listed twice", h.Name)
		}
		seen[h.Name] = true
		gpus += cmp.Or(h.GPUs, len(h.Devices))
	}
	switch n := c.s.Hardware.GPUs; {
	case gpus > 0 && gpus != n:
		c.add("runtime.hosts", "the hosts have %d gpus together, and hardware.gpus is %d", gpus, n)
	case gpus == 0 && n%len(r.Hosts) != 0:
		c.add("runtime.hosts", "%d gpus do not spread evenly over %d hosts: say how many gpus each has", n, len(r.Hosts))
	}
	c.spread()
}

// spread checks that each engine of the study can span machines as the study says.
func (c places) spread() {
	method := c.s.Runtime.Spread
	if method == "" {
		return
	}
	for _, name := range c.s.usedEngines() {
		if known := cluster.Methods(name); !slices.Contains(known, method) {
			c.add("runtime.spread", "%s cannot span machines by %s: it has %s", name, method, strings.Join(known, ", "))
		}
	}
}

// containers checks what is said of containers.
func (c places) containers() {
	s := c.s
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		switch at := "engines." + name + ".image"; {
		case s.Engines[name].Image == "" || s.InContainers() || s.Runtime.Kind == Kubernetes || s.Runtime.Kind == "":
		case s.Runtime.Kind == Fleet:
			c.add(at, "image is for containers, and runtime kind fleet starts processes: add docker: {} under runtime for containers")
		default:
			c.add(at, "image applies to runtime kinds docker, kubernetes and fleet, not %s", s.Runtime.Kind)
		}
	}
	if !s.InContainers() {
		if s.Runtime.Docker != nil && s.Runtime.Kind != "" {
			c.add("runtime.docker", "docker does not apply to runtime kind %s", s.Runtime.Kind)
		}
		return
	}
	for _, name := range s.usedEngines() {
		set := s.Container(name)
		err := set.Validate()
		if s.Runtime.Kind == Fleet {
			err = errors.Join(set.ValidateOnNode(), err)
		}
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				c.add("runtime.docker", "%s: %s", name, line)
			}
		}
	}
}
