package translate

import (
	"slices"
	"strings"
)

// aiperf is NVIDIA's client.
func aiperf() *client {
	return &client{
		name: "aiperf", versions: "0.13.0", example: "aiperf profile", starts: [][]string{{"aiperf", "profile"}},
		rows:     slices.Concat(aiperfServer(), aiperfLoad(), aiperfData(), aiperfSessions(), aiperfRefused(), aiperfRest()),
		settings: plainSettings, finish: finishAIPerf,
	}
}

func aiperfServer() []row {
	return []row{
		{flags: "--url|-u", to: "--base-url", fact: "target", many: true},
		{flags: "--model-names|--model|-m", to: "--model", fact: "model", many: true},
		{flags: "--endpoint-type", to: "--backend", fact: "api"},
		{flags: "--custom-endpoint|--endpoint", to: "--endpoint"},
		{flags: "--streaming", to: "always so", fact: "streaming", bare: true},
		{flags: "--api-key", kind: unneeded, says: "perflab takes the key from the environment: set OPENAI_API_KEY"},
		{flags: "--header|-H", to: "--header", fact: "header", many: true},
		{flags: "--extra-inputs", to: "--extra-body", fact: "extra", many: true},
		{flags: "--request-timeout-seconds", to: "--timeout-total", fact: "timeout"},
		{flags: "--wait-for-model-timeout", to: "--ready-check-timeout-sec", unless: "0|0.0"},
		{flags: "--reset-kv-cache", to: "--cache reset", fact: "reset", bare: true},
		{flags: "--tokenizer", kind: unneeded, says: "perflab counts answers by the server's usage and measures prompts by an approximation: give --tokenizer with a tokenizer.json, or --tokenizer server, for exact lengths"},
		{flags: "--tokenizer-revision", kind: unneeded, says: "perflab's --tokenizer is a tokenizer.json or the server's own"},
		{flags: "--tokenizer-trust-remote-code", bare: true, kind: unneeded, says: "perflab runs nobody's code to count tokens"},
		{flags: "--use-server-token-count", bare: true, kind: unneeded, says: "perflab always counts by the server's usage where it is sent"},
		{flags: "--use-legacy-max-tokens|--per-chunk-usage", bare: true, kind: unneeded, says: "perflab asks for limits and usage as each API has them"},
		{flags: "--connection-reuse-strategy", kind: refused, unless: "pooled", says: "is another use of connections than a pool of them, which is perflab's: leave it out"},
		{flags: "--url-strategy", kind: unneeded, says: "perflab sends each request to the endpoint with the fewest in flight"},
		{flags: "--wait-for-model-mode|--wait-for-model-interval|--reset-kv-cache-timeout-seconds|--reset-kv-cache-path|--transport|--transport-type|--request-content-type", kind: unneeded, says: "perflab has one way to do it"},
	}
}

func aiperfLoad() []row {
	return []row{
		{flags: "--concurrency", to: "--max-concurrency, of several --sweep concurrency=", fact: "concurrency"},
		{flags: "--request-rate", to: "--request-rate, of several --sweep rate=", fact: "rate"},
		{flags: "--arrival-pattern|--request-rate-mode", to: "--arrival", fact: "arrival"},
		{flags: "--arrival-smoothness|--vllm-burstiness", to: "--burstiness", fact: "burstiness"},
		{flags: "--request-count|--num-requests", to: "--num-prompts", fact: "requests"},
		{flags: "--benchmark-duration", to: "--duration", fact: "seconds"},
		{flags: "--benchmark-grace-period", kind: unneeded, says: "perflab waits for every answer after --duration, and drain_s says how long"},
		{flags: "--warmup-request-count|--num-warmup-requests", to: "--num-warmups"},
		{flags: "--warmup-concurrency|--warmup-prefill-concurrency|--warmup-request-rate|--warmup-arrival-pattern|--warmup-grace-period|--warmup-duration|--num-warmup-sessions|--agentic-cache-warmup-duration|--agentic-warmup-grace-period|--warmup-concurrency-ramp-duration|--warmup-prefill-concurrency-ramp-duration|--warmup-request-rate-ramp-duration",
			kind: unneeded, says: "perflab's warm-up is a number of requests (--num-warmups, 8 by default), whose prompts are never in the run"},
		{flags: "--random-seed", to: "--seed", fact: "seed", says: "starts other random numbers in each client: the prompts are not the same"},
		{flags: "--goodput", to: "--goodput", fact: "goodput", many: true},
		{flags: "--num-profile-runs", to: "--repeat", fact: "repeat", unless: "1"},
		{flags: "--failed-request-threshold", to: "--max-error-rate"},
	}
}

