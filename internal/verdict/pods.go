package verdict

import "perflab/internal/result"

// judgePath judges how requests reached the pods of a cluster: a port that is forwarded through
// the API server carries all streams in one connection, beside everything else that the server does.
func judgePath(a *result.Analysis) (result.Status, string) {
	if a.Header.Forwarded() {
		return result.Noted, "requests went through a port-forward of the API server: good for a smoke test, its latencies and rates are not those of the engine"
	}
	return result.Sound, "requests went to the addresses of the pods, on " + result.PodsText(a.Header.Pods)
}
