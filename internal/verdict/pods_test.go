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
		at     *result.Service
		fleet  *result.Fleet
		status result.Status
		text   string
	}{
		{[]result.Pod{{Node: "a"}, {Node: "b"}}, nil, nil, result.Sound, "to the addresses of the pods, on a, b"},
		{[]result.Pod{{Node: "a"}, {Node: "b", Forwarded: true}}, nil, nil, result.Noted, "smoke test"},
		{[]result.Pod{{Node: "a", Forwarded: true}}, nil, &result.Fleet{}, result.Sound, "to the addresses of the pods, on a"}, // for who leads alone
		{[]result.Pod{{Node: "a"}}, &result.Service{Name: "prod/llama", Reach: result.ReachService}, nil, result.Sound, "requests went to the Service prod/llama, on a"},
		{[]result.Pod{{Node: "a"}}, &result.Service{Name: "prod/llama", Reach: result.ReachURL}, nil, result.Sound, "requests went to https://gate, before the Service prod/llama, on a"},
		{[]result.Pod{{Node: "a"}}, &result.Service{Name: "prod/llama", Reach: result.ReachPods}, nil, result.Sound, "the addresses of the pods of the Service prod/llama, on a"},
		{[]result.Pod{{Node: "a", Forwarded: true}}, &result.Service{Name: "prod/llama", Reach: result.ReachForward}, nil, result.Noted, "smoke test"},
		{nil, &result.Service{Name: "prod/llama", Reach: result.ReachService}, nil, result.Noted, "whose pods are not known"},
	} {
		status, text := judgePath(&result.Analysis{Header: result.Header{Pods: tt.pods, Service: tt.at, Fleet: tt.fleet, Targets: []string{"https://gate"}}})
		if status != tt.status || !strings.Contains(text, tt.text) {
			t.Errorf("%+v: %v, %s", tt.pods, status, text)
		}
	}
}
