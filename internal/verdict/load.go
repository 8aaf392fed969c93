package verdict

import (
	"fmt"
	"math"
	"strings"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// burst reports whether all requests were due at once.
func burst(a *result.Analysis) bool { return a.Burst() }

// closed reports whether calls wait for each other's places and for nothing
// else: they have no due times, or were all due at once, and are more than the limit lets
// through.
func closed(a *result.Analysis) bool {
	return a.Header.Limit > 0 && a.Header.Limit < a.Total && (a.Header.Closed || burst(a))
}

// judgeLittle compares the mean calls in flight L over the steady window with
// the throughput X of calls that end in it times their mean time R from Sent
// to End. The two differ exactly by what the calls cut by the window's ends
// have inside and outside, so a difference means that the load was not steady,
// as a trace's seldom is: a remark on what the figures mean, no doubt of them.
func judgeLittle(a *result.Analysis) (result.Status, string) {
	w := a.Steady
	switch {
	case !w.OK:
		return result.Sound, "not applicable: the run has no steady window"
	case w.InFlight == 0:
		return result.Sound, "not applicable: the calls take no time"
	case w.Seconds() < 3*w.CallTime || w.Ends < 100:
		return result.Sound, fmt.Sprintf("not applicable: the steady window of %.2f s holds %d ends of calls that take %.2f s; it needs 100 and 3 times as long", w.Seconds(), w.Ends, w.CallTime)
	}
	x := float64(w.Ends) / w.Seconds()
	apart := math.Abs(x*w.CallTime/w.InFlight - 1)
	text := fmt.Sprintf("%.2f calls in flight, %.2f req/s x %.3f s = %.2f, %.1f %% apart", w.InFlight, x, w.CallTime, x*w.CallTime, 100*apart)
	if apart > 0.15 {
		return result.Remark, "the load was not steady: " + text
	}
	return result.Sound, text
}

func judgeBurst(a *result.Analysis) (result.Status, string) {
	switch {
	case a.Completed < 2 || !burst(a):
		return result.Sound, "requests were due one after another"
	case a.Header.Limit > 0 && a.Header.Limit < a.Total:
		return result.Sound, fmt.Sprintf("all requests were due at once and %d were let through at a time", a.Header.Limit)
	}
	latency := "TTFT"
	if a.Pooling() {
		latency = "the latency"
	}
	return result.Remark, fmt.Sprintf("burst: all %d requests were due at once, so %s is mostly the time in the server's queue", a.Total, latency)
}

// judgeSamples remarks on percentiles that fewer calls than needed stand behind.
func judgeSamples(a *result.Analysis) (result.Status, string) {
	var thin []string
	for _, p := range a.Options.AskedPercentiles() {
		if need := stat.MinSamples(p / 100); p > 0 && p < 100 && a.Completed < need {
			thin = append(thin, fmt.Sprintf("%s needs %d", strings.ToUpper(result.PercentileName(p)), need))
		}
	}
	if len(thin) == 0 {
		return result.Sound, fmt.Sprintf("%d calls are enough for the percentiles", a.Completed)
	}
	return result.Remark, fmt.Sprintf("%d calls are few: %s", a.Completed, strings.Join(thin, ", "))
}
