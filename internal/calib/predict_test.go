package calib

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/sim"
)

// resolved is a serving command on a machine.
func resolved(t *testing.T, line, gpu string, gpus int) engine.Config {
	t.Helper()
	cmd, err := engine.Parse(strings.Fields(line))
	if err != nil {
		t.Fatal(err)
	}
	m, err := arch.LookupModel(cmd.Model)
	if err != nil {
		t.Fatal(err)
	}
	g, err := arch.LookupAccelerator(gpu)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := cmd.Resolve(m, g, gpus)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// own is a calibration that has seen vLLM on one A100.
func own() Calibration {
	c := Calibration{
		Seen: []Envelope{{Accelerator: "a100-sxm", Engine: "vllm", Models: []string{"Qwen/Qwen3-14B"}, Formats: []string{"bf16"}, GPUs: []int{1}, Input: [2]float64{100, 2000}, Output: [2]float64{20, 300}, Burst: [2]int{50, 1000}}},
	}
	for _, m := range Scored {
		for i, n := range Novelties[1:] {
			c.Errors = append(c.Errors, Error{New: n, Metric: m, Runs: 20, Spread: 0.08 * float64(1+i)})
		}
		c.Errors = append(c.Errors, Error{New: NothingNew, Engine: "vllm", Metric: m, Runs: 20, Bias: 0, Spread: 0.08})
	}
	return c
}

var small = Load{Requests: 60, Input: Lengths{Mean: 400}, Output: Lengths{Mean: 40}}

func predict(t *testing.T, c Calibration, q Question) Prediction {
	t.Helper()
	p, err := c.Predict(q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPredict: figures of the replay with ranges around them, nothing outside,
// and the same again.
func TestPredict(t *testing.T) {
	cfg := resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1)
	q := Question{Config: cfg, Load: small, Seed: 7, Draws: 4}
	p := predict(t, own(), q)
	if !p.Summary.Simulated || p.Summary.Figures["completed"] != 60 || len(p.Outside) > 0 || p.Utilisation != 0 {
		t.Errorf("%v simulated, %v completed, outside %q", p.Summary.Simulated, p.Summary.Figures["completed"], p.Outside)
	}
	for _, name := range append(slices.Clone(Scored), "output_throughput", "request_throughput") {
		r, ok := p.Figures[name]
		if !ok || r.Value != p.Summary.Figures[name] || r.Low > r.Value*0.93 || r.High < r.Value*1.07 || r.High > 5*r.Value {
			t.Errorf("%s: %+v, %v", name, r, ok)
		}
	}
	if _, ok := p.Figures["p99_ttft_ms"]; ok {
		t.Error("a figure without a known error has a range")
	}
	if p.Bottleneck.Name == "" || p.KV.Tokens == 0 || p.KV.Peak <= 0 || p.KV.Peak > 1 {
		t.Errorf("%+v, %+v", p.Bottleneck, p.KV)
	}
	blocks := math.Ceil(440.0 / float64(cfg.Block))
	if want := float64(p.KV.Tokens/cfg.Block) / blocks; p.KV.Concurrency != want {
		t.Errorf("room for %v requests, want %v", p.KV.Concurrency, want)
	}
	if again := predict(t, own(), q); !reflect.DeepEqual(p.Figures, again.Figures) {
		t.Error("the same question has another answer")
	}
	q.Load.Output.Shape = HalfNormal // of fixed lengths there is nothing to draw
	wide := predict(t, own(), q)
	q.Draws = -1
	if tight := predict(t, own(), q); tight.Figures[MeanTTFT].High >= wide.Figures[MeanTTFT].High {
		t.Error("draws do not widen a range")
	}
}

// TestPredictWithoutErrors: the shipped priors alone give figures, no ranges,
// and say so.
func TestPredictWithoutErrors(t *testing.T) {
	cfg := resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1)
	p := predict(t, Calibration{}, Question{Config: cfg, Load: small, Draws: 2})
	if len(p.Figures) > 0 || p.Summary.Figures[Throughput] == 0 || len(p.Outside) != 1 || !strings.Contains(p.Outside[0], "no figure has a range") {
		t.Errorf("%v, %q", p.Figures, p.Outside)
	}
}

// TestReplicas: two replicas serve more, and their counters are together.
func TestReplicas(t *testing.T) {
	cfg := resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1)
	one := predict(t, own(), Question{Config: cfg, Load: small, Draws: -1})
	two := predict(t, own(), Question{Config: cfg, Replicas: 2, Load: small, Draws: -1})
	if two.Summary.Figures[Throughput] <= one.Summary.Figures[Throughput] {
		t.Error("a replica more does not help a burst")
	}
	if two.Steps.Finished != 60 || two.Steps.PromptTokens != one.Steps.PromptTokens || two.KV.Tokens != one.KV.Tokens {
		t.Errorf("%d finished, %d and %d prompt tokens", two.Steps.Finished, two.Steps.PromptTokens, one.Steps.PromptTokens)
	}
	// Every counter is added or the larger one: none is forgotten.
	a := sim.Stats{}
	fill(reflect.ValueOf(&a).Elem())
	p := sim.Pools{Prefill: a, Decode: a}
	fill(reflect.ValueOf(&p).Elem())
	a.Pools = &p
	for f, x := range reflect.ValueOf(a.With(a)).Fields() {
		if x.IsZero() {
			t.Errorf("%s is lost", f.Name)
		}
	}
	for f, x := range reflect.ValueOf(*a.With(a).Pools).Fields() {
		if x.CanInt() && f.Name != "Elapsed" && x.Int() != 2 {
			t.Errorf("%s is %d of two groups", f.Name, x.Int())
		}
	}
	if got := a.With(a).Pools; got.Prefill.Busy != 2 || got.Decode.Busy != 2 || got.Elapsed != 1 {
		t.Errorf("%+v", got)
	}
	for f, x := range reflect.ValueOf(a.With(a).Tiers[0]).Fields() {
		if x.CanInt() && x.Int() != 2 {
			t.Errorf("%s is %d of two tiers", f.Name, x.Int())
		}
	}
	if got := a.With(a); got.Times.Drafting != 2 || got.Waits.Idle != 2 || got.Busy != 2 || got.PeakKV != 1 {
		t.Errorf("%+v", got)
	}
}

