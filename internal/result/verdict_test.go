package result

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestChecks breaks one thing at a time in a run of which every check but the
// named one keeps its status.
func TestChecks(t *testing.T) {
	t.Parallel()
	good := func() []Call { return steady(500, 20*msec) }
	for _, test := range []struct {
		name   string
		check  string
		header Header
		client *Client
		calls  []Call
		want   Status
		text   string // part of the sentence
	}{
		{"sound", "dispatch_lag", Header{}, &client, good(), Sound, "p99 0.000 ms"},
		{"late client", "dispatch_lag", Header{}, &client, each(good(), func(c *Call) { c.Due = max(0, c.Due-2*msec) }), Noted, "p99 2.000 ms is above 1.000 ms"},
		{"client late by far", "dispatch_lag", Header{}, &client, each(good(), func(c *Call) { c.Due = max(0, c.Due-11*msec) }), Voided, "p99 11.000 ms is above 1.000 ms"},
		{"limit, not lateness", "dispatch_lag", Header{Limit: 1000}, &client, each(good(), func(c *Call) { c.Due = max(0, c.Due-2*msec) }), Sound, "p99 0.000 ms"},
		{"late in a burst", "dispatch_lag", Header{}, &client, each(good()[:40], func(c *Call) { c.Due, c.Ready = 0, 0 }), Voided, "above 50.000 ms"},
		{"writing a burst", "dispatch_lag", Header{}, &client, each(good()[:3], func(c *Call) { c.Due, c.Ready = 0, 0 }), Sound, "allowed 50.000 ms"},
		{"few processors", "client_cpu", Header{}, &Client{Wall: 10, CPU: 9, Procs: 1}, good(), Noted, "90 %"},
		{"no processor left", "client_cpu", Header{}, &Client{Wall: 10, CPU: 39, Procs: 4}, good(), Voided, "98 %"},
		{"no client", "client_cpu", Header{}, nil, good(), Sound, "not judged"},
		{"fewer processors allowed than there are", "client_cpu", Header{}, &Client{Wall: 10, CPU: 19, Procs: 4, CPUs: 2}, good(), Voided, "client-bound, it measured itself: the load generator used 95 % of its 2 processors"},
		{"client late by far", "dispatch_lag", Header{}, &client, each(good(), func(c *Call) { c.Due = max(0, c.Due-11*msec) }), Voided, "client-bound"},
		{"connecting is no lateness", "dispatch_lag", Header{}, &client, each(good(), func(c *Call) { c.Due, c.Ready, c.Dial = max(0, c.Due-2*msec), max(0, c.Due-2*msec), min(c.Due, 2*msec) }), Sound, "p99 0.000 ms"},
		{"places left empty", "dispatch_lag", Header{Limit: 1}, &client, loop(300, 5*msec), Noted, "left places of the closed loop empty for 4.7 % of the time"},
		{"places left empty by far", "dispatch_lag", Header{Limit: 1}, &client, loop(300, 40*msec), Voided, "client-bound, the load generator left places of the closed loop empty for 28.4 %"},
		{"places refilled", "dispatch_lag", Header{Limit: 1}, &client, loop(300, 2*msec), Sound, "p99 2.000 ms, allowed 50.000 ms"},
		{"goroutines of a closed loop waited", "scheduler", Header{Limit: 1, Clock: ClockMonotonic}, &Client{SchedP99: 11 * msec}, loop(300, 0), Voided, "allowed 1.000 ms"},
		{"connecting before it could", "time_order", Header{}, &client, each(good(), func(c *Call) { c.Dial = msec }), Voided, "call 0: asking for a connection"},
		{"connecting takes less than nothing", "time_order", Header{}, &client, each(good(), func(c *Call) { c.Dial = -msec }), Voided, "call 0: sent"},
		{"goroutines waited", "scheduler", Header{}, &Client{SchedP99: 2 * msec}, good(), Noted, "p99 2.000 ms"},
		{"goroutines waited by far", "scheduler", Header{Clock: ClockMonotonic}, &Client{SchedP99: 11 * msec}, good(), Voided, "client-bound"},
		{"the kernel did not wait", "scheduler", Header{Clock: ClockKernel}, &Client{SchedP99: 11 * msec}, good(), Noted, "allowed 1.000 ms"},
		{"goroutines ran", "scheduler", Header{}, &Client{SchedP50: 2000, SchedP99: msec}, good(), Sound, "p50 0.002 ms"},
		{"not sampled", "scheduler", Header{}, &client, good(), Sound, "not judged"},
		{"stolen", "stolen", Header{}, &Client{Stolen: 0.031}, good(), Noted, "the host took 3.1 %"},
		{"hardly stolen", "stolen", Header{}, &Client{Stolen: 0.02}, good(), Sound, "2.0 %"},
		{"clock not known", "clock", Header{}, &client, good(), Sound, "not judged"},
		{"process clock", "clock", Header{Clock: ClockMonotonic}, &client, good(), Remark, "taken by this process"},
		{"checked", "self_check", Header{Clock: ClockKernel, SelfCheck: &SelfCheck{Taken: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC), Streams: 1000, EventRate: 50_000, ArrivalP50: 3.1, ArrivalP99: 9.8, TTFTError: 0.42, ITLError: -0.003, SendP50: 11.6, SendP99: 310}}, &client, good(), Sound,
			"the client's own errors on this machine: stamps 3.1 us late (p99 9.8 us) at 50000 events/s, mean TTFT +0.420 ms and p99 ITL -0.003 ms with 1000 streams at once, requests 11.6 us late (p99 310 us); selfcheck of 2026-02-03"},
		{"kernel clock", "clock", Header{Clock: ClockKernel}, &client, each(good(), func(c *Call) { c.Reads = 10 }), Sound, "5000 of 5000 reads"},
		{"coarse stamps", "clock", Header{Clock: ClockKernel}, &client, each(good(), func(c *Call) { c.Reads, c.Coarse = 10, c.Index%2 }), Noted, "250 of 5000 reads have no stamp"},
		{"first byte before sending", "time_order", Header{}, &client, each(good(), func(c *Call) { c.First = c.Sent - 1 }), Voided, "the first byte"},
		{"alone", "merged", Header{}, &client, good(), Sound, "0 of 5450 chunks"},
		{"merged", "merged", Header{}, &client, each(good(), func(c *Call) { c.Chunks[1].At = c.Chunks[0].At }), Remark, "500 of 5450 chunks (9.2 %)"},
		{"gaps", "gaps", Header{}, &client, good(), Sound, "4950 gaps"},
		{"chunks swapped", "gaps", Header{}, &client, each(good(), func(c *Call) { slices.Reverse(c.Chunks) }), Voided, "median -"},
		{"one token each", "gaps", Header{}, &client, each(good(), func(c *Call) { c.Chunks, c.Usage.Completion = c.Chunks[:1], 1 }), Sound, "not judged"},
		{"long pause", "gc", Header{}, &Client{GCMax: 6 * msec}, good(), Noted, "6.000 ms, allowed 5.000"},
		{"stream interval", "tokens", Header{}, &client, each(good(), func(c *Call) { c.Usage.Completion *= 2 }), Noted, "a chunk carries 2.00 tokens"},
		{"hidden reasoning", "tokens", Header{}, &client, each(good(), func(c *Call) { c.Usage.Completion *= 2; c.Usage.Reasoning = 1 }), Noted, "500 of the tokens were reasoning"},
		{"chunks that are no tokens", "tokens", Header{}, &client, each(good(), func(c *Call) { c.Usage.Completion-- }), Voided, "more tokens streamed"},
		{"errors that would cancel", "tokens", Header{}, &client, each(good(), func(c *Call) { c.Usage.Completion += 2*(c.Index%2) - 1 }), Voided, "more tokens streamed"},
		{"one stray flush", "tokens", Header{}, &client, each(good(), func(c *Call) {
			if c.Index == 0 {
				c.Usage.Completion--
			}
		}), Noted, "1 chunks more"},
		{"no usage", "tokens", Header{}, &client, each(good(), func(c *Call) { c.Usage = nil }), Noted, "sent no usable usage"},
		{"some without usage", "tokens", Header{}, &client, each(good(), func(c *Call) {
			if c.Index == 0 {
				c.Usage = nil
			}
		}), Noted, "usage came with 499 of 500"},
		{"not streamed", "tokens", Header{}, &client, each(good(), func(c *Call) { c.Chunks = []Chunk{{At: c.End, Tokens: int32(c.Usage.Completion)}} }), Noted, "500 of 500 calls got all their tokens in one read"},
		{"predicted without usage", "tokens", Header{Predicted: true}, nil, each(good(), func(c *Call) { c.Usage = nil }), Sound, "predicted"},
		{"renamed field", "new_field", Header{}, &client, each(good(), func(c *Call) { c.Field = "thoughts" }), Noted, "thoughts"},
		{"failures", "failures", Header{}, &client, each(good(), func(c *Call) {
			if c.Index%100 == 0 {
				*c = fail(*c, []Class{Connect, EarlyClose, EarlyClose}[c.Index%3])
			}
		}), Noted, "5 of 500 calls failed (early_close"},
		{"an error is quoted", "failures", Header{}, &client, each(good(), func(c *Call) {
			if c.Index > 2 {
				*c = fail(*c, []Class{Connect, EarlyClose}[min(1, c.Index%100)])
				c.Error = fmt.Sprintf("reason %d", c.Index)
			}
		}), Noted, "figure; call 3: reason 3"},
		{"as asked", "lengths", Header{}, &client, each(good(), func(c *Call) { c.Want, c.WantIn = c.Usage.Completion, c.Usage.Prompt }), Sound, "5450 of 5450 output tokens"},
		{"not known", "lengths", Header{}, &client, each(good(), func(c *Call) { c.Usage = nil }), Sound, "not judged"},
		{"short answers", "lengths", Header{}, &client, each(good(), func(c *Call) { c.Want = c.Usage.Completion + c.Index%2 }), Remark, "250 calls ended before"},
		{"max_tokens ignored", "lengths", Header{}, &client, each(good(), func(c *Call) { c.Want = c.Usage.Completion - c.Index%2 }), Noted, "250 calls got more"},
		{"other tokenizer", "lengths", Header{}, &client, each(good(), func(c *Call) { c.WantIn = 2 * c.Usage.Prompt }), Remark, "other prompts"},
		{"cold cache", "prefix_cache", Header{}, &client, good(), Sound, "0 of 5000 prompt tokens"},
		{"warm cache", "prefix_cache", Header{}, &client, each(good(), func(c *Call) { c.Usage.Cached = 4 * (c.Index % 2) }), Remark, "1000 of 5000 prompt tokens (20.0 %)"},
		{"more cached than sent", "prefix_cache", Header{Cache: CacheWarm}, &client, each(good(), func(c *Call) { c.Usage.Cached = 20 }), Noted, "cannot be: 10000 of 5000"},
		{"more found than looked up", "prefix_cache", Header{}, &Client{Cache: &CacheUse{Queries: 50, Hits: 51, From: "hits"}}, good(), Noted, "cannot be"},
		{"unique and new", "prefix_cache", Header{Cache: CacheUnique}, &client, each(good(), func(c *Call) { c.Usage.Cached = c.Index % 2 }), Sound, "cache unique): 250 of 5000"},
		{"unique and not new", "prefix_cache", Header{Cache: CacheUnique}, &client, each(good(), func(c *Call) { c.Usage.Cached = 4 * (c.Index % 2) }), Noted, "were to be new"},
		{"unique by usage, not by counters", "prefix_cache", Header{Cache: CacheUnique}, &Client{Cache: &CacheUse{Queries: 5000, Hits: 400, From: "vllm:prefix_cache_hits"}}, good(), Noted, "by vllm:prefix_cache_hits 400 of 5000 (8.0 %)"},
		{"reset", "prefix_cache", Header{Cache: CacheReset}, &Client{Cache: &CacheUse{Reset: true}}, good(), Sound, "emptied before the run"},
		{"reset that did not happen", "prefix_cache", Header{Cache: CacheReset}, &Client{Cache: &CacheUse{}}, good(), Noted, "and was not"},
		{"warm as declared", "prefix_cache", Header{Cache: CacheWarm}, &client, each(good(), func(c *Call) { c.Usage.Cached = 9 }), Remark, "cache warm): 4500 of 5000"},
		{"unique, with prefixes shared in the run", "prefix_cache", Header{Cache: CacheUnique, Sharing: true}, &client, each(good(), func(c *Call) { c.Usage.Cached = 9 }), Remark, "shares prefixes within the run: 4500 of 5000"},
		{"text agrees", "tokens", Header{}, &client, each(good(), func(c *Call) { c.Recount = c.Usage.Completion }), Sound, "5450 by the tokenizer in the text of 500 calls (+0.0 %)"},
		{"text is shorter", "tokens", Header{}, &client, each(good(), func(c *Call) { c.Recount = 10; c.Usage.Completion = 20 }), Noted, "5000 by the tokenizer in the text of 500 calls (-50.0 %)"},
		{"text is another tokenizer's", "tokens", Header{}, &client, each(good(), func(c *Call) { c.Recount = c.Usage.Completion * 2 }), Remark, "10900 by the tokenizer in the text of 500 calls (+100.0 %)"},
		{"text alone", "tokens", Header{Tokenizer: "qwen"}, &client, each(good(), func(c *Call) { c.Usage, c.Recount = nil, len(c.Chunks)*2 }), Noted, "10900 output tokens were counted by the tokenizer qwen in the text, 5450 in the stream (-50.0 %)"},
		{"partial", "partial", Header{Requests: 600}, &Client{Partial: true, StopNote: "interrupted"}, good(), Noted, "500 of 600 planned calls, interrupted"},
		{"a call twice", "partial", Header{}, &client, append(good(), good()[7]), Voided, "call 7 is there more than once"},
		{"calls missing", "partial", Header{Requests: 501}, &client, good(), Noted, "500 of 501"},
		{"time decided", "partial", Header{}, &client, good(), Sound, "all 500 calls of the run are here"},
		{"turns given up", "partial", Header{Requests: 507}, &Client{Wall: client.Wall, Procs: client.Procs, Unsent: 7}, good(), Noted,
			"7 later turns of conversations were never sent because a turn before them failed; 500 calls were made"},
		{"turns given up and calls missing", "partial", Header{Requests: 508}, &Client{Wall: client.Wall, Procs: client.Procs, Unsent: 7}, good(), Noted, "partial: 500 of 508"},
		{"killed", "partial", Header{}, nil, good(), Noted, "no record of its client"},
		{"clock back", "time_order", Header{}, &client, each(good(), func(c *Call) { c.Headers = c.Sent - 1 }), Voided, "call 0: headers"},
		{"chunks swapped", "time_order", Header{}, &client, each(good(), func(c *Call) { slices.Reverse(c.Chunks) }), Voided, "a chunk at"},
		{"chunks swapped", "identity", Header{}, &client, each(good(), func(c *Call) { slices.Reverse(c.Chunks) }), Voided, "TTFT + TPOT"},
		{"chunks after the end", "peak", Header{}, &client, each(good()[:20], func(c *Call) { c.Chunks[0].At, c.Chunks[1].At = 0, 9*time.Second }), Voided, "the busiest second"},
		{"answer outside", "time_order", Header{}, &client, each(good(), func(c *Call) { c.Answer = c.End }), Voided, "first answer token"},
		{"negative", "time_order", Header{}, &client, each(good(), func(c *Call) { c.Due = -1 }), Voided, "due at -1ns"},
		{"few samples", "samples", Header{}, &client, good()[:100], Remark, "100 calls are few: P99 needs 459"},
		{"burst", "burst", Header{}, &client, each(good(), func(c *Call) { shift(c, -c.Sent) }), Remark, "all 500 requests were due at once"},
		{"closed loop", "burst", Header{Limit: 10}, &client, each(good(), func(c *Call) { c.Due = 0 }), Sound, "10 were let through"},
		{"steady load", "little", Header{}, &client, good(), Sound, "apart"},
		{"no time for Little", "little", Header{}, &client, each(good(), func(c *Call) { c.End, c.Chunks = c.Sent, []Chunk{{At: c.Sent, Tokens: 1}} }), Sound, "the calls take no time"},
		{"too short for Little", "little", Header{}, &client, good()[:20], Sound, "not applicable"},
		{"keeps up", "saturation", Header{Rate: 50}, &client, good(), Sound, "of 50.00 req/s offered"},
		// Each call takes 10 ms longer than the one before: ends come at 2/3 of the rate.
		{"queue grows", "saturation", Header{Rate: 50}, &client, each(good(), func(c *Call) { delay(c, time.Duration(c.Index)*10*msec) }), Remark, "33.3"},
		{"queue grows", "little", Header{Rate: 50}, &client, each(good(), func(c *Call) { delay(c, time.Duration(c.Index)*10*msec) }), Remark, "not steady"},
		{"long answers", "saturation", Header{Rate: 50}, &client, each(good(), func(c *Call) { delay(c, time.Duration(c.Index*7919%500)*20*msec) }), Sound, "offered"},
	} {
		t.Run(test.name+"/"+test.check, func(t *testing.T) {
			s, err := Summarize(test.header, test.client, Options{}, slices.Values(test.calls))
			if err != nil {
				t.Fatal(err)
			}
			c, ok := s.Verdict.Check(test.check)
			if !ok || c.Status != test.want || !strings.Contains(c.Text, test.text) {
				t.Errorf("%s: %s %q, want %s with %q", c.Name, c.Status, c.Text, test.want, test.text)
			}
			if c.Status != Remark && s.Verdict.Status.rank() < c.Status.rank() {
				t.Errorf("the verdict is %s with a check that is %s", s.Verdict.Status, c.Status)
			}
		})
	}
}

