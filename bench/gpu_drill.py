#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drills the evaluator with bad programs between good ones, and with good ones repeatedly.

Usage: gpu_drill.py faults OUT.jsonl [--device cuda:0] [--bad 100] [--seed 1] [--limit-s N]
           programs that hang, crash, leak and corrupt memory in random order, a good one after each,
           all on one evaluator
       gpu_drill.py honest OUT.jsonl [--device cuda:0] [--times 1000] [--seed 1] [--limit-s N] [--only NAME...]
           [--distinct]
           the correct programs of tests/honest, one per class, in random order; some are also timed.
           Aborted ones are judged again, as in a run. With --distinct, a comment makes each program
           different, as in a search, so that it is compiled and uses sets that others have used
       gpu_drill.py table FILE.jsonl...
           prints the results of either

Writes a line of JSON for each verdict, then prints the table. The exit status is 1 if a good program did not get its
verdict or a bad one passed. Uses the programs of $CUTEGEN_BIN or build/release/bin.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402
from evaluator_client import Evaluator, load_program  # noqa: E402
from harness import Json  # noqa: E402

TASK = ROOT / "tests" / "attacks" / "task.py"  # relu(x) + 1
HEAD = "__device__ float relu(float v) { return v < 0.0f ? 0.0f : v; }\n" \
       'extern "C" __global__ void go(const float* x, float* out, int n, int seed) {\n' \
       "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"

# The code that each thread runs, by (kind, name). `seed` differs between programs.
BAD = {
    ("hang", "waits for a word"): "volatile int* w = (volatile int*)out; while (*w != 0x12345678 + seed) { }",
    ("hang", "sleeps for ever"): "while (x[0] == x[0] || seed) __nanosleep(1000);",
    ("hang", "one warp never comes"):
        "__shared__ volatile int flag; if (threadIdx.x < 32) while (flag != seed + 77777) { } __syncthreads();",
    ("crash", "writes far away"): "out[i + (1ll << 40)] = 1.0f;",
    ("crash", "reads far away"): "out[i] = x[i - (1ll << 40) - seed];",
    ("crash", "writes to address zero"): "*(volatile float*)(long long)(seed % 64 * 4) = 1.0f;",
    ("crash", "misaligned vector"): "*(float4*)(out + 1) = make_float4(1, 2, 3, 4);",
    ("crash", "trap"): "if (i == seed % 64) __trap(); out[i % n] = 1.0f;",
    ("crash", "beyond shared memory"):
        "__shared__ float few[32]; ((volatile float*)few)[(1 << 20) + seed] = 1.0f; out[i % n] = few[0];",
    ("leak", "much memory a thread"):
        "volatile float mine[8000]; for (int j = 0; j < 8000; ++j) mine[j] = j + seed; "
        "if (i < n) out[i] = mine[seed % 8000];",
    ("leak", "shared memory left full"):
        "extern __shared__ unsigned dirt[]; for (int j = threadIdx.x; j < 12000; j += blockDim.x) "
        "dirt[j] = 0x7fc00000u + seed; __syncthreads(); if (i < n) out[i] = __uint_as_float(dirt[i % 12000]);",
    ("leak", "scratch of a gigabyte left full"):
        "for (long long j = i; j < (1ll << 28); j += gridDim.x * blockDim.x) big[j] = __int_as_float(0x7fc00000); "
        "if (i < n) out[i] = big[i];",
    ("corrupt", "just behind its output"): "if (i < n) out[i] = 1.0f; if (i == 0) out[n + seed % 16] = 7.0f;",
    ("corrupt", "just before its output"): "if (i < n) out[i] = 1.0f; if (i == 0) out[-1 - seed % 16] = 7.0f;",
    ("corrupt", "around its output"):
        "unsigned r = i * 1664525u + seed * 1013904223u; out[(long long)(r % 65536) - 32768] = 3.0f;",
    ("corrupt", "changes its input"):
        "if (i < n) { out[i] = relu(x[i]) + 1.0f; if (i == seed % n) const_cast<float*>(x)[i] = 5.0f; }",
    ("corrupt", "just behind its input"):
        "if (i < n) out[i] = relu(x[i]) + 1.0f; if (i == 0) const_cast<float*>(x)[n + seed % 16] = 9.0f;",
    ("corrupt", "wrong values"): "if (i < n) out[i] = x[i] + seed % 7 + 1.5f;",
    ("corrupt", "NaN everywhere"): "if (i < n) out[i] = __int_as_float(0x7fc00000 + seed % 7);",
    ("corrupt", "one element wrong"):
        "if (i < n) out[i] = relu(x[i]) + (i == seed % n ? 1.25f : 1.0f);",
}
GOOD = {
    "a thread an element": "if (i < n) out[i] = relu(x[i]) + 1.0f;",
    "through shared memory":
        "__shared__ float tile[256]; if (i < n) tile[threadIdx.x] = x[i]; __syncthreads(); "
        "if (i < n) out[i] = relu(tile[threadIdx.x]) + 1.0f;",
    "a loop over the grid":
        "for (; i < n; i += gridDim.x * blockDim.x) out[i] = relu(x[i]) + 1.0f;",
    "with registers in memory":
        "volatile float own[64]; if (i < n) { own[i % 64] = x[i]; out[i] = relu(own[i % 64]) + 1.0f; }",
}


