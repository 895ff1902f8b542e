#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures an evaluation's time with a warm evaluator, from a new program to its verdict, by rung.

Usage: gpu_turnaround.py BIN OUT.jsonl [--device cuda:0] [--recipes DIR] [--make-only] [--tasks DIR]
                         [--pause-s N] [--limit-s N] [--kernelbench DIR --sources DIR [--pairs N]]

One evaluator opens all tasks and judges two programs that do not count. Then it judges each program of
turnaround_programs.py once with an empty cache, with pauses as in a search. Writes one line of JSON per verdict and
prints medians by kind. Recipes' programs come from DIR, or are first made there (--make-only stops after that). With
--kernelbench, a checkout of KernelBench, this evaluator and then KernelBench's own also judge the pairs of
kernelbench_side.py.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import kernelbench_side
import turnaround_programs as programs

Json = dict[str, Any]
HERE = Path(__file__).resolve().parent
SCHEMA = "cutegen.evaluator.v1"
RUNGS = ("lint", "compile", "audit", "load", "correctness", "timing")


class Evaluator:
    """One evaluator process, driven by its protocol (docs/protocols.md)."""

    def __init__(self, binaries: Path, device: str, environment: dict[str, str], python: str) -> None:
        from cutegen_worker.wire import Channel
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen([str(binaries / "cutegen-evaluator")], env=environment, close_fds=False,
                                        stdin=subprocess.DEVNULL, preexec_fn=lambda: self.place(theirs.fileno()))
        theirs.close()
        self.channel = Channel(ours.detach())
        self.tasks: dict[Path, Json] = {}  # the described task of each file that is open
        self.ask("hello", options={"device": device, "python": python, "require_sandbox": False, "use_cache": True,
                                   "runner_threads": 0, "log_level": "", "tasks": 64})

    @staticmethod
    def place(fd: int) -> None:
        os.dup2(fd, 3)
        os.set_inheritable(3, True)

    def ask(self, kind: str, **body: Any) -> Json:
        self.channel.send({"schema": SCHEMA, "type": kind, **body})
        while True:
            reply = self.channel.receive()
            if "error" in reply:
                raise RuntimeError(json.dumps(reply["error"]))
            if reply["type"] != "progress":
                return reply

    def open_task(self, path: Path) -> Json:
        if path not in self.tasks:
            opened = self.ask("open_task", file=str(Path(path).absolute()))["opened"]
            self.tasks[path] = opened["task"]
        return self.tasks[path]

    def judge(self, path: Path, program: Json, against: Json | None = None) -> tuple[Json, float]:
        task = self.open_task(path)["id"]
        began = time.monotonic()
        request = {"program": program, "up_to": "timing", "profile": False}
        if against:
            request["against"] = against
        verdict = self.ask("evaluate", task_id=task, request=request)["verdict"]
        return verdict, time.monotonic() - began

    def close(self) -> None:
        self.channel.socket.close()
        self.process.wait(timeout=60)


def make_recipes(binaries: Path, tasks: Iterable[Path], folder: Path, jobs: int) -> dict[str, Json]:
    """Makes the builtin proposer's first program for each task that has none yet."""
    def make(path: Path) -> tuple[str, Json]:
        out = folder / path.stem
        if not (out / "plan.json").exists():
            subprocess.run([str(binaries / "cutegen"), "optimize", str(path), "--model", "builtin",
                            "--evaluations", "1",
                            "--quiet", "--out", str(out), "--runs", str(folder / f"{path.stem}.runs")],
                           check=True, timeout=600, stdout=subprocess.DEVNULL)
        return path.stem, programs.recipe(out)

    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return dict(pool.map(make, tasks))


def line_of(entry: Json, verdict: Json, wall: float) -> Json:
    rungs = {r["rung"]: round(r["elapsed_ns"] / 1e6, 2) for r in verdict["rungs"] if r["result"] != "skipped"}
    status, word = entry["expect"]
    as_expected = verdict["status"] == status and word in verdict["feedback"]["headline"]
    timing = verdict.get("timing") or {}
    return {"name": entry["name"], "task": Path(entry["task"]).stem, "kind": entry["kind"], "status": verdict["status"],
            "as_expected": as_expected, "headline": verdict["feedback"]["headline"][:300],
            "elapsed_ms": round(verdict["elapsed_ns"] / 1e6, 2), "wall_ms": round(1e3 * wall, 2), "rungs_ms": rungs,
            "time_us": timing.get("time_ns", 0) / 1e3, "paired": timing.get("paired", []),
            "modules": len(verdict["build_ids"]),
            "skipped": verdict["skipped"], "sandbox": verdict["sandbox"]["label"], "gpu": verdict.get("gpu"),
            "driver": verdict.get("driver"), "at": round(time.time(), 3)}


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")


