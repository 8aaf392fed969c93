package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/result"
)

// perAgent judges each agent of a fleet by a check of one load generator: one of them that is late,
// or out of processors, spoils the figures of all. Of equals the one with the highest by is shown.
func perAgent(c check, by func(*result.Analysis) float64) check {
	return check{c.name, func(a *result.Analysis) (result.Status, string) {
		if len(a.Agents) == 0 {
			return c.judge(a)
		}
		type finding struct {
			name   string
			status result.Status
			text   string
			by     float64
		}
		var all []finding
		for i := range a.Agents {
			v := agentView(a, i)
			s, text := c.judge(v)
			all = append(all, finding{a.Header.Fleet.Name(i + 1), s, text, by(v)})
		}
		slices.SortStableFunc(all, func(x, y finding) int {
			if x.status != y.status {
				return map[bool]int{true: -1, false: 1}[x.status.WorseThan(y.status)]
			}
			return cmp.Compare(y.by, x.by)
		})
		worst := all[0]
		var alike []string
		for _, f := range all[1:] {
			if f.status == worst.status && worst.status.WorseThan(result.Sound) {
				alike = append(alike, f.name)
			}
		}
		text := fmt.Sprintf("agent %s: %s", worst.name, worst.text)
		switch {
		case len(alike) > 0:
			text += "; the same is to be said of " + list(alike)
		case len(all) > 1 && worst.status == result.Sound:
			text = fmt.Sprintf("none of %d agents is worse than %s: %s", len(all), worst.name, worst.text)
		}
		return worst.status, text
	}}
}

// agentView is the run as one agent is judged: the server's part is that of all calls, its own is
// of its calls alone.
func agentView(a *result.Analysis, i int) *result.Analysis {
	v, f, agent := *a, a.Agents[i], a.Header.Fleet.Agents[i]
	v.Client, v.Header.Clock = agent.Client, agent.Clock
	v.Header.LateReads = agent.Clock == result.ClockKernel
	v.LagFromDue, v.LagFromReady, v.InCalls = f.LagFromDue, f.LagFromReady, f.InCalls
	v.Reads, v.Coarse = f.Reads, f.Coarse
	v.Figures = maps.Clone(a.Figures)
	for name, lag := range map[string]*float64{"p50_dispatch_lag_ms": f.LagP50, "p99_dispatch_lag_ms": f.LagP99} {
		if delete(v.Figures, name); lag != nil {
			v.Figures[name] = *lag
		}
	}
	return &v
}

// What agents are compared by.
func byNothing(*result.Analysis) float64 { return 0 }
func byLag(a *result.Analysis) float64   { return a.Figures["p99_dispatch_lag_ms"] }
func byCoarse(a *result.Analysis) float64 {
	return float64(a.Coarse) / float64(max(1, a.Reads))
}

// byClient compares by what agents know of themselves.
func byClient(of func(*result.Client) float64) func(*result.Analysis) float64 {
	return func(a *result.Analysis) float64 {
		if a.Client == nil {
			return 0
		}
		return of(a.Client)
	}
}

func busy(c *result.Client) float64 {
	share, _ := c.Busy()
	return share
}

// list writes names as a sentence has them.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// lateReaders names the agent that made most of the late reads; "" where no fleet sent the load.
func lateReaders(a *result.Analysis) string {
	if len(a.Agents) == 0 || a.Late == 0 {
		return ""
	}
	worst := slices.MaxFunc(a.Agents, func(x, y result.AgentFigures) int { return x.Late - y.Late })
	return fmt.Sprintf("; agent %s made %d of the %d late reads", a.Header.Fleet.Name(worst.Agent), worst.Late, a.Late)
}

