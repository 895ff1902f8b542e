#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares cutegen's diagnosis of programs on a GPU with Nsight Compute's own rule.

Usage: gpu_profiles.py BIN OUT.jsonl [--device cuda:0] [--recipes DIR] [--jobs N] [--limit-s N]
                       [--without FILE.jsonl] [--more TASK.py...]

The programs: for each shipped task a recipe's, a plain one and, for some tasks, one that is slow on purpose; the
recipes of more task files; and the correct programs of tests/honest, which are small. Each is judged and profiled once.
Writes one line of JSON per program: its bottleneck by the hardware's counters, by the simulator's counters alone, and
by ncu's rule "SOLBottleneck". Then prints the share that agrees and the programs that do not. The slowest kernel of a
program counts.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
HERE = Path(__file__).resolve().parent


def bound_by_rule(text: str) -> str | None:
    """The class in the text of ncu's rule."""
    if "utilizing greater than" in text:
        return "memory" if "Memory Workload Analysis" in text else "compute"
    for words, bound in (("Compute is more heavily utilized", "compute"), ("Memory is more heavily utilized", "memory"),
                         ("well-balanced", "balanced"), ("latency issues", "latency"),
                         ("too small to fill", "latency")):
        if words in text:
            return bound
    return None


def bound_by_words(text: str) -> str | None:
    """The class in cutegen's diagnosis."""
    if "balanced" in text:
        return "balanced"
    word = text.split(" bound", 1)[0]
    return word if word in ("memory", "compute", "latency") else None


def remark(kernel: Json, kind: str) -> str:
    return next((r["message"] for r in kernel.get("remarks", []) if r["kind"] == kind), "")


def line_of(entry: Json, verdict: Json, seconds: float) -> Json:
    out = {"name": entry["name"], "task": Path(entry["task"]).stem, "status": verdict["status"],
           "seconds": round(seconds, 2), "gpu": verdict.get("gpu"), "driver": verdict.get("driver"),
           "rungs_ms": {r["rung"]: round(r["elapsed_ns"] / 1e6, 1) for r in verdict["rungs"]}}
    profile = verdict.get("profile")
    if not profile or not profile["kernels"]:
        return {**out, "note": verdict["feedback"]["headline"][:300] + "; " + "; ".join(verdict["skipped"])[:600]}
    kernel = max(profile["kernels"], key=lambda k: k["time_ns"])
    diagnosis = kernel.get("diagnosis", {})
    rule = remark(kernel, "ncu_rule")
    return {**out, "source": profile.get("source"), "note": profile.get("note", ""), "kernels": len(profile["kernels"]),
            "kernel": kernel["kernel"], "time_us": kernel["time_ns"] / 1e3,
            "timing_us": (verdict.get("timing") or {}).get("time_ns", 0) / 1e3, "ours": diagnosis.get("bound"),
            "unit": diagnosis.get("unit"), "simulator": bound_by_words(remark(kernel, "simulator")),
            "ncu": bound_by_rule(rule), "rule": rule[:160], "summary": diagnosis.get("summary", ""),
            "simulator_summary": remark(kernel, "simulator"), "counters": kernel["counters"],
            "modelled": kernel.get("modelled", {})}


def known(path: Path | None) -> set[str]:
    """Names of an earlier run's programs that have a result of ncu's rule."""
    lines = path.read_text().splitlines() if path else []
    return {line["name"] for line in map(json.loads, lines) if line.get("ncu")}


def honest(folder: Path) -> Iterator[Json]:
    for path in sorted((folder / "tests/honest").iterdir()):
        plan = json.loads((path / "plan.json").read_text())
        yield {"name": "honest_" + path.name, "task": path / "task.py",
               "program": {"schema": "cutegen.program.v1", "plan": plan,
                           "sources": {name: (path / name).read_text() for name in plan["sources"]}}}