func aiperfData() []row {
	return []row{
		{flags: "--prompt-input-tokens-mean|--synthetic-input-tokens-mean|--isl", to: "--random-input-len", fact: "in"},
		{flags: "--prompt-input-tokens-stddev|--synthetic-input-tokens-stddev|--isl-stddev", to: "--scenario N", fact: "in-sd"},
		{flags: "--prompt-output-tokens-mean|--output-tokens-mean|--osl", to: "--random-output-len", fact: "out"},
		{flags: "--prompt-output-tokens-stddev|--output-tokens-stddev|--osl-stddev", to: "--scenario N", fact: "out-sd"},
		{flags: "--random-range-ratio", to: "--random-range-ratio", fact: "ratio"},
		{flags: "--random-corpus-style", kind: refused, unless: "vllm", says: "draws lengths as sglang.bench_serving does: give --scenario U(least,most)/(least,most) of perflab bench by hand"},
		{flags: "--prefix-prompt-length|--prompt-prefix-length", to: "--random-prefix-len, or --prefix-repetition-prefix-len", fact: "prefix"},
		{flags: "--num-prefix-prompts|--prefix-prompt-pool-size|--prompt-prefix-pool-size", to: "--prefix-repetition-num-prefixes", fact: "prefixes"},
		{flags: "--input-file", to: "--dataset-path", fact: "data"},
		{flags: "--dataset-filter|--custom-dataset-type", to: "--dataset-name", fact: "format"},
		{flags: "--public-dataset", to: "--dataset-name sharegpt", fact: "public"},
		{flags: "--fixed-schedule", to: "--arrival trace", fact: "fixed", bare: true},
		{flags: "--fixed-schedule-auto-offset", bare: true, kind: unneeded, says: "a trace of perflab begins at its first request"},
		{flags: "--dataset-sampling-strategy|--prompt-corpus", kind: unneeded, says: "is of texts to cut prompts from; perflab's are made up"},
		{flags: "--allow-dataset-wrap|--no-allow-dataset-wrap|--force-min-tokens", bare: true, kind: unneeded, says: "perflab asks for exactly the output tokens of a made-up prompt, and repeats no prompt"},
		{flags: "--conversation-turn-mean|--session-turns-mean", kind: refused, unless: "1",
			says: "makes conversations: give --dataset-name conversations of perflab bench by hand; its --num-prompts counts conversations, and not their turns"},
	}
}

// byHand is said of flags of loads that perflab may have in another way.
const byHand = "makes a load that perflab does not have: leave it out, or look for one that is like it in perflab bench --help"

