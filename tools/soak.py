#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges correct programs repeatedly in one evaluator; none may fail.

It gets the builtin proposer's program for each task of tasks/. Then it opens tasks in random order and judges their
programs, by default 1,000 times. It prints each verdict that is not `correct` with its headline and then exits with
code 1. The first evaluation of a task is slower, because it makes fresh inputs.

    nice python3 tools/soak.py --count 1000 --seed 3
"""
from __future__ import annotations

import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/e2e"))
import harness  # noqa: E402
from evaluator_client import Evaluator, load_program  # noqa: E402

STAY = 10  # evaluations of a task before another is opened


def environment(home: str) -> dict[str, str]:
    kept = {n: os.environ[n] for n in ("PATH", "LANG", "TMPDIR", "CUTEGEN_PYTHON") if n in os.environ}
    env = dict(kept, HOME=home, XDG_CACHE_HOME=str(Path(home) / "cache"))
    if not (harness.BIN.parent / "libexec").exists():  # a bundle knows its own places
        env |= {"CUTEGEN_SHARE": str(harness.ROOT), "CUTEGEN_BIN": str(harness.BIN),
                "XDG_CACHE_HOME": str(harness.BIN.parent / "e2e-cache")}
    return env


def programs(tasks: list[Path], env: dict[str, str], folder: str) -> dict[Path, Any]:
    """{task file: program}, one evaluation each."""
    found = {}
    for task in tasks:
        runs = Path(folder) / task.stem
        command = [harness.BIN / "cutegen", "optimize", task, "--device", "sim:h200", "--model",
                   "builtin", "--evaluations", "1", "--out", runs]
        done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True,
                              check=False)
        plans = sorted(runs.glob("**/plan.json"))
        if plans:
            found[task] = load_program(plans[-1].parent)
        else:
            print(f"{task.stem}: no program\n{done.stderr[-500:]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--up-to", default="correctness")
    arguments = parser.parse_args()
    rng, bad = random.Random(arguments.seed), 0
    tally: collections.Counter[tuple[str, str]] = collections.Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cutegen-soak-") as folder:
        env = environment(folder)
        known = programs(sorted((harness.ROOT / "tasks").glob("*.py")), env, folder)
        with Evaluator(env) as evaluator:
            for i in range(arguments.count):
                if i % STAY == 0:
                    task = rng.choice(list(known))
                    evaluator.open_task(task)
                verdict = evaluator.evaluate(known[task], arguments.up_to)
                tally[task.stem, verdict["status"]] += 1
                if verdict["status"] != "correct":
                    bad += 1
                    print(f"{i} {task.stem}: {verdict['status']}: {verdict['feedback']['headline']}")
                if i % 100 == 99:
                    print(f"{i + 1} evaluations, {bad} not correct, "
                          f"{time.monotonic() - began:.0f} s", flush=True)
    for (name, status), count in sorted(tally.items()):
        print(f"{name:<20} {status:<12} {count}")
    print(f"{sum(tally.values())} evaluations, {bad} not correct")
    return 1 if bad or not tally else 0


if __name__ == "__main__":
    sys.exit(main())
