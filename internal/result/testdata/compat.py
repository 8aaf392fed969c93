"""Figures of four calls by the definitions of vllm bench serve, written from
their description: TestCompatVLLM compares compat.go with what this prints."""
import json

import numpy as np

# start, messages that have choices (ms; role, tokens and finish alike), usage, prompt
CALLS = [
    (0, [30, 50, 60, 60, 75], 4, 10),  # role, three tokens of which two in one read, finish
    (150, [1010, 1030, 1050], 6, 20),  # two tokens a message, none empty
    (990, [1990, 1990, 2500], 1, 30),  # role and the only token in one read, finish
    (100, [400, 700, 1000, 1300], None, 40),  # no usage and no tokenizer
]
DURATION = 2.75
PERCENTILES = [50, 90, 95, 99]
GOOD = {"ttft": 600.0, "tpot": 12.0}

ttft = [m[0] - s for s, m, _, _ in CALLS]
e2el = [m[-1] - s for s, m, _, _ in CALLS]
itl = [b - a for _, m, _, _ in CALLS for a, b in zip(m, m[1:])]
n = [u or 1 for _, _, u, _ in CALLS]
tpot = [(e - t) / (k - 1) for t, e, k in zip(ttft, e2el, n) if k > 1]
judged = [(e - t) / (k - 1) if k > 1 else 0 for t, e, k in zip(ttft, e2el, n)]
zero = min(s for s, _, _, _ in CALLS)
buckets = np.bincount([(at - zero) // 1000 for _, m, _, _ in CALLS for at in m])
changes = sorted([(s, 1) for s, _, _, _ in CALLS] + [(m[-1], -1) for _, m, _, _ in CALLS])
figures = {
    "duration": DURATION,
    "total_input_tokens": sum(p for _, _, _, p in CALLS),
    "total_output_tokens": sum(n),
    "request_throughput": len(CALLS) / DURATION,
    "request_goodput": sum(t <= GOOD["ttft"] and p <= GOOD["tpot"] for t, p in zip(ttft, judged)) / DURATION,
    "output_throughput": sum(n) / DURATION,
    "total_token_throughput": (sum(n) + sum(p for _, _, _, p in CALLS)) / DURATION,
    "max_output_tokens_per_s": int(buckets.max()),
    "max_concurrent_requests": int(np.cumsum([d for _, d in changes]).max()),
}
for name, x in [("ttft", ttft), ("tpot", tpot), ("itl", itl), ("e2el", e2el)]:
    figures[f"mean_{name}_ms"] = np.mean(x)
    figures[f"median_{name}_ms"] = np.median(x)
    figures[f"std_{name}_ms"] = np.std(x)
    for p in PERCENTILES:
        figures[f"p{p}_{name}_ms"] = np.percentile(x, p)
print(json.dumps({k: float(v) for k, v in figures.items()}, indent=1))
