package candidate

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"perflab/internal/engine"
	"perflab/internal/engine/logs"
	"perflab/internal/tune"
)

func TestMoves(t *testing.T) {
	dense := field(t, studies()["docker-vllm"])
	mtp := field(t, studies()["qwen3.5-35b-h200-latency"])
	cpu := field(t, studies()["llamacpp-cpu"])
	vllm := set("engine", "vllm", "model", q32, "tp", "2", "max_num_seqs", "64")
	guessing := set("engine", "vllm", "model", q35, "speculative", "mtp:3")
	type figures = map[string]float64
	for _, c := range []struct {
		name    string
		f       *Field
		config  tune.Config
		figures figures
		missed  []string
		want    []string
		why     string // of the first
	}{
		{"nothing known", dense, vllm, nil, nil, nil, ""},
		{"nothing wrong", dense, vllm, figures{"mean_waiting_requests": 0.2, "mean_kv_usage": 0.3, "max_kv_usage": 0.5}, nil, nil, ""},
		{"at the limit with room", dense, vllm,
			figures{"mean_waiting_requests": 41, "max_waiting_requests": 60, "max_running_requests": 256, "mean_kv_usage": 0.38, "max_kv_usage": 0.5},
			nil, []string{"max_num_seqs 128", "max_num_batched_tokens 16384"}, "41 requests wait while 38 % of the KV cache is in use"},
		{"waiting with room, below the limit", dense, vllm,
			figures{"mean_waiting_requests": 41, "max_running_requests": 100, "mean_kv_usage": 0.38, "max_kv_usage": 0.5},
			nil, []string{"max_num_batched_tokens 16384"}, "41 requests wait while 38 % of the KV cache is in use"},
		{"waiting while devices idle", dense, vllm,
			figures{"mean_waiting_requests": 41, "max_running_requests": 256, "mean_kv_usage": 0.38, "mean_gpu_utilization": 0.2}, nil, nil, ""},
		{"waiting, and the cache is not known", dense, vllm, figures{"mean_waiting_requests": 41, "max_running_requests": 256}, nil, nil, ""},
		{"full cache", dense, vllm,
			figures{"mean_waiting_requests": 41, "max_running_requests": 256, "mean_kv_usage": 0.9, "max_kv_usage": 0.99},
			nil, []string{"kv_cache_dtype fp8", "gpu_memory_utilization 0.93", "tp 4"}, "41 requests wait while the KV cache is 99 % full at its peak: a smaller format holds more"},
		{"preemptions", dense, with(vllm, set("kv_cache_dtype", "fp8")),
			figures{"mean_running_requests": 200, "mean_waiting_requests": 0, "preemptions": 120, "mean_kv_usage": 0.9, "max_kv_usage": 1},
			nil, []string{"gpu_memory_utilization 0.93", "tp 4", "max_num_seqs 32"}, "120 requests lost their room in the KV cache"},
		{"late first tokens", dense, vllm, figures{"mean_waiting_requests": 0.2, "mean_kv_usage": 0.3}, []string{"p99_ttft_ms"},
			[]string{"max_num_batched_tokens 16384", "tp 4"}, "first tokens are late while 0.2 requests wait, and a step holds 8192 tokens"},
		{"late first tokens behind a queue", dense, vllm, figures{"mean_waiting_requests": 9, "max_running_requests": 256, "mean_kv_usage": 0.3}, []string{"p99_ttft_ms"},
			[]string{"max_num_seqs 128", "max_num_batched_tokens 16384"}, "9 requests wait while 30 % of the KV cache is in use"},
		{"gaps", dense, vllm, figures{"mean_waiting_requests": 9, "max_running_requests": 256, "mean_running_requests": 240, "mean_kv_usage": 0.3}, []string{"mean_tpot_ms"},
			[]string{"max_num_batched_tokens 4096", "tp 4", "max_num_seqs 16"}, "tokens come too far apart, and a step may hold 8192 tokens of prompts"},
		{"gaps of a model that guesses", mtp, set("engine", "vllm", "model", q35), figures{}, []string{"p99_itl_ms"},
			[]string{"max_num_batched_tokens 4096", "speculation mtp:1"}, "tokens come too far apart, and a step may hold 8192 tokens of prompts"},
		{"beyond graphs", mtp, set("engine", "vllm", "model", q35), figures{"mean_running_requests": 600, "max_running_requests": 700}, nil,
			[]string{"max_cudagraph_capture_size 1024"}, "600 requests of a copy run at a time, and graphs end at 512"},
		{"eager", dense, with(vllm, set("enforce_eager", "true")), figures{}, nil, []string{"no enforce_eager (the default)"}, "steps run without graphs"},
		{"bad guesses", mtp, guessing, figures{"acceptance_length": 1.5, "mean_running_requests": 4}, nil,
			[]string{"speculation mtp:2", "speculative by default"}, "1.50 tokens of 4 come out of a step that guesses"},
		{"bad guesses, by the answers alone", mtp, guessing, figures{"request_acceptance_length": 1.5, "mean_running_requests": 4}, nil,
			[]string{"speculation mtp:2", "speculative by default"}, "1.50 tokens of 4 come out of a step that guesses"},
		{"bad guesses by the counters, which are asked first", mtp, guessing, figures{"acceptance_length": 1.5, "request_acceptance_length": 3.7, "mean_running_requests": 4}, nil,
			[]string{"speculation mtp:2", "speculative by default"}, "1.50 tokens of 4 come out of a step that guesses"},
		{"good guesses", mtp, guessing, figures{"acceptance_length": 3.7, "mean_running_requests": 4}, nil,
			[]string{"speculation mtp:5"}, "3.70 tokens of 4 come out of a step that guesses"},
		{"good guesses for a crowd", mtp, guessing, figures{"acceptance_length": 3.7, "mean_running_requests": 100}, nil,
			[]string{"speculative by default"}, "3.70 tokens of 4 come out of a step that guesses, with 100 requests of a copy at a time"},
		{"processors hold devices up", dense, vllm, figures{"mean_gpu_utilization": 0.31, "mean_host_cpu": 0.97}, nil,
			[]string{"overlap_scheduling"}, "GPUs work 31 % of the time while the host's processors are 97 % in use"},
		{"slots", cpu, set("engine", "llamacpp", "model", llama), figures{"mean_waiting_requests": 4, "max_running_requests": 4}, nil,
			[]string{"max_num_seqs 8, max_model_len 512", "max_num_batched_tokens 4096"}, "4 requests wait for one of 4 places"},
		{"refused", dense, set("engine", "vllm", "model", q32, "tp", "3"), figures{"preemptions": 4}, nil, nil, ""},
	} {
		got := c.f.Moves(c.config, c.figures, c.missed)
		if !reflect.DeepEqual(stepLabels(got), c.want) {
			t.Errorf("%s: %q, want %q", c.name, stepLabels(got), c.want)
			continue
		}
		if len(got) > 0 && got[0].Why != c.why {
			t.Errorf("%s: %q, want %q", c.name, got[0].Why, c.why)
		}
		for _, m := range got {
			if why := c.f.Refuse(m.Apply(c.config)); why != "" || m.Why == "" {
				t.Errorf("%s: %s for %q is refused: %s", c.name, m.Label, m.Why, why)
			}
		}
	}
}