// loop is a closed loop of one place: each of n calls takes 101 ms and is sent
// so much after the one before it ended.
func loop(n int, late time.Duration) []Call {
	calls := make([]Call, n)
	ready := time.Duration(0)
	for i := range calls {
		calls[i] = stream(i, ready+late, 90*msec, 100*msec)
		calls[i].Due, calls[i].Ready = 0, ready
		ready = calls[i].End
	}
	return calls
}

func each(calls []Call, change func(*Call)) []Call {
	for i := range calls {
		change(&calls[i])
	}
	return calls
}

// shift moves a call in time.
func shift(c *Call, by time.Duration) {
	c.Due, c.Ready, c.Sent = c.Due+by, c.Ready+by, c.Sent+by
	delay(c, by)
}

// delay makes all that follows the sending later.
func delay(c *Call, by time.Duration) {
	c.End += by
	for i := range c.Chunks {
		c.Chunks[i].At += by
	}
}

func TestSoundRun(t *testing.T) {
	s := summarize(t, Header{Rate: 50}, Options{}, steady(500, 20*msec))
	if s.Verdict.Status != Sound || s.Verdict.Why() != "" {
		t.Errorf("a faultless run is %s: %s", s.Verdict.Status, s.Verdict.Why())
	}
	names := map[string]bool{}
	for _, c := range s.Verdict.Checks {
		if names[c.Name] || c.Text == "" {
			t.Errorf("check %q is there twice or says nothing", c.Name)
		}
		names[c.Name] = true
	}
}

