package study

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/engine"
	"perflab/internal/tune"
)

// good is a study in which nothing is wrong; small is it with a smaller model.
var (
	good  = readTestdata("good.yaml")
	small = strings.Replace(good, "Qwen3-14B", "Qwen3-8B", 1)
)

func readTestdata(name string) string {
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestParse(t *testing.T) {
	s, err := Parse("t.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if s.Stages[0].Try[0].Set["tp"] != "2" || s.Strategy != Staged || s.Workloads[0].Title != "a" {
		t.Errorf("study read wrongly: %+v", s)
	}
}

// A study of an engine that is measured only needs its model's file, and no model of it.
func TestParseMeasuredOnly(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"m.gguf", "q8.gguf"} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.NewReplacer("Qwen/Qwen3-14B", "m.gguf", "gpu: h100-sxm, gpus: 2", "gpu: cpu, gpus: 1", "engine: vllm", "engine: llamacpp",
		"{label: SGLang, engine: sglang, set: {tp: 2}}", "{label: Q8, model: q8.gguf, set: {threads: 2}}, {label: repository, model: user/repo}",
		"kind: predicted", "kind: process").Replace(good)
	s, err := Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.Configure(tune.Config{"engine": "llamacpp", "model": "m.gguf", "threads": "64000", "max_num_seqs": "2", "max_model_len": "512"}, Installed{})
	if err != nil || k.Replicas != 1 || k.Config.GPUs != 1 || k.Config.MaxLen != 512 || k.Command.String() != "llama-server -m m.gguf -np 2 -c 1024 -t 64000 --metrics" {
		t.Errorf("%+v: %v", k, err)
	}
	_, err = s.Configure(tune.Config{"engine": "llamacpp", "model": "m.gguf", "max_num_seqs": "300"}, Installed{})
	if r, ok := errors.AsType[*engine.Rejection](err); !ok || r.Rule != "slots" {
		t.Errorf("300 slots: %v", err)
	}
	for old, tt := range map[string]struct{ new, want string }{
		"q8.gguf":          {"q7.gguf", "t.yaml:10:30: stat q7.gguf: no such file or directory (looked for at " + filepath.Join(dir, "q7.gguf") + ": paths"},
		"model: m.gguf":    {"model: n.gguf", "t.yaml:2:8: stat n.gguf"},
		"kind: process":    {"kind: predicted", "t.yaml:7:33: llama.cpp is not modelled"},
		"engine: llamacpp": {"engine: vllm", `t.yaml:2:8: unknown model "m.gguf"`},
		"threads: 2":       {"threads: two", `parameter threads="two"`},
	} {
		_, err := Parse("t.yaml", []byte(strings.Replace(text, old, tt.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.new, err, tt.want)
		}
	}
}

// A study starts vLLM on a host of any kind, and predicts nothing there.
func TestParseHost(t *testing.T) {
	text := strings.NewReplacer("gpu: h100-sxm, gpus: 2", "gpu: cpu, gpus: 1", "{label: SGLang, engine: sglang, set: {tp: 2}}", "{label: 64, set: {max_num_seqs: 64}}",
		"kind: predicted", "kind: process").Replace(good)
	s, err := Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.Configure(tune.Config{"engine": "vllm", "model": "Qwen/Qwen3-14B"}, Installed{Version: "0.32.0"})
	if err != nil || k.Replicas != 1 || k.Config.Seqs != 128 || k.Config.Batched != 2048 {
		t.Errorf("%+v: %v", k, err)
	}
	if _, err := Parse("t.yaml", []byte(strings.Replace(text, "kind: process", "kind: predicted", 1))); err == nil || !strings.Contains(err.Error(), "nothing is known of CPU of the host") {
		t.Errorf("predicted: %v", err)
	}
}

// Each case edits the good study and names the message it must get, with its
// line and column.
func TestErrors(t *testing.T) {
	at := func(name string) string {
		whole, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		return " (looked for at " + whole + ": paths in a study file are from the working directory)"
	}
	tests := []struct{ name, old, new, want string }{
		{"unknown top key", "name: t\n", "name: t\ncolour: red\n", `t.yaml:2:1: unknown key "colour"`},
		{"unknown inner key", "gpus: 2}", "gpus: 2, cores: 3}", `t.yaml:3:36: unknown key "cores"`},
		{"wrong type", "gpus: 2", "gpus: two", "t.yaml:3:33: two is not a whole number"},
		{"unknown gpu", "gpu: h100-sxm", "gpu: h1000", "t.yaml:3:17: "},
		{"unknown metric", "metric: total_token_throughput", "metric: total_tokn", "t.yaml:4:21: "},
		{"no such engine", "engine: sglang", "engine: sgl", "t.yaml:10:35: "},
		{"no such parameter", "set: {tp: 2}", "set: {tpp: 2}", "t.yaml:10:54: "},
		{"no baseline", "baseline: {label: base, engine: vllm}\n", "", "t.yaml:1:1: baseline is missing"},
		{"bad workload", "num_prompts: 10", "num_prompts: 10, sharegpt_output_len: 5", "t.yaml:6:75: workload a: sharegpt_output_len applies to "},
		{"runtime", "kind: predicted", "kind: slurm", `t.yaml:11:17: runtime kind "slurm" is not known`},
		{"slo", "metric: total_token_throughput", "metric: total_token_throughput, slos: [p99_ttft_ms < ]", "t.yaml:4:"},
		{"twice", "workloads:\n", "workloads:\n  - {name: a, dataset_name: random}\n", `t.yaml:7:12: workload name "a" is used twice`},
		{"tab", "name: t\n", "name: t\n\tfoo: 1\n", "t.yaml:2:1: found a tab"},
		{"unclosed", "gpus: 2}", "gpus: 2", "t.yaml:4:10: did not find"},
		{"alias", "{label: base, engine: vllm}", "*nope", "t.yaml:7:11: unknown anchor"},
		{"empty", good, "", "t.yaml:1:1: the file is empty"},
		{"two documents", good, good + "---\nname: u\n", "t.yaml:1:1: the file holds several documents"},
		{"a list", good, "- a\n", "t.yaml:1:1: a value of another kind belongs here: a mapping"},
		{"a list in a value", "tp: 2}", "tp: [2]}", "t.yaml:10:53: a value of another kind belongs here: a single value"},
		{"a mapping for a list", "runtime:", "engines: {vllm: {env: {A: 1}}}\nruntime:", "t.yaml:11:23: a value of another kind belongs here: a list"},
		{"budget", "runtime:", "budget: {trials: 2}\nruntime:", "t.yaml:11:9: a budget of 2 trials"},
		{"same label", "try: [", "try: [{label: SGLang, engine: trtllm}, ", `t.yaml:10:44: stage "engine": the label "SGLang" is taken`},
		{"name as a path", "name: t\n", "name: ..\n", `t.yaml:1:7: name ".." cannot name a directory`},
		{"workload as the logs", "name: a,", "name: logs,", `t.yaml:6:12: workload name "logs" cannot name`},
		{"price", "gpus: 2}", "gpus: 2, price_per_hour: USD 3}", `t.yaml:3:52: price "USD 3" must be an amount above 0 an hour`},
		{"telemetry", "runtime:", "bench: {telemetry_interval_s: 0.01}\nruntime:", "t.yaml:11:31: telemetry_interval_s is 0.01: it must be at least 0.1, or 0"},
		{"nodes", "gpus: 2}", "gpus: 2, nodes: -4}", "t.yaml:3:43: nodes is -4"},
		{"too many gpus", "gpus: 2}", "gpus: 100000000}", "t.yaml:3:33: gpus is 100000000"},
		{"unknown model", "model: Qwen/Qwen3-14B", "model: acme/Foo", `t.yaml:2:8: unknown model "acme/Foo"`},
		{"unknown checkpoint", "set: {tp: 2}", "model: acme/Foo", "t.yaml:10:50: unknown model"},
		{"no model config", "hardware:", "model_config: {Qwen/Qwen3-14B: nofile.json}\nhardware:", "t.yaml:3:15: model_config of Qwen/Qwen3-14B: open nofile.json: no such file or directory" + at("nofile.json")},
		{"no dataset file", "dataset_name: random", "dataset_name: sharegpt, dataset_path: nope.json", "t.yaml:6:53: workload a: dataset_path nope.json does not exist: download"},
		{"where a dataset file was looked for", "dataset_name: random", "dataset_name: sharegpt, dataset_path: nope.json", at("nope.json")},
		{"no tokenizer", "dataset_name: random", "dataset_name: random, tokenizer: nope.json", at("nope.json")},
		{"no prior file", "strategy: staged", "priors: [nofile.yaml]", "read the recipes: open nofile.yaml: no such file or directory" + at("nofile.yaml")},
		{"no tokenizer of a server", "dataset_name: random", "dataset_name: random, tokenizer: server", "give a tokenizer.json"},
		{"unreadable value", "tp: 2}", "tp: two}", `t.yaml:10:48: parameter tp="two"`},
		{"engine's unknown flag", "runtime:", "engines: {vllm: {flags: [--nope]}}\nruntime:", "t.yaml:11:26: vLLM has no flag --nope in any version that perflab knows, up to 0."},
		{"engine's unknown parameter", "runtime:", "engines: {vllm: {set: {tpp: 1}}}\nruntime:", "t.yaml:11:29: unknown parameter"},
		{"file's unknown key", "runtime:", "engines: {trtllm: {file: {kv_cache_confg: {dtype: fp8}}}}\nruntime:", "t.yaml:11:26: TensorRT-LLM refuses kv_cache_confg of its configuration file: Extra inputs are not permitted"},
		{"file of an engine without", "runtime:", "engines: {vllm: {file: {a: 1}}}\nruntime:", "t.yaml:11:24: vLLM takes no configuration file here"},
		{"two files", "runtime:", "engines: {trtllm: {flags: [--config, f.yaml], file: {print_iter_log: true}}}\nruntime:", "t.yaml:11:27: the flags name a configuration file, f.yaml, beside"},
		{"a file of the user's and a parameter of ours", "runtime:", "engines: {trtllm: {flags: [--config, f.yaml], set: {prefix_caching: false}}}\nruntime:", "t.yaml:11:27: prefix_caching=false goes into the configuration file"},
		{"environment", "runtime:", "engines: {vllm: {env: [FOO]}}\nruntime:", `t.yaml:11:24: "FOO" is not KEY=value`},
		{"no URL", "kind: predicted", "kind: existing, urls: [foo]", `t.yaml:11:34: "foo" is no URL`},
		{"negative wait", "kind: predicted", "kind: simulated, ready_timeout_s: -3", "t.yaml:11:45: ready_timeout_s is -3"},
		{"wait for no server", "kind: predicted", "kind: predicted, ready_timeout_s: 3", "t.yaml:11:45: ready_timeout_s does not apply"},
		{"warm-ups", "runtime:", "bench: {num_warmups: -1}\nruntime:", "t.yaml:11:22: num_warmups is -1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(good, tt.old, tt.new, 1)
			if text == good {
				t.Fatalf("the edit %q changes nothing", tt.old)
			}
			_, err := Parse("t.yaml", []byte(text))
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("got %v, want a Error", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

// TestSearchErrors: what the strategy says of candidates beside each other has
// the position of the candidate that it is of.
func TestSearchErrors(t *testing.T) {
	survey := strings.NewReplacer("strategy: staged", "strategy: survey", "baseline: {label: base, engine: vllm}\nstages:\n  - name: engine\n    try: [{label: SGLang, engine: sglang, set: {tp: 2}}]",
		"candidates:\n  - {label: base, engine: vllm}\n  - {label: same, engine: vllm}").Replace(good)
	for _, tt := range []struct{ name, text, want string }{
		{"label", strings.Replace(good, "set: {tp: 2}}]", "set: {tp: 2}}, {label: SGLang, engine: vllm}]", 1), `t.yaml:10:58: stage "engine": the label "SGLang" is taken`},
		{"stage", strings.Replace(good, "runtime:", "  - name: engine\n    try: [{label: a, set: {tp: 2}}]\nruntime:", 1), `t.yaml:11:5: the stage name "engine" is taken`},
		{"survey", survey, `t.yaml:9:5: survey: "base" and "same" are the same configuration`},
	} {
		if _, err := Parse("t.yaml", []byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A study goes on with other devices of the kind.
func TestFingerprintOfDevices(t *testing.T) {
	var first string
	for _, hardware := range []string{"gpus: 2", "gpus: 2, devices: [4, 5]", "gpus: 2, check: off", "gpus: 4"} {
		s, err := Parse("t.yaml", []byte(strings.Replace(good, "gpus: 2", hardware, 1)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = got
		}
		if same := hardware != "gpus: 4"; (got == first) != same {
			t.Errorf("%s: the same study is %v, want %v", hardware, got == first, same)
		}
	}
}

// Devices that a study names are as many as it has, and of one machine that starts engines.
func TestDevices(t *testing.T) {
	for _, tt := range []struct{ hardware, runtime, wrong string }{
		{"gpu: h100-sxm, gpus: 2, devices: [4, 5]", "process", ""},
		{"gpu: h100-sxm, gpus: 2, devices: [GPU-5a1c, MIG-7]", "process", ""},
		{"gpu: h100-sxm, gpus: 2, devices: [4]", "process", "1 devices are named, and gpus is 2"},
		{"gpu: h100-sxm, gpus: 2, devices: [4, 4]", "process", "device 4 is named twice"},
		{"gpu: h100-sxm, gpus: 2, devices: [4, five]", "process", `"five" names no device`},
		{"gpu: h100-sxm, gpus: 2, devices: [4, 5]", "existing, urls: [http://127.0.0.1:1]", "devices does not apply to runtime kind existing"},
		{"gpu: h100-sxm, gpus: 2, devices: [4, 5]", "ssh, hosts: [{name: a}]", "name them for each host, under runtime.hosts"},
		{"gpu: h100-sxm, gpus: 2", "process}\nengines: {vllm: {env: [CUDA_VISIBLE_DEVICES=4]}", "each replica is dealt devices of its own by CUDA_VISIBLE_DEVICES"},
		{"gpu: h100-sxm, gpus: 2", "ssh, hosts: [{name: a, devices: [4, 5]}]", ""},
		{"gpu: h100-sxm, gpus: 2", "ssh, hosts: [{name: a, devices: [4, 5, 6]}]", "the hosts have 3 gpus"},
		{"gpu: h100-sxm, gpus: 2", "ssh, hosts: [{name: a, gpus: 2, devices: [4]}]", "host a: 1 devices are named, and gpus is 2"},
	} {
		s, err := Parse("t.yaml", []byte(strings.NewReplacer("gpu: h100-sxm, gpus: 2", tt.hardware, "kind: predicted", "kind: "+tt.runtime).Replace(good)))
		switch {
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s, %s: %v, want %q", tt.hardware, tt.runtime, err, tt.wrong)
		case tt.wrong == "" && err != nil:
			t.Errorf("%s, %s: %v", tt.hardware, tt.runtime, err)
		case tt.wrong == "" && len(s.Hardware.Devices) == 0 && len(s.Runtime.Hosts[0].Devices) == 0:
			t.Errorf("%s, %s: no devices", tt.hardware, tt.runtime)
		}
	}
}
