// Package verdict says whether a run's figures can be believed: a list of
// checks, each with its evidence in a sentence.
//
//	s, err := verdict.Summarize(header, client, result.Options{}, slices.Values(calls))
//	fmt.Print(s.Verdict.Text())
//
// Invariants: Judge is pure and does not change what it judges; it looks at our
// own definitions, whatever definitions the summary is asked for; a check
// without data says that it did not judge and stays sound; how many failures
// are too many is the caller's limit.
//
// Deliberately absent: the types of a verdict, which a summary carries and which
// are in package result.
package verdict

import (
	"iter"

	"perflab/internal/gauge"
	"perflab/internal/result"
)

// Summarize computes the figures of a run, as result.Summarize does, and judges
// them.
func Summarize(h result.Header, c *result.Client, o result.Options, calls iter.Seq[result.Call]) (result.Summary, error) {
	a, err := result.Analyze(h, c, o, calls)
	if err != nil {
		return result.Summary{}, err
	}
	return Judged(a), nil
}

// Judged returns the figures with the verdict on them.
func Judged(a *result.Analysis) result.Summary {
	s := a.Summary()
	s.Verdict = Judge(a)
	s.Submission = submission(a)
	if check, made := underRules(a, s.Submission); made {
		s.Verdict.Add(check)
	}
	return s
}

// Judge runs every check on a run's figures by our own definitions. A check
// without data is sound and says that it did not judge; a simulated run begins
// with the sentence that says so.
func Judge(a *result.Analysis) result.Verdict {
	v := result.Verdict{Status: result.Sound}
	add := func(name string, s result.Status, text string) {
		v.Add(result.Check{Name: name, Status: s, Text: text})
	}
	run := func(checks ...check) {
		for _, c := range checks {
			s, text := c.judge(a)
			add(c.name, s, text)
		}
	}
	if a.Simulated {
		add("simulated", result.Sound, simulatedText(a))
	}
	run(check{"partial", judgePartial})
	if a.Client != nil && a.Client.Profiled {
		add("profiled", result.Noted, "the server's profiler ran, which slows it: these figures are not those of the server without it")
	}
	if a.Completed == 0 {
		run(check{"failures", judgeFailures})
		add("no_calls", result.Voided, "no call succeeded: there is nothing to measure")
		return v
	}
	run(callChecks...)
	if s := silenceOf(a); s.matters() {
		run(check{result.CheckPauses, s.judge})
	}
	if f := a.Header.Fleet; f != nil && len(f.Agents) > 1 {
		run(check{"agent_clocks", judgeOffsets})
	}
	for _, c := range rateChecks(a) {
		v.Add(c)
	}
	if len(a.Header.Pods) > 0 || a.Header.Service != nil {
		run(check{"path", judgePath})
	}
	run(check{"samples", judgeSamples})
	if a.Client != nil && a.Client.Precision != nil {
		run(check{result.CheckPrecision, judgePrecision})
	}
	if a.Speculated.Told() {
		run(check{"speculation", judgeSpeculation})
	}
	if _, ok := a.Figures["possible_prefix_hit_ratio"]; ok {
		run(check{"prefix_reuse", judgeReuse})
	}
	run(telemetryChecks(a)...)
	if a.Header.SelfCheck != nil && !a.Header.Predicted {
		add("self_check", result.Sound, selfCheckText(a.Header.SelfCheck))
	}
	if text := fleetSelfChecks(a.Header.Fleet); text != "" {
		add("self_check", result.Sound, text)
	}
	return v
}

// callChecks are the checks of the calls and of the client, in the order of the
// verdict; those of the rate follow.
var callChecks = []check{
	{"failures", judgeFailures},
	{"time_order", judgeOrder},
	{"tokens", judgeTokens},
	{"counts", judgeCounts},
	{"lengths", judgeLengths},
	{"prefix_cache", judgeCache},
	{"new_field", judgeField},
	{"merged", judgeMerged},
	{"identity", judgeIdentity},
	{"gaps", judgeGaps},
	{"peak", judgePeak},
	perAgent(check{"clock", judgeClock}, byCoarse),
	perAgent(check{"dispatch_lag", judgeLag}, byLag),
	perAgent(check{"client_cpu", judgeCPU}, byClient(busy)),
	perAgent(check{"scheduler", judgeScheduler}, byClient(func(c *result.Client) float64 { return float64(c.SchedP99) })),
	perAgent(check{"gc", judgeGC}, byClient(func(c *result.Client) float64 { return float64(c.GCMax) })),
	perAgent(check{"stolen", judgeStolen}, byClient(func(c *result.Client) float64 { return c.Stolen })),
	perAgent(check{"machine", judgeMachine}, byNothing),
	{"little", judgeLittle},
	{"burst", judgeBurst},
}

func simulatedText(a *result.Analysis) string {
	if a.Header.Predicted {
		return "SIMULATED: predicted in virtual time, no server was measured"
	}
	return "SIMULATED: a simulator answered, no hardware was measured"
}

// telemetryChecks are the checks of a run that has readings, in the order of the
// verdict; one without has none of them.
func telemetryChecks(a *result.Analysis) []check {
	if len(a.Telemetry.Readings) == 0 {
		return nil
	}
	all := []check{{"telemetry", judgeReadings}}
	if _, ok := a.Telemetry.Share(gauge.ThrottlePower); ok {
		all = append(all, check{"throttled", judgeThrottled})
	}
	if a.Telemetry.Devices() > 0 {
		all = append(all, check{"gpus", judgeDevices})
	}
	if _, ok := a.Figures["mean_running_requests"]; ok {
		all = append(all, check{"headroom", judgeHeadroom})
	}
	return all
}
