package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
)

// fleetOf is a fleet of agents with clocks known to a microsecond and a client that has nothing to
// answer for, changed by number.
func fleetOf(n int, change func(number int, a *result.Agent)) *result.Fleet {
	f := &result.Fleet{}
	for i := range n {
		c := client
		a := result.Agent{Name: string(rune('a' + i)), Shard: i, Of: n, Client: &c, Clock: result.ClockKernel, Offset: &result.ClockOffset{Bound: time.Microsecond}}
		if change != nil {
			change(i+1, &a)
		}
		f.Agents = append(f.Agents, a)
	}
	return f
}

// shared are steady calls, every n-th of each agent, changed.
func shared(n int, change func(c *result.Call)) []result.Call {
	return each(steady(500, 20*msec), func(c *result.Call) {
		c.Agent = 1 + c.Index%n
		if change != nil {
			change(c)
		}
	})
}

// TestFleet: one agent that is not as it should be is named, and voids what it spoils, however many
// others are.
func TestFleet(t *testing.T) {
	t.Parallel()
	late := func(by time.Duration) func(*result.Call) {
		return func(c *result.Call) {
			if c.Agent == 2 {
				c.Due = max(0, c.Due-by)
				c.Ready = c.Due
			}
		}
	}
	of := func(number int, change func(*result.Agent)) func(int, *result.Agent) {
		return func(n int, a *result.Agent) {
			if n == number {
				change(a)
			}
		}
	}
	for _, test := range []struct {
		name, check string
		header      result.Header
		fleet       *result.Fleet
		calls       []result.Call
		want        result.Status
		text        string
	}{
		{"all well", "dispatch_lag", result.Header{}, fleetOf(3, nil), shared(3, nil), result.Sound, "none of 3 agents is worse than a: dispatch lag p50"},
		{"one late", "dispatch_lag", result.Header{}, fleetOf(8, nil), shared(8, late(3*msec)), result.Noted, "agent b: the load generator was late: dispatch lag p99"},
		{"one late by far", "dispatch_lag", result.Header{}, fleetOf(8, nil), shared(8, late(20*msec)), result.Voided, "agent b: client-bound, the load generator was late"},
		{"two late by far", "dispatch_lag", result.Header{}, fleetOf(3, nil), shared(3, func(c *result.Call) {
			if c.Agent > 1 {
				c.Due = max(0, c.Due-time.Duration(c.Agent)*10*msec)
				c.Ready = c.Due
			}
		}), result.Voided, "agent c: client-bound, the load generator was late: dispatch lag p99 30"},
		{"none that sent", "dispatch_lag", result.Header{}, fleetOf(2, nil), shared(1, nil), result.Sound, "none of 2 agents is worse than a: "},
		{"one without processors", "client_cpu", result.Header{}, fleetOf(4, of(3, func(a *result.Agent) { a.Client.CPU = 19500 * msec })), shared(4, nil), result.Voided, "agent c: client-bound, it measured itself: the load generator used 98 % of its 2 processors"},
		{"the busiest is shown", "client_cpu", result.Header{}, fleetOf(4, of(3, func(a *result.Agent) { a.Client.CPU = 10 * time.Second })), shared(4, nil), result.Sound, "none of 4 agents is worse than c: the load generator used 50 %"},
		{"one that was stopped", "stolen", result.Header{}, fleetOf(2, of(2, func(a *result.Agent) { a.Client.Stolen = 0.1 })), shared(2, nil), result.Noted, "agent b: the host took 10.0 %"},
		{"one with another clock", "clock", result.Header{}, fleetOf(2, of(2, func(a *result.Agent) { a.Clock = result.ClockMonotonic })), shared(2, func(c *result.Call) { c.Reads = 9 }), result.Remark, "agent b: stamps were taken by this process"},
		{"full processors of one", "machine", result.Header{}, fleetOf(2, of(2, func(a *result.Agent) {
			a.Client = onMachine(func(m *result.Machine) { m.Idle, m.Here, m.Engine, m.Processes = 0, false, 0, 0 })
		})), shared(2, nil), result.Noted, "agent b: the processors were full, so that the load generator waited"},
		{"one in two late reads", "merged", result.Header{LateReads: true}, fleetOf(2, nil), shared(2, func(c *result.Call) {
			if c.Reads = len(c.Chunks); c.Agent == 2 {
				c.Chunks[1].At, c.Late = c.Chunks[0].At, []result.LateRead{{By: 30 * msec}}
			}
		}), result.Voided, "; agent b made 250 of the 250 late reads"},
		{"clocks known", "agent_clocks", result.Header{}, fleetOf(3, nil), shared(3, nil), result.Sound, "the clock of agent a is known to 0.001 ms"},
		{"a clock not known", "agent_clocks", result.Header{}, fleetOf(3, of(2, func(a *result.Agent) { a.Offset = nil })), shared(3, nil), result.Noted, "how far the clocks of b were from this machine's is not known"},
		{"a start off the schedule", "agent_clocks", result.Header{}, fleetOf(3, of(2, func(a *result.Agent) { a.Offset.Shift = -2 * msec })), shared(3, nil), result.Noted, "requests of agent b may have come up to 2 ms off the schedule"},
		{"no schedule to be off", "agent_clocks", result.Header{Limit: 1, Closed: true}, fleetOf(3, of(2, func(a *result.Agent) { a.Offset.Shift = -2 * msec })), shared(3, nil), result.Sound, "known to 0.001 ms"},
		{"seconds over all", "agent_clocks", result.Header{}, fleetOf(3, of(2, func(a *result.Agent) { a.Offset.Bound = 30 * msec })), shared(3, nil), result.Noted, "the clock of agent b is known to 30 ms, so that the busiest second"},
		{"throughput over all", "agent_clocks", result.Header{}, fleetOf(3, of(2, func(a *result.Agent) { a.Offset.Bound = 200 * msec })), shared(3, nil), result.Noted, "throughput over all agents may be off by 3.9 %"},
		{"a clock that spoils throughput", "agent_clocks", result.Header{}, fleetOf(3, of(3, func(a *result.Agent) { a.Offset.Bound = time.Second })), shared(3, nil), result.Voided, "the clock of agent c is known to 1 s, so that throughput over all agents may be off by 20 %"},
		{"self checks", "self_check", result.Header{}, fleetOf(3, func(n int, a *result.Agent) {
			if n < 3 {
				a.SelfCheck = &result.SelfCheck{TTFTError: float64(n)}
			}
		}), shared(3, nil), result.Sound, "2 of 3 agents have a self check; agent b, whose mean TTFT is off most: "},
		{"one agent crosses no machine", "agent_clocks", result.Header{}, fleetOf(1, nil), shared(1, nil), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.header.Fleet = test.fleet
			test.header.Requests = len(test.calls)
			all := test.fleet.Client()
			s, err := Summarize(test.header, &all, result.Options{}, slices.Values(test.calls))
			if err != nil {
				t.Fatal(err)
			}
			c, _ := s.Verdict.Check(test.check)
			if c.Status != test.want || !strings.Contains(c.Text, test.text) {
				t.Errorf("%s is %s: %s", test.check, c.Status, c.Text)
			}
			if test.want == result.Voided && s.Verdict.Status != result.Voided {
				t.Errorf("the run is %s", s.Verdict.Status)
			}
		})
	}
}

