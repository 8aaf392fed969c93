package candidate

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"perflab/internal/stat"
	"perflab/internal/tune"
)

// TestStepsAndRemovalsHold walks at random from each arm, and holds every step and
// removal on the way against what is promised.
func TestStepsAndRemovalsHold(t *testing.T) {
	for name, s := range studies() {
		f := field(t, s)
		draw := stat.Stream(1, name)
		arms, _ := f.Candidates(), 0
		for _, a := range arms {
			if a.Refused != "" {
				continue
			}
			c := a.Config
			for range 4 {
				steps := f.Steps(c)
				if !reflect.DeepEqual(steps, f.Steps(maps.Clone(c))) {
					t.Fatalf("%s: steps differ when asked for again", name)
				}
				checkSteps(t, f, s, c, steps)
				checkRemovals(t, f, c)
				if len(steps) == 0 {
					break
				}
				c = steps[draw.IntN(len(steps))].Apply(c)
			}
		}
	}
}

func checkSteps(t *testing.T, f *Field, s study, c tune.Config, steps []tune.Change) {
	t.Helper()
	seen := map[string]bool{}
	for _, step := range steps {
		next := step.Apply(c)
		if why := f.Refuse(next); why != "" {
			t.Errorf("%v from %v is refused: %s", step.Set, c, why)
		}
		if seen[step.Label] {
			t.Errorf("%v: the step %s twice", c, step.Label)
		}
		seen[step.Label] = true
		if f.resolve(c).identity(c) == f.resolve(next).identity(next) {
			t.Errorf("%v from %v is no change", step.Set, c)
		}
		listed := slices.ContainsFunc(s.Changes, func(ch tune.Change) bool { return maps.Equal(ch.Set, step.Set) })
		if len(step.Set) != 1 && !listed && c["engine"] != "llamacpp" {
			t.Errorf("%v sets several parameters", step.Set)
		}
	}
}

func checkRemovals(t *testing.T, f *Field, c tune.Config) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range f.Removals(c) {
		next := r.Apply(c)
		if f.Refuse(next) != "" || f.Settings(next) >= f.Settings(c) || seen[r.Label] || r.Label == "" {
			t.Errorf("removal %q (%v) from %v: refused %q, settings %d after %d", r.Label, r.Set, c, f.Refuse(next), f.Settings(next), f.Settings(c))
		}
		seen[r.Label] = true
		if next["engine"] != c["engine"] || next["model"] != c["model"] {
			t.Errorf("removal of engine or model: %v", r.Set)
		}
	}
}

func stepLabels(list []tune.Change) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.Label)
	}
	return out
}

func TestStepsInOrder(t *testing.T) {
	s := studies()["docker-vllm"]
	s.Changes, s.Numerics = nil, false
	s.Resolve = resolver("h100-sxm", 8, map[string]use{"vllm": {version: "0.17.0"}})
	f := field(t, s)
	got := stepLabels(f.Steps(set("engine", "vllm", "model", q32, "tp", "2", "max_num_seqs", "256")))
	want := []string{
		"max_num_seqs 512", "gpu_memory_utilization 0.93", "max_num_batched_tokens 16384", "max_cudagraph_capture_size 1024", "performance_mode interactivity",
		"max_num_seqs 1024 (the default)", "gpu_memory_utilization 0.95", "max_num_batched_tokens 4096", "max_cudagraph_capture_size 256", "performance_mode throughput",
		"max_num_seqs 128", "max_num_batched_tokens 32768", "max_num_batched_tokens 2048",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("steps\n%q\nwant\n%q", got, want)
	}
}

