#!/usr/bin/env python3
"""Replay small sessions of agents, and say what a server got.

    python3 -m venv venv && venv/bin/pip install aiperf==0.13.0 gguf tokenizers
    venv/bin/python scripts/make-gguf.py --out models
    venv/bin/python scripts/replay-agents.py --perflab bin/perflab --tokenizer models/tiny-llama-tokenizer.json --aiperf venv/bin/aiperf
    venv/bin/python scripts/replay-agents.py --perflab bin/perflab --tokenizer models/tiny-llama-tokenizer.json \\
        --engine http://127.0.0.1:8099 --model models/tiny-llama-f16.gguf

The sessions are made here, once in WEKA's form and once in TraceLab's, with what each
request should be: its tokens, how far it begins as each other one, what it waits for and how
long. A server on the loopback keeps what comes and when, and it is held against
what was recorded, token by token.

With --aiperf the server answers by itself, as many tokens as it is asked for, the first after
30 ms and each further one after 2 ms; perflab and AIPerf replay the same files, and a
table says what each of them sent and cost. With --engine it hands everything on to a
real engine, or to several, a server for each, and tokens are those of the engine:
its usage and its /tokenize. From the beginning and from the middle of the sessions.
"""

import argparse
import asyncio
import datetime
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import psutil
from aiohttp import ClientSession, web
from tokenizers import Tokenizer

BLOCK = 64


class Turn:
    """A request as it was recorded. Its answer's length is its name: no two have the same."""

    def __init__(self, agent, start, took, tokens, out, keep=0, after=(), reasoning=0):
        self.agent, self.start, self.end = agent, start, start + took
        self.tokens, self.out, self.reasoning = tokens, out, reasoning
        self.keep = keep  # blocks of the prompt before it, of the same agent or of the one that started it
        self.after = after  # answers' lengths of what it waits for
        self.ids = []


