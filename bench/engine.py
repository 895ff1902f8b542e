#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the engine's own cost, without models and evaluations, for docs/measurements/engine.md.

Usage: engine.py overhead [--steps 40]       one run with a model that answers at once
       engine.py busy [--tasks 32] [--delay 8] [--evaluators 2] [--trace FILE]
                                             many runs with a slow model on few evaluators
       engine.py prompts FILE                sizes and shared parts in FILE, the output of prompts_bench
       engine.py shares RUNS                 how much of each question in a folder of runs repeats
                                             the beginning of an earlier question
       engine.py chain [--steps 36] [--api NAME] [--mixed]
                                             the same for the requests of runs on a program of 3,600
                                             tokens that changes with each step
       engine.py tokens FILE TOKENIZER...    cutegen's estimate against tokenizers, for the texts in FILE
                                             from prompts_bench; TOKENIZER: a file of `tokenizers`, or an
                                             encoding of `tiktoken` ($TIKTOKEN_CACHE_DIR: no network)

Uses the programs of $CUTEGEN_BIN or build/release/bin, and the scripted model of the tests.
"""
from __future__ import annotations

import argparse
import json
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402
import models  # noqa: E402
from harness import Json  # noqa: E402

JUDGE = models.rule("Your turn: (judge|diagnose)", ["PROBLEM: a slip\nFIX: mend it\n"])


def programs(count: int) -> Iterator[str]:
    """Distinct correct programs, each a little faster than the previous one."""
    for number in range(count):
        threads = 64 + 48 * number
        text = models.program(f"{threads} threads", grid=threads // 16, block=16)
        yield text.replace("    out[i] =", f"    // {number}\n    out[i] =")


def environment(folder: Path) -> dict[str, str]:
    env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env.update(HOME=str(folder), CUTEGEN_SHARE=str(ROOT), CUTEGEN_BIN=str(harness.BIN),
               XDG_CACHE_HOME=str(folder / "cache"), ANTHROPIC_API_KEY="none",
               OPENAI_API_KEY="none")
    return env


def processor_seconds(pid: int) -> float | None:
    """Processor time of one process and its threads, without its children."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    user, system = text[text.rindex(")") + 2:].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def cutegen(folder: Path, *arguments: object) -> tuple[Json, float, float]:
    """The document, seconds of wall time, and of processor time of the engine's own process."""
    began, busy = time.monotonic(), 0.0
    with open(folder / "stdout", "w+", encoding="utf-8") as out, \
            open(folder / "stderr", "w+", encoding="utf-8") as err:
        process = subprocess.Popen([harness.BIN / "cutegen", *map(str, arguments)], stdout=out,
                                   stderr=err, cwd=folder, env=environment(folder))
        while process.poll() is None:
            busy = processor_seconds(process.pid) or busy
            time.sleep(0.02)
        wall = time.monotonic() - began
        out.seek(0)
        err.seek(0)
        if process.returncode:
            sys.exit(f"exit {process.returncode}\n{out.read()[-2000:]}\n{err.read()[-2000:]}")
        return json.load(out), wall, busy


def model_of(server: harness.ModelServer) -> list[object]:
    return ["--model", models.MODEL, "--model-url", server.base + "/v1", "--dialect", "cuda",
            "--chains", 1, "--no-planner", "--json"]


def load() -> str:
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def events_of(runs: Path) -> list[tuple[str, Json]]:
    with sqlite3.connect(f"file:{runs}/cutegen.db?mode=ro", uri=True) as db:
        return [(kind, json.loads(text)) for kind, text in
                db.execute("SELECT type, json FROM events ORDER BY run, seq")]


