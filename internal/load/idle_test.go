package load

import (
	"iter"
	"testing"
	"time"

	"perflab/internal/workload"

	"github.com/google/go-cmp/cmp"
)

// TestMaxIdle: servers are left idle no longer than it says; what waits comes earlier by the same span,
// in the same order, and shorter idle times stay.
func TestMaxIdle(t *testing.T) {
	w, o := trees(t, 2)
	o.MaxIdle = 6 * ms
	stats, calls, err := runIn(t, []Sender{&speaker{takes: 20 * ms}}, o, w.All(), nil)
	if err != nil || stats.Partial || stats.Skips != 4 || stats.Skipped != 46*ms {
		t.Fatalf("%+v, %v", stats, err)
	}
	var want []times
	for _, from := range []time.Duration{0, 117 * ms} {
		at := func(due time.Duration) times { return times{from + due, from + due, from + due, from + due + 20*ms} }
		want = append(want, at(0), at(26*ms), at(97*ms), at(46*ms), at(71*ms))
	}
	if d := cmp.Diff(want, timesOf(calls)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestMaxIdleEnds: when time is up, what waits for later is not sent, and nobody waits for it.
func TestMaxIdleEnds(t *testing.T) {
	w, o := trees(t, 2)
	o.MaxIdle, o.Until = 6*ms, 40*ms
	stats, calls, err := runIn(t, []Sender{&speaker{takes: 20 * ms}}, o, w.All(), nil)
	if err != nil || stats.Partial || len(calls) != 2 || calls[1].End != 46*ms || stats.Client.Wall > 47*ms {
		t.Errorf("%+v, %d calls, %v", stats, len(calls), err)
	}
}

// TestPass: a load that time ends goes on until its pass over the data set is whole.
func TestPass(t *testing.T) {
	endless := func() iter.Seq[workload.Request] {
		return func(yield func(workload.Request) bool) {
			for i := 0; yield(workload.Request{Index: i}); i++ {
			}
		}
	}
	for _, c := range []struct {
		until time.Duration
		want  int
	}{{ms, 5}, {101 * ms, 10}, {200 * ms, 10}, {201 * ms, 15}} {
		stats, calls, err := runIn(t, []Sender{&speaker{takes: 40 * ms}}, Options{MaxConcurrency: 2, Closed: true, Until: c.until, Pass: 5}, endless(), nil)
		if err != nil || stats.Partial || len(calls) != c.want {
			t.Errorf("until %v: %d calls, want %d (%+v, %v)", c.until, len(calls), c.want, stats, err)
		}
	}
}