def sessions(tracelab):
    """Sessions by name. In TraceLab's form an agent shares nothing with the one that started it."""
    k = 10 if tracelab else 1  # a call of an agent counts from 10 s on: server time, which a replay does not wait for
    share = 0 if tracelab else 2
    s1 = [
        Turn("", 0, k, 700, 20),
        Turn("", k + 0.5, k, 900, 30, keep=10, after=[20]),
        Turn("x", 2 * k + 0.7, k, 500, 10, keep=share, after=[30]),
        Turn("y", 2 * k + 0.8, k, 450, 15, keep=share, after=[30]),
        Turn("x", 3 * k + 1.0, k, 600, 11, keep=7, after=[10]),
        Turn("", 4 * k + 1.4, k, 1300, 25, keep=14, after=[11, 15]),
        Turn("", 5 * k + 3.4, k, 1500, 21, keep=20, after=[25]),
        Turn("", 6 * k + 3.9, k, 800, 22, keep=5, after=[21]),
    ]
    s2 = [Turn("", 0, k, 650, 12)]
    for i, (tokens, idle) in enumerate([(840, 0.5), (1030, 0.5), (1210, 1.5)]):
        s2.append(Turn("", s2[-1].end + idle, k, tokens, 13 + i if i < 2 else 16, keep=s2[-1].tokens // BLOCK, after=[s2[-1].out]))
    s3 = [
        Turn("", 0, k, 300, 7, reasoning=40 if tracelab else 0),
        Turn("z", k + 0.2, k, 260, 8, after=[7]),
        Turn("z", 2 * k + 0.5, k, 330, 9, keep=4, after=[8]),
        Turn("", 3 * k + 1.0, k, 430, 6, keep=4, after=[9]),
    ]
    out = {"s1": s1, "s2": s2, "s3": s3}
    for turns in out.values():
        give_ids(turns)
    return out


def give_ids(turns):
    fresh, last = itertools.count(1), {}
    for t in turns:
        before = last.get(t.agent, last.get("", []))
        whole = t.tokens // BLOCK
        t.ids = before[: t.keep] + [next(fresh) for _ in range(whole - t.keep)]
        last[t.agent] = t.ids


def weka(folder):
    """A file for each session; the times of an agent count from the session's start, in s3 from the agent's."""
    for name, turns in sessions(False).items():
        requests, at = [], {}
        for t in turns:
            if t.agent and t.agent not in at:
                at[t.agent] = {"t": t.start, "type": "subagent", "agent_id": t.agent, "subagent_type": "Explore", "status": "completed",
                               "duration_ms": 0, "total_tokens": 1, "tool_use_count": 1, "models": ["m"], "tool_tokens": 0, "system_tokens": 0, "requests": []}
                requests.append(at[t.agent])
            one = {"t": t.start, "type": "n", "model": "m", "in": t.tokens, "out": t.out, "hash_ids": t.ids, "api_time": t.end - t.start, "stop": "tool_use"}
            if t.agent:
                entry = at[t.agent]
                entry["duration_ms"] = (t.end - entry["t"]) * 1000
                if name == "s3":
                    one["t"] -= entry["t"]
                entry["requests"].append(one)
            else:
                requests.append(one)
        (folder / f"{name}.json").write_text(json.dumps({
            "id": name, "models": ["m"], "block_size": BLOCK, "hash_id_scope": "local", "tool_tokens": 0, "system_tokens": 0, "requests": requests}))
    return folder


def stamp(seconds):
    at = datetime.datetime(2026, 6, 1) + datetime.timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds") + "Z"


def tracelab(folder):
    """Rows as TraceLab publishes them; agents are sessions of their own, s3 is Codex's."""
    rows = []
    for n, (name, turns) in enumerate(sessions(True).items()):
        base, provider, last = 3600 * n, "codex" if name == "s3" else "claude", {}
        begun = {}
        for t in turns:
            if t.agent:
                begun.setdefault(t.agent, [t.after[0], t.start, 0])[2] = t.end
        for i, t in enumerate(turns):
            tools = []
            for _, start, end in (b for b in begun.values() if b[0] == t.out):
                # Within the answer, which ends with the call; its result is there when the agent has ended.
                if provider == "claude":
                    tools.append({"tool_name": "Agent", "emitted_at": stamp(base + t.end), "result_at": stamp(base + end + 0.05), "tool_wall_latency_ms": (end + 0.05 - t.end) * 1000})
                else:
                    tools.append({"tool_name": "spawn_agent", "emitted_at": stamp(base + t.end), "result_at": stamp(base + t.end + 0.05), "tool_wall_latency_ms": 50})
                    tools.append({"tool_name": "wait_agent", "emitted_at": stamp(base + t.end + 0.1), "result_at": stamp(base + end + 0.05), "tool_wall_latency_ms": 100})
            # The cache is recorded by tokens: some more than whole blocks are.
            prefix = t.keep * BLOCK + (min(37, last[t.agent] - t.keep * BLOCK) if t.agent in last else 0)
            last[t.agent] = t.tokens
            sid = f"{provider}:{name}{t.agent}"
            rows.append({
                "provider": provider, "user": "u", "project": "p" + name, "session_id": sid, "round_index": i, "round_id": str(i), "model": "m",
                "input_tokens_total": t.tokens, "prefix_tokens": prefix, "newly_append_tokens": t.tokens - prefix,
                "output_tokens": t.out, "reasoning_output_tokens": t.reasoning or None,
                "timing_events": [{"event_type": "user_message", "timestamp": stamp(base + t.start)}, {"event_type": "text", "timestamp": stamp(base + t.end)}],
                "tools": tools, "first_input_event_type": "user_message", "trace_key": f"{sid}:{i}"})
    path = folder / "tracelab.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


class Server:
    """Keeps what it gets. It answers itself, or asks an engine."""

    def __init__(self, engine=None):
        self.got, self.engine = [], engine
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve(ready)), daemon=True).start()
        ready.wait()

    async def serve(self, ready):
        app = web.Application(client_max_size=1 << 28)
        if self.engine:
            app.router.add_post("/v1/completions", self.forward)
            app.router.add_get("/{path:.*}", self.read)
        else:
            app.router.add_post("/v1/chat/completions", self.answer)
            app.router.add_get("/v1/models", self.models)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        ready.set()
        await asyncio.Event().wait()

    async def read(self, request):
        async with ClientSession() as client, client.get(self.engine + request.path_qs) as r:
            return web.Response(body=await r.read(), status=r.status, headers={"Content-Type": r.headers.get("Content-Type", "text/plain")})

    async def forward(self, request):
        at, body, usage = time.monotonic(), await request.json(), {}
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async with ClientSession() as client:
            async with client.post(self.engine + request.path, json=body) as r:
                async for line in r.content:
                    if b'"usage"' in line:
                        usage = json.loads(line.partition(b":")[2])
                    await response.write(line)
        self.got.append({"at": at, "end": time.monotonic(), "n": body["max_tokens"], "text": body["prompt"], "usage": usage.get("usage"), "timings": usage.get("timings")})
        return response

    async def models(self, _):
        return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})

    async def answer(self, request):
        at, body = time.monotonic(), await request.json()
        n = body.get("max_completion_tokens") or body.get("max_tokens")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await asyncio.sleep(0.03)
        for i in range(n):
            await self.chunk(response, [{"index": 0, "delta": {"role": "assistant", "content": " a"}, "finish_reason": "length" if i == n - 1 else None}])
            await asyncio.sleep(0.002)
        await self.chunk(response, [], {"prompt_tokens": 1, "completion_tokens": n, "total_tokens": n + 1})
        self.got.append({"at": at, "end": time.monotonic(), "n": n, "text": "".join(m["content"] for m in body["messages"])})
        await response.write(b"data: [DONE]\n\n")
        return response

    async def chunk(self, response, choices, usage=None):
        body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
        if usage:
            body["usage"] = usage
        await response.write(b"data: " + json.dumps(body).encode() + b"\n\n")