def program(body: str, seed: int) -> Json:
    """The JSON form of a program with this body."""
    args: list[Json] = [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}, {"i32": str(seed)}]
    step: Json = {"id": "go", "kernel": "go", "grid": ["ceil_div(n,256)", 1, 1], "block": [256, 1, 1], "args": args}
    plan: Json = {"cutegen": 1, "dialect": "cuda", "arch": ["sm_80+"], "sources": ["kernel.cu"],
                  "symbols": {"n": "size(x)"}, "steps": [step]}
    head = HEAD
    if "dirt[" in body:
        step["shared_bytes"] = 48000
    if "big[" in body:
        head = head.replace("int seed)", "int seed, float* big)")
        args.append({"tensor": "big"})
        plan["scratch"] = [{"name": "big", "dtype": "f32", "shape": [1 << 28]}]
    return {"schema": "cutegen.program.v1", "sources": {"kernel.cu": head + "  " + body + "\n}\n"}, "plan": plan}


class Drill:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.began = options, time.monotonic()
        self.out = open(options.out, "a", encoding="utf-8")

    def over(self) -> bool:
        return time.monotonic() - self.began > self.options.limit_s

    def judge(self, evaluator: Evaluator, kind: str, name: str, what: Json, **how: str) -> str:
        began = time.monotonic()
        verdict = evaluator.evaluate(what, **how)
        line = {"drill": self.options.drill, "kind": kind, "name": name, "status": verdict["status"],
                "headline": verdict["feedback"]["headline"],
                "failed_rungs": [r["rung"] for r in verdict["rungs"] if r["result"] == "failed"],
                "elapsed_ms": verdict["elapsed_ns"] / 1e6, "waited_ms": 1e3 * (time.monotonic() - began),
                "timed": bool(verdict.get("timing")), "sandbox": verdict["sandbox"],
                "gpu": verdict.get("gpu"), "driver": verdict.get("driver")}
        if kind == "good" and verdict["status"] != "correct":
            line["feedback"] = verdict["feedback"]
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()
        return verdict["status"]


def faults(options: argparse.Namespace, evaluator: Evaluator) -> None:
    drill, chance = Drill(options), random.Random(options.seed)
    evaluator.open_task(TASK)
    kinds = sorted(BAD)
    drawn = [kinds[i % len(kinds)] for i in range(options.bad)]
    chance.shuffle(drawn)
    drill.judge(evaluator, "good", sorted(GOOD)[0], program(GOOD[sorted(GOOD)[0]], 0))
    for kind in drawn:
        if drill.over():
            print("out of time")
            break
        drill.judge(evaluator, *kind, program(BAD[kind], chance.randrange(1, 1000)))
        name = chance.choice(sorted(GOOD))
        drill.judge(evaluator, "good", name, program(GOOD[name], chance.randrange(1, 1000)))


