#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures verdicts per second for a batch of light programs (`cutegen eval --batch`).

Usage: gpu_batch.py CUTEGEN OUT [--device cuda:0[,cuda:1]] [--programs 64] [--recipes DIR] [--python P]

The programs are the builtin proposer's for light tasks. Each has several versions with different text, so that all are
compiled, and the cache is empty. The time includes the whole command: it starts processes, opens tasks, and compiles,
checks and times the programs.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Recipe = tuple[Json, dict[str, str]]  # a plan, and its sources
HERE = Path(__file__).resolve().parent
LIGHT = ("relu", "gelu_bias", "sum_middle", "softmax", "rmsnorm", "mean_scale")


def recipe(cutegen: Path, tasks: Path, name: str, folder: Path) -> Recipe:
    out = folder / name
    if not (out / "plan.json").exists():
        subprocess.run([str(cutegen), "optimize", str(tasks / f"{name}.py"), "--model", "builtin", "--evaluations", "1",
                        "--quiet", "--out", str(out), "--runs", str(folder / f"{name}.runs")],
                       check=True, timeout=600, stdout=subprocess.DEVNULL)
    plan = json.loads((out / "plan.json").read_text())
    return plan, {source: (out / source).read_text() for source in plan["sources"]}


def make(folder: Path, recipes: dict[str, Recipe], tasks: Path, count: int) -> None:
    for i in range(count):
        name = LIGHT[i % len(LIGHT)]
        plan, sources = recipes[name]
        entry = folder / f"{i:03d}_{name}"
        entry.mkdir(parents=True)
        (entry / "plan.json").write_text(json.dumps(plan))
        for file, text in sources.items():
            more = f'\nextern "C" __global__ void version_{i}(int* p) {{ *p = {i}; }}\n'
            (entry / file).write_text(text + more)
        (entry / "task.py").write_text((tasks / f"{name}.py").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cutegen", type=Path)
    parser.add_argument("out", type=Path, help="a folder: the verdicts, and batch.json")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--programs", type=int, default=64)
    parser.add_argument("--tasks", type=Path, default=HERE.parent / "tasks")
    parser.add_argument("--recipes", type=Path)
    parser.add_argument("--python", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        made = options.recipes or scratch / "recipes"
        recipes = {name: recipe(options.cutegen, options.tasks, name, made) for name in LIGHT}
        make(scratch / "in", recipes, options.tasks, options.programs)
        environment = {**os.environ, "CUTEGEN_CACHE": str(scratch / "cache")}
        command = [str(options.cutegen), "eval", "--batch", str(scratch / "in"), "--out", str(options.out),
                   "--device", options.device, "--json", *(["--python", options.python] if options.python else [])]
        began = time.monotonic()
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        seconds = time.monotonic() - began
    document = json.loads(done.stdout)
    (options.out / "batch.json").write_text(json.dumps(document, indent=1))
    if "error" in document:
        sys.exit(document["error"]["message"])
    took = sorted(entry["seconds"] for entry in document["entries"])
    print(f"{options.device}: {document['counts']} in {seconds:.1f} s, "
          f"{document['judged'] / seconds:.2f} verdicts a second; "
          f"an entry took {took[len(took) // 2]:.3f} s (median), {took[0]:.3f} to {took[-1]:.3f}")
    for entry in document["entries"]:
        if entry["status"] != "correct":
            print(entry["name"], entry["status"], entry.get("detail", "")[:200])


if __name__ == "__main__":
    main()