// fill sets every number to 1.
func fill(v reflect.Value) {
	for _, f := range v.Fields() {
		switch {
		case f.Kind() == reflect.Slice: // of tiers
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			fill(f.Index(0))
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.Kind() == reflect.Pointer: // of a group, which is filled by itself
		case f.Kind() == reflect.Struct:
			fill(f)
		case f.CanInt():
			f.SetInt(1)
		default:
			f.SetFloat(1)
		}
	}
}

// TestOutside: one sentence for each thing that was not seen, and wider ranges by how much
// was.
func TestOutside(t *testing.T) {
	burst := small
	paced := small
	paced.Rate = 0.5
	flood := small
	flood.Rate = 500
	long := small
	long.Requests, long.Input.Mean, long.Output.Mean = 10, 9000, 1000
	short := small
	short.Input.Mean = 20
	for name, c := range map[string]struct {
		line, gpu string
		gpus      int
		load      Load
		want      []string
	}{
		"inside":      {"vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1, burst, nil},
		"accelerator": {"vllm serve Qwen/Qwen3-14B", "h200", 1, burst, []string{"no run on NVIDIA H200"}},
		"engine":      {"trtllm-serve Qwen/Qwen3-14B", "a100-sxm-80", 1, burst, []string{"No run of trtllm"}},
		"model":       {"vllm serve Qwen/Qwen3-32B --max-model-len 8192", "a100-sxm-80", 1, burst, []string{"Qwen/Qwen3-32B was not seen here, only Qwen/Qwen3-14B"}},
		"format":      {"vllm serve Qwen/Qwen3-14B-FP8", "a100-sxm-80", 1, burst, []string{"Weights in fp8"}},
		"gpus":        {"vllm serve Qwen/Qwen3-14B -tp 2", "a100-sxm-80", 2, burst, []string{"The GPUs of a replica are 2, of those seen 1"}},
		"speculation": {`vllm serve Qwen/Qwen3-14B --speculative-config {"method":"ngram","num_speculative_tokens":2}`, "a100-sxm-80", 1, burst, []string{"Speculation was not seen"}},
		"long":        {"vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1, long, []string{"Prompts of 9000", "Answers of 1000", "10 requests at once to a replica are far from the 50 to 1000"}},
		"short":       {"vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1, short, []string{"Prompts of 20"}},
		"rate":        {"vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1, paced, []string{"Only bursts were seen"}},
		"flood":       {"vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1, flood, []string{"Only bursts were seen", "latencies grow"}},
	} {
		cal := own()
		p := predict(t, cal, Question{Config: resolved(t, c.line, c.gpu, c.gpus), Load: c.load, Draws: -1})
		if len(p.Outside) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, p.Outside, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(p.Outside[i], want) || !strings.HasSuffix(p.Outside[i], ".") {
				t.Errorf("%s: %q lacks %q", name, p.Outside[i], want)
			}
		}
		r := p.Figures[MeanTPOT]
		// Qwen3-32B is of a family that was seen, and a second GPU changes none of the kinds.
		seen := len(c.want) == 0 || name == "model" || name == "gpus"
		if wide := math.Log(r.High/r.Value) > 1.2*0.08*fewRuns(20); wide == seen {
			t.Errorf("%s: %+v", name, r)
		}
		if c.load.Rate == 0.5 {
			if r := p.Figures["request_throughput"]; !(p.Utilisation > 0 && p.Utilisation < saturationShare) || r.High > 0.51 {
				t.Errorf("%s: %v of capacity, %+v", name, p.Utilisation, r)
			}
		}
	}
}

// TestOutsideArrivals: a burst where only rates were seen, fewer GPUs, and a
// model that is one more of many.
func TestOutsideArrivals(t *testing.T) {
	cal := own()
	e := &cal.Seen[0]
	e.Rate, e.Burst, e.GPUs = [2]float64{1, 16}, [2]int{}, []int{2, 4}
	e.Models = []string{"Qwen/Qwen3-14B", "Qwen/Qwen3-14B-FP8"}
	q := Question{Config: resolved(t, "vllm serve Qwen/Qwen3-32B --max-model-len 8192", "a100-sxm-80", 1), Load: small, Draws: -1}
	want := []string{"Qwen/Qwen3-32B was not seen", "replica are 1, of those seen 2 to 4", "Only loads at a rate were seen"}
	p := predict(t, cal, q)
	if len(p.Outside) != len(want) {
		t.Fatalf("%q, want %q", p.Outside, want)
	}
	for i := range want {
		if !strings.Contains(p.Outside[i], want[i]) {
			t.Errorf("%q lacks %q", p.Outside[i], want[i])
		}
	}
	e.Models = append(e.Models, "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B")
	if p := predict(t, cal, q); len(p.Outside) != 2 {
		t.Errorf("one more of many models: %q", p.Outside)
	}
}

// TestFiguresAsSummarised: the figures that draws are made of are those of a run
// that keeps its calls, also where a request is refused.
func TestFiguresAsSummarised(t *testing.T) {
	cfg := resolved(t, "vllm serve Qwen/Qwen3-14B --max-model-len 1000", "a100-sxm-80", 1)
	l := Load{Rate: 2, Arrival: "constant"}
	for i := range 40 {
		l.Exact = append(l.Exact, Request{Due: time.Duration(i+3) * time.Second / 2, Input: 100 + 20*i, Output: 1 + i%7})
	}
	l.Exact[7].Input = 2000
	l.Requests = len(l.Exact)
	cal := own()
	p := predict(t, cal, Question{Config: cfg, Load: l, Seed: 3, Draws: -1})
	k, err := cal.Constants()
	if err != nil {
		t.Fatal(err)
	}
	f, refused, err := figures(cfg, 1, l, k, 3)
	if err != nil || !strings.Contains(refused, "request 7 is refused") || len(f) < 8 {
		t.Fatalf("%v, %q, %v", f, refused, err)
	}
	for name, v := range f {
		if w := p.Summary.Figures[name]; math.Abs(v/w-1) > 1e-9 {
			t.Errorf("%s is %v, of the calls %v", name, v, w)
		}
	}
}

// TestNearSaturation: 90 % of the capacity is said, once at least.
func TestNearSaturation(t *testing.T) {
	cfg := resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1)
	cal := own()
	cal.Seen[0].Rate = [2]float64{0.1, 50}
	l := small
	l.Rate = 1
	l.Rate = 0.9 / predict(t, cal, Question{Config: cfg, Load: l, Draws: -1}).Utilisation
	p := predict(t, cal, Question{Config: cfg, Load: l, Draws: -1})
	if len(p.Outside) != 1 || !strings.Contains(p.Outside[0], "90 %") || math.Abs(p.Utilisation-0.9) > 1e-9 {
		t.Errorf("%v, %q", p.Utilisation, p.Outside)
	}
	l.Rate /= 2
	if p := predict(t, cal, Question{Config: cfg, Load: l, Draws: -1}); len(p.Outside) > 0 || p.Bottleneck.Name != OfferedLoad {
		t.Errorf("%q, %+v", p.Outside, p.Bottleneck)
	}
}

// TestUtilisationOfShortLoads: what a server can do does not depend on how many
// requests are asked about.
func TestUtilisationOfShortLoads(t *testing.T) {
	cal, q := own(), Question{Config: resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1), Load: small, Draws: -1}
	q.Load.Rate = 1
	var u []float64
	for _, n := range []int{20, 2000} {
		q.Load.Exact = nil
		for i := range n {
			q.Load.Exact = append(q.Load.Exact, Request{Due: time.Duration(i) * time.Second, Input: 400, Output: 40})
		}
		u = append(u, predict(t, cal, q).Utilisation)
	}
	if !(u[0] > 0) || math.Abs(u[0]/u[1]-1) > 0.05 {
		t.Errorf("utilisation of 20 and of 2000 requests: %v", u)
	}
}

// TestAgain: the same requests at other times of the same rate, or in another
// order where that is chance.
func TestAgain(t *testing.T) {
	l := Load{Rate: 2, Arrival: "poisson", Shuffle: true}
	for i := range 200 {
		l.Exact = append(l.Exact, Request{Due: time.Duration(i) * time.Second / 2, Input: i + 10, Output: 5})
	}
	a, b := l.redraw(1), l.redraw(2)
	sum := func(l Load) (n int) {
		for i, r := range l.Exact {
			n += r.Input
			if i > 0 && r.Due < l.Exact[i-1].Due {
				t.Fatal("arrivals decrease")
			}
		}
		return n
	}
	if sum(a) != sum(l) || sum(b) != sum(l) || reflect.DeepEqual(a.Exact, b.Exact) || reflect.DeepEqual(a.Exact, l.Exact) {
		t.Error("other requests, or the same draw")
	}
	if last := a.Exact[199].Due.Seconds(); last < 75 || last > 130 {
		t.Errorf("200 requests at 2/s take %v s", last)
	}
	l.Arrival = "constant"
	for i, r := range l.redraw(4).Exact {
		if r.Due != l.Exact[i].Due {
			t.Fatal("another order has other times")
		}
	}
	l.Shuffle, l.Arrival = false, "trace"
	if !reflect.DeepEqual(l.redraw(3).Exact, l.Exact) {
		t.Error("a trace was changed")
	}
	if got := l.burst(0); len(got.Exact) != 200 || got.Exact[199].Due != 0 || l.Exact[199].Due == 0 || got.Rate != 0 {
		t.Error("atOnce changes the load or keeps its times")
	}
}

// TestCalls: refusals are failed calls, and ranging again gives the same.
func TestCalls(t *testing.T) {
	cfg := resolved(t, "vllm serve Qwen/Qwen3-14B --max-model-len 1000", "a100-sxm-80", 1)
	jobs := Load{Exact: []Request{{Input: 100, Output: 8}, {Input: 2000, Output: 8}}}.Jobs(0)
	calls, err := Calls(cfg, 1, jobs, sim.ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		served, refused := 0, 0
		for c := range calls {
			switch {
			case c.OK() && c.Usage.Completion == 8 && c.Usage.Prompt == 100 && c.Want == 8:
				served++
			case c.Status == 400 && c.Error != "" && c.WantIn == 2000:
				refused++
			}
		}
		if served != 1 || refused != 1 {
			t.Errorf("%d served, %d refused", served, refused)
		}
	}
}

func TestParse(t *testing.T) {
	if _, err := Shipped(); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		`{"sets": [{"values": {"t_walk": 1}}]}`: "t_walk",
		`{"schema": "perflab.run/1"}`:           "perflab.run/1",
		`{"stes": []}`:                          "stes",
		`[`:                                     "no calibration file",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
