package lab

import (
	"context"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/tune"
)

// crossing is a predictor of two engines whose curves cross: SGLang is twice as fast as vLLM up to 8 requests in
// flight and slower above. before, if any, hears of each run.
type crossing struct{ before hook }

func (k crossing) Predict(_ context.Context, q bench.Prediction) iter.Seq2[result.Call, error] {
	return func(yield func(result.Call, error) bool) {
		k.before.call()
		users := q.Workload.Spec().MaxConcurrency
		ms := 100.0 + float64(q.Seed*7%5)/10
		switch {
		case q.Config.Engine != "sglang":
		case users <= 8:
			ms *= 0.5
		default:
			ms *= 1.1
		}
		took := time.Duration(ms * float64(time.Millisecond))
		ends := make([]time.Duration, users) // of the places
		for r := range q.Workload.All() {
			i := r.Index % users
			sent := ends[i]
			ends[i] = sent + took
			c := result.Call{
				Index: r.Index, Ready: sent, Sent: sent, Headers: sent + took/2, Answer: sent + took/2, End: ends[i], Status: 200, Finish: "length",
				Chunks: []result.Chunk{{At: sent + took/2, Tokens: 1}, {At: ends[i], Tokens: 1, Read: 1}}, Reads: 2,
				Usage: &result.Usage{Prompt: 8, Completion: 2}, WantIn: 8, Want: 2, Class: result.OK, Sim: true,
			}
			if !yield(c, nil) {
				return
			}
		}
		if q.Engine != nil {
			q.Engine(map[string]float64{"mean_running_requests": 10, "mean_waiting_requests": 0, "mean_kv_usage": 0.1})
		}
	}
}

// sweptArms are the few arms under three loads in each launch.
var sweptArms = strings.NewReplacer(
	"slos: [p99_ttft_ms <= baseline + 400%]", "min_gain: 2%",
	"{name: a, dataset_name: random, num_prompts: 300,", `{name: a, title: Chat, dataset_name: random, num_prompts: 100, sweep: "concurrency=1,8,32",`,
	"  - {name: b, dataset_name: random, num_prompts: 10, random_input_len: 8, random_output_len: 2}\n", "",
	"{label: FP8, model: Qwen/Qwen3-8B-FP8}", "{label: SGLang, engine: sglang}",
).Replace(fewArms)

// TestSweepInOneLaunch: the loads of a sweep are measured in each launch, the study is judged by all of them
// together, and its curves show where the recommendation is better and where it is worse.
func TestSweepInOneLaunch(t *testing.T) {
	dir, f := tuned(t, sweptArms, crossing{})
	if f.Recommended == nil || f.Recommended.Engine != "sglang" || !f.Confirmed {
		t.Fatalf("recommended %+v: %s", f.Recommended, f.Verdict)
	}
	// The geometric mean over 2, 2 and 1/1.1.
	if g := f.Recommended.Gain; g == nil || *g < 0.4 || *g > 0.7 {
		t.Errorf("the gain is %v", g)
	}
	names := []string{"a-concurrency-1", "a-concurrency-8", "a-concurrency-32"}
	for _, trial := range f.Trials {
		var ran []string
		for _, r := range trial.Runs {
			ran = append(ran, r.Workload)
			if !rundir.IsRun(filepath.Join(dir, r.Dir)) || filepath.Base(r.Dir) != r.Workload {
				t.Errorf("trial %d keeps the run of %s in %s", trial.ID, r.Workload, r.Dir)
			}
		}
		if trial.Status == tune.Measured && !slices.Equal(ran, names) {
			t.Errorf("trial %d ran %v", trial.ID, ran)
		}
	}
	if f.Ledger.Launches != len(f.Trials) {
		t.Errorf("%d launches of %d trials", f.Ledger.Launches, len(f.Trials))
	}
	if len(f.Curves) != 1 || f.Curves[0].Workload != "a" || f.Curves[0].Title != "Chat" || f.Curves[0].Axis != bench.AxisConcurrency || len(f.Curves[0].Points) != 3 {
		t.Fatalf("curves %+v", f.Curves)
	}
	for i, p := range f.Curves[0].Points {
		want, verdict := 1.0, tune.Better
		if i == 2 {
			want, verdict = 1/1.1-1, tune.Worse
		}
		if p.Workload != names[i] || p.Gain == nil || p.Gain.Value < want-0.02 || p.Gain.Value > want+0.02 || p.Verdict != verdict || p.Gain.Low > p.Gain.Value || p.Gain.High < p.Gain.Value {
			t.Errorf("%s: gain %+v, %s; want %.2f, %s", p.Text, p.Gain, p.Verdict, want, verdict)
		}
		if len(p.Baseline.Trials) < 2 || len(p.Recommended.Trials) < 2 || p.Recommended.Figures["mean_tpot_ms"] == 0 || p.Baseline.Figures["p95_ttft_ms"] == 0 {
			t.Errorf("%s: %+v", p.Text, p)
		}
	}
	if f.Workloads[2].Sweep != "a" || !strings.Contains(f.Workloads[2].Command, "--max-concurrency 32") || !strings.Contains(f.Objective.Goal, "Chat, 32 in flight (weight 1)") {
		t.Errorf("%+v, %s", f.Workloads[2], f.Objective.Goal)
	}
}

// TestSweepLive: three loads of a server that is started once, which end when their figure is known or at their last
// request.
func TestSweepLive(t *testing.T) {
	text := strings.NewReplacer("metric: goodput_rate, slos: [none]", "metric: steady_request_throughput",
		"find_max: {axis: rate, none}", `sweep: "concurrency=1,2,4", num_prompts: 1000, until_precision: 60%`).Replace(liveSearch("none", "none"))
	_, f := tuned(t, text, nil)
	trial := f.Trials[0]
	if trial.Status == tune.Void {
		t.Skip("this machine is too busy to send on time: " + trial.Reason)
	}
	if len(trial.Runs) != 3 || f.Ledger.Launches != 1 {
		t.Fatalf("%d runs of %d launches: %s %s", len(trial.Runs), f.Ledger.Launches, trial.Status, trial.Reason)
	}
	for i, run := range trial.Runs {
		c, ok := run.Summary.Verdict.Check(result.CheckPrecision)
		if n := run.Summary.Figures["completed"]; !ok || run.Summary.Partial || n > 1000 || run.Summary.Figures["max_concurrency"] != float64(int(1)<<i) {
			t.Errorf("%s: %v requests, partial %v, %q", run.Workload, n, run.Summary.Partial, c.Text)
		}
	}
	if f.Ledger.LoadS <= trial.Runs[0].Summary.Figures["duration"] {
		t.Errorf("the ledger has %g s of load", f.Ledger.LoadS)
	}
}