def overhead(options: argparse.Namespace) -> None:
    """The run's time between the first question and the end, without evaluations."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = folder / "relu_plus.py"
        task.write_text(harness.ADD.replace("4096", "8192"))
        with models.scripted(folder, [JUDGE, models.rule("", list(programs(options.steps)))]) as server:
            document, wall, busy = cutegen(folder, "optimize", task, "--evaluations", options.steps,
                                     "--runs", folder / "runs", "--out", folder / "out",
                                     *model_of(server))
        events = events_of(folder / "runs")
    first = next(d["clock_ms"] for kind, d in events if kind == "asked")
    spent = events[-1][1]["clock_ms"] - first
    evaluating = sum(d["elapsed_ms"] for kind, d in events if kind == "evaluated")
    asking = sum(d["elapsed_ms"] for kind, d in events if kind == "call_ended")
    steps = document["evaluations"]
    print(load())
    print(f"{steps} steps, {len(events)} events, {wall:.1f} s in all, {spent / 1e3:.1f} s from the "
          f"first question")
    print(f"evaluations {evaluating / steps:.0f} ms a step, calls of the model {asking / steps:.1f} "
          f"ms, the engine itself {(spent - evaluating - asking) / steps:.1f} ms a step; with the "
          f"calls {(spent - evaluating) / steps:.1f} ms")
    print(f"processor time of the engine's process, from start to end: {1e3 * busy / steps:.1f} ms a "
          f"step")


def union(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds covered by at least one of the spans."""
    total, end = 0.0, 0.0
    for begin, until in sorted(spans):
        total += max(0.0, until - max(begin, end))
        end = max(end, until)
    return total


def busy(options: argparse.Namespace) -> None:
    """How much of the time the evaluators work while every model needs `delay` seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        level = folder / "suite" / "level1"
        level.mkdir(parents=True)
        for number in range(1, options.tasks + 1):
            (level / f"{number}_relu.py").write_text(
                harness.ADD.replace("4096", str(1024 + 128 * number)))
        replies = models.rule("", list(programs(options.tasks * options.steps)))
        for reply in [*replies["replies"], *JUDGE["replies"]]:
            reply["delay_ms"] = int(options.delay * 1000)
        trace = Path(options.trace) if options.trace else folder / "trace.json"
        with models.scripted(folder, [JUDGE, replies]) as server:
            document, wall, _ = cutegen(folder, "bench", "--kernelbench", folder / "suite", "--jobs",
                                     options.tasks, "--evaluators", options.evaluators,
                                     "--evaluations", options.steps, "--runs", folder / "runs",
                                     "--out", folder / "out", "--trace", trace.absolute(),
                                     *model_of(server))
        events = json.loads(trace.read_text())["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [(tracks[e["tid"]], e["name"], e["ts"] / 1e6, (e["ts"] + e["dur"]) / 1e6)
             for e in events if e["ph"] == "X"]
    judged = [s for s in spans if s[0].startswith("evaluator") and s[1] not in ("start", "open task")]
    asked = [s for s in spans if not s[0].startswith("evaluator")]
    begin, end = min(s[2] for s in judged), max(s[3] for s in judged)
    print(load())
    print(f"{options.tasks} tasks, {options.evaluators} evaluators, a model of {options.delay} s an "
          f"answer: {sum(t['evaluations'] for t in document['tasks'])} evaluations, {wall:.0f} s in all")
    for seat in sorted({s[0] for s in judged}):
        mine = [(s[2], s[3]) for s in spans if s[0] == seat]
        phases: dict[str, float] = {}
        for track, phase, since, until in judged:
            if track == seat:
                phases[phase] = phases.get(phase, 0) + until - since
        shares = ", ".join(f"{n} {t:.1f} s" for n, t in sorted(phases.items(), key=lambda p: -p[1]))
        inside = [(max(a, begin), min(b, end)) for a, b in mine if b > begin and a < end]
        print(f"{seat}: at work {100 * union(inside) / (end - begin):.0f}% of {end - begin:.0f} s "
              f"({shares})")
    waited = sum(s[3] - s[2] for s in asked)
    print(f"questions: {waited:.0f} s of waiting in all, {waited / (end - begin):.1f} at a time")


def lines_of(file: str) -> list[Json]:
    with open(file, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def prompts(options: argparse.Namespace) -> None:
    rows = lines_of(options.file)
    for kind in dict.fromkeys(r["kind"] for r in rows):
        mine = [r for r in rows if r["kind"] == kind]
        largest = max(mine, key=lambda r: r["tokens"])
        shares = sorted(r["prefix_tokens"] / r["tokens"] for r in mine)
        print(f"{kind}: {len(mine)} questions, median {statistics.median(r['tokens'] for r in mine):.0f} "
              f"tokens, largest {largest['tokens']} ({largest['task']}); shared part: median "
              f"{100 * statistics.median(shares):.0f}%, least {100 * shares[0]:.0f}%")
        shares = sorted(r["with_program_tokens"] / r["tokens"] for r in mine)
        print(f"    with the program that an earlier question had: median "
              f"{100 * statistics.median(shares):.0f}%, least {100 * shares[0]:.0f}%")
    later = [r for r in rows if r["kind"] not in ("planner", "coder first")]
    total = sum(r["tokens"] for r in later)
    print(f"later questions together: {100 * sum(r['prefix_tokens'] for r in later) / total:.1f}% of "
          f"{total} tokens are the shared part; programs of {min(r['program_tokens'] for r in later)} "
          f"to {max(r['program_tokens'] for r in later)} tokens")


def blocks_of(request: Json, blobs: dict[str, str]) -> list[str]:
    """The blocks that a provider's cache sees: tools and system, then each message."""
    def plain(value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"$blob"}:
            return blobs[value["$blob"]]
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list) else value
    request = plain(request)
    head = json.dumps([request.get("tools"), request.get("system")])
    return [head] + [json.dumps(m) for m in request["messages"]]


