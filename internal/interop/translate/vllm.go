package translate

import "strings"

// vllm is vllm bench serve, whose flags perflab bench has under the same names.
func vllm() *client {
	return &client{
		name: "vllm bench serve", versions: "0.33.0", example: "vllm bench serve",
		starts: [][]string{{"vllm", "bench", "serve"}, {"vllm-bench"}, {"benchmark_serving.py"}},
		rows:   vllmRows(), settings: plainSettings, finish: finishVLLM,
	}
}

func vllmRows() []row {
	rows := []row{
		{flags: "--backend|--endpoint-type", to: "--backend", fact: "api"},
		{flags: "--base-url", to: "--base-url", fact: "target"},
		{flags: "--model", to: "--model", fact: "model"},
		{flags: "--goodput", to: "--goodput", fact: "goodput", many: true},
		{flags: "--metadata", to: "--metadata", fact: "metadata", many: true},
		{flags: "--header", to: "--header", fact: "header", many: true},
		{flags: "--lora-modules", to: "--lora-modules", fact: "lora", many: true},
		{flags: "--tokenizer", kind: unneeded, says: "is the name of a tokenizer to download; perflab takes a tokenizer.json, its directory, or server: without one it measures prompts by an approximation"},
		{flags: "--dataset-name", to: "--dataset-name", fact: "dataset", unless: "random"},
		{flags: "--num-warmups", to: "--num-warmups"},
		{flags: "--random-range-ratio", to: "--random-range-ratio", fact: "ratio"},
		{flags: "--input-len", to: "--random-input-len", fact: "in"},
		{flags: "--output-len", to: "--random-output-len, or of the dataset", fact: "out"},
		{flags: "--custom-output-len", to: "--output-len", says: "is of rows that name no output_tokens; vLLM takes it for all rows"},
		{flags: "--ignore-eos|--disable-shuffle|--no-oversample|--save-result|--save-detailed|--append-result|--insecure", bare: true, to: "the same"},
		{flags: "--disable-tqdm|--trust-remote-code|--profile|--skip-tokenizer-init|--plot-timeline|--plot-dataset-stats", bare: true, kind: unneeded, says: "is of vLLM's own display, tokenizer or profiler"},
		{flags: "--tokenizer-mode|--timeline-itl-thresholds", kind: unneeded, says: "is of vLLM's own display, tokenizer or profiler"},
		{flags: "--skip-chat-template", bare: true, kind: unneeded, says: "perflab applies no chat template to prompts: the server does, of chat"},
		{flags: "--use-beam-search", bare: true, kind: refused, says: "changes how the server answers: give it by --extra-body of perflab bench"},
		{flags: "--top-k|--min-p|--frequency-penalty|--presence-penalty|--repetition-penalty|--best-of|--logprobs|--chat-template-kwargs", kind: refused, says: "is given by --extra-body of perflab bench, as '{\"top_k\":20}'"},
		{flags: "--probe-request-rate", kind: refused, unless: "0|0.0", says: "sends probes beside the load: perflab has none"},
		{flags: "--self-timed|--no-self-timed|--custom-ensure-client-side-data|--enable-multimodal-chat|--no-reranker|--no-stream", bare: true, kind: refused, says: "is of a dataset that is not translated"},
		{flags: "--asr-max-audio-len-sec|--asr-min-audio-len-sec|--bfcl-categories|--blazedit-max-distance|--blazedit-min-distance|--hf-name|--hf-output-len|--hf-split|--hf-subset|--random-mm-base-items-per-request|--random-mm-bucket-config|--random-mm-limit-mm-per-prompt|--random-mm-num-mm-items-range-ratio|--spec-bench-category|--spec-bench-output-len|--speed-bench-category|--speed-bench-dataset-subset|--speed-bench-output-len|--timed-trace-chunk-hash-size|--timed-trace-label-hash-ids|--timed-trace-label-input-length|--timed-trace-label-output-length|--timed-trace-label-timestamp|--timed-trace-sec-multiplier",
			kind: refused, says: "is of a dataset that is not translated: write its prompts to a file for --dataset-name jsonl"},
		{flags: "--request-id-prefix", kind: unneeded, says: "names requests, which changes no load"},
	}
	const same = "--host --port --endpoint --served-model-name --dataset-path --num-prompts --request-rate --burstiness --max-concurrency --ramp-up-strategy " +
		"--ramp-up-start-rps --ramp-up-end-rps --seed --percentile-metrics --metric-percentiles --result-dir --result-filename --label --extra-body " +
		"--ready-check-timeout-sec --lora-assignment --sharegpt-output-len --random-input-len --random-output-len --random-prefix-len --random-batch-size " +
		"--sonnet-input-len --sonnet-output-len --sonnet-prefix-len --prefix-repetition-prefix-len --prefix-repetition-suffix-len " +
		"--prefix-repetition-num-prefixes --prefix-repetition-output-len --temperature --top-p"
	for name := range strings.FieldsSeq(same) {
		rows = append(rows, row{flags: name, to: name})
	}
	return rows
}

