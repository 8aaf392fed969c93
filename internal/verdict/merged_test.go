package verdict

import (
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
)

// readLate has the client read the k-th chunk of every n-th call with the one after it, late
// by as much as lies between them.
func readLate(calls []result.Call, n, k int) []result.Call {
	return each(calls, func(c *result.Call) {
		for i := range c.Chunks {
			c.Chunks[i].Read = int32(i)
		}
		c.Reads = len(c.Chunks)
		if c.Index%n != 0 || len(c.Chunks) < k+2 {
			return
		}
		by := c.Chunks[k+1].At - c.Chunks[k].At
		c.Chunks[k].At, c.Chunks[k].Read = c.Chunks[k+1].At, int32(k+1)
		c.Late = []result.LateRead{{Read: int32(k + 1), By: by + time.Millisecond}}
	})
}

// Merged reads of a late client spoil a figure by how far they can have moved it.
func TestLateReadsAreJudged(t *testing.T) {
	header := result.Header{Clock: result.ClockKernel, LateReads: true}
	for _, test := range []struct {
		name   string
		calls  []result.Call
		header result.Header
		want   result.Status
		text   string
	}{
		{"on time", readLate(steady(500, 20*msec), 501, 1), header, result.Sound, "0.0 %) came in one read"},
		{"once", readLate(steady(500, 20*msec), 300, 3), header, result.Sound, "1 of the reads up to 10.5 ms late"},
		{"few first reads", readLate(steady(500, 20*msec), 70, 0), header, result.Noted, "P99 T"},
		{"one gap in a hundred", readLate(steady(500, 20*msec), 6, 3), header, result.Voided, "P99 ITL 19.40 ms may be anything from 10.98 to 19.40 ms; keep"},
		{"all first reads", readLate(steady(500, 20*msec), 1, 0), header, result.Voided, "client-bound, 500 of 5450"},
		{"not told", readLate(steady(500, 20*msec), 6, 3), result.Header{}, result.Voided, "P99 ITL"},
		{"packed by the server", each(steady(500, 20*msec), func(c *result.Call) { c.Chunks[1].At = c.Chunks[0].At }), header, result.Remark, "are in no ITL"},
		{"an earlier version", each(steady(500, 20*msec), func(c *result.Call) { c.Chunks[1].At = c.Chunks[0].At }), result.Header{}, result.Remark, "does not say which"},
	} {
		s := summarize(t, test.header, result.Options{}, test.calls)
		c, _ := s.Verdict.Check("merged")
		if c.Status != test.want || !strings.Contains(c.Text, test.text) {
			t.Errorf("%s: %s %s; want %s, %q", test.name, c.Status, c.Text, test.want, test.text)
		}
		if test.name == "on time" && len(s.Bounds) > 0 {
			t.Errorf("a client on time has bounds %v", s.Bounds)
		}
	}
}
