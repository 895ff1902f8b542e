#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bars of verdicts, on a machine with a GPU: wrong programs, honest programs, mutants.

Usage: verdict_lanes.py OUT [--seconds 560] [--lanes 10] [--only NAME...]

OUT gets a folder or file for each job. Jobs run side by side: those of the GPU one after the other, those of
the simulator in lanes. Jobs that are not done in time are ended. $CUTEGEN_BIN names the programs, $CUTEGEN_PYTHON
the Python with torch.

  attacks       tests/attacks on cuda:0              honest        500 judgements on cuda:0
  mutants       of tests/honest on cuda:0            sim_mutants   the same on the simulator
  sim_honest    1,000 judgements on the simulator
"""
import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def jobs(options):
    """{name: (is of the GPU, [command, ...])}; the commands of a job run side by side."""
    out, python, n = options.out, sys.executable, options.lanes
    drill = [python, ROOT / "bench/gpu_drill.py", "honest"]
    mutants = [python, ROOT / "tools/mutants.py", "--honest", "--each", "8"]
    return {
        "attacks": (True, [[python, ROOT / "tests/e2e/attacks.py", "OnADevice", "--device", "cuda:0", "--out",
                            out / "attacks.jsonl", "--skip", "macro_bomb"]]),
        "honest": (True, [[*drill, out / "honest.jsonl", "--times", "500", "--limit-s", "250"]]),
        "mutants": (True, [[*mutants, "--device", "cuda:0", "--work", out / "mutants"]]),
        "sim_mutants": (False, [[*mutants, "--part", f"{i + 1}/{n}", "--work", out / f"sim_mutants{i}"]
                                for i in range(n)]),
        "sim_honest": (False, [[*drill, out / f"sim_honest{i}.jsonl", "--times", "340", "--seed", i,
                                "--device", "sim:h200", "--limit-s", options.seconds - 30]
                               for i in range(3)]),
    }  # fmt: skip


def run(name, command, log, end):
    """One command, in a group of its own, until `end`."""
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=out, start_new_session=True)
        try:
            status = process.wait(timeout=max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = "cut"
    print(f"{name}: {status}, {log.name}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=560)
    parser.add_argument("--lanes", type=int, default=10)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    chosen = {n: job for n, job in jobs(options).items() if not options.only or n in options.only}

    def in_turn():
        for name, (gpu, commands) in chosen.items():
            if gpu and time.monotonic() < end:
                run(name, commands[0], options.out / f"{name}.log", end)

    threads = [threading.Thread(target=in_turn)]
    for name, (gpu, commands) in chosen.items():
        threads += [threading.Thread(target=run, args=(name, c, options.out / f"{name}{i}.log", end))
                    for i, c in enumerate(commands) if not gpu]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