def shares(options: argparse.Namespace) -> None:
    """Cached bytes. A block counts if an earlier question of the run has it and all blocks before it."""
    with sqlite3.connect(f"file:{options.runs}/cutegen.db?mode=ro", uri=True) as db:
        blobs = {name: bytes(data).decode() if isinstance(data, bytes) else data
                 for name, data in db.execute("SELECT hash, bytes FROM blobs")}
        calls = db.execute("SELECT run, json FROM events WHERE type = 'call_started' "
                           "ORDER BY run, seq").fetchall()
    known: dict[str, set[int]] = {}  # the hashes of the prefixes of each run's questions
    total, cached, each = 0, 0, []
    for run, text in calls:
        seen = known.setdefault(run, set())
        blocks, prefix, hit = blocks_of(json.loads(text)["request"], blobs), 0, 0
        first = not seen
        for block in blocks:
            prefix = hash((prefix, block))
            hit += len(block.encode()) if prefix in seen else 0
            seen.add(prefix)
        size = sum(len(block.encode()) for block in blocks)
        if not first:
            total, cached = total + size, cached + hit
            each.append(hit / size)
    print(f"{len(known)} runs, {len(each)} later questions: {100 * cached / total:.1f}% of {total} bytes "
          f"were the beginning of an earlier question; median {100 * statistics.median(each):.0f}%, "
          f"least {100 * min(each):.0f}%")


HELPERS, SLOTS = 35, 64


