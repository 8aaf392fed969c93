// Package agents shows the machines of a fleet that sent a load, one row each, and says in words how far a client and where
// the pods of an engine are known.
//
//	k := agents.Table(header, summary)
//
// Invariants: the package is pure; each value is a fact of the header or a figure of the summary, and
// one that is absent is shown as missing.
package agents

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// missing stands where nothing is known.
const missing = "n/a"

// Table has a row for each agent: its part of the load, and how well it sent it. It is empty of a
// run that no fleet sent.
func Table(h result.Header, s *result.Summary) doc.Table {
	t := doc.Table{Columns: doc.Columns("Agent", "Shard", ">Requests", ">Places", ">Lag P99 (ms)", ">CPU", ">Merged reads", ">Clock ahead by (ms)", "State")}
	if h.Fleet == nil {
		return t
	}
	for i, a := range h.Fleet.Agents {
		var f result.AgentFigures // of a summary that was made before there were these
		if i < len(s.Agents) {
			f = s.Agents[i]
		}
		row := doc.Texts(h.Fleet.Name(i+1), fmt.Sprintf("%d of %d", a.Shard+1, a.Of), requests(a, f), places(a), lag(f), cpu(a), merged(f), clock(a), state(a, h))
		row.Cells[0].Tip = machine(a)
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Sender says in a few words who sent a load; "" of one that no fleet did.
func Sender(f *result.Fleet) string {
	if f == nil {
		return ""
	}
	text := f.String()
	if limits := f.Limits(); limits != "" {
		text += "; in flight at most " + limits
	}
	return text
}

// requests are the calls that came back, and of how many where some are missing.
func requests(a result.Agent, f result.AgentFigures) string {
	text := plot.Tally(f.Calls)
	if a.Requests > f.Calls {
		text += " of " + plot.Tally(a.Requests)
	}
	if f.Failed > 0 {
		text += fmt.Sprintf(", %s failed", plot.Tally(f.Failed))
	}
	return text
}

func places(a result.Agent) string {
	if a.Limit == 0 {
		return "no limit"
	}
	return plot.Tally(a.Limit)
}

func lag(f result.AgentFigures) string {
	if f.LagP99 == nil {
		return missing
	}
	return fmt.Sprintf("%.3f", *f.LagP99)
}

func cpu(a result.Agent) string {
	if a.Client == nil {
		return missing
	}
	share, ok := a.Client.Busy()
	if !ok {
		return missing
	}
	return fmt.Sprintf("%.0f %% of %d", 100*share, a.Client.Processors())
}

func merged(f result.AgentFigures) string {
	if f.Chunks == 0 {
		return missing
	}
	return fmt.Sprintf("%.1f %%", 100*float64(f.Merged)/float64(f.Chunks))
}

// clock is how far the agent's clock was ahead, with the bound of that.
func clock(a result.Agent) string {
	o := a.Offset
	if o == nil {
		return missing
	}
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	digits := 3
	if beyond := math.Abs(ms(o.Offset)); beyond >= 1000 {
		digits = 1
	}
	return fmt.Sprintf("%+.*f ± %.3f", digits, ms(o.Offset), ms(o.Bound))
}

func state(a result.Agent, h result.Header) string {
	switch {
	case a.Lost != "" && a.LostAt > 0:
		return fmt.Sprintf("lost after %s: %s", result.SpanText(a.LostAt), a.Lost)
	case a.Lost != "":
		return "lost: " + a.Lost
	case a.Client == nil:
		return "not heard of at the end"
	case a.Client.Partial:
		return "stopped: " + cmp.Or(a.Client.StopNote, "no reason given")
	case h.Requests == 0:
		return "sent until the end"
	}
	return "all sent"
}

// machine is the agent's host.
func machine(a result.Agent) string {
	if a.Host.OS == "" {
		return ""
	}
	text := fmt.Sprintf("%s/%s, %s, GOMAXPROCS %d, %s", a.Host.OS, a.Host.Arch, plot.Count(a.Host.CPUs, "CPU"), a.Host.GOMAXPROCS, a.Host.Go)
	return strings.TrimSuffix(text+", perflab "+a.Version, ", perflab ")
}
