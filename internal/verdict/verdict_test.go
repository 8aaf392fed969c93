package verdict

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/block"
	"perflab/internal/result"
	"perflab/internal/test/calltest"
)

var update = flag.Bool("update", false, "write the golden files")

const msec = time.Millisecond

// Calls to judge.
var (
	stream = calltest.Stream
	steady = calltest.Steady
	fail   = calltest.Fail
)

// client is one that has nothing to answer for.
var client = result.Client{Wall: 10 * time.Second, CPU: time.Second, Procs: 2}

func summarize(t testing.TB, h result.Header, o result.Options, calls []result.Call) result.Summary {
	t.Helper()
	if h.Requests == 0 {
		h.Requests = len(calls)
	}
	s, err := Summarize(h, &client, o, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// onMachine is a client on a machine of two processors, with an engine beside it that takes a
// fifth of them, in a run of ten seconds.
func onMachine(change func(*result.Machine)) *result.Client {
	m := &result.Machine{CPUs: 2, Time: 20 * time.Second, Idle: 14 * time.Second, Client: 2 * time.Second, Here: true, Processes: 3, Engine: 4 * time.Second}
	change(m)
	return &result.Client{Wall: 10 * time.Second, CPU: 2 * time.Second, Procs: 2, Machine: m}
}

// TestChecks breaks one thing at a time in a run of which every check but the
// named one keeps its status.
func TestChecks(t *testing.T) {
	t.Parallel()
	good := func() []result.Call { return steady(500, 20*msec) }
	for _, test := range []struct {
		name   string
		check  string
		header result.Header
		client *result.Client
		calls  []result.Call
		want   result.Status
		text   string // part of the sentence
	}{
		{"sound", "dispatch_lag", result.Header{}, &client, good(), result.Sound, "p99 0.000 ms"},
		{"late client", "dispatch_lag", result.Header{}, &client, each(good(), func(c *result.Call) { c.Due = max(0, c.Due-2*msec) }), result.Noted, "p99 2.000 ms is above 1.000 ms"},
		{"client late by far", "dispatch_lag", result.Header{}, &client, each(good(), func(c *result.Call) { c.Due = max(0, c.Due-11*msec) }), result.Voided, "p99 11.000 ms is above 1.000 ms"},
		{"limit, not lateness", "dispatch_lag", result.Header{Limit: 1000}, &client, each(good(), func(c *result.Call) { c.Due = max(0, c.Due-2*msec) }), result.Sound, "p99 0.000 ms"},
		{"late in a burst", "dispatch_lag", result.Header{}, &client, each(good()[:40], func(c *result.Call) { c.Due, c.Ready = 0, 0 }), result.Voided, "above 50.000 ms"},
		{"writing a burst", "dispatch_lag", result.Header{}, &client, each(good()[:3], func(c *result.Call) { c.Due, c.Ready = 0, 0 }), result.Sound, "allowed 50.000 ms"},
		{"few processors", "client_cpu", result.Header{}, &result.Client{Wall: 10, CPU: 9, Procs: 1}, good(), result.Noted, "90 %"},
		{"no processor left", "client_cpu", result.Header{}, &result.Client{Wall: 10, CPU: 39, Procs: 4}, good(), result.Voided, "98 %"},
		{"no client", "client_cpu", result.Header{}, nil, good(), result.Sound, "not judged"},
		{"fewer processors allowed than there are", "client_cpu", result.Header{}, &result.Client{Wall: 10, CPU: 19, Procs: 4, CPUs: 2}, good(), result.Voided, "client-bound, it measured itself: the load generator used 95 % of its 2 processors"},
		{"client late by far", "dispatch_lag", result.Header{}, &client, each(good(), func(c *result.Call) { c.Due = max(0, c.Due-11*msec) }), result.Voided, "client-bound"},
		{"connecting is no lateness", "dispatch_lag", result.Header{}, &client, each(good(), func(c *result.Call) {
			c.Due, c.Ready, c.Dial = max(0, c.Due-2*msec), max(0, c.Due-2*msec), min(c.Due, 2*msec)
		}), result.Sound, "p99 0.000 ms"},
		{"places left empty", "dispatch_lag", result.Header{Limit: 1}, &client, loop(300, 5*msec), result.Noted, "left places of the closed loop empty for 4.7 % of the time"},
		{"places left empty by far", "dispatch_lag", result.Header{Limit: 1}, &client, loop(300, 40*msec), result.Voided, "client-bound, the load generator left places of the closed loop empty for 28.4 %"},
		{"places refilled", "dispatch_lag", result.Header{Limit: 1}, &client, loop(300, 2*msec), result.Sound, "p99 2.000 ms, allowed 50.000 ms"},
		{"places left empty of a loop bounded by time", "dispatch_lag", result.Header{Limit: 1, Closed: true}, &client, each(loop(300, 5*msec), func(c *result.Call) { c.Due = c.Ready }), result.Noted, "left places of the closed loop empty for 4.7 % of the time"},
		{"goroutines of a closed loop waited", "scheduler", result.Header{Limit: 1, Clock: result.ClockMonotonic}, &result.Client{SchedP99: 11 * msec}, loop(300, 0), result.Voided, "allowed 1.000 ms"},
		{"connecting before it could", "time_order", result.Header{}, &client, each(good(), func(c *result.Call) { c.Dial = msec }), result.Voided, "call 0: asking for a connection"},
		{"connecting takes less than nothing", "time_order", result.Header{}, &client, each(good(), func(c *result.Call) { c.Dial = -msec }), result.Voided, "call 0: sent"},
		{"goroutines waited", "scheduler", result.Header{}, &result.Client{SchedP99: 2 * msec}, good(), result.Noted, "p99 2.000 ms"},
		{"goroutines waited by far", "scheduler", result.Header{Clock: result.ClockMonotonic}, &result.Client{SchedP99: 11 * msec}, good(), result.Voided, "client-bound"},
		{"the kernel did not wait", "scheduler", result.Header{Clock: result.ClockKernel}, &result.Client{SchedP99: 11 * msec}, good(), result.Noted, "allowed 1.000 ms"},
		{"goroutines ran", "scheduler", result.Header{}, &result.Client{SchedP50: 2000, SchedP99: msec}, good(), result.Sound, "p50 0.002 ms"},
		{"not sampled", "scheduler", result.Header{}, &client, good(), result.Sound, "not judged"},
		{"the kernel stamps what goroutines waited for", "scheduler", result.Header{Clock: result.ClockKernel, LateReads: true}, &result.Client{SchedP99: 11 * msec}, good(), result.Sound, "in no stamp"},
		{"the kernel stamps during a collection", "gc", result.Header{Clock: result.ClockKernel, LateReads: true}, &result.Client{GCMax: 50 * msec}, good(), result.Sound, "in no stamp"},
		{"a collection in the stamps", "gc", result.Header{Clock: result.ClockMonotonic}, &result.Client{GCMax: 50 * msec}, good(), result.Noted, "50.000 ms"},
		{"an earlier version's machine", "machine", result.Header{}, &client, good(), result.Sound, "not judged"},
		{"a machine for itself", "machine", result.Header{}, onMachine(func(*result.Machine) {}), good(), result.Sound, "of the machine's 2 processors 30 % was used: load generator 10 %, engine 20 %, other programs 0 %"},
		{"a moment", "machine", result.Header{}, onMachine(func(m *result.Machine) { m.Time, m.Idle = 40*msec, 0 }), good(), result.Sound, "not judged"},
		{"another program", "machine", result.Header{}, onMachine(func(m *result.Machine) { m.Idle -= 8 * time.Second }), good(), result.Remark, "other programs ran on this machine: of the machine's 2 processors 70 % was used: load generator 10 %, engine 20 %, other programs 40 %"},
		{"full processors", "machine", result.Header{}, onMachine(func(m *result.Machine) { m.Idle = 0 }), good(), result.Noted, "the engine and the load generator waited for them: of the machine's 2 processors 100 % was used"},
		{"full processors, engine elsewhere", "machine", result.Header{}, onMachine(func(m *result.Machine) { m.Idle, m.Here, m.Engine, m.Processes = 0, false, 0, 0 }), good(), result.Noted, "so that the load generator waited for them"},
		{"an engine that waits", "machine", result.Header{}, onMachine(func(m *result.Machine) { m.EngineWaits = result.Waits{Time: time.Second, Runs: 2000} }), good(), result.Noted, "waited 0.500 ms for a processor each time that it had something to do, 5.0 % of the 10.00 ms that a step took"},
		{"an engine that hardly waits", "machine", result.Header{}, onMachine(func(m *result.Machine) { m.EngineWaits = result.Waits{Time: time.Second, Runs: 10000} }), good(), result.Sound, "engine 20 %"},
		{"an engine that cannot be told", "machine", result.Header{}, onMachine(func(m *result.Machine) { m.Engine, m.Processes = 0, 0 }), good(), result.Remark, "other programs 20 % (the engine may be among them: its processes could not be told)"},
		{"stolen", "stolen", result.Header{}, &result.Client{Stolen: 0.031}, good(), result.Noted, "the host took 3.1 %"},
		{"stolen in short stops", "stolen", result.Header{Clock: result.ClockKernel, LateReads: true}, &result.Client{Stolen: 0.05, SchedMax: 2 * msec}, good(), result.Sound, "the mean latency is off by 0.100 ms at most"},
		{"stolen in long stops", "stolen", result.Header{Clock: result.ClockKernel, LateReads: true}, &result.Client{Stolen: 0.05, SchedMax: 10 * msec}, good(), result.Noted, "the host took 5.0 %"},
		{"hardly stolen", "stolen", result.Header{}, &result.Client{Stolen: 0.02}, good(), result.Sound, "2.0 %"},
		{"clock not known", "clock", result.Header{}, &client, good(), result.Sound, "not judged"},
		{"process clock", "clock", result.Header{Clock: result.ClockMonotonic}, &client, good(), result.Remark, "taken by this process"},
		{"checked", "self_check", result.Header{Clock: result.ClockKernel, SelfCheck: &result.SelfCheck{Taken: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC), Streams: 1000, EventRate: 50_000, ArrivalP50: 3.1, ArrivalP99: 9.8, TTFTError: 0.42, ITLError: -0.003, SendP50: 11.6, SendP99: 310}}, &client, good(), result.Sound,
			"the client's own errors on this machine: stamps 3.1 us late (p99 9.8 us) at 50000 events/s, mean TTFT +0.420 ms and p99 ITL -0.003 ms with 1000 streams at once, requests 11.6 us late (p99 310 us); selfcheck of 2026-02-03"},
		{"kernel clock", "clock", result.Header{Clock: result.ClockKernel}, &client, each(good(), func(c *result.Call) { c.Reads = 10 }), result.Sound, "5000 of 5000 reads"},
		{"coarse stamps", "clock", result.Header{Clock: result.ClockKernel}, &client, each(good(), func(c *result.Call) { c.Reads, c.Coarse = 10, c.Index%2 }), result.Noted, "250 of 5000 reads have no stamp"},
		{"first byte before sending", "time_order", result.Header{}, &client, each(good(), func(c *result.Call) { c.First = c.Sent - 1 }), result.Voided, "the first byte"},
		{"more tokens than can be", "counts", result.Header{}, &client, each(good(), func(c *result.Call) {
			if c.Index == 7 {
				c.Usage.Completion = result.MaxCallTokens + 1
			}
		}), result.Noted, "more than 1048576, more than 1073741824 in the prompt, or fewer than 0 (the first is call 7)"},
		{"never below the mean", "peak", result.Header{}, &client, each(good()[:1], func(c *result.Call) {
			c.Chunks, c.End = []result.Chunk{{At: msec, Tokens: 10}, {At: 1499 * msec, Tokens: 10}}, 1500*msec
			c.Usage.Completion = 20
		}), result.Sound, "peak 13.33 tok/s >= mean 13.33 tok/s"},
		{"alone", "merged", result.Header{}, &client, good(), result.Sound, "0 of 5450 chunks"},
		{"merged", "merged", result.Header{}, &client, each(good(), func(c *result.Call) { c.Chunks[1].At = c.Chunks[0].At }), result.Remark, "500 of 5450 chunks (9.2 %)"},
		{"gaps", "gaps", result.Header{}, &client, good(), result.Sound, "4950 gaps"},
		{"chunks swapped", "gaps", result.Header{}, &client, each(good(), func(c *result.Call) { slices.Reverse(c.Chunks) }), result.Voided, "median -"},
		{"two stamps of one read", "gaps", result.Header{}, &client, each(good(), func(c *result.Call) {
			c.Reads = len(c.Chunks)
			for i := range c.Chunks {
				c.Chunks[i].Read = int32((i + 1) / 2)
			}
		}), result.Voided, "impossible"},
		{"one token each", "gaps", result.Header{}, &client, each(good(), func(c *result.Call) { c.Chunks, c.Usage.Completion = c.Chunks[:1], 1 }), result.Sound, "not judged"},
		{"long pause", "gc", result.Header{}, &result.Client{GCMax: 6 * msec}, good(), result.Noted, "6.000 ms, allowed 5.000"},
		{"stream interval", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) { c.Usage.Completion *= 2 }), result.Noted, "a chunk carries 2.00 tokens"},
		{"hidden reasoning", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) { c.Usage.Completion *= 2; c.Usage.Reasoning = 1 }), result.Noted, "500 of the tokens were reasoning"},
		{"chunks that are no tokens", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) { c.Usage.Completion-- }), result.Voided, "more tokens streamed"},
		{"errors that would cancel", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) { c.Usage.Completion += 2*(c.Index%2) - 1 }), result.Voided, "more tokens streamed"},
		{"one stray flush", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) {
			if c.Index == 0 {
				c.Usage.Completion--
			}
		}), result.Noted, "1 chunks more"},
		{"no usage", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) { c.Usage = nil }), result.Noted, "sent no usable usage"},
		{"some without usage", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) {
			if c.Index == 0 {
				c.Usage = nil
			}
		}), result.Noted, "usage came with 499 of 500"},
		{"not streamed", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) { c.Chunks = []result.Chunk{{At: c.End, Tokens: int32(c.Usage.Completion)}} }), result.Noted, "500 of 500 calls got all their tokens in one read"},
		{"predicted without usage", "tokens", result.Header{Predicted: true}, nil, each(good(), func(c *result.Call) { c.Usage = nil }), result.Sound, "predicted"},
		{"renamed field", "new_field", result.Header{}, &client, each(good(), func(c *result.Call) { c.Field = "thoughts" }), result.Noted, "thoughts"},
		{"failures", "failures", result.Header{}, &client, each(good(), func(c *result.Call) {
			if c.Index%100 == 0 {
				*c = fail(*c, []result.Class{result.Connect, result.EarlyClose, result.EarlyClose}[c.Index%3])
			}
		}), result.Noted, "5 of 500 calls failed (early_close"},
		{"an error is quoted", "failures", result.Header{}, &client, each(good(), func(c *result.Call) {
			if c.Index > 2 {
				*c = fail(*c, []result.Class{result.Connect, result.EarlyClose}[min(1, c.Index%100)])
				c.Error = fmt.Sprintf("reason %d", c.Index)
			}
		}), result.Voided, "figure; call 3: reason 3"},
		{"a tenth failed", "failures", result.Header{}, &client, failing(good(), 10), result.Noted, "percentiles above P90 have no bound, since a call that failed has no latency: 50 of 500 calls failed"},
		{"a ninth failed", "failures", result.Header{}, &client, failing(good(), 9), result.Voided, "percentiles above P88.8 have no bound"},
		{"half timed out", "failures", result.Header{}, &client, failing(good(), 2), result.Voided, "percentiles above P50 have no bound, since a call that failed has no latency: 250 of 500 calls failed (timeout_idle 250)"},
		{"half were cancelled", "failures", result.Header{}, &client, each(good(), func(c *result.Call) {
			if c.Index%2 == 0 {
				*c = fail(*c, result.Cancelled)
			}
		}), result.Noted, "250 of 500 calls failed (cancelled 250)"},
		{"as asked", "lengths", result.Header{}, &client, each(good(), func(c *result.Call) { c.Want, c.WantIn = c.Usage.Completion, c.Usage.Prompt }), result.Sound, "5450 of 5450 output tokens"},
		{"not known", "lengths", result.Header{}, &client, each(good(), func(c *result.Call) { c.Usage = nil }), result.Sound, "not judged"},
		{"short answers", "lengths", result.Header{}, &client, each(good(), func(c *result.Call) { c.Want = c.Usage.Completion + c.Index%2 }), result.Remark, "250 calls ended before"},
		{"max_tokens ignored", "lengths", result.Header{}, &client, each(good(), func(c *result.Call) { c.Want = c.Usage.Completion - c.Index%2 }), result.Noted, "250 calls got more"},
		{"a quarter of each answer", "lengths", result.Header{Lengths: result.LengthsExact}, &client, each(good(), func(c *result.Call) { c.Want, c.Finish = 4*c.Usage.Completion, "stop" }), result.Voided,
			"500 calls have fewer output tokens than the server was told to generate (ignore_eos), 75.0 % of all are missing; the server ended 500 of them with finish_reason stop: 5450 of 21800 output tokens"},
		{"a twentieth is missing", "lengths", result.Header{Lengths: result.LengthsExact}, &client, shorter(good(), 20), result.Noted, "5.0 % of all are missing"},
		{"a hundredth is missing", "lengths", result.Header{Lengths: result.LengthsExact}, &client, shorter(good(), 100), result.Sound, "output tokens asked for"},
		{"long answers make up for short ones", "lengths", result.Header{Lengths: result.LengthsExact}, &client, each(good(), func(c *result.Call) { c.Want = c.Usage.Completion * (1 + c.Index%2*2) * 2 / 3 }), result.Voided, "are missing"},
		{"short in the stream, without usage", "lengths", result.Header{Lengths: result.LengthsExact}, &client, each(good(), func(c *result.Call) { c.Want, c.Usage = 4*c.Usage.Completion, nil }), result.Voided, "one a chunk, and a chunk may carry several"},
		{"short by the text, as counts differ", "lengths", result.Header{Lengths: result.LengthsExact}, &client, each(shorter(good(), 25), func(c *result.Call) { c.Recount, c.Usage = c.Usage.Completion, nil }), result.Sound, "output tokens asked for"},
		{"no ignore_eos in the API", "lengths", result.Header{Lengths: result.LengthsFixed}, &client, each(good(), func(c *result.Call) { c.Want = 4 * c.Usage.Completion }), result.Noted, "this API cannot be told to go on"},
		{"half of each prompt", "lengths", result.Header{KnownInput: true}, &client, each(good(), func(c *result.Call) { c.WantIn = 2 * c.Usage.Prompt }), result.Voided, "by usage they have 50.0 % fewer tokens: 0 of 0 output tokens asked for, 5000 prompt tokens by usage of 10000"},
		{"a fifth of each prompt missing", "lengths", result.Header{KnownInput: true}, &client, each(good(), func(c *result.Call) { c.WantIn, c.Usage.Prompt = 100, 80 }), result.Noted, "20.0 % fewer tokens"},
		{"a chat template", "lengths", result.Header{KnownInput: true}, &client, each(good(), func(c *result.Call) { c.WantIn, c.Usage.Prompt = 64, 140 }), result.Sound, "70000 prompt tokens by usage of 32000"},
		{"words that are split", "lengths", result.Header{KnownInput: true}, &client, each(good(), func(c *result.Call) { c.WantIn, c.Usage.Prompt = 1000, 1400 }), result.Noted, "30.0 % more tokens than template and plan"},
		{"other prompts altogether", "lengths", result.Header{KnownInput: true}, &client, each(good(), func(c *result.Call) { c.WantIn, c.Usage.Prompt = 1000, 2200 }), result.Voided, "not the prompts that were planned"},
		{"short answers to short prompts", "lengths", result.Header{Lengths: result.LengthsExact, KnownInput: true}, &client, each(good(), func(c *result.Call) { c.Want, c.WantIn = 4*c.Usage.Completion, 2*c.Usage.Prompt }), result.Voided, "; not the prompts that were planned"},
		{"other tokenizer", "lengths", result.Header{}, &client, each(good(), func(c *result.Call) { c.WantIn = 2 * c.Usage.Prompt }), result.Remark, "other prompts"},
		{"cold cache", "prefix_cache", result.Header{}, &client, good(), result.Sound, "0 of 5000 prompt tokens"},
		{"warm cache", "prefix_cache", result.Header{}, &client, each(good(), func(c *result.Call) { c.Usage.Cached = 4 * (c.Index % 2) }), result.Remark, "1000 of 5000 prompt tokens (20.0 %)"},
		{"more cached than sent", "prefix_cache", result.Header{Cache: result.CacheWarm}, &client, each(good(), func(c *result.Call) { c.Usage.Cached = 20 }), result.Noted, "the counts are wrong: 10000 of 5000"},
		{"more found than looked up", "prefix_cache", result.Header{}, &result.Client{Cache: &result.CacheUse{Queries: 50, Hits: 51, From: "hits"}}, good(), result.Noted, "the counts are wrong"},
		{"unique and new", "prefix_cache", result.Header{Cache: result.CacheUnique}, &client, each(good(), func(c *result.Call) { c.Usage.Cached = c.Index % 2 }), result.Sound, "cache unique): 250 of 5000"},
		{"unique and not new", "prefix_cache", result.Header{Cache: result.CacheUnique}, &client, each(good(), func(c *result.Call) { c.Usage.Cached = 4 * (c.Index % 2) }), result.Noted, "were to be new"},
		{"unique by usage, not by counters", "prefix_cache", result.Header{Cache: result.CacheUnique}, &result.Client{Cache: &result.CacheUse{Queries: 5000, Hits: 400, From: "vllm:prefix_cache_hits"}}, good(), result.Noted, "by vllm:prefix_cache_hits 400 of 5000 (8.0 %)"},
		{"reset", "prefix_cache", result.Header{Cache: result.CacheReset}, &result.Client{Cache: &result.CacheUse{Reset: true}}, good(), result.Sound, "emptied before the run"},
		{"reset that did not happen", "prefix_cache", result.Header{Cache: result.CacheReset}, &result.Client{Cache: &result.CacheUse{}}, good(), result.Noted, "and was not"},
		{"warm as declared", "prefix_cache", result.Header{Cache: result.CacheWarm}, &client, each(good(), func(c *result.Call) { c.Usage.Cached = 9 }), result.Remark, "cache warm): 4500 of 5000"},
		{"unique, with prefixes shared in the run", "prefix_cache", result.Header{Cache: result.CacheUnique, Sharing: true}, &client, each(good(), func(c *result.Call) { c.Usage.Cached = 9 }), result.Remark, "shares prefixes within the run: 4500 of 5000"},
		{"text agrees", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) { c.Recount = c.Usage.Completion }), result.Sound, "5450 by the tokenizer in the text of 500 calls (+0.0 %)"},
		{"text is shorter", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) { c.Recount = 10; c.Usage.Completion = 20 }), result.Noted, "5000 by the tokenizer in the text of 500 calls (-50.0 %)"},
		{"text is another tokenizer's", "tokens", result.Header{}, &client, each(good(), func(c *result.Call) { c.Recount = c.Usage.Completion * 2 }), result.Remark, "10900 by the tokenizer in the text of 500 calls (+100.0 %)"},
		{"text alone", "tokens", result.Header{Tokenizer: "qwen"}, &client, each(good(), func(c *result.Call) { c.Usage, c.Recount = nil, len(c.Chunks)*2 }), result.Noted, "10900 output tokens were counted by the tokenizer qwen in the text, 5450 in the stream (-50.0 %)"},
		{"partial", "partial", result.Header{Requests: 600}, &result.Client{Partial: true, StopNote: "interrupted"}, good(), result.Noted, "500 of 600 planned calls, interrupted"},
		{"a call twice", "partial", result.Header{}, &client, append(good(), good()[7]), result.Voided, "call 7 is there more than once"},
		{"calls missing", "partial", result.Header{Requests: 501}, &client, good(), result.Noted, "500 of 501"},
		{"time decided", "partial", result.Header{}, &client, good(), result.Sound, "all 500 calls of the run are here"},
		{"turns given up", "partial", result.Header{Requests: 507}, &result.Client{Wall: client.Wall, Procs: client.Procs, Unsent: 7}, good(), result.Noted,
			"7 later turns of conversations or sessions were never sent because a turn before them failed; 500 calls were made"},
		{"turns given up and calls missing", "partial", result.Header{Requests: 508}, &result.Client{Wall: client.Wall, Procs: client.Procs, Unsent: 7}, good(), result.Noted, "partial: 500 of 508"},
		{"killed", "partial", result.Header{}, nil, good(), result.Noted, "no record of its client"},
		{"clock back", "time_order", result.Header{}, &client, each(good(), func(c *result.Call) { c.Headers = c.Sent - 1 }), result.Voided, "call 0: headers"},
		{"chunks swapped", "time_order", result.Header{}, &client, each(good(), func(c *result.Call) { slices.Reverse(c.Chunks) }), result.Voided, "a chunk at"},
		{"chunks swapped", "identity", result.Header{}, &client, each(good(), func(c *result.Call) { slices.Reverse(c.Chunks) }), result.Voided, "TTFT + TPOT"},
		{"chunks after the end", "peak", result.Header{}, &client, each(good()[:20], func(c *result.Call) { c.Chunks[0].At, c.Chunks[1].At = 0, 9*time.Second }), result.Voided, "the busiest second"},
		{"answer outside", "time_order", result.Header{}, &client, each(good(), func(c *result.Call) { c.Answer = c.End }), result.Voided, "first answer token"},
		{"negative", "time_order", result.Header{}, &client, each(good(), func(c *result.Call) { c.Due = -1 }), result.Voided, "due at -1ns"},
		{"few samples", "samples", result.Header{}, &client, good()[:100], result.Remark, "100 calls are few: P99 needs 459"},
		{"burst", "burst", result.Header{}, &client, each(good(), func(c *result.Call) { shift(c, -c.Sent) }), result.Remark, "all 500 requests were due at once"},
		{"closed loop", "burst", result.Header{Limit: 10}, &client, each(good(), func(c *result.Call) { c.Due = 0 }), result.Sound, "10 were let through"},
		{"steady load", "little", result.Header{}, &client, good(), result.Sound, "apart"},
		{"no time for Little", "little", result.Header{}, &client, each(good(), func(c *result.Call) { c.End, c.Chunks = c.Sent, []result.Chunk{{At: c.Sent, Tokens: 1}} }), result.Sound, "the calls take no time"},
		{"too short for Little", "little", result.Header{}, &client, good()[:20], result.Sound, "not applicable"},
		{"keeps up", "saturation", result.Header{Rate: 50}, &client, good(), result.Sound, "of 50.00 req/s offered"},
		// Each call takes 10 ms longer than the one before: ends come at 2/3 of the rate.
		{"queue grows", "saturation", result.Header{Rate: 50}, &client, each(good(), func(c *result.Call) { delay(c, time.Duration(c.Index)*10*msec) }), result.Noted, "the server is saturated, latency grows with the length of the run: 33.3"},
		{"queue grows in a third", "saturation", result.Header{Rate: 50}, &client, each(good(), func(c *result.Call) { delay(c, time.Duration(min(c.Index, 170))*10*msec) }), result.Sound, "offered"},
		{"no rate", "saturation", result.Header{Limit: 4}, &client, loop(300, 0), result.Sound, "not judged: there was no request rate"},
		{"a limit below the rate", "concurrency_limit", result.Header{Rate: 100, Limit: 4}, &client, limited(120, 10*msec, 4), result.Noted,
			"the concurrency limit of 4 kept the rate down: 40.61 req/s ended of 100.00 req/s offered; 116 of 120 calls waited for one of 4 places, 0.900 s on average; 4 places held for 0.100 s each let about 40.00 req/s through"},
		{"a limit below the rate", "saturation", result.Header{Rate: 100, Limit: 4}, &client, limited(120, 10*msec, 4), result.Sound, "not judged: the concurrency limit kept the rate down"},
		{"few calls and a limit below the rate", "concurrency_limit", result.Header{Rate: 100, Limit: 4}, &client, limited(30, 10*msec, 4), result.Noted, "kept the rate down"},
		{"a limit above the rate", "concurrency_limit", result.Header{Rate: 100, Limit: 50}, &client, limited(120, 10*msec, 50), result.Sound, "0 of 120 calls waited for one of 50 places"},
		{"a limit that the queue never reaches", "saturation", result.Header{Rate: 50, Limit: 1000}, &client, each(good(), func(c *result.Call) { delay(c, time.Duration(c.Index)*10*msec) }), result.Noted, "the server is saturated"},
		{"the client is late and later", "saturation", result.Header{Rate: 100}, &client, each(good(), func(c *result.Call) { c.Due, c.Ready = c.Due/2, c.Due/2 }), result.Sound, "not judged: the load generator missed the rate, see dispatch_lag: 49.92"},
		{"the client is late and later", "dispatch_lag", result.Header{Rate: 100}, &client, each(good(), func(c *result.Call) { c.Due, c.Ready = c.Due/2, c.Due/2 }), result.Voided, "client-bound"},
		{"queue grows", "little", result.Header{Rate: 50}, &client, each(good(), func(c *result.Call) { delay(c, time.Duration(c.Index)*10*msec) }), result.Remark, "not steady"},
		{"long answers", "saturation", result.Header{Rate: 50}, &client, each(good(), func(c *result.Call) { delay(c, time.Duration(c.Index*7919%500)*20*msec) }), result.Sound, "offered"},
	} {
		t.Run(test.name+"/"+test.check, func(t *testing.T) {
			s, err := Summarize(test.header, test.client, result.Options{}, slices.Values(test.calls))
			if err != nil {
				t.Fatal(err)
			}
			c, ok := s.Verdict.Check(test.check)
			if !ok || c.Status != test.want || !strings.Contains(c.Text, test.text) {
				t.Errorf("%s: %s %q, want %s with %q", c.Name, c.Status, c.Text, test.want, test.text)
			}
			worst := result.Verdict{Status: s.Verdict.Status}
			if worst.Add(c); worst.Status != s.Verdict.Status {
				t.Errorf("the verdict is %s with a check that is %s", s.Verdict.Status, c.Status)
			}
		})
	}
}