class LongProgram:
    """A correct, long program whose edits change a few lines per step."""

    def __init__(self) -> None:
        self.random = random.Random(5)
        self.helpers = [[f"  float y_{k} = fmaf(v, 1.0f, 0.0f);", f"  if (n < {k}) return v;",
                         f"  y_{k} = fminf(y_{k}, INFINITY);"] for k in range(HELPERS)]
        self.slots = [f"    v = stage_{k % HELPERS}(v, n);" for k in range(SLOTS)]

    def change(self, step: int) -> None:
        """One idea: lines of a helper, or of the long kernel."""
        place = self.random.randrange(HELPERS + SLOTS)
        if place < HELPERS:
            self.helpers[place][0] = f"  float y_{place} = fmaf(v, 1.0f, 0.0f * {step}.0f);"
            self.helpers[place].insert(2, f"  y_{place} = fmaxf(y_{place}, -INFINITY);  // step {step}")
        else:
            for slot in range(place - HELPERS, min(place - HELPERS + 3, SLOTS)):
                self.slots[slot] = f"    v = stage_{(slot + step) % HELPERS}(v, n + {step});"

    def source(self, addend: str) -> str:
        parts = [f"// Stage {k}: hands its value on.\n__device__ __forceinline__ float stage_{k}(float v, int n) {{\n"
                 + "\n".join(body) + f"\n  return y_{k};\n}}\n" for k, body in enumerate(self.helpers)]
        slots = "\n".join(self.slots)
        return "\n".join(parts) + f"""
extern "C" __global__ void go(const float* x, float* out, int n) {{
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {{
    float v = x[i];
{slots}
    out[i] = (v < 0.0f ? 0.0f : v) + {addend};
  }}
}}
"""

    def reply(self, summary: str, addend: str = "1.0f", grid: int = 8, block: int = 16) -> str:
        text = models.program(summary, grid=grid, block=block)
        return text.replace(models.SOURCE % "1.0f", self.source(addend))


