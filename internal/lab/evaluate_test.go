package lab

import (
	"strings"
	"testing"

	"perflab/internal/result"
	"perflab/internal/tune"
)

// run is a run with this many calls ended and failed, and one check.
func runOf(workload string, completed, failed float64, failures map[result.Class]int, check result.Check) *result.Run {
	return &result.Run{Workload: workload, Summary: result.Summary{
		Figures:  map[string]float64{"completed": completed, "failed": failed, "success_rate": completed / (completed + failed), "duration": 2},
		Failures: failures,
		Verdict:  result.Verdict{Status: check.Status, Checks: []result.Check{check}},
	}}
}

// TestTake: the first workload decides what a trial is worth, the others are
// said beside it.
func TestTake(t *testing.T) {
	sound := result.Check{Name: "failures", Status: result.Sound, Text: "none failed"}
	none := result.Check{Name: "failures", Status: result.Noted, Text: "10 of 10 calls failed"}
	late := result.Check{Name: "dispatch_lag", Status: result.Voided, Text: "the client was late"}
	http := map[result.Class]int{result.HTTPStatus: 10}
	mixed := map[result.Class]int{result.HTTPStatus: 9, result.EarlyClose: 1}
	tests := []struct {
		name           string
		runs           []*result.Run
		status, reason string
		notes          string
	}{
		{"all good", []*result.Run{runOf("a", 10, 0, nil, sound), runOf("b", 10, 0, nil, sound)}, tune.Measured, "", ""},
		{"cannot be served", []*result.Run{runOf("a", 0, 10, http, none)}, tune.Refused, "a: 10 of 10", ""},
		{"breaks", []*result.Run{runOf("a", 0, 10, mixed, none)}, tune.Failed, "a: 10 of 10", ""},
		{"too many fail", []*result.Run{runOf("a", 98, 2, mixed, sound)}, tune.Failed, "a: 2 of 100 calls failed", ""},
		{"few fail", []*result.Run{runOf("a", 199, 1, mixed, sound)}, tune.Measured, "", ""},
		{"void", []*result.Run{runOf("a", 10, 0, nil, late)}, tune.Void, "a: the client was late", ""},
		{"another workload cannot be served", []*result.Run{runOf("a", 10, 0, nil, sound), runOf("b", 0, 10, http, none)}, tune.Measured, "", "Workload b: 10 of 10 calls failed (refused)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &trialRecord{Trial: result.Trial{Status: tune.Measured}}
			goesOn := true
			for _, run := range tt.runs {
				goesOn = r.take(run)
			}
			if r.Status != tt.status || !strings.Contains(r.Reason, tt.reason) || (tt.reason == "") != (r.Reason == "") {
				t.Errorf("status %q, reason %q, want %q, %q", r.Status, r.Reason, tt.status, tt.reason)
			}
			if notes := strings.Join(r.Notes, "; "); notes != tt.notes {
				t.Errorf("notes %q, want %q", notes, tt.notes)
			}
			if goesOn != (tt.status == tune.Measured) || r.LoadS != float64(2*len(tt.runs)) {
				t.Errorf("goes on: %v, load %v s", goesOn, r.LoadS)
			}
		})
	}
}
