package study

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/deploy/kube"
	"perflab/internal/field"
)

// ServiceTarget is the Service that the study measures; false where it measures none.
func (f *File) ServiceTarget() (kube.Service, bool) {
	r := f.Runtime
	if r.Kind != Existing || r.Service == "" {
		return kube.Service{}, false
	}
	s := kube.Service{Name: r.Service, Port: r.Port, URLs: r.URLs}
	if r.Kubernetes != nil {
		s.Settings = *r.Kubernetes
	}
	return s, true
}

// service checks what is said of a Service.
func (c places) service() {
	r := c.s.Runtime
	switch {
	case r.Service == "":
		if r.Port != "" {
			c.add("runtime.port", "port is that of a service: name the Service, or leave port out")
		}
		return
	case r.Kind == "":
		return
	case r.Kind != Existing:
		c.add("runtime.service", "service applies to runtime kind existing, not %s", r.Kind)
		return
	case r.Hooks != (Hooks{}):
		c.add("runtime.hooks", "hooks start and stop what urls name, and a service is measured as it is: leave out one of them")
	}
	if err := kube.CheckService(r.Service, r.Port); err != nil {
		c.add("runtime.service", "%v", err)
	}
}

// ofService are the settings of a cluster that a Service of others has a use for.
const ofService = "kubeconfig context namespace reach load pending_timeout_s"

// serviceSettings checks what is said of the cluster of a Service.
func (c places) serviceSettings() {
	k, at := c.s.Runtime.Kubernetes, "runtime.kubernetes"
	if k == nil {
		return
	}
	given := map[string]any{}
	if b, err := json.Marshal(k); err != nil || json.Unmarshal(b, &given) != nil {
		c.add(at, "kubernetes cannot be read")
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(strings.Fields(ofService), key) {
			c.add(field.Join(at, key), "%s is for pods that perflab makes, and those of a service are there: leave it out", key)
		}
	}
	if reaches := []string{kube.ReachService, kube.ReachPods, kube.ReachForward}; k.Reach != "" && !slices.Contains(reaches, k.Reach) {
		c.add(field.Join(at, "reach"), "%q must be %s", k.Reach, strings.Join(reaches, " or "))
	}
	if k.Reach != "" && len(c.s.Runtime.URLs) > 0 {
		c.add(field.Join(at, "reach"), "reach says how requests get to the service, and urls send them elsewhere: leave out one of them")
	}
	if k.Load != nil {
		for _, e := range field.All(k.Load.Validate()) {
			c.add(field.Join(at+".load", e.Path), "%s", strings.TrimSpace(fmt.Sprint(e.Path, " ", e.Reason)))
		}
	}
}