// vllmAPIs are perflab's backends by vLLM's; its default is /v1/completions.
var vllmAPIs = map[string]string{"": "openai", "openai": "openai", "vllm": "openai", "openai-chat": "openai-chat", "openai-embeddings": "openai-embeddings"}

// finishVLLM makes flags of the facts.
func finishVLLM(d *draft) {
	if d.facts["target"] != "" {
		d.target("")
	}
	d.model("vllm bench serve")
	switch backend, ok := vllmAPIs[d.facts["api"]]; {
	case !ok:
		d.refuse(d.of("api"), "is an API of which perflab makes no such load: openai, openai-chat, vllm and openai-embeddings are translated")
	case d.facts["api"] == "":
		d.set("--backend", backend)
		d.note("no --backend", "vLLM then loads /v1/completions; perflab's own default is chat")
	default:
		d.set("--backend", backend)
	}
	d.vllmData()
	d.each("--metadata", "metadata")
	d.headers("=")
	if v := d.facts["lora"]; v != "" {
		d.set("--lora-modules", strings.Join(strings.Fields(v), ","))
	}
	if v := d.facts["goodput"]; v != "" {
		d.set("--goodput", strings.Join(strings.Fields(v), ","))
	}
	d.note("figures", "perflab's are by its own definitions: --compat vllm gives vLLM's")
}

// vllmOutputs are the flags of the length of answers, by dataset.
var vllmOutputs = map[string]string{
	"": "--random-output-len", "sharegpt": "--sharegpt-output-len", "sonnet": "--sonnet-output-len",
	"prefix_repetition": "--prefix-repetition-output-len", "custom": "--output-len",
}

// vllmData says what is sent.
func (d *draft) vllmData() {
	name := d.facts["dataset"]
	switch name {
	case "":
	case "sharegpt", "sonnet", "prefix_repetition", "burstgpt":
		d.set("--dataset-name", name)
	case "custom":
		d.set("--dataset-name", "jsonl")
		d.note(d.of("dataset"), "is jsonl here, with the same keys: prompt and output_tokens")
		if !d.has("--output-len") && d.facts["out"] == "" {
			d.set("--output-len", "256")
			d.note("no --custom-output-len", "vLLM then asks for 256 tokens, of rows that say another number too")
		}
	default:
		d.refuse(d.of("dataset"), "is a dataset that perflab does not have: write its prompts to a file for --dataset-name jsonl")
	}
	if v, ok := d.number("ratio"); ok {
		d.set("--random-range-ratio", short(v))
	}
	if v, ok := d.number("in"); ok {
		if name == "" {
			d.set("--random-input-len", whole(v))
		} else {
			d.refuse(d.of("in"), "is of made-up prompts here: give the flag of the dataset")
		}
	}
	if v, ok := d.number("out"); ok {
		if flag := vllmOutputs[name]; flag != "" {
			d.set(flag, whole(v))
		} else {
			d.refuse(d.of("out"), "does not apply to this dataset")
		}
	}
}

// each repeats a flag for every word of a fact.
func (d *draft) each(flag, fact string) {
	for word := range strings.FieldsSeq(d.facts[fact]) {
		d.set(flag, word)
	}
}
