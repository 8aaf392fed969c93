package forecast

import (
	"maps"
	"math"
	"testing"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/workload"
)

// run is a small burst on one device.
func run(t *testing.T, seed uint64) Run {
	t.Helper()
	cmd, err := engine.ParseText("vllm serve Qwen/Qwen3-14B")
	if err != nil {
		t.Fatal(err)
	}
	model, err := arch.LookupModel(cmd.Model)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := arch.LookupAccelerator("a100-sxm-80")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := cmd.Resolve(model, gpu, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := workload.Open(workload.Spec{Dataset: "random", NumPrompts: 40, RandomInputLen: 200, RandomOutputLen: 30, Seed: seed}.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	return Run{Config: cfg, Replicas: 1, Workload: w, Seed: seed}
}

// takes is how long a run takes at a site.
func takes(t *testing.T, r Run, at *Site) (end time.Duration) {
	t.Helper()
	for c, err := range r.Calls(t.Context(), at) {
		if err != nil {
			t.Fatal(err)
		}
		end = max(end, c.End)
	}
	return end
}

// TestSite: at a site where a run took twice as long as predicted, other requests take longer
// too; and what was not measured as it would be replayed is no run of a site.
func TestSite(t *testing.T) {
	r, other := run(t, 1), run(t, 2)
	before, otherBefore := takes(t, r, nil), takes(t, other, nil)
	tokens := float64(r.Workload.Totals().Input + r.Workload.Totals().Output)
	slow := map[string]float64{"completed": 40, "total_input_tokens": 8000, "total_token_throughput": tokens / (2 * before.Seconds())}
	at, err := NewSite([]MeasuredRun{{r, "a", slow}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]float64{"the run": takes(t, r, at).Seconds() / before.Seconds(), "another": takes(t, other, at).Seconds() / otherBefore.Seconds()} {
		if math.Abs(x-2) > 0.6 {
			t.Errorf("%s takes %.2f times as long, want about twice", name, x)
		}
	}
	for name, wrong := range map[string]map[string]float64{
		"failed calls":    {"failed": 1},
		"fewer requests":  {"completed": 39},
		"cached prompts":  {"total_cached_tokens": 4000},
		"without figures": {"total_token_throughput": 0},
	} {
		f := maps.Clone(slow)
		maps.Copy(f, wrong)
		if _, err := NewSite([]MeasuredRun{{r, "a", f}}, nil); err == nil {
			t.Errorf("%s: it is a run of a site", name)
		}
		if _, err := NewSite([]MeasuredRun{{r, "a", slow}, {r, "b", f}}, nil); err != nil {
			t.Errorf("%s: one run of two is sound: %v", name, err)
		}
	}
}

// TestSiteOfSessions: of a run of conversations that took twice as long as predicted a site is learned too.
func TestSiteOfSessions(t *testing.T) {
	r := run(t, 1)
	w, err := workload.Open(workload.Spec{Dataset: "conversations", NumPrompts: 12, Turns: "3", TurnInputLen: "200", TurnOutputLen: "30", MaxConcurrency: 6, Seed: 1}.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	r.Workload = w
	before := takes(t, r, nil)
	tokens := float64(w.Totals().Input + w.Totals().Output)
	slow := map[string]float64{"completed": 36, "total_input_tokens": 8000, "total_cached_tokens": 3000, "total_token_throughput": tokens / (2 * before.Seconds())}
	at, err := NewSite([]MeasuredRun{{r, "a", slow}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if x := takes(t, r, at).Seconds() / before.Seconds(); math.Abs(x-2) > 0.6 {
		t.Errorf("the run takes %.2f times as long, want about twice", x)
	}
}
