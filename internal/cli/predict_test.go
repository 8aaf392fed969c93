package cli

import (
	"slices"
	"testing"

	"perflab/internal/workload"
)

// TestPromptOf: a predicted prompt is all that is sent, in as many tokens as
// the workload counts.
func TestPromptOf(t *testing.T) {
	r := workload.Request{
		System: "be brief", Prompt: "and why", Input: 6,
		History: []workload.Message{{Role: "user", Content: "who"}, {Role: "assistant", Content: "me"}},
	}
	all := promptOf(r)
	if len(all) != 6 || slices.Equal(all, promptOf(workload.Request{Prompt: "and why", Input: 6})) {
		t.Errorf("%v", all)
	}
	for _, n := range []int{3, 9} {
		r.Input = n
		if ids := promptOf(r); len(ids) != n || !slices.Equal(ids[:3], all[:3]) {
			t.Errorf("%d tokens: %v", n, ids)
		}
	}
	if ids := promptOf(workload.Request{IDs: []int32{7, 8}, Input: 2}); !slices.Equal(ids, []uint32{7, 8}) {
		t.Errorf("ids %v", ids)
	}
}
