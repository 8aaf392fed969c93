package translate

import (
	"math"
	"strings"
)

// sglang is sglang.bench_serving.
func sglang() *client {
	return &client{
		name: "sglang.bench_serving", versions: "0.5.23", example: "python -m sglang.bench_serving",
		starts: [][]string{{"python", "-m", "sglang.bench_serving"}, {"python3", "-m", "sglang.bench_serving"}, {"bench_serving.py"}},
		rows:   sglangRows(), settings: plainSettings, finish: finishSGLang,
	}
}

func sglangRows() []row {
	rows := []row{
		{flags: "--backend", to: "--backend", fact: "api"},
		{flags: "--base-url", to: "--base-url", fact: "target"},
		{flags: "--host", to: "--base-url", fact: "host"},
		{flags: "--port", to: "--base-url", fact: "port"},
		{flags: "--model", to: "--model", fact: "model"},
		{flags: "--dataset-name", to: "--dataset-name", fact: "dataset"},
		{flags: "--dataset-path", to: "--dataset-path", fact: "path"},
		{flags: "--random-input-len|--random-input", to: "--random-input-len or --scenario U", fact: "in"},
		{flags: "--random-output-len|--random-output", to: "--random-output-len or --scenario U", fact: "out"},
		{flags: "--random-range-ratio", to: "--scenario U", fact: "ratio"},
		{flags: "--gsp-range-ratio", kind: refused, unless: "1|1.0", says: "draws lengths, and those of perflab's shared-prefix are fixed: leave it out"},
		{flags: "--gsp-group-distribution", kind: unneeded, says: "follows from --gsp-zipf-alpha here"},
		{flags: "--gsp-ordered", to: "--disable-shuffle", fact: "ordered", bare: true},
		{flags: "--tokenizer", kind: unneeded, says: "perflab measures prompts by an approximation: give --tokenizer with a tokenizer.json, or --tokenizer server, for exact lengths"},
		{flags: "--warmup-requests", to: "--num-warmups"},
		{flags: "--flush-cache", to: "--cache reset", fact: "reset", bare: true},
		{flags: "--flush-cache-timeout|--tag|--output-file|--rust-worker-threads", kind: unneeded, says: "changes no load; perflab writes a run directory (--out)"},
		{flags: "--output-details|--print-requests|--disable-tqdm|--cache-report|--plot-throughput|--rust-client|--gsp-fast-prepare", bare: true, kind: unneeded, says: "changes no load; perflab keeps every call"},
		{flags: "--disable-ignore-eos", fact: "eos", to: "no --ignore-eos", bare: true},
		{flags: "--disable-stream", bare: true, kind: refused, says: "asks for answers in one piece, and perflab always streams: leave it out"},
		{flags: "--extra-request-body", to: "--extra-body", fact: "extra"},
		{flags: "--header", to: "--header", fact: "header", many: true},
		{flags: "--goodput", to: "--goodput", fact: "goodput", many: true},
		{flags: "--lora-name", to: "--lora-modules", fact: "lora", many: true},
		{flags: "--lora-request-distribution", kind: refused, unless: "uniform", says: "is another mix of adapters than perflab's, which are drawn alike or in turn: leave it out"},
		{flags: "--sharegpt-context-len|--lora-zipf-alpha|--prompt-suffix|--gsp-num-turns|--dataset-offset|--agentic-max-turns|--speed-bench-category|--speed-bench-output-len|--image-count|--image-resolution|--image-format|--image-content|--mooncake-slowdown-factor|--mooncake-num-rounds|--mooncake-workload|--top-logprobs-num|--token-ids-logprob|--logprob-start-len",
			kind: refused, many: true, says: "makes a load that perflab does not have: leave it out"},
		{flags: "--random-image-count|--use-trace-timestamps|--return-logprob|--return-routed-experts|--apply-chat-template|--pd-separated|--tokenize-prompt|--gsp-send-routing-key|--fake-prefill", bare: true, kind: refused, says: "makes a load that perflab does not have: leave it out"},
		{flags: "--profile|--profile-by-stage", bare: true, kind: unneeded, says: "starts the engine's profiler, which changes what is measured"},
		{flags: "--profile-activities|--profile-start-step|--profile-steps|--profile-num-steps|--profile-stages|--profile-output-dir|--profile-prefix|--profile-prefill-url|--profile-decode-url", many: true, kind: unneeded, says: "starts the engine's profiler, which changes what is measured"},
	}
	const same = "--served-model-name --num-prompts --request-rate --max-concurrency --seed --sharegpt-output-len --ready-check-timeout-sec --temperature --top-p " +
		"--gsp-num-groups --gsp-prompts-per-group --gsp-system-prompt-len --gsp-question-len --gsp-output-len --gsp-zipf-alpha"
	for name := range strings.FieldsSeq(same) {
		rows = append(rows, row{flags: name, to: name})
	}
	return rows
}

