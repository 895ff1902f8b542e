#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the builtin programs of task files on a device, with bad programs in between.

Usage: gpu_programs.py CUTEGEN OUT.jsonl TASK.py... [--device cuda:0] [--jobs N] [--limit-s N]

Each task's program is the first one of `cutegen optimize --model builtin` on the simulator; several tasks run in
parallel. Then one evaluator judges each program twice on the device, one task at a time, so that the first verdict
includes a compile (the cache starts empty) and the second does not. For every fifth task, a program that writes outside
its buffers, or one that never ends, comes in between. Writes one line of JSON per verdict and prints a summary.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
OUTSIDE = "out[i + (1ll << 40)] = 1.0f;"
ENDLESS = "volatile int* wait = (volatile int*)out; while (*wait != 0x12345678) { } out[i] = 1.0f;"
BAD = '''extern "C" __global__ void bad(float* out) {{
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  {}
}}
'''


def write_bad(folder: Path, output: str, body: str) -> None:
    folder.mkdir(parents=True)
    (folder / "kernel.cu").write_text(BAD.format(body))
    plan = {"cutegen": 1, "dialect": "cuda", "arch": ["sm_80+"], "sources": ["kernel.cu"],
            "steps": [{"kernel": "bad", "grid": [1, 1, 1], "block": [32, 1, 1],
                       "args": [{"tensor": output}]}]}
    (folder / "plan.json").write_text(json.dumps(plan))


class Judge:
    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.options, self.work = options, work
        self.lines: list[Json] = []
        self.caches = {name: {**os.environ, "CUTEGEN_CACHE": str(work / name)} for name in ("made", "judged")}

    def run(self, cache: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.options.cutegen, *map(str, arguments)], capture_output=True, text=True,
                              timeout=300, check=False, env=self.caches[cache])

    def note(self, **line: Any) -> None:
        self.lines.append(line)
        with open(self.options.out, "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    def make(self, path: Path) -> Path | str:
        """The builtin program, or the reason why it is missing."""
        folder = self.work / path.stem
        made = self.run("made", "optimize", path, "--model", "builtin", "--evaluations", 1, "--quiet",
                        "--out", folder, "--runs", self.work / f"{path.stem}.runs")
        return folder if (folder / "plan.json").exists() else made.stderr.strip()[-300:]

    def task(self, number: int, path: Path, good: Path) -> None:
        folders, kinds = [good, good], ["first", "again"]
        if number % 5 == 0:
            body, kind = [(OUTSIDE, "outside"), (ENDLESS, "endless")][number // 5 % 2]
            write_bad(self.work / f"bad{number}", self.output_of(good), body)
            folders.insert(1, self.work / f"bad{number}")
            kinds.insert(1, kind)
        began = time.monotonic()
        result = self.run("judged", "eval", path, *folders, "--device", self.options.device, "--json")
        seconds = time.monotonic() - began
        if '"verdicts"' not in result.stdout:
            self.note(task=path.stem, kind="eval", seconds=seconds, error=(result.stderr or result.stdout)[-600:])
            return
        for kind, entry in zip(kinds, json.loads(result.stdout)["verdicts"]):
            self.verdict(path.stem, kind, entry["verdict"], seconds)

    @staticmethod
    def output_of(folder: Path) -> str:
        """An output that the good program writes."""
        text = (folder / "plan.json").read_text()
        return "out" if '"out"' in text else "out.0"

    def verdict(self, task: str, kind: str, v: Json, seconds: float) -> None:
        timing = v.get("timing") or {}
        rungs = {r["rung"]: r["elapsed_ns"] / 1e6 for r in v["rungs"] if r["result"] != "skipped"}
        self.note(task=task, kind=kind, status=v["status"], headline=v["feedback"]["headline"],
                  origin=timing.get("origin"), time_us=timing.get("time_ns", 0) / 1e3,
                  low_us=timing.get("low_ns", 0) / 1e3, high_us=timing.get("high_ns", 0) / 1e3,
                  floor_us=timing.get("floor_ns", 0) / 1e3, samples=timing.get("samples"),
                  sm_clock_mhz=(timing.get("sm_clock_hz") or 0) / 1e6, elapsed_ms=v["elapsed_ns"] / 1e6,
                  rungs_ms=rungs, sandbox=v["sandbox"], skipped=v["skipped"], gpu=v.get("gpu"),
                  driver=v.get("driver"), process_s=seconds)

    def summary(self) -> None:
        judged = [x for x in self.lines if "status" in x]
        for kind in ("first", "again", "outside", "endless"):
            rows = [x for x in judged if x["kind"] == kind]
            if not rows:
                continue
            times = sorted(x["elapsed_ms"] for x in rows)
            statuses = {s: sum(x["status"] == s for x in rows) for s in {x["status"] for x in rows}}
            print(f"{kind:8} {len(rows):3} programs, turnaround median {statistics.median(times):8.1f} ms "
                  f"({times[0]:.1f} to {times[-1]:.1f}), {statuses}")
        for line in self.lines:
            if "error" in line:
                print(f"{line['task']}: {line['kind']}: {line['error'][-200:]}")
            elif line["kind"] == "first" and line["status"] != "correct":
                print(f"{line['task']}: {line['status']}: {line['headline'][:160]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cutegen")
    parser.add_argument("out")
    parser.add_argument("tasks", nargs="+", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--limit-s", type=float, default=1e9)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        judge = Judge(options, Path(work))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            programs = list(pool.map(judge.make, options.tasks))
        print(f"programs made in {time.monotonic() - began:.1f} s", flush=True)
        for number, (path, good) in enumerate(zip(options.tasks, programs)):
            if time.monotonic() - began > options.limit_s:
                print(f"out of time after {number} of {len(options.tasks)} tasks")
                break
            if isinstance(good, str):
                judge.note(task=path.stem, kind="make", error=good)
            else:
                judge.task(number, path, good)
        judge.summary()


if __name__ == "__main__":
    main()
