"""Writes result files as vllm bench serve and sglang.bench_serving write them:
the keys, their order and the formulas are those of the two clients, the
requests are made up. Run it in its own directory: python3 make.py"""

import json
import math
import random

random.seed(7)


def percentile(x, p):  # numpy's default
    x = sorted(x) or [0]
    at = (len(x) - 1) * p / 100
    low = int(at)
    return x[low] + (x[min(low + 1, len(x) - 1)] - x[low]) * (at - low)


def stats(name, x, percentiles):
    mean = sum(x) / len(x)
    out = {
        f"mean_{name}_ms": mean * 1000,
        f"median_{name}_ms": percentile(x, 50) * 1000,
        f"std_{name}_ms": math.sqrt(sum((v - mean) ** 2 for v in x) / len(x)) * 1000,
    }
    return out | {f"p{p}_{name}_ms": percentile(x, p) * 1000 for p in percentiles}


def ns(seconds):  # clocks count nanoseconds
    return round(seconds * 1e9) / 1e9


class Request:
    def __init__(self, i, start, tokens, tail, error=""):
        self.start, self.error, self.queue = ns(start), error, ns(0.001 * i)
        self.input = 20 + i
        self.ttft = 0.0 if error else ns(random.uniform(0.05, 0.09))
        self.itl = [] if error else [ns(random.uniform(0.010, 0.030)) for _ in range(tokens - 1)] + [ns(tail)] * (tail > 0)
        self.output = 0 if error else tokens
        self.latency = 0.0 if error else ns(self.ttft + sum(self.itl))


def peaks(ok, python):
    zero = min(r.start for r in ok)
    seconds, touched, events = {}, {}, []
    for r in ok:
        at = r.start + r.ttft
        for gap in [0] + r.itl:
            at += gap
            seconds[int(at - zero)] = seconds.get(int(at - zero), 0) + 1
        for s in range(int(r.start - zero), int(r.start + r.latency - zero) + 1):
            touched[s] = touched.get(s, 0) + 1
        events += [(r.start, 1), (r.start + r.latency, -1)]
    now = most = 0
    for _, d in sorted(events):
        now += d
        most = max(most, now)
    return float(max(seconds.values())), most if python else max(touched.values())


def figures(requests, duration, percentiles, python=True):
    ok = [r for r in requests if not r.error]
    tokens, prompts = sum(r.output for r in ok), sum(r.input for r in ok)
    peak, most = peaks(ok, python)
    head = {
        "duration": duration, "completed": len(ok), "failed": len(requests) - len(ok),
        "total_input_tokens": prompts, "total_output_tokens": tokens,
        "request_throughput": len(ok) / duration, "request_goodput": None,
        "output_throughput": tokens / duration, "total_token_throughput": (prompts + tokens) / duration,
    }
    tail = {"max_output_tokens_per_s": peak, "max_concurrent_requests": most}
    latency = stats("ttft", [r.ttft for r in ok], percentiles)
    latency |= stats("tpot", [(r.latency - r.ttft) / (r.output - 1) for r in ok if r.output > 1], percentiles)
    latency |= stats("itl", [g for r in ok for g in r.itl], percentiles)
    e2el = stats("e2el", [r.latency for r in ok], percentiles)
    return head, tail, latency, e2el


def lists(requests):
    return {
        "input_lens": [r.input for r in requests], "output_lens": [r.output for r in requests],
        "ttfts": [r.ttft for r in requests], "itls": [r.itl for r in requests],
        "generated_texts": ["" if r.error else "made up" for r in requests], "errors": [r.error for r in requests],
    }


def config(rate, limit, **more):
    return {
        "date": "20260704-101112", "endpoint_type": "openai-chat", "backend": "openai-chat", "label": None,
        "model_id": "org/model", "tokenizer_id": "org/model", "num_prompts": 6, **more,
        "request_rate": rate, "burstiness": 1.0, "max_concurrency": limit,
    }