func TestSamplesAreNamedOnce(t *testing.T) {
	s := summarize(t, Header{}, Options{Percentiles: []float64{99, 95, 99}}, steady(60, 10*msec))
	if c, _ := s.Verdict.Check("samples"); c.Text != "60 calls are few: P95 needs 90, P99 needs 459" {
		t.Errorf("%s", c.Text)
	}
}

func TestSimulatedSaysSo(t *testing.T) {
	calls := steady(500, 20*msec)
	calls[100].Sim = true // one answer of a simulator is enough
	for name, s := range map[string]Summary{
		"header": summarize(t, Header{Simulated: true}, Options{}, steady(500, 20*msec)),
		"answer": summarize(t, Header{}, Options{}, calls),
		"replay": summarize(t, Header{Predicted: true}, Options{}, steady(500, 20*msec)),
		"failed": summarize(t, Header{Simulated: true}, Options{}, []Call{fail(calls[0], Connect)}),
	} {
		first := s.Verdict.Checks[0]
		if !s.Simulated || first.Name != "simulated" || !strings.HasPrefix(first.Text, "SIMULATED: ") {
			t.Errorf("%s: simulated %v, first check %+v", name, s.Simulated, first)
		}
		if !strings.Contains(s.Verdict.Text(), "SIMULATED: ") || !strings.HasPrefix(Block(s, Style{}), "SIMULATED: ") {
			t.Errorf("%s: the block or the verdict does not say SIMULATED", name)
		}
	}
}

