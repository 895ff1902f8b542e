#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times `cutegen describe`: one file cold, and many files through one worker.

Usage: describe.py CUTEGEN FOLDER...   (folders of task files, such as KernelBench's level1 level2)
Also prints the load of the machine, because the figures mean little on a busy machine.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
COLD_RUNS = 5


def describe(program: str, files: list[str]) -> tuple[float, Json]:
    start = time.monotonic()
    done = subprocess.run([program, "describe", "--json", *files], capture_output=True, text=True)
    seconds = time.monotonic() - start
    if not done.stdout.strip():
        sys.exit(done.stderr)
    document = json.loads(done.stdout)
    if "error" in document:
        sys.exit(document["error"]["message"])
    return seconds, document


def cold(program: str, file: str) -> None:
    times = sorted(describe(program, [file])[0] for _ in range(COLD_RUNS))
    print(f"cold, one file ({Path(file).name}): least {times[0]:.2f} s, "
          f"median {times[COLD_RUNS // 2]:.2f} s of {COLD_RUNS}")


def folder(program: str, paths: list[str]) -> list[str]:
    files = sorted(str(f) for p in paths for f in Path(p).glob("*.py"))
    seconds, document = describe(program, files)
    tasks, failed = document["tasks"], document["failed"]
    each = sorted((t["describe_ns"] / 1e6, t["name"]) for t in tasks)
    with_shapes = sum(len(t["shapes"]) >= 4 for t in tasks)
    print(f"{' '.join(Path(p).name for p in paths)}: {len(tasks)} described, {len(failed)} failed, "
          f"{seconds:.1f} s in all, median {each[len(each) // 2][0]:.0f} ms, "
          f"slowest {each[-1][0]:.0f} ms ({each[-1][1]}); {with_shapes} with a small and two odd "
          "shapes")
    for task in tasks:
        if len(task["shapes"]) < 4:
            print(f"  {task['name']}: {'; '.join(n for n in task['notes'] if 'shape' in n)}")
    for failure in failed:
        print(f"  {Path(failure['file']).name}: {failure['message']}")
    return files


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, paths = sys.argv[1], sys.argv[2:]
    print("load average %.1f on %d cores" % (os.getloadavg()[0], os.cpu_count() or 0))
    files = folder(program, paths)
    cold(program, files[0])


if __name__ == "__main__":
    main()