requests = [Request(i, 5000.25 + 0.05 * i, 4 + i, 0.004) for i in range(5)]
requests.append(Request(5, 5000.6, 0, 0, "Traceback (most recent call last):\n  File \"x.py\", line 1\naiohttp.client_exceptions.ServerDisconnectedError: Server disconnected\n"))

# Python client, detailed.
head, tail, latency, e2el = figures(requests, 1.75, [99, 99.9])
extra = {"latencies": [r.latency for r in requests], "start_times": [r.start for r in requests], "queue_times": [r.queue for r in requests]}
queue = stats("client_queue_time", [r.queue for r in requests if not r.error], [99, 99.9])
detailed = config(3.5, 4, gpu="h100") | head | lists(requests) | extra | tail | {"rtfx": 0.0} | latency | e2el | queue
with open("vllm-detailed.json", "w") as f:
    json.dump(detailed, f)

# Python client of 2024, two runs appended; the second had no second token.
head, tail, latency, e2el = figures(requests[:5], 2.5, [99])
old = config("inf", None, best_of=1) | {k: v for k, v in head.items() if k not in ("failed", "request_goodput")}
old = {("request_goodput:" if k == "output_throughput" else k): v for k, v in old.items()} | {"output_throughput": head["output_throughput"]} | latency
old["request_goodput:"] = 1.2
nan = old | {"num_prompts": 1, "mean_tpot_ms": math.nan, "median_tpot_ms": math.nan, "std_tpot_ms": math.nan, "p99_tpot_ms": math.nan}
with open("vllm-appended.json", "w") as f:
    f.write(json.dumps(old) + "\n" + json.dumps(nan))

# Rust client, as a tool that formats JSON leaves it.
head, tail, latency, e2el = figures(requests, 1.75, [50, 90, 99], python=False)
rust = config(3.5, 4, max_model_len=32768) | head | {"input_throughput": head["total_input_tokens"] / 1.75} | tail | {"rtfx": 0.0}
rust["failed_requests"] = [{"index": 5, "error": "HTTP 503 Service Unavailable", "prompt_len": 25, "start_time": 0.0, "latency": 0.0, "ttft": 0.0, "output_tokens": 0, "itl": []}]
rust |= latency | e2el | {"steady_state": {"window": {"start_s": 0.2, "end_s": 1.1, "duration_s": 0.9, "warning": None}, "request_throughput": 3.1}}
with open("vllm-rust.json", "w") as f:
    json.dump(rust, f, indent=2)

# SGLang: one line all at once, one with details and a rate.
head, tail, latency, e2el = figures(requests[:5], 2.0, [90, 95, 99], python=False)
sglang = {
    "tag": None, "backend": "sglang-oai-chat", "dataset_name": "random", "request_rate": math.inf, "max_concurrency": None,
    "sharegpt_output_len": None, "random_input_len": 32, "random_output_len": 8, "random_range_ratio": 0.5,
    "server_info": {"model_path": "org/model", "version": "0.5.9", "tp_size": 8, "api_key": "hidden", "internal_states": [{"max_running_requests": 256}]},
    "duration": 2.0, "completed": 5, "total_input_tokens": head["total_input_tokens"],
    "total_input_text_tokens": head["total_input_tokens"], "total_input_vision_tokens": 0,
    "total_output_tokens": head["total_output_tokens"], "total_output_tokens_retokenized": head["total_output_tokens"] + 1,
    "request_throughput": 2.5, "input_throughput": head["total_input_tokens"] / 2, "output_throughput": head["output_throughput"],
    "total_throughput": head["total_token_throughput"],
}
sglang |= {k.replace("e2el", "e2e_latency"): v for k, v in e2el.items()} | latency
sglang |= {"concurrency": sum(r.latency for r in requests) / 2, "accept_length": None} | tail
rated = sglang | {"tag": "second", "backend": "sglang", "request_rate": 4.0, "max_concurrency": 16} | lists(requests[:5])
with open("sglang.jsonl", "w") as f:
    f.write(json.dumps(sglang) + "\n" + json.dumps(rated) + "\n")
