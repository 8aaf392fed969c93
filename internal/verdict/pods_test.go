package verdict

import (
	"strings"
	"testing"

	"perflab/internal/result"
)

// TestPath: figures that went through the API server are no figures of the engine, and say so.
func TestPath(t *testing.T) {
	for _, tt := range []struct {
		pods   []result.Pod
		status result.Status
		text   string
	}{
		{[]result.Pod{{Node: "a"}, {Node: "b"}}, result.Sound, "to the addresses of the pods, on a, b"},
		{[]result.Pod{{Node: "a"}, {Node: "b", Forwarded: true}}, result.Noted, "smoke test"},
	} {
		status, text := judgePath(&result.Analysis{Header: result.Header{Pods: tt.pods}})
		if status != tt.status || !strings.Contains(text, tt.text) {
			t.Errorf("%+v: %v, %s", tt.pods, status, text)
		}
	}
}
