package outcome

import (
	"fmt"
	"slices"

	"perflab/internal/result"
	"perflab/internal/tune"
)

// JudgeRun decides whether a run may be told to the strategy. A server that
// answers every request of a workload with an HTTP error (prompts longer than
// it takes, say) cannot serve it in this configuration.
func JudgeRun(name string, s result.Summary) (status, reason string) {
	if failures, ok := s.Verdict.Check("failures"); ok && s.Figures["completed"] == 0 {
		if len(s.Failures) == 1 && s.Failures[result.HTTPStatus] > 0 {
			return tune.Refused, name + ": " + failures.Text
		}
		return tune.Failed, name + ": " + failures.Text
	}
	if s.Verdict.Status == result.Voided && !FailedCalls(s) {
		return tune.Void, fmt.Sprintf("%s: %s", name, s.Verdict.Why())
	}
	if rate, ok := s.Figures["success_rate"]; !ok || rate < MinSuccess {
		return tune.Failed, fmt.Sprintf("%s: %.0f of %.0f calls failed", name, s.Figures["failed"], s.Figures["failed"]+s.Figures["completed"])
	}
	return tune.Measured, ""
}

// FailedCalls reports whether it is calls that failed which make a run void, and
// nothing of the measurement: another run of the same configuration fails too.
func FailedCalls(s result.Summary) bool {
	return !slices.ContainsFunc(s.Verdict.Checks, func(c result.Check) bool {
		return c.Status == result.Voided && c.Name != result.CheckFailures
	})
}

// Again says why a measurement is made again on the same server; "" where it stands. A void one
// may be chance, but where the engine refused every call or failed a share of them; one in which
// the engine stood still with idle GPUs tells what its kernels took to compile, which the next
// does not pay.
func Again(s result.Summary) string {
	switch s.Verdict.Status {
	case result.Voided:
		if status, _ := JudgeRun("", s); status != tune.Refused && !FailedCalls(s) {
			return "void, measured again: " + s.Verdict.Why()
		}
	case result.Noted:
		if c, _ := s.Verdict.Check(result.CheckPauses); c.Status == result.Noted {
			return "the engine stood still, measured again: " + c.Text
		}
	}
	return ""
}

// MinSuccess is the share of calls that must succeed for a run's throughput
// to be comparable with another's.
const MinSuccess = 0.99

// Saturated reports whether a run fell behind its rate, for want of the server or of its limit on
// concurrency.
func Saturated(s result.Summary) bool {
	for _, name := range []string{result.CheckSaturation, result.CheckLimit} {
		if c, _ := s.Verdict.Check(name); c.Status.WorseThan(result.Sound) {
			return true
		}
	}
	return false
}
