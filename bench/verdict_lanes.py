#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the quality of verdicts on a machine with a GPU: wrong programs, honest programs, mutants, times.

Usage: verdict_lanes.py OUT [--seconds 560] [--lanes 10] [--only JOB...] [--older DIR] [--kernelbench DIR]

OUT gets a log of each command and the data of each job. Jobs for the GPU run one after the other; simulator jobs run in
parallel with them. A job that is not done after --seconds is ended. $CUTEGEN_BIN names the folder of the
programs, $CUTEGEN_PYTHON the Python with torch, --older the programs of an older version, and --kernelbench the folder
KernelBench/KernelBench.

  paired        a kernel against itself and with 1% more work, by a search's rule (paired_timing_bench beside OUT)
  attacks       tests/attacks on cuda:0
  time          honest programs on cuda:0, judged by this version, then by --older
  honest        500 judgements of honest programs on cuda:0
  mutants       mutants of tests/honest on cuda:0
  sim_time      the same as time on the simulator
  sim_honest    1,000 judgements on the simulator
  sim_mutants   mutants of tests/honest on the simulator
  admission     degenerate solutions of KernelBench's levels 1 and 2, on the simulator
"""
from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

Command = list[object]
ROOT = Path(__file__).resolve().parents[1]
# Programs that both versions accept.
KNOWN = ("attention", "conv", "depthwise", "elementwise", "fused", "gemv", "loss", "matmul", "norm", "pooling",
         "recurrent", "reduction", "scan", "softmax", "transposed_conv")
GPU = "cuda:0"


class Jobs:
    """Each method returns the commands of one job. Jobs for the simulator run their commands in parallel."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.out, self.lanes = options, options.out, options.lanes
        self.seconds = options.seconds - 20

    def drill(self, name: str, times: int, seed: int, device: str, only: Sequence[str] = (),
              seconds: float | None = None) -> Command:
        return [sys.executable, ROOT / "bench/gpu_drill.py", "honest", self.out / f"{name}.jsonl", "--times", times,
                "--seed", seed, "--device", device, "--limit-s", seconds or self.seconds,
                *(["--only", *only] if only else [])]

    def mutants_of(self, name: str, *more: object) -> Command:
        return [sys.executable, ROOT / "tools/mutants.py", "--honest", "--each", "8", "--work", self.out / name, *more]

    def paired(self) -> list[Command]:
        return [[self.out.parent / "paired_timing_bench", "300", GPU]]

    def attacks(self) -> list[Command]:
        return [[sys.executable, ROOT / "tests/e2e/attacks.py", "OnADevice", "--device", GPU,
                 "--out", self.out / "attacks.jsonl", "--skip", "macro_bomb"]]

    def in_turn(self, name: str, device: str) -> list[Command]:
        commands = [self.drill(f"{name}_now", 1, 1, device, KNOWN) + ["--each", 5, "--distinct"]]
        if self.options.older:
            older = self.drill(f"{name}_older", 1, 1, device, KNOWN) + ["--each", 5, "--distinct"]
            commands.append(["env", f"CUTEGEN_BIN={self.options.older}", *older])
        return commands

    def time(self) -> list[Command]:
        return self.in_turn("time", GPU)

    def sim_time(self) -> list[Command]:
        return self.in_turn("sim_time", "sim:h200")

    def honest(self) -> list[Command]:
        return [self.drill("honest", 500, 1, GPU, seconds=250)]

    def mutants(self) -> list[Command]:
        return [self.mutants_of("mutants", "--device", GPU)]

    def sim_honest(self) -> list[Command]:
        return [self.drill(f"sim_honest{i}", 340, i, "sim:h200") for i in range(3)]

    def sim_mutants(self) -> list[Command]:
        return [self.mutants_of(f"sim_mutants{i}", "--part", f"{i + 1}/{self.lanes}") for i in range(self.lanes)]

    def admission(self) -> list[Command]:
        return [[sys.executable, ROOT / "tools/admission.py", self.options.kernelbench / f"level{level}",
                 "--part", f"{part + 1}/{self.lanes}"] for level in (1, 2) for part in range(self.lanes)]


IN_TURN = ("paired", "attacks", "time", "honest", "mutants")  # they share the GPU
SIDE_BY_SIDE = ("sim_honest", "sim_mutants", "admission")


def run(name: str, command: Command, log: Path, end: float) -> None:
    """Runs one command in its own process group, at most until `end`."""
    began = time.monotonic()
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=out, start_new_session=True)
        try:
            status = str(process.wait(timeout=max(1, end - time.monotonic())))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = "cut"
    print(f"{name}: {status} after {time.monotonic() - began:.0f} s, {log.name}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=560)
    parser.add_argument("--lanes", type=int, default=10)
    parser.add_argument("--only", nargs="*", choices=[*IN_TURN, "sim_time", *SIDE_BY_SIDE])
    parser.add_argument("--older", type=Path)
    parser.add_argument("--kernelbench", type=Path)
    options = parser.parse_args()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    jobs = Jobs(options)

    def wanted(names: Sequence[str]) -> list[str]:
        return [n for n in names if not options.only or n in options.only]

    def in_turn(names: Sequence[str]) -> None:
        for name in names:
            for i, command in enumerate(getattr(jobs, name)()):
                if time.monotonic() < end:
                    run(name, command, options.out / f"{name}{i}.log", end)

    threads = [threading.Thread(target=in_turn, args=(wanted(names),)) for names in (IN_TURN, ("sim_time",))]
    for name in wanted(SIDE_BY_SIDE):
        if name == "admission" and not options.kernelbench:
            continue
        threads += [threading.Thread(target=run, args=(name, c, options.out / f"{name}{i}.log", end))
                    for i, c in enumerate(getattr(jobs, name)())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