// aiperfRefused are flags that make another load, or a search.
func aiperfRefused() []row {
	return []row{
		{flags: "--conversation-turn-stddev|--session-turns-stddev|--conversation-turn-delay-mean|--session-turn-delay-mean|--conversation-turn-delay-stddev|--session-turn-delay-stddev|--conversation-turn-delay-ratio|--session-delay-ratio|--max-idle-gap-cap-seconds|--user-centric-rate|--num-users",
			kind: refused, unless: "0|0.0", says: ofConversations},
		{flags: "--prefill-concurrency|--concurrency-ramp-duration|--prefill-concurrency-ramp-duration|--request-cancellation-rate|--request-cancellation-delay|--seq-dist|--sequence-distribution|--model-selection-strategy|--cache-bust|--prompt-batch-size|--batch-size-text|--batch-size|-b|--shared-system-prompt-length|--user-context-prompt-length|--system-prompt|--system-prompt-file|--max-context-length|--trace-session-sample-ratio",
			kind: refused, unless: "0|0.0", says: byHand},
		{flags: "--request-rate-ramp-duration|--request-rate-series", kind: refused, says: "changes the rate over time: give --ramp-up-strategy or --steps of perflab bench by hand"},
		{flags: "--uuid-and-strip|--apply-chat-template|--ignore-trace-delays|--use-think-time-only|--open-loop-strict|--no-open-loop-replay|--omit-kv-hints|--no-force-min-tokens|--burst-phase-starts|--download-video-content|--unsafe-override", bare: true, kind: refused, says: byHand},
		{flags: "--fixed-schedule-start-offset|--fixed-schedule-end-offset|--synthesis-speedup-ratio|--synthesis-prefix-len-multiplier|--synthesis-prefix-root-multiplier|--synthesis-prompt-len-multiplier|--synthesis-output-len-multiplier|--synthesis-max-isl|--synthesis-max-osl|--replay-speedup|--trajectory-start-min-ratio|--trajectory-start-max-ratio|--system-idle-gap-cap-seconds|--hf-subset|--hf-weka-dataset",
			kind: refused, unless: "1|1.0", says: "changes a trace before it is sent: write the changed trace to a file"},
		{flags: "--open-loop-replay", bare: true, kind: unneeded, says: "perflab keeps the times of a trace whatever the server does"},
		{flags: "--audio-batch-size|--batch-size-audio|--audio-length-mean|--audio-length-stddev|--audio-format|--audio-depths|--audio-sample-rates|--audio-num-channels|--image-width-mean|--image-width-stddev|--image-height-mean|--image-height-stddev|--image-batch-size|--batch-size-image|--image-format|--image-source|--image-source-sampling|--video-batch-size|--batch-size-video|--video-duration|--video-fps|--video-width|--video-height|--video-synth-type|--video-format|--video-codec|--video-audio-sample-rate|--video-audio-num-channels|--video-audio-codec|--video-audio-depth",
			kind: refused, many: true, unless: "0|0.0", says: "is of images, sound or video: perflab has made-up images alone, by --random-images and --random-image-size"},
		{flags: "--rankings-passages-mean|--rankings-passages-stddev|--rankings-passages-prompt-token-mean|--rankings-passages-prompt-token-stddev|--rankings-query-prompt-token-mean|--rankings-query-prompt-token-stddev",
			kind: refused, says: "is of rankings: give --backend rerank --scenario R(document,query) --random-batch-size of perflab bench by hand"},
		{flags: "--config|-f|--scenario|--variant|--sweep-variant", kind: refused, many: true, says: "takes settings from elsewhere that are not read here: give them as flags"},
		{flags: "--search-space|--search-metric|--search-stat|--search-direction|--search-max-iterations|--search-initial-points|--search-random-seed|--search-planner|--optuna-sampler|--optuna-acquisition|--optuna-terminator|--search-percentile-pooling|--bo-constraint-mode|--search-sla|--search-sla-tier|--search-recipe|--ttft-sla-ms|--isl-osl-pairs|--itl-sla-ms|--tpot-sla-ms|--e2e-sla-ms|--error-rate-sla|--slo-attainment-fraction|--search-style|--degradation-threshold|--degradation-metric-tag|--degradation-stat|--isl-min|--isl-max|--isl-steps|--concurrency-min|--concurrency-max|--concurrency-steps|--osl-min|--osl-max|--osl-steps",
			kind: refused, many: true, says: "is of a search: perflab searches the highest load that meets bounds by --find-max and --slo, and configurations by perflab tune"},
		{flags: "--convergence-metric|--convergence-stat|--convergence-threshold|--convergence-mode", kind: refused, says: "repeats runs until a figure is known: perflab ends a run by --until-precision and --until-metric"},
		{flags: "--accuracy-benchmark|--accuracy-tasks|--accuracy-n-shots|--accuracy-enable-cot|--accuracy-no-enable-cot|--accuracy-grader|--accuracy-system-prompt", kind: refused, many: true, says: "judges what a model answers, and perflab measures how fast"},
		{flags: "--accuracy-verbose", bare: true, kind: unneeded, says: "is of judging answers"},
	}
}