def entries_of(tree: Path, options: argparse.Namespace) -> list[Json]:
    import gpu_turnaround
    import turnaround_programs as programs
    names = programs.POINTWISE_TASKS + programs.ROW_TASKS + programs.PRODUCT_TASKS
    tasks = [tree / f"tasks/{n}.py" for n in names]
    made = gpu_turnaround.make_recipes(options.bin, tasks + options.more, options.recipes, 8)
    out = []
    for name, task in zip(names, tasks):
        out.append({"name": "recipe_" + name, "task": task, "program": made[name]})
        out.append({"name": "plain_" + name, "task": task, "program": programs.program(*programs.plain(name, 0))})
    for entry in programs.losers(tree / "tasks", made):
        out.append({k: entry[k] for k in ("name", "task", "program")})
    for task in options.more:
        out.append({"name": "recipe_" + task.stem, "task": task, "program": made[task.stem]})
    return out + list(honest(tree))


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.began = options, time.monotonic()
        self.lock = threading.Lock()
        self.lines: list[Json] = []

    def work(self, entries: list[Json], environment: dict[str, str]) -> None:
        """Judges a share of the programs with one evaluator."""
        import gpu_turnaround
        evaluator = gpu_turnaround.Evaluator(self.options.bin, self.options.device, environment, self.options.python)
        for entry in entries:
            if time.monotonic() - self.began > self.options.limit_s:
                print(f"no time for {entry['name']} and what follows", flush=True)
                break
            began = time.monotonic()
            try:
                task = evaluator.open_task(entry["task"])["id"]
                request = {"program": entry["program"], "up_to": "profile", "profile": True}
                verdict = evaluator.ask("evaluate", task_id=task, request=request)["verdict"]
                line = line_of(entry, verdict, time.monotonic() - began)
            except RuntimeError as error:
                line = {"name": entry["name"], "status": "error", "note": str(error)[:600]}
            with self.lock:
                self.lines.append(line)
                with open(self.options.out, "a", encoding="utf-8") as out:
                    out.write(json.dumps(line) + "\n")
        evaluator.close()

    def run(self) -> None:
        entries = [e for e in entries_of(HERE.parent, self.options) if e["name"] not in known(self.options.without)]
        jobs = self.options.jobs
        shares: list[list[Json]] = [[] for _ in range(jobs)]
        tasks = list(dict.fromkeys(str(e["task"]) for e in entries))
        for entry in entries:  # one evaluator judges all programs of a task, so it makes the sets once
            shares[tasks.index(str(entry["task"])) % jobs].append(entry)
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "CUTEGEN_CACHE": cache}
            threads = [threading.Thread(target=self.work, args=(share, environment)) for share in shares]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.summary(len(entries))

    def summary(self, wanted: int) -> None:
        both = [x for x in self.lines if x.get("ncu")]
        print(f"{len(self.lines)} of {wanted} programs, {len(both)} with ncu's rule, "
              f"{time.monotonic() - self.began:.0f} s")
        for what in ("ours", "simulator"):
            known = [x for x in both if x.get(what)]
            same = [x for x in known if x[what] == x["ncu"]]
            print(f"{what}: {len(same)} of {len(known)} say what the rule says")
            for x in known:
                if x[what] != x["ncu"]:
                    said = x["summary"] if what == "ours" else x["simulator_summary"]
                    print(f"  {x['name']}: rule {x['ncu']}, {what} {x[what]} ({said[:140]})")
        for x in self.lines:
            if not x.get("ncu"):
                print(f"{x['name']}: {x['status']}, {x.get('source')}: {x.get('note', '')[:300]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin", type=Path, help="folder of the programs")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--python", default="", help="interpreter of the torch worker")
    parser.add_argument("--recipes", type=Path, default=Path("profile_recipes"))
    parser.add_argument("--jobs", type=int, default=2, help="evaluators in parallel; they take turns on the GPU")
    parser.add_argument("--limit-s", type=float, default=1e9)
    parser.add_argument("--without", type=Path, help="data of an earlier run, whose programs are skipped")
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="task files whose recipes are judged too")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE))
    for place in (options.bin.resolve().parent / "python", HERE.parent / "python"):
        if (place / "cutegen_worker").is_dir():
            sys.path.insert(0, str(place))
            break
    Bench(options).run()


if __name__ == "__main__":
    main()
