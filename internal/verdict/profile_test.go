package verdict

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"perflab/internal/profile"
	"perflab/internal/result"
)

// A run is judged by the rules that its header names, and by no others; what a server has no room for is told by its words.
func TestSubmission(t *testing.T) {
	calls := make([]result.Call, 100)
	for i := range calls {
		calls[i] = result.Call{Index: i, End: 1000 * time.Second, Chunks: []result.Chunk{{At: time.Second, Tokens: 1}, {At: 2 * time.Second, Tokens: 1, Read: 1}}}
	}
	for _, i := range []int{3, 4} {
		calls[i].Class, calls[i].Error, calls[i].Chunks = result.HTTPStatus, "HTTP 400: This model's maximum context length is 4096 tokens", nil
	}
	of := func(spec string) result.Summary {
		s, err := Summarize(result.Header{Spec: json.RawMessage(spec), Cache: "unique", Lengths: result.LengthsExact}, &result.Client{}, result.Options{}, slices.Values(calls))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, spec := range []string{`{}`, `{"profile_rules":"mlperf-endpoints"}`} {
		if s := of(spec); s.Submission != nil {
			t.Errorf("%s: %+v", spec, s.Submission)
		}
	}
	s := of(`{"profile_rules":"agentx","max_system_idle_ns":10000000000,"workload":{"dataset_name":"agents","dataset_path":"datasets--semianalysisai--cc-traces-weka-062126/x","arrival":"inf","max_concurrency":4,"duration":"30m"}}`)
	if o := s.Submission; o == nil || o.Valid || len(o.Broken) != 1 || !o.Breaks("context_overflow_rate_exceeded") {
		t.Fatalf("%+v", o)
	}
	if c, ok := s.Verdict.Check("submission"); !ok || c.Status != result.Noted {
		t.Errorf("the verdict says %+v", c)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again result.Summary
	if err := json.Unmarshal(b, &again); err != nil || again.Submission == nil || again.Submission.Profile != profile.AgentX || !again.Submission.Breaks("context_overflow_rate_exceeded") {
		t.Errorf("read back: %+v, %v", again.Submission, err)
	}
}
