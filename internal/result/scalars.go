package result

import "slices"

// scalars returns the figures of a run that are one number, in the block's
// order first.
func scalars() []Metric {
	return slices.Concat(runScalars(), windowScalars(), cacheScalars(), streamScalars(), speculationScalars(), sessionScalars(), gpuScalars(), searchScalars(), telemetryScalars(), costScalars())
}

// runScalars are what the calls give over all of the run.
func runScalars() []Metric {
	return []Metric{
		{Name: "completed", Label: "Successful requests", Unit: "requests", Better: Higher,
			Doc: "Calls that succeeded.", Formula: "count of calls without a failure class"},
		{Name: "failed", Label: "Failed requests", Unit: "requests", Better: Lower,
			Doc: "Calls that failed; they enter no latency, token or throughput figure.", Formula: "count of calls with a failure class"},
		{Name: "max_concurrency", Label: "Maximum request concurrency", Unit: "requests",
			Doc: "The concurrency limit of the workload; absent without one.", Formula: "as configured"},
		{Name: "request_rate", Label: "Request rate configured (RPS)", Unit: "req/s", Decimals: 2,
			Doc: "The request rate of the workload, for a trace or a ramp its mean; absent when all requests are due at once.", Formula: "as configured, or (requests - 1) / last Due"},
		{Name: "duration", Label: "Benchmark duration (s)", Unit: "s", Better: Lower, Decimals: 2,
			Doc: "Wall time of the run with its drain, failed calls included.", Formula: "D = max End - min(Due, Sent)"},
		{Name: "total_input_tokens", Label: "Total input tokens", Unit: "tokens",
			Doc: "Prompt tokens of the successful calls: the server's usage where given, else the workload's count.", Formula: "sum of p"},
		{Name: "total_output_tokens", Label: "Total generated tokens", Unit: "tokens",
			Doc: "Output tokens of the successful calls: the server's usage where given, else the run's tokenizer over the text, else the tokens counted in the stream; the verdict's tokens check says which.", Formula: "sum of n"},
		{Name: "request_throughput", Label: "Request throughput (req/s)", Unit: "req/s", Better: Higher, Decimals: 2,
			Doc: "Successful calls per second of the run.", Formula: "completed / D"},
		{Name: "request_goodput", Label: "Request goodput (req/s)", Unit: "req/s", Better: Higher, Decimals: 2,
			Doc: "Successful calls that met every goodput bound, per second of the run; absent without bounds.", Formula: "good / D"},
		{Name: "output_throughput", Label: "Output token throughput (tok/s)", Unit: "tok/s", Better: Higher, Decimals: 2,
			Doc: "Output tokens per second of the run.", Formula: "sum of n / D"},
		{Name: "max_output_tokens_per_s", Label: "Peak output token throughput (tok/s)", Unit: "tok/s", Better: Higher, Decimals: 2,
			Doc:     "Output tokens of the busiest second, a sliding window of 1 s over the chunk stamps with a call's n spread over its chunks; never below the mean, which is the answer for a run shorter than the window.",
			Formula: "max(max over t of tokens in (t - 1 s, t], sum of n / D)"},
		{Name: "max_concurrent_requests", Label: "Peak concurrent requests", Unit: "requests", Decimals: 2,
			Doc: "Most successful calls in flight at one instant; a call that ends as another is sent does not overlap it.", Formula: "max over t of calls with Sent <= t < End"},
		{Name: "total_token_throughput", Label: "Total token throughput (tok/s)", Unit: "tok/s", Better: Higher, Decimals: 2,
			Doc: "Input and output tokens per second of the run.", Formula: "(sum of p + sum of n) / D"},

		{Name: "success_rate", Label: "Success rate", Unit: "ratio", Section: sectionSuccess, Better: Higher, Decimals: 4,
			Doc: "Share of the calls that succeeded.", Formula: "completed / (completed + failed)"},
		{Name: "goodput_ratio", Label: "Goodput ratio", Unit: "ratio", Section: sectionSuccess, Better: Higher, Decimals: 4,
			Doc: "Share of all calls, failed ones included, that met every goodput bound; absent without bounds.", Formula: "good / (completed + failed)"},
	}
}