// TestFleetLost: a lost agent makes the run partial, which says what of its part is missing.
func TestFleetLost(t *testing.T) {
	for text, change := range map[string]func(*result.Agent){
		"partial: 333 of 500 planned calls, agent b was lost 2.5 s after the start (no word for 5 s): of its 167 requests 0 came back as calls, and up to 167 were never sent; nobody took over: from then on the server had the load of 2 of 3 agents, and rates are of what was sent": func(a *result.Agent) {},
		"of its 167 requests 0 came back as calls, 40 were sent and did not, and up to 127 were never sent": func(a *result.Agent) { a.Sent = 40 },
		"(no word for 5 s): 0 of its calls came back; nobody":                                               func(a *result.Agent) { a.Requests = 0 },
		"agent b was lost (no word for 5 s)":                                                                func(a *result.Agent) { a.LostAt = 0 },
	} {
		calls := slices.DeleteFunc(shared(3, nil), func(c result.Call) bool { return c.Agent == 2 })
		f := fleetOf(3, func(n int, a *result.Agent) {
			if n == 2 {
				a.Client, a.Lost, a.LostAt, a.Requests = nil, "no word for 5 s", 2500*msec, 167
				change(a)
			}
		})
		all := f.Client()
		s, err := Summarize(result.Header{Requests: 500, Fleet: f}, &all, result.Options{}, slices.Values(calls))
		if err != nil {
			t.Fatal(err)
		}
		c, _ := s.Verdict.Check("partial")
		if c.Status != result.Noted || !strings.Contains(c.Text, text) || !s.Partial {
			t.Errorf("%s: %s, want %s", c.Status, c.Text, text)
		}
	}
}

// TestFleetWithoutRecord: of a run that was cut off no agent told what it used, and a header of
// somebody else may say anything: each is judged all the same.
func TestFleetWithoutRecord(t *testing.T) {
	cut := fleetOf(3, func(_ int, a *result.Agent) { a.Client, a.Offset = nil, nil })
	for name, f := range map[string]*result.Fleet{"cut off": cut, "no agents": {}, "fewer than the calls say": {Agents: cut.Agents[:1]}} {
		s, err := Summarize(result.Header{Requests: 501, Fleet: f}, nil, result.Options{}, slices.Values(shared(3, nil)))
		if err != nil {
			t.Fatal(err)
		}
		partial, _ := s.Verdict.Check("partial")
		cpu, _ := s.Verdict.Check("client_cpu")
		if partial.Status != result.Noted || !strings.Contains(cpu.Text, "not judged: the run left no record of its client") || len(s.Agents) != len(f.Agents) {
			t.Errorf("%s: %s", name, s.Verdict.Text())
		}
	}
}
