package verdict

import (
	"testing"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
)

// TestPauses: time in which no answer gets a token is said where answers are being written, and
// doubted where the GPUs are idle meanwhile.
func TestPauses(t *testing.T) {
	// Calls of 40 tokens, one each 20 ms; after the 20th all of them wait.
	calls := func(wait time.Duration, n int, from func(i int) time.Duration) []result.Call {
		var out []result.Call
		for i := range n {
			at := from(i)
			c := result.Call{Index: i, Due: at, Sent: at, Usage: &result.Usage{Prompt: 90, Completion: 40}}
			for k := range 40 {
				at += 20 * msec
				if k == 20 {
					at += wait
				}
				c.Chunks = append(c.Chunks, result.Chunk{At: at, Tokens: 1, Read: int32(k)})
			}
			c.End = at
			out = append(out, c)
		}
		return out
	}
	together := func(int) time.Duration { return 0 }
	readings := func(use float64) []gauge.Reading {
		var out []gauge.Reading
		for i := -1; i <= 21; i++ {
			at := time.Duration(i) * 500 * msec
			out = append(out, reading(at, gauge.SourceEngine, 0, map[string]float64{"running": 10, "waiting": 0, "kv_usage": 0.4}), reading(at, gauge.SourceGPU, 0, map[string]float64{gauge.GPUUtilization: use}))
		}
		return out
	}
	for name, test := range map[string]struct {
		calls    []result.Call
		readings []gauge.Reading
		there    bool
		status   result.Status
		text     string
	}{
		"none":         {calls(0, 10, together), readings(0.1), false, result.Sound, ""},
		"short":        {calls(450*msec, 10, together), readings(0.1), false, result.Sound, ""},
		"idle GPUs":    {calls(2*time.Second, 10, together), readings(0.1), true, result.Noted, "no answer got a token for 2.0 s of 2.8 s (72 %), up to 2.02 s on end, while answers were being written, and the GPUs worked 10 % of the time: the engine compiled kernels that it had not used before, or its host held it up; a second run on the same server tells"},
		"busy GPUs":    {calls(2*time.Second, 10, together), readings(0.9), true, result.Remark, "no answer got a token for 2.0 s of 2.8 s (72 %), up to 2.02 s on end, while answers were being written: long prompts were computed at once, kernels were compiled, or the host held the engine up; a second run on the same server tells"},
		"others go on": {calls(2*time.Second, 10, func(i int) time.Duration { return time.Duration(i) * 300 * msec }), readings(0.1), false, result.Sound, ""},
		"no answers":   {calls(0, 3, func(i int) time.Duration { return time.Duration(i) * 3 * time.Second }), readings(0.1), false, result.Sound, ""},
	} {
		s := summarize(t, result.Header{}, result.Options{Readings: test.readings}, test.calls)
		c, ok := s.Verdict.Check("pauses")
		if ok != test.there || ok && (c.Status != test.status || c.Text != test.text) {
			t.Errorf("%s: pauses is %v, %s %q, want %v, %s %q", name, ok, c.Status, c.Text, test.there, test.status, test.text)
		}
	}
}