// sglangAPIs are perflab's backends by SGLang's, with the port that each has where
// none is given.
var sglangAPIs = map[string]struct{ backend, port string }{
	"": {"sglang", "30000"}, "sglang": {"sglang", "30000"}, "sglang-native": {"sglang", "30000"},
	"sglang-oai": {"openai", "30000"}, "sglang-oai-chat": {"openai-chat", "30000"}, "vllm": {"openai", "8000"}, "vllm-chat": {"openai-chat", "8000"},
}

// finishSGLang makes flags of the facts.
func finishSGLang(d *draft) {
	api, ok := sglangAPIs[d.facts["api"]]
	if !ok {
		d.refuse(d.of("api"), "is an API of which perflab makes no such load: sglang, sglang-oai, sglang-oai-chat, vllm and vllm-chat are translated")
	}
	d.set("--backend", api.backend)
	host, port := d.facts["host"], d.facts["port"]
	if host == "" || host == "0.0.0.0" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = api.port
	}
	d.target("http://" + host + ":" + port)
	d.model("sglang.bench_serving")
	if !d.has("--temperature") {
		d.set("--temperature", "0")
	}
	if d.facts["reset"] != "" {
		d.set("--cache", "reset")
	}
	d.extras()
	d.headers("=")
	if v := d.facts["lora"]; v != "" {
		d.set("--lora-modules", strings.Join(strings.Fields(v), ","))
	}
	if v := d.facts["goodput"]; v != "" {
		d.set("--goodput", strings.Join(strings.Fields(v), ","))
	}
	d.sglangData()
	if !d.has("--num-prompts") && d.facts["dataset"] != "generated-shared-prefix" {
		d.set("--num-prompts", "1000")
	}
}

// has reports whether a flag of perflab is given.
func (d *draft) has(name string) bool {
	for _, f := range d.flags {
		if f.Name == name {
			return true
		}
	}
	return false
}

// sglangData says what is sent.
func (d *draft) sglangData() {
	switch name := d.facts["dataset"]; name {
	case "", "sharegpt":
		d.sharegpt("--dataset-name sharegpt")
		d.note("--dataset-name sharegpt", "takes its sample by other rules (no bounds of lengths): the requests are not the same")
		if d.facts["eos"] == "" {
			d.put("--ignore-eos", "", true)
		}
	case "random", "random-ids":
		if d.facts["eos"] != "" {
			d.note(d.of("eos"), "perflab's random dataset always asks for exactly the output tokens")
		}
		d.sglangRandom()
	case "generated-shared-prefix":
		d.set("--dataset-name", "shared-prefix")
		if d.facts["ordered"] != "" {
			d.put("--disable-shuffle", "", true)
		}
	default:
		d.refuse(d.of("dataset"), "is a dataset that is not translated: sharegpt, random, random-ids and generated-shared-prefix are")
	}
}

// sglangRandom draws lengths from ratio * length to length, all as likely.
func (d *draft) sglangRandom() {
	for _, side := range []string{"in", "out"} {
		if d.facts[side] == "" {
			d.facts[side] = "1024"
		}
	}
	ratio, _ := d.number("ratio") // 0 by default
	in, out := d.lengthsOf("in"), d.lengthsOf("out")
	if ratio > 1 {
		d.refuse(d.of("ratio"), "is above 1: give a share of the length")
	}
	if ratio < 1 {
		in.least, in.most = max(1, math.Floor(in.mean*ratio)), in.mean
		out.least, out.most = max(1, math.Floor(out.mean*ratio)), out.mean
		d.note("--random-range-ratio", "draws lengths from this share of them (0 by default) to the whole; perflab's flag of this name is another rule")
	}
	d.random(in, out)
	d.note("--dataset-name random", "cuts prompts out of ShareGPT; perflab's are made-up words of the same lengths")
}