// failing fails every n-th call by a timeout.
func failing(calls []result.Call, n int) []result.Call {
	return each(calls, func(c *result.Call) {
		if c.Index%n == 0 {
			*c = fail(*c, result.TimeoutIdle)
		}
	})
}

// shorter asks for so many tokens that one in n is missing.
func shorter(calls []result.Call, n int) []result.Call {
	return each(calls, func(c *result.Call) {
		c.Usage = &result.Usage{Prompt: 10, Completion: n - 1}
		c.Want = n
	})
}

// limited is n calls of 100 ms, due one each gap, of which so many are in flight at
// most.
func limited(n int, gap time.Duration, places int) []result.Call {
	calls := make([]result.Call, n)
	free := make([]time.Duration, places)
	for i := range calls {
		due := time.Duration(i) * gap
		place := &free[i%places]
		ready := max(due, *place)
		calls[i] = stream(i, ready, 50*msec, 99*msec)
		calls[i].Due, calls[i].Ready = due, ready
		*place = calls[i].End
	}
	return calls
}

// loop is a closed loop of one place: each of n calls takes 101 ms and is sent
// so much after the one before it ended.
func loop(n int, late time.Duration) []result.Call {
	calls := make([]result.Call, n)
	ready := time.Duration(0)
	for i := range calls {
		calls[i] = stream(i, ready+late, 90*msec, 100*msec)
		calls[i].Due, calls[i].Ready = 0, ready
		ready = calls[i].End
	}
	return calls
}