func TestIdentityHolds(t *testing.T) {
	for _, c := range steady(500, 0) {
		tpot, ok := c.TPOT()
		if !ok {
			continue
		}
		ttft, _ := c.TTFT()
		e2e, _ := c.E2E()
		n, _ := c.Output()
		if d := float64(ttft) + tpot*float64(n-1) - float64(e2e); math.Abs(d) > 1e3 {
			t.Errorf("call %d: TTFT + TPOT*(n-1) - E2E = %v ns", c.Index, d)
		}
	}
}

func TestVerdictText(t *testing.T) {
	v := Verdict{Status: Voided, Checks: []Check{
		{"simulated", Sound, "SIMULATED: a simulator answered, no hardware was measured"},
		{"tokens", Noted, "tokens differ"},
		{"dispatch_lag", Sound, "p99 0.1 ms"},
		{"gc", Sound, "short"},
		{"client_cpu", Voided, "busy"},
		{"self_check", Sound, "3 us"},
	}}
	const want = `Verdict: void (6 checks)
  SIMULATED: a simulator answered, no hardware was measured
  noted  tokens: tokens differ
  sound  dispatch_lag: p99 0.1 ms
  void   client_cpu: busy
  sound  self_check: 3 us
`
	if got := v.Text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := v.Why(); got != "busy" {
		t.Errorf("Why = %q, want the void check's sentence", got)
	}
}