// windowScalars are what the calls give in a part of the run.
func windowScalars() []Metric {
	return []Metric{
		{Name: "steady_duration", Label: "Steady window (s)", Unit: "s", Section: sectionSteady, Decimals: 2,
			Doc:     "Length of the steady window, in which the client neither fills the server nor drains it: from the first end of a call to the last sending; absent when fewer than 10 calls end in it, as in a burst.",
			Formula: "W = max Sent - min End"},
		{Name: "steady_request_throughput", Label: "Steady request throughput (req/s)", Unit: "req/s", Section: sectionSteady, Better: Higher, Decimals: 2,
			Doc: "Calls that ended in the steady window, per second of it.", Formula: "ends in window / W"},
		{Name: "steady_output_throughput", Label: "Steady output token throughput (tok/s)", Unit: "tok/s", Section: sectionSteady, Better: Higher, Decimals: 2,
			Doc: "Output tokens stamped in the steady window, per second of it.", Formula: "tokens in window / W"},
		{Name: "steady_total_token_throughput", Label: "Steady total token throughput (tok/s)", Unit: "tok/s", Section: sectionSteady, Better: Higher, Decimals: 2,
			Doc: "Output tokens stamped in the steady window and the prompts whose first token was, per second of it.", Formula: "(tokens + prompts in window) / W"},
		{Name: "drain_s", Label: "Drain (s)", Unit: "s", Section: sectionSteady, Decimals: 2,
			Doc: "Time from the last sending to the end of the run.", Formula: "max End - max Sent"},

		{Name: "full_load_duration", Label: "Full load (s)", Unit: "s", Section: sectionFull, Decimals: 2,
			Doc:     "For a closed loop, the length of the time under full load: from the first to the last instant at which 95 % of the concurrency limit were in flight, failed calls included; absent when fewer than 10 calls end in it.",
			Formula: "F = last - first instant with in flight >= 0.95 limit"},
		{Name: "full_load_request_throughput", Label: "Full load request throughput (req/s)", Unit: "req/s", Section: sectionFull, Better: Higher, Decimals: 2,
			Doc: "Calls that ended under full load, per second of it.", Formula: "ends under full load / F"},
		{Name: "full_load_output_throughput", Label: "Full load output token throughput (tok/s)", Unit: "tok/s", Section: sectionFull, Better: Higher, Decimals: 2,
			Doc: "Output tokens stamped under full load, per second of it.", Formula: "tokens under full load / F"},
		{Name: "full_load_total_token_throughput", Label: "Full load total token throughput (tok/s)", Unit: "tok/s", Section: sectionFull, Better: Higher, Decimals: 2,
			Doc: "Output tokens stamped under full load and the prompts whose first token was, per second of it.", Formula: "(tokens + prompts under full load) / F"},
	}
}

// streamScalars are of streams and of the client.
func streamScalars() []Metric {
	return []Metric{
		{Name: "tokens_per_chunk", Label: "Tokens per chunk", Unit: "tokens", Section: sectionStream, Decimals: 2,
			Doc: "Output tokens per chunk of the streams; above 1 with speculation or a stream interval, or when tokens are not streamed.", Formula: "sum of n / chunks"},
		{Name: "tokens_per_read", Label: "Tokens per read", Unit: "tokens", Section: sectionStream, Decimals: 2,
			Doc: "Output tokens per read of the client that brought any.", Formula: "sum of n / (chunks - merged_chunks)"},
		{Name: "merged_chunks", Label: "Chunks merged by reads", Unit: "chunks", Section: sectionClient,
			Doc:     "Chunks that came in one read with the chunk before them, or in one packet; they have no gap of their own and stay out of the inter-token latencies.",
			Formula: "count of chunks with their predecessor's read or stamp"},
		{Name: "new_connections", Label: "New connections", Unit: "requests", Section: sectionClient,
			Doc: "Successful calls for which a connection had to be opened; its time is in connect and in no latency counted from the sending; absent when the calls do not tell, as predicted ones.", Formula: "count of calls with a new connection"},
	}
}

// gpuScalars are the rows that are another figure by the number of GPUs.
func gpuScalars() []Metric {
	row := func(of, label, unit, what string) Metric {
		return Metric{Name: of + perGPU, Label: label, Unit: unit, Section: sectionGPU, Better: Higher, Decimals: 2,
			Doc:     what + ", for each GPU that is allocated, idle ones among them; absent on a CPU, and where their number is not known.",
			Formula: of + " / GPUs allocated"}
	}
	return []Metric{
		row("request_throughput", "Request throughput per GPU (req/s)", "req/s", "Successful calls per second"),
		row("output_throughput", "Output token throughput per GPU (tok/s)", "tok/s", "Output tokens per second"),
		row("total_token_throughput", "Total token throughput per GPU (tok/s)", "tok/s", "Input and output tokens per second"),
		row(goodputRate, "Goodput rate per GPU within the SLOs (req/s)", "req/s", "The highest request rate that met every SLO, by a search as of goodput_rate"),
		row(AgentsServed, "Agents served per GPU within the SLOs", "sessions", "The most sessions at a time that met every SLO, by a search as of agents_served"),
	}
}

