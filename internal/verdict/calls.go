package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/result"
)

func judgePartial(a *result.Analysis) (result.Status, string) {
	if a.Repeats > 0 {
		return result.Voided, fmt.Sprintf("call %d is there more than once: these are the calls of several runs, or some of them twice", a.FirstRepeat)
	}
	if !a.Partial && a.Client != nil && a.Client.Unsent > 0 {
		return result.Noted, fmt.Sprintf("%d later turns of conversations or sessions were never sent because a turn before them failed; %d calls were made", a.Client.Unsent, a.Total)
	}
	if !a.Partial {
		return result.Sound, fmt.Sprintf("all %d calls of the run are here", a.Total)
	}
	why := "the run left no record of its client"
	if a.Client != nil {
		why = cmp.Or(lostText(a), a.Client.StopNote, "the run was stopped")
	}
	if a.Header.Requests > a.Total {
		return result.Noted, fmt.Sprintf("partial: %d of %d planned calls, %s", a.Total, a.Header.Requests, why)
	}
	return result.Noted, fmt.Sprintf("partial: %d calls, %s", a.Total, why)
}

// failedVoid is the share of failed calls from which a run is void. Calls do not
// fail by chance: they are those that took too long, or came when the server was
// fullest, and of what they would have taken nothing is known. If it was more than
// all others took, the q-quantile of all calls is the q/(1-f)-quantile of those that
// succeeded, and there is none from 1-f on: above 1 % of failures P99 has no bound,
// above 5 % P95, and above a tenth none of the usual percentiles but the median, while
// the server had a tenth less to do than was asked of it.
const failedVoid = 0.10

// judgeFailures judges how far the calls that succeeded can stand for all; how
// many failures a user bears is the caller's limit. Calls that were
// cancelled, as by an interrupt, did not fail; the run is partial.
func judgeFailures(a *result.Analysis) (result.Status, string) {
	if len(a.Failures) == 0 {
		return result.Sound, fmt.Sprintf("none of %d calls failed", a.Total)
	}
	cancelled := a.Failures[result.Cancelled]
	ended := a.Total - cancelled
	failed := ended - a.Completed
	if failed == 0 || a.Completed == 0 {
		return result.Noted, a.FailureText()
	}
	share := float64(failed) / float64(ended)
	bounded := math.Floor(1e4*(1-share)) / 100
	text := fmt.Sprintf("percentiles above P%g have no bound, since a call that failed has no latency: %s", bounded, a.FailureText())
	if share > failedVoid {
		return result.Voided, "the calls that succeeded do not stand for all, " + text
	}
	return result.Noted, text
}

func judgeField(a *result.Analysis) (result.Status, string) {
	if len(a.NewFields) == 0 {
		return result.Sound, "every field that grew is known"
	}
	names := strings.Join(slices.Sorted(maps.Keys(a.NewFields)), ", ")
	return result.Noted, "the server streams text in a field not known to carry tokens, counted as tokens: " + names
}

// judgeOrder looks for stamps that cannot be.
func judgeOrder(a *result.Analysis) (result.Status, string) {
	if a.Disorder.Text != "" {
		return result.Voided, "stamps are out of order, " + a.Disorder.Text
	}
	return result.Sound, fmt.Sprintf("the stamps of %d calls are in order", a.Completed)
}

// judgeIdentity checks TTFT + TPOT*(n-k) = E2E for every call that has a TPOT.
func judgeIdentity(a *result.Analysis) (result.Status, string) {
	switch {
	case a.Identity.Text != "":
		return result.Voided, a.Identity.Text
	case a.Identified == 0:
		return notJudged("no call has tokens in more than one read")
	}
	return result.Sound, fmt.Sprintf("TTFT + TPOT*(n-k) = E2E for each of %d calls", a.Identified)
}

// judgeGaps checks the inter-token latencies against the calls: their sum is
// what lies between first and last tokens, to 1e-9 of it, and half of them are
// above zero. A client that sees only some of the chunks, or stamps them when
// it parses them, fails one or the other.
func judgeGaps(a *result.Analysis) (result.Status, string) {
	n := a.Samples["itl"]
	if n == 0 {
		return notJudged("no call has tokens in more than one read")
	}
	sum, between := a.Figures["mean_itl_ms"]*float64(n), milliseconds(a.Between)
	text := fmt.Sprintf("%d gaps sum to %.3f s of %.3f s between first and last tokens, median %.3f ms", n, sum/1e3, between/1e3, a.Figures["median_itl_ms"])
	if !(math.Abs(sum-between) <= 1e-9*max(between, 1e6)) || !(a.Figures["median_itl_ms"] > 0) {
		return result.Voided, "the inter-token latencies are impossible: " + text
	}
	return result.Sound, text
}

// judgePeak checks the raw busiest second against what it must be: the tokens
// fit into ceil(D) windows of 1 s, so one of them holds at least sum n/ceil(D);
// and it cannot hold more than there are.
func judgePeak(a *result.Analysis) (result.Status, string) {
	mean, ok := a.Figures["output_throughput"]
	if !ok || a.Peak == 0 {
		return notJudged("no token has a stamp")
	}
	least := float64(a.OutputTokens) / math.Ceil(a.Figures["duration"]+1e-9)
	printed := a.Figures["max_output_tokens_per_s"]
	const rounding = 1e-6 // of sums over fractional weights
	if a.Peak < least*(1-rounding) || a.Peak > float64(a.OutputTokens)*(1+rounding) || printed < mean {
		return result.Voided, fmt.Sprintf("the busiest second holds %.2f tokens, of %d in %.2f s at a mean of %.2f tok/s", a.Peak, a.OutputTokens, a.Figures["duration"], mean)
	}
	return result.Sound, fmt.Sprintf("peak %.2f tok/s >= mean %.2f tok/s", printed, mean)
}