// aiperfRest are flags without which the load is the same.
func aiperfRest() []row {
	const output = "perflab prints a block and writes a run directory (--out); perflab export writes other clients' files"
	const telemetry = "perflab reads the engine, the GPUs and the host beside the load: see --telemetry"
	return []row{
		{flags: "--output-artifact-dir|--artifact-dir|--profile-export-prefix|--profile-export-file|--export-level|--profile-export-level|--slice-duration|--otel-url|--stream|--otel-resource-attributes|--gen-ai-provider|--mlflow-tracking-uri|--mlflow-experiment|--mlflow-run-name|--mlflow-tag|--mlflow-parent-run-id|--mlflow-artifact-glob|--wandb-project|--wandb-entity|--wandb-run-name|--wandb-tag",
			kind: unneeded, many: true, says: output},
		{flags: "--auto-plot|--no-auto-plot|--plot-required|--export-outputs-json|--export-http-trace|--show-trace-timing|--no-sweep-table", bare: true, kind: unneeded, says: output},
		{flags: "--server-metrics|--server-metrics-formats|--gpu-telemetry|--server-profiler-start-path|--server-profiler-stop-path|--server-profiler-timeout-seconds", kind: unneeded, many: true, says: telemetry},
		{flags: "--no-server-metrics|--no-gpu-telemetry|--server-profiler", bare: true, kind: unneeded, says: telemetry},
		{flags: "--network-latency-automatic", bare: true, kind: unneeded, says: "perflab reports latencies as the client saw them"},
		{flags: "--network-latency-mean|--network-latency-ping-interval", kind: unneeded, says: "perflab reports latencies as the client saw them"},
		{flags: "--profile-run-cooldown-seconds|--confidence-level|--parameter-sweep-cooldown-seconds|--parameter-sweep-mode|--sweep-type", kind: unneeded, says: "perflab runs one after another, and its intervals are of 95 %"},
		{flags: "--profile-run-disable-warmup-after-first|--no-profile-run-disable-warmup-after-first|--set-consistent-seed|--no-set-consistent-seed|--vary-seed-per-trial|--no-vary-seed-per-trial|--parameter-sweep-same-seed", bare: true, kind: unneeded, says: "each run of perflab --repeat or --sweep has a seed of its own, so that the prefix cache does not help it"},
		{flags: "--ui-type|--ui|--log-level|--record-processor-service-count|--record-processors|--api-port|--api-host|--stats-interval|--workers-max|--max-workers|--zmq-host|--zmq-ipc-path", kind: unneeded, says: "is of aiperf's own processes and display; perflab is one process"},
		{flags: "--verbose|-v|--extra-verbose|-vv|--zmq-dual-bind", bare: true, kind: unneeded, says: "is of aiperf's own processes and display; perflab is one process"},
	}
}

// genaiperf is aiperf's predecessor, which has most of its flags.
func genaiperf() *client {
	c := aiperf()
	c.name, c.versions, c.example, c.starts = "genai-perf", "0.0.16", "genai-perf profile", [][]string{{"genai-perf", "profile"}}
	c.rows = append([]row{
		{flags: "--backend|--service-kind|--grpc-method", kind: refused, unless: "openai", says: "loads Triton by its own protocol: perflab speaks HTTP APIs alone"},
		{flags: "--output-tokens-mean-deterministic", bare: true, kind: unneeded, says: "perflab always asks for exactly the output tokens of a made-up prompt"},
		{flags: "--measurement-interval|-p|--stability-percentage|-s", kind: refused, says: "repeats measurements until they are stable: give --request-count, or --duration and --until-precision of perflab bench by hand"},
		{flags: "--session-concurrency|--sweep-type|--sweep-range|--sweep-list", kind: refused, says: "is translated for aiperf's flags alone: give --sweep or --max-concurrency of perflab bench by hand"},
		{flags: "--server-metrics-url|--server-metrics-urls|--checkpoint-dir", many: true, kind: unneeded, says: "perflab reads the engine, the GPUs and the host beside the load: see --telemetry"},
		{flags: "--generate-plots|--enable-checkpointing", bare: true, kind: unneeded, says: "perflab report --html draws a run, and keeps every call"},
		{flags: "-g", to: "--goodput", fact: "goodput", many: true},
	}, c.rows...)
	return c
}

// aiperfAPIs are perflab's backends by endpoint type.
var aiperfAPIs = map[string]string{"": "openai-chat", "chat": "openai-chat", "completions": "openai", "responses": "openai-responses", "messages": "anthropic"}

// finishAIPerf makes flags of the facts.
func finishAIPerf(d *draft) {
	d.target("http://localhost:8000")
	d.model(d.client.name)
	if backend, ok := aiperfAPIs[d.facts["api"]]; ok {
		d.set("--backend", backend)
	} else {
		d.refuse(d.of("api"), "is an API of which perflab makes no such load: chat, completions, responses and messages are translated")
	}
	if d.facts["streaming"] == "" {
		d.note("no --streaming", d.client.name+" then takes each answer in one piece; perflab always streams, and so measures TTFT and ITL")
	}
	d.aiperfRequest()
	if ofAgents(d) {
		d.aiperfAgents()
		d.aiperfSessionLoad()
	} else {
		d.aiperfMadeUp()
		d.aiperfData()
		d.aiperfLoad()
	}
	d.aiperfGoodput()
}

// aiperfRequest gives what goes with each request.
func (d *draft) aiperfRequest() {
	if s, ok := d.number("timeout"); ok && s > 0 {
		d.set("--timeout-total", short(s)+"s")
	}
	if d.facts["reset"] != "" {
		d.set("--cache", "reset")
	}
	if v, ok := d.number("seed"); ok {
		d.set("--seed", whole(v))
	}
	d.headers(":")
	d.extras()
}