def summary(lines: list[Json]) -> None:
    rungs = " ".join(f"{r:>11}" for r in RUNGS)
    print(f"{'kind':8} {'n':>3} {'total':>8} {'range':>15}  {rungs}  wrong verdicts")
    for kind in ("plain", "light", "product", "wrong", "loser"):
        rows = [x for x in lines if x["kind"] == kind]
        if not rows:
            continue
        total = sorted(x["wall_ms"] for x in rows)
        rungs = " ".join(f"{median([x['rungs_ms'][r] for x in rows if r in x['rungs_ms']]):11.1f}" for r in RUNGS)
        print(f"{kind:8} {len(rows):3} {median(total):8.1f} {total[0]:7.0f}-{total[-1]:<7.0f}  {rungs}  "
              f"{sum(not x['as_expected'] for x in rows)}")
    after = sorted(x["wall_ms"] - x["rungs_ms"].get("compile", 0) for x in lines if x["kind"] == "wrong")
    if after:
        print(f"wrong programs after compile: median {median(after):.1f} ms, {after[0]:.1f} to {after[-1]:.1f}")
    for x in lines:
        for pair in x["paired"]:
            print(f"{x['name']}: {pair['speedup']:.3f}x as fast, {pair['pairs']} pairs, "
                  f"timing {x['rungs_ms']['timing']:.1f} ms")
    good = [x for x in lines if x["status"] == "correct"]
    for rung in RUNGS:
        share = sum(x["rungs_ms"].get(rung, 0) for x in good) / max(sum(x["wall_ms"] for x in good), 1e-9)
        print(f"  {rung}: {100 * share:.1f}% of the time of the correct ones")
    for x in lines:
        if not x["as_expected"]:
            print(f"{x['name']}: {x['status']}: {x['headline'][:200]}")


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.began = options, time.monotonic()

    def note(self, line: Json) -> None:
        with open(self.options.out, "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    def late(self) -> bool:
        return time.monotonic() - self.began > self.options.limit_s

    def judge_all(self, evaluator: Evaluator, entries: list[Json]) -> list[Json]:
        lines: list[Json] = []
        for entry in entries:
            if self.late():
                print(f"out of time after {len(lines)} of {len(entries)} programs")
                break
            time.sleep(self.options.pause_s)
            verdict, wall = evaluator.judge(entry["task"], entry["program"], entry.get("against"))
            lines.append(line_of(entry, verdict, wall))
            self.note(lines[-1])
        return lines

    def run(self) -> None:
        o = self.options
        tasks = sorted(o.tasks.glob("*.py"))
        pairs = kernelbench_side.PAIRS[:o.pairs] if o.kernelbench or o.make_only else []
        level1 = o.kernelbench / "KernelBench/level1" if o.kernelbench else None
        wanted = tasks + sorted({level1 / f"{p['task']}.py" for p in pairs}) if level1 else tasks
        recipes = make_recipes(o.bin, wanted, o.recipes, o.jobs)
        print(f"recipes: {time.monotonic() - self.began:.1f} s", flush=True)
        if o.make_only:
            return
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "CUTEGEN_CACHE": cache}
            evaluator = Evaluator(o.bin, o.device, environment, o.python)
            for path in wanted:
                evaluator.open_task(path)
            print(f"tasks open: {time.monotonic() - self.began:.1f} s", flush=True)
            for warm in (programs.program(*programs.plain("relu", 0)), recipes["relu"], recipes["linear_gelu"]):
                warm = json.loads(json.dumps(warm))
                warm["sources"]["kernel.cu"] += 'extern "C" __global__ void warm(int* p) { *p = 1; }\n'
                task = "linear_gelu.py" if "cutegen/gemm" in warm["sources"]["kernel.cu"] else "relu.py"
                evaluator.judge(o.tasks / task, warm)
            lines = self.judge_all(evaluator, programs.all_programs(o.tasks, recipes))
            summary(lines)
            if pairs and level1:
                entries = kernelbench_side.entries(pairs, level1, recipes)
                ours = self.judge_all(evaluator, entries)
                shapes = {p["name"]: evaluator.open_task(e["task"]) for p, e in zip(pairs, entries)}
            evaluator.close()
        if pairs and level1:
            theirs = kernelbench_side.judge_all(entries, shapes, o.kernelbench, o.sources, o.jobs)
            for line in theirs:
                self.note(line)
            kernelbench_side.summary(ours, theirs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin", type=Path, help="folder of the programs")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--python", default="", help="interpreter of the torch worker")
    parser.add_argument("--tasks", type=Path, default=HERE.parent / "tasks")
    parser.add_argument("--recipes", type=Path, default=Path("turnaround_recipes"))
    parser.add_argument("--make-only", action="store_true")
    parser.add_argument("--pause-s", type=float, default=0.5)
    parser.add_argument("--limit-s", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--sources", type=Path, help="folder with CuTe's and cutegen's headers, for nvcc")
    parser.add_argument("--pairs", type=int, default=1000, help="judge only this many pairs")
    options = parser.parse_args()
    for place in (options.bin.resolve().parent / "python", HERE.parent / "python"):
        if (place / "cutegen_worker").is_dir():
            sys.path.insert(0, str(place))
            break
    Bench(options).run()


if __name__ == "__main__":
    main()
