package science

import (
	"maps"

	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Suite are the landscapes in their order. Their numbers are made up, within what
// published runs show: engines that are up to 30 % faster or slower than the
// simulator takes them for, links and memory off by a fifth, launches that differ
// by 0.5 to 4 %. Rates and limits are such that some configurations meet them and
// some do not.
func Suite() []Landscape {
	var all []Landscape
	for _, of := range [][]Landscape{small(), middle(), large(), experts(), traps(), equal()} {
		all = append(all, of...)
	}
	return all
}

// Parts that landscapes are made of.
var (
	three = []string{"vllm", "sglang", "trtllm"}
	two   = []string{"vllm", "sglang"}
)

// throughput is the objective of a load that asks for all that there is.
func throughput() tune.Objective {
	return tune.Objective{Metric: "total_token_throughput", Higher: true, MinGain: 0.02}
}

// latency is the objective of a load at a rate.
func latency(metric string, slos ...tune.Bound) tune.Objective {
	return tune.Objective{Metric: metric, MinGain: 0.02, SLOs: slos}
}

// under is a throughput under constraints.
func under(slos ...tune.Bound) tune.Objective {
	o := throughput()
	o.SLOs = slos
	return o
}

func atMost(metric string, limit float64) tune.Bound {
	return tune.Bound{Metric: metric, Op: "<=", Limit: limit}
}

// burst is a load sent at once, or kept at a number in flight.
func burst(n, concurrency int, in, out float64) calib.Load {
	return calib.Load{Requests: n, Concurrency: concurrency, Input: lengths(in), Output: lengths(out)}
}

// rate is a load at a rate with Poisson arrivals.
func rate(n int, perSecond, in, out float64) calib.Load {
	return calib.Load{Requests: n, Rate: perSecond, Arrival: "poisson", Input: lengths(in), Output: lengths(out)}
}

func lengths(mean float64) calib.Lengths {
	return calib.Lengths{Mean: mean, Shape: calib.LogNormal, Sigma: 0.6, Max: int(4 * mean)}
}

// knobs are the usual limits, with more parameters over them.
func knobs(more map[string][]string) map[string][]string {
	all := map[string][]string{
		engine.MaxNumSeqs:  {"", "32", "128", "512"},
		engine.MaxBatched:  {"", "2048", "8192", "16384"},
		engine.MemoryShare: {"", "0.85", "0.95"},
		engine.KVDtype:     {"", "fp8"},
	}
	maps.Copy(all, more)
	return all
}

// both are a checkpoint in 16 bit and its FP8 sibling.
func both(model string) []string { return []string{model, model + "-FP8"} }

func start(engineName, model string, more tune.Config) tune.Config {
	c := tune.Config{"engine": engineName, "model": model}
	maps.Copy(c, more)
	return c
}

func limit(tokens string) map[string]string { return map[string]string{engine.MaxModelLen: tokens} }

// of reports whether a configuration is of an engine.
func of(name string) func(tune.Config, engine.Config) bool {
	return func(c tune.Config, _ engine.Config) bool { return c["engine"] == name }
}

// with reports whether it sets a parameter to a value.
func with(name, value string) func(tune.Config, engine.Config) bool {
	return func(c tune.Config, _ engine.Config) bool { return c[name] == value }
}

// all reports whether several things hold.
func all(conds ...func(tune.Config, engine.Config) bool) func(tune.Config, engine.Config) bool {
	return func(c tune.Config, cfg engine.Config) bool {
		for _, cond := range conds {
			if !cond(c, cfg) {
				return false
			}
		}
		return true
	}
}

// Logs of engines that ran out of memory.
const (
	vllmStart   = "ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 79.19 GiB of which 588.06 MiB is free."
	vllmLoad    = "INFO:     Application startup complete.\nRunning: 5 reqs\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
	sglangGraph = "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 20.00 MiB."
	trtllmStart = "[TensorRT-LLM][ERROR] tensorrt_llm::common::TllmException: CUDA runtime error in cudaMallocAsync: out of memory"
)

// capped is an engine that runs no more than so many at once unless it is told to.
func capped(engineName string, seqs int) Effect {
	return Effect{When: all(of(engineName), with(engine.MaxNumSeqs, "")), Change: func(c *engine.Config) { c.Seqs = min(c.Seqs, seqs) }}
}