func TestStepsOfSpeculation(t *testing.T) {
	f := field(t, studies()["qwen3.5-35b-h200-latency"])
	for c, want := range map[string][]string{
		"":      {"mtp:1"},
		"mtp:1": {"mtp:2", "mtp:3", "mtp:5"},
		"mtp:3": {"mtp:1", "mtp:2", "mtp:5"},
	} {
		var got []string
		for _, step := range f.Steps(with(set("engine", "vllm", "model", q35), set("speculative", c))) {
			if v, ok := step.Set["speculative"]; ok {
				got = append(got, v)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("from %q: %q, want %q", c, got, want)
		}
	}
}

func TestRemovalsAsSpelled(t *testing.T) {
	f := field(t, studies()["qwen3-32b-h100"])
	for _, c := range []struct {
		config tune.Config
		want   []string
	}{
		{set("engine", "vllm", "model", q32+"-FP8", "max_num_seqs", "512", "kv_cache_dtype", "fp8", "gpu_memory_utilization", "0.95", "chunked_prefill", "true"),
			[]string{"--max-num-seqs 512", "--gpu-memory-utilization 0.95", "--kv-cache-dtype fp8"}},
		{set("engine", "sglang", "model", q32, "prefix_caching", "false", "max_num_batched_tokens", "4096", "speculative", "ngram:4"),
			[]string{"--chunked-prefill-size 4096", "--disable-radix-cache", "--speculative-algorithm NGRAM --speculative-num-draft-tokens 4"}},
		{set("engine", "trtllm", "model", q32+"-FP8", "prefix_caching", "false", "chunked_prefill", "true"),
			[]string{"kv_cache_config.enable_block_reuse: false", "--enable_chunked_prefill"}},
	} {
		if got := stepLabels(f.Removals(c.config)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %q, want %q", c.config, got, c.want)
		}
	}
	g := field(t, studies()["qwen3-235b-a100"])
	for _, r := range g.Removals(set("engine", "vllm", "model", q235, "tp", "8", "expert_parallel", "true")) {
		if _, ok := r.Set["tp"]; ok {
			t.Error("tp 8 may go, and the model does not fit without")
		}
	}
}

func TestDomain(t *testing.T) {
	for name, s := range studies() {
		f := field(t, s)
		seen := map[string]bool{}
		for i, d := range f.Domain() {
			if seen[d.Name] || len(d.Values) == 0 {
				t.Errorf("%s: dimension %v", name, d)
			}
			seen[d.Name] = true
			if i > 1 && d.Values[0] != "" {
				t.Errorf("%s: %s begins with %q", name, d.Name, d.Values[0])
			}
			for j, v := range d.Values {
				x, err := strconv.ParseFloat(v, 64)
				if last := 0.0; d.Ordered && j > 0 {
					last, _ = strconv.ParseFloat(d.Values[j-1], 64)
					if err != nil || x <= last {
						t.Errorf("%s: %s is out of order: %q", name, d.Name, d.Values)
					}
				}
			}
		}
		if !seen["engine"] || !seen["model"] || !seen["max_num_seqs"] || seen["tp"] != (s.GPUs > 1) {
			t.Errorf("%s: dimensions %v", name, seen)
		}
	}
}

// TestShareOfMemory: the share is a step where it decides how much the cache holds. On a
// CPU, and beside a cache of a size of its own, it is none; what a study lists is tried.
func TestShareOfMemory(t *testing.T) {
	share := func(s study) bool {
		f := field(t, s)
		return slices.ContainsFunc(f.Steps(s.Baseline), func(c tune.Change) bool { return c.Set["gpu_memory_utilization"] != "" })
	}
	cpu := studies()["vllm-cpu"]
	if share(cpu) {
		t.Error("tried on a CPU")
	}
	if slices.ContainsFunc(field(t, cpu).Domain(), func(d tune.Dimension) bool { return d.Name == "gpu_memory_utilization" }) {
		t.Error("drawn on a CPU")
	}
	cpu.Narrow = map[string][]string{"gpu_memory_utilization": {"", "0.5"}}
	if !share(cpu) {
		t.Error("not tried on a CPU although the study lists it")
	}
	gpu := studies()["qwen3-32b-h100"]
	gpu.Engines = []string{"vllm"}
	if !share(gpu) {
		t.Error("not tried on a GPU")
	}
	gpu.Resolve = resolver("h100-sxm", 1, map[string]use{"vllm": {flags: []string{"--kv-cache-memory-bytes=8000000000"}}})
	if share(gpu) {
		t.Error("tried beside a cache of a size of its own")
	}
}