// lostText says which agents were lost and what is missing of their parts, "" where none was.
// Nobody takes over what an agent did not send, and nothing is scaled up for it.
func lostText(a *result.Analysis) string {
	f := a.Header.Fleet
	var parts []string
	for _, n := range f.Lost() {
		agent, came := f.Agents[n-1], a.Agents[n-1].Calls
		text := "agent " + f.Name(n) + " was lost"
		if agent.LostAt > 0 {
			text += fmt.Sprintf(" %s after the start", result.SpanText(agent.LostAt))
		}
		text += " (" + agent.Lost + "): "
		switch sent := max(agent.Sent, came); {
		case agent.Requests == 0:
			text += fmt.Sprintf("%d of its calls came back", came)
		case sent > came:
			text += fmt.Sprintf("of its %d requests %d came back as calls, %d were sent and did not, and up to %d were never sent", agent.Requests, came, sent-came, agent.Requests-sent)
		default:
			text += fmt.Sprintf("of its %d requests %d came back as calls, and up to %d were never sent", agent.Requests, came, agent.Requests-sent)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + fmt.Sprintf("; nobody took over: from then on the server had the load of %d of %d agents, and rates are of what was sent", len(f.Agents)-len(parts), len(f.Agents))
}

// judgeOffsets judges how well the agents' clocks are known, which is in nothing that one agent
// measures: latencies are from one clock. It is in when the requests of one agent came beside those
// of the others, and in what is counted over all of them by time.
func judgeOffsets(a *result.Analysis) (result.Status, string) {
	f := a.Header.Fleet
	var unknown []string
	var bound, off time.Duration
	var loose, displaced string
	for i, agent := range f.Agents {
		switch o := agent.Offset; {
		case o == nil:
			unknown = append(unknown, f.Name(i+1))
		default:
			if loose == "" || o.Bound > bound {
				bound, loose = o.Bound, f.Name(i+1)
			}
			if apart := o.Shift.Abs() + o.Bound; displaced == "" || apart > off {
				off, displaced = apart, f.Name(i+1)
			}
		}
	}
	if len(unknown) > 0 {
		return result.Noted, fmt.Sprintf("how far the clocks of %s were from this machine's is not known: throughput, requests in flight and the busiest second, which are over all agents, may be off by it; latencies are not", list(unknown))
	}
	const second = 1000 // ms, in which the busiest tokens are counted
	share := 2 * bound.Seconds() / max(1e-9, a.Figures["duration"])
	known := fmt.Sprintf("the clock of agent %s is known to %s", loose, result.SpanText(bound))
	switch {
	case share > result.Hopeless:
		return result.Voided, fmt.Sprintf("%s, so that throughput over all agents may be off by %.0f %%: let the run last longer, or bring the agent nearer", known, 100*share)
	case share > result.Doubtful:
		return result.Noted, fmt.Sprintf("%s, so that throughput over all agents may be off by %.1f %%", known, 100*share)
	case milliseconds(bound) > result.Doubtful*second:
		return result.Noted, known + ", so that the busiest second and the requests in flight, which are over all agents, are no better known"
	case !closed(a) && milliseconds(off) > lateLimit(a):
		return result.Noted, fmt.Sprintf("requests of agent %s may have come up to %s off the schedule beside those of the others, allowed %.3g ms: its clock was not known better at the start", displaced, result.SpanText(off), lateLimit(a))
	}
	return result.Sound, fmt.Sprintf("%s, and no other one's is known worse: throughput over all agents is off by %.2g %% at most, and no request came more than %s off the schedule by it", known, 100*share, result.SpanText(off))
}

// fleetSelfChecks says how far the clients of agents were from a server's truth where that was
// measured; "" where it was of none.
func fleetSelfChecks(f *result.Fleet) string {
	if f == nil {
		return ""
	}
	var worst *result.SelfCheck
	name, known := "", 0
	for i, agent := range f.Agents {
		k := agent.SelfCheck
		if k == nil {
			continue
		}
		if known++; worst == nil || math.Abs(k.TTFTError) > math.Abs(worst.TTFTError) {
			worst, name = k, f.Name(i+1)
		}
	}
	if worst == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d agents have a self check; agent %s, whose mean TTFT is off most: %s", known, len(f.Agents), name, selfCheckText(worst))
}
