package interop

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/result"
)

const msec = time.Millisecond

// stream returns a call sent at sent whose chunks of one token come at the
// given times after it; the stream ends 1 ms after the last.
func stream(index int, sent time.Duration, at ...time.Duration) result.Call {
	c := result.Call{Index: index, Due: sent, Ready: sent, Sent: sent, WantIn: 10, Usage: &result.Usage{Prompt: 10, Completion: len(at)}}
	for _, t := range at {
		c.Chunks = append(c.Chunks, result.Chunk{At: sent + t, Tokens: 1})
	}
	c.End = sent + at[len(at)-1] + msec
	return c
}

// fail turns a call into a failed one.
func fail(c result.Call, class result.Class) result.Call {
	c.Class, c.Error, c.Chunks, c.Usage = class, "it broke", nil, nil
	return c
}

func summarize(t *testing.T, h result.Header, o result.Options, calls []result.Call) result.Summary {
	t.Helper()
	s, err := result.Summarize(h, &result.Client{}, o, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compatCalls are the calls of testdata/compat.py.
func compatCalls() []result.Call {
	at := func(ms int) time.Duration { return time.Duration(ms) * msec }
	token := func(ms, read int) result.Chunk { return result.Chunk{At: at(ms), Tokens: 1, Read: int32(read)} }
	call := func(i, sent, prompt, n int, end int) result.Call {
		c := result.Call{Index: i, Due: at(sent), Ready: at(sent), Sent: at(sent), End: at(end), WantIn: prompt, Reads: 9}
		if n > 0 {
			c.Usage = &result.Usage{Prompt: prompt, Completion: n}
		}
		return c
	}
	a := call(0, 0, 10, 4, 80)
	a.Empty = []result.Stamp{{At: at(30), Read: 0}, {At: at(75), Read: 3}}
	a.Chunks = []result.Chunk{token(50, 1), token(60, 2), token(60, 2)}
	b := call(1, 160, 20, 6, 1060)
	b.New, b.Dial = true, 10*msec // vLLM's clock starts at 150 ms, before the connection
	b.Chunks = []result.Chunk{token(1010, 0), token(1030, 1), token(1050, 2)}
	c := call(2, 990, 30, 1, 2510)
	c.Empty = []result.Stamp{{At: at(1990), Read: 0}, {At: at(2500), Read: 1}}
	c.Chunks = []result.Chunk{token(1990, 0)}
	d := call(3, 100, 40, 0, 1310)
	d.Chunks = []result.Chunk{token(400, 0), token(700, 1), token(1000, 2), token(1300, 3)}
	e := fail(call(4, 200, 50, 0, 2750), result.TimeoutIdle) // lasts longest
	return []result.Call{a, b, c, d, e}
}

func TestWriteVLLMGolden(t *testing.T) {
	calls := []result.Call{
		stream(0, 0, 50*msec, 60*msec, 80*msec),
		stream(1, 100*msec, 100*msec, 140*msec),
		fail(stream(2, 150*msec, 1850*msec), result.TimeoutFirstToken),
	}
	calls[0].Text = "hello"
	calls[0], calls[2] = calls[2], calls[0] // the file has them by index
	h := result.Header{Model: "org/model", Backend: "openai-chat", Requests: 3, Rate: 4, Limit: 8, Started: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}
	s := summarize(t, h, result.Options{}, calls)
	want, err := os.ReadFile("testdata/vllm.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &struct{ Verdict *result.Verdict }{&s.Verdict}); err != nil { // which is package verdict's
		t.Fatal(err)
	}
	b, err := VLLM(h, s, calls, VLLMOptions{
		Metadata: map[string]string{"gpu": "h100"}, Detailed: true, Percentiles: []float64{95, 99},
	})
	if err != nil {
		t.Fatal(err)
	}
	var indented strings.Builder
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	e := json.NewEncoder(&indented)
	e.SetIndent("", " ")
	if err := e.Encode(json.RawMessage(b)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/vllm.json", []byte(indented.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(want), indented.String()); diff != "" {
		t.Errorf("-want +got (run with -update to accept)\n%s", diff)
	}
}

func TestWriteVLLMFileName(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for want, tt := range map[string]struct {
		h result.Header
		o VLLMOptions
	}{
		"openai-chat-4.0qps-concurrency8-model-20260203-040506.json": {result.Header{Backend: "openai-chat", Rate: 4, Limit: 8}, VLLMOptions{}},
		"vllm-infqps-model-20260203-040506.json":                     {result.Header{Backend: "vllm"}, VLLMOptions{}},
		"vllm-0.25qps-model-20260203-040506.json":                    {result.Header{Backend: "vllm", Rate: 0.25}, VLLMOptions{}},
		"vllm-7.1166qps-model-20260203-040506.json":                  {result.Header{Backend: "vllm", Rate: 7.116582062247911}, VLLMOptions{}},
		"a_b-ramp-up-linear-1qps-10qps-model-20260203-040506.json":   {result.Header{Rate: 4.3}, VLLMOptions{Label: "a/b", RampStrategy: "linear", RampStart: 1, RampEnd: 10}},
	} {
		tt.h.Model, tt.h.Started = "org/model", at
		if got := VLLMFileName(tt.h, tt.o); got != want {
			t.Errorf("file name %s, want %s", got, want)
		}
	}
}

// TestWriteVLLMHead: what decides the arrivals is written.
func TestWriteVLLMHead(t *testing.T) {
	b, err := VLLM(result.Header{Backend: "vllm"}, result.Summary{}, nil, VLLMOptions{Label: "night", Burstiness: 0.5, RampStrategy: "linear", RampStart: 1, RampEnd: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"label": "night"`, `"burstiness": 0.5`, `"ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 10`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
}

func TestWriteVLLMOfNothing(t *testing.T) {
	s := summarize(t, result.Header{}, result.Options{}, nil)
	b, err := VLLM(result.Header{}, s, nil, VLLMOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"request_rate": "inf"`, `"max_concurrency": null`, `"mean_ttft_ms": null`, `"request_goodput": null`, `"failures_by_class": {}`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
	if strings.Contains(string(b), "ttfts") {
		t.Errorf("detailed arrays that were not asked for: %s", b)
	}
}

func TestWriteVLLMRejects(t *testing.T) {
	for _, o := range []VLLMOptions{
		{Metadata: map[string]string{"duration": "1"}}, {Metadata: map[string]string{"verdict": "fine"}}, {Metadata: map[string]string{"ramp_up_strategy": "x"}},
		{Sections: []string{"nonsense"}},
	} {
		if _, err := VLLM(result.Header{}, result.Summary{}, nil, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// The arrays of the result file follow the summary's definitions.
func TestCompatDetails(t *testing.T) {
	calls := compatCalls()[:1]
	for compat, want := range map[string]string{
		"":          `"ttfts": [0.05], "itls": [[0.01,0]], "latencies": [0.06]`,
		result.VLLM: `"ttfts": [0.03], "itls": [[0.02,0.01,0,0.015]], "latencies": [0.075]`,
	} {
		s := summarize(t, result.Header{}, result.Options{Compat: compat}, calls)
		b, err := VLLM(result.Header{}, s, calls, VLLMOptions{Detailed: true})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), want) || strings.Contains(string(b), `"compat": "vllm"`) != (compat == result.VLLM) {
			t.Errorf("compat %q: want %s in %s", compat, want, b)
		}
	}
}

// Calls of an API that generates nothing have a latency and no message.
func TestWriteVLLMOfPooling(t *testing.T) {
	var calls []result.Call
	for i := range 3 {
		at := time.Duration(i) * 100 * msec
		calls = append(calls, result.Call{Index: i, Due: at, Ready: at, Sent: at, Headers: at + 30*msec, End: at + 40*msec,
			WantIn: 10, Want: 128, Usage: &result.Usage{Prompt: 10}})
	}
	calls[2].New, calls[2].Dial, calls[2].Sent = true, 5*msec, calls[2].Due+5*msec
	s := summarize(t, result.Header{}, result.Options{Compat: result.VLLM}, calls)
	b, err := VLLM(result.Header{}, s, calls, VLLMOptions{Detailed: true})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `"ttfts": [null,null,null], "itls": [[],[],[]], "latencies": [0.04,0.04,0.04]`) {
		t.Errorf("details: %s", b)
	}
}