def long_replies(steps: int, mixed: bool) -> list[str]:
    """Replies with a faster program at each step or, if `mixed`, at one of six steps. The other replies contain
    programs that fail, are wrong or are slow, or no program."""
    program, out = LongProgram(), []
    for number in range(steps + 10):
        program.change(number)
        kind = number % 6 if mixed else 0
        grid = 4 + 3 * (number if not mixed else 3 * (number // 6))
        out.append([program.reply(f"grid of {grid}", grid=grid), program.reply("a slip", "one", grid),
                    program.reply("wrong", "2.0f", grid), program.reply("one block", grid=1),
                    program.reply("the same again", grid=grid), "I would think about it.\n"][kind])
    return out


def estimated_tokens(text: str) -> int:
    """Counts like llm/tokens.h."""
    total = 0
    for run in re.finditer(r"[A-Za-z_]+|[0-9]+|\s+|(.)\1*", text):
        size = len(run[0])
        total += (-(-size // 5) if run[0][0].isalpha() or run[0][0] == "_" else
                  -(-size // 3) if run[0][0].isdigit() else
                  (run[0] != " ") if run[0][0].isspace() else -(-size // 4))
    return total


def wire_blocks(api: str, body: Json) -> list[tuple[str, bool]]:
    """[(text, whether a breakpoint of the cache stands at its end)] in the order of the prefix."""
    if api == "responses":
        head, rest = [body.get("tools"), body.get("instructions")], body["input"]
    elif api == "chat/completions":
        head, rest = [body.get("tools"), body["messages"][0]], body["messages"][1:]
    else:
        head = [body.get("tools"), body.get("system")]
        rest = [{**b, "role": m["role"]} for m in body["messages"] for b in m["content"]]
    out = []
    for block in [head, *rest]:
        text = json.dumps(block)
        plain = text.replace(', "cache_control": {"type": "ephemeral"}', "")
        out.append((plain, plain != text))
    return out


def hits(asked: list[Json], look_back: int | None = None) -> list[tuple[int, int]]:
    """Returns (bytes, cached bytes) of each request. Without `look_back`, the cache keeps the prefix up to every block.
    With `look_back`, it keeps only prefixes that end at breakpoints, and a breakpoint of a later request finds a
    prefix that ends less than `look_back` blocks before the breakpoint."""
    kept: set[int] = set()
    out = []
    for entry in asked:
        blocks = wire_blocks(entry["api"], entry["body"])
        sizes, prefixes, prefix = [], [], 0
        for text, _ in blocks:
            prefix = hash((prefix, text))
            prefixes.append(prefix)
            sizes.append(len(text.encode()))
        marks = [i for i, (_, mark) in enumerate(blocks) if mark or look_back is None]
        found = [j for i in marks for j in range(i, max(-1, i - (look_back or len(blocks))), -1)
                 if prefixes[j] in kept]
        out.append((sum(sizes), sum(sizes[:max(found) + 1]) if found else 0))
        kept.update(prefixes[i] for i in marks)
    return out


def chain(options: argparse.Namespace) -> None:
    replies = long_replies(options.steps, options.mixed)
    source = LongProgram().source("1.0f")
    print(f"a program of {estimated_tokens(source)} tokens, {options.steps} evaluations, "
          f"{'a gain in six' if options.mixed else 'each a gain'}; {load()}")
    for api in [options.api] if options.api else ["openai:gpt-5", "openai-responses:gpt-5", models.MODEL]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            task = folder / "relu_plus.py"
            task.write_text(harness.ADD.replace("4096", "8192"))
            with models.scripted(folder, [JUDGE, models.rule("", replies)]) as server:
                arguments = model_of(server)
                arguments[1] = api
                document, _, _ = cutegen(folder, "optimize", task, "--evaluations", options.steps,
                                         "--runs", folder / "runs", "--out", folder / "out", *arguments)
                asked = server.log()
        chars = hits(asked)[1:]
        line = (f"{api}: {document['evaluations']} evaluations, {len(chars)} later calls, "
                f"{100 * sum(h for _, h in chars) / sum(s for s, _ in chars):.1f}% of "
                f"{sum(s for s, _ in chars)} bytes were the beginning of an earlier call; a call: median "
                f"{100 * statistics.median(h / s for s, h in chars):.0f}%, least "
                f"{100 * min(h / s for s, h in chars):.0f}%")
        if asked[0]["api"] == "messages":
            marked = hits(asked, look_back=20)[1:]
            line += (f"; by its breakpoints {100 * sum(h for _, h in marked) / sum(s for s, _ in marked):.1f}%")
        print(line, flush=True)


def counter_of(name: str) -> Callable[[str], int]:
    """A function that counts the tokens of a text."""
    if name.endswith(".json"):
        import tokenizers
        tokenizer = tokenizers.Tokenizer.from_file(name)
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
    import tiktoken
    encoding = tiktoken.get_encoding(name)
    return lambda text: len(encoding.encode_ordinary(text))


def tokens(options: argparse.Namespace) -> None:
    rows = lines_of(options.file)
    for name in options.tokenizers:
        count = counter_of(name)
        print(f"{Path(name).name}: our estimate / its count")
        for kind in dict.fromkeys(r["kind"] for r in rows):
            ratios = sorted(r["tokens"] / count(r["text"]) for r in rows if r["kind"] == kind)
            print(f"  {kind}: median {statistics.median(ratios):.2f}, from {ratios[0]:.2f} to "
                  f"{ratios[-1]:.2f}")
        largest = max(count(r["text"]) for r in rows if r["kind"] in ("planner", "coder first"))
        print(f"  largest first question: {largest} tokens")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(required=True)

    def command(name: str, action: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        sub = commands.add_parser(name)
        sub.set_defaults(action=action)
        return sub
    command("overhead", overhead).add_argument("--steps", type=int, default=40)
    sub = command("busy", busy)
    sub.add_argument("--tasks", type=int, default=32)
    sub.add_argument("--steps", type=int, default=4)
    sub.add_argument("--delay", type=float, default=8)
    sub.add_argument("--evaluators", type=int, default=2)
    sub.add_argument("--trace")
    command("prompts", prompts).add_argument("file")
    command("shares", shares).add_argument("runs")
    sub = command("chain", chain)
    sub.add_argument("--steps", type=int, default=36)
    sub.add_argument("--api", help="API of the model (default: three APIs)")
    sub.add_argument("--mixed", action="store_true", help="most steps bring no gain")
    sub = command("tokens", tokens)
    sub.add_argument("file")
    sub.add_argument("tokenizers", nargs="+")
    options = parser.parse_args()
    options.action(options)


if __name__ == "__main__":
    main()
