package lab

import (
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/lab/prediction"
	"perflab/internal/outcome"
	simulated "perflab/internal/replay"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// slowSite is the simulator on a site where all takes stretch times as long as it believes. What
// it believes is asked without a directory, and what is so is a trial with one. before, if any,
// hears of each trial.
type slowSite struct {
	simulated.Predictor
	before hook
}

const stretch = 2.0

func (s slowSite) Predict(ctx context.Context, q bench.Prediction) iter.Seq2[result.Call, error] {
	if q.Engine == nil {
		return s.Predictor.Predict(ctx, q)
	}
	s.before.call()
	return func(yield func(result.Call, error) bool) {
		for c, err := range s.Predictor.Predict(ctx, q) {
			if !yield(stretched(c), err) {
				return
			}
		}
	}
}

// stretched is a call all of which takes longer.
func stretched(c result.Call) result.Call {
	for _, at := range []*time.Duration{&c.Due, &c.Ready, &c.Sent, &c.Headers, &c.Answer, &c.End} {
		*at = time.Duration(stretch * float64(*at))
	}
	chunks := make([]result.Chunk, len(c.Chunks))
	for i, k := range c.Chunks {
		k.At = time.Duration(stretch * float64(k.At))
		chunks[i] = k
	}
	c.Chunks = chunks
	return c
}

// ofSlowSite is a study of a burst.
const ofSlowSite = `name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1}
engines: {vllm: {}, sglang: {}}
objective: {metric: total_token_throughput}
workloads:
  - {name: a, dataset_name: random, num_prompts: 60, random_input_len: 200, random_output_len: 20}
baseline: {label: base, engine: vllm}
space: {max_num_seqs: ["", "32", "64"]}
budget: {trials: 7}
race: {rounds: 2}
runtime: {kind: predicted}
`

// TestLearn: once the baseline was measured, what is predicted of it and of what was never
// launched is nearer to what is so.
func TestLearn(t *testing.T) {
	t.Parallel()
	s, err := study.Parse("t.yaml", []byte(ofSlowSite))
	if err != nil {
		t.Fatal(err)
	}
	l := newSession(s, Options{Predictor: slowSite{}})
	p := predictorOf(t.Context(), l).(*prediction.Predictor)
	base := s.BaselineConfig()
	others := []tune.Config{base, maps.Clone(base), maps.Clone(base), maps.Clone(base)}
	others[1]["max_num_seqs"] = "32"
	others[2]["engine"] = "sglang"
	others[3]["model"] = "Qwen/Qwen3-8B-FP8"
	throughput := func(c tune.Config) float64 {
		f, ok := p.Predict(c, "a")
		if !ok {
			t.Fatalf("nothing is predicted of %v", c)
		}
		return f["total_token_throughput"]
	}
	var before []float64
	for _, c := range others {
		before = append(before, throughput(c))
	}
	pl, err := s.Configure(base, study.Installed{})
	if err != nil {
		t.Fatal(err)
	}
	w, tok, err := bench.OpenPredicted(s.WorkloadSpec("a", 0))
	if err != nil {
		t.Fatal(err)
	}
	figures, err := measuredFigures(t.Context(), bench.Prediction{Config: pl.Config, Replicas: pl.Replicas, Workload: w, Tokenizer: tok, Engine: func(map[string]float64) {}})
	if err != nil {
		t.Fatal(err)
	}
	less := map[string]float64{"completed": 119, "total_token_throughput": 1000}
	for _, f := range []map[string]map[string]float64{nil, {"a": {}}, {"a": less}} {
		if p.Learn(base, f) {
			t.Errorf("it learns of %v", f)
		}
	}
	if now := throughput(others[1]); now != before[1] {
		t.Errorf("without anything learned %v became %v", before[1], now)
	}
	if !p.Learn(base, map[string]map[string]float64{"a": figures}) {
		t.Fatal("it learns nothing of the baseline")
	}
	for i, c := range others {
		so := before[i] / stretch
		was, is := math.Abs(math.Log(before[i]/so)), math.Abs(math.Log(throughput(c)/so))
		t.Logf("%v: off by %.3f before and %.3f after", c, was, is)
		most := 0.85
		if c["engine"] == "sglang" { // a slow run may be of how vLLM is installed here
			most = 0.9
		}
		if is > most*was {
			t.Errorf("%v: off by %.3f before and %.3f after the baseline was measured", c, was, is)
		}
	}
}

// measuredFigures are those of a trial on the slow site.
func measuredFigures(ctx context.Context, q bench.Prediction) (map[string]float64, error) {
	var broken error
	s, err := result.Summarize(result.Header{Simulated: true, Requests: q.Workload.Len()}, nil, result.Options{}, func(yield func(result.Call) bool) {
		for c, err := range (slowSite{}).Predict(ctx, q) {
			if broken = err; err != nil || !yield(c) {
				return
			}
		}
	})
	return s.Figures, errors.Join(err, broken)
}

// TestTuneLearns: a study says by what its predictions were corrected, and takes the same course
// whether or not it was interrupted.
func TestTuneLearns(t *testing.T) {
	t.Parallel()
	_, whole := tuned(t, ofSlowSite, slowSite{})
	r := whole.Race
	if r == nil || r.Learned == nil || r.Learned.Trial != 1 {
		t.Fatalf("it says %+v", r)
	}
	k := r.Learned
	if v := whole.Trials[0].Runs[0].Summary.Figures["total_token_throughput"]; math.Abs(k.Measured/v-1) > 1e-9 {
		t.Errorf("it learned of %v, and %v was measured", k.Measured, v)
	}
	if off := k.Predicted / k.Measured; math.Abs(off/stretch-1) > 0.02 || !(k.Corrected < 0.8*k.Predicted) {
		t.Errorf("predicted %v, corrected %v, measured %v", k.Predicted, k.Corrected, k.Measured)
	}
	if _, f := tuned(t, fewArms, paced{}); f.Race.Learned != nil {
		t.Errorf("a predictor that cannot learn: %+v", f.Race.Learned)
	}
	s, err := study.Parse("t.yaml", []byte(ofSlowSite))
	if err != nil {
		t.Fatal(err)
	}
	const trials = 2 // before it is interrupted
	ctx, stop := context.WithCancelCause(t.Context())
	n := 0
	o := Options{Dir: filepath.Join(t.TempDir(), "out"), strategist: raced, Predictor: slowSite{before: func() {
		if n++; n > trials {
			stop(errors.New("enough"))
		}
	}}}
	if _, err := Tune(ctx, s, []byte(ofSlowSite), o); err == nil {
		t.Fatal("it was not stopped")
	}
	o.Resume, o.Predictor = true, slowSite{}
	f, err := Tune(t.Context(), s, []byte(ofSlowSite), o)
	if err != nil {
		t.Fatalf("resumed after %d trials: %v", trials, err)
	}
	if !reflect.DeepEqual(configs(f), configs(whole)) || !reflect.DeepEqual(f.Race.Learned, k) || !reflect.DeepEqual(f.Race.Candidates, r.Candidates) {
		t.Errorf("resumed after %d trials it took another course", trials)
	}
}

func configs(f outcome.Study) (out []map[string]string) {
	for _, t := range f.Trials {
		out = append(out, t.Config)
	}
	return out
}

// TestNothingPredicted: of an engine that is not modelled nothing is predicted, and nothing is
// said to be ranked by predictions.
func TestNothingPredicted(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(model, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := study.Parse("t.yaml", []byte("name: t\nmodel: "+model+"\nhardware: {gpu: h200, gpus: 1}\nobjective: {metric: total_token_throughput}\n"+
		"workloads:\n  - {name: a, dataset_name: random, num_prompts: 200, max_concurrency: 8}\nbaseline: {label: base, engine: llamacpp}\nbudget: {trials: 8}\nruntime: {kind: process}\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := newSession(s, Options{Predictor: slowSite{}})
	if figures, ok := predictorOf(t.Context(), l).Predict(s.BaselineConfig(), "a"); ok {
		t.Errorf("predicted: %v", figures)
	}
	if now := l.watch.status; now.Ranked != 0 || now.Phase == PhaseRanking {
		t.Errorf("%+v", now)
	}
}
