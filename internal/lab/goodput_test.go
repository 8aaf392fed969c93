package lab

import (
	"context"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// queue is a predictor of one server that answers a request after the other, in
// seconds that are the engine's.
type queue map[string]float64

func (q queue) Predict(_ context.Context, p bench.Prediction) iter.Seq2[result.Call, error] {
	service := time.Duration(q[p.Config.Engine] * float64(time.Second))
	return func(yield func(result.Call, error) bool) {
		var free time.Duration
		var ends []time.Duration
		limit := p.Workload.Spec().MaxConcurrency
		for r := range p.Workload.All() {
			sent := r.Due
			if n := len(ends); limit > 0 && n >= limit {
				sent = max(sent, ends[n-limit])
			}
			begin := max(sent, free)
			free = begin + service
			ends = append(ends, free)
			c := result.Call{
				Index: r.Index, Due: r.Due, Ready: sent, Sent: sent, End: free, Class: result.OK, WantIn: 8, Want: 2,
				Chunks: []result.Chunk{{At: begin + service/2, Tokens: 1}, {At: free, Tokens: 1, Read: 1}},
				Usage:  &result.Usage{Prompt: 8, Completion: 2},
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// sought is the good study with a search for the highest rate.
var sought = strings.NewReplacer(
	"metric: total_token_throughput", "metric: goodput_rate, slos: [p99_ttft_ms <= 400, success_rate >= 0.99]",
	"num_prompts: 10}", "random_input_len: 8, random_output_len: 2, arrival: constant, find_max: {axis: rate, from: 1, to: 64, precision: 0.05, seconds: 60}}",
).Replace(small)

// TestGoodputConstant: without chance in the arrivals the edge is the server's rate.
func TestGoodputConstant(t *testing.T) {
	dir, f := tuned(t, sought, queue{"vllm": 0.1, "sglang": 0.04})
	for i, want := range []float64{10, 25} {
		run := f.Trials[i].Runs[0]
		v := run.Summary.Figures["goodput_rate"]
		if v > 1.02*want || want > 1.08*v { // a queue may grow a little before 400 ms
			t.Errorf("trial %d: %g of %g: %+v", i+1, v, want, run.Search)
		}
		if got := run.Summary.Figures["goodput_rate_per_gpu"]; got != v/2 {
			t.Errorf("%g per GPU of two", got)
		}
		if run.Search.Met != 2 || run.Search.AtLeast || run.Search.Code != bench.StopBracket || !strings.HasPrefix(run.Dir, f1("trials/00%d/a/points/rate-", i+1)) {
			t.Errorf("trial %d: %+v in %s", i+1, run.Search, run.Dir)
		}
		facts, _, err := bench.OpenSeries(filepath.Join(dir, run.Search.Dir))
		if err != nil || len(facts.Points) != run.Search.Points || facts.Max.Load.Value != v {
			t.Errorf("the series: %+v: %v", facts, err)
		}
		for _, p := range facts.Points {
			if !p.Usable() {
				t.Errorf("%s is read back as void or partial", p.Dir)
			}
			if !rundir.IsRun(filepath.Join(dir, run.Search.Dir, p.Dir)) {
				t.Errorf("%s is not kept", p.Dir)
			}
		}
		stored, err := rundir.OpenRun(filepath.Join(dir, run.Dir))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := stored.Resummarise(); err != nil || again.Figures["total_token_throughput_per_gpu"] != run.Summary.Figures["total_token_throughput_per_gpu"] {
			t.Errorf("read back %g tokens/s per GPU: %v", again.Figures["total_token_throughput_per_gpu"], err)
		}
		var load float64
		for _, p := range facts.Points {
			load += p.Summary.Figures["duration"]
		}
		if math.Abs(load-run.Search.LoadS) > 1e-6*load {
			t.Errorf("%g s under load, %g told", load, run.Search.LoadS)
		}
	}
	if f.Recommended == nil || f.Recommended.Engine != "sglang" || f.Recommended.Gain == nil || math.Abs(*f.Recommended.Gain-1.5) > 0.2 || !f.Confirmed {
		t.Errorf("recommended %+v: %s", f.Recommended, f.Verdict)
	}
	if !strings.Contains(f.Workloads[0].Text, "highest request rate that meets p99_ttft_ms <= 400 and success_rate >= 0.99, to within 5 %") ||
		!strings.Contains(f.Workloads[0].Command, "--find-max rate --find-max-from 1") || strings.Contains(f.Workloads[0].Command, "--num-prompts") {
		t.Errorf("the workload reads %q, %s", f.Workloads[0].Text, f.Workloads[0].Command)
	}
	if f.Objective.Goal != "Highest goodput rate within the SLOs" {
		t.Error(f.Objective.Goal)
	}
}

func f1(format string, i int) string { return strings.Replace(format, "%d", string(rune('0'+i)), 1) }

// TestGoodputSweep holds the answer against every rate near it, under random arrivals:
// what is found meets, and no rate above the bracket does.
func TestGoodputSweep(t *testing.T) {
	text := strings.NewReplacer("arrival: constant", "arrival: poisson", "p99_ttft_ms <= 400", "p90_ttft_ms <= 250", "seconds: 60", "requests: 3000, seconds: 0").Replace(sought)
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	server := queue{"vllm": 0.1, "sglang": 0.1}
	_, f := tuned(t, text, server)
	found := f.Trials[0].Runs[0].Summary.Figures["goodput_rate"]
	l := newSession(s, Options{Predictor: server})
	pl, err := l.engines.configure(tune.Config{"engine": "vllm", "model": s.Model})
	if err != nil {
		t.Fatal(err)
	}
	ev := &evaluation{session: l, p: tune.Proposal{Config: tune.Config{"model": s.Model}}, config: pl}
	met := map[bool][]float64{}
	for rate := 4.0; rate < 11; rate += 0.5 {
		b := ev.runner("a")
		b.Dir = filepath.Join(t.TempDir(), "run")
		b.Spec.Workload = (bench.Load{Axis: bench.AxisRate, Value: rate}).Apply(b.Spec.Workload).Sized(3000)
		out, err := ev.predictRun(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		all := !slices.ContainsFunc(l.RunSLOs(), func(o result.SLO) bool { ok, _ := o.Judge(out.Summary); return !ok })
		met[all] = append(met[all], rate)
	}
	edge := slices.Max(met[true])
	t.Logf("found %g, the sweep's last is %g", found, edge)
	if math.Abs(found/edge-1) > 0.12 { // both are of a sample, in steps
		t.Errorf("found %g, the sweep's last is %g", found, edge)
	}
}

// Every end of a search that has no edge, or no narrow bracket.
func TestGoodputEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		old, new string
		service  float64
		figure   float64
		note     string
	}{
		"lowest misses": {"from: 1,", "from: 20,", 0.1, 0, "Workload a has no goodput_rate: the lowest load misses already: 20 missed p99_ttft_ms"},
		"upper limit":   {"to: 64", "to: 6", 0.1, 6, "goodput_rate is at least 6: upper limit reached: 6 met"},
		"budget":        {"to: 64", "points: 4", 0.01, 4, "goodput_rate is at least 4: budget of points: 4 runs were made"},
		"concurrency":   {"{axis: rate, from: 1, to: 64, precision: 0.05,", "{axis: concurrency, from: 1, to: 4,", 0.1, 2, "goodput_concurrency is at least 2: plateau: 2 met"},
	} {
		text := strings.Replace(sought, tt.old, tt.new, 1)
		metric := "goodput_rate"
		if name == "concurrency" {
			metric = "goodput_concurrency"
			text = strings.NewReplacer("metric: goodput_rate", "metric: "+metric, "arrival: constant, ", "").Replace(text)
		}
		_, f := tuned(t, text, queue{"vllm": tt.service, "sglang": tt.service})
		trial := f.Trials[0]
		v, ok := trial.Runs[0].Summary.Figures[metric]
		if v != tt.figure || ok != (tt.figure > 0) || trial.Status != tune.Measured {
			t.Errorf("%s: %s %g, %s %s", name, metric, v, trial.Status, trial.Reason)
		}
		if !strings.Contains(strings.Join(trial.Notes, "\n"), tt.note) {
			t.Errorf("%s: %q", name, trial.Notes)
		}
	}
}

// A part of the load makes a search of fewer requests and a wider bracket.
func TestSearchShare(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(sought))
	if err != nil {
		t.Fatal(err)
	}
	f, slos := s.LoadSearch("a"), s.RunSLOs()
	whole, quarter, least := f.Options(slos, 0), f.Options(slos, 0.25), f.Options(slos, 0.01)
	if whole.Requests != 459 || whole.Precision != 0.05 || f.Options(slos, 1) != whole {
		t.Errorf("all of it: %+v", whole)
	}
	if quarter.Requests != 115 || quarter.Precision != 0.2 || quarter.Seconds != 15 {
		t.Errorf("a quarter: %+v", quarter)
	}
	if least.Requests != 25 || least.Precision != 0.5 {
		t.Errorf("next to nothing: %+v", least)
	}
	l := newSession(s, Options{Dir: t.TempDir(), Predictor: queue{"vllm": 0.1}})
	pl, err := l.engines.configure(tune.Config{"engine": "vllm", "model": s.Model})
	if err != nil {
		t.Fatal(err)
	}
	l.studyDir = &directory{path: l.Dir}
	sent := map[float64]float64{}
	for _, share := range []float64{0.25, 1} {
		p := tune.Proposal{Trial: 1, Config: tune.Config{"engine": "vllm", "model": s.Model}, Share: share, Workloads: []string{"a"}}
		ev := &evaluation{session: l, p: p, config: pl, dir: filepath.Join(l.Dir, bench.Short(share))}
		b := ev.runner("a")
		b.Dir = ev.dir
		run, err := ev.run(t.Context(), b, ev.predictRun)
		if err != nil {
			t.Fatal(err)
		}
		sent[share] = run.Search.LoadS
		if run.Summary.Figures["goodput_rate"] < 7 {
			t.Errorf("share %g: %+v", share, run.Search)
		}
	}
	if sent[0.25] > sent[1]/3 {
		t.Errorf("a quarter of the load takes %g s of %g", sent[0.25], sent[1])
	}
}

// A race ranks its arms by searches in virtual time, and ends with the faster engine.
func TestGoodputRace(t *testing.T) {
	text := sought[:strings.Index(sought, "baseline:")] + `baseline: {label: base, engine: vllm}
space: {engine: [vllm, sglang], tp: ["1", "2"]}
budget: {trials: 14}
runtime: {kind: predicted}
`
	text = strings.NewReplacer("strategy: staged\n", "", "seconds: 60", "requests: 200, seconds: 0").Replace(text)
	_, f := tuned(t, text, queue{"vllm": 0.1, "sglang": 0.04})
	if f.Recommended == nil || f.Recommended.Engine != "sglang" || f.Recommended.Gain == nil || math.Abs(*f.Recommended.Gain-1.5) > 0.4 {
		t.Errorf("recommended %+v: %s", f.Recommended, f.Verdict)
	}
	if f.Race == nil || !slices.ContainsFunc(f.Race.Candidates, func(a outcome.Candidate) bool {
		return a.Engine == "sglang" && a.Predicted != nil && math.Abs(*a.Predicted-2.5) < 0.6
	}) {
		t.Errorf("no arm of SGLang is predicted 2.5 times better: %+v", f.Race)
	}
}

// A search that ends in points that cannot be believed gives no figure and no edge.
func TestSearchVoid(t *testing.T) {
	voided := result.Summary{Figures: map[string]float64{"completed": 9}, Verdict: result.Verdict{Status: result.Voided}}
	met := bench.Point{Load: bench.Load{Axis: bench.AxisRate, Value: 2}, Summary: result.Summary{Figures: map[string]float64{"completed": 9}}}
	f := &bench.SeriesFacts{
		Points: []bench.Point{{Load: bench.Load{Axis: bench.AxisRate, Value: 1}}, met, {Load: bench.Load{Axis: bench.AxisRate, Value: 4}, Void: true, Summary: voided}, {Load: bench.Load{Axis: bench.AxisRate, Value: 4}, Void: true, Summary: voided}},
		Max:    &bench.Max{Load: met.Load, Tested: 1, AtLeast: true}, Stop: bench.Stop{Code: bench.StopClient},
	}
	if f.Concluded() || !f.Edge().Void {
		t.Errorf("an answer below a load that was not measured: %+v", f.Edge())
	}
	if f.Stop.Code = bench.StopBudget; !f.Concluded() || f.Edge().Load != met.Load {
		t.Errorf("the edge is %+v", f.Edge())
	}
	if f.Max = nil; f.Concluded() || f.Edge().Load.Value != 1 {
		t.Errorf("without an edge the lowest load is shown, not %+v", f.Edge())
	}
}

// Several loads of one launch are all run before it is stopped.
func TestLoadPoints(t *testing.T) {
	text := strings.NewReplacer("gpus: 2}", "gpus: 2, check: off}", "kind: predicted", "kind: process", "strategy: staged", "strategy: survey",
		"  - {name: a, dataset_name: random, num_prompts: 10}\n",
		"  - {name: low, dataset_name: random, num_prompts: 5, request_rate: 20}\n  - {name: high, dataset_name: random, num_prompts: 5, request_rate: 80}\n  - {name: all, dataset_name: random, num_prompts: 5}\n",
		"baseline: {label: base, engine: vllm}\nstages:\n  - name: engine\n    try: [{label: SGLang, engine: sglang, set: {tp: 2}}]",
		"bench: {num_warmups: 0, telemetry_interval_s: 0}\ncandidates: [{label: base, engine: vllm, set: {tp: 2}}]").Replace(small)
	_, f := tuned(t, text, nil)
	names := []string{}
	for _, run := range f.Trials[0].Runs {
		names = append(names, run.Workload)
	}
	if got := strings.Join(names, " "); got != "low high all" || f.Ledger.Launches != 1 {
		t.Errorf("%d launches, runs of %s: %s %s", f.Ledger.Launches, got, f.Trials[0].Status, f.Trials[0].Reason)
	}
}

// live is a study of one engine that is started, and searched.
func liveSearch(find, slos string) string {
	return `name: t
model: Qwen/Qwen3-8B
strategy: survey
hardware: {gpu: h100-sxm, gpus: 2, check: off}
objective: {metric: goodput_rate, slos: [` + slos + `]}
workloads:
  - {name: chat, dataset_name: random, random_input_len: 8, random_output_len: 2, find_max: {axis: rate, ` + find + `}}
candidates: [{label: base, engine: vllm, set: {tp: 2}}]
bench: {num_warmups: 0, telemetry_interval_s: 0}
runtime: {kind: process}
`
}

// TestGoodputLive searches on a server that is started once and answers a request
// after the other in 20 ms.
func TestGoodputLive(t *testing.T) {
	t.Setenv(behaviourEnv, "queue")
	dir, f := tuned(t, liveSearch("from: 16, precision: 0.6, requests: 20, seconds: 1.2", "p90_ttft_ms <= 200, success_rate >= 99%"), nil)
	trial := f.Trials[0]
	if len(trial.Runs) != 1 || f.Ledger.Launches != 1 {
		t.Fatalf("%s %s", trial.Status, trial.Reason)
	}
	run := trial.Runs[0]
	if trial.Status == tune.Void && run.Search.Code == bench.StopClient && run.Search.Load == 0 {
		t.Skip("this machine is too busy to send on time: " + run.Search.Text)
	}
	v := run.Summary.Figures["goodput_rate"]
	if v < 16 || v > 50 || run.Search.Met != 2 || run.Summary.Figures["p90_ttft_ms"] > 200 || run.Summary.Figures["request_rate"] != v {
		t.Errorf("a server of 50 req/s: %+v", run.Search)
	}
	if f.Ledger.LoadS != run.Search.LoadS || f.Ledger.LoadS <= run.Summary.Figures["duration"] {
		t.Errorf("the ledger has %g s of load", f.Ledger.LoadS)
	}
	if dirs, err := os.ReadDir(filepath.Join(dir, "trials/001/chat/points")); err != nil || len(dirs) != run.Search.Points+1 {
		t.Errorf("%d of %d points are kept: %v", len(dirs)-1, run.Search.Points, err)
	}
	if _, ok := run.Summary.Figures["goodput_rate_per_gpu"]; !ok {
		t.Error("no figure per GPU")
	}
}

// TestGoodputDies: an engine that ends in a search ends it, and no point after is
// taken for a miss.
func TestGoodputDies(t *testing.T) {
	t.Setenv(behaviourEnv, "oom-load")
	_, f := tuned(t, liveSearch("from: 50, requests: 20, seconds: 0", "p99_ttft_ms <= 1000"), nil)
	if trial := f.Trials[0]; trial.Status != tune.Refused || len(trial.Runs) != 0 || !strings.Contains(trial.Reason, "the engine died under chat") {
		t.Errorf("%s: %s with %d runs", trial.Status, trial.Reason, len(trial.Runs))
	}
}

// Objectives of cost and per GPU work without a server, in their direction.
func TestCostObjectives(t *testing.T) {
	for metric, higher := range map[string]bool{
		"cost_per_million_tokens": false, "cost_per_million_output_tokens": false,
		"total_token_throughput_per_gpu": true, "output_throughput_per_gpu": true, "request_throughput_per_gpu": true,
	} {
		text := strings.NewReplacer("total_token_throughput", metric, "gpus: 2}", "gpus: 2, price_per_hour: 7.2 USD}").Replace(small)
		_, f := tuned(t, text, queue{"vllm": 0.1, "sglang": 0.05})
		if f.Recommended == nil || f.Recommended.Engine != "sglang" || f.Recommended.Gain == nil || math.Abs(*f.Recommended.Gain-1) > 0.01 {
			t.Errorf("%s: %+v: %s", metric, f.Recommended, f.Verdict)
			continue
		}
		s := f.Recommended.Summary
		switch v := s.Figures[metric]; metric {
		case "cost_per_million_tokens": // 20 requests of 10 tokens a second
			if math.Abs(v-10) > 0.1 || s.Currency != "USD" || f.Objective.Better != "lower" {
				t.Errorf("%g %s", v, s.Currency)
			}
		case "total_token_throughput_per_gpu":
			if v != s.Figures["total_token_throughput"]/2 || f.Objective.Better != "higher" != !higher {
				t.Errorf("%g a GPU of %g", v, s.Figures["total_token_throughput"])
			}
		}
	}
}

// TestEnergyObjective: power read beside the runs makes a figure that a study can be
// judged by.
func TestEnergyObjective(t *testing.T) {
	bin := t.TempDir()
	link(bin, "nvidia-smi")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv(wattsEnv, "300")
	for metric, want := range map[string]float64{"energy_per_token_j": 600.0 / 400, "output_tokens_per_s_per_w": 80.0 / 600} {
		text := strings.NewReplacer("goodput_rate, slos: [p99_ttft_ms <= 1000]", metric, "find_max: {axis: rate, from: 40}", "request_rate: 40, arrival: constant, num_prompts: 60",
			"telemetry_interval_s: 0", "telemetry_interval_s: 0.1").Replace(liveSearch("from: 40", "p99_ttft_ms <= 1000"))
		_, f := tuned(t, text, nil)
		s := f.Trials[0].Runs[0].Summary
		v, ok := s.Figures[metric]
		if !ok && s.Figures["gpus"] > 0 { // readings that came late cover too little of the run
			t.Skipf("this machine is too busy to be read: %v", s.Verdict)
		}
		if math.Abs(v/want-1) > 0.2 || s.Figures["gpus"] != 2 || f.Recommended == nil && f.Trials[0].Status != tune.Void {
			t.Errorf("%s is %g, want about %g, of %g GPUs: %s", metric, v, want, s.Figures["gpus"], f.Verdict)
		}
		if higher := metric == "output_tokens_per_s_per_w"; (f.Objective.Better == "higher") != higher {
			t.Errorf("%s: %s is better", metric, f.Objective.Better)
		}
	}
}