// aiperfData says what is sent.
func (d *draft) aiperfData() {
	switch path, format := d.facts["data"], d.facts["format"]; {
	case d.facts["public"] == "sharegpt":
		d.sharegpt(d.of("public"))
		if v, ok := d.number("out"); ok {
			d.set("--sharegpt-output-len", whole(v))
		}
		return
	case d.facts["public"] != "":
		d.refuse(d.of("public"), "is a dataset that perflab does not read: sharegpt is translated; of others write prompts to a file for --dataset-name jsonl")
		return
	case path != "" && format == "mooncake_trace":
		d.set("--dataset-name", "mooncake")
		d.set("--dataset-path", path)
		return
	case path != "":
		d.refuse(d.of("data"), `is a file that perflab does not read: write its prompts to one with {"prompt": "...", "output_tokens": 100} on each line, and give --dataset-name jsonl --dataset-path`)
		return
	}
	if d.facts["in"] == "" {
		d.facts["in"], d.given["in"] = "550", "no --isl" // DatasetDefaults of both versions
	}
	if d.facts["out"] == "" {
		d.refuse("no --osl", "leaves the length of answers to the model, and perflab's random dataset needs one: add --osl")
		return
	}
	in, out := d.lengthsOf("in"), d.lengthsOf("out")
	d.note(d.of("out"), d.client.name+" sends it as the most tokens of an answer; perflab asks for exactly so many (ignore_eos)")
	prefix, _ := d.number("prefix")
	count, _ := d.number("prefixes")
	ratio, ranged := d.number("ratio")
	switch {
	case prefix > 0 && count > 0:
		d.prefixed(in, out, prefix, count)
	default:
		d.random(in, out)
	}
	if ranged {
		d.set("--random-range-ratio", short(ratio))
	}
}

// aiperfLoad says when requests are sent.
func (d *draft) aiperfLoad() {
	rates, streams := d.list("rate"), d.list("concurrency")
	if d.facts["data"] != "" && len(rates) == 0 && len(streams) == 0 { // a trace's own times
		d.until("requests", "seconds")
		return
	}
	if len(rates) > 1 && len(streams) > 1 {
		d.refuse(d.of("concurrency"), "and --request-rate have several values each, and perflab sweeps one: give one value of either")
	}
	if d.facts["rate"] == "" && d.facts["concurrency"] == "" {
		streams = []string{"1"}
		d.note("no --concurrency", d.client.name+" then sends one request at a time")
	}
	d.along("rate", "--request-rate", rates)
	d.along("concurrency", "--max-concurrency", streams)
	if d.facts["rate"] != "" {
		d.arrival()
	}
	if repeat, ok := d.number("repeat"); ok && repeat > 1 {
		d.set("--repeat", whole(repeat))
	}
	if d.until("requests", "seconds") {
		return
	}
	most := 1.0
	for _, s := range d.list("concurrency") {
		n, _ := parse(s)
		most = max(most, n)
	}
	d.set("--num-prompts", whole(max(10, 2*most)))
	d.note("no --request-count", d.client.name+" then sends max(10, 2 * concurrency) requests")
}

// arrival gives the pattern of a rate.
func (d *draft) arrival() {
	burstiness, ok := d.number("burstiness")
	pattern := d.facts["arrival"]
	if pattern == "" && ok {
		pattern = "gamma"
	}
	switch pattern {
	case "", "poisson", "constant", "gamma":
	default:
		d.refuse(d.of("arrival"), "is a pattern that perflab does not have: constant, poisson and gamma are")
		return
	}
	if pattern == "constant" || pattern == "gamma" {
		d.set("--arrival", pattern)
	}
	if ok {
		d.set("--burstiness", short(burstiness))
	}
}

// aiperfBounds are perflab's figures by their tags; all are in ms.
var aiperfBounds = map[string]string{"time_to_first_token": "ttft", "inter_token_latency": "tpot", "request_latency": "e2el"}

// aiperfGoodput gives what makes a request good.
func (d *draft) aiperfGoodput() {
	var parts []string
	for word := range strings.FieldsSeq(d.facts["goodput"]) {
		tag, value, ok := strings.Cut(word, ":")
		name, known := aiperfBounds[tag]
		if _, err := parse(value); !ok || !known || err != nil {
			d.refuse("--goodput "+word, "is no bound that perflab has: time_to_first_token, inter_token_latency and request_latency are, in ms")
			continue
		}
		if name == "tpot" {
			d.note("--goodput "+word, "what aiperf calls inter-token latency is TPOT here: (last - first) / (n - 1) of a request")
		}
		parts = append(parts, name+":"+value)
	}
	if len(parts) > 0 {
		d.set("--goodput", strings.Join(parts, ","))
	}
}
