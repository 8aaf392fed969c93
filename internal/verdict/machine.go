package verdict

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"perflab/internal/result"
)

// Shares of the processor time of the load generator's machine.
const (
	// busyShare is from where on the processors count as full: then whoever becomes
	// ready waits for another to leave.
	busyShare = 0.95
	// othersShare is what other programs may take without a word: a machine's own services
	// stay below it.
	othersShare = 0.05
)

// leastTime is the processor time that the kernel's counters, which go in hundredths of a second,
// tell apart to 2 %.
const leastTime = 500 * time.Millisecond

// judgeMachine judges who used the processors of the load generator's machine: an engine
// beside it that had to wait for one is not as fast as it could be.
func judgeMachine(a *result.Analysis) (result.Status, string) {
	if a.Client == nil {
		return notJudged(noClient(a))
	}
	m := a.Client.Machine
	if m == nil || m.Time <= 0 {
		return notJudged("the run does not say who used the processors of this machine")
	}
	if m.Time < leastTime {
		return notJudged("the run is too short for the kernel's counters of processor time")
	}
	busy, others := 1-m.Share(m.Idle), m.Share(m.Others())
	text := fmt.Sprintf("of the machine's %d processors %.0f %% was used: ", m.CPUs, 100*busy) + strings.Join(users(m), ", ")
	if wait, step := milliseconds(m.EngineWaits.Mean()), stepMS(a); wait > result.Doubtful*step {
		return result.Noted, fmt.Sprintf("the engine, which runs on this machine, waited %.3f ms for a processor each time that it had something to do, %.1f %% of the %.2f ms that a step took: %s; give it and the load generator a machine each, or end other programs",
			wait, 100*wait/step, step, text)
	}
	if busy > busyShare && (m.Here || others > othersShare) {
		return result.Noted, "the processors were full, so that " + sufferers(m) + " waited for them: " + text + "; give each a machine, or end other programs"
	}
	if others > othersShare {
		return result.Remark, "other programs ran on this machine: " + text
	}
	return result.Sound, text
}

// stepMS is what an engine does between two times that it waits for a processor, as far as a
// client sees it: a step of decoding, else a whole answer.
func stepMS(a *result.Analysis) float64 { return cmp.Or(a.Figures["median_itl_ms"], answerMS(a)) }

// sufferers are those whose times are in the figures.
func sufferers(m *result.Machine) string {
	if m.Here {
		return "the engine and the load generator"
	}
	return "the load generator"
}

// users are the shares of those who used the processors.
func users(m *result.Machine) []string {
	percent := func(what string, share float64) string { return fmt.Sprintf("%s %.0f %%", what, 100*share) }
	parts := []string{percent("load generator", m.Share(m.Client))}
	if m.Processes > 0 {
		parts = append(parts, percent("engine", m.Share(m.Engine)))
	}
	other := percent("other programs", m.Share(m.Others()))
	if m.Here && m.Processes == 0 {
		other += " (the engine may be among them: its processes could not be told)"
	}
	parts = append(parts, other)
	if m.Share(m.Stolen) >= 0.005 { // else it would be written as zero
		parts = append(parts, percent("taken by the host", m.Share(m.Stolen)))
	}
	return parts
}