// searchScalars are the rows of the metric table that a search gives.
func searchScalars() []Metric {
	return []Metric{
		{Name: goodputRate, Label: "Goodput rate within the SLOs (req/s)", Unit: "req/s", Section: sectionSearch, Better: Higher, Decimals: 2,
			Doc:     "The highest request rate that met every SLO, by a search over runs of one launch that ended with the edge tested again; the other figures beside it are those of the edge's run. A figure of a study's workload with find_max; absent where the lowest rate misses.",
			Formula: "max offered rate with every SLO met and no lower rate missed"},
		{Name: goodputConcurrency, Label: "Goodput concurrency within the SLOs", Unit: "requests", Section: sectionSearch, Better: Higher,
			Doc:     "As goodput_rate, of the number of requests in flight in a closed loop.",
			Formula: "max concurrency limit with every SLO met and no lower one missed"},
		{Name: AgentsServed, Label: "Agents served within the SLOs", Unit: "sessions", Section: sectionSearch, Better: Higher,
			Doc:     "As goodput_concurrency, of sessions of agents, or conversations: the most that were under way at a time, each with its subagents and the times of its tools, with every SLO met.",
			Formula: "max sessions at a time with every SLO met and no lower number missed"},
		{Name: AgentsServed + perKW, Label: "Agents served per kW of the GPUs", Unit: "sessions/kW", Section: sectionSearch, Better: Higher, Decimals: 2,
			Doc:     "Agents served by the power of all GPUs that were read, over the steady window of the edge's run; hosts, fans and networks are not in it. Absent where power is not read.",
			Formula: "1000 agents_served / (mean_gpu_power_w * gpus)"},
	}
}

