package result

import (
	"testing"
	"time"

	"perflab/internal/stat"
)

// The samples are those of the summary: the same percentile comes out of both.
func TestSamplesAreTheSummarys(t *testing.T) {
	calls := steady(200, 20*msec)
	calls[3] = fail(calls[3], Connect)
	calls[5] = stream(5, 100*msec, 40*msec, 50*msec, 50*msec, 60*msec) // merged
	calls[6] = stream(6, 120*msec, 40*msec, 50*msec, 61*msec)
	calls[6].Chunks[1].Tokens = 3
	calls[7].Chunks[1].Tokens = MaxCallTokens + 1 // not plausible
	for i := range calls {
		c := &calls[i]
		c.Answer, _ = c.FirstToken()
		c.New, c.Dial, c.First, c.Headers = true, msec, c.Sent+10*msec, c.Sent+20*msec
	}
	h := Header{Limit: 64, Requests: len(calls)}
	s := summarize(t, h, Options{}, calls)
	for _, f := range families() {
		x := FamilySamples(h, calls, f.name)
		if len(x) == 0 {
			t.Errorf("%s has no samples", f.name)
			continue
		}
		if len(x) != s.Samples[f.name] {
			t.Errorf("%s has %d samples, the summary says %d", f.name, len(x), s.Samples[f.name])
		}
		if got, want := stat.Quantile(x, 0.99), s.Figures["p99_"+f.name+"_ms"]; got != want {
			t.Errorf("p99 of the samples of %s is %v, the summary says %v", f.name, got, want)
		}
	}
	if FamilySamples(h, calls, "nonsense") != nil {
		t.Error("an unknown family has samples")
	}
}

func TestSteadyWindowIsTheSummarys(t *testing.T) {
	calls := steady(200, 20*msec)
	w := NewCallSet(calls).SteadyWindow()
	want := summarize(t, Header{Requests: len(calls)}, Options{}, calls).Figures["steady_duration"]
	if !w.OK || w.Seconds() != want {
		t.Errorf("steady from %v to %v, %v; the summary says %v s", w.From, w.To, w.OK, want)
	}
	for _, none := range [][]Call{nil, {{Class: Connect}}, {{Sent: 0, End: time.Second}, {Sent: 0, End: 2 * time.Second}}} {
		if NewCallSet(none).SteadyWindow().OK {
			t.Errorf("%d calls that have no steady window have one", len(none))
		}
	}
}