func each(calls []result.Call, change func(*result.Call)) []result.Call {
	for i := range calls {
		change(&calls[i])
	}
	return calls
}

// shift moves a call in time.
func shift(c *result.Call, by time.Duration) {
	c.Due, c.Ready, c.Sent = c.Due+by, c.Ready+by, c.Sent+by
	delay(c, by)
}

// delay makes all that follows the sending later.
func delay(c *result.Call, by time.Duration) {
	c.End += by
	for i := range c.Chunks {
		c.Chunks[i].At += by
	}
}

func TestSoundRun(t *testing.T) {
	s := summarize(t, result.Header{Rate: 50}, result.Options{}, steady(500, 20*msec))
	if s.Verdict.Status != result.Sound || s.Verdict.Why() != "" {
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
	s := summarize(t, result.Header{}, result.Options{Percentiles: []float64{99, 95, 99}}, steady(60, 10*msec))
	if c, _ := s.Verdict.Check("samples"); c.Text != "60 calls are few: P95 needs 90, P99 needs 459" {
		t.Errorf("%s", c.Text)
	}
}

func TestSimulatedSaysSo(t *testing.T) {
	calls := steady(500, 20*msec)
	calls[100].Sim = true // one answer of a simulator is enough
	for name, s := range map[string]result.Summary{
		"header": summarize(t, result.Header{Simulated: true}, result.Options{}, steady(500, 20*msec)),
		"answer": summarize(t, result.Header{}, result.Options{}, calls),
		"replay": summarize(t, result.Header{Predicted: true}, result.Options{}, steady(500, 20*msec)),
		"failed": summarize(t, result.Header{Simulated: true}, result.Options{}, []result.Call{fail(calls[0], result.Connect)}),
	} {
		first := s.Verdict.Checks[0]
		if !s.Simulated || first.Name != "simulated" || !strings.HasPrefix(first.Text, "SIMULATED: ") {
			t.Errorf("%s: simulated %v, first check %+v", name, s.Simulated, first)
		}
		if !strings.Contains(s.Verdict.Text(), "SIMULATED: ") || !strings.HasPrefix(block.Text(s, block.Style{}), "SIMULATED: ") {
			t.Errorf("%s: the block or the verdict does not say SIMULATED", name)
		}
	}
}

// Calls as earlier versions wrote them have neither reads nor a connection, and
// merged chunks only by their equal stamps.
func TestCallsOfEarlierVersions(t *testing.T) {
	const file = `{"index":0,"due_ns":56196212,"ready_ns":56196212,"sent_ns":56257172,"headers_ns":56657100,"end_ns":96257172,"chunk_ns":[66257172,10000000,0,20000000],"answer_ns":66257172,"finish":"length","usage":{"prompt_tokens":200,"completion_tokens":4},"status":200,"simulated":true,"want_input":200,"want_output":4}
{"index":1,"due_ns":65103332,"ready_ns":65103332,"sent_ns":65152371,"end_ns":65467071,"chunk_ns":[65400000],"chunk_tokens":[3],"status":200,"want_input":200,"want_output":8}
{"index":2,"target":1,"due_ns":66000000,"ready_ns":66000000,"sent_ns":66000000,"end_ns":66100000,"class":"connect","error":"refused"}
`
	var calls []result.Call
	for c, err := range result.ReadCalls(strings.NewReader(file)) {
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	var h result.Header
	if err := json.Unmarshal([]byte(`{"schema":"perflab.run/1","version":"(devel)","simulated":true,"started":"2026-11-21T05:21:30.080205119Z","model":"m","backend":"openai-chat","targets":["http://127.0.0.1:1"],"workload":"random","spec":{},"requests":3,"request_rate":20,"host":{"os":"linux","arch":"amd64","go":"go1.26.8","cpus":2,"gomaxprocs":2}}`), &h); err != nil {
		t.Fatal(err)
	}
	var c result.Client
	if err := json.Unmarshal([]byte(`{"wall_ns":1700000000,"cpu_ns":100000000,"gc_pause_ns":0,"gc_max_ns":0,"procs":2,"partial":false}`), &c); err != nil {
		t.Fatal(err)
	}
	s, err := Summarize(h, &c, result.Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"completed": 2, "failed": 1, "total_output_tokens": 7, "merged_chunks": 1, "mean_itl_ms": 15, "max_ttft_ms": 10, "mean_tpot_ms": 10,
		"duration": (96257172 - 56196212) / 1e9,
	} {
		if got := s.Figures[name]; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if _, ok := s.Figures["new_connections"]; ok {
		t.Error("new_connections is there, of calls that do not tell")
	}
	if _, ok := s.Figures["mean_connect_ms"]; ok || s.Verdict.Why() != "the calls that succeeded do not stand for all, percentiles above P66.66 have no bound, since a call that failed has no latency: 1 of 3 calls failed (connect 1) and are in no latency or throughput figure; call 2: refused" || s.Partial {
		t.Errorf("connect there %v, partial %v, verdict %s: %s", ok, s.Partial, s.Verdict.Status, s.Verdict.Why())
	}
	for _, name := range []string{"clock", "scheduler", "stolen"} {
		if k, _ := s.Verdict.Check(name); k.Status != result.Sound {
			t.Errorf("%s: %s %s", name, k.Status, k.Text)
		}
	}
}

// A run in which nothing succeeded is void.
func TestNothingSucceeded(t *testing.T) {
	for name, calls := range map[string][]result.Call{"no calls": nil, "one failed": {fail(stream(0, 0, 50*msec), result.Connect)}} {
		if s := summarize(t, result.Header{}, result.Options{}, calls); s.Verdict.Status != result.Voided {
			t.Errorf("%s: the verdict is %s, want void", name, s.Verdict.Status)
		}
	}
}

// Calls of an API that generates nothing are sound without a token.
func TestPooling(t *testing.T) {
	var calls []result.Call
	for i := range 3 {
		at := time.Duration(i) * 100 * msec
		calls = append(calls, result.Call{Index: i, Due: at, Ready: at, Sent: at, Headers: at + 30*msec, End: at + 40*msec,
			WantIn: 10, Want: 128, Usage: &result.Usage{Prompt: 10}})
	}
	s := summarize(t, result.Header{Rate: 10}, result.Options{}, calls)
	if c, _ := s.Verdict.Check("tokens"); s.Verdict.Status != result.Sound || c.Text != "nothing is generated: 3 whole answers to 30 input tokens" {
		t.Errorf("verdict %s: %+v", s.Verdict.Status, s.Verdict.Checks)
	}
	calls[0].Usage = nil
	if c, _ := summarize(t, result.Header{Rate: 10}, result.Options{}, calls).Verdict.Check("tokens"); c.Status != result.Noted {
		t.Errorf("one answer without usage: %+v", c)
	}
}

// The verdict is on our own definitions, whatever the figures are by.
func TestCompat(t *testing.T) {
	calls := steady(500, 20*msec)
	ours := summarize(t, result.Header{Rate: 50}, result.Options{}, calls)
	theirs := summarize(t, result.Header{Rate: 50}, result.Options{Compat: result.VLLM}, calls)
	if diff := cmp.Diff(ours.Verdict, theirs.Verdict); diff != "" {
		t.Errorf("-ours +compat\n%s", diff)
	}
}

// A run with every line that a block can have, as it is printed.
func TestRunGolden(t *testing.T) {
	bounds, err := result.ParseGoodput("ttft:50")
	if err != nil {
		t.Fatal(err)
	}
	calls := steady(200, 20*msec)
	calls[3] = fail(calls[3], result.Connect)
	s := summarize(t, result.Header{Limit: 64, Rate: 50}, result.Options{Goodput: bounds, Percentiles: []float64{99.9}}, calls)
	got := block.Text(s, block.Style{}) + s.Verdict.Text()
	const path = "testdata/run.txt"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got (run with -update to accept)\n%s", diff)
	}
}

// A million calls of eleven tokens, figures and verdict: the limit is 5 s.
func BenchmarkSummarize(b *testing.B) {
	for name, n := range map[string]int{"100k": 100_000, "1M": 1_000_000} {
		b.Run(name, func(b *testing.B) {
			calls := steady(n, msec)
			b.ReportAllocs()
			for b.Loop() {
				summarize(b, result.Header{}, result.Options{}, calls)
			}
		})
	}
}
