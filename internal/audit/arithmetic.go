package audit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/interop"
	"perflab/internal/result"
)

// signs finds figures that cannot be negative and are.
func signs(g figures) []Finding {
	var out []Finding
	for _, f := range g.run.Figures {
		if strings.HasSuffix(f.Name, "_dispatch_lag_ms") || !exactly(0).above(of(f)) {
			continue
		}
		out = append(out, g.finding("negative-figure", Error, "", fmt.Sprintf("%s is %s, and cannot be negative", f.Label, f.Text), f.Name))
	}
	return out
}

// rates are the throughputs that are a count over the duration.
var rates = [...]struct {
	name   string
	counts []string
	unit   string
}{
	{"request_throughput", []string{"completed"}, "req/s"},
	{"output_throughput", []string{"total_output_tokens"}, "tok/s"},
	{"total_token_throughput", []string{"total_input_tokens", "total_output_tokens"}, "tok/s"},
}

// count is the sum of counts.
func (g figures) count(names []string) (Interval, bool) {
	v, ok := g.all(names...)
	sum := Interval{}
	for _, x := range v {
		sum = sum.plus(x)
	}
	return sum, ok
}

// Windows of throughputs, as shares of the duration.
const (
	samplingEnds = 0.02  // that a mean local rate is longer at most
	sameWindow   = 0.001 // that a window is shorter at most to be the run
)

// throughputs checks rates against counts and duration.
func throughputs(g figures) []Finding {
	duration, ok := g.get("duration")
	if !ok {
		return sumOfRates(g)
	}
	var out []Finding
	for _, r := range rates {
		n, ok := g.count(r.counts)
		rate, ok2 := g.get(r.name)
		want := n.Over(duration)
		if !ok || !ok2 || rate.Meets(want) {
			continue
		}
		expected := num(want.mid()) + " " + r.unit
		if math.IsInf(want.Hi, 1) {
			expected = "at least " + num(want.Lo) + " " + r.unit
		}
		cite := slices.Concat([]string{r.name, "duration"}, r.counts)
		failed, _ := g.get("failed")
		switch window := n.Over(rate); {
		case r.name == "request_throughput" && failed.Lo > 0 && rate.Meets(n.plus(failed).Over(duration)):
			out = append(out, g.finding("throughput-definition", Warning, expected,
				fmt.Sprintf("%s %s counts the %s failed requests: successful ones came at %s", g.by[r.name].Label, g.text(r.name), g.text("failed"), expected), append(cite, "failed")...))
		case g.windowed(r.name, window, duration):
			if window.Lo > duration.Hi || duration.Lo-window.Hi < sameWindow*duration.Lo && r.name != "output_throughput" {
				continue // local rates differ from the mean by their ends; the output throughput speaks for all
			}
			if r.name == "total_token_throughput" && slices.ContainsFunc(out, func(f Finding) bool { return f.Type == "throughput-window" }) {
				continue
			}
			off := fmt.Sprintf("%+.2f %%", 100*(rate.mid()/want.mid()-1))
			out = append(out, g.finding("throughput-window", Warning, expected+", printed "+off,
				fmt.Sprintf("%s %s is over %s s and not over the %s s of the run, which gives %s: %s off, and by another share in each run", g.by[r.name].Label, g.text(r.name), num(window.mid()), g.text("duration"), expected, off), cite...))
		default:
			out = append(out, g.finding("throughput", Error, expected,
				fmt.Sprintf("%s %s is not %s / %s s = %s", g.by[r.name].Label, g.text(r.name), num(n.mid()), g.text("duration"), expected), cite...))
		}
	}
	return out
}

// windowed reports whether a throughput fits the mean local rate of a client:
// its window ends early and begins late by no more than a request's wait and
// its latency, or it is longer by the ends of the sampling.
func (g figures) windowed(name string, window, duration Interval) bool {
	if g.definition(name) != result.RateWeighted && g.definition("output_throughput") != result.RateWeighted {
		return false
	}
	if window.Lo <= (1+samplingEnds)*duration.Hi && window.Hi >= duration.Lo {
		return true
	}
	if window.Lo > duration.Hi {
		return false
	}
	lost := 0.0
	for _, names := range [][]string{{"max_ttft_ms", "p99_ttft_ms"}, {"max_e2el_ms", "p99_e2el_ms"}} {
		i := slices.IndexFunc(names, func(n string) bool { _, ok := g.by[n]; return ok })
		if i < 0 {
			return true // how long the ends were is not known
		}
		v, _ := g.get(names[i])
		lost += v.Hi / 1000
	}
	return window.Hi >= duration.Lo-lost
}