func TestMovesWithinWhatIsAllowed(t *testing.T) {
	s := studies()["docker-vllm"]
	s.Narrow = map[string][]string{"max_num_seqs": {"64", "96"}, "tp": {"1", "2"}, "kv_cache_dtype": {""}, "gpu_memory_utilization": {"0.9"}, "max_num_batched_tokens": {""}}
	f := field(t, s)
	c := set("engine", "vllm", "model", q32, "tp", "2", "max_num_seqs", "64")
	got := stepLabels(f.Moves(c, map[string]float64{"mean_waiting_requests": 41, "max_running_requests": 256, "mean_kv_usage": 0.38, "max_kv_usage": 0.5}, nil))
	if want := []string{"max_num_seqs 96"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := f.Moves(c, map[string]float64{"preemptions": 9, "mean_running_requests": 512}, nil); len(got) != 0 {
		t.Errorf("%q, though nothing is allowed", stepLabels(got))
	}
}

// TestMovesOfLatentAttention: ranks that all keep the same cache are given requests of
// their own, and that goes again as a whole.
func TestMovesOfLatentAttention(t *testing.T) {
	const model = "deepseek-ai/DeepSeek-V3"
	f := field(t, study{Options: Options{
		Baseline: set("engine", "sglang", "model", model, "tp", "8"), GPUs: 8, Longest: 9000, Resolve: resolver("h200", 8, nil),
	}})
	moves := f.Moves(set("engine", "sglang", "model", model, "tp", "8"), map[string]float64{"preemptions": 12}, nil)
	want := tune.Config{"attention_dp": "true", "dp": "8"}
	at := slices.IndexFunc(moves, func(c tune.Change) bool { return maps.Equal(c.Set, want) })
	if at < 0 {
		t.Fatalf("no move to attention DP in %q", stepLabels(moves))
	}
	var sets []tune.Config
	for _, r := range f.Removals(moves[at].Apply(set("engine", "sglang", "model", model, "tp", "8"))) {
		sets = append(sets, r.Set)
	}
	if !reflect.DeepEqual(sets, []tune.Config{{"attention_dp": "", "dp": ""}}) {
		t.Errorf("removals %v", sets)
	}
}

func TestRepairs(t *testing.T) {
	moe := field(t, studies()["qwen3-235b-a100"])
	dense := field(t, studies()["docker-vllm"])
	listed := func(shares ...string) *Field {
		s := studies()["docker-vllm"]
		s.Changes, s.Narrow = nil, map[string][]string{"gpu_memory_utilization": shares, "max_num_batched_tokens": {""}, "tp": {"2"}, "max_model_len": {""}}
		return field(t, s)
	}
	const full = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
	for _, c := range []struct {
		name   string
		f      *Field
		config tune.Config
		log    string
		want   []string
	}{
		{"a split that does not come out whole", moe, set("engine", "vllm", "model", q235, "tp", "8"),
			"ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128.", []string{"expert_parallel"}},
		{"no memory under load", dense, set("engine", "vllm", "model", q32, "tp", "2"),
			"INFO: Application startup complete.\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
			[]string{"gpu_memory_utilization 0.85", "max_num_batched_tokens 4096", "tp 4"}},
		{"no memory at the start", dense, set("engine", "sglang", "model", q32, "tp", "1"),
			full, []string{"max_num_batched_tokens 4096", "max_model_len 16384", "tp 2"}},
		{"the greatest share of the study below the cure", listed("", "0.7", "0.8", "0.95"), set("engine", "vllm", "model", q32, "tp", "2"), full, []string{"gpu_memory_utilization 0.8"}},
		{"the least share of the study", listed("", "0.88", "0.95"), set("engine", "vllm", "model", q32, "tp", "2"), full, []string{"gpu_memory_utilization 0.88"}},
		{"not the configuration's fault", dense, set("engine", "vllm", "model", q32, "tp", "2"), "OSError: [Errno 98] Address already in use", nil},
	} {
		e, err := engine.ByName(c.config["engine"])
		if err != nil {
			t.Fatal(err)
		}
		failure, ok := logs.Diagnose(e.Name, c.log)
		if !ok {
			t.Fatalf("%s: no diagnosis", c.name)
		}
		got := c.f.Repairs(c.config, failure, c.f.resolve(c.config).cmd)
		if !reflect.DeepEqual(stepLabels(got), c.want) {
			t.Errorf("%s (%s): %q, want %q", c.name, failure.Class, stepLabels(got), c.want)
		}
	}
}
