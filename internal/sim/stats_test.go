package sim

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// sum adds up a struct of durations.
func sum(v any) (d time.Duration) {
	for _, f := range reflect.ValueOf(v).Fields() {
		d += time.Duration(f.Int())
	}
	return d
}

// replayStats are the counters of one replica after a replay.
func replayStats(t testing.TB, cfg engine.Config, jobs []Job, o ReplayOptions) (stats Stats) {
	t.Helper()
	o.Stats = func(_ int, s Stats) { stats = s }
	out, err := Replay(cfg, 1, slices.Values(jobs), o)
	if err != nil {
		t.Fatal(err)
	}
	for range out {
	}
	return stats
}

// TestTimesAddUp: to the nanosecond, in every engine, with every term at work.
func TestTimesAddUp(t *testing.T) {
	all := engines()
	moe := engines()["spec"]
	moe.Model.MoE = &arch.MoE{Experts: 64, Active: 4, Hidden: 2048}
	moe.TP, moe.GraphMax = 4, 1
	moe.Tiers = []engine.Tier{{Name: engine.HostTier, Bytes: 1 << 30, WriteBack: true, Fetch: engine.FetchBefore, GBs: 64}}
	all["experts"] = moe
	for name, cfg := range all {
		s := replayStats(t, cfg, chat(100), ReplayOptions{KVTokens: 5000})
		if got := sum(s.Times); got != s.Busy || s.Busy == 0 {
			t.Errorf("%s: the terms add up to %v of %v", name, got, s.Busy)
		}
		if name != "experts" {
			continue
		}
		for f, v := range reflect.ValueOf(s.Times).Fields() {
			if v.Int() <= 0 {
				t.Errorf("%s takes %v", f.Name, time.Duration(v.Int()))
			}
		}
	}
}

// TestWaits: what is short is what the time counts as.
func TestWaits(t *testing.T) {
	cfg := testConfig()
	jobs := burst(40, 600, 50)
	for what, test := range map[string]struct {
		change func(*engine.Config, *ReplayOptions)
		wait   func(*Waits) *time.Duration
	}{
		"blocks": {func(_ *engine.Config, o *ReplayOptions) { o.KVTokens = 2600 }, func(w *Waits) *time.Duration { return &w.KV }},
		"places": {func(c *engine.Config, _ *ReplayOptions) { c.Seqs = 4 }, func(w *Waits) *time.Duration { return &w.Seqs }},
		"tokens": {func(c *engine.Config, _ *ReplayOptions) { c.Batched = 200 }, func(w *Waits) *time.Duration { return &w.Tokens }},
	} {
		for _, name := range []string{"vllm", "sglang", "trtllm"} {
			c, o := cfg, ReplayOptions{KVTokens: 100_000}
			c.Engine, c.PrefillOnly, c.Reserve = name, name == "sglang", name == "trtllm"
			test.change(&c, &o)
			s := replayStats(t, c, jobs, o)
			w := s.Waits
			if *test.wait(&w) < s.Busy/2 {
				t.Errorf("%s, few %s: %v of %v count as that, of %+v", name, what, *test.wait(&w), s.Busy, s.Waits)
			}
			w.FrontEnd = 0
			*test.wait(&w) = 0
			if sum(w) > s.Busy/10 {
				t.Errorf("%s, few %s: other waits are %+v of %v", name, what, w, s.Busy)
			}
		}
	}
}

// TestGaps: steps, the front end and idleness fill the time from the first
// arrival to the last token.
func TestGaps(t *testing.T) {
	cfg := testConfig()
	first, gap := time.Second, time.Minute
	jobs := burst(3, 100, 10)
	for i := range jobs {
		jobs[i].Arrive = first + time.Duration(i)*gap
	}
	s := replayStats(t, cfg, jobs, ReplayOptions{KVTokens: 10_000})
	front := 3 * (Default().FrontEnd(cfg) + seconds(1e-3*constantsFor(nil, cfg).get("t_entry")))
	want := Waits{FrontEnd: front, Idle: 2*gap - (s.Busy+front)*2/3}
	if d := (s.Waits.Idle - want.Idle).Abs(); d > time.Millisecond || s.Waits.FrontEnd != front {
		t.Errorf("waits are %+v, want %+v", s.Waits, want)
	}
	if peak := 7.0 / 625; s.PeakKV != peak || s.KVUsage != 0 {
		t.Errorf("%.4f of the cache is held at most and %.4f in the end, want %.4f and 0", s.PeakKV, s.KVUsage, peak)
	}
}
