package result

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

func TestVLLMJSONGolden(t *testing.T) {
	calls := shuffled([]Call{
		stream(0, 0, 50*msec, 60*msec, 80*msec),
		stream(1, 100*msec, 100*msec, 140*msec),
		fail(stream(2, 150*msec, 1850*msec), TimeoutFirstToken),
	})
	calls[0].Text = "hello"
	h := Header{Model: "org/model", Backend: "openai-chat", Requests: 3, Rate: 4, Limit: 8, Started: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}
	s := summarize(t, h, Options{}, calls)
	want, err := os.ReadFile("testdata/vllm.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &struct{ Verdict *Verdict }{&s.Verdict}); err != nil { // which is package verdict's
		t.Fatal(err)
	}
	b, err := VLLMJSON(h, s, calls, VLLMOptions{
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
	golden(t, "vllm.json", indented.String())
}

func TestVLLMFileName(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for want, tt := range map[string]struct {
		h Header
		o VLLMOptions
	}{
		"openai-chat-4.0qps-concurrency8-model-20260203-040506.json": {Header{Backend: "openai-chat", Rate: 4, Limit: 8}, VLLMOptions{}},
		"vllm-infqps-model-20260203-040506.json":                     {Header{Backend: "vllm"}, VLLMOptions{}},
		"vllm-0.25qps-model-20260203-040506.json":                    {Header{Backend: "vllm", Rate: 0.25}, VLLMOptions{}},
		"vllm-7.1166qps-model-20260203-040506.json":                  {Header{Backend: "vllm", Rate: 7.116582062247911}, VLLMOptions{}},
		"a_b-ramp-up-linear-1qps-10qps-model-20260203-040506.json":   {Header{Rate: 4.3}, VLLMOptions{Label: "a/b", RampStrategy: "linear", RampStart: 1, RampEnd: 10}},
	} {
		tt.h.Model, tt.h.Started = "org/model", at
		if got := VLLMFileName(tt.h, tt.o); got != want {
			t.Errorf("file name %s, want %s", got, want)
		}
	}
}

// TestVLLMJSONHead: what decides the arrivals is written.
func TestVLLMJSONHead(t *testing.T) {
	b, err := VLLMJSON(Header{Backend: "vllm"}, Summary{}, nil, VLLMOptions{Label: "night", Burstiness: 0.5, RampStrategy: "linear", RampStart: 1, RampEnd: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"label": "night"`, `"burstiness": 0.5`, `"ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 10`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
}

func TestVLLMJSONOfNothing(t *testing.T) {
	s := summarize(t, Header{}, Options{}, nil)
	b, err := VLLMJSON(Header{}, s, nil, VLLMOptions{})
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

func TestVLLMJSONRejects(t *testing.T) {
	for _, o := range []VLLMOptions{
		{Metadata: map[string]string{"duration": "1"}}, {Metadata: map[string]string{"verdict": "fine"}}, {Metadata: map[string]string{"ramp_up_strategy": "x"}},
		{Sections: []string{"nonsense"}},
	} {
		if _, err := VLLMJSON(Header{}, Summary{}, nil, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
