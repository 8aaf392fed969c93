package report

import (
	"strings"
	"testing"

	"perflab/internal/result"
)

// TestServiceFact: a run of a Service names it, with what is not known of it, and any other run has no such line.
func TestServiceFact(t *testing.T) {
	h := result.Header{Model: "m", Pods: []result.Pod{{Node: "n1"}, {Node: "n1"}}}
	text := func() string {
		var lines []string
		for _, f := range runFacts(h, false) {
			lines = append(lines, f.Label+": "+f.Value)
		}
		return strings.Join(lines, "\n")
	}
	if got := text(); strings.Contains(got, "Service") || !strings.Contains(got, "Pods on: n1 (2 pods)") {
		t.Errorf("pods of perflab's own:\n%s", got)
	}
	h.Service = &result.Service{Name: "prod/llama", Lacks: []string{"the account may not watch pods"}}
	if got := text(); !strings.Contains(got, "Service: prod/llama; the account may not watch pods") {
		t.Errorf("of a Service:\n%s", got)
	}
}