// sumOfRates checks the total throughput where no duration is given.
func sumOfRates(g figures) []Finding {
	v, ok := g.all("total_token_throughput", "output_throughput", "total_input_tokens", "total_output_tokens")
	if !ok || v[1].Lo <= 0 || v[3].Lo <= 0 || g.definition("output_throughput") == result.RateWeighted {
		return nil
	}
	want := v[1].times(v[2].plus(v[3]).Over(v[3]))
	if v[0].Meets(want) {
		return nil
	}
	return []Finding{g.finding("throughput-sum", Error, num(want.mid())+" tok/s",
		fmt.Sprintf("the total throughput is %s, and %s output tok/s with these token counts make %s", g.text("total_token_throughput"), g.text("output_throughput"), num(want.mid())),
		"total_token_throughput", "output_throughput", "total_input_tokens", "total_output_tokens")}
}

// counts checks numbers of requests.
func counts(g figures) []Finding {
	var out []Finding
	done, ok := g.get("completed")
	failed, _ := g.get("failed")
	sent, err := strconv.ParseFloat(g.run.Header.Label("num_prompts"), 64)
	if all := done.plus(failed); ok && err == nil && sent > 0 && all.above(exactly(sent)) {
		out = append(out, g.finding("counts", Error, "", fmt.Sprintf("%s requests ended and %s were sent", num(all.Lo), num(sent)), "completed", "failed"))
	}
	if ok && done == exactly(0) && failed.Lo > 0 {
		out = append(out, g.finding("no-success", Warning, "", fmt.Sprintf("none of the %s succeeded: there is nothing to measure", Counted(int(failed.mid()), "request")), "completed", "failed"))
	}
	if v, ok := g.all("request_goodput", "request_throughput"); ok && v[0].above(v[1]) {
		out = append(out, g.finding("counts", Error, "", fmt.Sprintf("a goodput of %s is above the throughput of %s", g.text("request_goodput"), g.text("request_throughput")), "request_goodput", "request_throughput"))
	}
	return out
}

// concurrency checks the peak of requests in flight.
func concurrency(g figures) []Finding {
	peak, ok := g.get("max_concurrent_requests")
	if !ok {
		return nil
	}
	v, ok := g.all("completed", "failed")
	if ok && peak.above(v[0].plus(v[1])) {
		return []Finding{g.finding("peak-concurrency", Error, "",
			fmt.Sprintf("%s requests in flight at once are more than the %s of the run", g.text("max_concurrent_requests"), num(v[0].plus(v[1]).mid())), "max_concurrent_requests", "completed", "failed")}
	}
	limit, ok := g.get("max_concurrency")
	own := g.run.Header.Imported == nil
	if !own {
		return aboveCap(g, peak)
	}
	if ok && limit.Lo > 0 && g.definition("max_concurrency") == result.Ours && g.definition("max_concurrent_requests") == result.Ours &&
		peak.above(limit) {
		return []Finding{g.finding("peak-concurrency", Error, "",
			fmt.Sprintf("%s requests in flight at once are more than the limit of %s", g.text("max_concurrent_requests"), g.text("max_concurrency")), "max_concurrent_requests", "max_concurrency")}
	}
	return nil
}

// aboveCap finds a peak of requests in flight above the limit that a client was
// given. Clients that count whole seconds put those that end and those that
// begin in one second into it both: as often as a slot is filled in a second.
func aboveCap(g figures, peak Interval) []Finding {
	limit, ok := g.get("max_concurrency")
	said := g.by["max_concurrency"].Label + " " + g.text("max_concurrency")
	if !ok {
		n, err := strconv.ParseFloat(g.run.Header.Label(result.LabelLimit), 64)
		limit, ok, said = exactly(n), err == nil && n > 0, "the limit of "+g.run.Header.Label(result.LabelLimit)+" that the client was given"
	}
	if !ok || limit.Lo <= 0 || !peak.above(limit) || g.definition("max_concurrent_requests") == result.MeanInFlight {
		return nil
	}
	text := fmt.Sprintf("%s %s is above %s", g.by["max_concurrent_requests"].Label, g.text("max_concurrent_requests"), said)
	severity, why := Warning, ": no more can have been in flight, or the limit was not kept"
	if im := g.run.Header.Imported; g.definition("max_concurrent_requests") == result.SecondBuckets || im.Format == interop.FormatText && g.definition("max_concurrency") != result.MeasuredMaximum {
		if peak.Lo <= limit.Hi*g.touches() {
			if g.file == nil || g.file.Doc == nil || len(g.file.Runs) < 2 {
				return nil // as usual of such a client
			}
			severity, why = Note, ": its client counts every request that touches a second, so those that end and those that begin in it are in it both"
		}
	}
	return []Finding{g.finding("peak-above-cap", severity, "at most "+num(limit.Hi), text+why, "max_concurrent_requests", "max_concurrency")}
}

