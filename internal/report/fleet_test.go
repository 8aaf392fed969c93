package report

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/block"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/verdict"
)

// fleetRun is a run that three agents sent, of which the second one was late and the third was lost.
func fleetRun(t *testing.T) (result.Header, result.Summary) {
	t.Helper()
	h, calls := burst(120)
	host := result.Host{OS: "linux", Arch: "amd64", Go: "go1.26.0", CPUs: 8, GOMAXPROCS: 8}
	h.Clock, h.Limit, h.LateReads = result.ClockKernel, 64, true
	h.Fleet = &result.Fleet{Epoch: 4, Agents: []result.Agent{
		{ID: "UA", Name: "load-1", Version: "0.1.0", Host: host, Shard: 0, Of: 3, Requests: 40, Limit: 22, Clock: result.ClockKernel, Sent: 40,
			Offset: &result.ClockOffset{Offset: 1204 * time.Microsecond, Bound: 21 * time.Microsecond, DriftPPM: 1.5, Exchanges: 40},
			Client: &result.Client{Wall: 10 * time.Second, CPU: 8 * time.Second, Procs: 8, CPUs: 8, SchedP99: time.Millisecond}},
		{ID: "UB", Name: "load-2", Host: host, Shard: 1, Of: 3, Requests: 40, Limit: 21, Clock: result.ClockKernel, Sent: 40,
			Offset: &result.ClockOffset{Offset: -3 * time.Hour, Bound: 40 * time.Microsecond}, Client: &result.Client{Wall: 10 * time.Second, CPU: 64 * time.Second, Procs: 8}},
		{ID: "UC", Name: "load-3", Host: host, Shard: 2, Of: 3, Requests: 40, Limit: 21, Clock: result.ClockKernel, Sent: 15, Lost: "no word from it for 5 s", LostAt: 2500 * time.Millisecond},
	}}
	for i := range calls {
		c := &calls[i]
		if c.Agent = 1 + i%3; c.Agent == 2 {
			c.Sent += 2 * time.Millisecond
		}
	}
	calls = slices.DeleteFunc(calls, func(c result.Call) bool { return c.Agent == 3 && c.Index > 36 })
	client := h.Fleet.Client()
	s, err := verdict.Summarize(h, &client, result.Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	return h, s
}

func TestGoldenFleet(t *testing.T) {
	h, s := fleetRun(t)
	text := golden(t, "fleet.txt", func(w io.Writer) error { return doc.Text(w, must(Run(h, s, block.Style{}, nil, nil))) })
	golden(t, "fleet.md", func(w io.Writer) error { return doc.Markdown(w, must(Run(h, s, block.Style{}, nil, nil))) })
	golden(t, "fleet.html", func(w io.Writer) error { return doc.HTML(w, must(Run(h, s, block.Style{}, nil, nil))) })
	for _, want := range []string{"SIMULATED", "agent load-2: ", "agent load-3 was lost 2.5 s after the start", "-10800000.0 ± 0.040", "lost after 2.5 s"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q", want)
		}
	}
}