// telemetryScalars are the rows of the metric table that readings give.
func telemetryScalars() []Metric {
	const covered = "; absent unless readings cover 90 % of the window"
	return []Metric{
		{Name: "mean_running_requests", Label: "Mean requests running", Unit: "requests", Section: sectionTelemetry, Decimals: 2,
			Doc: "Requests that the engine computed at a time, by its own metrics, summed over the replicas" + covered + ".", Formula: "sum over replicas of mean over W of running"},
		{Name: "max_running_requests", Label: "Peak requests running", Unit: "requests", Section: sectionTelemetry,
			Doc: "The most requests running at one reading.", Formula: "max over W of the sum over replicas of running"},
		{Name: "mean_waiting_requests", Label: "Mean requests waiting", Unit: "requests", Section: sectionTelemetry, Better: Lower, Decimals: 2,
			Doc: "Requests that waited in the engine's queue, as mean_running_requests.", Formula: "sum over replicas of mean over W of waiting"},
		{Name: "max_waiting_requests", Label: "Peak requests waiting", Unit: "requests", Section: sectionTelemetry, Better: Lower,
			Doc: "The most requests waiting at one reading.", Formula: "max over W of the sum over replicas of waiting"},
		{Name: "mean_engine_queue_ms", Label: "Mean time in the engine's queue (ms)", Unit: "ms", Section: sectionTelemetry, Better: Lower, Decimals: 2,
			Doc: "Time that a request waited in the engine before it was computed, by the engine's counters over the run; absent where it has none.", Formula: "growth of queue_seconds / growth of queued"},
		{Name: "mean_prefill_running_requests", Label: "Mean requests in prefill", Unit: "requests", Section: sectionTelemetry, Decimals: 2,
			Doc: "Requests that ran in engines that only compute prompts, where a replica has such; mean_running_requests is then of those that generate.", Formula: "sum over prefill engines of mean over W of running"},
		{Name: "mean_prefill_waiting_requests", Label: "Mean requests waiting for prefill", Unit: "requests", Section: sectionTelemetry, Better: Lower, Decimals: 2,
			Doc: "Requests that waited in the queues of engines that only compute prompts.", Formula: "sum over prefill engines of mean over W of waiting"},
		{Name: "max_prefill_kv_usage", Label: "Peak KV cache use in prefill", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "The fullest KV cache of an engine that only computes prompts; it holds a prompt until the other engine has it.", Formula: "max over prefill engines and W of kv_usage"},
		{Name: "mean_kv_usage", Label: "Mean KV cache use", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "Share of the KV cache in use, averaged over the replicas" + covered + ".", Formula: "mean over replicas and W of kv_usage"},
		{Name: "max_kv_usage", Label: "Peak KV cache use", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "The highest reading of any replica.", Formula: "max over replicas and W of kv_usage"},
		{Name: "preemptions", Label: "Preemptions", Unit: "requests", Section: sectionTelemetry, Better: Lower,
			Doc: "Requests that the engine took the KV cache from again, over the whole run.", Formula: "growth of preemptions"},
		{Name: "prefix_hit_ratio", Label: "Prefix cache hits", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "Share of the prompt tokens looked up in the prefix cache that were found there, by the engine's counters over the whole run.", Formula: "growth of prefix_hits / growth of prefix_queries"},
		{Name: "acceptance_length", Label: "Acceptance length", Unit: "tokens", Section: sectionTelemetry, Better: Higher, Decimals: 2,
			Doc: "Tokens that a step of speculation yields, the model's own among them: by the engine's counters over the whole run, else the mean of what it says; absent without speculation.", Formula: "1 + growth of spec_accepted / growth of spec_drafts"},

		{Name: "gpus", Label: "GPUs read", Unit: "devices", Section: sectionTelemetry,
			Doc: "Devices that were read, idle ones among them: what is given per GPU or summed over GPUs is of these.", Formula: "count of devices with readings"},
		{Name: "mean_gpu_utilization", Label: "Mean GPU utilisation", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "Share of the time in which a kernel ran, whatever part of the device it filled, averaged over the GPUs" + covered + ".", Formula: "mean over GPUs and W of gpu_utilization"},
		{Name: "max_gpu_utilization", Label: "Peak GPU utilisation", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "The highest reading of any GPU.", Formula: "max over GPUs and W of gpu_utilization"},
		{Name: "max_gpu_memory_gib", Label: "Peak GPU memory (GiB)", Unit: "GiB", Section: sectionTelemetry, Decimals: 2,
			Doc: "The most memory in use on one GPU, by whatever program.", Formula: "max over GPUs and W of memory_used_bytes / 2^30"},
		{Name: "throttled_ratio", Label: "GPU time held back", Unit: "ratio", Section: sectionTelemetry, Better: Lower, Decimals: 4,
			Doc: "Share of the readings of GPUs at which heat, the power limit or the hardware lowered clocks; absent where the driver does not say.", Formula: "readings in W with a throttle gauge at 1 / readings in W"},
		{Name: "mean_gpu_power_w", Label: "Mean power per GPU (W)", Unit: "W", Section: sectionTelemetry, Decimals: 2,
			Doc: "Power of a board, averaged over the GPUs" + covered + ".", Formula: "mean over GPUs and W of power_w"},
		{Name: "energy_j", Label: "Energy of the GPUs (J)", Unit: "J", Section: sectionTelemetry, Decimals: 2,
			Doc: "Energy of all GPUs that were read, over the window: the trapezoid rule over their power, what no reading covers filled by the mean; absent unless readings cover 90 % of the window for each of them. Hosts, fans and networks are not in it.", Formula: "E = sum over GPUs of mean over W of power_w * W"},
		{Name: "energy_per_output_token_j", Label: "Energy per output token (J)", Unit: "J", Section: sectionTelemetry, Better: Lower, Decimals: 4,
			Doc: "Energy of the window by the output tokens stamped in it.", Formula: "E / output tokens in W"},
		{Name: "energy_per_token_j", Label: "Energy per token (J)", Unit: "J", Section: sectionTelemetry, Better: Lower, Decimals: 4,
			Doc: "Energy of the window by the output tokens in it and the prompts whose first token was.", Formula: "E / (output tokens + prompts in W)"},
		{Name: "output_tokens_per_s_per_w", Label: "Output tokens per second per watt", Unit: "tok/s/W", Section: sectionTelemetry, Better: Higher, Decimals: 4,
			Doc: "Output token throughput of the window by the power of all GPUs, which is output tokens per joule.", Formula: "output tokens in W / E"},

		{Name: "mean_host_cpu", Label: "Mean host CPU", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "Share of the processors' time in use, averaged over the machines that were read; the load generator's is in it where it runs on one of them" + covered + ".", Formula: "mean over hosts and W of cpu_utilization"},
		{Name: "max_host_memory_gib", Label: "Peak host memory (GiB)", Unit: "GiB", Section: sectionTelemetry, Decimals: 2,
			Doc: "The most memory in use on one machine.", Formula: "max over hosts and W of memory_used_bytes / 2^30"},
	}
}

// costScalars are the rows of the metric table that a price gives.
func costScalars() []Metric {
	return []Metric{
		{Name: "cost_per_million_output_tokens", Label: "Cost per million output tokens", Unit: "price", Section: sectionTelemetry, Better: Lower, Decimals: 4,
			Doc: "What a million output tokens cost at the price of the deployment, in its currency, at the throughput of the whole run; absent without a price.", Formula: "price per hour / 3600 * D / sum of n * 10^6"},
		{Name: "cost_per_million_tokens", Label: "Cost per million tokens", Unit: "price", Section: sectionTelemetry, Better: Lower, Decimals: 4,
			Doc: "What a million tokens, of input and output together, cost at the price of the deployment, in its currency, at the throughput of the whole run; absent without a price.", Formula: "price per hour / 3600 * D / (sum of p + sum of n) * 10^6"},
	}
}