// touches is how many requests of a slot may touch one second: one that ends, one
// that begins, and between them as many as the time to a first token allows,
// below which few requests stay.
func (g figures) touches() float64 {
	least := math.Inf(1)
	for _, name := range []string{"median_ttft_ms", "mean_ttft_ms"} {
		if v, ok := g.get(name); ok {
			least = min(least, v.Lo/1000)
		}
	}
	if math.IsInf(least, 1) || least <= 0 {
		return math.Inf(1)
	}
	return 2 + 1/least
}

// emptyMessages is how many messages of a request may carry no token and yet be
// counted: the role before, the usage after.
const emptyMessages = 2

// peaks checks the peak throughput against the mean and the total.
func peaks(g figures) []Finding {
	const name = "max_output_tokens_per_s"
	peak, ok := g.get(name)
	if !ok {
		return nil
	}
	var out []Finding
	duration, timed := g.get("duration")
	tokens, counted := g.get("total_output_tokens")
	if mean, ok := g.get("output_throughput"); ok && mean.above(peak) {
		out = append(out, belowMean(g, mean, peak)...)
	}
	if !timed || !counted {
		return out
	}
	done, _ := g.get("completed")
	// Our peak is the mean for a run shorter than its window.
	second := func(s float64) float64 { return min(1, max(s, 1e-9)) }
	most := tokens.plus(done.scale(emptyMessages)).Over(Interval{second(duration.Lo), second(duration.Hi)})
	switch inverse := g.definition(name) == result.InverseGapPeak; {
	case !peak.above(most):
	case inverse:
		out = append(out, g.finding("peak-inverse-gap", Warning, "",
			fmt.Sprintf("a peak of %s tok/s is more in one second than the %s tokens of the whole run: this client prints the inverse of the shortest gap, which is no throughput", g.text(name), g.text("total_output_tokens")), name, "total_output_tokens"))
	default:
		out = append(out, g.finding("peak-beyond-total", Error, "at most "+num(tokens.Hi)+" tok/s",
			fmt.Sprintf("a peak of %s tok/s is more in one second than the %s tokens of the whole run", g.text(name), g.text("total_output_tokens")), name, "total_output_tokens"))
	}
	return out
}

// belowMean tells a peak that fixed seconds or messages explain from one that
// nothing does.
func belowMean(g figures, mean, peak Interval) []Finding {
	const name = "max_output_tokens_per_s"
	if g.definition(name) != result.MessageBuckets {
		return []Finding{g.finding("peak-below-mean", Error, "at least "+g.text("output_throughput")+" tok/s",
			fmt.Sprintf("the peak throughput %s is below the mean %s", g.text(name), g.text("output_throughput")), name, "output_throughput")}
	}
	why := "messages brought several tokens each"
	if v, ok := g.all("duration", "total_output_tokens"); ok && peak.Hi*math.Ceil(v[0].Hi) >= v[1].Lo {
		why = "the seconds are fixed ones since the start, and the last of the run's " + g.text("duration") + " s is not full"
	}
	return []Finding{g.finding("peak-buckets", Warning, "at least "+g.text("output_throughput")+" tok/s",
		fmt.Sprintf("the peak throughput %s is below the mean %s: the client counts messages of whole seconds, and %s", g.text(name), g.text("output_throughput"), why), name, "output_throughput", "duration")}
}

// durations finds requests that outlast the run.
func durations(g figures) []Finding {
	duration, ok := g.get("duration")
	if !ok || g.trimmed() {
		return nil
	}
	for _, s := range g.families {
		if s.family != "ttft" && s.family != "e2el" {
			continue
		}
		for _, q := range s.quantiles {
			if q.v.scale(0.001).above(duration) {
				return []Finding{g.finding("latency-beyond-duration", Error, "",
					fmt.Sprintf("%s is %s, longer than the %s s of the whole run", g.by[q.name].Label, g.text(q.name), g.text("duration")), q.name, "duration")}
			}
		}
	}
	return nil
}

// trimmed reports whether the file's client leaves warm-up and cool-down out of
// its duration, so that requests may reach beyond it.
func (g figures) trimmed() bool {
	im := g.run.Header.Imported
	return im != nil && slices.Contains([]string{interop.FormatGuideLLM, interop.FormatAIPerf, interop.FormatInferencePerf}, im.Format)
}
