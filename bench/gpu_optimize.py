#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times `cutegen optimize FILE --device cuda:0 --model builtin` from the module to the certificate.

Usage: gpu_optimize.py CUTEGEN OUT.jsonl TASK.py... [--device cuda:0] [--python P] [--limit-s N]

Each file starts with an empty cache and without runs and baselines. Writes a line of JSON per file: the seconds of the
whole command, its output lines with the second of each, and the certificate.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def optimize(options: argparse.Namespace, task: Path, home: Path) -> Json:
    environment = {**os.environ, "CUTEGEN_CACHE": str(home / "cache"), "XDG_CACHE_HOME": str(home / "xdg")}
    command = [options.cutegen, "optimize", task, "--device", options.device, "--model", "builtin", "--runs",
               home / "runs", "--out", home / "out"] + (["--python", options.python] if options.python else [])
    began, said = time.monotonic(), []
    with subprocess.Popen([str(c) for c in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        killer = threading.Timer(options.limit_s, process.kill)
        killer.start()
        assert process.stdout
        for text in process.stdout:
            said.append(f"{time.monotonic() - began:7.2f} {text.rstrip()[:300]}")
        code = process.wait()
        killer.cancel()
    line = {"task": task.stem, "seconds": round(time.monotonic() - began, 2), "exit": code, "said": said[-400:]}
    certificate = home / "out" / "certificate.json"
    if certificate.exists():
        line["certificate"] = json.loads(certificate.read_text())
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cutegen", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("tasks", type=Path, nargs="+")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--python", default="")
    parser.add_argument("--limit-s", type=float, default=600)
    options = parser.parse_args()
    ends = time.monotonic() + options.limit_s
    for task in options.tasks:
        options.limit_s = ends - time.monotonic()
        if options.limit_s < 20:
            print(f"no time for {task.stem} and what follows")
            break
        with tempfile.TemporaryDirectory() as home:
            line = optimize(options, task, Path(home))
        with open(options.out, "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        made = line.get("certificate")
        told = (f"certificate in {made['elapsed_ns'] / 1e9:.1f} s" if made
                else "not certified: " + " | ".join(line["said"][-3:]))
        print(f"{line['task']:40} {line['seconds']:7.1f} s  exit {line['exit']}  {told[-300:]}", flush=True)


if __name__ == "__main__":
    main()
