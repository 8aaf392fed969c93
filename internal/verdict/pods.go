package verdict

import (
	"strings"

	"perflab/internal/result"
)

// judgePath judges how requests reached the pods of a cluster: a port that is forwarded through
// the API server carries all streams in one connection, beside everything else that the server does.
func judgePath(a *result.Analysis) (result.Status, string) {
	h := a.Header
	forwarded := h.Forwarded() && h.Fleet == nil // agents are beside the engines
	switch {
	case forwarded:
		return result.Noted, "requests went through a port-forward of the API server: good for a smoke test, its latencies and rates are not those of the engine"
	case h.Service == nil:
		return result.Sound, "requests went to the addresses of the pods, on " + result.PodsText(h.Pods)
	case len(h.Pods) == 0:
		return result.Noted, "requests went to " + servicePath(h) + ", whose pods are not known: that one was replaced in the middle would not have been seen"
	}
	return result.Sound, "requests went to " + servicePath(h) + ", on " + result.PodsText(h.Pods)
}

// servicePath says where the requests of a Service's run went.
func servicePath(h result.Header) string {
	name := "the Service " + h.Service.Name
	switch h.Service.Reach {
	case result.ReachURL:
		return strings.Join(h.Targets, ", ") + ", before " + name
	case result.ReachPods, result.ReachForward: // by a fleet
		return "the addresses of the pods of " + name
	}
	return name
}