def judge_class(drill: Drill, evaluator: Evaluator, folder: Path) -> None:
    evaluator.open_task(folder / "task.py")
    for number in range(drill.options.each):
        up_to = "timing" if number % 5 == 0 else "correctness"
        what = load_program(folder)
        if drill.options.distinct:
            for name in what["sources"]:
                what["sources"][name] += f"// {random.random()}\n"
        for _ in range(3):
            if drill.judge(evaluator, "good", folder.name, what, up_to=up_to) != "aborted":
                break


def honest(options: argparse.Namespace, evaluator: Evaluator) -> None:
    drill, chance = Drill(options), random.Random(options.seed)
    folders = [f for f in sorted((ROOT / "tests" / "honest").iterdir()) if not options.only or f.name in options.only]
    for _ in range(-(-options.times // (options.each * len(folders)))):
        for folder in chance.sample(folders, len(folders)):
            if drill.over():
                print("out of time")
                return
            judge_class(drill, evaluator, folder)


def table(options: argparse.Namespace) -> int:
    rows = []
    for file in options.files:
        with open(file, encoding="utf-8") as lines:
            rows += [json.loads(line) for line in lines]
    groups = collections.defaultdict(list)
    for row in rows:
        groups[(row["drill"], row["kind"], row["name"])].append(row)
    wrong = 0
    print("| kind | program | judged | verdicts | median ms | said |\n|---|---|---|---|---|---|")
    for (_, kind, name), mine in sorted(groups.items()):
        statuses = collections.Counter(r["status"] for r in mine)
        said = collections.Counter(r["headline"] for r in mine if r["status"] != "correct").most_common(1)
        wrong += sum((r["status"] == "correct") != (kind == "good") for r in mine if r["status"] != "aborted")
        told = ", ".join(f"{n} {s}" for s, n in statuses.most_common())
        print(f"| {kind} | {name} | {len(mine)} | {told} | "
              f"{statistics.median(r['elapsed_ms'] for r in mine):.0f} | "
              f"{said[0][0][:90] if said else ''} |")
    for kind in ("good", "bad"):
        statuses = collections.Counter(r["status"] for r in rows if (r["kind"] == "good") == (kind == "good"))
        print(f"\n{sum(statuses.values())} judgements of {kind} programs: "
              + (", ".join(f"{n} {status}" for status, n in statuses.most_common()) or "none"))
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="drill")
    for name, action in (("faults", faults), ("honest", honest)):
        sub = commands.add_parser(name)
        sub.set_defaults(action=action)
        sub.add_argument("out")
        sub.add_argument("--device", default="cuda:0")
        sub.add_argument("--seed", type=int, default=1)
        sub.add_argument("--limit-s", type=float, default=1e9)
    commands.choices["faults"].add_argument("--bad", type=int, default=100)
    commands.choices["honest"].add_argument("--times", type=int, default=1000)
    commands.choices["honest"].add_argument("--only", nargs="*")
    commands.choices["honest"].add_argument("--distinct", action="store_true")
    commands.choices["honest"].add_argument("--each", type=int, default=7, help="consecutive judgements of a class")
    sub = commands.add_parser("table")
    sub.set_defaults(action=None)
    sub.add_argument("files", nargs="+")
    options = parser.parse_args()
    if options.action:
        Path(options.out).unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as home:
            with Evaluator(harness.plain_environment(home), device=options.device,
                           python=os.environ.get("CUTEGEN_PYTHON", "")) as evaluator:
                options.action(options, evaluator)
        options.files = [options.out]
    sys.exit(1 if table(options) else 0)


if __name__ == "__main__":
    main()
