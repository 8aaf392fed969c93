package science

import (
	"errors"
	"slices"

	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Classes of landscapes. A strategy has to be good in each: what is drawn within one is
// chance, and nothing can be fitted to it.
func Classes() []Class {
	all := []Class{
		{Name: "dense", About: "dense models, one node", draw: simple(denseShapes)},
		{Name: "experts", About: "mixture of experts, one node", draw: simple(expertShapes)},
		{Name: "nodes", About: "several nodes", draw: simple(nodeShapes)},
		{Name: "slo", About: "a latency or throughput with a bound that the best without it just misses", draw: drawSLO},
		{Name: "pair", About: "two settings that gain only together, of which the simulator knows nothing", draw: drawPair, holds: bestHas},
		{Name: "refused", About: "the best is in a region most of which is refused", draw: drawRefused, holds: mostlyRefused},
		{Name: "wrong engine", About: "an engine is up to three times as fast or slow as predicted", draw: drawWrongEngine},
		{Name: "wrong checkpoint", About: "a checkpoint takes 1.25 to 2 times as long as predicted, or as little", draw: drawWrongCheckpoint},
		{Name: "wrong layout", About: "a layout takes 1.25 to 2 times as long as predicted, or as little", draw: drawWrongLayout},
		{Name: "silent", About: "nothing is predicted of one engine, or of any", draw: drawSilent},
		{Name: "drift", About: "the machine gets up to 10 % slower or faster over the study", draw: drawDrift},
		{Name: "noisy engine", About: "the launches of one engine differ four times as much", draw: drawNoisyEngine},
		{Name: "noise", About: "launches differ by 8 %", draw: drawNoise},
	}
	for _, k := range equals {
		all = append(all, Class{Name: "equal " + k.name, About: "all configurations are equal, " + k.about, equal: true, draw: func(d *drawer) {
			d.begin(anywhere()...)
			d.load(pick(d, burst, closed, rate))
			d.hide()
			d.Effects, d.Refusals = nil, nil
			k.noise(d)
			d.trim()
		}})
	}
	return all
}

// equals are the kinds of noise under which nothing is better than anything else.
var equals = []struct {
	name, about string
	noise       func(*drawer)
}{
	{"quiet", "launches differ by 0.5 %", func(d *drawer) { d.Noise = Noise{Launch: 0.005, Within: 0.003} }},
	{"usual", "launches differ by 0.5 to 3.5 %", func(*drawer) {}},
	{"noise", "launches differ by 8 %", func(d *drawer) { d.Noise.Launch = 0.08 }},
	{"outliers", "one launch in twenty is off by 10 %", func(d *drawer) { d.Noise.Outlier = 0.05 }},
	{"drift", "the machine gets up to 10 % slower or faster", (*drawer).drifts},
	{"noisy engine", "the launches of one engine differ four times as much", (*drawer).noisy},
}

// Checkpoints, with those of their kind in FP8.
const (
	llama8  = "meta-llama/Llama-3.1-8B-Instruct"
	qwen8   = "Qwen/Qwen3-8B"
	qwen14  = "Qwen/Qwen3-14B"
	mistral = "mistralai/Mistral-Small-24B-Instruct-2501"
	qwen32  = "Qwen/Qwen3-32B"
	llama70 = "meta-llama/Llama-3.3-70B-Instruct"
	qwen30  = "Qwen/Qwen3-30B-A3B"
	qwen235 = "Qwen/Qwen3-235B-A22B"
	qwen35  = "Qwen/Qwen3.5-35B-A3B"
	air     = "zai-org/GLM-4.5-Air"
	oss120  = "openai/gpt-oss-120b"
	inFP8   = "-FP8"
	h100    = "h100-sxm"
	a100    = "a100-sxm-80"
)

var (
	three = []string{"vllm", "sglang", "trtllm"}
	two   = []string{"vllm", "sglang"}
)

func both(model string) []string { return []string{model, model + inFP8} }

var (
	small       = []home{{"l4", []int{1, 2}}, {"l40s", []int{1, 2, 4}}, {a100, []int{1, 2}}, {h100, []int{1, 2}}, {"h200", []int{1}}}
	denseShapes = []shape{
		{models: both(llama8), engines: three, homes: small},
		{models: both(qwen8), engines: three, homes: small},
		{models: both(qwen14), engines: three, homes: []home{{"l40s", []int{2, 4}}, {a100, []int{1, 2, 4}}, {h100, []int{1, 2}}, {"h200", []int{1, 2}}}},
		{models: both(mistral), engines: three, homes: []home{{a100, []int{1, 2, 4}}, {h100, []int{1, 2, 4}}, {"h200", []int{1, 2}}}},
		{models: both(qwen32), engines: three, homes: []home{{"l40s", []int{4, 8}}, {a100, []int{2, 4}}, {h100, []int{1, 2, 4}}, {"h200", []int{1, 2, 4}}}},
		{models: both(llama70), engines: three, homes: []home{{a100, []int{4, 8}}, {h100, []int{4, 8}}, {"h200", []int{2, 4, 8}}}},
	}
	expertShapes = []shape{
		{models: both(qwen30), engines: three, experts: true, homes: []home{{"l40s", []int{2, 4}}, {a100, []int{1, 2, 4}}, {h100, []int{1, 2, 4}}, {"h200", []int{1, 2}}}},
		{models: both(qwen235), engines: three, experts: true, homes: []home{{"h200", []int{8}}}},
		{models: both(air), engines: two, experts: true, mtp: true, homes: []home{{h100, []int{8}}, {"h200", []int{4, 8}}}},
		{models: both(qwen35), engines: two, experts: true, mtp: true, homes: []home{{h100, []int{2, 4}}, {"h200", []int{1, 2}}}},
		{models: []string{oss120}, engines: two, experts: true, homes: []home{{h100, []int{2, 4}}, {"h200", []int{1, 2, 4}}}},
	}
	nodeShapes = []shape{
		{models: both(llama70), engines: three, homes: []home{{a100, []int{16}}, {h100, []int{16}}, {"l40s", []int{16}}}},
		{models: both(qwen32), engines: three, homes: []home{{"gb10", []int{2, 4}}, {"l40s", []int{16}}}},
		{models: both(qwen235), engines: three, experts: true, homes: []home{{h100, []int{16}}, {"h200", []int{16}}}},
		{models: both(qwen30), engines: three, experts: true, homes: []home{{"gb10", []int{2, 4}}, {"l40s", []int{16}}}},
		{models: both(air), engines: two, experts: true, mtp: true, homes: []home{{h100, []int{16}}, {a100, []int{16}}}},
		{models: []string{oss120}, engines: two, experts: true, homes: []home{{"gb10", []int{2, 4}}}},
	}
)

// anywhere are the shapes of one node.
func anywhere() []shape { return slices.Concat(denseShapes, expertShapes) }

// paired are those that have two checkpoints.
func paired() []shape {
	return slices.DeleteFunc(anywhere(), func(s shape) bool { return len(s.models) < 2 })
}

// spread are those that always have several devices.
func spread() []shape {
	var out []shape
	for _, s := range anywhere() {
		s.homes = slices.Clone(s.homes)
		for i, h := range s.homes {
			s.homes[i].counts = slices.DeleteFunc(slices.Clone(h.counts), func(n int) bool { return n == 1 })
		}
		s.homes = slices.DeleteFunc(s.homes, func(h home) bool { return len(h.counts) == 0 })
		out = append(out, s)
	}
	return out
}

// usual is a landscape without anything special.
func (d *drawer) usual(shapes []shape) {
	d.begin(shapes...)
	d.load(pick(d, burst, burst, closed, rate, rate))
	d.hide()
	if d.chance(0.2) {
		d.Thresholds = []Threshold{{d.boundMetric(), d.between(1, 1.5), 0.1}}
	}
}

// boundMetric is a figure that the objective does not look at.
func (d *drawer) boundMetric() string {
	switch d.Objective.Metric {
	case "mean_ttft_ms":
		return "p99_tpot_ms"
	case "mean_e2el_ms", "p99_e2el_ms", "mean_tpot_ms":
		return "p99_ttft_ms"
	}
	return pick(d, "p99_tpot_ms", "p99_ttft_ms")
}

func simple(shapes []shape) func(*drawer) {
	return func(d *drawer) {
		d.usual(shapes)
		d.trim()
	}
}

func drawSLO(d *drawer) {
	d.begin(anywhere()...)
	d.load(pick(d, closed, rate, rate))
	d.hide()
	d.Thresholds = []Threshold{{d.boundMetric(), d.between(0.6, 0.98), 0.04}}
	d.trim()
}

// choices are the parameters that one chooses among, limits those with a number.
var (
	choices = []string{"engine", "model", engine.TP, engine.PP, engine.DP, engine.ExpertParallel, engine.KVDtype, engine.Speculative}
	limits  = []string{engine.MaxNumSeqs, engine.MaxBatched, engine.MemoryShare}
)

func drawPair(d *drawer) {
	d.usual(anywhere())
	var one, other tune.Config
	for range 20 {
		a, v, ok := d.setting(true, choices...)
		b, u, too := d.setting(true, slices.Concat(choices, limits)...)
		if ok && too && a != b {
			one, other = tune.Config{a: v}, tune.Config{b: u}
			break
		}
	}
	if one == nil {
		d.err = errors.New("no two settings to choose")
		return
	}
	d.Subject = []tune.Config{one, other}
	d.slow(d.between(1.02, 1.1), one)
	d.slow(d.between(1.02, 1.1), other)
	d.Lead = d.between(1.05, 1.2)
	d.trim()
	d.Refusals = nil // it is not this class's affair whether they run
}

// bestHas reports whether the best has all that the class is about.
func bestHas(w *World) bool {
	for _, s := range w.Subject {
		if !has(s)(w.best) {
			return false
		}
	}
	return true
}

// Logs of engines that ran out of memory.
var memoryLogs = map[string]string{
	"vllm":   "ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 79.19 GiB of which 588.06 MiB is free.",
	"sglang": "server_args=ServerArgs(model_path='m', mem_fraction_static=0.88, max_running_requests=None)\nException: Capture cuda graph failed: CUDA out of memory. Tried to allocate 20.00 MiB.",
	"trtllm": "[TensorRT-LLM][ERROR] tensorrt_llm::common::TllmException: CUDA runtime error in cudaMallocAsync: out of memory",
}

// What an engine prints whose log says nothing that perflab knows.
const unknownLog = "SIMULATED: worker 0 exited"

// drawRefused has an engine or a layout that is best and does not run unless something
// is set as it is by few: it wants less memory or smaller batches, and says so, or it wants
// another choice, and says nothing.
func drawRefused(d *drawer) {
	d.usual(spread())
	name, v, ok := d.setting(true, pick(d, "engine", engine.TP))
	if !ok {
		d.err = errors.New("nothing to refuse")
		return
	}
	region, flag, r := tune.Config{name: v}, "", Refusal{}
	var runs []string // values of the flag
	switch pick(d, "memory", "batch", "requests", "choice", "choice") {
	case "memory":
		flag, runs = engine.MemoryShare, []string{"0.85"}
		d.Narrow[flag] = []string{"", "0.85", "0.95"}
	case "batch":
		flag, runs = engine.MaxBatched, d.Narrow[engine.MaxBatched][1:2]
	case "requests":
		flag, runs = engine.MaxNumSeqs, d.Narrow[engine.MaxNumSeqs][1:3]
	default:
		f, u, ok := d.setting(true, engine.KVDtype, engine.ExpertParallel, engine.PP, engine.DP, engine.Speculative)
		if !ok {
			d.err = errors.New("no choice that it wants")
			return
		}
		flag, runs, r.Log = f, []string{u}, unknownLog
		if d.chance(0.4) {
			r.Known, r.Log = true, "SIMULATED: the guide knows that this does not run"
		}
	}
	r.When = func(c tune.Config) bool { return has(region)(c) && !slices.Contains(runs, c[flag]) }
	d.Subject = []tune.Config{region, {flag: pick(d, runs...)}}
	d.Lead = d.between(1.06, 1.3)
	d.Refusals = append(d.Refusals, r)
	d.trim()
}

// mostlyRefused reports whether the best runs among many of its kind that do not.
func mostlyRefused(w *World) bool {
	if !bestHas(w) {
		return false
	}
	refused, all := 0, 0
	for _, c := range w.product() {
		if !has(w.Subject[0])(c) {
			continue
		}
		all++
		if _, why := w.Truth(c); why != "" {
			refused++
		}
	}
	return 2*refused >= all
}

// off is how far a prediction is off, either way.
func (d *drawer) off(least, most float64) float64 {
	by := d.between(least, most)
	if d.chance(0.5) {
		return 1 / by
	}
	return by
}

func drawWrongEngine(d *drawer) {
	d.usual(anywhere())
	d.Wrong.Engine[pick(d, d.Engines...)] = d.off(1.5, 3)
	d.trim()
}

func drawWrongCheckpoint(d *drawer) {
	d.usual(paired())
	d.wrongAbout("model", pick(d, d.Models...))
	d.trim()
}

func drawWrongLayout(d *drawer) {
	d.usual(spread())
	name, v, ok := d.setting(false, engine.TP, engine.PP, engine.ExpertParallel, engine.DP)
	if !ok {
		d.err = errors.New("one layout")
		return
	}
	d.wrongAbout(name, v)
	d.trim()
}

// wrongAbout makes a setting another one than it is predicted to be, in one engine or in
// all.
func (d *drawer) wrongAbout(name, v string) {
	about := tune.Config{name: v}
	d.Subject = []tune.Config{{name: v}}
	if d.chance(0.4) {
		about["engine"] = pick(d, d.Engines...)
	}
	d.slow(d.off(1.25, 2), about)
}

func drawSilent(d *drawer) {
	d.usual(anywhere())
	d.Silent = []string{pick(d, d.Engines...)}
	if d.chance(0.4) {
		d.Silent = d.Engines
	}
	d.trim()
}

func drawDrift(d *drawer) {
	d.usual(anywhere())
	d.drifts()
	d.trim()
}

func (d *drawer) drifts() {
	d.Noise.Drift = d.between(0.04, 0.1)
	if d.chance(0.5) {
		d.Noise.Drift = -d.Noise.Drift
	}
	if d.chance(0.3) {
		d.Noise.Jump = 0.2 + 0.6*d.Float64()
	}
}

func drawNoisyEngine(d *drawer) {
	d.usual(anywhere())
	d.noisy()
	d.trim()
}

func (d *drawer) noisy() {
	d.Noise.Launch = d.between(0.008, 0.02)
	d.Noise.Engine = map[string]float64{pick(d, d.Engines...): 4}
}

func drawNoise(d *drawer) {
	d.usual(anywhere())
	d.Noise.Launch = 0.08
	d.trim()
}