def run(command, log, limit=120):
    """Runs a client: its seconds of processor time and the most memory of all its processes. After
    limit seconds it is ended: what the server got until then counts."""
    begin, most = time.monotonic(), 0
    with open(log, "w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        tree = psutil.Process(child.pid)
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            try:
                most = max(most, sum(pss(p) for p in [tree, *tree.children(recursive=True)]))
            except psutil.NoSuchProcess:
                pass
            time.sleep(0.1)
            if time.monotonic() - begin > limit:
                print(f"{command[0]} had not ended after {limit} s: see {log}", file=sys.stderr)
                for p in tree.children(recursive=True):
                    p.kill()
                child.kill()
                limit = 1e9
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 4) and limit < 1e9:  # 4: perflab doubts its figures, of so few requests
        sys.exit(f"{command[0]} ended with {child.returncode}: see {log}")
    return usage.ru_utime + usage.ru_stime, most / 1e6, time.monotonic() - begin


def pss(process):
    try:
        return process.memory_full_info().pss
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


def alike(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def compare(got, recorded, tokenizer):
    """What the server got beside what was recorded."""
    want = {t.out: (name, t) for name, turns in recorded.items() for t in turns}
    more = {t.out + t.reasoning: t.out for _, t in want.values() if t.reasoning}
    at, twice = {}, 0
    for g in got:
        g["is"] = more.get(g["n"], g["n"])
        twice += g["is"] in at
        at[g["is"]] = g
        if tokenizer:
            g["tokens"] = tokenizer.encode(g["text"]).ids
    both = [(name, t, at[t.out]) for name, t in want.values() if t.out in at]
    lengths = [len(g["tokens"]) - t.tokens for _, t, g in both]
    starts, other = [], []
    for (s1, t1, g1), (s2, t2, g2) in itertools.combinations(both, 2):
        n = alike(g1["tokens"], g2["tokens"])
        (starts if s1 == s2 else other).append(n - (BLOCK * alike(t1.ids, t2.ids) if s1 == s2 else 0))
    early, idle = 0, []
    for name, t, g in both:
        if not t.after:
            continue
        if any(o not in at or at[o]["end"] > g["at"] + 0.002 for o in t.after):
            early += 1
            continue
        recorded_idle = t.start - max(want[o][1].end for o in t.after)
        idle.append((g["at"] - max(at[o]["end"] for o in t.after) - recorded_idle) * 1000)
    spans = {}
    for name, _, g in both:
        a, b = spans.get(name, (g["at"], g["end"]))
        spans[name] = (min(a, g["at"]), max(b, g["end"]))
    return {
        "requests (of those recorded)": f"{len(got)} ({len(want)})" + (f", {twice} twice" if twice else ""),
        "prompt tokens (recorded)": f"{sum(len(g['tokens']) for g in got)} ({sum(t.tokens for _, t in want.values())})",
        "requests whose prompt is longer or shorter, at most by": f"{sum(d != 0 for d in lengths)}, {max(map(abs, lengths), default=0)} tokens",
        "answer tokens asked for (recorded)": f"{sum(g['n'] for g in got)} ({sum(t.out for _, t in want.values())})",
        "pairs of a session that begin alike longer or shorter, at most by": f"{sum(d != 0 for d in starts)} of {len(starts)}, {max(map(abs, starts), default=0)} tokens",
        "pairs of two sessions that begin alike, at most by": f"{sum(d != 0 for d in other)} of {len(other)}, {max(other, default=0)} tokens",
        "requests sent before what they wait for had ended": f"{early}",
        "idle time beside the recorded one, mean and most": f"{sum(idle) / len(idle):+.1f}, {max(idle, key=abs):+.1f} ms" if idle else "",
        "sessions under way at once": f"{max(sum(a <= x < b for a, b in spans.values()) for x, _ in spans.values())}",
    }


def tokens(engine, model, text):
    """The tokens that an engine makes of a text. llama-server reads it from content, vLLM from prompt."""
    body = json.dumps({"content": text, "prompt": text, "model": model, "add_special": True, "add_special_tokens": True}).encode()
    with urllib.request.urlopen(urllib.request.Request(engine + "/tokenize", body, {"Content-Type": "application/json"})) as r:
        return json.load(r)["tokens"]


def engines(args, path, form, folder, start):
    """Replays by perflab at the engines, and says what they got. Each replay has words of its own,
    so that it finds nothing in a cache that an earlier one left."""
    seed = args.seed * 4 + 2 * (form == "tracelab") + bool(start)
    servers = [Server(e) for e in args.engine]
    command = [args.perflab, "bench", "--backend", "openai", "--model", args.model, "--tokenizer", args.tokenizer, "--num-warmups", "0", "--dataset-name", "agents",
               "--dataset-path", str(path), "--disable-shuffle", "--max-concurrency", "3", "--seed", str(seed), "--out", str(folder / f"run{start}")]
    for s in servers:
        command += ["--base-url", f"http://127.0.0.1:{s.port}"]
    before = sum(counter(e) for e in args.engine)
    run(command + (["--start-ratio", start] if start else []), folder / f"perflab{start}.log")
    counted = sum(counter(e) for e in args.engine) - before
    recorded = sessions(form == "tracelab")
    by_length = {t.tokens: t.out for turns in recorded.values() for t in turns}
    fills, got, where = [], [], {}
    for i, s in enumerate(servers):
        for g in s.got:
            g["tokens"] = tokens(s.engine, args.model, g["text"])
            fill = g["n"] == 1  # no recorded answer has one token: which request it was, its length tells
            g["n"] = by_length.get(len(g["tokens"])) if fill else g["n"]
            name = next((n for n, turns in recorded.items() for t in turns if t.out == g["n"]), "none that was recorded")
            where.setdefault(name, set()).add(i)
            (fills if fill else got).append(g)
    again = {g["n"] for g in fills} & {g["n"] for g in got}
    column = compare(fills + got, recorded, None)
    calls = [g["usage"]["prompt_tokens"] - len(g["tokens"]) for g in fills + got]
    return {k: column[k] for k in list(column)[:6]} | {
        "of them to fill caches": f"{len(fills)}" + (f", {len(again)} of them sent again" if again else ""),
        "requests of which the engine's usage has other prompt tokens": f"{sum(c != 0 for c in calls)}",
        "sent before what they wait for had ended": column["requests sent before what they wait for had ended"] if not fills else "",
        "sessions at more than one engine": f"{sum(len(w) > 1 for w in where.values())} of {len(where)}, over {len(set.union(*where.values()))} of {len(servers)}",
        "prompt tokens that earlier ones at the engine had, by the recorded blocks": str(sum(known(s.got, recorded) for s in servers)),
        "prompt tokens that the engine found in its cache": cached(fills + got),
        "by which its counter of prompt tokens grew": f"{counted:.0f}",
    }


def known(got, recorded):
    """Tokens of whole blocks with which a prompt begins as an earlier one did."""
    ids = {t.out: (name, t.ids) for name, turns in recorded.items() for t in turns}
    seen, n = [], 0
    for g in sorted(got, key=lambda g: g["at"]):
        name, mine = ids[g["n"]]
        n += BLOCK * max((alike(mine, other) for where, other in seen if where == name), default=0)
        seen.append((name, mine))
    return n


def counter(engine):
    """llama-server counts prompt tokens without those of its cache, vLLM with them."""
    with urllib.request.urlopen(engine + "/metrics") as r:
        lines = r.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(("llamacpp:prompt_tokens_total", "vllm:prompt_tokens_total")))


def cached(got):
    """llama-server tells by its timings, vLLM by usage if it is asked to."""
    found = [(g["timings"] or {}).get("cache_n", (g["usage"].get("prompt_tokens_details") or {}).get("cached_tokens")) for g in got]
    return "not said" if None in found else str(sum(found))


def clients(args, path, form, concurrency, folder, port):
    url = f"http://127.0.0.1:{port}"
    home = folder / "tokenizer"
    home.mkdir(exist_ok=True)
    (home / "tokenizer.json").write_bytes(pathlib.Path(args.tokenizer).read_bytes())
    (home / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}')
    yield "perflab", [args.perflab, "bench", "--base-url", url, "--model", "m", "--tokenizer", args.tokenizer, "--num-warmups", "0", "--dataset-name", "agents",
                      "--dataset-path", str(path), "--disable-shuffle", "--max-concurrency", str(concurrency), "--seed", "5", "--out", str(folder / "run")]
    yield "AIPerf", [args.aiperf, "profile", "--url", url, "--model", "m", "--tokenizer", str(home), "--endpoint-type", "chat", "--streaming", "--custom-dataset-type",
                     *(["weka_trace"] if form == "weka" else ["tracelab", "--no-fixed-schedule"]), "--input-file", str(path), "--concurrency", str(concurrency), "--num-sessions", str(len(sessions(False))),
                     "--random-seed", "5", "--ui", "none", "--output-artifact-dir", str(folder / "aiperf"), *args.more]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--perflab", required=True)
    parser.add_argument("--aiperf", help="its program")
    parser.add_argument("--engine", nargs="+", help="base URLs of real engines")
    parser.add_argument("--model", default="m", help="its name at the engine")
    parser.add_argument("--seed", type=int, default=5, help="another one each time for an engine that holds the prompts of an earlier replay")
    parser.add_argument("--tokenizer", required=True, help="tokenizer.json")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--keep", help="folder for the files, what clients print and what the server got (default: a temporary one)")
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further flags of AIPerf")
    args = parser.parse_args()
    top = pathlib.Path(args.keep or tempfile.mkdtemp())
    tokenizer = Tokenizer.from_file(args.tokenizer)
    for form in ["weka", "tracelab"]:
        files = top / form
        files.mkdir(parents=True, exist_ok=True)
        path = (weka if form == "weka" else tracelab)(files)
        if args.engine:
            show(f"{form}, at {len(args.engine)} of the engine", {
                start: engines(args, path, form, files, ratio) for start, ratio in [("from the beginning", ""), ("from the middle", "0.5")]})
            continue
        for concurrency in args.concurrency:
            folder = top / f"{form}-{concurrency}"
            folder.mkdir(exist_ok=True)
            show(f"{form}, {concurrency} at once", dict(beside(args, path, form, concurrency, folder, tokenizer)))


def beside(args, path, form, concurrency, folder, tokenizer):
    """What each client sent, and what it cost."""
    server = Server()
    for name, command in clients(args, path, form, concurrency, folder, server.port):
        server.got.clear()
        cpu, memory, wall = run(command, folder / f"{name}.log")
        (folder / f"{name}.json").write_text(json.dumps(server.got))
        column = compare(list(server.got), sessions(form == "tracelab"), tokenizer)
        yield name, column | {"processor time": f"{cpu:.1f} s", "memory": f"{memory:.0f} MB", "duration, start and end of the client included": f"{wall:.1f} s"}


def show(title, columns):
    print(f"\n| {title} | " + " | ".join(columns) + " |\n| --- |" + " --- |" * len(columns))
    for row in next(iter(columns.values())):
        print(f"| {row} | " + " | ".join(c[row] for c in columns.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
